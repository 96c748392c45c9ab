//! Iterates over the steps of a run.

use std::collections::VecDeque;
use std::rc::Rc;

use afterimage_ids::{EntityRef, FuncId, NodeId, OpId};
use afterimage_machine::{Inside, Range};
use afterimage_trace::LogReader;
use afterimage_wpp::{Segments, Visit};

use super::collect::{Collecting, Collector, Passing};
use super::follow::{Follower, Run};
use super::plan::Plan;
use super::{Step, StepsError};
use crate::values::Types;
use crate::whole_path::{At, Visits, Window};

/// The kinds of steps to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Every statement, calls by the host, and actions of the host.
    Statement,
    /// Operators that read or write memory.
    Memory,
}

/// The wanted parts of a window's first and last blocks. By default, these are the whole blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Within {
    /// In the block at this time, only this operator and later operators.
    pub from: Option<(u64, OpId)>,
    /// In the block at this time, only this operator and earlier operators.
    pub to: Option<(u64, OpId)>,
}

impl Within {
    /// Returns the parts from one moment to another, including both. Each moment is an operator or
    /// a whole block.
    pub fn between(from: At, to: At) -> Self {
        let edge = |at: At| Some((at.time, at.op?));
        Self {
            from: edge(from),
            to: edge(to),
        }
    }

    /// Whether a step at a place in a block is wanted. The place `None` comes before all operators.
    pub(super) fn has(&self, time: u64, place: Option<OpId>) -> bool {
        let is_early = |from: (u64, OpId)| time == from.0 && place < Some(from.1);
        let is_late = |to: (u64, OpId)| time == to.0 && place > Some(to.1);
        !self.from.is_some_and(is_early) && !self.to.is_some_and(is_late)
    }
}

/// The steps to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The wanted kinds of steps.
    pub level: Level,
    /// The window in which steps are wanted.
    pub window: Window,
    /// The wanted parts of the window's first and last blocks.
    pub within: Within,
    /// Only steps in this function's code.
    pub function: Option<FuncId>,
    /// Only steps that read or write some of these bytes. Used with [`Level::Memory`].
    pub range: Option<Range>,
}

impl Wanted {
    /// Every statement of the whole run.
    pub const ALL: Self = Self {
        level: Level::Statement,
        window: Window {
            first: 1,
            last: u64::MAX,
        },
        within: Within {
            from: None,
            to: None,
        },
        function: None,
        range: None,
    };
}

/// The plans of nodes. Each plan is created when its node is first executed.
pub struct Plans<'a, S: Segments> {
    run: Run<'a, S>,
    types: Types<'a>,
    plans: Vec<Option<Rc<Plan>>>,
}

impl<'a, S: Segments> Plans<'a, S>
where
    S::Error: std::error::Error + 'static,
{
    /// Creates an empty set of plans.
    pub fn new(run: Run<'a, S>) -> Self {
        Self {
            types: Types::new(run.program, run.module),
            plans: vec![None; run.path.nodes().len()],
            run,
        }
    }

    /// Returns the plan of a node.
    ///
    /// # Errors
    /// Returns an error if the node's code cannot be read.
    pub fn of(
        &mut self,
        node: NodeId,
        follower: &Follower<'a, S>,
    ) -> Result<Rc<Plan>, StepsError<S::Error>> {
        if let Some(Some(plan)) = self.plans.get(node.index()) {
            return Ok(Rc::clone(plan));
        }
        let known = &self.run.path.nodes()[node];
        let ssa = self.types.statements(known.function);
        let ssa = ssa.ok_or(StepsError::NoBody(known.function))?;
        let code = &follower.machine.codes()[node];
        let plan = Rc::new(Plan::new(self.run.program, &ssa, known, code)?);
        self.plans[node.index()] = Some(Rc::clone(&plan));
        Ok(plan)
    }
}

/// Iterates over the steps of a run, in order.
///
/// To reach the first requested step, the run is followed from its beginning or from a checkpoint.
/// The run is not followed beyond the end of the window.
pub struct Steps<'a, S: Segments> {
    run: Run<'a, S>,
    /// The follower of the run.
    pub follower: Follower<'a, S>,
    plans: Plans<'a, S>,
    collector: Collector<'a>,
    ended: bool,
}

