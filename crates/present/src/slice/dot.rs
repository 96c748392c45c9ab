//! A slice as a graph for Graphviz.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use afterimage_analyses::slices::{Edge, Operator, SliceReport, Why, grouped};

use super::{SliceScene, short};
use crate::PresentError;
use crate::dot::quoted;

/// Writes the source lines of a slice, or its statements, and which depended on which in some execution: `edges`. Control is dashed, addresses are dotted. What has no line stands
/// under its function's name.
///
/// # Errors
/// If `out` fails.
pub fn slice_dot(
    out: &mut dyn Write,
    report: &SliceReport,
    scene: &SliceScene<'_>,
    edges: &BTreeSet<Edge>,
    by_line: bool,
) -> Result<(), PresentError> {
    let mut vertices: Vec<(String, bool)> = Vec::new();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut of: BTreeMap<Operator, usize> = BTreeMap::new();
    for one in &report.operators {
        let label = match (by_line, one.line) {
            (true, Some(line)) => short(scene, line),
            (true, None) => scene.name(one.function),
            (false, line) => {
                let line = line.map_or(String::new(), |line| short(scene, line));
                format!("{} @{} {line}", scene.name(one.function), one.offset)
            }
        };
        let begins = one.line.is_some_and(|line| scene.begins(line));
        let number = *numbers.entry(label.clone()).or_insert_with(|| {
            vertices.push((label, false));
            vertices.len() - 1
        });
        vertices[number].1 |= begins;
        of.insert((one.function, one.op), number);
    }
    writeln!(out, "digraph slice {{")?;
    writeln!(out, "  label={};", quoted(scene.title))?;
    writeln!(out, "  node [shape=box, fontname=\"monospace\"];")?;
    for (number, (label, begins)) in vertices.iter().enumerate() {
        let style = if *begins { ", penwidth=3" } else { "" };
        writeln!(out, "  n{number} [label={}{style}];", quoted(label))?;
    }
    let edges = grouped(edges, |operator| of.get(&operator).copied());
    let edges = edges.into_keys().map(|(user, on, why)| {
        let style = match why {
            Why::Data => "",
            Why::Address => " [style=dotted]",
            Why::Control | Why::Moved => " [style=dashed]",
        };
        (user, on, style)
    });
    // Two kinds look alike.
    for (user, on, style) in edges.collect::<BTreeSet<_>>() {
        writeln!(out, "  n{user} -> n{on}{style};")?;
    }
    writeln!(out, "}}")?;
    Ok(())
}
