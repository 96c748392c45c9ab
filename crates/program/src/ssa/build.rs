//! The walk over the operators: statements, and values within blocks.
//!
//! What a block reads before writing becomes an *entry value* of that block. Where
//! entry values come from is left to [`resolve`](super::resolve).

use std::collections::HashMap;

use afterimage_ids::{BlockId, EdgeId, EntityRef, OpId, PrimaryMap, StmtId, ValueId};
use wasmparser::{
    AbstractHeapType, BinaryReader, BlockType, Catch, FrameKind, FuncToValidate, FuncValidator,
    FuncValidatorAllocations, FunctionBody, HeapType, Operator, OperatorsReader, RefType, ValType,
    ValidatorResources,
};

use super::{Effect, Ssa, Statement, Value, ValueDef};
use crate::error::SUPPORTED;
use crate::{BlockKind, Cfg, EdgeKind, Function, ParseError, Program};

/// A local, or a slot of the operand stack: locals come first.
pub(super) type Variable = u32;

/// What an edge puts into the slots of the operand stack from `base` up, if it moves them.
/// The slots below stay where they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub(super) base: u32,
    pub(super) count: u32,
    pub(super) source: Source,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// The slots from this one up, at the end of the block that the edge leaves.
    Slots(u32),
    /// The edge makes them: what a handler receives.
    Caught,
}

/// What the walk found out.
pub(super) struct Walked<'a> {
    pub(super) cfg: &'a Cfg,
    pub(super) locals: u32,
    pub(super) values: PrimaryMap<ValueId, Value>,
    pub(super) statements: PrimaryMap<StmtId, Statement>,
    pub(super) operands: Vec<ValueId>,
    /// The entry values made so far.
    pub(super) entries: HashMap<(BlockId, Variable), ValueId>,
    /// Per block what it leaves written, ascending by variable, with the last value.
    pub(super) writes: PrimaryMap<BlockId, Vec<(Variable, ValueId)>>,
    pub(super) carried: HashMap<EdgeId, Carried>,
    /// The types of the function's results.
    pub(super) results: Box<[ValType]>,
}

impl Ssa {
    /// Builds the statements of a function of a program. `bytes` is the module that the
    /// program was parsed from.
    ///
    /// O((operators + φs + size of the dominance frontiers) · log), which is near-linear unless loops nest deeply.
    ///
    /// # Errors
    /// If `bytes` is not that module.
    pub fn build(program: &Program, bytes: &[u8], function: &Function) -> Result<Self, ParseError> {
        let mismatch = || ParseError::Malformed {
            message: "this is not the code that the program was parsed from".to_string(),
            offset: function.body.start,
        };
        let range = function.body.start.0 as usize..function.body.end.0 as usize;
        let code = bytes.get(range).ok_or_else(mismatch)?;
        let resources = program.resources.0.clone().ok_or_else(mismatch)?;
        let to_validate = FuncToValidate {
            resources,
            index: function.id.as_u32(),
            ty: function.ty.as_u32(),
            features: SUPPORTED,
        };
        let mut validator = to_validate.into_validator(FuncValidatorAllocations::default());
        let body = FunctionBody::new(BinaryReader::new(code, function.body.start.0 as usize));
        let mut reader = body.get_binary_reader();
        validator.read_locals(&mut reader)?;
        let mut reader = OperatorsReader::new(reader);

        let mut walk = Walk::new(program, function, validator);
        let mut op = 0;
        while !reader.eof() {
            let (operator, at) = reader.read_with_offset()?;
            walk.operator(OpId::from_u32(op), at, &operator)
                .ok_or_else(mismatch)??;
            op += 1;
        }
        if op != function.operators {
            return Err(mismatch());
        }
        super::resolve::resolve(walk.walked).ok_or_else(mismatch)
    }
}

struct Walk<'a> {
    program: &'a Program,
    validator: FuncValidator<ValidatorResources>,
    walked: Walked<'a>,
    /// The dispatch vertices by their `try_table`s.
    dispatches: HashMap<OpId, BlockId>,
    frames: Vec<Frame>,
    /// How many slots of the operand stack are in use.
    height: u32,
    block: BlockId,
    /// The first operator of the block after `block`.
    next_block: BlockId,
    /// Per variable: the block that used it last, and its value there.
    current: Vec<(BlockId, ValueId)>,
    /// The variables that the block wrote, with repetitions.
    written: Vec<Variable>,
}

/// An open frame.
struct Frame {
    /// The height below the frame's parameters.
    base: u32,
    params: u32,
    results: u32,
    kind: FrameKind,
}

impl Frame {
    /// How many values a branch to the label carries.
    fn arity(&self) -> u32 {
        if self.kind == FrameKind::Loop {
            self.params
        } else {
            self.results
        }
    }
}

