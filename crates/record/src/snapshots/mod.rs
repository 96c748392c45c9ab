//! Takes snapshots of the machine's state at some moments of a re-execution. A run can be followed
//! from any of its snapshots. The path is cut at each snapshot, and many times in between.
//!
//! When a snapshot is due, the rewritten module calls us at a poll of the stop clock, at the
//! beginning of a block where paths begin. The locals and operands of the activations arrive later,
//! because each activation captures itself after the call that it waits for. Some activations are
//! still open at the end of the run. Another re-execution ends them, one after another, at the
//! run's last snapshot.
//!
//! If a program's activations cannot capture themselves, the engine's debugger shows their
//! contents. The rewriter adds locals only after the program's own and does not change the operand
//! stack, so the debugger shows the program's values.

mod capture;
mod read;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use afterimage_machine::{MachineError, Opened, Page, Snapshot};
use afterimage_paths::{Cuts, PathPlan};
use afterimage_program::{Function, OperatorIndex, Program};
use afterimage_rewrite::{
    PathProbes, Probes, RewriteError, Rewritten, Snapshots, TracePlan, can_capture,
};
use afterimage_trace::{Ending, Kind, TraceWriter};
use afterimage_wpp::StretchDirectory;
use wasmparser::{BinaryReader, Catch, FunctionBody, Operator};
use wasmtime::Engine;

use crate::RecordError;
use crate::lens::{Job, Repeat};
use crate::replay::Stop;
use crate::whole_path::{
    HALF_WORDS, PathHost, Producer, RecordedRun, SnapshotFn, WordWriter, ends_inside,
    recorded_finish,
};
use capture::{Activation, Waiting};
pub(crate) use capture::{Captured, Capturing, HasSnapshots, Lines, word, write};
pub(crate) use read::{Cut, Reader};

/// A page of a memory, and its contents.
pub type ChangedPage = (Page, Box<[u8]>);

/// A completed snapshot.
#[derive(Debug)]
pub struct Taken {
    /// The reading of the stop clock.
    pub clock: u64,
    /// The times at which each activation began and made its pending call, outermost first.
    pub opened: Vec<Opened>,
    /// The memory pages written since the previous snapshot.
    pub pages: Vec<ChangedPage>,
    /// The state of the machine, without the contents of the activations.
    pub(crate) snapshot: Snapshot,
    /// The activations, outermost first.
    activations: Vec<Open>,
    /// The activation that was just entered, and the number of its arguments.
    entered: Option<(Arc<Activation>, usize)>,
}

/// An activation in a snapshot.
#[derive(Debug)]
struct Open {
    held: Arc<Activation>,
    /// The numbers of the activation's locals and operands that can still be read.
    locals: usize,
    operands: usize,
    /// Whether the activation contains vectors.
    wide: bool,
}

impl Taken {
    /// Returns the number of blocks executed before the snapshot.
    pub fn time(&self) -> u64 {
        self.snapshot.time
    }

    /// Returns the approximate size of the snapshot's activations and globals, in bytes.
    pub fn bytes(&self) -> usize {
        let slots = self.activations.iter();
        let slots: usize = slots.map(|open| open.locals + open.operands).sum();
        8 * (slots + 4 * self.activations.len() + self.snapshot.globals.len())
    }

    /// Completes the state of the machine. Call it after the re-execution.
    ///
    /// # Errors
    /// Returns an error if the capture of an activation does not fit the program.
    pub fn complete(self) -> Result<Snapshot, RecordError> {
        let misfit = || RecordError::Snapshot(MachineError::Checkpoint);
        let mut snapshot = self.snapshot;
        for open in &self.activations {
            let held = open.held.held().ok_or_else(misfit)?;
            let locals = held.locals.get(..open.locals).ok_or_else(misfit)?;
            let operands = held.operands.get(..open.operands).ok_or_else(misfit)?;
            let all = || locals.iter().chain(operands);
            snapshot.registers.extend(all().map(|bits| bits.0));
            if open.wide {
                snapshot.high.extend(all().map(|bits| bits.1));
            }
        }
        if let Some((entered, count)) = self.entered {
            let held = entered.held().ok_or_else(misfit)?;
            let arguments = held.locals.get(..count).ok_or_else(misfit)?;
            snapshot.arguments = arguments.to_vec();
        }
        Ok(snapshot)
    }
}

