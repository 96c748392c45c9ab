//! Finds the values in all open activations at a moment, by following the run from a snapshot. This
//! needs no stored values, and works on a single stretch of the path.

use std::cell::Cell;
use std::error::Error;

use afterimage_machine::{Inside, MachineError, Waits};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;

use super::activation::Stands;
use super::{Activation, Call, Contents, Halt};
use crate::steps::{Follower, Open, OpenActivations, Opened, Paused, Run, StepsError};
use crate::values::Bits;

/// The open activations at a moment.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The time at which each activation began, and its arguments, the outermost first.
    pub open: Vec<Open>,
    /// The values in the activations that wait for a call, which are all activations except the
    /// last. The outermost comes first.
    pub waiting: Vec<Waits>,
}

impl Standing {
    /// Creates a stack with a single activation, whose arguments are unknown.
    pub fn of(times: Opened) -> Self {
        Self {
            open: vec![Open {
                times,
                arguments: None,
            }],
            waiting: Vec::new(),
        }
    }

    /// Returns the innermost `most` activations, innermost first. `innermost` is the activation at
    /// the moment.
    pub fn calls(&self, innermost: &Activation<'_>, most: usize) -> Vec<Call> {
        let waiting = self.waiting.iter().map(|waits| waits.function);
        let functions = waiting.chain([innermost.function]);
        let last = self.open.len().saturating_sub(1);
        let all = self.open.iter().zip(functions).enumerate();
        let calls = all.map(|(depth, (open, function))| Call {
            function,
            entered: open.times.entered,
            time: if depth == last {
                innermost.time
            } else {
                open.times.called
            },
        });
        let mut calls = Vec::from_iter(calls);
        calls.reverse();
        calls.truncate(most);
        calls
    }
}

/// Follows a run to a moment, from the last snapshot before it or from the beginning. Passes the
/// open activations, the first result register of the node, and the contents to `show`. Returns
/// `None` if the snapshot lacks the times at which its activations began, or if the run ended
/// before the moment.
///
/// # Errors
/// Returns an error if the path, the log and the program disagree, the path has gaps, or the
/// snapshots are damaged.
pub fn follow_standing<S: Segments + Sync, T>(
    run: Run<'_, S>,
    log: LogReader,
    halt: Halt,
    show: impl FnOnce(Standing, u32, &Paused<'_>) -> T,
) -> Result<Option<T>, StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let mut follower = Follower::new(run, log)?;
    let before = halt.start.saturating_sub(1);
    let snapshot = run
        .snapshots
        .and_then(|known| Some((known, known.at(before)?)));
    let mut open = match snapshot {
        Some((snapshots, number)) => {
            let restored = follower.go_to_snapshot(snapshots, number)?;
            let Some(open) = OpenActivations::at(restored) else {
                return Ok(None);
            };
            open
        }
        None => OpenActivations::default(),
    };
    let now = follower.machine.time();
    run.path.read_ahead(now + 1, before, || {
        while follower.machine.time() < before
            && let Some(visit) = follower.advance()?
        {
            open.next(visit);
            follower.execute(visit, &mut open)?;
        }
        Ok::<_, StepsError<S::Error>>(())
    })?;
    if let Some(visit) = follower.advance()? {
        open.next(visit);
        let waiting = follower.machine.waiting();
        let waiting = waiting.ok_or(MachineError::Checkpoint)?;
        let first_result = follower.machine.codes()[visit.node].first_result();
        let function = run.path.nodes()[visit.node].function;
        let ty = run.program.function(function).map(|known| known.ty);
        let ty = ty.and_then(|ty| run.program.types.get(ty));
        let parameters = ty.map_or(0, |ty| ty.params.len());
        let begins = follower.machine.begins_activation();
        if begins {
            open.begin();
        }
        let open = open.open;
        let (mut shown, mut show) = (None, Some((show, Standing { open, waiting })));
        follower.execute_pausing(visit, &mut (), &[halt.instructions], |_, paused| {
            if let Some((show, mut standing)) = show.take() {
                if let Some(open) = standing.open.last_mut().filter(|_| begins) {
                    // If the host made the call, its arguments are known only at this point.
                    open.arguments = Some(variables(paused.inside, parameters));
                }
                shown = Some(show(standing, first_result, paused));
            }
        })?;
        return Ok(shown);
    }
    Ok(None)
}

