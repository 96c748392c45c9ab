//! Statements in static single assignment form.
//!
//! A statement is an operator that yields a value or has an effect. `local.get`, `local.set`,
//! `local.tee`, `drop`, `nop`, the markers (`block`, `loop`, `else`, `end`, `try_table`) and
//! constants are not statements. The first four only name or discard values, which this form makes
//! superfluous. A constant is a value without a statement.
//!
//! Locals and the slots of the operand stack are the variables. A φ merges different values of a
//! variable, and is not a statement. A value that a branch carries is not an operand of the branch,
//! but flows to the φ at its target.

use std::ops::Range;

use afterimage_ids::{BlockId, EdgeId, OpId, PrimaryMap, StmtId, ValueId};
use wasmparser::ValType;

mod build;
mod effect;
mod minimize;
mod resolve;
mod sites;
mod walk;

pub(crate) use effect::is_out_of_bounds;
pub use effect::{Effect, MemoryStore};

/// The statements and values of one function, without unreachable code.
#[derive(Clone, Debug)]
pub struct Ssa {
    /// All values of the function.
    pub values: PrimaryMap<ValueId, Value>,
    /// The statements, in layout order.
    pub statements: PrimaryMap<StmtId, Statement>,
    /// The φs, ascending by block.
    phis: Vec<Phi>,
    /// The operands of all statements.
    operands: Vec<ValueId>,
    /// For each edge into EXIT, ascending, the values that the function returns over that edge.
    returns: Vec<(EdgeId, Box<[ValueId]>)>,
}

/// A value that statements use or define.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// The type of the value. References are nullable and of the most general type of their kind.
    pub ty: ValType,
    /// The place where the value is defined.
    pub def: ValueDef,
}

/// The definition of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueDef {
    /// The function's parameter with this index.
    Param(u32),
    /// The initial value of the local with this index, which is zero or null.
    Initial(u32),
    /// The constant that this operator pushes.
    Constant(OpId),
    /// A result of a statement.
    Result {
        /// The statement that yields the result.
        statement: StmtId,
        /// The index of the result.
        index: u32,
    },
    /// A φ of this block.
    Phi(BlockId),
    /// A value that a handler receives. The edge, which is a [`Catch`](crate::EdgeKind::Catch),
    /// defines the value.
    Caught {
        /// The edge to the handler.
        edge: EdgeId,
        /// The index of the value.
        index: u32,
    },
}

/// An operator that yields a value or has an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The operator in the function's body.
    pub op: OpId,
    /// The block that contains the statement.
    pub block: BlockId,
    /// The effect of the statement in addition to its results.
    pub effect: Effect,
    /// The values that the statement yields. The last value is topmost on the stack. The function
    /// returns the results of a tail call.
    pub results: Range<ValueId>,
    /// The positions of the statement's operands in the list of all operands.
    operands: Range<u32>,
}

/// A φ, which merges values at the start of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phi {
    /// The block that starts with the φ.
    pub block: BlockId,
    /// The value that the φ defines.
    pub value: ValueId,
    /// One value per edge into the block, in the order of
    /// [`FlowGraph::in_edges`](afterimage_graph::FlowGraph::in_edges).
    pub operands: Box<[ValueId]>,
}

impl Ssa {
    /// Returns the values that a statement takes from the stack. The last value is topmost. A
    /// branch takes its condition or index, not the values that it carries.
    pub fn operands(&self, statement: StmtId) -> &[ValueId] {
        let range = &self.statements[statement].operands;
        &self.operands[range.start as usize..range.end as usize]
    }

    /// Returns the first statement that uses the constant that an operator pushes. O(values +
    /// operands).
    pub fn taker_of(&self, constant: OpId) -> Option<OpId> {
        let mut values = self.values.iter();
        let pushed = |value: &Value| value.def == ValueDef::Constant(constant);
        let (pushed, _) = values.find(|(_, value)| pushed(value))?;
        let mut statements = self.statements.iter();
        let taker = statements.find(|(at, _)| self.operands(*at).contains(&pushed))?;
        Some(taker.1.op)
    }

    /// Returns all φs, ascending by block.
    pub fn all_phis(&self) -> &[Phi] {
        &self.phis
    }

    /// Returns the φs of a block. O(log φs).
    pub fn phis(&self, block: BlockId) -> &[Phi] {
        let start = self.phis.partition_point(|phi| phi.block < block);
        let count = self.phis[start..].partition_point(|phi| phi.block == block);
        &self.phis[start..start + count]
    }

    /// Returns the statement for an operator, if the operator is a reachable statement. O(log
    /// statements).
    pub fn statement_at(&self, op: OpId) -> Option<StmtId> {
        let statements = self.statements.as_values_slice();
        let found = statements.binary_search_by_key(&op, |statement| statement.op);
        found.ok().map(|i| StmtId::from_u32(i as u32))
    }

    /// Returns the values that the function returns over an edge into EXIT. An exception returns no
    /// values. A tail call has none in this list, because its own results are the function's
    /// results.
    pub fn returned(&self, edge: EdgeId) -> &[ValueId] {
        let found = self.returns.binary_search_by_key(&edge, |(edge, _)| *edge);
        found.map_or(&[], |i| &self.returns[i].1)
    }
}
