//! Finds the statements of nodes, which are the instructions of operators, with their operands.

use std::collections::{HashMap, HashSet};

use afterimage_ids::{BlockId, OpId};
use afterimage_machine::{Code, Inst, NodeCode, NodeEnd, Register, Taker};
use afterimage_program::{BlockEnd, Callee, Program};

/// The kind of an operator in a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The instruction at this position.
    Inst(usize),
    /// The call that ends the node.
    Call(Callee),
    /// The return that ends the node, or the function's end.
    Return,
    /// The throw that ends the node.
    Throw,
}

/// A statement in a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The form of the statement in the node.
    pub kind: Kind,
    /// The position of the statement's block in the node, from 0.
    pub block: u64,
}

/// An operand of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// The role of the operand in the statement. For a load or store, this is "address", or "base
    /// address" if the operator adds an offset.
    pub role: &'static str,
    /// The register that holds the operand.
    pub register: Register,
}

impl Statement {
    /// Returns the taker for one of the statement's operands, which are numbered from 0.
    pub fn taker(&self, code: &NodeCode, operand: usize) -> Taker {
        match self.kind {
            Kind::Inst(inst) => {
                let own = roles(&code.insts[inst]).len();
                let more = operand
                    .checked_sub(own)
                    .and_then(|k| more(code, inst).nth(k));
                let (inst, operand) = more.map_or((inst, operand), |(inst, k, _)| (inst, k));
                Taker::Operand(inst as u32, operand as u8)
            }
            // In a call through a table, the index comes last.
            Kind::Call(_) if is_index(code, operand) => Taker::Index,
            Kind::Call(_) | Kind::Return | Kind::Throw => Taker::Given(operand as u32),
        }
    }

    /// Returns the statement of an operator in a node that contains the operator's block at
    /// `position`. Returns `None` if the operator only moves values, or is a constant.
    pub fn find(
        program: &Program,
        code: &NodeCode,
        position: u64,
        op: OpId,
        last: bool,
    ) -> Option<Self> {
        if let Some(inst) = code.inst_of(op) {
            let kind = Kind::Inst(inst);
            let block = position;
            return Some(Self { kind, block });
        }
        let function = program.function(code.function)?;
        let block = function.block_of(op)?;
        let block = &function.cfg.blocks[block];
        // Only the last operator of a block can end it.
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

    /// Returns the statements of a node that has these blocks, in the order of execution, each with
    /// its operator.
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
                && !matches!(one.code, Code::Aligned(_))
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

    /// Returns the operands of the statement, with their registers.
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

/// Returns the further operands of an operator that has several instructions. The first instruction
/// is at `position`. Each operand has its instruction, its number in that instruction, and its
/// register.
fn more(code: &NodeCode, position: usize) -> impl Iterator<Item = (usize, usize, Register)> {
    let op = code.insts[position].op;
    // The results of the operator's own instructions, and their shared address, are not further
    // operands.
    let own = code.first_result() + position as u32;
    let following = code.insts.iter().enumerate().skip(position + 1);
    let following = following.take_while(move |(_, inst)| inst.op == op);
    following.flat_map(move |(at, inst)| {
        let first = usize::from(matches!(inst.code, Code::Store(_)));
        let operands = [inst.a, inst.b, inst.c].into_iter().enumerate();
        let operands = operands.take(inst.code.operands()).skip(first);
        operands.filter_map(move |(k, register)| (register < own).then_some((at, k, register)))
    })
}

fn of_inst(code: &NodeCode, position: usize) -> Vec<Operand> {
    let inst = &code.insts[position];
    let third = match inst.code {
        Code::Vector(_) => code.vector(position).map_or(0, |extra| extra.c),
        _ => inst.c,
    };
    let own = roles(inst).iter().copied();
    let mut operands = Vec::from_iter(own.zip([inst.a, inst.b, third]));
    let besides = Vec::from_iter(more(code, position).map(|(.., register)| register));
    match *besides {
        [value] => operands.push(("value", value)),
        [expected, replacement] => {
            operands.extend([("expected", expected), ("replacement", replacement)]);
        }
        _ => {}
    }
    let operands = operands.into_iter();
    operands
        .map(|(role, register)| Operand { role, register })
        .collect()
}

/// Returns the roles of an instruction's operands.
fn roles(inst: &Inst) -> &'static [&'static str] {
    // The operator may add an offset.
    let (one, lanes, stored): (&'static [_], &'static [_], &'static [_]) = match inst.immediate {
        0 => (
            &["address"],
            &["address", "other lanes"],
            &["address", "value"],
        ),
        _ => (
            &["base address"],
            &["base address", "other lanes"],
            &["base address", "value"],
        ),
    };
    match inst.code {
        Code::Scalar(scalar) if scalar.arity() == 1 => &["operand"],
        Code::Scalar(_) => &["left", "right"],
        Code::Vector(vector) => match vector.signature().0.len() {
            1 => &["operand"],
            2 => &["left", "right"],
            _ => &["first", "second", "third"],
        },
        Code::Select | Code::SelectVector => &["if true", "if false", "condition"],
        Code::Load(_) | Code::Aligned(_) | Code::Wait(_) | Code::Notify => one,
        Code::LoadVector(load) if load.keeps() => lanes,
        Code::LoadVector(_) => one,
        Code::Store(_) | Code::StoreVector(_) => stored,
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
    }
}

/// Whether an operand of the call that ends a node is the index into a table.
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