/// Returns the values of a node's first variables at its beginning.
fn variables(inside: &Inside<'_>, count: usize) -> Box<[Bits]> {
    let high = inside.high.iter().copied().chain(std::iter::repeat(0));
    inside.low.iter().copied().zip(high).take(count).collect()
}

/// Contents of all open activations from the machine, which has followed the run to the moment.
pub struct OnMachine<'m> {
    /// The state of the machine.
    pub paused: &'m Paused<'m>,
    /// The first result register of the node.
    pub first_result: u32,
    /// The open activations.
    pub standing: &'m Standing,
    /// Returns the arguments of an activation that began before the followed part of the run.
    pub arguments: &'m dyn Fn(u64) -> Option<Box<[Bits]>>,
    /// Returns a variable of an activation that waits for a call, at the time of the call.
    pub at_call: &'m dyn Fn(&Activation<'_>, u32) -> Option<Bits>,
    /// Whether a value was requested that these contents lack.
    pub lacks: Cell<bool>,
}

impl OnMachine<'_> {
    /// Returns the arguments of an activation.
    fn arguments(&self, open: &Open) -> Option<Box<[Bits]>> {
        match &open.arguments {
            Some(given) => Some(given.clone()),
            None => (self.arguments)(open.times.entered),
        }
    }

    fn of(&self, activation: &Activation<'_>, variable: u32) -> Option<Bits> {
        match activation.stands {
            Stands::Executes => {
                let inside = self.paused.inside;
                activation.followed(inside.low, inside.high, self.first_result, variable)
            }
            Stands::Waits => {
                let mut open = self.standing.open.iter();
                let depth = open.position(|open| open.times.called == activation.time)?;
                let waits = &self.standing.waiting.get(depth)?.variables;
                let Some(above) = (variable as usize).checked_sub(waits.len()) else {
                    return waits.get(variable as usize).copied();
                };
                // The arguments of the call are the arguments of the callee's activation, unless a
                // tail call replaced it.
                let callee = self.standing.open.get(depth + 1)?;
                let is_it = callee.times.entered == activation.time + 1;
                let given = is_it.then(|| self.arguments(callee)).flatten();
                let given = given.and_then(|given| given.get(above).copied());
                // These are other operands of the call, such as the table index that
                // `call_indirect` took.
                given.or_else(|| (self.at_call)(activation, variable))
            }
            Stands::Begins => {
                let mut open = self.standing.open.iter();
                let open = open.find(|open| open.times.entered == activation.time)?;
                let given = self.arguments(open)?;
                // All other locals are zero, and no slot is in use.
                let is_local = (variable as usize) < activation.locals().len();
                let given = given.get(variable as usize).copied();
                is_local.then(|| given.unwrap_or((0, 0)))
            }
        }
    }
}

impl Contents for OnMachine<'_> {
    fn variable(&self, activation: &Activation<'_>, variable: u32) -> Option<Bits> {
        let found = self.of(activation, variable);
        if found.is_none() {
            self.lacks.set(true);
        }
        found.map(|(low, high)| {
            if activation.is_vector(variable) {
                (low, high)
            } else {
                (low, 0)
            }
        })
    }

    fn global(&self, index: u32) -> Option<Bits> {
        let globals = &self.paused.inside.state.globals;
        globals.get(index as usize).copied()
    }

    fn element(&self, index: u64) -> Option<u64> {
        let table = self.paused.inside.state.tables.first()?;
        table.elements.get(usize::try_from(index).ok()?).copied()
    }

    fn memory(&self, address: u64, into: &mut [u8]) -> bool {
        // The machine has the whole memory, so no checkpoint is needed.
        let read = self.paused.memory(0, address, into);
        read.unwrap_or_else(|_| {
            self.lacks.set(true);
            false
        })
    }
}
