//! The code of a node, which is a path of blocks as straight-line code.

use afterimage_ids::{BlockId, FuncId, OpId};
use afterimage_program::Callee;

use crate::inst::{Code, Inst, Register};

/// A compiled path of blocks.
///
/// The compiler eliminates moves between locals and the operand stack. An instruction's operands
/// are the registers of the instructions, constants or variables that provide their values.
#[derive(Clone, Debug)]
pub struct NodeCode {
    /// The function of these blocks.
    pub function: FuncId,
    /// The first block.
    pub first: BlockId,
    /// The block where the activation continues, or `None` if the activation or the run ends.
    pub next: Option<BlockId>,
    /// The number of the function's variables, and so the register of the first constant.
    pub variables: u32,
    /// The bits of the constants, by position.
    pub constants: Box<[u64]>,
    /// The instructions, in order.
    pub insts: Box<[Inst]>,
    /// The variables that the node writes, each listed once, with the register that contains its
    /// final value.
    pub outputs: Box<[(u32, Register)]>,
    /// The variables that instructions, the end or other variables' outputs read, ascending.
    pub inputs: Box<[u32]>,
    /// The end of the node.
    pub end: NodeEnd,
    /// Upper halves of the constants that are vectors, by register.
    pub wide_constants: Box<[(Register, u64)]>,
    /// The third operand and the immediate of each vector instruction. The register identifies the
    /// instruction.
    pub vectors: Box<[(Register, VectorExtra)]>,
    /// The lists of indices with which a `br_table` takes the direction of the path.
    pub lists: Box<[TableIndices]>,
    /// Whether any value is a vector.
    pub wide: bool,
    /// The blocks that moved values before their use, ordered by the user of the value.
    pub moved: Box<[Moved]>,
}

/// A value that was moved in a block that neither computed nor used it. By executing this block,
/// the run selected the value that the user gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moved {
    /// The user of the value.
    pub taker: Taker,
    /// The block's position in the node.
    pub block: u32,
}

/// The user of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Taker {
    /// An instruction, at this operand position.
    Operand(u32, u8),
    /// A variable, as its final value.
    Output(u32),
    /// A call through a table, as the index.
    Index,
    /// A call, a return or a throw, as the value at this position.
    Given(u32),
}

/// Additional data of a vector instruction.
#[derive(Clone, Copy, Debug)]
pub struct VectorExtra {
    /// The register of the third operand.
    pub c: Register,
    /// The immediate, which is a lane or a shuffle mask.
    pub immediate: u128,
}

/// The indices with which a `br_table` takes a given direction.
#[derive(Clone, Debug)]
pub struct TableIndices {
    /// The single indices, ascending.
    pub indices: Box<[u32]>,
    /// If set, all indices from this one on are also included.
    pub from: Option<u32>,
}

impl TableIndices {
    /// Whether the set contains an index.
    #[inline]
    pub fn has(&self, index: u32) -> bool {
        self.from.is_some_and(|from| index >= from) || self.indices.binary_search(&index).is_ok()
    }
}

/// The end of a node.
#[derive(Clone, Debug)]
pub enum NodeEnd {
    /// The activation continues with another node. If there is no other node, the run ends inside
    /// the last block.
    Next,
    /// A call, which writes its results to variables from `results` on. Then the activation
    /// continues, or returns the results if there is no `next`.
    Call {
        /// The target of the call.
        callee: Callee,
        /// The index into the table, for a call through a table.
        index: Option<Register>,
        /// The registers with the arguments.
        arguments: Box<[Register]>,
        /// The variable for the first result.
        results: u32,
        /// The block with the call.
        block: BlockId,
    },
    /// A call that replaces this activation.
    TailCall {
        /// The target of the call.
        callee: Callee,
        /// The index into the table, for a call through a table.
        index: Option<Register>,
        /// The registers with the arguments.
        arguments: Box<[Register]>,
    },
    /// The activation returns the values in these registers.
    Return(Box<[Register]>),
    /// An exception is thrown in this block.
    Throw {
        /// The index of the exception's tag.
        tag: u32,
        /// The values that the exception carries.
        values: Box<[Register]>,
        /// The block with the throw.
        block: BlockId,
    },
    /// An exception is thrown again.
    Rethrow {
        /// The reference to the exception.
        exception: Register,
        /// The block with the throw.
        block: BlockId,
    },
    /// An `unreachable`, which traps.
    Trap,
}

/// The function number of nodes that have not been compiled yet. No function has this number.
const MISSING: u32 = u32::MAX - 1;

impl NodeCode {
    /// Returns the instruction for an operator, or `None` if the operator has no instruction. An
    /// atomic operator has several instructions. Of these, returns the instruction with the
    /// operator's result, or the instruction that writes.
    pub fn inst_of(&self, op: OpId) -> Option<usize> {
        let checks = |code| matches!(code, Code::Aligned(_));
        let mut insts = self.insts.iter();
        insts.position(|inst| inst.op == op && !checks(inst.code))
    }

    /// Returns a placeholder for a node that has not been compiled yet. The placeholder cannot be
    /// executed, because the machine never waits for its function.
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

    /// Returns the number of registers that the node needs.
    pub fn registers(&self) -> usize {
        self.variables as usize + self.constants.len() + self.insts.len()
    }

    /// Returns the blocks that moved a value before its use. Time: O(log of the number of moved
    /// values).
    pub fn moved(&self, taker: Taker) -> &[Moved] {
        let first = self.moved.partition_point(|moved| moved.taker < taker);
        let all = &self.moved[first..];
        &all[..all.partition_point(|moved| moved.taker == taker)]
    }

    /// Returns the register of the first instruction.
    pub fn first_result(&self) -> u32 {
        self.variables + self.constants.len() as u32
    }

    /// Returns the additional data of the vector instruction at this position.
    pub fn vector(&self, inst: usize) -> Option<VectorExtra> {
        let register = self.first_result() + inst as u32;
        let found = self.vectors.binary_search_by_key(&register, |(r, _)| *r);
        found.ok().map(|found| self.vectors[found].1)
    }

    /// Returns the source of a register's value.
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
    /// A constant, with its bits, or with the lower half if it is a vector.
    Constant(u64),
    /// The result of the instruction at this position.
    Result(usize),
}
