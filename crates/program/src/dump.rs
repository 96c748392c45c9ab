//! Writes control-flow graphs as text and as Graphviz DOT.

use std::fmt::{self, Write};

use crate::{Block, BlockEnd, BlockKind, Callee, Cfg, Edge, EdgeKind};

/// Returns a graph as text, with one line per vertex, and one line per edge under the vertex that
/// it leaves.
///
/// ```text
/// block0: op0..op3 0x2a..0x31 branch
///   edge0: block1 not taken op2
///   edge1: block3 taken op2
/// ```
pub fn text(cfg: &Cfg) -> String {
    let mut out = String::new();
    for (id, block) in &cfg.blocks {
        let _ = writeln!(out, "{id}: {block}");
        for &edge in cfg.graph.out_edges(id) {
            let _ = writeln!(out, "  {edge}: {}", cfg.edges[edge]);
        }
    }
    out
}

/// Returns a graph in Graphviz's DOT language. `name` becomes its title. Back edges are dashed, and
/// exceptional edges are red.
pub fn dot(cfg: &Cfg, name: &str) -> String {
    let mut out = String::from("digraph {\n");
    let _ = writeln!(out, "  label={};\n  node [shape=box];", quoted(name));
    for (id, block) in &cfg.blocks {
        let shape = match block.kind {
            BlockKind::Code => "box",
            BlockKind::Dispatch(_) => "diamond",
            BlockKind::Exit => "doublecircle",
        };
        let label = quoted(&format!("{id}\n{block}"));
        let _ = writeln!(out, "  {} [label={label}, shape={shape}];", id.as_u32());
    }
    for (id, edge) in &cfg.edges {
        let style = match edge.kind {
            _ if edge.back => ", style=dashed",
            EdgeKind::CallThrow | EdgeKind::Throw | EdgeKind::Catch(_) | EdgeKind::Unwind => {
                ", color=red"
            }
            _ => "",
        };
        let (from, to) = (edge.from.as_u32(), edge.to.as_u32());
        let label = quoted(&format!("{id} {}", edge.kind));
        let _ = writeln!(out, "  {from} -> {to} [label={label}{style}];");
    }
    out.push_str("}\n");
    out
}

/// Returns a text as a string literal of DOT.
fn quoted(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!("\"{escaped}\"")
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            BlockKind::Code => {
                let (ops, offsets) = (&self.ops, &self.offsets);
                write!(
                    f,
                    "{}..{} {}..{} ",
                    ops.start, ops.end, offsets.start, offsets.end
                )?;
                write!(f, "{}", self.end)
            }
            BlockKind::Dispatch(Some(op)) => write!(f, "dispatch of {op}"),
            BlockKind::Dispatch(None) => f.write_str("dispatch of the function"),
            BlockKind::Exit => f.write_str("exit"),
        }
    }
}

impl fmt::Display for BlockEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fall => "fall",
            Self::Jump => "jump",
            Self::Branch => "branch",
            Self::Table => "table",
            Self::Call(callee) => return write!(f, "call {callee}"),
            Self::TailCall(callee) => return write!(f, "tail call {callee}"),
            Self::Return => "return",
            Self::Throw => "throw",
            Self::Unreachable => "unreachable",
            Self::Dispatch => "dispatch",
            Self::Exit => "exit",
        })
    }
}

impl fmt::Display for Callee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Direct(function) => write!(f, "{function}"),
            Self::Indirect { table, ty } => write!(f, "table{table} {ty}"),
        }
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.to, self.kind)?;
        if let Some(op) = self.op {
            write!(f, " {op}")?;
        }
        if self.back {
            f.write_str(" back")
        } else {
            Ok(())
        }
    }
}

impl fmt::Display for EdgeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fall => "fall",
            Self::Jump => "jump",
            Self::Taken => "taken",
            Self::NotTaken => "not taken",
            Self::Then => "then",
            Self::Else => "else",
            Self::Table(depth) => return write!(f, "table {depth}"),
            Self::CallReturn => "call return",
            Self::CallThrow => "call throw",
            Self::Throw => "throw",
            Self::Catch(clause) => return write!(f, "catch {clause}"),
            Self::Unwind => "unwind",
            Self::Return => "return",
        })
    }
}
