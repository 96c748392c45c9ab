//! Writes a slice as a graph for Graphviz.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Write;

use afterimage_analyses::slices::{Edge, Operator, Why, grouped};
use afterimage_ids::{FuncId, OpId, OrigOffset};

use super::SliceReport;
use crate::PresentError;
use crate::dot::quoted;
use crate::plain::plain;

/// Writes the source lines of a slice, or its statements, with `edges` for the dependences that
/// occurred. Edges for control dependences are dashed, and edges for addresses are dotted. Code
/// without a line appears under its function's name.
///
/// # Errors
/// Returns an error if `out` fails.
pub(super) fn dot(
    out: &mut dyn Write,
    report: &SliceReport,
    edges: &BTreeSet<Edge>,
    by_line: bool,
) -> Result<(), PresentError> {
    let mut vertices: Vec<(String, bool)> = Vec::new();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut of: BTreeMap<Operator, usize> = BTreeMap::new();
    let begins = report.lines.iter().filter(|line| line.criterion);
    let begins: HashSet<_> = begins
        .map(|one| (&*one.source.file, one.source.line))
        .collect();
    for one in &report.statements {
        let name = plain(&one.function.name);
        let source = one.source.as_ref();
        let line = source.map_or(String::new(), |line| plain(&line.to_string()));
        let label = match (by_line, line) {
            (true, line) if !line.is_empty() => line,
            (true, _) => name,
            (false, line) => format!("{name} @{} {line}", OrigOffset(one.offset)),
        };
        let number = *numbers.entry(label.clone()).or_insert_with(|| {
            vertices.push((label, false));
            vertices.len() - 1
        });
        vertices[number].1 |= source.is_some_and(|at| begins.contains(&(&*at.path, at.line)));
        let operator = (FuncId::from_u32(one.function.index), OpId::from_u32(one.op));
        of.insert(operator, number);
    }
    writeln!(out, "digraph slice {{")?;
    writeln!(out, "  label={};", quoted(&report.title))?;
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
    // Some kinds of dependence share a style, so collect the edges in a set.
    for (user, on, style) in edges.collect::<BTreeSet<_>>() {
        writeln!(out, "  n{user} -> n{on}{style};")?;
    }
    writeln!(out, "}}")?;
    Ok(())
}
