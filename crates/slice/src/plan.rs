//! Prepares the data needed to walk over a node.

use afterimage_ids::{BlockId, FuncId, OpId};
use afterimage_machine::{Code, Moved, NodeCode, NodeEnd, Register, Taker};
use afterimage_program::{Callee, Cfg};
use afterimage_wpp::Node;

use crate::control::{Decisions, FunctionControl};
use crate::memo::Did;

/// The kind of an instruction, by its effect on dependences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Computes from its operands.
    Pure,
    /// Reads memory.
    Load,
    /// Writes memory. The operands are the address and the value.
    Store,
    /// Writes any number of bytes. The first operand is the address, and the last is the length.
    Many,
    /// Copies memory.
    Copy,
    GlobalGet,
    GlobalSet,
    MemorySize,
    MemoryGrow,
    /// Reads a table.
    TableGet,
    /// Writes a table, and reads another table or an element segment.
    TableSet,
    /// Reads and writes a table.
    TableGrow,
    /// Decides which block is executed next.
    Branch,
    /// Empties a segment.
    Drop,
}

impl Kind {
    /// Returns the number of leading operands that determine where to access memory. For a copy,
    /// they include the length.
    #[inline(always)]
    pub fn where_to(self) -> usize {
        match self {
            Self::Load | Self::Store | Self::Many => 1,
            Self::Copy => 3,
            _ => 0,
        }
    }
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inst {
    pub kind: Kind,
    pub memory: u16,
    /// The number of operands.
    pub count: u8,
    pub operands: [Register; 3],
    /// The position of the blocks in which the instruction's operands were moved.
    pub moved: MovedAt,
    /// The number of the global, or of the table that is written.
    pub number: u32,
    /// The number of the table that is read.
    pub other: u32,
}

impl Inst {
    pub fn operands(&self) -> &[Register] {
        &self.operands[..usize::from(self.count)]
    }
}

/// The position of the moves of an operand or output in a plan's list. It is stored because
/// searching for it each time would take a fifth of the time of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MovedAt(u32);

impl MovedAt {
    const NONE: Self = Self(u32::MAX);

    /// Whether nothing was moved.
    #[inline]
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }
}

/// An output variable of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub variable: u32,
    pub register: Register,
    pub moved: MovedAt,
}

/// The way in which a node ends.
#[derive(Clone, Debug)]
pub(crate) enum End {
    Next,
    Call {
        arguments: Box<[Register]>,
        index: Option<Register>,
        /// The table, if the call goes through a table.
        table: Option<u32>,
    },
    Return(Box<[Register]>),
    Throw(Box<[Register]>),
    Rethrow(Register),
}

/// A node, prepared for walks.
pub(crate) struct Plan {
    pub function: FuncId,
    pub blocks: Box<[BlockId]>,
    /// The position of each block's first instruction. The last entry is the number of
    /// instructions.
    pub firsts: Box<[u32]>,
    pub insts: Box<[Inst]>,
    /// The operators of the instructions.
    pub ops: Box<[OpId]>,
    /// The operator at the node's end. `None` if the activation continues, or if that operator is
    /// an instruction, because a function may end after an instruction.
    pub end_op: Option<OpId>,
    pub outputs: Box<[Output]>,
    pub end: End,
    /// The number of variables. This is also the first register after the variables.
    pub variables: u32,
    pub registers: usize,
    /// Whether each block depends on an edge.
    pub conditional: Box<[bool]>,
    /// For each block except the last, the decisions made when control goes to the next block.
    pub decisions: Box<[Decisions]>,
    /// All blocks that these decisions decide, ascending.
    pub decided: Box<[BlockId]>,
    /// Whether the exit from the last block decides something.
    pub forks: bool,
    /// The stores, by their positions among the accesses, counted from the last access.
    pub stores: Box<[(u32, u16)]>,
    /// The globals that are written.
    pub globals: Box<[u32]>,
    /// Whether the node copies memory, grows a memory, or writes to a table.
    pub more: bool,
    /// The variables that are read, ascending.
    pub inputs: Box<[u32]>,
    /// The loads, by their positions among the accesses, counted from the first access.
    pub loads: Box<[(u32, u16)]>,
    /// The globals that are read.
    pub reads_globals: Box<[u32]>,
    /// Whether tables or sizes of memories are read, by instructions or by a call at the end.
    pub reads_more: bool,
    /// Whether no code of the activation follows.
    pub returns: bool,
    /// The globals that are read or written, ascending.
    pub used_globals: Box<[u32]>,
    /// Whether the node's outcomes depend on so few values that they can be memoised
    /// ([`Memo`](crate::memo::Memo)).
    pub keeps: bool,
    /// The blocks in which values were moved.
    moved: Box<[Moved]>,
}

/// The maximum number of items in a 32-bit mask. A 64-bit mask has room for twice as many.
const BITS: usize = u32::BITS as usize;

