//! Follows a run along its path on the machine.

use std::ops::Range;

use afterimage_ids::{EntityRef, NodeId};
use afterimage_machine::{
    Checkpoint, Inside, Machine, MachineError, Observer, Restored, SnapshotError, Snapshots, State,
    StoppedBefore,
};
use afterimage_program::Program;
use afterimage_trace::{LogReader, TraceFile};
use afterimage_wet::checkpoint::{CheckpointError, FileCheckpoints, Image};
use afterimage_wet::fingerprint;
use afterimage_wpp::{Continuation, Cursor, Segments, Visit, WholePath};

use super::StepsError;
use crate::whole_path::RecordedPath;

/// The number of nodes between two reports of progress.
const TELL: u32 = 1 << 14;

/// A run that can be followed.
pub struct Run<'a, S: Segments> {
    /// The program that was run.
    pub program: &'a Program,
    /// The bytes of the program's module.
    pub module: &'a [u8],
    /// The path of the run.
    pub path: &'a WholePath<S>,
    /// The continuations of the path's nodes.
    pub continuations: &'a [Continuation],
    /// The place where the run was stopped from outside, or `None` if the run ended in another way.
    pub stopped: Option<StoppedBefore>,
    /// The checkpoints from which the run can be followed, or `None` if there are no checkpoints.
    pub checkpoints: Option<&'a FileCheckpoints>,
    /// The snapshots of the run, or `None` if there are no snapshots. The run can be followed from
    /// each snapshot, even along a path that lacks the part before it.
    pub snapshots: Option<&'a Snapshots>,
    /// Receives the number of executed blocks from time to time.
    pub progress: &'a dyn Fn(u64),
}

// A derived implementation would also require `S: Clone`.
impl<S: Segments> Clone for Run<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Segments> Copy for Run<'_, S> {}

/// Returns the checkpoints from which the run of a file can be followed, or `None` if there are
/// none.
///
/// # Errors
/// Returns an error if the checkpoints are damaged.
pub fn recorded_checkpoints(
    file: &TraceFile,
    path: &RecordedPath,
) -> Result<Option<FileCheckpoints>, CheckpointError> {
    let continuations = &path.segments().directory().continuations;
    FileCheckpoints::open(file, fingerprint(path.nodes(), continuations))
}

/// The state inside a node.
#[derive(Clone, Copy, Debug)]
pub struct Paused<'p> {
    /// The registers, globals and tables, and the parts of memories that the run still needs.
    pub inside: &'p Inside<'p>,
    image: Option<&'p Image<'p>>,
}

impl Paused<'_> {
    /// Reads bytes of a memory. Fetches them from the checkpoint on demand. Returns `false` if some
    /// of the bytes do not exist.
    ///
    /// # Errors
    /// Returns an error if the checkpoints are damaged.
    pub fn memory(
        &self,
        memory: u32,
        address: u64,
        into: &mut [u8],
    ) -> Result<bool, CheckpointError> {
        let state = self.inside.state;
        if let Some(image) = self.image {
            return image.read(memory, address, into, state);
        }
        let known = state.memories.get(memory as usize);
        let range = known.and_then(|known| {
            let range = known.range(address, into.len() as u64).ok()?;
            known.bytes.get(range)
        });
        if let Some(bytes) = range {
            into.copy_from_slice(bytes);
        }
        Ok(range.is_some())
    }
}

/// Returns the size of a memory in bytes, at the end of the node that is executed at `time`.
/// Memories only grow. Follows the run from the last checkpoint before that time.
///
/// # Errors
/// Returns an error if there is no such memory, or the run cannot be followed.
pub fn memory_size<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    memory: u32,
    time: u64,
) -> Result<u64, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let mut follower = Follower::new(run, log)?;
    follower.skip_to(time)?;
    while follower.machine.time() < time
        && let Some(visit) = follower.advance()?
    {
        follower.execute(visit, &mut ())?;
    }
    let memories = &follower.machine.state.memories;
    let count = memories.len();
    let known = memories.get(memory as usize);
    let known = known.ok_or(StepsError::NoMemory { memory, count })?;
    Ok(known.bytes.len() as u64)
}