impl<'a, S: Segments> Steps<'a, S>
where
    S::Error: std::error::Error + 'static,
{
    /// Creates an iterator over the requested steps of a run with this log.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed.
    pub fn new(
        run: Run<'a, S>,
        log: LogReader,
        wanted: Wanted,
    ) -> Result<Self, StepsError<S::Error>> {
        let mut steps = Self::before(run, log, wanted)?;
        steps.follower.skip_to(wanted.window.first)?;
        Ok(steps)
    }

    /// Like [`new`](Self::new), but begins at the start of the run.
    pub fn before(
        run: Run<'a, S>,
        log: LogReader,
        wanted: Wanted,
    ) -> Result<Self, StepsError<S::Error>> {
        Ok(Self {
            follower: Follower::new(run, log)?,
            plans: Plans::new(run),
            collector: Collector::new(run.program, wanted),
            run,
            ended: false,
        })
    }

    /// Returns the next step, or `None` at the end.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed further.
    #[expect(
        clippy::should_implement_trait,
        reason = "it can fail, and ends when it does"
    )]
    pub fn next(&mut self) -> Result<Option<Step>, StepsError<S::Error>> {
        loop {
            if let Some(step) = self.collector.steps.pop_front() {
                return Ok(Some(step));
            }
            if self.ended {
                return Ok(None);
            }
            let next = self.follower.advance()?;
            let window = self.collector.wanted.window;
            let Some(visit) = next.filter(|visit| visit.start <= window.last) else {
                self.ended = true;
                continue;
            };
            self.execute(visit)?;
        }
    }

    /// Executes a node and collects its steps.
    pub fn execute(&mut self, visit: Visit) -> Result<(), StepsError<S::Error>> {
        let wanted = &self.collector.wanted;
        let level = wanted.level;
        let function = self.run.path.nodes()[visit.node].function;
        let other = wanted.function.is_some_and(|wanted| wanted != function);
        if visit.last() < wanted.window.first || other && level == Level::Memory {
            return self.follower.execute(visit, &mut ());
        }
        if other {
            let mut passing = Passing::new(&mut self.collector, visit.last());
            return self.follower.execute(visit, &mut passing);
        }
        let plan = self.plans.of(visit.node, &self.follower)?;
        let stopped = self.follower.stopped(visit);
        // A trap at the end of the run shows the attempted access.
        let needs_registers =
            level == Level::Statement || plan.fills || visit.last() == self.run.path.length();
        self.collector.begin(plan, function, visit.start, stopped);
        let of = &mut self.collector;
        if needs_registers {
            self.follower.execute(visit, &mut Collecting::<true>(of))?;
        } else {
            self.follower.execute(visit, &mut Collecting::<false>(of))?;
        }
        if let Some(trap) = self.follower.machine.trap() {
            self.collector.trapped(trap);
        }
        Ok(())
    }

    /// Executes a node and collects its steps. Also shows the state at a moment in the node, if the
    /// run reaches the moment.
    pub(super) fn execute_until(
        &mut self,
        visit: Visit,
        moment: At,
        mut show: impl FnMut(&Inside<'_>),
    ) -> Result<(), StepsError<S::Error>> {
        let function = self.run.path.nodes()[visit.node].function;
        let plan = self.plans.of(visit.node, &self.follower)?;
        let block = moment.time.saturating_sub(visit.start);
        let pause = plan.instructions_before(block, moment.op);
        let stopped = self.follower.stopped(visit);
        self.collector.begin(plan, function, visit.start, stopped);
        let observer = &mut Collecting::<true>(&mut self.collector);
        self.follower
            .execute_pausing(visit, observer, &[pause], |_, paused| show(paused.inside))?;
        if let Some(trap) = self.follower.machine.trap() {
            self.collector.trapped(trap);
        }
        Ok(())
    }

    /// Removes and returns the collected steps.
    pub fn taken(&mut self) -> impl Iterator<Item = Step> + use<'_, 'a, S> {
        self.collector.steps.drain(..)
    }

    /// Returns the statements of a node.
    pub(super) fn plan(&mut self, node: NodeId) -> Result<Rc<Plan>, StepsError<S::Error>> {
        self.follower.compile(node)?;
        self.plans.of(node, &self.follower)
    }

    /// Changes the steps that are wanted from this point on.
    pub(super) fn want(&mut self, wanted: Wanted) {
        self.collector.wanted = wanted;
    }
}

/// Returns the last `count` requested steps, in order. All of them are in memory at once.
///
/// The run before these steps is followed without collecting steps, because the number of
/// statements in each node is known beforehand. This number does not include actions of the host,
/// or accesses to no bytes. The request must not name a range of bytes.
///
/// # Errors
/// Returns an error if the run cannot be followed.
pub fn last_steps<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    wanted: Wanted,
    count: usize,
) -> Result<VecDeque<Step>, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let mut steps = Steps::before(run, log, wanted)?;
    let first = begin_of_last(run, &mut steps, wanted, count)?;
    steps.follower.skip_to(first)?;
    let window = Window {
        first,
        ..wanted.window
    };
    steps.want(Wanted { window, ..wanted });
    let mut kept = VecDeque::new();
    while let Some(step) = steps.next()? {
        if kept.len() == count {
            kept.pop_front();
        }
        kept.push_back(step);
    }
    Ok(kept)
}