impl Plan {
    /// Prepares a node. O(instructions × log blocks).
    pub fn new(node: &Node, code: &NodeCode, control: &mut FunctionControl, cfg: &Cfg) -> Self {
        let insts = Vec::from_iter((0..code.insts.len()).map(|i| inst(code, i)));
        let ops = Vec::from_iter(code.insts.iter().map(|inst| inst.op));
        // Instructions are in the order of blocks.
        let ends = |&block: &BlockId| cfg.blocks.get(block).map(|block| block.ops.clone());
        let mut firsts = Vec::with_capacity(node.blocks.len() + 1);
        let mut at = 0;
        for range in node.blocks.iter().map(ends) {
            firsts.push(at as u32);
            let range = range.unwrap_or(OpId::from_u32(0)..OpId::from_u32(0));
            while ops.get(at).is_some_and(|op| range.contains(op)) {
                at += 1;
            }
        }
        firsts.push(ops.len() as u32);
        let mut stores = Vec::new();
        let mut accesses = 0;
        for inst in insts.iter().rev() {
            match inst.kind {
                Kind::Store | Kind::Many => stores.push((accesses, inst.memory)),
                Kind::Load => {}
                _ => continue,
            }
            accesses += 1;
        }
        let mut loads = Vec::new();
        let mut accesses = 0;
        for inst in &insts {
            match inst.kind {
                Kind::Load => loads.push((accesses, inst.memory)),
                Kind::Store | Kind::Many => {}
                _ => continue,
            }
            accesses += 1;
        }
        let reads_globals = insts.iter().filter(|inst| inst.kind == Kind::GlobalGet);
        let steps = node.blocks.windows(2);
        let decisions = Vec::from_iter(steps.map(|pair| control.decisions(cfg, pair[0], pair[1])));
        let mut decided = Vec::new();
        for decision in decisions.iter().flat_map(|decisions| decisions.iter()) {
            decided.extend_from_slice(&decision.decided);
        }
        decided.sort_unstable();
        decided.dedup();
        let last = node.blocks.last().and_then(|&last| cfg.blocks.get(last));
        let globals = insts.iter().filter(|inst| inst.kind == Kind::GlobalSet);
        let conditional = node.blocks.iter();
        let outputs = code.outputs.iter().map(|&(variable, register)| Output {
            variable,
            register,
            moved: moved_at(code, Taker::Output(variable), |taker| {
                taker == Taker::Output(variable)
            }),
        });
        let uses = |inst: &&Inst| matches!(inst.kind, Kind::GlobalGet | Kind::GlobalSet);
        let mut used_globals = Vec::from_iter(insts.iter().filter(uses).map(|inst| inst.number));
        used_globals.sort_unstable();
        used_globals.dedup();
        let end = end(code);
        let is_plain = |inst: &Inst| {
            use Kind::{Branch, Drop, GlobalGet, GlobalSet, Load, Pure, Store};
            matches!(
                inst.kind,
                Pure | Load | Store | GlobalGet | GlobalSet | Branch | Drop
            )
        };
        let is_end_plain = match &end {
            End::Next => true,
            End::Call { arguments, .. } => arguments.len() <= BITS,
            End::Return(values) => values.len() <= BITS,
            End::Throw(_) | End::Rethrow(_) => false,
        };
        let keeps = insts.iter().all(is_plain)
            && is_end_plain
            && used_globals.len() <= BITS
            && code.outputs.len() <= 2 * BITS
            && stores.len() <= Did::MOST;
        Self {
            function: code.function,
            firsts: firsts.into(),
            used_globals: used_globals.into(),
            keeps,
            end_op: last.and_then(|last| {
                let op = OpId::from_u32(last.ops.end.as_u32().checked_sub(1)?);
                let ends = !matches!(code.end, NodeEnd::Next | NodeEnd::Trap);
                Some(op).filter(|op| ends && !ops.contains(op))
            }),
            outputs: outputs.collect(),
            variables: code.variables,
            registers: code.registers(),
            conditional: conditional.map(|&b| control.is_conditional(b)).collect(),
            forks: node
                .blocks
                .last()
                .is_some_and(|&last| control.forks(cfg, last)),
            blocks: node.blocks.clone(),
            decisions: decisions.into(),
            decided: decided.into(),
            stores: stores.into(),
            globals: globals.map(|inst| inst.number).collect(),
            more: insts.iter().any(|inst| {
                matches!(
                    inst.kind,
                    Kind::Copy | Kind::MemoryGrow | Kind::TableSet | Kind::TableGrow
                )
            }),
            inputs: code.inputs.clone(),
            loads: loads.into(),
            reads_globals: reads_globals.map(|inst| inst.number).collect(),
            reads_more: insts.iter().any(|inst| {
                matches!(
                    inst.kind,
                    Kind::MemorySize
                        | Kind::MemoryGrow
                        | Kind::TableGet
                        | Kind::TableSet
                        | Kind::TableGrow
                )
            }) || matches!(end, End::Call { table: Some(_), .. }),
            end,
            returns: code.next.is_none(),
            moved: code.moved.clone(),
            insts: insts.into(),
            ops: ops.into(),
        }
    }

