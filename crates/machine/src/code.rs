//! The code of a node: a path of blocks as one straight line.

use afterimage_ids::{BlockId, FuncId, OpId};
use afterimage_program::Callee;

use crate::inst::{Code, Inst, Register};

/// A path of blocks, compiled.
///
/// Moves between locals and the operand stack are gone: an instruction's operands are the registers of the instructions, constants or
/// variables where their values come from.
#[derive(Clone, Debug)]
pub struct NodeCode {
    /// Whose blocks these are.
    pub function: FuncId,
    /// The first block.
    pub first: BlockId,
    /// The vertex where the activation goes on; `None` if it ends, or the run does.
    pub next: Option<BlockId>,
    /// How many variables the function has: the first register of a constant.
    pub variables: u32,
    /// The constants.
    pub constants: Box<[u64]>,
    /// The instructions, in order.
    pub insts: Box<[Inst]>,
    /// The variables that are written, each once, and what they are at the end.
    pub outputs: Box<[(u32, Register)]>,
    /// The variables that instructions, the end or other variables' outputs read, ascending.
    pub inputs: Box<[u32]>,
    /// How it ends.
    pub end: NodeEnd,
    /// Upper halves of the constants that are vectors, by register.
    pub wide_constants: Box<[(Register, u64)]>,
    /// Per vector instruction, by its own register: the third operand and the immediate.
    pub vectors: Box<[(Register, VectorExtra)]>,
    /// The lists of indices that a `br_table` may have had.
    pub lists: Box<[TableIndices]>,
    /// Some value is a vector.
    pub wide: bool,
    /// Through which blocks values were moved before something took them, by who took them.
    pub moved: Box<[Moved]>,
}

/// A value was moved in another block than that of the instruction that made it, or of the one that takes it; or it is a constant, or was there before. That it is this value depends on the block's being executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moved {
    /// Who takes it.
    pub taker: Taker,
    /// The block's position among those of the node.
    pub block: u32,
}

/// Who takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Taker {
    /// An instruction, as its operand of this position.
    Operand(u32, u8),
    /// A variable, as what it is at the end.
    Output(u32),
    /// A call through a table, as the index.
    Index,
    /// A call, as the argument of this position; a return, as such a result; or a throw.
    Given(u32),
}

/// What a vector instruction has besides.
#[derive(Clone, Copy, Debug)]
pub struct VectorExtra {
    /// The third operand.
    pub c: Register,
    /// Lanes, shuffle masks.
    pub immediate: u128,
}

/// The indices with which a `br_table` takes one way.
#[derive(Clone, Debug)]
pub struct TableIndices {
    /// Ascending.
    pub indices: Box<[u32]>,
    /// Every index from this one on, too.
    pub from: Option<u32>,
}

impl TableIndices {
    /// Whether an index is one of them.
    #[inline]
    pub fn has(&self, index: u32) -> bool {
        self.from.is_some_and(|from| index >= from) || self.indices.binary_search(&index).is_ok()
    }
}

/// How a node ends.
#[derive(Clone, Debug)]
pub enum NodeEnd {
    /// The activation goes on with another node; without one the run ends inside the last block.
    Next,
    /// A call. Its results go to variables from `results` on; then the activation goes on, or returns these if
    /// there is no `next`.
    Call {
        /// Who is called.
        callee: Callee,
        /// The index in the table, for a call through one.
        index: Option<Register>,
        /// The arguments.
        arguments: Box<[Register]>,
        /// The variable that gets the first result.
        results: u32,
        /// The block with the call.
        block: BlockId,
    },
    /// A call in place of this activation.
    TailCall {
        /// Who is called.
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
        /// What it carries.
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

/// The number of the function of a node that was not compiled yet: none has it.
const MISSING: u32 = u32::MAX - 1;

impl NodeCode {
    /// The instruction that stands for an operator, if one does: that which gives its result, or the one that writes. (An atomic operator has several.)
    pub fn inst_of(&self, op: OpId) -> Option<usize> {
        let checks = |code| matches!(code, Code::Aligned(_));
        let mut insts = self.insts.iter();
        insts.position(|inst| inst.op == op && !checks(inst.code))
    }

    /// What stands for a node that was not compiled yet. It cannot be executed, because no function is waited for that it could be of.
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

    /// How many registers it needs.
    pub fn registers(&self) -> usize {
        self.variables as usize + self.constants.len() + self.insts.len()
    }

    /// The blocks through which a value was moved before somebody took it. O(log of all).
    pub fn moved(&self, taker: Taker) -> &[Moved] {
        let first = self.moved.partition_point(|moved| moved.taker < taker);
        let all = &self.moved[first..];
        &all[..all.partition_point(|moved| moved.taker == taker)]
    }

    /// The register of the first instruction.
    pub fn first_result(&self) -> u32 {
        self.variables + self.constants.len() as u32
    }

    /// What the vector instruction at this position has besides.
    pub fn vector(&self, inst: usize) -> Option<VectorExtra> {
        let register = self.first_result() + inst as u32;
        let found = self.vectors.binary_search_by_key(&register, |(r, _)| *r);
        found.ok().map(|found| self.vectors[found].1)
    }

    /// What stands in a register.
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

/// What stands in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A variable of the function, as it is when the node begins.
    Variable(u32),
    /// A constant: its bits, the lower half of a vector's.
    Constant(u64),
    /// The result of the instruction at this position.
    Result(usize),
}
