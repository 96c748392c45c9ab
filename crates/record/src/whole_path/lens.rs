//! Traces the path of a recorded execution by re-executing it.

use std::sync::atomic::{AtomicBool, Ordering};

use afterimage_ids::{Counts, FuncId};
use afterimage_paths::{Cuts, FinalFrame, Finish, PathPlan, Sink};
use afterimage_placement::OpenFrame;
use afterimage_program::Program;
use afterimage_rewrite::{PathProbes, Probes, TracePlan};
use afterimage_trace::{End, Ending, Standing, TraceFile};

use super::{Consumed, HALF_WORDS, PathHost, Producer, consume};
use crate::ending::{Outcome, open_frames};
use crate::lens::{Job, Repeat};
use crate::replay::Progress;
use crate::{Cache, RecordError};

/// A recorded run, and everything needed to re-execute it.
#[derive(Clone, Copy)]
pub struct RecordedRun<'a> {
    /// The file with the recording.
    pub file: &'a TraceFile,
    /// The bytes of the program's module.
    pub bytes: &'a [u8],
    /// The program parsed from these bytes.
    pub program: &'a Program,
    /// The cache of compiled code.
    pub cache: &'a Cache,
    /// The callback for the progress of a re-execution. It receives the number of polls of the stop
    /// clock if the recording has a clock and the re-execution can be cancelled, and otherwise the
    /// number of events.
    pub progress: &'a Progress,
    /// Once this is set, the re-execution stops with [`RecordError::Interrupted`]. This requires a
    /// stop clock in the module, which costs time. Use `None` if nobody can set it.
    pub cancel: Option<&'a AtomicBool>,
}

impl RecordedRun<'_> {
    /// Whether somebody asked to stop.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel
            .is_some_and(|cancel| cancel.load(Ordering::SeqCst))
    }
}

/// The result of a traced re-execution.
#[derive(Debug)]
pub struct Traced<S> {
    /// The sink that received the paths.
    pub sink: S,
    /// The number of executed blocks.
    pub time: u64,
    /// The number of bits that the probes wrote.
    pub bits: u64,
}

/// Re-executes a recording and sends every executed path to a sink, in order, on another thread.
///
/// # Errors
/// Returns an error if the recording cannot be repeated exactly.
pub fn trace_paths<S: Sink + Send>(
    run: &RecordedRun<'_>,
    feedback: Option<&Counts>,
    sink: S,
) -> Result<Traced<S>, RecordError> {
    let program = run.program;
    let job = Job::open(*run)?;
    let plan = PathPlan::new(program, feedback, Cuts::default())?;
    let probes = PathProbes {
        plan: TracePlan::Paths(&plan),
        in_memory: ends_inside(&job.end),
        half: HALF_WORDS,
    };
    // Finding a stack overflow may take several attempts, but the sink must see only one.
    let skip = match job.end.ending {
        Ending::StackOverflow => job.repeat(None)?.0.skip,
        _ => 0,
    };
    let mut sink = Some(sink);
    let mut consumed: Option<Consumed<'_, S>> = None;
    let (repeated, standing) = job.repeat_with(
        Repeat {
            probes: Probes::Paths(probes),
            skip,
            snapshots: None,
        },
        &mut |job, engine, rewritten, stop| {
            let (producer, messages) = Producer::new(HALF_WORDS);
            let sink = sink.take().ok_or(RecordError::OverflowNotFound)?;
            std::thread::scope(|scope| {
                let consumer = scope.spawn(|| consume(program, &plan, messages, sink));
                let host = PathHost::new(producer, plan.entry_ids().clone());
                let replayed = job.replay(engine, rewritten, stop, Some(host), None);
                // Prefer the consumer's error, because the guest only learns that the consumer is
                // gone.
                let result = match consumer.join() {
                    Ok(result) => result?,
                    Err(panic) => std::panic::resume_unwind(panic),
                };
                consumed = Some(result);
                replayed
            })
        },
    )?;
    let Consumed {
        mut regenerator,
        mut sink,
        bits,
    } = consumed.ok_or(RecordError::HandOver(super::HandOverError::ConsumerGone))?;
    let open = open_frames(program, &job.index, &repeated.outcome, &standing)?;
    regenerator.finish(&finish(&repeated.outcome, &open), &mut sink)?;
    Ok(Traced {
        time: regenerator.time(),
        sink,
        bits,
    })
}

/// Returns the function whose code was running when the run ended, if there was one. The bits that
/// it held in a local are lost.
pub(crate) fn ends_inside(end: &End) -> Option<FuncId> {
    let in_host = matches!(
        end.ending,
        Ending::Returned | Ending::Exited { .. } | Ending::HostError { .. }
    );
    let mut frames = end.frames.iter();
    let inside = frames.find(|frame| frame.standing != Standing::NotEntered);
    inside.filter(|_| !in_host).map(|frame| frame.function)
}

/// Determines where the path ends.
fn finish(outcome: &Outcome, open: &[OpenFrame]) -> Finish {
    if !outcome.stands() {
        return Finish::Done;
    }
    let frames = open.iter().rev().map(|frame| FinalFrame {
        function: frame.function,
        block: frame.block,
    });
    Finish::Open(frames.collect())
}