impl<'a> Walk<'a> {
    fn new(
        program: &'a Program,
        function: &'a Function,
        validator: FuncValidator<ValidatorResources>,
    ) -> Self {
        let cfg = &function.cfg;
        let ty = &program.types[function.ty];
        let mut walked = Walked {
            cfg,
            locals: validator.len_locals(),
            values: PrimaryMap::new(),
            statements: PrimaryMap::new(),
            operands: Vec::new(),
            entries: HashMap::new(),
            writes: cfg.blocks.values().map(|_| Vec::new()).collect(),
            carried: HashMap::new(),
            results: ty.results.clone(),
        };
        for (i, ty) in ty.params.iter().enumerate() {
            let value = Value {
                ty: general(*ty),
                def: ValueDef::Param(i as u32),
            };
            let value = walked.values.push(value);
            walked.entries.insert((cfg.graph.root(), i as u32), value);
        }
        let dispatches = cfg
            .blocks
            .iter()
            .filter_map(|(id, block)| match block.kind {
                BlockKind::Dispatch(Some(op)) => Some((op, id)),
                _ => None,
            });
        let results = ty.results.len() as u32;
        Self {
            program,
            dispatches: dispatches.collect(),
            frames: vec![Frame {
                base: 0,
                params: 0,
                results,
                kind: FrameKind::Block,
            }],
            height: 0,
            block: cfg.graph.root(),
            next_block: BlockId::new(0),
            current: Vec::new(),
            written: Vec::new(),
            validator,
            walked,
        }
    }

    /// Takes the next operator. `None` if it cannot be the program's.
    fn operator(
        &mut self,
        op: OpId,
        at: usize,
        operator: &Operator<'_>,
    ) -> Option<Result<(), ParseError>> {
        let cfg = self.walked.cfg;
        while let Some(block) = cfg.blocks.get(self.next_block)
            && block.kind == BlockKind::Code
            && (block.ops.start == op || block.ops.is_empty())
        {
            self.block = self.next_block;
            self.next_block = BlockId::new(self.next_block.index() + 1);
        }
        let reachable = cfg.blocks[self.block].ops.contains(&op);
        let marker = self.marker(op, operator)?;
        let before = if reachable && !marker {
            self.take(operator)?
        } else {
            Taken::Nothing
        };
        if let Err(error) = self.validator.op(at, operator) {
            return Some(Err(error.into()));
        }
        if reachable && !marker {
            self.give(op, operator, before)?;
            self.carry(op, operator)?;
            if cfg.blocks[self.block].ops.end.index() == op.index() + 1 {
                self.leave_block();
            }
        }
        if let Operator::If { blockty } = operator {
            let (params, results) = self.signature(*blockty)?;
            self.open(params, results, FrameKind::If);
        }
        Some(Ok(()))
    }

    /// The markers keep the control stack and the height. Whether the operator is one.
    fn marker(&mut self, op: OpId, operator: &Operator<'_>) -> Option<bool> {
        match operator {
            Operator::Block { blockty } | Operator::Loop { blockty } => {
                let (params, results) = self.signature(*blockty)?;
                let loops = matches!(operator, Operator::Loop { .. });
                self.open(
                    params,
                    results,
                    if loops {
                        FrameKind::Loop
                    } else {
                        FrameKind::Block
                    },
                );
            }
            Operator::TryTable { try_table } => {
                self.catches(op, &try_table.catches)?;
                let (params, results) = self.signature(try_table.ty)?;
                self.open(params, results, FrameKind::TryTable);
            }
            Operator::Else => {
                let frame = self.frames.last()?;
                self.height = frame.base + frame.params;
            }
            Operator::End => {
                let frame = self.frames.pop()?;
                self.height = frame.base + frame.results;
            }
            _ => return Some(false),
        }
        Some(true)
    }

    fn open(&mut self, params: u32, results: u32, kind: FrameKind) {
        // In unreachable code the stack may hold fewer values than are taken.
        let base = self.height.saturating_sub(params);
        self.frames.push(Frame {
            base,
            params,
            results,
            kind,
        });
    }

    fn signature(&self, ty: BlockType) -> Option<(u32, u32)> {
        Some(match ty {
            BlockType::Empty => (0, 0),
            BlockType::Type(_) => (0, 1),
            BlockType::FuncType(ty) => {
                let ty = self
                    .program
                    .types
                    .get(afterimage_ids::TypeId::from_u32(ty))?;
                (ty.params.len() as u32, ty.results.len() as u32)
            }
        })
    }

    fn label(&self, depth: u32) -> Option<&Frame> {
        self.frames
            .get(self.frames.len().checked_sub(1 + depth as usize)?)
    }

