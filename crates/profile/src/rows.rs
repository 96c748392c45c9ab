//! The rows of a report: one type per kind of counted item.

use afterimage_ids::{BlockId, EdgeId, FuncId, OpId, OrigOffset};
use afterimage_program::{BlockEnd, EdgeKind, Location};

use crate::Line;

/// A function that the module defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionRow {
    /// The function.
    pub function: FuncId,
    /// The number of activations.
    pub entries: u64,
    /// The number of executed basic blocks.
    pub blocks: u64,
    /// The number of executed instructions, excluding callees.
    pub instructions: u64,
    /// The position of its declaration or, if that is unknown, of its first instruction with a
    /// position.
    pub position: Option<Location>,
    /// The start of its body in the module.
    pub offset: OrigOffset,
}

/// A source line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineRow {
    /// The line.
    pub line: Line,
    /// The number of arrivals at it.
    pub count: u64,
    /// The number of executed instructions that come from it.
    pub instructions: u64,
    /// The number of these instructions, plus those of library code that was inlined into the line
    /// or called from it; `None` if not requested.
    pub with_library: Option<u64>,
}

impl LineRow {
    /// Returns the number of instructions, including library code if its cost is known.
    pub fn cost(&self) -> u64 {
        self.with_library.unwrap_or(self.instructions)
    }
}

/// A basic block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRow {
    /// The function.
    pub function: FuncId,
    /// The block.
    pub block: BlockId,
    /// The kind of its end.
    pub end: BlockEnd,
    /// Its first operator.
    pub op: OpId,
    /// Its offset in the module.
    pub offset: OrigOffset,
    /// The number of executions.
    pub count: u64,
    /// The number of instructions executed in it.
    pub instructions: u64,
    /// The source position of its first instruction that has one.
    pub position: Option<Location>,
}

/// An edge of a control-flow graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeRow {
    /// The function.
    pub function: FuncId,
    /// The edge.
    pub edge: EdgeId,
    /// The vertex that it leaves.
    pub from: BlockId,
    /// The vertex that it enters.
    pub to: BlockId,
    /// The kind of control transfer.
    pub kind: EdgeKind,
    /// Whether it is a branch back to a loop's header.
    pub back: bool,
    /// The offset in the module of the operator that transfers control; `None` for an edge without
    /// one.
    pub offset: Option<OrigOffset>,
    /// The number of executions.
    pub count: u64,
    /// The source position of that operator.
    pub position: Option<Location>,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionRow {
    /// The function.
    pub function: FuncId,
    /// Its ordinal in the body.
    pub op: OpId,
    /// Its offset in the module.
    pub offset: OrigOffset,
    /// The block that it belongs to; `None` in code that cannot be reached.
    pub block: Option<BlockId>,
    /// The number of executions.
    pub count: u64,
    /// Its source position.
    pub position: Option<Location>,
    /// Its text in the WebAssembly text format.
    pub text: Box<str>,
}

/// A branch (`if`, `br_table`, or a kind of `br_if`) with the counts of its directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchRow {
    /// The function.
    pub function: FuncId,
    /// The block that it ends.
    pub block: BlockId,
    /// The operator.
    pub op: OpId,
    /// Its offset in the module.
    pub offset: OrigOffset,
    /// The number of executions of the branch.
    pub count: u64,
    /// Each direction with the number of times it was taken, in the order of the edges.
    pub ways: Vec<(EdgeKind, u64)>,
    /// Its source position.
    pub position: Option<Location>,
}

/// The direct calls from one function to another, or all calls to a function through tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRow {
    /// The function that calls.
    pub caller: FuncId,
    /// The function that is called; `None` for calls through a table.
    pub callee: Option<FuncId>,
    /// The number of calls.
    pub count: u64,
    /// The number of places in the caller that make these calls.
    pub sites: u32,
}

/// The rows of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// One row for each function.
    Functions(Vec<FunctionRow>),
    /// One row for each source line.
    Lines(Vec<LineRow>),
    /// One row for each basic block.
    Blocks(Vec<BlockRow>),
    /// One row for each edge.
    Edges(Vec<EdgeRow>),
    /// One row for each instruction.
    Instructions(Vec<InstructionRow>),
}

impl Rows {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Rows::Functions(rows) => rows.len(),
            Rows::Lines(rows) => rows.len(),
            Rows::Blocks(rows) => rows.len(),
            Rows::Edges(rows) => rows.len(),
            Rows::Instructions(rows) => rows.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