/// Iterates over the steps of a run backward. Among steps with the same time, the last comes first.
///
/// Each stretch of the run is followed from the last checkpoint before it, and its steps are stored
/// and reversed. The first stretches have few statements, and later stretches have up to 2¹⁸.
/// Without checkpoints, the run is followed from its beginning for each stretch.
pub struct ReverseSteps<'a, S: Segments, L> {
    run: Run<'a, S>,
    /// Opens the run's log again.
    log: L,
    wanted: Wanted,
    /// Finds the beginnings of stretches.
    planned: Steps<'a, S>,
    /// The number of steps that the next stretch should have.
    size: usize,
    /// The remaining steps of the current stretch.
    found: Vec<Step>,
    /// The time of the next stretch's last block, or `None` if there is no next stretch.
    last: Option<u64>,
}

/// The number of steps in the first stretch. `MOST` is the largest number of steps in a stretch.
const FIRST: usize = 1 << 8;
const MOST: usize = 1 << 18;

impl<'a, S: Segments, L> ReverseSteps<'a, S, L>
where
    S::Error: std::error::Error + 'static,
    L: FnMut() -> Result<LogReader, StepsError<S::Error>>,
{
    /// Creates an iterator over the requested steps of a run. Each call to `log` opens the run's
    /// log at its beginning.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed.
    pub fn new(run: Run<'a, S>, mut log: L, wanted: Wanted) -> Result<Self, StepsError<S::Error>> {
        let window = wanted.window;
        Ok(Self {
            planned: Steps::before(run, log()?, wanted)?,
            run,
            log,
            wanted,
            size: FIRST,
            found: Vec::new(),
            last: (window.first <= window.last).then_some(window.last),
        })
    }

    /// Returns the previous step, or `None` at the beginning.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed.
    #[expect(
        clippy::should_implement_trait,
        reason = "it can fail, and ends when it does"
    )]
    pub fn next(&mut self) -> Result<Option<Step>, StepsError<S::Error>> {
        loop {
            if let Some(step) = self.found.pop() {
                return Ok(Some(step));
            }
            let Some(last) = self.last.take() else {
                return Ok(None);
            };
            let window = Window {
                last,
                ..self.wanted.window
            };
            let wanted = Wanted {
                window,
                ..self.wanted
            };
            let first = begin_of_last(self.run, &mut self.planned, wanted, self.size)?;
            self.size = (self.size * 2).min(MOST);
            let window = Window { first, last };
            let wanted = Wanted { window, ..wanted };
            let mut steps = Steps::new(self.run, (self.log)()?, wanted)?;
            while let Some(step) = steps.next()? {
                self.found.push(step);
            }
            self.last = (first > self.wanted.window.first).then(|| first - 1);
        }
    }
}

/// Returns a time after which there are at least `count` steps in the window, or the window's
/// beginning.
fn begin_of_last<'a, S: Segments>(
    run: Run<'a, S>,
    steps: &mut Steps<'a, S>,
    wanted: Wanted,
    count: usize,
) -> Result<u64, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let mut visits =
        Visits::new(run.path, wanted.window, true, None).map_err(|_| StepsError::TooLong)?;
    let mut missing = count as u64;
    while let Some(visit) = visits.next_visit()? {
        let function = run.path.nodes()[visit.node].function;
        if wanted.function.is_some_and(|wanted| wanted != function) {
            continue;
        }
        // The last node may not have reached its end.
        if visit.last() == run.path.length() {
            continue;
        }
        steps.follower.compile(visit.node)?;
        let plan = steps.plans.of(visit.node, &steps.follower)?;
        let mut part = wanted.window.part(visit);
        // If only a part of the last block is wanted, the block's steps are not counted, so that
        // there are enough steps.
        let is_cut = |to: (u64, OpId)| visit.start + part.end == to.0 + 1;
        part.end -= u64::from(wanted.within.to.is_some_and(is_cut) && !part.is_empty());
        let found = plan.count(part, wanted.level);
        missing = missing.saturating_sub(found);
        if missing == 0 {
            return Ok(visit.start.max(wanted.window.first));
        }
    }
    Ok(wanted.window.first)
}
