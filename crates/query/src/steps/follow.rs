//! Taking the machine along a run's path.

use afterimage_ids::EntityRef;
use afterimage_machine::{Machine, Observer, StoppedBefore};
use afterimage_program::Program;
use afterimage_trace::LogReader;
use afterimage_wpp::{Continuation, Cursor, Segments, Visit, WholePath};

use super::StepsError;

/// After how many nodes it is told how far it has come.
const TELL: u32 = 1 << 14;

/// A run that can be followed.
pub struct Run<'a, S: Segments> {
    /// The program.
    pub program: &'a Program,
    /// The module that it was parsed from.
    pub module: &'a [u8],
    /// Its path.
    pub path: &'a WholePath<S>,
    /// Where its nodes go on.
    pub continuations: &'a [Continuation],
    /// Where it was stopped from outside, if it was.
    pub stopped: Option<StoppedBefore>,
    /// Is told now and then how many blocks were executed.
    pub progress: &'a dyn Fn(u64),
}

// Derived, they would ask the same of `S`.
impl<S: Segments> Clone for Run<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Segments> Copy for Run<'_, S> {}

/// The machine on its way.
pub(super) struct Follower<'a, S: Segments> {
    pub machine: Machine<'a>,
    run: Run<'a, S>,
    cursor: Cursor<'a, S>,
    lengths: Vec<u64>,
    nodes: u32,
}

impl<'a, S: Segments> Follower<'a, S>
where
    S::Error: std::error::Error + 'static,
{
    /// At the beginning of the run. O(operators on the paths of its nodes).
    pub fn new(run: Run<'a, S>, log: LogReader) -> Result<Self, StepsError<S::Error>> {
        let nodes = run.path.nodes();
        if nodes.values().any(|node| node.left_out > 0) {
            return Err(StepsError::Partial);
        }
        let mut machine = Machine::new(run.program, run.module, log)?;
        for (node, continuation) in nodes.values().zip(run.continuations) {
            machine.define(node.function, &node.blocks, continuation.next)?;
        }
        Ok(Self {
            machine,
            cursor: run.path.cursor(),
            lengths: nodes.values().map(|node| node.length()).collect(),
            run,
            nodes: 0,
        })
    }

    /// The next node, which [`execute`](Self::execute) is then to be told; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Visit>, StepsError<S::Error>> {
        self.nodes += 1;
        if self.nodes == TELL {
            self.nodes = 0;
            (self.run.progress)(self.machine.time());
        }
        Ok(self.cursor.next()?)
    }

    /// Where the run was stopped from outside, if that was in this node.
    pub fn stopped(&self, visit: Visit) -> Option<StoppedBefore> {
        let last = visit.last() == self.run.path.length();
        self.run.stopped.filter(|_| last)
    }

    /// Executes a node.
    #[inline]
    pub fn execute<O: Observer>(
        &mut self,
        visit: Visit,
        observer: &mut O,
    ) -> Result<(), StepsError<S::Error>> {
        let length = self.lengths[visit.node.index()];
        match self.stopped(visit) {
            None => self.machine.step(visit.node, length, observer)?,
            Some(stopped) => self
                .machine
                .step_before(visit.node, length, stopped, observer)?,
        }
        Ok(())
    }
}
