//! Finds the open calls at a moment of a run, and counts the executions of an operator.

use afterimage_ids::{FuncId, OpId};
use afterimage_program::Program;
use afterimage_wpp::{Segments, WholePath};

use super::DiffError;

/// A call that is open at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallPlace {
    /// The function that makes the call.
    pub function: FuncId,
    /// The operator of the call.
    pub op: OpId,
    /// The time of the call's block.
    pub time: u64,
}

/// Returns at most `most` of the calls that are open when block `time` is executed, innermost
/// first. Activations entered by a tail call or by the host have no call.
///
/// # Errors
/// Returns an error if the path cannot be read.
pub fn calls_around<S: Segments>(
    path: &WholePath<S>,
    program: &Program,
    time: u64,
    most: usize,
) -> Result<Vec<CallPlace>, DiffError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let mut cursor = path.cursor();
    if cursor.seek(time)?.is_none() {
        return Ok(Vec::new());
    }
    let stack = cursor.stack()?;
    let mut calls = Vec::new();
    for pair in stack.windows(2).rev() {
        if calls.len() == most {
            break;
        }
        let (caller, entered) = (pair[0].function, pair[1].entered);
        let Some(before) = cursor.seek(entered.saturating_sub(1))? else {
            continue;
        };
        let node = &path.nodes()[before.node];
        let known = program.function(caller).filter(|_| node.function == caller);
        let block = known.and_then(|known| known.cfg.blocks.get(*node.blocks.last()?));
        if let Some(last) = block.and_then(|block| block.ops.end.as_u32().checked_sub(1)) {
            calls.push(CallPlace {
                function: caller,
                op: OpId::from_u32(last),
                time: before.last(),
            });
        }
    }
    Ok(calls)
}

/// Returns how many times an operator's block was executed up to and including block `time`. This
/// is the number of the operator's execution in that block.
///
/// # Errors
/// Returns an error if the path cannot be read.
pub fn executed_by<S: Segments>(
    path: &WholePath<S>,
    program: &Program,
    function: FuncId,
    op: OpId,
    time: u64,
) -> Result<u64, DiffError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let block = program.function(function).and_then(|f| f.block_of(op));
    let nodes = path.nodes().iter();
    let own = nodes.filter(|(_, node)| node.function == function);
    let targets = own.filter_map(|(id, node)| {
        let at = node.blocks.iter().position(|&other| Some(other) == block)?;
        Some((id, at as u64))
    });
    Ok(path.executions(targets)?.rank(time)?)
}