    /// Returns the positions of the blocks in which a value was moved before its use. O(log of all
    /// moves).
    pub fn moved(&self, taker: Taker) -> impl Iterator<Item = usize> + use<'_> {
        let first = self.moved.partition_point(|moved| moved.taker < taker);
        self.moved_from(MovedAt(first as u32))
            .take_while(move |(of, _)| *of == taker)
            .map(|(_, block)| block)
    }

    /// Returns the takers of values from position `at` on, with the positions of the blocks in
    /// which the values were moved.
    #[inline]
    fn moved_from(&self, at: MovedAt) -> impl Iterator<Item = (Taker, usize)> + use<'_> {
        let all = self.moved.get(at.0 as usize..).unwrap_or_default().iter();
        all.map(|moved| (moved.taker, moved.block as usize))
    }

    /// Returns the positions of the blocks in which an output variable's value was moved.
    #[inline]
    pub fn moved_output(&self, output: Output) -> impl Iterator<Item = usize> + use<'_> {
        let own = move |&(taker, _): &(Taker, usize)| taker == Taker::Output(output.variable);
        let all = self.moved_from(output.moved).take_while(own);
        all.map(|(_, block)| block)
    }

    /// Returns the operands of an instruction that were moved, with the positions of the blocks in
    /// which they were moved.
    #[inline]
    pub fn moved_operands(&self, inst: usize) -> impl Iterator<Item = (u8, usize)> + use<'_> {
        let all = self.moved_from(self.insts[inst].moved);
        all.map_while(move |(taker, block)| match taker {
            Taker::Operand(of, k) if of as usize == inst => Some((k, block)),
            _ => None,
        })
    }

    /// Whether anything was moved.
    #[inline]
    pub fn has_moved(&self) -> bool {
        !self.moved.is_empty()
    }

    /// Returns the register of an instruction's result.
    #[inline]
    pub fn result(&self, inst: usize) -> usize {
        self.registers - self.insts.len() + inst
    }
}

/// Returns the position of the first move by `first` or a later taker, or `NONE` if `own` does not
/// accept its taker.
fn moved_at(code: &NodeCode, first: Taker, own: impl Fn(Taker) -> bool) -> MovedAt {
    let at = code.moved.partition_point(|moved| moved.taker < first);
    let found = code.moved.get(at).filter(|moved| own(moved.taker));
    found.map_or(MovedAt::NONE, |_| MovedAt(at as u32))
}

fn end(code: &NodeCode) -> End {
    let table = |callee: &Callee| match *callee {
        Callee::Direct(_) => None,
        Callee::Indirect { table, .. } => Some(table),
    };
    match &code.end {
        NodeEnd::Call {
            callee,
            index,
            arguments,
            ..
        }
        | NodeEnd::TailCall {
            callee,
            index,
            arguments,
        } => End::Call {
            arguments: arguments.clone(),
            index: *index,
            table: table(callee),
        },
        NodeEnd::Return(values) => End::Return(values.clone()),
        NodeEnd::Throw { values, .. } => End::Throw(values.clone()),
        NodeEnd::Rethrow { exception, .. } => End::Rethrow(*exception),
        NodeEnd::Next | NodeEnd::Trap => End::Next,
    }
}

fn inst(code: &NodeCode, position: usize) -> Inst {
    let inst = &code.insts[position];
    let kind = match inst.code {
        Code::Load(_) | Code::LoadVector(_) => Kind::Load,
        Code::Store(_) | Code::StoreVector(_) => Kind::Store,
        Code::MemoryFill | Code::MemoryInit => Kind::Many,
        Code::MemoryCopy => Kind::Copy,
        Code::GlobalGet => Kind::GlobalGet,
        Code::GlobalSet => Kind::GlobalSet,
        Code::MemorySize => Kind::MemorySize,
        Code::MemoryGrow => Kind::MemoryGrow,
        Code::TableGet | Code::TableSize => Kind::TableGet,
        Code::TableSet | Code::TableFill | Code::TableCopy | Code::TableInit => Kind::TableSet,
        Code::TableGrow => Kind::TableGrow,
        Code::Branch(_) => Kind::Branch,
        Code::DataDrop | Code::ElementDrop => Kind::Drop,
        Code::Scalar(_)
        | Code::Vector(_)
        | Code::Select
        | Code::SelectVector
        | Code::RefIsNull
        | Code::Aligned(_)
        | Code::Wait(_)
        | Code::Notify => Kind::Pure,
    };
    let third = code.vector(position).map_or(inst.c, |extra| extra.c);
    Inst {
        moved: moved_at(
            code,
            Taker::Operand(position as u32, 0),
            |taker| matches!(taker, Taker::Operand(of, _) if of as usize == position),
        ),
        kind,
        memory: inst.memory,
        count: inst.code.operands() as u8,
        operands: [inst.a, inst.b, third],
        number: inst.immediate as u32,
        other: match inst.code {
            Code::TableCopy => (inst.immediate >> 32) as u32,
            _ => inst.immediate as u32,
        },
    }
}
