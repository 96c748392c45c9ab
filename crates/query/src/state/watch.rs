//! What an expression of the source is worth, again and again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use afterimage_ids::FuncId;
use afterimage_machine::Inside;
use afterimage_program::Program;
use afterimage_variables::{DebugError, FunctionScopes, Limits, Path, PathError, Shape, Variables};

use super::{Activation, Bodies, Followed, Halt, Moment, Occasion, Recorded, StateError, calls};
use crate::values::RecordedValues;

/// An expression that is evaluated at moments.
pub struct Watch<'w, 'a> {
    program: &'a Program,
    bodies: &'w Bodies<'a>,
    values: &'w RecordedValues<'a>,
    variables: &'w Variables<'a>,
    name: &'w dyn Fn(FuncId) -> String,
    path: Path,
    limits: Limits,
    scopes: RefCell<HashMap<FuncId, Scopes>>,
}

/// The scopes of a function, or why it has none.
type Scopes = Rc<Result<FunctionScopes, DebugError>>;

/// What it is worth at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluated {
    /// Which of the occasions, from 1.
    pub number: u64,
    /// The time of the block.
    pub time: u64,
    /// In which function.
    pub function: FuncId,
    /// Its type's name and its value, as C would write it.
    pub value: Result<(String, String), PathError>,
}

/// Why it cannot be evaluated. `E` is why the run cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum WatchError<E> {
    /// A moment cannot be told.
    #[error(transparent)]
    State(#[from] StateError),
    /// The run cannot be followed.
    #[error("{0}")]
    Follow(E),
}

impl<'w, 'a> Watch<'w, 'a> {
    /// Of this expression.
    pub fn new(
        program: &'a Program,
        bodies: &'w Bodies<'a>,
        values: &'w RecordedValues<'a>,
        variables: &'w Variables<'a>,
        name: &'w dyn Fn(FuncId) -> String,
        path: Path,
    ) -> Self {
        Self {
            program,
            bodies,
            values,
            variables,
            name,
            path,
            limits: Limits::default(),
            scopes: RefCell::default(),
        }
    }

    fn scopes(&self, function: FuncId) -> Scopes {
        let mut all = self.scopes.borrow_mut();
        let known = all.entry(function);
        let known = known.or_insert_with(|| Rc::new(self.variables.function(function)));
        Rc::clone(known)
    }

    /// Evaluates it at these moments, which are ascending. If something of it is in memory or in a global, or the trace does not have it,
    /// `follow` is called, once: it follows the run to the moments that it is given.
    ///
    /// # Errors
    /// If a moment cannot be told, or the run cannot be followed.
    pub fn at<E>(
        &self,
        occasions: &[Occasion],
        follow: impl FnOnce(&[Halt], &mut dyn FnMut(usize, u32, &Inside<'_>)) -> Result<(), E>,
    ) -> Result<Vec<Evaluated>, WatchError<E>> {
        let nothing = || None;
        let mut found = Vec::new();
        let mut enough = true;
        for occasion in occasions {
            let (activation, entry) = self.activation(occasion)?;
            if !enough {
                found.push(self.evaluated(occasion, &activation, Err(PathError::NoAddress)));
                continue;
            }
            let recorded = Recorded::new(self.values, &nothing);
            let value = self.evaluate(&Moment {
                activation: &activation,
                contents: &recorded,
                entry: Some(&entry),
                program: self.program,
                name: self.name,
            });
            enough = !recorded.asked_for_state() && recorded.failure().is_none();
            found.push(self.evaluated(occasion, &activation, value));
        }
        if enough {
            return Ok(found);
        }
        let halts = occasions.iter().map(|occasion| {
            let (activation, _) = self.activation(occasion)?;
            Ok::<_, StateError>(Halt {
                start: activation.instance.time,
                instructions: activation.instructions(),
            })
        });
        let halts = halts.collect::<Result<Vec<_>, _>>()?;
        let mut failed = None;
        let mut reached = 0;
        let followed = follow(&halts, &mut |position, first_result, inside| {
            let shown = self
                .activation(&occasions[position])
                .map(|(activation, entry)| {
                    let recorded = Recorded::new(self.values, &nothing);
                    let contents = Followed {
                        inside,
                        first_result,
                        instance: activation.instance,
                        recorded: &recorded,
                    };
                    self.evaluate(&Moment {
                        activation: &activation,
                        contents: &contents,
                        entry: Some(&entry),
                        program: self.program,
                        name: self.name,
                    })
                });
            match shown {
                Ok(value) => found[position].value = value,
                Err(error) => failed = Some(error),
            }
            reached = position + 1;
        });
        followed.map_err(WatchError::Follow)?;
        // What the run did not come to any more has no value.
        found.truncate(reached);
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(found),
        }
    }

    fn evaluated(
        &self,
        occasion: &Occasion,
        activation: &Activation<'_>,
        value: Result<(String, String), PathError>,
    ) -> Evaluated {
        Evaluated {
            number: occasion.number,
            time: occasion.time,
            function: activation.function,
            value,
        }
    }

    /// The activation at an occasion, and where it began.
    fn activation(
        &self,
        occasion: &Occasion,
    ) -> Result<(Activation<'a>, Activation<'a>), StateError> {
        let (values, bodies, time) = (self.values, self.bodies, occasion.time);
        let activation = match occasion.op {
            Some(op) => Activation::at_operator(values, bodies, time, op)?,
            None => Activation::at_block(values, bodies, time)?,
        };
        let (stack, _) = calls(values, time, 1)?;
        let entered = stack.first().map_or(time, |call| call.entered);
        let entry = Activation::at_block(values, bodies, entered)?;
        Ok((activation, entry))
    }

    fn evaluate(&self, moment: &Moment<'_, '_>) -> Result<(String, String), PathError> {
        let at = moment.activation.offset;
        let scopes = self.scopes(moment.activation.function);
        let place = match &*scopes {
            Ok(scopes) => Some((scopes, at)),
            Err(error) => return Err(error.clone().into()),
        };
        let object = self.variables.resolve(&self.path, place, moment)?;
        let rendered = self.variables.render(&object, &self.limits, moment);
        match rendered.shape {
            Shape::Missing(why) => Err(*why),
            _ => Ok((rendered.type_name.clone(), rendered.to_string())),
        }
    }
}
