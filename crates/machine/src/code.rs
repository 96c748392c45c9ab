//! The code of a node: a path of blocks as one straight line.

use afterimage_ids::{BlockId, FuncId, OpId};
use afterimage_program::Callee;

use crate::inst::{Code, Inst, Register};

/// A compiled path of blocks.
///
/// Moves between locals and the operand stack are eliminated: an instruction's operands are the
/// registers of the instructions, constants or variables that provide their values.
#[derive(Clone, Debug)]
pub struct NodeCode {
    /// The function of these blocks.
    pub function: FuncId,
    /// The first block.
    pub first: BlockId,
    /// The vertex where the activation continues; `None` if it or the run ends.
    pub next: Option<BlockId>,
    /// The number of the function's variables, which is also the first register of a constant.
    pub variables: u32,
    /// The constants.
    pub constants: Box<[u64]>,
    /// The instructions, in order.
    pub insts: Box<[Inst]>,
    /// The variables that are written, each once, with their sources at the end.
    pub outputs: Box<[(u32, Register)]>,
    /// The variables that instructions, the end or other variables' outputs read, ascending.
    pub inputs: Box<[u32]>,
    /// How the node ends.
    pub end: NodeEnd,
    /// Upper halves of the constants that are vectors, by register.
    pub wide_constants: Box<[(Register, u64)]>,
    /// By vector instruction, identified by its register: the third operand and the immediate.
    pub vectors: Box<[(Register, VectorExtra)]>,
    /// The lists of indices with which a `br_table` takes its direction.
    pub lists: Box<[TableIndices]>,
    /// Whether any value is a vector.
    pub wide: bool,
    /// The blocks in which values were moved before they were used, by user.
    pub moved: Box<[Moved]>,
}

/// A value, such as a constant or an earlier one, that was moved in a block that neither made nor
/// used it. Which value it is depends on the execution of that block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moved {
    /// The user of the value.
    pub taker: Taker,
    /// The block's position among those of the node.
    pub block: u32,
}

/// The user of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Taker {
    /// An instruction, at this operand position.
    Operand(u32, u8),
    /// A variable, as its final value.
    Output(u32),
    /// A call through a table, as its index.
    Index,
    /// A call, as the argument at this position; or a return or a throw, likewise.
    Given(u32),
}

/// Additional data of a vector instruction.
#[derive(Clone, Copy, Debug)]
pub struct VectorExtra {
    /// The third operand.
    pub c: Register,
    /// Lanes, shuffle masks.
    pub immediate: u128,
}

/// The indices with which a `br_table` takes a given direction.
#[derive(Clone, Debug)]
pub struct TableIndices {
    /// Ascending.
    pub indices: Box<[u32]>,
    /// All indices from this one on are also included.
    pub from: Option<u32>,
}

impl TableIndices {
    /// Whether it contains an index.
    #[inline]
    pub fn has(&self, index: u32) -> bool {
        self.from.is_some_and(|from| index >= from) || self.indices.binary_search(&index).is_ok()
    }
}

/// How a node ends.
#[derive(Clone, Debug)]
pub enum NodeEnd {
    /// The activation continues with another node or, if there is none, the run ends inside the
    /// last block.
    Next,
    /// A call. Its results go to variables from `results` on. Then the activation continues, or
    /// returns them if there is no `next`.
    Call {
        /// The callee.
        callee: Callee,
        /// The index in the table, for a call through one.
        index: Option<Register>,
        /// The arguments.
        arguments: Box<[Register]>,
        /// The variable for the first result.
        results: u32,
        /// The block with the call.
        block: BlockId,
    },
    /// A call in place of this activation.
    TailCall {
        /// The callee.
        callee: Callee,
        /// The index in the table, for a call through one.
        index: Option<Register>,
        /// The arguments.
        arguments: Box<[Register]>,
    },
    /// The activation returns.
    Return(Box<[Register]>),
    /// An exception is thrown in this block.
    Throw {
        /// Its tag.
        tag: u32,
        /// The values that it carries.
        values: Box<[Register]>,
        /// The block.
        block: BlockId,
    },
    /// An exception is thrown again.
    Rethrow {
        /// The reference to it.
        exception: Register,
        /// The block.
        block: BlockId,
    },
    /// `unreachable`.
    Trap,
}

/// The function number of nodes that were not compiled yet; no function has it.
const MISSING: u32 = u32::MAX - 1;

impl NodeCode {
    /// Returns the instruction for an operator, if any: the one with its result, or the one that
    /// writes. (An atomic operator has several.)
    pub fn inst_of(&self, op: OpId) -> Option<usize> {
        let checks = |code| matches!(code, Code::Aligned(_));
        let mut insts = self.insts.iter();
        insts.position(|inst| inst.op == op && !checks(inst.code))
    }

    /// A placeholder for a node that was not compiled yet. It cannot be executed, because the
    /// machine never waits for its function.
    pub(crate) fn missing() -> Self {
        Self {
            function: FuncId::from_u32(MISSING),
            first: BlockId::from_u32(0),
            next: None,
            variables: 0,
            constants: Box::default(),
            insts: Box::default(),
            outputs: Box::default(),
            inputs: Box::default(),
            end: NodeEnd::Next,
            wide_constants: Box::default(),
            vectors: Box::default(),
            lists: Box::default(),
            wide: false,
            moved: Box::default(),
        }
    }

    pub(crate) fn is_missing(&self) -> bool {
        self.function.as_u32() == MISSING
    }

    /// The number of registers that it needs.
    pub fn registers(&self) -> usize {
        self.variables as usize + self.constants.len() + self.insts.len()
    }

    /// The blocks in which a value was moved before its use. O(log of all).
    pub fn moved(&self, taker: Taker) -> &[Moved] {
        let first = self.moved.partition_point(|moved| moved.taker < taker);
        let all = &self.moved[first..];
        &all[..all.partition_point(|moved| moved.taker == taker)]
    }

    /// The register of the first instruction.
    pub fn first_result(&self) -> u32 {
        self.variables + self.constants.len() as u32
    }

    /// The additional data of the vector instruction at this position.
    pub fn vector(&self, inst: usize) -> Option<VectorExtra> {
        let register = self.first_result() + inst as u32;
        let found = self.vectors.binary_search_by_key(&register, |(r, _)| *r);
        found.ok().map(|found| self.vectors[found].1)
    }

    /// The source of a register's value.
    pub fn source(&self, register: Register) -> Operand {
        let results = self.first_result();
        if register >= results {
            Operand::Result((register - results) as usize)
        } else if register >= self.variables {
            Operand::Constant(self.constants[(register - self.variables) as usize])
        } else {
            Operand::Variable(register)
        }
    }
}

/// The source of a register's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A variable of the function at the node's start.
    Variable(u32),
    /// A constant: its bits, the lower half of a vector's.
    Constant(u64),
    /// The result of the instruction at this position.
    Result(usize),
}
