//! Snapshots of a re-execution: how the machine stands at some moments, from which a run can be followed without what was before. The path is cut at each snapshot, and many times between two.
//!
//! The rewritten module calls us where it polls the stop clock, at the beginning of a block at which paths begin, when it is time for a snapshot. What the activations hold is told later: each captures
//! itself after the call for which it waits. Those that are still open when the run ends are left one after the other, at the last snapshot of another re-execution.
//!
//! Of a program whose activations cannot capture themselves the engine's debugger shows them. It shows those of the program: the rewriter adds locals behind the program's own, and leaves the operand stack as it was.

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
use crate::paths::{
    HALF_WORDS, PathHost, Producer, RecordedRun, SnapshotFn, WordWriter, ends_inside,
    recorded_finish,
};
use crate::replay::Stop;
use capture::{Activation, Waiting};
pub(crate) use capture::{Captured, Capturing, HasSnapshots, Lines, word, write};
pub(crate) use read::{Cut, Reader};

/// A page of a memory, and what it holds.
pub type ChangedPage = (Page, Box<[u8]>);

/// A snapshot that was made.
#[derive(Debug)]
pub struct Taken {
    /// The stop clock's reading.
    pub clock: u64,
    /// When its activations began, the outermost first.
    pub opened: Vec<Opened>,
    /// The pages of memories that changed since the snapshot before.
    pub pages: Vec<ChangedPage>,
    /// How the machine stands, without what the activations hold.
    pub(crate) snapshot: Snapshot,
    /// The activations, the outermost first.
    activations: Vec<Open>,
    /// The one that was just entered, and how many arguments it has.
    entered: Option<(Arc<Activation>, usize)>,
}

/// An activation of a snapshot.
#[derive(Debug)]
struct Open {
    held: Arc<Activation>,
    /// How many of its locals and operands can still be read.
    locals: usize,
    operands: usize,
    /// Whether it has vectors.
    wide: bool,
}

impl Taken {
    /// How many blocks were executed before.
    pub fn time(&self) -> u64 {
        self.snapshot.time
    }

    /// About how many bytes its activations and globals have.
    pub fn bytes(&self) -> usize {
        let slots = self.activations.iter();
        let slots: usize = slots.map(|open| open.locals + open.operands).sum();
        8 * (slots + 4 * self.activations.len() + self.snapshot.globals.len())
    }

    /// How the machine stands. Known when the re-execution is over.
    ///
    /// # Errors
    /// If an activation has not captured itself as the program has it.
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

/// The distance of snapshots, and of cuts of the path. Each snapshot is at a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// In polls of the stop clock.
    Polls {
        /// Between snapshots: the first cut that is as far away.
        snapshots: u64,
        /// Between cuts.
        cuts: u64,
    },
    /// In time that the guest runs in the re-execution. The distance is at least five times what the last one took.
    Time {
        /// Between snapshots.
        snapshots: Duration,
        /// Between cuts. In a long run the distance grows with the clock.
        cuts: Duration,
    },
}

impl Spacing {
    /// Snapshots this many polls apart, and no other cuts.
    pub fn polls(count: u64) -> Self {
        Self::Polls {
            snapshots: count,
            cuts: count,
        }
    }
}

/// Re-executes a run, and adds to the file the words of its path, its stretches, and the lines of memory that each stretch writes. `tell` gets the snapshots, in order. It answers how many times
/// further apart than `spacing` those to come should be. The caller commits.
///
/// # Errors
/// If the recording cannot be repeated exactly, the file cannot be written, or `tell` fails.
pub fn build_snapshots(
    run: &RecordedRun<'_>,
    spacing: Spacing,
    out: &TraceWriter,
    mut tell: impl FnMut(Taken) -> Result<u64, RecordError> + Send,
) -> Result<(), RecordError> {
    if can_capture(run.program, run.bytes) {
        let made = build(run, Snapshots::Captured, spacing, out, &mut tell);
        // Nothing was executed then.
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

/// As [`build_snapshots`], but with the engine's debugger, whatever the program is.
///
/// # Errors
/// As [`build_snapshots`].
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

/// Who is told of snapshots, and answers how many times further apart those to come should be.
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
    let job = Job::open(run.file, run.bytes, program, run.cache, run.progress)?;
    let plan = PathPlan::new(program, None, Cuts::default())?;
    let probes = PathProbes {
        plan: TracePlan::Paths(&plan),
        in_memory: ends_inside(&job.end),
        half: HALF_WORDS,
    };
    // A stack overflow may take several attempts to find: who is told shall hear of one only.
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
                // Then the words end in the middle of the run.
                Ok(_) if matches!(replayed, Err(RecordError::NoSnapshots(_))) => replayed,
                // The consumer's reason is the better one: the guest only learns that it is gone.
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

/// Executes a run again, up to the last snapshot, and leaves all activations that were still open at its end, so that they capture themselves.
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

/// Operators, beyond which a function takes the engine hundreds of megabytes to compile for its debugger.
const LARGEST: u32 = 50_000;

/// The sum of operators times locals of all functions, beyond which the engine takes minutes to compile them for its debugger: twice that of SQLite.
const MOST: u64 = 32_000_000;

/// Why the engine's debugger cannot be asked about a program, if that is so.
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

/// Why no snapshots can be made of a program, if that is so: because it does what nobody sees afterwards.
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

/// How many locals a function has.
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