/// The distances between snapshots and between cuts of the path. Each snapshot is at a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Distances in polls of the stop clock.
    Polls {
        /// The distance between snapshots. The next snapshot is taken at the first cut that is at
        /// least this far away.
        snapshots: u64,
        /// The number of polls between cuts.
        cuts: u64,
    },
    /// Distances in running time of the guest in the re-execution. A distance is at least five
    /// times the cost of the previous snapshot or cut.
    Time {
        /// The running time between snapshots.
        snapshots: Duration,
        /// The running time between cuts. In a long run, the distance grows with the clock.
        cuts: Duration,
    },
}

impl Spacing {
    /// Returns a spacing with a snapshot every `count` polls and no other cuts.
    pub fn polls(count: u64) -> Self {
        Self::Polls {
            snapshots: count,
            cuts: count,
        }
    }
}

/// Re-executes a run. Adds to the file the words of its path, its stretches, and the lines of
/// memory that each stretch writes. `tell` receives the snapshots in order, and returns a factor
/// that multiplies `spacing` for the following snapshots. The caller commits.
///
/// # Errors
/// Returns an error if snapshots of the program are impossible, the recording cannot be repeated
/// exactly, the file cannot be written, or `tell` fails.
pub fn build_snapshots(
    run: &RecordedRun<'_>,
    spacing: Spacing,
    out: &TraceWriter,
    mut tell: impl FnMut(Taken) -> Result<u64, RecordError> + Send,
) -> Result<(), RecordError> {
    if can_capture(run.program, run.bytes) {
        let made = build(run, Snapshots::Captured, spacing, out, &mut tell);
        // These errors occur before the run begins, so the debugger can be used instead.
        if !matches!(
            made,
            Err(RecordError::Rewrite(
                RewriteError::TooLarge(_) | RewriteError::Limit { .. }
            ))
        ) {
            return made;
        }
    }
    build_debugged(run, spacing, out, tell)
}

/// Does the same as [`build_snapshots`], but always with the engine's debugger.
///
/// # Errors
/// Returns the errors of [`build_snapshots`].
#[doc(hidden)]
pub fn build_debugged(
    run: &RecordedRun<'_>,
    spacing: Spacing,
    out: &TraceWriter,
    mut tell: impl FnMut(Taken) -> Result<u64, RecordError> + Send,
) -> Result<(), RecordError> {
    if let Some(what) = too_large(run.program, run.bytes) {
        return Err(RecordError::NoSnapshots(what));
    }
    build(run, Snapshots::Debugged, spacing, out, &mut tell)
}

/// Receives snapshots, and returns a factor that multiplies the distance to the following
/// snapshots.
type TellFn<'a> = dyn FnMut(Taken) -> Result<u64, RecordError> + Send + 'a;

