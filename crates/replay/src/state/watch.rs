//! Evaluates an expression of the source at many moments.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use afterimage_ids::{FuncId, OrigOffset};
use afterimage_program::Program;
use afterimage_variables::{
    DebugError, FunctionScopes, Limits, Object, Path, PathError, Shape, Variables,
};
use afterimage_wpp::Cursor;

use super::{
    Activation, Begun, Bodies, Contents, Followed, Halt, Moment, Occasion, Recorded, StateError,
    Written, calls,
};
use crate::steps::Paused;
use crate::values::RecordedValues;
use crate::whole_path::FileSegments;

/// An expression to evaluate at many moments.
pub struct Watch<'w, 'a> {
    program: &'a Program,
    bodies: &'w Bodies<'a>,
    values: &'w RecordedValues<'a>,
    variables: &'w Variables<'a>,
    name: &'w dyn Fn(FuncId) -> String,
    path: Path,
    limits: Limits,
    scopes: RefCell<HashMap<FuncId, Scopes>>,
    /// The beginning of the expression, by place.
    begun: RefCell<HashMap<(FuncId, OrigOffset), Rc<Begun>>>,
}

/// The scopes of a function, or the reason why the function has none.
type Scopes = Rc<Result<FunctionScopes, DebugError>>;

/// An activation at an occasion, and the same activation at its beginning.
type Standing<'a> = (Activation<'a>, Rc<Activation<'a>>);

/// The value of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worth {
    /// The name of the value's type.
    pub type_name: String,
    /// The value in C notation.
    pub text: String,
    /// If the expression begins with a parameter, the reason why the parameter's place may hold
    /// another value.
    pub written: Option<Written>,
}

/// The value at a moment, or another result that was requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluated<T = Worth> {
    /// The number of the occasion, from 1.
    pub number: u64,
    /// The time of the block.
    pub time: u64,
    /// The function of the block.
    pub function: FuncId,
    /// The result, or the reason why there is none.
    pub value: Result<T, PathError>,
}

/// An expression at a moment.
pub struct Watched<'m, 'a> {
    /// The debug information of the module.
    pub variables: &'m Variables<'a>,
    /// The moment of the evaluation.
    pub moment: &'m Moment<'m, 'a>,
    /// The scopes of the function that is executed at the moment. Without debug information, this
    /// is `None`, and only global variables are known.
    pub scopes: Option<&'m FunctionScopes>,
    begun: &'m Begun,
    /// The object that the expression denotes.
    pub object: Object,
}

/// The reason why an expression cannot be evaluated. `E` is the reason why the run cannot be
/// followed.
#[derive(Debug, thiserror::Error)]
pub enum WatchError<E> {
    /// The state at a moment is unknown.
    #[error(transparent)]
    State(#[from] StateError),
    /// The run cannot be followed.
    #[error("{0}")]
    Follow(E),
}

/// Whether following the run is faster than computing the values from the trace, because there are
/// many moments close together.
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
    /// Creates a watch for the expression that `path` denotes.
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
            begun: RefCell::default(),
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

    /// Evaluates the expression at these moments, which must be in ascending order. Calls `follow`
    /// once to follow the run to these moments if a part of the expression lies in memory or in a
    /// global, if a part is not in the trace, or if many moments lie close together.
    ///
    /// # Errors
    /// Returns an error if the state at a moment is unknown, or the run cannot be followed.
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

