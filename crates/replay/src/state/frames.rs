//! Finds the call stack at a moment.

use afterimage_ids::FuncId;

use super::StateError;
use crate::values::RecordedValues;

/// An activation that is open at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The function of the activation.
    pub function: FuncId,
    /// The time of the activation's first block.
    pub entered: u64,
    /// The time of the activation's current block. For the innermost activation, this is the block
    /// of the moment. For the other activations, it is the block of the pending call.
    pub time: u64,
}

/// Returns the innermost `most` activations that are open when the block at `time` is executed,
/// innermost first, and the total number of open activations. O(activations), plus O(tail calls
/// that replaced activations).
///
/// # Errors
/// Returns an error if there is no such block, or the path cannot be read.
pub fn calls(
    values: &RecordedValues<'_>,
    time: u64,
    most: usize,
) -> Result<(Vec<Call>, usize), StateError> {
    let mut cursor = values.path().cursor();
    if cursor.seek(time)?.is_none() {
        return Err(StateError::NoMoment(time));
    }
    let stack = cursor.stack()?;
    let mut calls = Vec::new();
    let mut at = time;
    for (index, open) in stack.iter().enumerate().rev().take(most) {
        let depth = index + 1;
        calls.push(Call {
            function: open.function,
            entered: open.entered,
            time: at,
        });
        // The host made the outermost call, so the previous node belongs to an earlier activation,
        // which may have any depth.
        if calls.len() == most || index == 0 {
            break;
        }
        // The last node executed before the activation began contains its call. If the activation
        // replaced others, this call is a tail call, so the search continues before the replaced
        // activation.
        let mut entered = open.entered;
        at = loop {
            cursor.seek(entered)?;
            let before = cursor.previous()?.filter(|_| cursor.depth() + 1 >= depth);
            let before = before.ok_or(StateError::Program("a call that was never made"))?;
            if cursor.depth() < depth {
                break before.last();
            }
            let replaced = cursor.innermost()?.filter(|_| cursor.depth() == depth);
            match replaced {
                Some(replaced) if replaced.entered < entered => entered = replaced.entered,
                _ => return Err(StateError::Program("a call that was never made")),
            }
        };
    }
    Ok((calls, stack.len()))
}
