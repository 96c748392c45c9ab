//! The walk over the operators: blocks, frames, and what branches carry.

use std::collections::HashMap;

use afterimage_ids::{BlockId, EntityRef, OpId, PrimaryMap, TypeId, ValueId};
use wasmparser::{BlockType, Catch, FrameKind, FuncValidator, Operator, ValidatorResources};

use super::build::{Carried, Source, Variable, Walked};
use super::{Value, ValueDef};
use crate::{BlockKind, EdgeKind, Function, ParseError, Program};

mod values;

use values::Taken;
pub(super) use values::general;

/// The state of the walk.
pub(super) struct Walk<'a> {
    program: &'a Program,
    validator: FuncValidator<ValidatorResources>,
    pub(super) walked: Walked<'a>,
    /// The dispatch vertices by their `try_table`s.
    dispatches: HashMap<OpId, BlockId>,
    frames: Vec<Frame>,
    /// How many slots of the operand stack are in use.
    height: u32,
    /// The code block entered last, and the one after it.
    block: BlockId,
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
    /// Starts at the function's first operator.
    pub(super) fn new(
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
    pub(super) fn operator(
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
                let ty = self.program.types.get(TypeId::from_u32(ty))?;
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
}
