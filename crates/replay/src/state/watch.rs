//! What an expression of the source is worth, again and again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use afterimage_ids::FuncId;
use afterimage_program::Program;
use afterimage_variables::{
    DebugError, FunctionScopes, Limits, Object, Path, PathError, Shape, Variables,
};

use super::written::doubt;
use super::{
    Activation, Bodies, Followed, Halt, Moment, Occasion, Recorded, StateError, Written, calls,
};
use crate::steps::Paused;
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

/// What an expression is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worth {
    /// Its type's name.
    pub type_name: String,
    /// Its value as C would write it.
    pub text: String,
    /// It begins with a parameter whose place may hold something else: why.
    pub written: Option<Written>,
}

/// What it is worth at a moment, or what else was wanted of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluated<T = Worth> {
    /// Which of the occasions, from 1.
    pub number: u64,
    /// The time of the block.
    pub time: u64,
    /// In which function.
    pub function: FuncId,
    /// What was wanted, or why there is none.
    pub value: Result<T, PathError>,
}

/// An expression at a moment.
pub struct Watched<'m, 'a> {
    /// The debug information.
    pub variables: &'m Variables<'a>,
    /// The moment.
    pub moment: &'m Moment<'m, 'a>,
    /// The scopes of the function that is executed then. If it has no debug information, only global variables are known.
    pub scopes: Option<&'m FunctionScopes>,
    /// What the expression means.
    pub object: Object,
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

/// Whether there are so many moments so close together that it is faster to follow the run through them than to compute values from the trace at each.
fn is_dense(occasions: &[Occasion]) -> bool {
    const MANY: usize = 64;
    const BLOCKS: u64 = 256;
    let (Some(first), Some(last)) = (occasions.first(), occasions.last()) else {
        return false;
    };
    let blocks = last.time.saturating_sub(first.time);
    occasions.len() >= MANY && blocks / (occasions.len() as u64) < BLOCKS
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
        let scopes = || self.variables.function(function);
        let known =
            known.or_insert_with(|| Rc::new(scopes().map_err(|error| error.named(self.name))));
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
        follow: impl FnOnce(&[Halt], &mut dyn FnMut(usize, u32, &Paused<'_>)) -> Result<(), E>,
    ) -> Result<Vec<Evaluated>, WatchError<E>> {
        let failed = RefCell::default();
        let rows = self.each(occasions, follow, |watched| {
            let Watched {
                variables,
                moment,
                object,
                ..
            } = watched;
            let rendered = variables.render(object, &self.limits, *moment);
            match rendered.shape {
                Shape::Missing(why) => Err(*why),
                _ => Ok(Worth {
                    type_name: rendered.type_name.clone(),
                    text: rendered.to_string(),
                    written: self.written(watched).unwrap_or_else(|error| {
                        failed.replace(Some(error));
                        None
                    }),
                }),
            }
        })?;
        match failed.into_inner() {
            Some(error) => Err(WatchError::State(error)),
            None => Ok(rows),
        }
    }

    /// Why the place of the parameter that the expression begins with may hold something else; `None` if it does not begin with one, or holds it.
    ///
    /// # Errors
    /// If the path cannot be read.
    pub fn written(&self, watched: &Watched<'_, 'a>) -> Result<Option<Written>, StateError> {
        let moment = watched.moment;
        let activation = moment.activation;
        let at = activation.offset;
        let Some(scopes) = watched.scopes else {
            return Ok(None);
        };
        let Ok((variable, _)) = self.variables.begin(&self.path, Some((scopes, at))) else {
            return Ok(None);
        };
        let arguments = activation.parameters(self.program);
        let doubt = doubt(self.variables, scopes, &variable, at, arguments);
        match doubt.zip(moment.entry) {
            Some((doubt, entry)) => doubt.written(activation.time, |local| {
                activation.written(self.values.path(), self.bodies, entry.time, local)
            }),
            None => Ok(None),
        }
    }

    /// As [`at`](Self::at), with something else that is wanted of what the expression means at each of the moments.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub fn each<T, E>(
        &self,
        occasions: &[Occasion],
        follow: impl FnOnce(&[Halt], &mut dyn FnMut(usize, u32, &Paused<'_>)) -> Result<(), E>,
        wanted: impl Fn(&Watched<'_, 'a>) -> Result<T, PathError>,
    ) -> Result<Vec<Evaluated<T>>, WatchError<E>> {
        self.every(occasions, follow, |moment| self.evaluate(moment, &wanted))
    }

    /// What is wanted at each of the moments, whatever the expression is: `wanted` is given the moment and the scopes of the function that is executed then.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub fn at_each<T, E>(
        &self,
        occasions: &[Occasion],
        follow: impl FnOnce(&[Halt], &mut dyn FnMut(usize, u32, &Paused<'_>)) -> Result<(), E>,
        wanted: impl Fn(&Moment<'_, 'a>, &FunctionScopes) -> T,
    ) -> Result<Vec<Evaluated<T>>, WatchError<E>> {
        self.every(occasions, follow, |moment| {
            let scopes = self.scopes(moment.activation.function);
            match &*scopes {
                Ok(scopes) => Ok(wanted(moment, scopes)),
                Err(error) => Err(error.clone().into()),
            }
        })
    }

    fn every<T, E>(
        &self,
        occasions: &[Occasion],
        follow: impl FnOnce(&[Halt], &mut dyn FnMut(usize, u32, &Paused<'_>)) -> Result<(), E>,
        evaluate: impl Fn(&Moment<'_, 'a>) -> Result<T, PathError>,
    ) -> Result<Vec<Evaluated<T>>, WatchError<E>> {
        let mut found = Vec::new();
        let mut enough = !is_dense(occasions);
        let mut activations = Vec::with_capacity(occasions.len());
        let mut last: Option<Rc<Activation<'a>>> = None;
        for occasion in occasions {
            let (activation, entry) = self.activation(occasion, last.take())?;
            last = Some(Rc::clone(&entry));
            activations.push((activation, entry));
        }
        for (occasion, (activation, entry)) in occasions.iter().zip(&activations) {
            if !enough {
                found.push(self.evaluated(occasion, activation, Err(PathError::NoAddress)));
                continue;
            }
            let recorded = Recorded::new(self.values);
            let moment = Moment {
                activation,
                contents: &recorded,
                entry: Some(entry),
                program: self.program,
                name: self.name,
            };
            let value = evaluate(&moment);
            enough = recorded.is_enough();
            found.push(self.evaluated(occasion, activation, value));
        }
        if enough {
            return Ok(found);
        }
        let halts = activations.iter().map(|(activation, _)| Halt {
            start: activation.instance.time,
            instructions: activation.instructions(),
        });
        let halts = Vec::from_iter(halts);
        let mut failed = None;
        let mut reached = 0;
        let followed = follow(&halts, &mut |position, first_result, paused| {
            let (activation, entry) = &activations[position];
            let recorded = Recorded::new(self.values);
            let contents = Followed {
                paused,
                first_result,
                instance: activation.instance,
                recorded: &recorded,
            };
            let moment = Moment {
                activation,
                contents: &contents,
                entry: Some(entry),
                program: self.program,
                name: self.name,
            };
            let value = evaluate(&moment);
            match recorded.failure() {
                Some(error @ StateError::Checkpoints(_)) => failed = Some(error),
                _ => found[position].value = value,
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

    fn evaluated<T>(
        &self,
        occasion: &Occasion,
        activation: &Activation<'_>,
        value: Result<T, PathError>,
    ) -> Evaluated<T> {
        Evaluated {
            number: occasion.number,
            time: occasion.time,
            function: activation.function,
            value,
        }
    }

    /// The activation at an occasion, and where it began, which for many occasions in a loop is where the last one began.
    fn activation(
        &self,
        occasion: &Occasion,
        last: Option<Rc<Activation<'a>>>,
    ) -> Result<(Activation<'a>, Rc<Activation<'a>>), StateError> {
        let (values, bodies, time) = (self.values, self.bodies, occasion.time);
        let activation = Activation::at(values, bodies, time, occasion.op)?;
        let (stack, _) = calls(values, time, 1)?;
        let entered = stack.first().map_or(time, |call| call.entered);
        let entry = match last.filter(|last| last.time == entered) {
            Some(last) => last,
            None => Rc::new(Activation::at_block(values, bodies, entered)?),
        };
        Ok((activation, entry))
    }

    fn evaluate<T>(
        &self,
        moment: &Moment<'_, 'a>,
        wanted: impl Fn(&Watched<'_, 'a>) -> Result<T, PathError>,
    ) -> Result<T, PathError> {
        let at = moment.activation.offset;
        let scopes = self.scopes(moment.activation.function);
        let variables = self.variables;
        let place = scopes.as_ref().as_ref().ok().map(|scopes| (scopes, at));
        let object = match (variables.resolve(&self.path, place, moment), &*scopes) {
            // It may be a variable of the function.
            (Err(PathError::NoVariable { .. }), Err(error)) => return Err(error.clone().into()),
            (object, _) => object?,
        };
        let scopes = scopes.as_ref().as_ref().ok();
        wanted(&Watched {
            variables,
            moment,
            scopes,
            object,
        })
    }
}
