//! Compiles paths of blocks to straight-line code.

mod atomics;
mod body;
mod operators;

use std::collections::HashMap;

use afterimage_ids::{BlockId, EdgeId, EntityRef, OpId};
use afterimage_numeric::Kind;
use afterimage_program::{BlockEnd, BlockKind, CarriedFrom, EdgeKind, NO_HEIGHT, Program};
use wasmparser::ValType;

pub use self::body::Body;
pub(crate) use self::body::type_of;
use crate::MachineError;
use crate::code::{Moved, NodeCode, NodeEnd, TableIndices, Taker, VectorExtra};
use crate::inst::{Code, Inst, Register};

/// The mark of a constant. During compilation, a register's upper bits give its kind, because the
/// number of constants is not known yet.
const CONSTANT: u32 = 1 << 30;
/// The mark of a result (see [`CONSTANT`]).
const RESULT: u32 = 1 << 31;
/// The mark of a value that was moved, which sets both bits.
const MOVED: u32 = CONSTANT | RESULT;

/// A constant. A vector is distinguished from a scalar with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Constant {
    Scalar(u64),
    Vector(u128),
}

struct Compiler<'a> {
    program: &'a Program,
    body: &'a Body<'a>,
    /// The current values of variables that have changed since the start.
    current: HashMap<u32, Register>,
    /// Values that were moved, with the positions of the blocks that moved them.
    moved: Vec<(Register, u32)>,
    /// The position of the current block.
    position: u32,
    /// The position of the current block's first instruction.
    first_inst: u32,
    /// The position of each block's first instruction.
    firsts: Vec<u32>,
    constants: Vec<Constant>,
    known: HashMap<Constant, Register>,
    /// The first operator of each constant.
    constant_ops: Vec<OpId>,
    /// Whether each constant operator has its own register.
    apart: bool,
    insts: Vec<Inst>,
    vectors: Vec<(Register, VectorExtra)>,
    lists: Vec<TableIndices>,
    /// The height of the operand stack after the last operator.
    height: u32,
    first: BlockId,
    end: NodeEnd,
}

/// Compiles a path. Time: O(operators on the path + variables written).
///
/// # Errors
/// Returns an error if the blocks are not a path of the function.
pub fn compile<'a>(
    program: &'a Program,
    body: &'a Body<'a>,
    blocks: &[BlockId],
    next: Option<BlockId>,
) -> Result<NodeCode, MachineError> {
    Ok(compile_whole(program, body, (blocks, next), false)?.0)
}

/// Like [`compile`], but gives each constant operator its own register. Also returns these
/// operators, by the constants' positions.
///
/// # Errors
/// Returns the errors of [`compile`].
pub fn compile_apart<'a>(
    program: &'a Program,
    body: &'a Body<'a>,
    blocks: &[BlockId],
    next: Option<BlockId>,
) -> Result<(NodeCode, Box<[OpId]>), MachineError> {
    compile_whole(program, body, (blocks, next), true)
}

fn compile_whole<'a>(
    program: &'a Program,
    body: &'a Body<'a>,
    (blocks, next): (&[BlockId], Option<BlockId>),
    apart: bool,
) -> Result<(NodeCode, Box<[OpId]>), MachineError> {
    let cfg = &body.function.cfg;
    let no_path = || MachineError::NoPath {
        function: body.function.id,
        block: blocks.first().copied().unwrap_or(cfg.graph.root()),
    };
    let &first = blocks.first().ok_or_else(no_path)?;
    // A path has no cycle, so its code is at most as long as the function.
    let mut sorted = blocks.to_vec();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(no_path());
    }
    let mut compiler = Compiler::new(program, body, first, apart);
    for (i, &block) in blocks.iter().enumerate() {
        let (to, last) = match blocks.get(i + 1) {
            Some(&to) => (Some(to), false),
            None => (next, true),
        };
        compiler.block(block, to, last).ok_or_else(no_path)?;
    }
    let kept = compiler.kept(next);
    let constant_ops = std::mem::take(&mut compiler.constant_ops);
    Ok((compiler.finish(next, kept), constant_ops.into()))
}

