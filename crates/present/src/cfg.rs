//! Reports the control-flow graph of a function, or an instrumented module, for programs.

use std::io::Write;

use afterimage_ids::{BlockId, CounterId, EdgeId};
use afterimage_program::{BlockKind, Function, dump};
use schemars::JsonSchema;
use serde::Serialize;

use crate::document::objects;
use crate::document::{Document, NoRows, begin};
use crate::number::counted;
use crate::render::{Format, Render};
use crate::table::plain;
use crate::{PresentError, Style};

/// The control-flow graph of a function.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CfgDocument {
    /// The function.
    pub function: objects::Function,
    /// The block where the function begins.
    pub root: u32,
    /// The block where the function ends.
    pub exit: u32,
    /// The function's blocks.
    pub blocks: Vec<CfgBlock>,
    /// The function's edges.
    pub edges: Vec<CfgEdge>,
    /// The counters of blocks and edges, with `--counters`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<Vec<CfgCounter>>,
}

impl Document for CfgDocument {
    const NAME: &'static str = "cfg";
    const COMMAND: &'static str = "cfg";
    type Row = NoRows;
}

/// A block.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CfgBlock {
    /// Its number.
    pub block: u32,
    /// `code`, `dispatch` (where an exception chooses its handler) or `exit`.
    pub kind: &'static str,
    /// Its first operator.
    pub first_op: u32,
    /// The number of the operator after its last operator.
    pub end_op: u32,
    /// The offset of the first operator in the original module.
    pub offset: u32,
    /// The kind of its end, named as in a profile.
    pub end: String,
}

/// An edge.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CfgEdge {
    /// Its number.
    pub edge: u32,
    /// The source block.
    pub from: u32,
    /// The target block.
    pub to: u32,
    /// Its kind, named as in a profile.
    pub kind: String,
    /// Whether it is a branch back to a loop's header.
    pub back: bool,
    /// The operator that transfers control.
    pub op: Option<u32>,
}

/// A counter, and the block or edge that it counts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CfgCounter {
    /// Its number.
    pub counter: u32,
    /// The block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<u32>,
    /// The edge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edge: Option<u32>,
}

/// The control-flow graph of a function.
pub struct CfgView<'a> {
    /// The function.
    pub function: &'a Function,
    /// Its name.
    pub name: &'a str,
    /// The counters that instrumentation would add, if requested.
    pub counters: Option<Vec<CfgCounter>>,
}

impl Render for CfgView<'_> {
    const NAME: &'static str = "a control-flow graph";

    fn text(&self, out: &mut dyn Write, _: Style) -> Result<(), PresentError> {
        let Function { id, cfg, .. } = self.function;
        let (blocks, edges) = (cfg.blocks.len() as u64, cfg.edges.len() as u64);
        let name = plain(self.name);
        let (blocks, edges) = (counted(blocks, "block"), counted(edges, "edge"));
        writeln!(out, "{id} {name}: {blocks}, {edges}")?;
        write!(out, "{}", dump::text(cfg))?;
        for probe in self.counters.iter().flatten() {
            let counter = CounterId::from_u32(probe.counter);
            if let Some(block) = probe.block {
                writeln!(out, "{counter}: {}", BlockId::from_u32(block))?;
            }
            if let Some(edge) = probe.edge {
                writeln!(out, "{counter}: {}", EdgeId::from_u32(edge))?;
            }
        }
        Ok(())
    }

    fn dot(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        if self.counters.is_some() {
            return Err(self.refuse(Format::Dot));
        }
        Ok(write!(out, "{}", dump::dot(&self.function.cfg, self.name))?)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        let cfg = &self.function.cfg;
        let blocks = cfg.blocks.iter().map(|(id, block)| CfgBlock {
            block: id.as_u32(),
            kind: match block.kind {
                BlockKind::Code => "code",
                BlockKind::Dispatch(_) => "dispatch",
                BlockKind::Exit => "exit",
            },
            first_op: block.ops.start.as_u32(),
            end_op: block.ops.end.as_u32(),
            offset: block.offsets.start.0,
            end: block.end.to_string(),
        });
        let edges = cfg.edges.iter().map(|(id, edge)| CfgEdge {
            edge: id.as_u32(),
            from: edge.from.as_u32(),
            to: edge.to.as_u32(),
            kind: edge.kind.to_string(),
            back: edge.back,
            op: edge.op.map(|op| op.as_u32()),
        });
        let document = CfgDocument {
            function: objects::Function {
                index: self.function.id.as_u32(),
                name: self.name.to_owned(),
            },
            root: cfg.graph.root().as_u32(),
            exit: cfg.graph.exit().as_u32(),
            blocks: blocks.collect(),
            edges: edges.collect(),
            counters: self.counters.clone(),
        };
        begin(out, &document)
    }
}

/// An instrumented module.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InstrumentDocument {
    /// The module's path.
    pub output: String,
    /// The size of the module in bytes.
    pub bytes: usize,
    /// The number of counters.
    pub counters: u32,
    /// The name of the exported memory that holds the counters.
    pub memory_export: &'static str,
    /// Whether the counters are exact even in a dump taken during a host call, or after the program
    /// exited in one.
    pub standalone: bool,
}

impl Document for InstrumentDocument {
    const NAME: &'static str = "instrument";
    const COMMAND: &'static str = "instrument";
    type Row = NoRows;
}
