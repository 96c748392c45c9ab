//! Finds where an occurrence begins, given its end.

use super::{Link, Match, Pattern};
use crate::{Cursor, PathError, Segments};

/// Walks back from the last block. Within an activation, the walk skips callees. From the
/// activation's first block, it continues in the caller. From the place of a return, it continues
/// in the callee.
pub(super) fn beginning<S: Segments>(
    cursor: &mut Cursor<'_, S>,
    pattern: &Pattern,
    last: u64,
) -> Result<Match, PathError<S::Error>> {
    cursor.seek(last)?;
    let mut depth = cursor.depth();
    let mut first = last;
    for (number, part) in pattern.parts().iter().enumerate().rev() {
        for _ in 1..part.blocks.len() {
            first = previous(cursor, first, depth)?;
        }
        if number > 0 {
            depth = match part.link {
                Link::Call => depth.saturating_sub(1),
                Link::Return => depth + 1,
            };
            first = previous(cursor, first, depth)?;
        }
    }
    cursor.seek(first)?;
    let stack = cursor.stack()?;
    Ok(Match {
        last,
        first,
        entered: stack.last().map_or(first, |own| own.entered),
    })
}

/// Returns the time of the last block before `time` that is executed with exactly `depth` open
/// activations. The innermost of these activations must be open from that block to `time`.
fn previous<S: Segments>(
    cursor: &mut Cursor<'_, S>,
    time: u64,
    depth: usize,
) -> Result<u64, PathError<S::Error>> {
    let mut before = time - 1;
    cursor.seek(before)?;
    while cursor.depth() > depth && before > 0 {
        let stack = cursor.stack()?;
        before = stack.get(depth).map_or(0, |callee| callee.entered - 1);
        cursor.seek(before)?;
    }
    Ok(before)
}
