//! Finds the state at a position by following the run to it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use afterimage_ids::{FuncId, OpId};
use afterimage_replay::state::{
    Activation, Call, Condition, Contents, Followed, FunctionScopes, Halt, Limits, Moment, Object,
    OnMachine, Path, PathError, Recorded, ShownObject, Standing, StateError, Variables, Written,
    calls, follow_standing, follow_to, global_objects, objects,
};
use afterimage_replay::steps::{
    Opened, Paused, Run, SnapshotBuilder, Snapshots, take_snapshots_between,
};
use afterimage_replay::values::Bits;
use afterimage_replay::whole_path::FileSegments;
use afterimage_wpp::Visit;
use anyhow::{Context, Result, anyhow};

use super::{Debugger, Position};
use crate::early::Failure;

/// The number of blocks between two snapshots near a position. Snapshots are taken if the last one
/// is more than twice this far away.
const EVERY: u64 = 1 << 16;
/// The maximum size in bytes of the snapshots of one stretch.
const ROOM: usize = 1 << 25;
/// The number of stretches with snapshots to keep.
const KEPT: usize = 8;

/// Snapshots taken near requested positions, newest last.
#[derive(Default)]
pub struct Near(Vec<Rc<Snapshots>>);

impl Near {
    /// Returns the last snapshot before a block, and the set of snapshots that contains it.
    fn before(&self, time: u64) -> Option<(u64, &Rc<Snapshots>)> {
        let found = self.0.iter().filter_map(|set| {
            let number = set.at(time.saturating_sub(1))?;
            Some((set.times()[number], set))
        });
        found.max_by_key(|(time, _)| *time)
    }
}

/// The state at a position.
pub struct Inspection<'i, 'a> {
    debugger: &'i Debugger<'a>,
    at: Position,
    calls: &'i [Call],
    innermost: &'i Activation<'a>,
    contents: &'i dyn Contents,
    /// The open activations, if the run was followed from a snapshot.
    standing: Option<&'i Standing>,
}

impl<'a> Debugger<'a> {
    /// Follows the run to a position, and passes the state of at least the innermost `most`
    /// activations to `ask`. May call `ask` twice, and then returns the second result.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed, or `ask` fails.
    pub fn inspect<T>(
        &self,
        at: Position,
        most: usize,
        ask: impl Fn(&Inspection<'_, 'a>) -> Result<T>,
    ) -> Result<T> {
        let near = self.near(at.time)?;
        let run = Run {
            snapshots: near.as_deref().or(self.run.snapshots),
            ..self.run
        };
        if run.checkpoints.is_none()
            && run.snapshots.is_some()
            && let Some(found) = self.on_machine(run, at, &ask)?
        {
            return Ok(found);
        }
        self.by_values(run, at, most, &ask)
    }