/// Compiles a path up to an operator of its last block, or up to that block's end. The instructions
/// and their positions equal the first instructions of any longer path with the same beginning. The
/// same holds for the constants, each of which has its own register ([`compile_apart`]). The
/// outputs are the variables' values before the operator. Time: O(operators on the path + variables
/// written).
///
/// # Errors
/// Returns an error if the blocks are not a path of the function, or the operator is not in the
/// last block.
pub fn compile_before<'a>(
    program: &'a Program,
    body: &'a Body<'a>,
    blocks: &[BlockId],
    op: OpId,
) -> Result<NodeCode, MachineError> {
    let cfg = &body.function.cfg;
    let no_path = || MachineError::NoPath {
        function: body.function.id,
        block: blocks.first().copied().unwrap_or(cfg.graph.root()),
    };
    let (Some(&first), Some(&last)) = (blocks.first(), blocks.last()) else {
        return Err(no_path());
    };
    let mut compiler = Compiler::new(program, body, first, true);
    for pair in blocks.windows(2) {
        compiler
            .block(pair[0], Some(pair[1]), false)
            .ok_or_else(no_path)?;
    }
    let known = cfg.blocks.get(last).ok_or_else(no_path)?;
    if op < known.ops.start || op > known.ops.end {
        return Err(no_path());
    }
    let at_start = body.slots.at_start.get(last).ok_or_else(no_path)?;
    compiler.height = at_start.len() as u32;
    compiler
        .operators(last, &[], Some(op))
        .ok_or_else(no_path)?;
    let kept = body.slots.locals.len() as u32 + compiler.height;
    Ok(compiler.finish(None, kept))
}

impl<'a> Compiler<'a> {
    /// Begins a path with this block.
    fn new(program: &'a Program, body: &'a Body<'a>, first: BlockId, apart: bool) -> Self {
        Self {
            program,
            body,
            current: HashMap::new(),
            moved: Vec::new(),
            position: 0,
            first_inst: 0,
            firsts: Vec::new(),
            constants: Vec::new(),
            known: HashMap::new(),
            constant_ops: Vec::new(),
            apart,
            insts: Vec::new(),
            vectors: Vec::new(),
            lists: Vec::new(),
            height: body.slots.at_start.get(first).map_or(0, |s| s.len() as u32),
            first,
            end: NodeEnd::Next,
        }
    }
}