    /// Notes what the edges to the handlers of a `try_table` carry, if anything reaches them.
    fn catches(&mut self, op: OpId, catches: &[Catch]) -> Option<()> {
        let Some(&dispatch) = self.dispatches.get(&op) else {
            return Some(());
        };
        let cfg = self.walked.cfg;
        for &edge in cfg.graph.out_edges(dispatch) {
            if let EdgeKind::Catch(clause) = cfg.edges[edge].kind {
                let (Catch::One { label, .. }
                | Catch::OneRef { label, .. }
                | Catch::All { label }
                | Catch::AllRef { label }) = *catches.get(clause as usize)?;
                let label = self.label(label)?;
                let (base, count) = (label.base, label.arity());
                self.walked.carried.insert(
                    edge,
                    Carried {
                        base,
                        count,
                        source: Source::Caught,
                    },
                );
            }
        }
        Some(())
    }

    /// Notes what the edges of a branch carry.
    fn carry(&mut self, op: OpId, operator: &Operator<'_>) -> Option<()> {
        if !matches!(
            operator,
            Operator::Br { .. } | Operator::BrIf { .. } | Operator::BrTable { .. }
        ) {
            return Some(());
        }
        let cfg = self.walked.cfg;
        for &edge in cfg.graph.out_edges(self.block) {
            let depth = match (cfg.edges[edge].kind, operator) {
                (EdgeKind::Table(depth), _) => depth,
                (EdgeKind::Jump, Operator::Br { relative_depth })
                | (EdgeKind::Taken, Operator::BrIf { relative_depth }) => *relative_depth,
                _ => continue,
            };
            debug_assert_eq!(cfg.edges[edge].op, Some(op));
            let label = self.label(depth)?;
            let (base, count) = (label.base, label.arity());
            let from = self.height.checked_sub(count)?;
            if from != base {
                let source = Source::Slots(from);
                self.walked.carried.insert(
                    edge,
                    Carried {
                        base,
                        count,
                        source,
                    },
                );
            }
        }
        Some(())
    }

    /// Takes an operator's operands from the stack, before it is validated.
    fn take(&mut self, operator: &Operator<'_>) -> Option<Taken> {
        Some(match operator {
            Operator::Nop => Taken::Nothing,
            Operator::Drop => {
                self.height = self.height.checked_sub(1)?;
                Taken::Nothing
            }
            Operator::LocalGet { local_index } => {
                let ty = self.validator.get_local_type(*local_index)?;
                Taken::Copy(self.read(*local_index, general(ty)))
            }
            Operator::LocalSet { .. } => Taken::Copy(self.pop()?),
            Operator::LocalTee { .. } => {
                let value = self.pop()?;
                self.height += 1;
                Taken::Copy(value)
            }
            _ if is_constant(operator) => Taken::Nothing,
            _ => {
                let taken = match operator {
                    Operator::Br { .. } => 0,
                    Operator::If { .. } | Operator::BrIf { .. } | Operator::BrTable { .. } => 1,
                    _ => operator.operator_arity(&self.validator)?.0,
                };
                let start = self.walked.operands.len();
                for depth in 0..taken {
                    let slot = self.height.checked_sub(1 + depth)?;
                    let value = self.read_slot(slot, depth)?;
                    self.walked.operands.push(value);
                }
                self.walked.operands[start..].reverse();
                self.height -= taken;
                Taken::Operands(start as u32..self.walked.operands.len() as u32)
            }
        })
    }

    /// Defines an operator's results, after it was validated.
    fn give(&mut self, op: OpId, operator: &Operator<'_>, taken: Taken) -> Option<()> {
        match (operator, taken) {
            (Operator::LocalSet { local_index }, Taken::Copy(value)) => {
                self.write(*local_index, value);
            }
            (Operator::LocalTee { local_index }, Taken::Copy(value)) => {
                self.write(*local_index, value);
            }
            (_, Taken::Copy(value)) => self.push(value),
            (_, Taken::Nothing) if is_constant(operator) => {
                let ty = self.operand_type(0)?;
                let value = Value {
                    ty,
                    def: ValueDef::Constant(op),
                };
                let value = self.walked.values.push(value);
                self.push(value);
            }
            (_, Taken::Nothing) => {}
            (_, Taken::Operands(operands)) => self.statement(op, operator, operands)?,
        }
        Some(())
    }