    fn innermost(&self, at: Position) -> Result<Activation<'a>> {
        let op = Some(Self::op(at));
        Ok(Activation::on_path(self.path(), &self.bodies, at.time, op)?)
    }

    /// Answers from the machine's state, or returns `None` if that is not sufficient.
    fn on_machine<T>(
        &self,
        run: Run<'_, FileSegments>,
        at: Position,
        ask: &impl Fn(&Inspection<'_, 'a>) -> Result<T>,
    ) -> Result<Option<T>> {
        let innermost = self.innermost(at)?;
        let failure = Failure::default();
        let arguments = |entered| failure.keep(self.arguments(run, entered)).flatten();
        let at_call = |activation: &Activation<'_>, variable| {
            let (time, op) = (activation.time, activation.op);
            let found = self.variable_before(run, time, op, variable);
            found.ok().flatten()
        };
        let show = |standing: Standing, first_result, paused: &Paused<'_>| -> Result<Option<T>> {
            let calls = standing.calls(&innermost, usize::MAX);
            let contents = OnMachine {
                paused,
                first_result,
                standing: &standing,
                arguments: &arguments,
                at_call: &at_call,
                lacks: Cell::new(false),
            };
            let found = ask(&Inspection {
                debugger: self,
                at,
                calls: &calls,
                innermost: &innermost,
                contents: &contents,
                standing: Some(&standing),
            })?;
            Ok((!contents.lacks.get()).then_some(found))
        };
        let found = follow_standing(run, self.log()?, halt(&innermost), show)?;
        failure.report()?;
        Ok(found.transpose()?.flatten())
    }

    fn by_values<T>(
        &self,
        run: Run<'_, FileSegments>,
        at: Position,
        most: usize,
        ask: &impl Fn(&Inspection<'_, 'a>) -> Result<T>,
    ) -> Result<T> {
        self.session().epochs()?.begin();
        let op = Some(Self::op(at));
        let innermost = Activation::at(&self.values, &self.bodies, at.time, op)?;
        let (calls, _) = calls(&self.values, at.time, most)?;
        let recorded = Recorded::new(&self.values);
        let mut found = None;
        follow_to(
            run,
            self.log()?,
            &[halt(&innermost)],
            |_, first_result, paused| {
                let contents = Followed {
                    paused,
                    first_result,
                    instance: innermost.instance,
                    recorded: &recorded,
                };
                let answer = ask(&Inspection {
                    debugger: self,
                    at,
                    calls: &calls,
                    innermost: &innermost,
                    contents: &contents,
                    standing: None,
                });
                found = Some(match recorded.failure() {
                    Some(error) => Err(error.into()),
                    None => answer,
                });
            },
        )?;
        found.context("the run ended before this moment")?
    }

    fn log(&self) -> Result<afterimage_trace::LogReader> {
        Ok(self.session().file().log()?)
    }

    /// Returns the snapshots near a block. Takes snapshots if none is near. Returns `None` if the
    /// recording's own snapshots are at least as near, or if the recording has no snapshots, or has
    /// checkpoints.
    pub(super) fn near(&self, time: u64) -> Result<Option<Rc<Snapshots>>> {
        let Some(coarse) = self
            .run
            .snapshots
            .filter(|_| self.run.checkpoints.is_none())
        else {
            return Ok(None);
        };
        let before = coarse.at(time.saturating_sub(1));
        let before = before.map_or(0, |number| coarse.times()[number]);
        let mut near = self.near.borrow_mut();
        let known = near.before(time).filter(|(known, _)| *known >= before);
        let from = known.map_or(before, |(known, _)| known);
        if time - from <= 2 * EVERY {
            return Ok(known.map(|(_, set)| Rc::clone(set)));
        }
        self.check()?;
        let base = known.map(|(_, set)| Rc::clone(set));
        let run = Run {
            snapshots: base.as_deref().or(Some(coarse)),
            ..self.run
        };
        let mut taken = SnapshotBuilder::new(ROOM);
        let until = time.saturating_add(4 * EVERY).min(self.length());
        take_snapshots_between(run, self.log()?, (time, until), EVERY, &mut taken)?;
        if taken.is_empty() {
            return Ok(base);
        }
        let taken = Rc::new(Snapshots::in_memory(taken));
        if near.0.len() == KEPT {
            near.0.remove(0);
        }
        near.0.push(Rc::clone(&taken));
        Ok(Some(taken))
    }

    /// Finds the arguments of the activation that began at a time.
    fn arguments(&self, run: Run<'_, FileSegments>, entered: u64) -> Result<Option<Box<[Bits]>>> {
        let start = Activation::on_path(self.path(), &self.bodies, entered, None)?;
        let halt = Halt {
            start: start.instance.time,
            instructions: 0,
        };
        let found = follow_standing(run, self.log()?, halt, |standing, _, _| {
            let innermost = standing.open.into_iter().next_back();
            innermost.and_then(|open| open.arguments.filter(|_| open.times.entered == entered))
        })?;
        Ok(found.flatten())
    }

    /// Finds a variable of the activation that executes a block, as of the moment before one of its
    /// operators.
    fn variable_before(
        &self,
        run: Run<'_, FileSegments>,
        time: u64,
        op: OpId,
        variable: u32,
    ) -> Result<Option<Bits>> {
        let activation = Activation::on_path(self.path(), &self.bodies, time, Some(op))?;
        let mut found = None;
        follow_to(
            run,
            self.log()?,
            &[halt(&activation)],
            |_, first_result, paused| {
                let (low, high) = (paused.inside.low, paused.inside.high);
                found = activation.followed(low, high, first_result, variable);
            },
        )?;
        Ok(found)
    }

    /// Follows the run once to several ascending positions. Calls `show` with the index of each
    /// position and the innermost activation there. If `show` requests data that is missing there,
    /// it is called again for this position. Leaves out positions that the run did not reach.
    pub(super) fn at_each(
        &self,
        positions: &[(Visit, Position)],
        mut show: impl FnMut(usize, &Moment<'_, 'a>) -> Result<()>,
    ) -> Result<()> {
        let mut activations = Vec::with_capacity(positions.len());
        for &(visit, at) in positions {
            let moment = (at.time, Some(Self::op(at)));
            activations.push(Activation::on_visit(
                self.path(),
                &self.bodies,
                visit,
                moment,
            )?);
        }
        let halts = Vec::from_iter(activations.iter().map(halt));
        let names = self.program.names;
        let name = |function: FuncId| names.function(function).to_owned();
        let mut lacking = Vec::new();
        let mut failed = None;
        follow_to(
            self.run,
            self.log()?,
            &halts,
            |number, first_result, paused| {
                if failed.is_some() {
                    return;
                }
                let activation = &activations[number];
                let (function, entered) = (activation.function, activation.instance.time);
                let standing = Standing::of(Opened {
                    entered: activation.instance.time,
                    called: activation.time,
                });
                let contents = OnMachine {
                    paused,
                    first_result,
                    standing: &standing,
                    arguments: &|_| None,
                    at_call: &|_, _| None,
                    lacks: Cell::new(false),
                };
                let mut shown = || -> Result<()> {
                    self.check()?;
                    let entry = Activation::beginning(&self.bodies, function, entered)?;
                    let moment = Moment {
                        activation,
                        contents: &contents,
                        entry: Some(&entry),
                        program: self.run.program,
                        name: &name,
                    };
                    show(number, &moment)
                };
                match shown() {
                    Ok(()) if contents.lacks.get() => lacking.push(number),
                    Ok(()) => {}
                    Err(error) => failed = Some(error),
                }
            },
        )?;
        if let Some(error) = failed {
            return Err(error);
        }
        // Only these positions must be inspected from the beginning of their activations.
        for number in lacking {
            self.check()?;
            let show = RefCell::new(&mut show);
            self.inspect(positions[number].1, 1, |inspection| {
                inspection.with(0, |moment, _| show.borrow_mut()(number, moment))
            })?;
        }
        Ok(())
    }

    /// Returns the scopes of a function's variables.
    pub(super) fn scopes(&self, function: FuncId) -> Result<Rc<FunctionScopes>> {
        if let Some(known) = self.scopes.borrow().get(&function) {
            return known.clone().map_err(|why| anyhow!(why));
        }
        let name = |function| self.program.names.function(function).to_owned();
        let found = match &self.variables {
            Ok(variables) => variables.function(function).map(Rc::new),
            Err(error) => Err((*error).clone()),
        };
        let found = found.map_err(|error| error.named(name).to_string());
        self.scopes.borrow_mut().insert(function, found.clone());
        found.map_err(|why| anyhow!(why))
    }
}

