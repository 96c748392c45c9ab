//! Defines the rows of a report, with one type per kind of counted item.

use afterimage_ids::{BlockId, EdgeId, FuncId, OpId, OrigOffset};
use afterimage_program::{BlockEnd, EdgeKind, Location};

use crate::Line;

/// The counts of a function that the module defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionRow {
    /// The function that was counted.
    pub function: FuncId,
    /// The number of activations.
    pub entries: u64,
    /// The number of executed basic blocks.
    pub blocks: u64,
    /// The number of executed instructions, excluding callees.
    pub instructions: u64,
    /// The position of the function's declaration or, if that is unknown, of its first instruction
    /// with a position.
    pub position: Option<Location>,
    /// The start of the function's body in the module.
    pub offset: OrigOffset,
}

/// The counts of a source line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineRow {
    /// The line that was counted.
    pub line: Line,
    /// The number of arrivals at the line.
    pub count: u64,
    /// The number of executed instructions that come from the line.
    pub instructions: u64,
    /// The number of these instructions, plus the instructions of library code that was inlined
    /// into the line or called from it. This is `None` unless requested.
    pub with_library: Option<u64>,
}

impl LineRow {
    /// Returns the number of instructions, including library code if its cost is known.
    pub fn cost(&self) -> u64 {
        self.with_library.unwrap_or(self.instructions)
    }
}

/// The counts of a basic block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRow {
    /// The function that contains the block.
    pub function: FuncId,
    /// The block that was counted.
    pub block: BlockId,
    /// The end of the block.
    pub end: BlockEnd,
    /// The block's first operator.
    pub op: OpId,
    /// The block's offset in the module.
    pub offset: OrigOffset,
    /// The number of executions.
    pub count: u64,
    /// The number of instructions executed in the block.
    pub instructions: u64,
    /// The source position of the block's first instruction with a position.
    pub position: Option<Location>,
}

/// The counts of an edge of a control-flow graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeRow {
    /// The function that contains the edge.
    pub function: FuncId,
    /// The edge that was counted.
    pub edge: EdgeId,
    /// The vertex that the edge leaves.
    pub from: BlockId,
    /// The vertex that the edge enters.
    pub to: BlockId,
    /// The kind of control transfer.
    pub kind: EdgeKind,
    /// Whether the edge is a branch back to a loop's header.
    pub back: bool,
    /// The offset in the module of the operator that transfers control, or `None` if the edge has
    /// no operator.
    pub offset: Option<OrigOffset>,
    /// The number of executions.
    pub count: u64,
    /// The source position of the operator that transfers control.
    pub position: Option<Location>,
}

/// The counts of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionRow {
    /// The function that contains the instruction.
    pub function: FuncId,
    /// The instruction's ordinal in the function's body.
    pub op: OpId,
    /// The instruction's offset in the module.
    pub offset: OrigOffset,
    /// The block to which the instruction belongs, or `None` in code that cannot be reached.
    pub block: Option<BlockId>,
    /// The number of executions.
    pub count: u64,
    /// The instruction's source position.
    pub position: Option<Location>,
    /// The instruction in the WebAssembly text format.
    pub text: Box<str>,
}

/// A branch (`if`, `br_table`, or a kind of `br_if`) with the counts of its directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchRow {
    /// The function that contains the branch.
    pub function: FuncId,
    /// The block that the branch ends.
    pub block: BlockId,
    /// The operator of the branch.
    pub op: OpId,
    /// The branch's offset in the module.
    pub offset: OrigOffset,
    /// The number of executions of the branch.
    pub count: u64,
    /// Each direction with the number of times that it was taken, in the order of the edges.
    pub ways: Vec<(EdgeKind, u64)>,
    /// The branch's source position.
    pub position: Option<Location>,
}

/// The direct calls from one function to another, or all calls that a function makes through
/// tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRow {
    /// The function that makes the calls.
    pub caller: FuncId,
    /// The function that is called, or `None` for calls through tables.
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
