//! Writes the timestamp-annotated dynamic control-flow graph of a call (Zhang and Gupta 2001,
//! section 4.1).

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use afterimage_ids::BlockId;
use afterimage_program::{BlockKind, Function};
use afterimage_replay::whole_path::{DynamicGraph, GraphNodes, Whose};
use schemars::JsonSchema;
use serde::Serialize;

use crate::document::objects;
use crate::document::{Document, NoRows, begin};
use crate::dot::quoted;
use crate::number::{counted, grouped};
use crate::paths::{Whole, entries, series};
use crate::render::Render;
use crate::table::{Align::Left, Align::Right, Paint, Table, plain};
use crate::{PresentError, Style};

/// The maximum number of unexecuted blocks to draw. If there are more, only those next to executed
/// code are drawn.
const DRAWN: usize = 40;

/// The maximum number of blocks to list for a node in a table, unless all are requested.
const LONGEST: usize = 12;

/// Writes the graph as two tables: the nodes with their timestamps, and the edges.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn dynamic_cfg_text(
    out: &mut dyn Write,
    graph: &DynamicGraph,
    function: &Function,
    name: &str,
    whole: Whole,
    style: Style,
) -> Result<(), PresentError> {
    writeln!(out, "{}", title(graph, &plain(name)))?;
    writeln!(out)?;
    let mut nodes = Table::new(&[("times", Right), ("node", Left), ("timestamps", Left)]);
    for node in graph.graph.nodes() {
        nodes.row([
            grouped(node.timestamps.count()),
            match node.blocks.get(..LONGEST) {
                Some(beginning) if whole == Whole::Beginning && node.blocks.len() > LONGEST => {
                    format!("{}… +{}", dots(beginning), node.blocks.len() - LONGEST)
                }
                _ => dots(&node.blocks),
            },
            series(&node.timestamps, whole),
        ]);
    }
    nodes.write(out, style, |_| Paint::Plain)?;
    if !graph.graph.edges().is_empty() {
        writeln!(out)?;
        let mut edges = Table::new(&[("times", Right), ("from", Right), ("to", Left)]);
        for edge in graph.graph.edges() {
            edges.row([
                grouped(edge.count),
                first(graph, edge.from).to_string(),
                first(graph, edge.to).to_string(),
            ]);
        }
        edges.write(out, style, |_| Paint::Plain)?;
    }
    let never = never(graph, function);
    if !never.is_empty() {
        let noun = counted(never.len() as u64, "block");
        let numbers: Vec<_> = never.iter().map(|b| b.as_u32().to_string()).collect();
        writeln!(out, "\nnot executed: {noun}: {}", numbers.join(" "))?;
    }
    Ok(())
}