/// Follows a run to its end, from the last checkpoint or, without checkpoints, from the beginning.
/// Passes the globals, tables and memories to `show`. There are no registers at the end.
///
/// # Errors
/// Returns an error if the run cannot be followed.
pub fn follow_to_end<S: Segments, T>(
    run: Run<'_, S>,
    log: LogReader,
    show: impl FnOnce(&Paused<'_>) -> T,
) -> Result<T, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let mut follower = Follower::new(run, log)?;
    follower.skip_to(run.path.length().saturating_add(1))?;
    while let Some(visit) = follower.advance()? {
        follower.execute(visit, &mut ())?;
    }
    let inside = Inside {
        low: &[],
        high: &[],
        state: &follower.machine.state,
    };
    Ok(show(&Paused {
        inside: &inside,
        image: follower.image.as_ref(),
    }))
}

/// The machine while it follows a run.
pub struct Follower<'a, S: Segments> {
    /// The machine, after its last executed node.
    pub machine: Machine<'a>,
    run: Run<'a, S>,
    cursor: Cursor<'a, S>,
    lengths: Vec<u64>,
    /// The state at the beginning of the run.
    start: Checkpoint,
    /// The memory restored from checkpoints, if the follower began at a checkpoint.
    image: Option<Image<'a>>,
    nodes: u32,
}

