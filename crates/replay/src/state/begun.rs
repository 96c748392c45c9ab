//! Caches the beginning of an expression at a place, because looking up a variable takes far longer
//! than reading it.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use afterimage_ids::OrigOffset;
use afterimage_variables::{FunctionScopes, Located, Object, Path, PathError, Variable, Variables};

use super::Moment;
use super::written::{Doubt, doubt};

/// The beginning of an expression at an offset of the code.
pub struct Begun {
    /// The variable, and the rest of the expression.
    pub found: Result<(Variable, Path), PathError>,
    at: Option<OrigOffset>,
    /// The last location of the variable.
    located: RefCell<Option<Rc<Located>>>,
    doubt: OnceCell<Option<Doubt>>,
}

impl Begun {
    /// Looks up the variable with which an expression begins. `place` is as for
    /// [`Variables::begin`].
    pub fn new(
        variables: &Variables<'_>,
        path: &Path,
        place: Option<(&FunctionScopes, OrigOffset)>,
    ) -> Self {
        let found = variables.begin(path, place);
        Self {
            found: found.map(|(variable, path)| (variable, path.into_owned())),
            at: place.map(|(_, at)| at),
            located: RefCell::default(),
            doubt: OnceCell::new(),
        }
    }

    /// Returns the object of the expression at a moment.
    ///
    /// # Errors
    /// Returns the same errors as [`Variables::resolve`].
    pub fn object(
        &self,
        variables: &Variables<'_>,
        moment: &Moment<'_, '_>,
    ) -> Result<Object, PathError> {
        let (variable, path) = self.found.as_ref().map_err(Clone::clone)?;
        let located = self.located(variables, variable, moment);
        let object = located.object.clone()?;
        if path.is_variable() {
            return Ok(object);
        }
        variables.follow(path, object, moment)
    }

    fn located(
        &self,
        variables: &Variables<'_>,
        variable: &Variable,
        moment: &Moment<'_, '_>,
    ) -> Rc<Located> {
        let mut last = self.located.borrow_mut();
        if let Some(last) = &*last
            && last.holds_at(moment)
        {
            return Rc::clone(last);
        }
        let located = Rc::new(variables.locate_lasting(variable, self.at, moment));
        Rc::clone(last.insert(located))
    }

    /// Returns the doubt about the variable, if it is a parameter.
    pub(super) fn doubt(
        &self,
        variables: &Variables<'_>,
        scopes: &FunctionScopes,
        arguments: usize,
    ) -> Option<&Doubt> {
        let doubt = self.doubt.get_or_init(|| {
            let (variable, _) = self.found.as_ref().ok()?;
            doubt(variables, scopes, variable, self.at?, arguments)
        });
        doubt.as_ref()
    }
}