/// Writes the graph in the language of Graphviz: nodes with their blocks and timestamps, edges with
/// their counts. Code of the function that this call never executed is grey and dashed. If there is
/// too much such code, only the parts next to executed code are drawn.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn dynamic_cfg_dot(
    out: &mut dyn Write,
    graph: &DynamicGraph,
    function: &Function,
    name: &str,
) -> Result<(), PresentError> {
    writeln!(
        out,
        "digraph {{\n  label={};\n  node [shape=box];",
        quoted(&title(graph, name))
    )?;
    // The node of each block.
    let mut place: BTreeMap<BlockId, usize> = BTreeMap::new();
    for (k, node) in graph.graph.nodes().iter().enumerate() {
        place.extend(node.blocks.iter().map(|&block| (block, k)));
        let label = format!(
            "{}\n{}",
            wrapped(&node.blocks),
            series(&node.timestamps, Whole::Beginning).replace(", …", ",\n…")
        );
        let fill = "style=filled, fillcolor=\"0.03 0.15 1.0\"";
        writeln!(out, "  n{k} [label={}, {fill}];", quoted(&label))?;
    }
    for edge in graph.graph.edges() {
        let label = quoted(&grouped(edge.count));
        writeln!(out, "  n{} -> n{} [label={label}];", edge.from, edge.to)?;
    }
    let cfg = &function.cfg;
    // The edges of the function that lead from or to code that was not executed.
    let never = never(graph, function);
    let code = |block: BlockId| cfg.blocks[block].kind == BlockKind::Code;
    let edges = cfg.edges.values().filter(|edge| {
        let both = place.contains_key(&edge.from) && place.contains_key(&edge.to);
        // If there are too many blocks, draw only those where the call could have taken a different
        // path.
        let near = never.len() <= DRAWN || place.contains_key(&edge.from);
        code(edge.from) && code(edge.to) && !both && near
    });
    let edges: BTreeSet<_> = edges.map(|edge| (edge.from, edge.to)).collect();
    let gray = "color=gray, fontcolor=gray, style=dashed";
    let targets: BTreeSet<_> = edges.iter().map(|edge| edge.1).collect();
    let mut drawn = 0;
    for &block in &never {
        if never.len() <= DRAWN || targets.contains(&block) {
            let label = quoted(&block.as_u32().to_string());
            writeln!(out, "  b{} [label={label}, {gray}];", block.as_u32())?;
            drawn += 1;
        }
    }
    if drawn < never.len() {
        let more = counted((never.len() - drawn) as u64, "block").replacen(' ', " more ", 1);
        let label = quoted(&format!("{more}\nnot executed"));
        writeln!(
            out,
            "  more [label={label}, shape=plaintext, fontcolor=gray];"
        )?;
    }
    let vertex = |block: BlockId| match place.get(&block) {
        Some(k) => format!("n{k}"),
        None => format!("b{}", block.as_u32()),
    };
    for (from, to) in edges {
        writeln!(out, "  {} -> {} [{gray}];", vertex(from), vertex(to))?;
    }
    writeln!(out, "}}")?;
    Ok(())
}

/// The dynamic control-flow graph of a call to a function, or of a path trace.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DynamicCfgDocument {
    /// The function.
    pub function: objects::Function,
    /// The call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<DynamicCall>,
    /// The path trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<DynamicTrace>,
    /// The number of executed blocks.
    pub blocks: u64,
    /// The number of steps.
    pub steps: u64,
    /// The nodes.
    pub nodes: Vec<DynamicNode>,
    /// The edges.
    pub edges: Vec<DynamicEdge>,
    /// The blocks of the function that were not executed.
    pub not_executed: Vec<u32>,
}

impl Document for DynamicCfgDocument {
    const NAME: &'static str = "dynamic-cfg";
    const COMMAND: &'static str = "cfg --dynamic";
    type Row = NoRows;
}

/// A call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DynamicCall {
    /// The number of the call, from 1.
    pub number: u64,
    /// The number of calls.
    pub of: u64,
    /// The time of its first block.
    pub entered_t: u64,
    /// Whether it returned.
    pub returned: bool,
}

/// A path trace.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DynamicTrace {
    /// The number of the path trace, from 1.
    pub number: usize,
    /// The number of distinct path traces of the function.
    pub of: usize,
    /// The number of calls that took it.
    pub calls: u64,
}

/// Blocks that were always executed in succession.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DynamicNode {
    /// The blocks.
    pub blocks: Vec<u32>,
    /// The number of executions.
    pub count: u64,
    /// The steps at which the blocks were executed, as series: `[l]` is one step, `[l, h]` all
    /// steps from `l` to `h`, and `[l, h, s]` every `s`-th step from `l` to `h`.
    pub timestamps: Vec<Vec<u64>>,
}

/// Two nodes that were executed in succession.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DynamicEdge {
    /// The index of the first node in `nodes`.
    pub from: usize,
    /// The index of the second node in `nodes`.
    pub to: usize,
    /// The number of occurrences.
    pub count: u64,
}

