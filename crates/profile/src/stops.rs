//! Converts the stack at a recording's end to the places that a profile needs.

use afterimage_ids::OpId;
use afterimage_program::{OperatorIndex, Program};
use afterimage_trace::{End, Standing};

use crate::{ProfileError, Stop};

/// Returns the places where the activations of a recording stopped at its end. O(frames · log
/// operators).
///
/// # Errors
/// Returns an error if a frame is not at a place in the program.
pub fn stops(
    program: &Program,
    index: &OperatorIndex<'_>,
    end: &End,
) -> Result<Vec<Stop>, ProfileError> {
    let frames = end
        .frames
        .iter()
        .filter(|frame| frame.standing != Standing::NotEntered);
    frames
        .map(|frame| {
            let nowhere = || ProfileError::NoSuchFrame {
                function: frame.function,
                offset: frame.offset,
            };
            let function = program.function(frame.function).ok_or_else(nowhere)?;
            if frame.standing == Standing::Before && frame.offset == function.body.start {
                let root = function.cfg.graph.root();
                return Ok(Stop {
                    function: function.id,
                    block: root,
                    next: function.cfg.blocks[root].ops.start,
                });
            }
            let (found, op) = index.find(frame.offset).ok_or_else(nowhere)?;
            let block = function
                .block_of(op)
                .filter(|_| found == function.id)
                .ok_or_else(nowhere)?;
            let next = match frame.standing {
                Standing::At => OpId::from_u32(op.as_u32() + 1),
                Standing::Before | Standing::NotEntered => op,
            };
            Ok(Stop {
                function: function.id,
                block,
                next,
            })
        })
        .collect()
}