    fn statement(
        &mut self,
        op: OpId,
        operator: &Operator<'_>,
        operands: std::ops::Range<u32>,
    ) -> Option<()> {
        let effect = Effect::of(operator);
        let statement = self.walked.statements.next_key();
        let first = self.walked.values.next_key();
        let define = |walked: &mut Walked<'_>, ty, index| {
            walked.values.push(Value {
                ty,
                def: ValueDef::Result { statement, index },
            })
        };
        if let Effect::TailCall(_) = effect {
            // The callee has this function's results.
            for (index, ty) in self.walked.results.clone().iter().enumerate() {
                define(&mut self.walked, general(*ty), index as u32);
            }
        } else if !matches!(effect, Effect::Control | Effect::Throw | Effect::Trap) {
            // The validator's stack is ours, with the results on top.
            let given = self
                .validator
                .operand_stack_height()
                .checked_sub(self.height)?;
            for index in 0..given {
                let ty = self.operand_type(given - 1 - index)?;
                let value = define(&mut self.walked, ty, index);
                self.push(value);
            }
        }
        let results = first..self.walked.values.next_key();
        let block = self.block;
        self.walked.statements.push(Statement {
            op,
            block,
            effect,
            results,
            operands,
        });
        Some(())
    }

    /// The type of an operand, counted from the top of the validator's stack.
    fn operand_type(&self, depth: u32) -> Option<ValType> {
        Some(general(self.validator.get_operand_type(depth as usize)??))
    }

    fn pop(&mut self) -> Option<ValueId> {
        let slot = self.height.checked_sub(1)?;
        let value = self.read_slot(slot, 0)?;
        self.height = slot;
        Some(value)
    }

    fn push(&mut self, value: ValueId) {
        self.write(self.walked.locals + self.height, value);
        self.height += 1;
    }

    fn read_slot(&mut self, slot: u32, depth: u32) -> Option<ValueId> {
        let ty = self.operand_type(depth)?;
        Some(self.read(self.walked.locals + slot, ty))
    }

    fn read(&mut self, variable: Variable, ty: ValType) -> ValueId {
        match self.current.get(variable as usize) {
            Some(&(block, value)) if block == self.block => value,
            _ => {
                let value = self.walked.entry(self.block, variable, ty);
                self.remember(variable, value);
                value
            }
        }
    }

    fn write(&mut self, variable: Variable, value: ValueId) {
        self.remember(variable, value);
        self.written.push(variable);
    }

    fn remember(&mut self, variable: Variable, value: ValueId) {
        let i = variable as usize;
        if i >= self.current.len() {
            // No block is EXIT while the walk is in code.
            let none = (self.walked.cfg.graph.exit(), ValueId::new(0));
            self.current.resize(i + 1, none);
        }
        self.current[i] = (self.block, value);
    }

    /// Keeps what the block wrote, but for slots that it popped again.
    fn leave_block(&mut self) {
        let limit = self.walked.locals + self.height;
        self.written.sort_unstable();
        self.written.dedup();
        let current = &self.current;
        self.walked.writes[self.block] = self
            .written
            .drain(..)
            .filter(|variable| *variable < limit)
            .map(|variable| (variable, current[variable as usize].1))
            .collect();
    }
}

impl Walked<'_> {
    /// The value of a variable at the start of a block.
    pub(super) fn entry(&mut self, block: BlockId, variable: Variable, ty: ValType) -> ValueId {
        let initial = block == self.cfg.graph.root();
        let def = if initial {
            ValueDef::Initial(variable)
        } else {
            ValueDef::Phi(block)
        };
        let values = &mut self.values;
        *self
            .entries
            .entry((block, variable))
            .or_insert_with(|| values.push(Value { ty, def }))
    }
}

/// What an operator took.
enum Taken {
    Nothing,
    /// A value that is only moved.
    Copy(ValueId),
    /// The operands of a statement.
    Operands(std::ops::Range<u32>),
}

/// Whether an operator pushes a constant.
fn is_constant(operator: &Operator<'_>) -> bool {
    matches!(
        operator,
        Operator::I32Const { .. }
            | Operator::I64Const { .. }
            | Operator::F32Const { .. }
            | Operator::F64Const { .. }
            | Operator::V128Const { .. }
            | Operator::RefNull { .. }
            | Operator::RefFunc { .. }
    )
}

/// A type without what only the validator cares about: whether a reference may be null, and to
/// what exactly it refers.
pub(super) fn general(ty: ValType) -> ValType {
    let ValType::Ref(reference) = ty else {
        return ty;
    };
    match reference.heap_type() {
        HeapType::Abstract {
            ty: AbstractHeapType::Extern | AbstractHeapType::NoExtern,
            ..
        } => ValType::EXTERNREF,
        HeapType::Abstract {
            ty: AbstractHeapType::Exn | AbstractHeapType::NoExn,
            ..
        } => ValType::Ref(RefType::EXNREF),
        _ => ValType::FUNCREF,
    }
}
