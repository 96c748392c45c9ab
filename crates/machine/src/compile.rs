//! From a path of blocks to its code.

use std::collections::HashMap;

use afterimage_ids::{BlockId, EdgeId, EntityRef, OpId};
use afterimage_numeric::{Kind, Scalar, Vector, VectorLoad, VectorStore};
use afterimage_program::{
    BlockEnd, BlockKind, Callee, CarriedFrom, EdgeKind, Function, NO_HEIGHT, Program, Slots,
};
use wasmparser::{MemArg, Operator, ValType};

use crate::MachineError;
use crate::code::{NodeCode, NodeEnd, TableIndices, VectorExtra};
use crate::inst::{Code, Expected, Inst, Load, Register};

/// A function as the compiler needs it.
#[derive(Debug)]
pub struct Body<'a> {
    /// The function.
    pub function: &'a Function,
    /// Its operators.
    pub operators: Vec<Operator<'a>>,
    /// Its variables.
    pub slots: Slots,
    /// Some value may be a vector.
    pub wide: bool,
}

impl<'a> Body<'a> {
    /// Reads a function's body. O(operators).
    ///
    /// # Errors
    /// If `bytes` is not the module that the program was parsed from.
    pub fn read(
        program: &'a Program,
        bytes: &'a [u8],
        function: &'a Function,
    ) -> Result<Self, MachineError> {
        let slots = Slots::build(program, bytes, function)?;
        let operators = program.operators(bytes, function);
        let operators = Vec::from_iter(operators.map(|(_, _, operator)| operator));
        let vector_types = slots.locals.contains(&ValType::V128)
            || slots.at_start.values().any(|t| t.contains(&ValType::V128));
        let wide = vector_types
            || operators.iter().any(|operator| {
                matches!(operator, Operator::V128Const { .. })
                    || Vector::of(operator).is_some()
                    || VectorLoad::of(operator).is_some()
                    || calls_with_vectors(program, operator)
            });
        Ok(Self {
            function,
            operators,
            slots,
            wide,
        })
    }
}

fn calls_with_vectors(program: &Program, operator: &Operator<'_>) -> bool {
    callee_of(operator)
        .and_then(|(callee, _)| type_of(program, callee))
        .is_some_and(|ty| ty.results.contains(&ValType::V128))
}

/// The callee of a call, and whether it is a tail call.
fn callee_of(operator: &Operator<'_>) -> Option<(Callee, bool)> {
    let indirect = |table, ty| Callee::Indirect {
        table,
        ty: afterimage_ids::TypeId::from_u32(ty),
    };
    let direct = |function| Callee::Direct(afterimage_ids::FuncId::from_u32(function));
    Some(match *operator {
        Operator::Call { function_index } => (direct(function_index), false),
        Operator::ReturnCall { function_index } => (direct(function_index), true),
        Operator::CallIndirect {
            type_index,
            table_index,
        } => (indirect(table_index, type_index), false),
        Operator::ReturnCallIndirect {
            type_index,
            table_index,
        } => (indirect(table_index, type_index), true),
        _ => return None,
    })
}

/// The type of what a call calls.
pub(crate) fn type_of(
    program: &Program,
    callee: Callee,
) -> Option<&afterimage_program::FunctionType> {
    let ty = match callee {
        Callee::Direct(function) => match program.function(function) {
            Some(function) => function.ty,
            None => program.imports.get(function.index())?.ty,
        },
        Callee::Indirect { ty, .. } => ty,
    };
    program.types.get(ty)
}

/// While compiling, a register's upper bits say what kind it is, because it is not known yet how many constants there are.
const CONSTANT: u32 = 1 << 30;
const RESULT: u32 = 1 << 31;

struct Compiler<'a> {
    program: &'a Program,
    body: &'a Body<'a>,
    /// What the variables are, if not what they were at the start.
    current: HashMap<u32, Register>,
    constants: Vec<(u64, u64)>,
    known: HashMap<(u64, u64), Register>,
    insts: Vec<Inst>,
    vectors: Vec<(Register, VectorExtra)>,
    lists: Vec<TableIndices>,
    inputs: Vec<u32>,
    /// The height after the last operator.
    height: u32,
    first: BlockId,
    end: NodeEnd,
}

