//! Writes counted graphs: a function's control-flow graph as DOT and as text, and the call graph as
//! DOT.

use std::collections::BTreeSet;
use std::io::Write;

use afterimage_ids::{EntityRef, FuncId, FunctionCounts};
use afterimage_profile::{FunctionProfile, Profile, Scope};
use afterimage_program::{BlockKind, EdgeKind, Function};

use crate::PresentError;
use crate::number::{counted, grouped};
use crate::plain::plain;

/// Writes a function's control-flow graph in the language of Graphviz, with the executions of every
/// block and edge. Code that never ran is grey. Back edges are dashed, and exceptional edges are
/// dotted.
///
/// # Errors
/// Returns an error if the function is imported, or `out` fails.
pub fn cfg_dot(
    out: &mut dyn Write,
    profile: &Profile<'_>,
    function: FuncId,
) -> Result<(), PresentError> {
    let (function, counts, derived) = graph_of(profile, function)?;
    let name = profile.names().function(function.id);
    writeln!(
        out,
        "digraph {{\n  label={};\n  node [shape=box];",
        quoted(name)
    )?;
    let most = derived.blocks.values().copied().max().unwrap_or(0);
    for (id, block) in &function.cfg.blocks {
        let count = derived.blocks[id];
        let shape = match block.kind {
            BlockKind::Code => "box",
            BlockKind::Dispatch(_) => "diamond",
            BlockKind::Exit => "doublecircle",
        };
        let color = if count == 0 {
            ", color=gray, fontcolor=gray"
        } else {
            ""
        };
        // The scale is logarithmic, from white to red, so that large ranges of counts remain
        // visible.
        let fill = match block.kind {
            BlockKind::Code if count > 0 => {
                let heat = f64::ln(count as f64 + 1.0) / f64::ln(most as f64 + 1.0);
                format!(", style=filled, fillcolor=\"0.03 {:.2} 1.0\"", heat * 0.6)
            }
            _ => String::new(),
        };
        let label = quoted(&format!("{id}\n{block}\n{}", grouped(count)));
        writeln!(
            out,
            "  {} [label={label}, shape={shape}{fill}{color}];",
            id.as_u32()
        )?;
    }
    for (id, edge) in &function.cfg.edges {
        let count = counts.edges[id.index()];
        let style = match edge.kind {
            _ if edge.back => ", style=dashed",
            EdgeKind::CallThrow | EdgeKind::Throw | EdgeKind::Catch(_) | EdgeKind::Unwind => {
                ", style=dotted"
            }
            _ => "",
        };
        let color = if count == 0 {
            ", color=gray, fontcolor=gray"
        } else {
            ""
        };
        let label = quoted(&format!("{} {}", edge.kind, grouped(count)));
        let (from, to) = (edge.from.as_u32(), edge.to.as_u32());
        writeln!(out, "  {from} -> {to} [label={label}{style}{color}];")?;
    }
    writeln!(out, "}}")?;
    Ok(())
}

/// Writes a function's control-flow graph as text: each vertex with the edges that leave it, and
/// their executions.
///
/// # Errors
/// Returns an error if the function is imported, or `out` fails.
pub fn cfg_text(
    out: &mut dyn Write,
    profile: &Profile<'_>,
    function: FuncId,
) -> Result<(), PresentError> {
    let (function, counts, derived) = graph_of(profile, function)?;
    let cells = derived.blocks.values().chain(&counts.edges);
    let width = cells.map(|&count| grouped(count).len()).max().unwrap_or(0);
    for (id, block) in &function.cfg.blocks {
        writeln!(
            out,
            "{:>width$}  {id}: {block}",
            grouped(derived.blocks[id])
        )?;
        for &edge in function.cfg.graph.out_edges(id) {
            let count = grouped(counts.edges[edge.index()]);
            writeln!(
                out,
                "{count:>width$}    {edge}: {}",
                function.cfg.edges[edge]
            )?;
        }
        let open = counts.open.iter().find(|open| open.0 == id);
        if let Some(&(_, open)) = open {
            writeln!(out, "{:>width$}    open at the end", grouped(open))?;
        }
    }
    Ok(())
}

/// Writes the calls that ran, from caller to callee, in the language of Graphviz. All calls through
/// tables by one caller go to one vertex, because counts do not show which functions these calls
/// reached.
///
/// # Errors
/// Returns an error if `out` fails or the profile cannot be evaluated.
pub fn calls_dot(
    out: &mut dyn Write,
    profile: &Profile<'_>,
    scope: &Scope,
) -> Result<(), PresentError> {
    writeln!(out, "// Calls that ran in this execution, and how often.")?;
    writeln!(out, "digraph {{\n  rankdir=LR;\n  node [shape=box];")?;
    let rows = profile.call_rows(scope)?;
    let ran: Vec<_> = rows.iter().filter(|row| row.count > 0).collect();
    let mut functions: BTreeSet<FuncId> = ran
        .iter()
        .flat_map(|row| [Some(row.caller), row.callee])
        .flatten()
        .collect();
    let entered = profile.function_rows(scope)?;
    functions.extend(
        entered
            .iter()
            .filter(|row| row.entries > 0)
            .map(|row| row.function),
    );
    for function in functions {
        let name = profile.names().function(function);
        let (label, style) = match profile.function(function) {
            Some((_, counts, derived)) => {
                let entries = counted(counts.entries, "call");
                let cost = counted(derived.instructions, "instruction");
                (format!("{name}\n{entries}\n{cost}"), "")
            }
            None => (format!("{name}\nimported"), ", style=dashed"),
        };
        writeln!(
            out,
            "  f{} [label={}{style}];",
            function.as_u32(),
            quoted(&label)
        )?;
    }
    if ran.iter().any(|row| row.callee.is_none()) {
        writeln!(out, "  table [label=\"through a table\", shape=ellipse];")?;
    }
    for row in ran {
        let callee = row
            .callee
            .map_or("table".into(), |callee| format!("f{}", callee.as_u32()));
        let label = quoted(&grouped(row.count));
        writeln!(
            out,
            "  f{} -> {callee} [label={label}];",
            row.caller.as_u32()
        )?;
    }
    writeln!(out, "}}")?;
    Ok(())
}

fn graph_of<'p, 'a>(
    profile: &'p Profile<'a>,
    function: FuncId,
) -> Result<(&'a Function, &'a FunctionCounts, &'p FunctionProfile), PresentError> {
    profile
        .function(function)
        .ok_or(PresentError::NoGraph(function.as_u32()))
}

/// Returns a string literal of DOT.
pub(crate) fn quoted(text: &str) -> String {
    let lines = text.split('\n').map(escaped);
    format!("\"{}\"", Vec::from_iter(lines).join("\\n"))
}

/// Escapes one line for a string literal of DOT.
pub(crate) fn escaped(line: &str) -> String {
    plain(line).replace('\\', "\\\\").replace('"', "\\\"")
}
