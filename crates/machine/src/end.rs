//! Finds the position at which a run was stopped from outside.

use afterimage_ids::{BlockId, OpId};
use afterimage_program::{OperatorIndex, Program};
use afterimage_trace::{End, Standing};

/// The position at which a run was stopped from outside, in the last block of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppedBefore {
    /// The last block of the path.
    pub block: BlockId,
    /// The next operator, which was not executed.
    pub op: OpId,
}

/// Returns the position at which a run was stopped from outside. Returns `None` if the run ended in
/// another way, or in the host. `bytes` is the module from which the program was parsed.
pub fn stopped_before(program: &Program, bytes: &[u8], end: &End) -> Option<StoppedBefore> {
    let mut frames = end.frames.iter();
    let frame = frames.find(|frame| frame.standing != Standing::NotEntered)?;
    let function = program.function(frame.function)?;
    if frame.standing != Standing::Before {
        return None;
    }
    if frame.offset == function.body.start {
        let block = function.cfg.graph.root();
        let op = function.cfg.blocks[block].ops.start;
        return Some(StoppedBefore { block, op });
    }
    let (_, op) = OperatorIndex::new(program, bytes).find(frame.offset)?;
    let block = function.block_of(op)?;
    Some(StoppedBefore { block, op })
}