/// The limits for listing names without values.
const NAMES: Limits = Limits {
    depth: 0,
    elements: 0,
    string: 0,
    pointers: 0,
    pointed: false,
    parts: 1,
};

/// Returns the number of inlined calls with variables around an operator.
fn inlined_at(
    known: &Variables<'_>,
    scopes: Option<&FunctionScopes>,
    at: afterimage_ids::OrigOffset,
) -> u32 {
    let found = scopes.and_then(|scopes| known.in_scope_of(scopes, at).ok());
    let inlined = found.unwrap_or_default().into_iter().map(|one| one.inlined);
    inlined.max().unwrap_or(0)
}

fn halt(activation: &Activation<'_>) -> Halt {
    Halt {
        start: activation.instance.time,
        instructions: activation.instructions(),
    }
}

impl<'a> Inspection<'_, 'a> {
    /// Returns the position.
    pub fn at(&self) -> Position {
        self.at
    }

    /// Passes an activation to `ask`, with a function that finds the last write to one of its
    /// locals. Activations are counted from 0 for the innermost.
    ///
    /// # Errors
    /// Returns an error if there is no such activation, or `ask` fails.
    pub fn with<T>(
        &self,
        number: usize,
        ask: impl FnOnce(
            &Moment<'_, 'a>,
            &dyn Fn(u32) -> Result<Option<Written>, StateError>,
        ) -> Result<T>,
    ) -> Result<T> {
        let debugger = self.debugger;
        let (values, bodies) = (&debugger.values, &debugger.bodies);
        let call = self.calls.get(number).context("there is no such frame")?;
        let outer;
        let activation = match (number, self.standing) {
            (0, _) => self.innermost,
            (_, Some(standing)) => {
                let depth = standing.open.len().checked_sub(number + 1);
                let waits = depth.and_then(|depth| standing.waiting.get(depth));
                let waits = waits.context("an activation does not wait for a call")?;
                outer = Activation::waiting(bodies, waits.function, waits.block, call.time)?;
                &outer
            }
            (_, None) => {
                outer = Activation::at_call(values, bodies, call.time)?;
                &outer
            }
        };
        let entry = match self.standing {
            Some(_) => Activation::beginning(bodies, call.function, call.entered)?,
            None => Activation::at_block(values, bodies, call.entered)?,
        };
        let names = debugger.program.names;
        let name = |function: FuncId| names.function(function).to_owned();
        let moment = Moment {
            activation,
            contents: self.contents,
            entry: Some(&entry),
            program: debugger.run.program,
            name: &name,
        };
        let written = |local| activation.written(debugger.path(), bodies, local);
        ask(&moment, &written)
    }

    /// Returns the object of an expression such as `p->next` in a frame. The number of an
    /// activation and a number of inlined calls select the frame.
    ///
    /// # Errors
    /// Returns an error if there is no such frame. The inner error says why the expression has no
    /// object there.
    pub fn object(
        &self,
        (number, inlined): (usize, u32),
        path: &Path,
    ) -> Result<Result<Object, String>> {
        let known = match &self.debugger.variables {
            Ok(known) => known,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let function = self.function(number)?;
        let scopes = self.debugger.scopes(function);
        self.with(number, |moment, written| {
            let at = moment.activation.offset;
            // Variables of inlined code are not in scope in the frames around it.
            if inlined_at(known, scopes.as_deref().ok(), at) > inlined {
                let own = objects(known, moment, &NAMES, written)?.unwrap_or_default();
                let is_it = |(shown, _): &&ShownObject| {
                    shown.calls <= inlined && shown.name == path.variable
                };
                if let Some((shown, object)) = own.iter().find(is_it) {
                    let Some(object) = object else {
                        return Ok(Err(shown.value.clone().err().unwrap_or_default()));
                    };
                    let found = known.follow(path, object.clone(), moment);
                    return Ok(found.map_err(|why| why.to_string()));
                }
            }
            let place = scopes.as_ref().ok().map(|scopes| (&**scopes, at));
            let found = known.resolve(path, place, moment);
            Ok(found.map_err(|why| match (&scopes, &why) {
                (Err(error), PathError::NoVariable { .. }) => format!("{error:#}"),
                _ => why.to_string(),
            }))
        })
    }

    /// Returns the value of an expression in an activation as text, or why it has none.
    ///
    /// # Errors
    /// Returns an error if there is no such activation.
    pub fn evaluate(
        &self,
        number: usize,
        expression: &Condition,
    ) -> Result<Result<String, String>> {
        let look = match self.debugger.look(expression, false) {
            Ok(look) => look,
            Err(error) => return Ok(Err(format!("{error:#}"))),
        };
        let scopes = match self.debugger.scopes(self.function(number)?) {
            Ok(scopes) => scopes,
            Err(error) => return Ok(Err(format!("{error:#}"))),
        };
        self.with(number, |moment, _| Ok(look.result(moment, &scopes)))
    }

    /// Returns the source variables of an activation, innermost scope first, or why there are none.
    /// A variable with a place comes with its object.
    ///
    /// # Errors
    /// Returns an error if there is no such activation, or the run cannot be followed.
    pub fn variables(
        &self,
        number: usize,
        limits: &Limits,
    ) -> Result<Result<Vec<ShownObject>, String>> {
        let known = match &self.debugger.variables {
            Ok(known) => known,
            Err(error) => return Ok(Err(error.to_string())),
        };
        self.with(number, |moment, written| {
            let found = objects(known, moment, limits, written)?;
            Ok(found.map_err(|error| error.to_string()))
        })
    }

    /// Returns the global variables of the source, up to `most`, and their total number.
    ///
    /// # Errors
    /// Returns an error if the debug information is broken.
    pub fn globals(&self, limits: &Limits, most: usize) -> Result<(Vec<ShownObject>, usize)> {
        let known = match &self.debugger.variables {
            Ok(known) => known,
            Err(_) => return Ok((Vec::new(), 0)),
        };
        self.with(0, |moment, _| {
            Ok(global_objects(known, moment, limits, most)?)
        })
    }

    /// Returns the WebAssembly locals of an activation: index, name, type, and value if known.
    ///
    /// # Errors
    /// Returns an error if there is no such activation.
    pub fn locals(&self, number: usize) -> Result<Vec<super::Local>> {
        let names = self.debugger.program.names;
        self.with(number, |moment, _| {
            let program = self.debugger.run.program;
            let all = afterimage_replay::state::locals(program, moment.activation, self.contents);
            let named = |index| names.local(moment.activation.function, index);
            let all = (0..)
                .zip(all)
                .map(|(index, (ty, parameter, value))| super::Local {
                    index,
                    name: named(index).map(str::to_owned),
                    ty,
                    parameter,
                    value,
                });
            Ok(all.collect())
        })
    }

    /// Returns the module's globals with their types and, if known, their values.
    pub fn module_globals(&self) -> Vec<super::Local> {
        let program = self.debugger.run.program;
        let all = afterimage_replay::state::wasm_globals(program, self.contents);
        let all = (0..).zip(all).map(|(index, (ty, value))| super::Local {
            index,
            name: None,
            ty,
            parameter: false,
            value,
        });
        all.collect()
    }

    /// Reads `count` bytes of memory 0 from an address on, or fewer if memory ends earlier.
    pub fn memory(&self, address: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        if self.contents.memory(address, &mut bytes) {
            return bytes;
        }
        // Memory ends before the last requested byte, so search for its end.
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = high - (high - low) / 2;
            if self.contents.memory(address, &mut bytes[..middle]) {
                low = middle
            } else {
                high = middle - 1
            }
        }
        bytes.truncate(low);
        let _ = self.contents.memory(address, &mut bytes);
        bytes
    }

    /// Returns the function of an activation.
    ///
    /// # Errors
    /// Returns an error if there is no such activation.
    pub fn function(&self, number: usize) -> Result<FuncId> {
        let call = self.calls.get(number).context("there is no such frame")?;
        Ok(call.function)
    }
}
