//! Where a run trapped, if the engine cannot tell.

use std::sync::Arc;

use afterimage_ids::FuncId;
use afterimage_program::{OperatorIndex, Program};
use afterimage_rewrite::{Options, Probes, rewrite};
use afterimage_trace::{Frame, TraceFile, TraceWriter};

use crate::ending::frames;
use crate::engine::{REPLAY_STACK, Settings, engine, on_guest_thread};
use crate::replay::{Source, Stop, replay};
use crate::{Cache, RecordError};

/// Runs a program again that trapped in this function, with all its operators apart, and tells which one did. The log must be complete.
///
/// That takes as long as the run did.
pub(crate) fn trapped_at(
    out: &TraceWriter,
    bytes: &[u8],
    program: &Program,
    cache: &Cache,
    function: FuncId,
) -> Result<Frame, RecordError> {
    out.commit()?;
    let file = TraceFile::open(&out.path())?;
    let options = Options {
        export_start: true,
        apart: Some(function),
        ..Options::default()
    };
    let rewritten = rewrite(bytes, program, Probes::None, &options)?;
    let engine = engine(Settings::with_stack(REPLAY_STACK))?;
    let source = Source {
        cache,
        program,
        file: &file,
        progress: &(Arc::new(|_| {}) as _),
    };
    let replayed = on_guest_thread(REPLAY_STACK, || {
        replay(&engine, &source, &rewritten, Stop::Never, None)
    })?;
    let index = OperatorIndex::new(program, bytes);
    let standing = replayed
        .outcome
        .standing(program, &index, &rewritten.map, None)?;
    let found = frames(program, &standing)?.into_iter().next();
    found
        .filter(|frame| frame.function == function)
        .ok_or_else(|| RecordError::UnknownPlace(function.to_string()))
}
