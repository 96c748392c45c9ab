//! Enumerates the stacks of a tree of calling contexts.

use afterimage_replay::whole_path::{ContextTree, Frame};

use super::Frames;
use crate::PresentError;

/// A function on a stack, or a merged or missing part.
pub(super) struct StackFrame<'f> {
    /// The frame; `None` for a merged or missing part.
    pub frame: Option<Frame>,
    pub name: &'f str,
}

/// Passes each stack in which blocks are executed to `take`, with the number of these blocks. A
/// stack begins with the outermost function. Merged calls and gaps in the path are separate frames.
/// The numbers add up to the number of executed blocks. O(depth) per stack.
pub(super) fn each_stack(
    tree: &ContextTree,
    frames: &Frames<'_>,
    mut take: impl FnMut(&[StackFrame<'_>], u64) -> Result<(), PresentError>,
) -> Result<(), PresentError> {
    let limits = tree.limits;
    let shorter = format!("[calls below {} blocks]", limits.min);
    let deeper = format!("[calls deeper than {}]", limits.depth);
    let mut stack: Vec<StackFrame<'_>> = Vec::new();
    // The number of frames at each depth. The host has no frame.
    let mut lengths: Vec<usize> = Vec::new();
    for (at, depth) in tree.walk() {
        let context = &tree.contexts[at];
        lengths.truncate(depth);
        stack.truncate(lengths.last().copied().unwrap_or(0));
        if context.frame != Frame::Host {
            stack.push(StackFrame {
                frame: Some(context.frame),
                name: frames.name(context.frame),
            });
        }
        lengths.push(stack.len());
        if context.own > 0 {
            take(&stack, context.own)?;
        }
        let left_out = context.left_out + context.shorter.left_out + context.deeper.left_out;
        let rests = [
            (context.shorter.blocks - context.shorter.left_out, &*shorter),
            (context.deeper.blocks - context.deeper.left_out, &*deeper),
            (left_out, "[left out]"),
        ];
        for (blocks, name) in rests.into_iter().filter(|(blocks, _)| *blocks > 0) {
            stack.push(StackFrame { frame: None, name });
            take(&stack, blocks)?;
            stack.pop();
        }
    }
    Ok(())
}
