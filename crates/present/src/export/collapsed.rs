//! Writes calling contexts as folded stacks, for flame graphs: `flamegraph.pl`, inferno,
//! speedscope.

use std::io::Write;

use afterimage_replay::whole_path::ContextTree;

use super::Frames;
use super::stacks::each_stack;
use crate::PresentError;
use crate::plain::escaped;

/// Writes a line for each context that executes blocks itself: the functions from the outermost to
/// the innermost, and the number of blocks. Gaps in the path appear as `[left out]`. The sum over
/// all lines is the number of executed blocks.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn collapsed(
    out: &mut dyn Write,
    tree: &ContextTree,
    frames: &Frames<'_>,
) -> Result<(), PresentError> {
    each_stack(tree, frames, |stack, blocks| {
        // Semicolons separate frames, and newlines separate stacks, so names must not contain them.
        let names = stack
            .iter()
            .map(|frame| escaped(frame.name).replace(';', ":"));
        writeln!(out, "{} {blocks}", Vec::from_iter(names).join(";"))?;
        Ok(())
    })
}