/// Compiles a path. O(operators on it + variables written).
///
/// # Errors
/// If the blocks are not a path of the function.
pub fn compile<'a>(
    program: &'a Program,
    body: &'a Body<'a>,
    blocks: &[BlockId],
    next: Option<BlockId>,
) -> Result<NodeCode, MachineError> {
    let cfg = &body.function.cfg;
    let no_path = || MachineError::NoPath {
        function: body.function.id,
        block: blocks.first().copied().unwrap_or(cfg.graph.root()),
    };
    let &first = blocks.first().ok_or_else(no_path)?;
    let mut compiler = Compiler {
        program,
        body,
        current: HashMap::new(),
        constants: Vec::new(),
        known: HashMap::new(),
        insts: Vec::new(),
        vectors: Vec::new(),
        lists: Vec::new(),
        inputs: Vec::new(),
        height: body.slots.at_start.get(first).map_or(0, |s| s.len() as u32),
        first,
        end: NodeEnd::Next,
    };
    for (i, &block) in blocks.iter().enumerate() {
        let to = match blocks.get(i + 1) {
            Some(&to) => Some(to),
            None => next,
        };
        compiler.block(block, to).ok_or_else(no_path)?;
    }
    compiler.finish(next).ok_or_else(no_path)
}

impl Compiler<'_> {
    fn block(&mut self, block: BlockId, to: Option<BlockId>) -> Option<()> {
        let body = self.body;
        let cfg = &body.function.cfg;
        let known = cfg.blocks.get(block)?;
        if known.kind != BlockKind::Code {
            return None;
        }
        // A call's way goes on when it has returned.
        let to = to.unwrap_or(cfg.graph.exit());
        let ways: Vec<EdgeId> = cfg.graph.out_edges(block).to_vec();
        let ways = Vec::from_iter(ways.into_iter().filter(|&edge| cfg.graph.to(edge) == to));
        for op in known.ops.start.index()..known.ops.end.index() {
            let op = OpId::new(op);
            let height = *body.slots.heights.get(op)?;
            if height == NO_HEIGHT {
                continue;
            }
            self.height = height;
            self.operator(op, body.operators.get(op.index())?, &ways, block)?;
        }
        match known.end {
            BlockEnd::Call(_) | BlockEnd::TailCall(_) | BlockEnd::Throw => return Some(()),
            BlockEnd::Unreachable => {
                self.end = NodeEnd::Trap;
                return Some(());
            }
            _ => {}
        }
        let Some(&edge) = ways.first() else {
            // The run ended here.
            self.end = NodeEnd::Trap;
            return Some(());
        };
        if to == cfg.graph.exit() {
            let results = self.program.types[body.function.ty].results.len() as u32;
            let base = self.height.checked_sub(results)?;
            let values = (base..self.height).map(|slot| self.read_slot(slot));
            self.end = NodeEnd::Return(values.collect());
        } else if let Some(carried) = body.slots.carried.get(&edge)
            && let CarriedFrom::Slots(from) = carried.source
        {
            for i in 0..carried.count {
                let value = self.read_slot(from + i);
                self.write_slot(carried.base + i, value);
            }
            self.height = carried.base + carried.count;
        }
        Some(())
    }

    fn read(&mut self, variable: u32) -> Register {
        if let Some(&register) = self.current.get(&variable) {
            return register;
        }
        self.inputs.push(variable);
        self.current.insert(variable, variable);
        variable
    }

    fn read_slot(&mut self, slot: u32) -> Register {
        self.read(self.body.slots.of_slot(slot))
    }

    fn write_slot(&mut self, slot: u32, register: Register) {
        self.current.insert(self.body.slots.of_slot(slot), register);
    }

    fn pop(&mut self) -> Option<Register> {
        self.height = self.height.checked_sub(1)?;
        Some(self.read_slot(self.height))
    }

    fn push(&mut self, register: Register) {
        self.write_slot(self.height, register);
        self.height += 1;
    }

    fn constant(&mut self, low: u64, high: u64) -> Register {
        let next = CONSTANT | self.constants.len() as u32;
        let register = *self.known.entry((low, high)).or_insert(next);
        if register == next {
            self.constants.push((low, high));
        }
        register
    }

    /// Whether a register holds a vector.
    fn is_vector(&self, register: Register) -> bool {
        if register & RESULT != 0 {
            let inst = &self.insts[(register & !RESULT) as usize];
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
            return self.constants[(register & !CONSTANT) as usize].1 != 0;
        }
        let mut types = self.body.slots.types_at(self.first);
        types.nth(register as usize) == Some(ValType::V128)
    }

    /// Adds an instruction. The answer is its result.
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

    fn operator(
        &mut self,
        op: OpId,
        operator: &Operator<'_>,
        ways: &[EdgeId],
        block: BlockId,
    ) -> Option<()> {
        if let Some(scalar) = Scalar::of(operator) {
            let b = if scalar.arity() == 2 { self.pop()? } else { 0 };
            let a = self.pop()?;
            let result = self.inst(op, Code::Scalar(scalar), [a, b, 0], 0);
            self.push(result);
            return Some(());
        }
        if self.moves(operator)?
            || self.constants_of(operator)
            || self.memory_access(op, operator)?
            || self.control(op, operator, ways, block)?
            || self.vector(op, operator)?
        {
            return Some(());
        }
        self.bulk(op, operator)
    }

    fn moves(&mut self, operator: &Operator<'_>) -> Option<bool> {
        match *operator {
            Operator::Nop => {}
            Operator::Drop => {
                self.height = self.height.checked_sub(1)?;
            }
            Operator::LocalGet { local_index } => {
                let value = self.read(local_index);
                self.push(value);
            }
            Operator::LocalSet { local_index } => {
                let value = self.pop()?;
                self.current.insert(local_index, value);
            }
            Operator::LocalTee { local_index } => {
                let value = self.pop()?;
                self.push(value);
                self.current.insert(local_index, value);
            }
            _ => return Some(false),
        }
        Some(true)
    }

    fn constants_of(&mut self, operator: &Operator<'_>) -> bool {
        let (low, high) = match *operator {
            Operator::I32Const { value } => (u64::from(value as u32), 0),
            Operator::I64Const { value } => (value as u64, 0),
            Operator::F32Const { value } => (u64::from(value.bits()), 0),
            Operator::F64Const { value } => (value.bits(), 0),
            Operator::V128Const { value } => {
                let bits = u128::from_le_bytes(*value.bytes());
                (bits as u64, (bits >> 64) as u64)
            }
            Operator::RefNull { .. } => (0, 0),
            Operator::RefFunc { function_index } => (u64::from(function_index) + 1, 0),
            _ => return false,
        };
        let register = self.constant(low, high);
        self.push(register);
        true
    }

    fn control(
        &mut self,
        op: OpId,
        operator: &Operator<'_>,
        ways: &[EdgeId],
        block: BlockId,
    ) -> Option<bool> {
        if let Some((callee, tail)) = callee_of(operator) {
            let index = match callee {
                Callee::Indirect { .. } => Some(self.pop()?),
                Callee::Direct(_) => None,
            };
            let ty = type_of(self.program, callee)?;
            let base = self.height.checked_sub(ty.params.len() as u32)?;
            let arguments = (base..self.height).map(|slot| self.read_slot(slot));
            let arguments = arguments.collect();
            self.height = base;
            self.end = if tail {
                NodeEnd::TailCall {
                    callee,
                    index,
                    arguments,
                }
            } else {
                NodeEnd::Call {
                    callee,
                    index,
                    arguments,
                    results: self.body.slots.of_slot(base),
                    block,
                }
            };
            return Some(true);
        }
        match operator {
            Operator::Br { .. } | Operator::Return | Operator::Unreachable => {}
            Operator::If { .. } | Operator::BrIf { .. } => {
                let a = self.pop()?;
                let kinds = ways.iter().map(|&e| self.body.function.cfg.edges[e].kind);
                let taken = |kind| matches!(kind, EdgeKind::Taken | EdgeKind::Then);
                let (mut yes, mut no) = (false, false);
                for kind in kinds {
                    *(if taken(kind) { &mut yes } else { &mut no }) = true;
                }
                let expected = match (yes, no) {
                    (true, false) => Expected::True,
                    (false, true) => Expected::False,
                    _ => Expected::Any,
                };
                self.inst(op, Code::Branch(expected), [a, 0, 0], 0);
            }
            Operator::BrTable { targets } => {
                let a = self.pop()?;
                let cfg = &self.body.function.cfg;
                let depths = Vec::from_iter(ways.iter().filter_map(|&e| match cfg.edges[e].kind {
                    EdgeKind::Table(depth) => Some(depth),
                    _ => None,
                }));
                let (expected, list) = if depths.is_empty() {
                    (Expected::Any, 0)
                } else {
                    let all = targets.targets().collect::<Result<Vec<_>, _>>().ok()?;
                    let indices = (0..).zip(&all).filter(|(_, d)| depths.contains(d));
                    self.lists.push(TableIndices {
                        indices: indices.map(|(i, _)| i).collect(),
                        from: depths
                            .contains(&targets.default())
                            .then_some(all.len() as u32),
                    });
                    (Expected::OneOf, self.lists.len() as u64 - 1)
                };
                self.inst(op, Code::Branch(expected), [a, 0, 0], list);
            }
            Operator::Throw { tag_index } => {
                let ty = self.program.tags.get(*tag_index as usize)?;
                let count = self.program.types.get(*ty)?.params.len() as u32;
                let base = self.height.checked_sub(count)?;
                let values = (base..self.height).map(|slot| self.read_slot(slot));
                let values = values.collect();
                self.end = NodeEnd::Throw {
                    tag: *tag_index,
                    values,
                    block,
                };
            }
            Operator::ThrowRef => {
                let exception = self.pop()?;
                self.end = NodeEnd::Rethrow { exception, block };
            }
            _ => return Some(false),
        }
        Some(true)
    }

    fn memory_access(&mut self, op: OpId, operator: &Operator<'_>) -> Option<bool> {
        let load = |bytes, sign| Code::Load(Load { bytes, sign });
        let loads = |memarg: &MemArg, bytes, sign| Some((*memarg, load(bytes, sign), false));
        let stores = |memarg: &MemArg, bytes| Some((*memarg, Code::Store(bytes), true));
        let access = match operator {
            Operator::I32Load { memarg }
            | Operator::F32Load { memarg }
            | Operator::I64Load32U { memarg } => loads(memarg, 4, 0),
            Operator::I64Load { memarg } | Operator::F64Load { memarg } => loads(memarg, 8, 0),
            Operator::I32Load8U { memarg } | Operator::I64Load8U { memarg } => loads(memarg, 1, 0),
            Operator::I32Load16U { memarg } | Operator::I64Load16U { memarg } => {
                loads(memarg, 2, 0)
            }
            Operator::I32Load8S { memarg } => loads(memarg, 1, 32),
            Operator::I32Load16S { memarg } => loads(memarg, 2, 32),
            Operator::I64Load8S { memarg } => loads(memarg, 1, 64),
            Operator::I64Load16S { memarg } => loads(memarg, 2, 64),
            Operator::I64Load32S { memarg } => loads(memarg, 4, 64),
            Operator::I32Store { memarg }
            | Operator::F32Store { memarg }
            | Operator::I64Store32 { memarg } => stores(memarg, 4),
            Operator::I64Store { memarg } | Operator::F64Store { memarg } => stores(memarg, 8),
            Operator::I32Store8 { memarg } | Operator::I64Store8 { memarg } => stores(memarg, 1),
            Operator::I32Store16 { memarg } | Operator::I64Store16 { memarg } => stores(memarg, 2),
            _ => None,
        };
        let Some((memarg, code, store)) = access else {
            return Some(false);
        };
        let b = if store { self.pop()? } else { 0 };
        let a = self.pop()?;
        let result = self.in_memory(op, code, memarg.memory, [a, b, 0], memarg.offset);
        if !store {
            self.push(result);
        }
        Some(true)
    }

    fn vector(&mut self, op: OpId, operator: &Operator<'_>) -> Option<bool> {
        if let Some((vector, immediate)) = Vector::of(operator) {
            let mut operands = [0; 3];
            for operand in operands[..vector.signature().0.len()].iter_mut().rev() {
                *operand = self.pop()?;
            }
            let result = self.inst(op, Code::Vector(vector), operands, 0);
            let c = operands[2];
            self.vectors.push((result, VectorExtra { c, immediate }));
            self.push(result);
            return Some(true);
        }
        if let Some((load, memarg, lane)) = VectorLoad::of(operator) {
            let b = if load.keeps() { self.pop()? } else { 0 };
            let a = self.pop()?;
            let code = Code::LoadVector(load);
            let lane = u32::from(lane);
            let result = self.in_memory(op, code, memarg.memory, [a, b, lane], memarg.offset);
            self.push(result);
            return Some(true);
        }
        if let Some((store, memarg, lane)) = VectorStore::of(operator) {
            let b = self.pop()?;
            let a = self.pop()?;
            let code = Code::StoreVector(store);
            let lane = u32::from(lane);
            self.in_memory(op, code, memarg.memory, [a, b, lane], memarg.offset);
            return Some(true);
        }
        Some(false)
    }

    /// What is left: globals, sizes, bulk operations, tables, references, selects.
    fn bulk(&mut self, op: OpId, operator: &Operator<'_>) -> Option<()> {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        // How many operands, the instruction, the memory, the immediate, and whether there is a result.
        let (taken, code, memory, immediate, gives) = match *operator {
            Operator::Select | Operator::TypedSelect { .. } => (3, Code::Select, 0, 0, true),
            Operator::GlobalGet { global_index } => {
                (0, Code::GlobalGet, 0, u64::from(global_index), true)
            }
            Operator::GlobalSet { global_index } => {
                (1, Code::GlobalSet, 0, u64::from(global_index), false)
            }
            Operator::MemorySize { mem } => (0, Code::MemorySize, mem, 0, true),
            Operator::MemoryGrow { mem } => (1, Code::MemoryGrow, mem, 0, true),
            Operator::MemoryCopy { dst_mem, src_mem } => {
                (3, Code::MemoryCopy, dst_mem, u64::from(src_mem), false)
            }
            Operator::MemoryFill { mem } => (3, Code::MemoryFill, mem, 0, false),
            Operator::MemoryInit { data_index, mem } => {
                (3, Code::MemoryInit, mem, u64::from(data_index), false)
            }
            Operator::DataDrop { data_index } => {
                (0, Code::DataDrop, 0, u64::from(data_index), false)
            }
            Operator::TableGet { table } => (1, Code::TableGet, 0, u64::from(table), true),
            Operator::TableSet { table } => (2, Code::TableSet, 0, u64::from(table), false),
            Operator::TableSize { table } => (0, Code::TableSize, 0, u64::from(table), true),
            Operator::TableGrow { table } => (2, Code::TableGrow, 0, u64::from(table), true),
            Operator::TableFill { table } => (3, Code::TableFill, 0, u64::from(table), false),
            Operator::TableCopy {
                dst_table,
                src_table,
            } => (3, Code::TableCopy, 0, pair(dst_table, src_table), false),
            Operator::TableInit { elem_index, table } => {
                (3, Code::TableInit, 0, pair(table, elem_index), false)
            }
            Operator::ElemDrop { elem_index } => {
                (0, Code::ElementDrop, 0, u64::from(elem_index), false)
            }
            Operator::RefIsNull => (1, Code::RefIsNull, 0, 0, true),
            _ => return None,
        };
        let mut operands = [0; 3];
        for operand in operands[..taken].iter_mut().rev() {
            *operand = self.pop()?;
        }
        let code = match code {
            Code::Select if self.is_vector(operands[0]) || self.is_vector(operands[1]) => {
                Code::SelectVector
            }
            other => other,
        };
        let result = self.in_memory(op, code, memory, operands, immediate);
        if gives {
            self.push(result);
        }
        Some(())
    }

    /// Numbers the registers, and finds what is left of the variables.
    fn finish(mut self, next: Option<BlockId>) -> Option<NodeCode> {
        let slots = &self.body.slots;
        let variables = slots.count() as u32;
        let locals = slots.locals.len() as u32;
        let stays = match (&self.end, next) {
            (NodeEnd::Call { .. }, _) => locals + self.height,
            (NodeEnd::Throw { .. } | NodeEnd::Rethrow { .. }, _) => locals,
            (_, Some(next)) => locals + slots.at_start.get(next).map_or(0, |s| s.len() as u32),
            (_, None) => 0,
        };
        let first_result = variables + self.constants.len() as u32;
        let place = |register: Register| {
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
                .filter(|&(&variable, &register)| variable != register && variable < stays)
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
        self.inputs.sort_unstable();
        let wide_constants = (variables..).zip(&self.constants);
        let wide_constants = wide_constants.filter(|(_, (_, high))| *high != 0);
        Some(NodeCode {
            function: self.body.function.id,
            first: self.first,
            next,
            variables,
            wide_constants: wide_constants.map(|(r, &(_, high))| (r, high)).collect(),
            constants: self.constants.iter().map(|&(low, _)| low).collect(),
            insts: self.insts.into(),
            outputs: outputs.into(),
            inputs: self.inputs.into(),
            end: self.end,
            vectors: self.vectors.into(),
            lists: self.lists.into(),
            wide: self.body.wide,
        })
    }
}
