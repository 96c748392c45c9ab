//! Lists the statements of a node, in order.

use std::error::Error;
use std::ops::Range;

use afterimage_ids::{EntityRef, OpId, ValueId};
use afterimage_machine::{Code, GlobalBits, NodeCode};
use afterimage_program::{Effect, Program, Ssa};
use afterimage_wpp::Node;
use wasmparser::ValType;

use super::{Level, StepsError, Value};

/// A statement of a node.
#[derive(Clone, Debug)]
pub struct Item {
    /// The operator of the statement.
    pub op: OpId,
    /// The position of the operator's block in the node.
    pub block: u32,
    /// The statement's kind for the machine.
    pub kind: Kind,
    /// Whether the statement reads or writes memory.
    pub memory: bool,
    /// The types of the operands, the topmost last, followed by the types of the results.
    types: Box<[ValType]>,
    /// The number of operands.
    operands: usize,
}

/// The kind of a statement for the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The instruction at this position.
    Inst(usize),
    /// An unconditional jump.
    Jump,
    /// The call that ends the node.
    Call,
    /// The throw that ends the node.
    Throw,
    /// An `unreachable`, which always traps.
    Unreachable,
}

/// The statements of a node.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The number of the node's blocks.
    pub blocks: u32,
    /// The statements, in order.
    pub items: Box<[Item]>,
    /// The position of each instruction's item.
    pub of_inst: Box<[u32]>,
    /// Whether an instruction fills or initializes memory. The machine reports the operands of this
    /// instruction only in registers.
    pub fills: bool,
}

impl Item {
    pub fn operand(&self, index: usize) -> Option<ValType> {
        self.types[..self.operands].get(index).copied()
    }

    pub fn operands(&self) -> &[ValType] {
        &self.types[..self.operands]
    }

    pub fn result(&self) -> Option<ValType> {
        self.types.get(self.operands).copied()
    }

    /// Returns the value that a store wrote.
    pub fn stored(&self, bits: GlobalBits) -> Value {
        Value::new(self.operand(1).unwrap_or(ValType::I32), bits)
    }
}

impl Plan {
    /// Creates the list of the statements of a node with this code. O(statements of the node ×
    /// log(statements of the function)).
    pub fn new<E: Error + 'static>(
        program: &Program,
        ssa: &Ssa,
        node: &Node,
        code: &NodeCode,
    ) -> Result<Self, StepsError<E>> {
        let mut items = Vec::new();
        let mut of_inst = vec![0; code.insts.len()];
        let mut next = 0;
        let cfg = program
            .function(node.function)
            .map(|function| &function.cfg);
        let statements = ssa.statements.as_values_slice();
        for (block, id) in (0..).zip(&node.blocks) {
            let Some(known) = cfg.and_then(|cfg| cfg.blocks.get(*id)) else {
                continue;
            };
            let first = statements.partition_point(|s| s.op < known.ops.start);
            let own = statements[first..].iter().zip(first..);
            for (statement, id) in own.take_while(|(s, _)| s.op < known.ops.end) {
                let op = statement.op;
                let kind = match statement.effect {
                    _ if code.insts.get(next).is_some_and(|inst| inst.op == op) => {
                        // An atomic operator has several instructions.
                        while code.insts.get(next).is_some_and(|inst| inst.op == op) {
                            of_inst[next] = items.len() as u32;
                            next += 1;
                        }
                        Kind::Inst(code.inst_of(op).unwrap_or(next - 1))
                    }
                    Effect::Control => Kind::Jump,
                    Effect::Call(_) | Effect::TailCall(_) => Kind::Call,
                    Effect::Throw => Kind::Throw,
                    Effect::Trap => Kind::Unreachable,
                    _ => return Err(StepsError::Statement(node.function, op)),
                };
                let operands = ssa.operands(afterimage_ids::StmtId::new(id));
                let results = values(&statement.results);
                let types = operands.iter().copied().chain(results);
                let memory = matches!(
                    statement.effect,
                    Effect::MemoryRead(_)
                        | Effect::MemoryWrite(_)
                        | Effect::MemoryUpdate(_)
                        | Effect::MemoryCopy { .. }
                        | Effect::MemoryInit { .. }
                );
                items.push(Item {
                    op,
                    block,
                    kind,
                    memory,
                    types: types.map(|value| ssa.values[value].ty).collect(),
                    operands: operands.len(),
                });
            }
        }
        match code.insts.get(next) {
            Some(inst) => Err(StepsError::Statement(node.function, inst.op)),
            None => Ok(Self {
                blocks: node.blocks.len() as u32,
                items: items.into(),
                of_inst: of_inst.into(),
                fills: code
                    .insts
                    .iter()
                    .any(|inst| matches!(inst.code, Code::MemoryFill | Code::MemoryInit)),
            }),
        }
    }

    /// Returns the number of instructions executed before one of the node's blocks, or before an
    /// operator in that block.
    pub fn instructions_before(&self, block: u64, op: Option<OpId>) -> usize {
        let before = |&item: &u32| {
            let item = &self.items[item as usize];
            let here = u64::from(item.block);
            here < block || here == block && op.is_some_and(|op| item.op < op)
        };
        self.of_inst.partition_point(before)
    }

    /// Returns the number of statements in these blocks of the node. Counts all statements, or only
    /// statements that access memory.
    pub fn count(&self, blocks: Range<u64>, level: Level) -> u64 {
        let before = |block| {
            self.items
                .partition_point(|item| u64::from(item.block) < block)
        };
        let items = &self.items[before(blocks.start)..before(blocks.end)];
        let is_wanted = |item: &&Item| level == Level::Statement || item.memory;
        items.iter().filter(is_wanted).count() as u64
    }
}

fn values(range: &Range<ValueId>) -> impl Iterator<Item = ValueId> {
    (range.start.as_u32()..range.end.as_u32()).map(ValueId::from_u32)
}