    /// Returns the reason why the place of the parameter with which the expression begins may hold
    /// another value. Returns `None` if the expression does not begin with a parameter, or the
    /// place certainly holds the parameter.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn written(&self, watched: &Watched<'_, 'a>) -> Result<Option<Written>, StateError> {
        let moment = watched.moment;
        let activation = moment.activation;
        let Some(scopes) = watched.scopes else {
            return Ok(None);
        };
        let arguments = activation.parameters(self.program);
        let doubt = watched.begun.doubt(self.variables, scopes, arguments);
        match doubt.zip(moment.entry) {
            Some((doubt, _)) => doubt.written(activation.time, |local| {
                activation.written(self.values.path(), self.bodies, local)
            }),
            None => Ok(None),
        }
    }

    /// Like [`at`](Self::at), but `wanted` computes any result from the expression's object at each
    /// moment.
    ///
    /// # Errors
    /// Returns the same errors as [`at`](Self::at).
    pub fn each<T, E>(
        &self,
        occasions: &[Occasion],
        follow: impl FnOnce(&[Halt], &mut dyn FnMut(usize, u32, &Paused<'_>)) -> Result<(), E>,
        wanted: impl Fn(&Watched<'_, 'a>) -> Result<T, PathError>,
    ) -> Result<Vec<Evaluated<T>>, WatchError<E>> {
        self.every(occasions, follow, |moment| self.evaluate(moment, &wanted))
    }

    /// Computes a result at each moment, regardless of the expression. `wanted` receives the
    /// moment, and the scopes of the function that is executed at the moment.
    ///
    /// # Errors
    /// Returns the same errors as [`at`](Self::at).
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
        let mut found = Vec::with_capacity(occasions.len());
        let mut enough = !is_dense(occasions);
        let mut activations = Vec::with_capacity(occasions.len());
        let mut cursor = self.values.path().cursor();
        let mut last: Option<Rc<Activation<'a>>> = None;
        for occasion in occasions {
            // The trace needs the number of the execution.
            let known = if enough {
                self.recorded(occasion, last.take())?
            } else {
                self.on_path(&mut cursor, occasion, last.take())?
            };
            last = Some(Rc::clone(&known.1));
            activations.push(known);
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
        // Moments that the run did not reach have no result.
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

    /// Returns the activation at an occasion, and the same activation at its beginning. `last` is
    /// the beginning for the previous occasion. Occasions in a loop often share it.
    fn recorded(
        &self,
        occasion: &Occasion,
        last: Option<Rc<Activation<'a>>>,
    ) -> Result<Standing<'a>, StateError> {
        let time = occasion.time;
        let activation = Activation::at(self.values, self.bodies, time, occasion.op)?;
        let (stack, _) = calls(self.values, time, 1)?;
        let entered = stack.first().map_or(time, |call| call.entered);
        Ok((activation, self.entry(entered, last)?))
    }

    /// Like [`recorded`](Self::recorded), but does not number the execution of the activation's
    /// node. Moves the cursor to the occasion, which is fast if the occasion is near.
    fn on_path(
        &self,
        cursor: &mut Cursor<'_, FileSegments>,
        occasion: &Occasion,
        last: Option<Rc<Activation<'a>>>,
    ) -> Result<Standing<'a>, StateError> {
        let (path, time) = (self.values.path(), occasion.time);
        let visit = cursor.seek(time)?.ok_or(StateError::NoMoment(time))?;
        let activation = Activation::on_visit(path, self.bodies, visit, (time, occasion.op))?;
        let entered = cursor.innermost()?.map_or(time, |open| open.entered);
        Ok((activation, self.entry(entered, last)?))
    }

    /// Returns the state at the beginning of an activation. Reuses `last` from the previous
    /// occasion, if `last` is the same activation.
    fn entry(
        &self,
        entered: u64,
        last: Option<Rc<Activation<'a>>>,
    ) -> Result<Rc<Activation<'a>>, StateError> {
        Ok(match last.filter(|last| last.time == entered) {
            Some(last) => last,
            None => Rc::new(Activation::at_block(self.values, self.bodies, entered)?),
        })
    }

    fn evaluate<T>(
        &self,
        moment: &Moment<'_, 'a>,
        wanted: impl Fn(&Watched<'_, 'a>) -> Result<T, PathError>,
    ) -> Result<T, PathError> {
        let Activation {
            function, offset, ..
        } = *moment.activation;
        let scopes = self.scopes(function);
        let known = scopes.as_ref().as_ref().ok();
        let begun = {
            let mut all = self.begun.borrow_mut();
            let begun = all.entry((function, offset)).or_insert_with(|| {
                let place = known.map(|scopes| (scopes, offset));
                Rc::new(Begun::new(self.variables, &self.path, place))
            });
            Rc::clone(begun)
        };
        // The name may belong to a variable of the function.
        if let (Err(PathError::NoVariable { .. }), Err(error)) = (&begun.found, &*scopes) {
            return Err(error.clone().into());
        }
        wanted(&Watched {
            variables: self.variables,
            moment,
            scopes: known,
            object: begun.object(self.variables, moment)?,
            begun: &begun,
        })
    }
}
