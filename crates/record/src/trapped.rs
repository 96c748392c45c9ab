//! Finds where a run trapped if the engine's report is ambiguous.

use afterimage_program::{Effect, OperatorIndex, Program};
use afterimage_rewrite::{Options, Probes, rewrite};
use afterimage_trace::{Ending, Frame, Standing, TraceFile, TraceWriter, TrapCode};

use crate::deep::Treatment;
use crate::ending::{Doubt, frames};
use crate::engine::{REPLAY_STACK, Settings, engine, on_guest_thread};
use crate::replay::{Observers, Progress, Source, Stop, replay};
use crate::{Cache, Interrupt, RecordError};

/// A complete recording of a run that trapped.
pub(crate) struct Unsettled<'a> {
    pub out: &'a TraceWriter,
    pub bytes: &'a [u8],
    pub program: &'a Program,
    pub index: &'a OperatorIndex<'a>,
    /// The way in which the run ended.
    pub ending: &'a Ending,
    pub doubt: &'a Doubt,
}

/// Re-runs a program that trapped, with the doubtful loads separated from the operators that use
/// their values. Returns the operator that trapped.
///
/// Re-running takes as long as the run did. The module is needed only once, so it is not cached.
pub(crate) fn trapped_at(
    run: &Unsettled<'_>,
    interrupt: &Interrupt,
    progress: &Progress,
) -> Result<Frame, RecordError> {
    let &Unsettled {
        bytes,
        program,
        index,
        ..
    } = run;
    run.out.commit()?;
    let file = TraceFile::open(&run.out.path())?;
    let Treatment { large, optimised } = Treatment::of(program);
    let options = Options {
        clock: true,
        large,
        export_start: true,
        apart: Some(run.doubt.loads.clone()),
        ..Options::default()
    };
    let rewritten = rewrite(bytes, program, Probes::None, &options)?;
    let engine = engine(Settings {
        optimised,
        ..Settings::with_stack(REPLAY_STACK)
    })?;
    let source = Source {
        cache: &Cache::none(),
        program,
        file: &file,
        progress: Some(progress),
        interrupt: Some(interrupt),
    };
    let replayed = on_guest_thread(REPLAY_STACK, || {
        let observers = Observers::default();
        replay(&engine, &source, &rewritten, Stop::Never, observers)
    })?;
    let outcome = &replayed.outcome;
    let standing = outcome.standing(program, index, &rewritten.map, None)?;
    let ending = outcome.ending(&standing, interrupt.requested());
    if matches!(ending, Ending::Interrupted { .. }) {
        return Err(RecordError::Interrupted);
    }
    let found = frames(program, &standing)?.into_iter().next();
    found
        .filter(|frame| ending == *run.ending && could_trap(run, frame))
        .ok_or_else(|| RecordError::UnknownPlace(run.doubt.function.to_string()))
}

/// Whether the operator of a frame is in the function that trapped, and can cause the trap.
fn could_trap(run: &Unsettled<'_>, frame: &Frame) -> bool {
    let Some(code) = run.program.function(frame.function) else {
        return false;
    };
    let Ending::Trapped { code: trap, .. } = run.ending else {
        return false;
    };
    let may: fn(Effect) -> bool = match trap {
        TrapCode::MemoryOutOfBounds => Effect::may_leave_memory,
        TrapCode::TableOutOfBounds => Effect::may_leave_table,
        _ => |_| true,
    };
    let mut operators = run.program.operators(run.bytes, code);
    let operator = operators.find(|&(_, offset, _)| offset == frame.offset);
    frame.function == run.doubt.function
        && frame.standing == Standing::At
        && operator.is_some_and(|(_, _, operator)| may(Effect::of(&operator)))
}
