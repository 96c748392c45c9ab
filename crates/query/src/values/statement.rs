//! Statements of nodes: which instruction of a node an operator is, and what it takes.

use std::collections::{HashMap, HashSet};

use afterimage_ids::{BlockId, OpId};
use afterimage_machine::{Code, NodeCode, NodeEnd, Register, Taker};
use afterimage_program::{BlockEnd, Callee, Program};

/// What an operator is in a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The instruction at this position.
    Inst(usize),
    /// The call that the node ends with.
    Call(Callee),
    /// The return, or the end of the function, that the node ends with.
    Return,
    /// It throws.
    Throw,
}

/// A statement in a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    /// What it is.
    pub kind: Kind,
    /// Which block of the node it is in, from 0: it is executed so many blocks after the node begins.
    pub block: u64,
}

/// What a statement takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// What it is for the statement. Of a load or store "address", or "base address" if the operator adds an offset.
    pub role: &'static str,
    /// Its register.
    pub register: Register,
}

impl Statement {
    /// As what it takes the operand of a number, from 0.
    pub fn taker(&self, code: &NodeCode, operand: usize) -> Taker {
        match self.kind {
            Kind::Inst(inst) => Taker::Operand(inst as u32, operand as u8),
            // Of a call through a table, the index comes last.
            Kind::Call(_) if is_index(code, operand) => Taker::Index,
            Kind::Call(_) | Kind::Return | Kind::Throw => Taker::Given(operand as u32),
        }
    }

    /// What an operator is in a node that contains its block, as the block at `position`. `None` if it only moves values, or is a constant.
    pub fn find(
        program: &Program,
        code: &NodeCode,
        position: u64,
        op: OpId,
        last: bool,
    ) -> Option<Self> {
        if let Some(inst) = code.insts.iter().position(|inst| inst.op == op) {
            let kind = Kind::Inst(inst);
            let block = position;
            return Some(Self { kind, block });
        }
        let function = program.function(code.function)?;
        let block = function.block_of(op)?;
        let block = &function.cfg.blocks[block];
        // The operator that ends a block is its last one.
        if !last || op.as_u32() + 1 != block.ops.end.as_u32() {
            return None;
        }
        let kind = match (&code.end, block.end) {
            (NodeEnd::Call { callee, .. }, BlockEnd::Call(_))
            | (NodeEnd::TailCall { callee, .. }, BlockEnd::TailCall(_)) => Kind::Call(*callee),
            (NodeEnd::Return(_), BlockEnd::Return) => Kind::Return,
            (NodeEnd::Throw { .. } | NodeEnd::Rethrow { .. }, BlockEnd::Throw) => Kind::Throw,
            _ => return None,
        };
        let block = position;
        Some(Self { kind, block })
    }

    /// The statements of a node with these blocks, in the order of execution, each with its operator.
    pub fn all(program: &Program, code: &NodeCode, blocks: &[BlockId]) -> Vec<(OpId, Self)> {
        let mut all = Vec::new();
        let Some(function) = program.function(code.function) else {
            return all;
        };
        let mut seen = HashSet::new();
        let positions: HashMap<BlockId, u64> = blocks.iter().copied().zip(0..).collect();
        for (inst, one) in code.insts.iter().enumerate() {
            let block = function.block_of(one.op);
            if let Some(&block) = block.and_then(|block| positions.get(&block))
                && seen.insert(one.op)
            {
                let kind = Kind::Inst(inst);
                all.push((one.op, Self { kind, block }));
            }
        }
        let last = blocks.len().checked_sub(1);
        let end = last.and_then(|last| {
            let block = function.cfg.blocks.get(blocks[last])?;
            let op = OpId::from_u32(block.ops.end.as_u32().checked_sub(1)?);
            let known = !seen.contains(&op);
            let end = Self::find(program, code, last as u64, op, true);
            end.filter(|_| known).map(|end| (op, end))
        });
        all.extend(end);
        all
    }

    /// The registers of what it takes.
    pub fn operands(self, code: &NodeCode) -> Vec<Operand> {
        let many = |role, registers: &[Register]| {
            let operands = registers.iter();
            operands
                .map(|&register| Operand { role, register })
                .collect()
        };
        match self.kind {
            Kind::Inst(inst) => of_inst(code, inst),
            Kind::Call(_) => match &code.end {
                NodeEnd::Call {
                    arguments, index, ..
                }
                | NodeEnd::TailCall {
                    arguments, index, ..
                } => {
                    let mut operands: Vec<Operand> = many("argument", arguments);
                    operands.extend(index.map(|register| Operand {
                        role: "index",
                        register,
                    }));
                    operands
                }
                _ => Vec::new(),
            },
            Kind::Return => match &code.end {
                NodeEnd::Return(values) => many("result", values),
                _ => Vec::new(),
            },
            Kind::Throw => match &code.end {
                NodeEnd::Throw { values, .. } => many("carried", values),
                NodeEnd::Rethrow { exception, .. } => many("exception", &[*exception]),
                _ => Vec::new(),
            },
        }
    }
}

fn of_inst(code: &NodeCode, position: usize) -> Vec<Operand> {
    let inst = &code.insts[position];
    // The operator may add an offset.
    let base = match inst.immediate {
        0 => "address",
        _ => "base address",
    };
    let roles: &[&'static str] = match inst.code {
        Code::Scalar(scalar) if scalar.arity() == 1 => &["operand"],
        Code::Scalar(_) => &["left", "right"],
        Code::Vector(vector) => match vector.signature().0.len() {
            1 => &["operand"],
            2 => &["left", "right"],
            _ => &["first", "second", "third"],
        },
        Code::Select | Code::SelectVector => &["if true", "if false", "condition"],
        Code::Load(_) => &[base],
        Code::LoadVector(load) if load.keeps() => &[base, "other lanes"],
        Code::LoadVector(_) => &[base],
        Code::Store(_) | Code::StoreVector(_) => &[base, "value"],
        Code::GlobalSet => &["value"],
        Code::MemoryGrow => &["pages"],
        Code::MemoryCopy | Code::MemoryInit | Code::TableCopy | Code::TableInit => {
            &["to", "from", "length"]
        }
        Code::MemoryFill => &["to", "value", "length"],
        Code::TableGet => &["index"],
        Code::TableSet => &["index", "value"],
        Code::TableGrow => &["value", "count"],
        Code::TableFill => &["to", "value", "count"],
        Code::RefIsNull => &["operand"],
        Code::Branch(_) => &["condition"],
        Code::GlobalGet
        | Code::MemorySize
        | Code::DataDrop
        | Code::TableSize
        | Code::ElementDrop => &[],
    };
    let third = match inst.code {
        Code::Vector(_) => code.vector(position).map_or(0, |extra| extra.c),
        _ => inst.c,
    };
    let registers = [inst.a, inst.b, third];
    roles
        .iter()
        .zip(registers)
        .map(|(&role, register)| Operand { role, register })
        .collect()
}

/// Whether an operand of the call that a node ends with is the index in a table.
fn is_index(code: &NodeCode, number: usize) -> bool {
    match &code.end {
        NodeEnd::Call {
            index, arguments, ..
        }
        | NodeEnd::TailCall {
            index, arguments, ..
        } => index.is_some() && number == arguments.len(),
        _ => false,
    }
}