impl Compiler<'_> {
    /// Appends a block, after which the path continues to `to`. Returns `None` if the path cannot
    /// continue that way.
    fn block(&mut self, block: BlockId, to: Option<BlockId>, last: bool) -> Option<()> {
        let body = self.body;
        let cfg = &body.function.cfg;
        let known = cfg.blocks.get(block)?;
        let exit = cfg.graph.exit();
        if known.kind != BlockKind::Code || to == Some(exit) {
            return None;
        }
        let target = to.unwrap_or(exit);
        let edges = cfg.graph.out_edges(block).iter().copied();
        let mut ways = Vec::from_iter(edges.filter(|&edge| cfg.graph.to(edge) == target));
        let leaves = matches!(
            known.end,
            BlockEnd::Call(_) | BlockEnd::TailCall(_) | BlockEnd::Throw | BlockEnd::Unreachable
        );
        let calls = matches!(known.end, BlockEnd::Call(_));
        if calls {
            ways.retain(|&edge| cfg.edges[edge].kind == EdgeKind::CallReturn);
        }
        // Only the last block may leave the path or contain the end of the run.
        if leaves && !last || ways.is_empty() && (calls || to.is_some()) {
            return None;
        }
        self.operators(block, &ways, None)?;
        if leaves {
            if known.end == BlockEnd::Unreachable {
                self.end = NodeEnd::Trap;
            }
            return Some(());
        }
        let Some(&edge) = ways.first() else {
            return Some(());
        };
        // A branch drops everything between its label's height and the values that it carries, even
        // if it leaves the function.
        if let Some(carried) = body.slots.carried.get(&edge)
            && let CarriedFrom::Slots(from) = carried.source
        {
            for i in (0..carried.count).filter(|_| from != carried.base) {
                let value = self.read_slot(from + i);
                self.write_slot(carried.base + i, value);
            }
            self.height = carried.base + carried.count;
        }
        if to.is_none() {
            let results = self.program.types.get(body.function.ty)?.results.len() as u32;
            let base = self.height.checked_sub(results)?;
            let values = (base..self.height).map(|slot| self.read_slot(slot));
            self.end = NodeEnd::Return(values.collect());
        }
        Some(())
    }

    /// Appends a block's operators before `until`, or all of them if it is `None`.
    fn operators(&mut self, block: BlockId, ways: &[EdgeId], until: Option<OpId>) -> Option<()> {
        self.position = self.firsts.len() as u32;
        self.first_inst = self.insts.len() as u32;
        self.firsts.push(self.first_inst);
        let body = self.body;
        let known = body.function.cfg.blocks.get(block)?;
        let end = until.unwrap_or(known.ops.end);
        for op in known.ops.start.index()..end.index() {
            let op = OpId::new(op);
            let height = *body.slots.heights.get(op)?;
            if height == NO_HEIGHT {
                continue;
            }
            self.height = height;
            self.operator(op, body.operators.get(op.index())?, ways, block)?;
        }
        Some(())
    }

    fn read(&mut self, variable: u32) -> Register {
        if let Some(&register) = self.current.get(&variable) {
            return register;
        }
        variable
    }

    fn read_slot(&mut self, slot: u32) -> Register {
        self.read(self.body.slots.of_slot(slot))
    }

    fn write_slot(&mut self, slot: u32, register: Register) {
        self.assign(self.body.slots.of_slot(slot), register);
    }

    /// Moves a value to a variable.
    fn assign(&mut self, variable: u32, register: Register) {
        let index = register & !MOVED;
        let is_here = match register & MOVED {
            MOVED => self.moved[index as usize].1 == self.position,
            RESULT => index >= self.first_inst,
            _ => false,
        };
        let register = if is_here {
            register
        } else {
            self.moved.push((register, self.position));
            MOVED | (self.moved.len() as u32 - 1)
        };
        self.current.insert(variable, register);
    }

    /// Finds the blocks, other than `own`, that moved the value of a user.
    fn blocks(
        &self,
        mut register: Register,
        taker: Taker,
        own: Option<u32>,
        found: &mut Vec<Moved>,
    ) {
        while register & MOVED == MOVED {
            let (before, block) = self.moved[(register & !MOVED) as usize];
            if own != Some(block) {
                found.push(Moved { taker, block });
            }
            register = before;
        }
    }

    /// Returns the blocks that moved values, for all users, ascending.
    fn all_moved(&self, kept: u32) -> Vec<Moved> {
        let mut found = Vec::new();
        for (i, inst) in (0u32..).zip(&self.insts) {
            let own = self.firsts.partition_point(|&first| first <= i) as u32 - 1;
            let third = self.vector_operand(i).unwrap_or(inst.c);
            let operands = [inst.a, inst.b, third];
            for (k, &register) in (0u8..).zip(&operands[..inst.code.operands()]) {
                self.blocks(register, Taker::Operand(i, k), Some(own), &mut found);
            }
        }
        for (&variable, &register) in &self.current {
            if variable < kept && unmoved(&self.moved, register) != variable {
                self.blocks(register, Taker::Output(variable), None, &mut found);
            }
        }
        let (index, given) = match &self.end {
            NodeEnd::Next | NodeEnd::Trap => (None, &[][..]),
            NodeEnd::Call {
                index, arguments, ..
            }
            | NodeEnd::TailCall {
                index, arguments, ..
            } => (*index, &arguments[..]),
            NodeEnd::Return(values) | NodeEnd::Throw { values, .. } => (None, &values[..]),
            NodeEnd::Rethrow { exception, .. } => (None, std::slice::from_ref(exception)),
        };
        if let Some(index) = index {
            self.blocks(index, Taker::Index, Some(self.position), &mut found);
        }
        for (i, &register) in (0..).zip(given) {
            self.blocks(register, Taker::Given(i), None, &mut found);
        }
        found.sort_unstable();
        found
    }

    /// Returns the third operand of a vector instruction.
    fn vector_operand(&self, inst: u32) -> Option<Register> {
        let found = self
            .vectors
            .binary_search_by_key(&(RESULT | inst), |(r, _)| *r);
        found.ok().map(|found| self.vectors[found].1.c)
    }

    fn pop(&mut self) -> Option<Register> {
        self.height = self.height.checked_sub(1)?;
        Some(self.read_slot(self.height))
    }

    fn push(&mut self, register: Register) {
        self.write_slot(self.height, register);
        self.height += 1;
    }

    fn constant(&mut self, op: OpId, value: Constant) -> Register {
        let next = CONSTANT | self.constants.len() as u32;
        let register = if self.apart {
            next
        } else {
            *self.known.entry(value).or_insert(next)
        };
        if register == next {
            self.constants.push(value);
            self.constant_ops.push(op);
        }
        register
    }

    /// Whether a register contains a vector.
    fn is_vector(&self, register: Register) -> bool {
        let register = unmoved(&self.moved, register);
        let position = (register & !(RESULT | CONSTANT)) as usize;
        if register & RESULT != 0 {
            let inst = &self.insts[position];
            return match inst.code {
                Code::Vector(vector) => vector.signature().1 == Kind::Vector,
                Code::LoadVector(_) | Code::SelectVector => true,
                Code::GlobalGet => {
                    self.program.globals.get(inst.immediate as usize) == Some(&ValType::V128)
                }
                _ => false,
            };
        }
        if register & CONSTANT != 0 {
            return matches!(self.constants[position], Constant::Vector(_));
        }
        let slots = &self.body.slots;
        let ty = match position.checked_sub(slots.locals.len()) {
            None => slots.locals.get(position),
            Some(slot) => slots.at_start.get(self.first).and_then(|s| s.get(slot)),
        };
        ty == Some(&ValType::V128)
    }

    /// Adds an instruction. Returns its result.
    fn inst(&mut self, op: OpId, code: Code, operands: [Register; 3], immediate: u64) -> Register {
        self.in_memory(op, code, 0, operands, immediate)
    }

    fn in_memory(
        &mut self,
        op: OpId,
        code: Code,
        memory: u32,
        [a, b, c]: [Register; 3],
        immediate: u64,
    ) -> Register {
        let register = RESULT | self.insts.len() as u32;
        self.insts.push(Inst {
            code,
            memory: memory as u16,
            a,
            b,
            c,
            immediate,
            op,
        });
        register
    }

    /// Returns the number of variables that remain at the end, if the activation continues at
    /// `next`.
    fn kept(&self, next: Option<BlockId>) -> u32 {
        let slots = &self.body.slots;
        let locals = slots.locals.len() as u32;
        match (&self.end, next) {
            // Values below the operands also remain, for a handler.
            (NodeEnd::Call { .. } | NodeEnd::Throw { .. } | NodeEnd::Rethrow { .. }, _) => {
                locals + self.height
            }
            (_, Some(next)) => locals + slots.at_start.get(next).map_or(0, |s| s.len() as u32),
            (_, None) => 0,
        }
    }

    /// Numbers the registers, and finds the final values of the first `kept` variables.
    fn finish(mut self, next: Option<BlockId>, kept: u32) -> NodeCode {
        let all_moved = self.all_moved(kept);
        let moved = std::mem::take(&mut self.moved);
        let unmoved = |register| unmoved(&moved, register);
        let variables = self.body.variables() as u32;
        let first_result = variables + self.constants.len() as u32;
        let place = |register: Register| {
            let register = unmoved(register);
            if register & RESULT != 0 {
                first_result + (register & !RESULT)
            } else if register & CONSTANT != 0 {
                variables + (register & !CONSTANT)
            } else {
                register
            }
        };
        let mut outputs = Vec::from_iter(
            self.current
                .iter()
                .filter(|&(&variable, &register)| variable != unmoved(register) && variable < kept)
                .map(|(&variable, &register)| (variable, place(register))),
        );
        outputs.sort_unstable();
        for inst in &mut self.insts {
            inst.a = place(inst.a);
            inst.b = place(inst.b);
            let lane = matches!(inst.code, Code::LoadVector(_) | Code::StoreVector(_));
            if !lane {
                inst.c = place(inst.c);
            }
        }
        let many = |registers: &mut Box<[Register]>| {
            registers.iter_mut().for_each(|r| *r = place(*r));
        };
        match &mut self.end {
            NodeEnd::Next | NodeEnd::Trap => {}
            NodeEnd::Call {
                index, arguments, ..
            }
            | NodeEnd::TailCall {
                index, arguments, ..
            } => {
                *index = index.map(place);
                many(arguments);
            }
            NodeEnd::Return(values) | NodeEnd::Throw { values, .. } => many(values),
            NodeEnd::Rethrow { exception, .. } => *exception = place(*exception),
        }
        for (register, extra) in &mut self.vectors {
            *register = place(*register);
            extra.c = place(extra.c);
        }
        let inputs = inputs(variables, &self.insts, &outputs, &self.end);
        let constants = (variables..).zip(&self.constants);
        let wide_constants = constants.filter_map(|(register, constant)| match *constant {
            Constant::Vector(bits) => Some((register, (bits >> 64) as u64)),
            Constant::Scalar(_) => None,
        });
        let low = |constant: &Constant| match *constant {
            Constant::Scalar(bits) => bits,
            Constant::Vector(bits) => bits as u64,
        };
        NodeCode {
            function: self.body.function.id,
            first: self.first,
            next,
            variables,
            wide_constants: wide_constants.collect(),
            constants: self.constants.iter().map(low).collect(),
            insts: self.insts.into(),
            outputs: outputs.into(),
            inputs: inputs.into(),
            end: self.end,
            vectors: self.vectors.into(),
            lists: self.lists.into(),
            wide: self.body.wide,
            moved: all_moved.into(),
        }
    }
}

/// Returns the original of a moved value. Any other value is its own original.
fn unmoved(moved: &[(Register, u32)], mut register: Register) -> Register {
    while register & MOVED == MOVED {
        register = moved[(register & !MOVED) as usize].0;
    }
    register
}

/// Returns the variables that are read, ascending.
fn inputs(variables: u32, insts: &[Inst], outputs: &[(u32, Register)], end: &NodeEnd) -> Vec<u32> {
    let mut inputs = Vec::new();
    for inst in insts {
        inputs.extend_from_slice(&[inst.a, inst.b, inst.c][..inst.code.operands()]);
    }
    inputs.extend(outputs.iter().map(|&(_, register)| register));
    match end {
        NodeEnd::Next | NodeEnd::Trap => {}
        NodeEnd::Call {
            index, arguments, ..
        }
        | NodeEnd::TailCall {
            index, arguments, ..
        } => inputs.extend(arguments.iter().chain(index)),
        NodeEnd::Return(values) | NodeEnd::Throw { values, .. } => {
            inputs.extend_from_slice(values);
        }
        NodeEnd::Rethrow { exception, .. } => inputs.push(*exception),
    }
    inputs.retain(|&register| register < variables);
    inputs.sort_unstable();
    inputs.dedup();
    inputs
}
