//! Calling contexts as folded stacks, for flame graphs: `flamegraph.pl`, inferno, speedscope.

use std::io::Write;

use afterimage_program::Names;
use afterimage_replay::paths::ContextTree;

use crate::PresentError;
use crate::plain::escaped;

/// Writes a line for each context that executes blocks itself: the functions from the outermost to the innermost, and how many
/// blocks. What was left out of the path stands under `[left out]`. The sum over all lines is the number of blocks executed.
///
/// # Errors
/// If `out` fails.
pub fn collapsed(
    out: &mut dyn Write,
    tree: &ContextTree,
    names: &Names,
) -> Result<(), PresentError> {
    let mut stack = String::new();
    // How long the stack's text is at each depth.
    let mut lengths: Vec<usize> = Vec::new();
    for (at, depth) in tree.walk() {
        let context = &tree.contexts[at];
        lengths.truncate(depth);
        stack.truncate(lengths.last().copied().unwrap_or(0));
        if let Some(function) = context.function {
            push(&mut stack, names.function(function));
        }
        lengths.push(stack.len());
        if context.own > 0 {
            writeln!(out, "{stack} {}", context.own)?;
        }
        let limits = tree.limits;
        let shorter = format!("[calls below {} blocks]", limits.min);
        let deeper = format!("[calls deeper than {}]", limits.depth);
        let rests = [(context.shorter, shorter), (context.deeper, deeper)];
        let known = rests.map(|(rest, name)| (rest.blocks - rest.left_out, name));
        let left_out = context.left_out + context.shorter.left_out + context.deeper.left_out;
        for (blocks, name) in known
            .into_iter()
            .chain([(left_out, "[left out]".to_owned())])
        {
            if blocks > 0 {
                push(&mut stack, &name);
                writeln!(out, "{stack} {blocks}")?;
                stack.truncate(lengths[depth]);
            }
        }
    }
    Ok(())
}

/// Appends a frame. Semicolons separate frames, and a line is one stack.
fn push(stack: &mut String, name: &str) {
    if !stack.is_empty() {
        stack.push(';');
    }
    stack.push_str(&escaped(name).replace(';', ":"));
}
