//! The control-flow graph of one function, linked to the operators of its body.
//!
//! A block ends at a control operator, before the target of a branch, and at a call. So the
//! sequence of completed blocks is the order of execution. Among the operators that may trap, only
//! `unreachable`, throws and indirect calls end a block. Any other trap appears as a single virtual
//! edge at the end of the run.
//!
//! Blocks without operators are not created, so an edge leads straight to the next block with
//! operators. The exception is the root, which exists even when it is empty, so that it has no
//! predecessor. Unreachable code has no block.

use std::ops::Range;

use afterimage_graph::FlowGraph;
use afterimage_ids::{BlockId, EdgeId, FuncId, OpId, OrigOffset, PrimaryMap, TypeId};

/// The control-flow graph of a function.
#[derive(Clone, Debug)]
pub struct Cfg {
    /// The blocks. Code comes first, in layout order from the root on. Then come the dispatch
    /// vertices in the order of their `try_table`s, the function's own dispatch vertex, and EXIT.
    pub blocks: PrimaryMap<BlockId, Block>,
    /// The edges, ordered by the block that they leave and then by slot. Not taken comes before
    /// taken, `then` before `else`, and return before throw. The targets of a `br_table` are
    /// ordered by their first position in the table, with the default last. The clauses of a
    /// `try_table` come in order, with unwinding last.
    pub edges: PrimaryMap<EdgeId, Edge>,
    /// The same vertices and edges, in the form that graph algorithms use.
    pub graph: FlowGraph,
}

/// A vertex of a control-flow graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The kind of the vertex.
    pub kind: BlockKind,
    /// The operators from the block's first to its last, as ordinals in the body. Markers (`block`,
    /// `loop`, `end`, `else`, `try_table`) between them belong to the block. Operators of
    /// unreachable code never lie between them. The range is empty for an empty root, dispatch
    /// vertices and EXIT.
    pub ops: Range<OpId>,
    /// The offsets of the block's operators in the original module.
    pub offsets: Range<OrigOffset>,
    /// The end of the block.
    pub end: BlockEnd,
}

/// The kind of a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// A basic block of code.
    Code,
    /// The place where an exception raised inside a `try_table` chooses its handler. The vertex
    /// executes nothing. `None` denotes the function's own dispatch vertex, from which the
    /// exception leaves the function.
    Dispatch(Option<OpId>),
    /// The EXIT vertex, where control leaves the function.
    Exit,
}

/// The end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockEnd {
    /// Control falls into the next block, or from the end of a then-arm past the else-arm.
    Fall,
    /// An unconditional `br`.
    Jump,
    /// A `br_if` or an `if`.
    Branch,
    /// A `br_table`.
    Table,
    /// A call that returns to this function.
    Call(Callee),
    /// A call that replaces this activation.
    TailCall(Callee),
    /// A `return`, or the function's end.
    Return,
    /// A `throw` or a `throw_ref`.
    Throw,
    /// An `unreachable`, which traps.
    Unreachable,
    /// A dispatch vertex, which tries the clauses of its `try_table` in order.
    Dispatch,
    /// The EXIT vertex, which has no end.
    Exit,
}

/// The target of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// The function itself, imported or defined.
    Direct(FuncId),
    /// Any function of this type in a table.
    Indirect {
        /// The index of the table.
        table: u32,
        /// The expected type.
        ty: TypeId,
    },
}

/// An edge of a control-flow graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The vertex that the edge leaves.
    pub from: BlockId,
    /// The vertex that the edge enters.
    pub to: BlockId,
    /// The kind of control transfer.
    pub kind: EdgeKind,
    /// Whether the edge is a branch back to a loop's header.
    pub back: bool,
    /// The operator that transfers control: for example, a branch, a call or a `throw`. For
    /// [`EdgeKind::Fall`], it is the last operator of `from`, or `None` if an empty root falls into
    /// the next block or EXIT. For edges out of a dispatch vertex, it is the `try_table`, or `None`
    /// for the function's own dispatch vertex.
    pub op: Option<OpId>,
}

/// The kind of control transfer, which determines where a probe on the edge goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeKind {
    /// Control continues with the next operator or, from the end of a then-arm, after the else-arm.
    /// A probe goes right after `op`.
    Fall,
    /// An unconditional `br`. A probe goes right before `op`.
    Jump,
    /// A taken `br_if`.
    Taken,
    /// A `br_if` that is not taken. A probe goes right after `op`.
    NotTaken,
    /// An `if` with a true condition. A probe goes right after `op`.
    Then,
    /// An `if` with a false condition. A probe goes right after its `else`, which may have to be
    /// added.
    Else,
    /// An edge of a `br_table` to the target with this label depth. Each distinct depth has one
    /// edge.
    Table(u32),
    /// An edge from a call to the next operator. A probe goes right after `op`.
    CallReturn,
    /// An edge from a call to the dispatch vertex of the innermost `try_table` that encloses the
    /// call.
    CallThrow,
    /// An edge from `throw` or `throw_ref` to a dispatch vertex. A probe goes right before `op`.
    Throw,
    /// An edge from a dispatch vertex to a handler, given by the clause's position in its
    /// `try_table`.
    Catch(u32),
    /// An edge from a dispatch vertex to the next enclosing dispatch vertex, or from the function's
    /// own dispatch vertex to EXIT.
    Unwind,
    /// An edge to EXIT by `return` or a tail call. A probe goes right before `op`. A branch to the
    /// function's own label keeps the kind of the branch. Reaching the function's end is a `Fall`.
    Return,
}