fn build(
    run: &RecordedRun<'_>,
    how: Snapshots,
    spacing: Spacing,
    out: &TraceWriter,
    tell: &mut TellFn<'_>,
) -> Result<(), RecordError> {
    let apart = Arc::new(AtomicU64::new(1));
    let mut tell = |taken: Taken| {
        apart.store(tell(taken)?.max(1), Ordering::Relaxed);
        Ok(())
    };
    let tell: &mut SnapshotFn<'_> = &mut tell;
    let program = run.program;
    if let Some(what) = unseen(program, run.bytes) {
        return Err(RecordError::NoSnapshots(what));
    }
    let job = Job::open(*run)?;
    let plan = PathPlan::new(program, None, Cuts::default())?;
    let probes = PathProbes {
        plan: TracePlan::Paths(&plan),
        in_memory: ends_inside(&job.end),
        half: HALF_WORDS,
    };
    // Finding a stack overflow may take several attempts, but `tell` must see only one.
    let skip = match job.end.ending {
        Ending::StackOverflow => job.repeat(None)?.0.skip,
        _ => 0,
    };
    let repeat = Repeat {
        probes: Probes::Paths(probes),
        skip,
        snapshots: Some(how),
    };
    let index = OperatorIndex::new(program, run.bytes);
    let finish = recorded_finish(program, &index, &job.end)?;
    let mut stretches: Option<StretchDirectory> = None;
    let mut tell = Some(tell);
    job.repeat_with(repeat, &mut |job, engine, rewritten, stop| {
        let tell = tell.take().ok_or(RecordError::OverflowNotFound)?;
        let reader = Reader::new(program, run.bytes, &index, &rewritten.map);
        let words = WordWriter::repeating(out, &plan, reader, tell)?;
        let (producer, messages) = Producer::new(HALF_WORDS);
        let mut host = PathHost::new(producer, plan.entry_ids().clone());
        if how == Snapshots::Debugged {
            host = host.unguarded();
        }
        let waiting = (how == Snapshots::Captured).then(|| Waiting::new(rewritten));
        let spacing = (spacing, Arc::clone(&apart));
        let capturing = Capturing::new(program, rewritten, spacing, waiting);
        let mut replayed = std::thread::scope(|scope| {
            let finish = &finish;
            let consumer = scope.spawn(move || words.write_stretches(messages, finish));
            let replayed = job.replay(engine, rewritten, stop, Some(host), Some(capturing));
            match consumer.join() {
                // The run stopped early, so the stretches are incomplete.
                Ok(_) if matches!(replayed, Err(RecordError::NoSnapshots(_))) => replayed,
                // Prefer the consumer's error, because the guest only learns that the consumer is
                // gone.
                Ok(written) => {
                    stretches = Some(written?);
                    replayed
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })?;
        let waiting = replayed.snapshots.take().and_then(Capturing::waiting);
        if let Some(waiting) = waiting {
            leave_all(job, engine, rewritten, stop, (&plan, waiting))?;
        }
        Ok(replayed)
    })?;
    if let Some(stretches) = stretches {
        out.whole(Kind::STRETCHES, None, &stretches.encode())?;
        out.whole(Kind::OPEN, None, &stretches.encode_open())?;
    }
    Ok(())
}

/// Re-executes a run up to the last snapshot, and ends all activations that were still open at the
/// end of the run, so that they capture themselves.
fn leave_all(
    job: &Job<'_>,
    engine: &Engine,
    rewritten: &Rewritten,
    stop: Stop,
    (plan, waiting): (&PathPlan, Waiting),
) -> Result<(), RecordError> {
    let (producer, messages) = Producer::new(HALF_WORDS);
    let host = PathHost::new(producer, plan.entry_ids().clone());
    let capturing = Capturing::again(job.program, rewritten, waiting);
    let replayed = std::thread::scope(|scope| {
        scope.spawn(move || messages.iter().for_each(drop));
        job.replay(engine, rewritten, stop, Some(host), Some(capturing))
    })?;
    match replayed.snapshots.and_then(Capturing::waiting) {
        None => Ok(()),
        Some(_) => Err(RecordError::Snapshot(MachineError::Checkpoint)),
    }
}

/// The number of operators beyond which compiling a function for the debugger takes hundreds of
/// megabytes.
const LARGEST: u32 = 50_000;

/// The limit on operators times locals, summed over all functions, beyond which compiling for the
/// debugger takes minutes. It is twice the value for SQLite.
const MOST: u64 = 32_000_000;

/// Returns the reason why the engine's debugger cannot be used for a program, if there is one.
fn too_large(program: &Program, bytes: &[u8]) -> Option<&'static str> {
    let functions = program.functions.iter();
    if functions
        .clone()
        .any(|function| function.operators > LARGEST)
    {
        return Some("has a function too large for the engine's debugger");
    }
    let cost: u64 = functions
        .map(|function| locals(program, bytes, function) * u64::from(function.operators))
        .sum();
    (cost > MOST).then_some("is too large for the engine's debugger")
}

/// Returns the reason why snapshots of a program are impossible, if there is one. Such a program
/// has effects that cannot be observed.
fn unseen(program: &Program, bytes: &[u8]) -> Option<&'static str> {
    let functions = program.functions.iter();
    let mut all = functions.flat_map(|function| program.operators(bytes, function));
    all.find_map(|(_, _, operator)| match operator {
        Operator::DataDrop { .. } | Operator::ElemDrop { .. } => Some("drops segments"),
        Operator::TryTable { try_table } => {
            let by_reference =
                |catch: &Catch| matches!(catch, Catch::OneRef { .. } | Catch::AllRef { .. });
            let any = try_table.catches.iter().any(by_reference);
            any.then_some("catches exceptions by reference")
        }
        _ => None,
    })
}

/// Returns the number of a function's locals.
fn locals(program: &Program, bytes: &[u8], function: &Function) -> u64 {
    let parameters = program
        .types
        .get(function.ty)
        .map_or(0, |ty| ty.params.len());
    let body = function.body.start.0 as usize..function.body.end.0 as usize;
    let reader = BinaryReader::new(bytes.get(body).unwrap_or_default(), 0);
    let groups = FunctionBody::new(reader).get_locals_reader();
    let groups = groups.into_iter().flatten().filter_map(Result::ok);
    parameters as u64 + groups.map(|(count, _)| u64::from(count)).sum::<u64>()
}
