//! Writes the tree of calling contexts in the language of Graphviz.

use std::io::Write;

use afterimage_replay::whole_path::{ContextTree, Frame, Rest};

use crate::PresentError;
use crate::dot::quoted;
use crate::export::Frames;
use crate::number::{counted, grouped, percent};

/// Writes the tree. Each context shows the number of executed blocks, with and without callees.
/// Each edge shows the number of calls, or that the function was inlined. Vertices for merged calls
/// are dashed. Vertices for parts left out of the path are dotted.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn context_dot(
    out: &mut dyn Write,
    tree: &ContextTree,
    frames: &Frames<'_>,
) -> Result<(), PresentError> {
    let all = tree.contexts.first().map_or(0, |host| host.total);
    writeln!(
        out,
        "// Calling contexts of blocks {} to {}.\ndigraph {{\n  node [shape=box, style=filled];",
        tree.window.first, tree.window.last
    )?;
    for (at, _) in tree.walk() {
        let context = &tree.contexts[at];
        let name = match context.frame {
            Frame::Host => "host",
            frame => frames.name(frame),
        };
        let label = format!(
            "{name}\n{} ({})\nitself {}",
            counted(context.total, "block"),
            percent(context.total, all),
            grouped(context.own)
        );
        let share = context.total as f64 / all.max(1) as f64;
        writeln!(
            out,
            "  c{at} [label={}, fillcolor=\"0.03 {:.2} 1.0\"];",
            quoted(&label),
            share.sqrt() * 0.6
        )?;
        if let Some(parent) = context.parent {
            let calls = match context.frame {
                Frame::Inlined(_) => quoted("inlined"),
                _ => quoted(&grouped(context.calls)),
            };
            writeln!(out, "  c{parent} -> c{at} [label={calls}];")?;
        }
        let shorter = format!("functions with fewer than {} blocks here", tree.limits.min);
        let deeper = format!("calls deeper than {}", tree.limits.depth);
        let rests = [
            ("s", context.shorter, shorter),
            ("d", context.deeper, deeper),
        ];
        if context.left_out > 0 {
            let share = percent(context.left_out, all);
            let label = format!(
                "left out of the path\n{} ({share})",
                counted(context.left_out, "block")
            );
            writeln!(
                out,
                "  l{at} [label={}, style=dotted];\n  c{at} -> l{at} [style=dotted];",
                quoted(&label)
            )?;
        }
        for (kind, rest, what) in rests {
            let Rest {
                calls,
                blocks,
                left_out,
            } = rest;
            if calls == 0 && blocks == 0 {
                continue;
            }
            let share = percent(blocks, all);
            let mut label = format!("{what}\n{} ({share})", counted(blocks, "block"));
            if left_out > 0 {
                label.push_str(&format!("\n{} of them left out", grouped(left_out)));
            }
            writeln!(
                out,
                "  {kind}{at} [label={}, style=dashed];\n  c{at} -> {kind}{at} [label={}, style=dashed];",
                quoted(&label),
                quoted(&grouped(calls))
            )?;
        }
    }
    writeln!(out, "}}")?;
    Ok(())
}
