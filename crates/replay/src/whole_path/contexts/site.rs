//! Finds the inlined functions that made the calls open at the beginning of a window.

use afterimage_ids::{BlockId, FuncId};
use afterimage_wpp::{Cursor, PathError, Segments, WholePath};

use super::inlining::{ChainId, Inlining};

/// The maximum number of open activations to read. After a tail call, or if the caller's block was
/// left out, calls follow each other without a block in between.
pub(in crate::whole_path) const STEPS: usize = 10_000_000;
/// A seek takes about as long as reading this number of open activations.
const SEEK: usize = 100;

/// Returns a chain for each of the outermost `count` activations that are open after `before`
/// blocks. It is the chain of the last block that the activation executed itself.
pub(super) fn chains_before<S: Segments>(
    path: &WholePath<S>,
    inlining: &Inlining,
    before: u64,
    count: usize,
) -> Result<Vec<ChainId>, PathError<S::Error>> {
    if count == 0 || before == 0 {
        return Ok(Vec::new());
    }
    let mut cursor = path.cursor();
    cursor.seek(before + 1)?;
    // Activations that end at this point are not included, because they execute nothing afterwards.
    let stack = cursor.stack()?;
    let mut chains = Vec::new();
    for (depth, open) in stack.iter().enumerate().take(count) {
        let inner = stack.get(depth + 1).map(|inner| inner.entered);
        let time = inner.map_or(before + 1, |entered| entered.min(before + 1));
        let mut steps = STEPS;
        let last = last_block(path, &mut cursor, (depth, open.entered), time, &mut steps)?;
        chains.push(last.map_or(ChainId::ITSELF, |(f, block)| inlining.of_call(f, block)));
    }
    Ok(chains)
}

/// Returns the last block that an activation executed before `time`, at which a node begins. The
/// activation is inside `depth` other activations and was entered at `entered`. Reading open
/// activations takes `steps`; when none is left, the block counts as not found.
pub(in crate::whole_path) fn last_block<S: Segments>(
    path: &WholePath<S>,
    cursor: &mut Cursor<'_, S>,
    (depth, entered): (usize, u64),
    mut time: u64,
    steps: &mut usize,
) -> Result<Option<(FuncId, BlockId)>, PathError<S::Error>> {
    while *steps > 0 && time > entered {
        *steps = steps.saturating_sub(SEEK);
        cursor.seek(time)?;
        let Some(visit) = cursor.previous()? else {
            break;
        };
        if cursor.depth() <= depth {
            break;
        }
        if cursor.depth() > depth + 1 {
            // A callee has ended, so continue before its activation.
            let callee = if cursor.depth() == depth + 2 {
                cursor.innermost()?.map(|callee| callee.entered)
            } else {
                let stack = cursor.stack()?;
                *steps = steps.saturating_sub(stack.len());
                stack.get(depth + 1).map(|callee| callee.entered)
            };
            let Some(entered) = callee else { break };
            time = entered;
            continue;
        }
        let node = &path.nodes()[visit.node];
        if let Some(&block) = node.blocks.last() {
            return Ok(Some((node.function, block)));
        }
        time = visit.start;
    }
    Ok(None)
}