/// Writes the graph as one JSON document.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn dynamic_cfg_json(
    out: &mut dyn Write,
    graph: &DynamicGraph,
    function: &Function,
    name: &str,
) -> Result<(), PresentError> {
    let (call, trace) = match graph.whose {
        Whose::Call {
            number,
            of,
            entered,
            returned,
        } => {
            let call = DynamicCall {
                number,
                of,
                entered_t: entered,
                returned,
            };
            (Some(call), None)
        }
        Whose::Trace { number, of, calls } => (None, Some(DynamicTrace { number, of, calls })),
    };
    let numbers = |blocks: &[BlockId]| {
        blocks
            .iter()
            .map(|block| block.as_u32())
            .collect::<Vec<_>>()
    };
    let nodes = graph.graph.nodes().iter().map(|node| DynamicNode {
        blocks: numbers(&node.blocks),
        count: node.timestamps.count(),
        timestamps: entries(&node.timestamps),
    });
    let edges = graph.graph.edges().iter().map(|edge| DynamicEdge {
        from: edge.from,
        to: edge.to,
        count: edge.count,
    });
    let document = DynamicCfgDocument {
        function: objects::Function {
            index: graph.function.as_u32(),
            name: name.to_owned(),
        },
        call,
        trace,
        blocks: graph.blocks,
        steps: graph.steps,
        nodes: nodes.collect(),
        edges: edges.collect(),
        not_executed: numbers(&never(graph, function)),
    };
    begin(out, &document)
}

fn title(graph: &DynamicGraph, name: &str) -> String {
    let whose = match graph.whose {
        Whose::Call {
            number,
            of,
            entered,
            returned,
        } => {
            let end = if returned {
                ""
            } else {
                ", open at the end of the run"
            };
            format!(
                "call {} of {}, begun at t={}{end}",
                grouped(number),
                grouped(of),
                grouped(entered)
            )
        }
        Whose::Trace { number, of, calls } => format!(
            "path trace {} of {}, taken by {}",
            grouped(number as u64),
            grouped(of as u64),
            counted(calls, "call")
        ),
    };
    let blocks = counted(graph.blocks, "block");
    let steps = match graph.nodes {
        GraphNodes::Blocks => String::new(),
        GraphNodes::Dynamic => format!(" in {}", counted(graph.steps, "step")),
    };
    format!("{name}, {whose}: {blocks}{steps}")
}

/// Returns the number of a node's first block, which names the node.
fn first(graph: &DynamicGraph, node: usize) -> u32 {
    let blocks = &graph.graph.nodes()[node].blocks;
    blocks.first().map_or(0, |block| block.as_u32())
}

/// Returns the function's blocks that the trace does not contain, ascending.
fn never(graph: &DynamicGraph, function: &Function) -> Vec<BlockId> {
    let nodes = graph.graph.nodes().iter();
    let mut executed: Vec<_> = nodes.flat_map(|node| node.blocks.iter().copied()).collect();
    executed.sort_unstable();
    let blocks = function.cfg.blocks.iter();
    let code = blocks.filter(|(_, block)| block.kind == BlockKind::Code);
    let code = code.map(|(id, _)| id);
    code.filter(|id| executed.binary_search(id).is_err())
        .collect()
}

fn dots(blocks: &[BlockId]) -> String {
    let numbers: Vec<_> = blocks.iter().map(|b| b.as_u32().to_string()).collect();
    numbers.join(".")
}

/// Breaks long chains into several lines.
fn wrapped(blocks: &[BlockId]) -> String {
    let lines: Vec<_> = blocks.chunks(12).map(dots).collect();
    lines.join(".\n")
}

/// The graph of a call, or of a path trace.
pub struct DynamicCfgView<'r> {
    /// The graph.
    pub graph: DynamicGraph,
    /// The function.
    pub function: &'r Function,
    /// Its name.
    pub name: &'r str,
    /// Whether the text form shows long lists in full.
    pub whole: Whole,
}

impl Render for DynamicCfgView<'_> {
    const NAME: &'static str = "a graph";

    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError> {
        let Self {
            graph,
            function,
            name,
            whole,
        } = self;
        dynamic_cfg_text(out, graph, function, name, *whole, style)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        dynamic_cfg_json(out, &self.graph, self.function, self.name)
    }

    fn dot(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        dynamic_cfg_dot(out, &self.graph, self.function, self.name)
    }
}
