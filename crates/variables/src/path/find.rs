//! Finds the variable that a name denotes.

use std::borrow::Cow;
use std::ops::Range;

use afterimage_ids::OrigOffset;

use crate::location::distance;
use crate::nearest::nearest;
use crate::scopes::FunctionScopes;
use crate::types::TypeKind;
use crate::variable::Variable;
use crate::{DebugError, Path, PathError, Variables};

use super::Step;

impl Variables<'_> {
    /// Finds the variable that an expression names, at an offset of a function. Returns the
    /// variable, and the expression that begins with it. In a C++ method, a name that is not a
    /// variable in scope there means a member of the method's object, if there is such a member. As
    /// in the source, `x` is `this->x`.
    ///
    /// # Errors
    /// Returns the same errors as [`find`](Self::find).
    pub fn begin<'p>(
        &self,
        path: &'p Path,
        place: Option<(&FunctionScopes, OrigOffset)>,
    ) -> Result<(Variable, Cow<'p, Path>), PathError> {
        match self.object_of(&path.variable, place)? {
            Some(this) => {
                let member = Step::Member {
                    name: path.variable.clone(),
                    arrow: true,
                };
                let steps = std::iter::once(member).chain(path.steps.iter().cloned());
                let path = Path {
                    variable: this.name.clone(),
                    steps: steps.collect(),
                };
                Ok((this, Cow::Owned(path)))
            }
            None => Ok((self.find(&path.variable, place)?, Cow::Borrowed(path))),
        }
    }

    /// Returns the object `this` of the innermost function at an offset, if it has a member with
    /// this name, and the function has no variable with this name in scope.
    fn object_of(
        &self,
        name: &str,
        place: Option<(&FunctionScopes, OrigOffset)>,
    ) -> Result<Option<Variable>, PathError> {
        let Some((function, at)) = place.filter(|_| !name.contains("::")) else {
            return Ok(None);
        };
        let innermost = function.around(at).first().map_or(0, |scope| scope.inlined);
        let mut own = self.in_scope_of(function, at)?;
        own.retain(|variable| variable.inlined == innermost);
        if own.iter().any(|variable| variable.name == name) {
            return Ok(None);
        }
        let Some(this) = own.into_iter().find(|variable| variable.name == "this") else {
            return Ok(None);
        };
        let kind = &self.describe(self.plain(this.type_ref)?)?.kind;
        let TypeKind::Pointer { to, .. } = *kind else {
            return Ok(None);
        };
        Ok(self.has_member(to, name)?.then_some(this))
    }

    /// Finds the variable for a name at an offset of a function: the innermost variable in scope,
    /// or otherwise a global variable. Without a function, or for a name with `::`, finds a global
    /// variable.
    ///
    /// # Errors
    /// Returns an error if there is no such variable. The error is [`PathError::NotInScope`] if the
    /// function has the variable elsewhere.
    pub fn find(
        &self,
        name: &str,
        place: Option<(&FunctionScopes, OrigOffset)>,
    ) -> Result<Variable, PathError> {
        let Some((function, at)) = place.filter(|_| !name.contains("::")) else {
            return self.find_global(name);
        };
        let in_scope = self.in_scope_of(function, at)?;
        let names: Vec<String> = in_scope
            .iter()
            .map(|variable| variable.name.clone())
            .collect();
        if let Some(found) = in_scope.into_iter().find(|variable| variable.name == name) {
            return Ok(found);
        }
        match self.find_global_from(name, Some(function.entry.unit)) {
            Err(PathError::NoVariable {
                name,
                nearest: mut globals,
                lacks,
            }) => {
                if let Some(nearest) = self.elsewhere(function, &name, at)? {
                    return Err(PathError::NotInScope { name, nearest });
                }
                let mut nearest = nearest(&name, names.iter().map(String::as_str));
                globals.retain(|global| !nearest.contains(global));
                nearest.append(&mut globals);
                // The function itself has debug information.
                let lacks = lacks.filter(|why| !matches!(why, DebugError::Undescribed { .. }));
                Err(PathError::NoVariable {
                    name,
                    nearest,
                    lacks,
                })
            }
            found => found,
        }
    }

    /// Returns the nearest code of a function with a variable of this name in scope. O(variables of
    /// the function).
    fn elsewhere(
        &self,
        function: &FunctionScopes,
        name: &str,
        at: OrigOffset,
    ) -> Result<Option<Range<OrigOffset>>, PathError> {
        let mut best = None;
        for scope in &function.scopes {
            let mut here = false;
            for &variable in &scope.variables {
                here = here || self.debug.name(variable)?.as_deref() == Some(name);
            }
            if here {
                for range in scope.code.iter() {
                    let apart = distance(range, at);
                    if best.as_ref().is_none_or(|(least, _)| apart < *least) {
                        best = Some((apart, range.clone()));
                    }
                }
            }
        }
        Ok(best.map(|(_, range)| range))
    }
}