impl<'a, S: Segments> Follower<'a, S>
where
    S::Error: std::error::Error + 'static,
{
    /// Creates a follower at the start of the run. If there are snapshots, the path may lack parts
    /// that will not be executed.
    pub fn new(run: Run<'a, S>, log: LogReader) -> Result<Self, StepsError<S::Error>> {
        let nodes = run.path.nodes();
        if run.snapshots.is_none() && nodes.values().any(|node| node.left_out > 0) {
            return Err(StepsError::Partial);
        }
        let mut machine = Machine::new(run.program, run.module, log)?;
        machine.expect(nodes.len());
        let start = machine.checkpoint();
        Ok(Self {
            start: start.ok_or(MachineError::Checkpoint)?,
            machine,
            cursor: run.path.cursor(),
            lengths: nodes.values().map(|node| node.length()).collect(),
            run,
            image: None,
            nodes: 0,
        })
    }

    /// Goes forward to the last checkpoint or snapshot before a block. Does nothing if the follower
    /// is already near that place or past it. The follower must not have executed the block yet.
    pub fn skip_to(&mut self, time: u64) -> Result<(), StepsError<S::Error>> {
        if let Some(snapshots) = self.run.snapshots
            && let Some(number) = time.checked_sub(1).and_then(|before| snapshots.at(before))
            && snapshots.times()[number] > self.machine.time()
        {
            self.go_to_snapshot(snapshots, number)?;
        }
        let Some(checkpoints) = self.run.checkpoints else {
            return Ok(());
        };
        if self.image.as_ref().is_some_and(|image| image.has(time)) {
            return Ok(());
        }
        let interval = match checkpoints.interval_at(time)? {
            Some(interval) => interval,
            None => checkpoints.intervals().saturating_sub(1),
        };
        let (before, _) = checkpoints.times(interval)?;
        // Following the run through one interval takes no longer than restoring the memory for the
        // next interval.
        let here = checkpoints.interval_at(self.machine.time().saturating_add(1))?;
        let is_near = here.is_some_and(|here| interval <= here + 1) && self.machine.time() > 0;
        if before > self.machine.time() && !is_near {
            self.go_to(checkpoints, interval)?;
        }
        Ok(())
    }

    /// Goes to the beginning of an interval.
    pub fn go_to(
        &mut self,
        checkpoints: &'a FileCheckpoints,
        interval: u64,
    ) -> Result<(), StepsError<S::Error>> {
        self.go_through(checkpoints, interval..interval + 1)
    }

    /// Goes to the beginning of the first of several consecutive intervals. Restores the memory for
    /// all of them at once.
    pub fn go_through(
        &mut self,
        checkpoints: &'a FileCheckpoints,
        intervals: Range<u64>,
    ) -> Result<(), StepsError<S::Error>> {
        let checkpoint = match checkpoints.checkpoint(intervals.start)? {
            Some(checkpoint) => checkpoint,
            None => self.start.clone(),
        };
        for node in checkpoint.nodes() {
            self.compile(node)?;
        }
        let machine = &self.machine;
        let image = match self.image.take() {
            Some(image) => image,
            None if machine.time() == 0 => {
                Image::new(checkpoints, &machine.state.memories, machine.initial())
            }
            None => {
                let (first, initial) = State::of_module(self.run.program, self.run.module)?;
                Image::new(checkpoints, &first.memories, &initial)
            }
        };
        let image = self.image.insert(image);
        image.restore(&mut self.machine, &checkpoint, intervals)?;
        if self.seek(checkpoint.time())? {
            Ok(())
        } else {
            Err(CheckpointError::Damaged("a checkpoint inside a node").into())
        }
    }

    /// Goes to a snapshot, and restores all memory.
    pub fn go_to_snapshot(
        &mut self,
        snapshots: &Snapshots,
        number: usize,
    ) -> Result<Restored, StepsError<S::Error>> {
        let restored = snapshots.restore(&mut self.machine, number)?;
        self.image = None;
        if self.seek(self.machine.time())? {
            Ok(restored)
        } else {
            Err(SnapshotError::Damaged("a snapshot is inside a node").into())
        }
    }

    /// Makes the node that begins after `time` blocks the next node. Returns whether a node begins
    /// there.
    fn seek(&mut self, time: u64) -> Result<bool, StepsError<S::Error>> {
        let visit = self.cursor.seek(time)?;
        let nodes = self.run.path.nodes();
        match visit {
            Some(visit) if visit.last() == time => Ok(true),
            Some(visit) if nodes[visit.node].left_out > 0 => Err(StepsError::Partial),
            Some(_) => Ok(false),
            None => Ok(time == 0),
        }
    }

    /// Compiles a node, unless it has been compiled before.
    #[inline]
    pub fn compile(&mut self, node: NodeId) -> Result<(), StepsError<S::Error>> {
        if self.machine.is_compiled(node) {
            return Ok(());
        }
        let nodes = self.run.path.nodes();
        let known = nodes
            .get(node)
            .zip(self.run.continuations.get(node.index()));
        let damaged = CheckpointError::Damaged("a node that is not in the path");
        let (known, continuation) = known.ok_or(damaged)?;
        if known.left_out > 0 {
            return Err(StepsError::Partial);
        }
        let (function, blocks) = (known.function, &known.blocks);
        self.machine
            .compile(node, function, blocks, continuation.next)?;
        Ok(())
    }

    /// Returns the next node, to be passed to [`execute`](Self::execute), or `None` at the end.
    pub fn advance(&mut self) -> Result<Option<Visit>, StepsError<S::Error>> {
        self.nodes += 1;
        if self.nodes == TELL {
            self.nodes = 0;
            (self.run.progress)(self.machine.time());
        }
        let next = self.cursor.next()?;
        if let Some(visit) = next {
            match self.compile(visit.node) {
                // The run may end before it needs the part that is missing from the path.
                Err(StepsError::Partial) => {}
                compiled => compiled?,
            }
        }
        Ok(next)
    }

    /// Returns the place where the run was stopped from outside, if that place is in the node.
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
        self.bring_in()?;
        let length = self.lengths[visit.node.index()];
        let done = match self.stopped(visit) {
            None => self.machine.step(visit.node, length, observer),
            Some(stopped) => self
                .machine
                .step_before(visit.node, length, stopped, observer),
        };
        done.map_err(|error| self.failed(visit, error))
    }

    /// Returns the reason why a node could not be executed.
    #[cold]
    fn failed(&self, visit: Visit, error: MachineError) -> StepsError<S::Error> {
        match self.run.path.nodes()[visit.node].left_out {
            0 => error.into(),
            _ => StepsError::Partial,
        }
    }

    /// Executes a node, and passes the state after each number of instructions in `pauses` to
    /// `show`. The numbers must be in ascending order.
    pub fn execute_pausing<O: Observer>(
        &mut self,
        visit: Visit,
        observer: &mut O,
        pauses: &[usize],
        mut show: impl FnMut(usize, &Paused<'_>),
    ) -> Result<(), StepsError<S::Error>> {
        self.bring_in()?;
        let length = self.lengths[visit.node.index()];
        let stopped = self.stopped(visit);
        let (machine, image) = (&mut self.machine, self.image.as_ref());
        let show = |at: usize, inside: &Inside<'_>| show(at, &Paused { inside, image });
        let done = machine.step_pausing(visit.node, length, stopped, observer, (pauses, show));
        done.map_err(|error| self.failed(visit, error))
    }

    /// Restores the memory that the next node needs.
    #[inline]
    fn bring_in(&mut self) -> Result<(), StepsError<S::Error>> {
        if let Some(image) = &mut self.image {
            image.advance(&mut self.machine)?;
        }
        Ok(())
    }

    /// Ensures that some bytes of a memory have been restored, if they exist.
    pub fn need(
        &mut self,
        memory: u32,
        address: u64,
        length: u64,
    ) -> Result<(), StepsError<S::Error>> {
        if let Some(image) = &mut self.image {
            image.need(memory, address, length, &mut self.machine.state)?;
        }
        Ok(())
    }
}
