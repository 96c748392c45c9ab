//! Computes the height of the operand stack at every operator, and the changes along edges.
//!
//! The height is static, so every slot of the operand stack is a numbered variable, like a local.

use std::collections::HashMap;

use afterimage_ids::{BlockId, EdgeId, OpId, TypeId};
use wasmparser::{BlockType, Catch, FrameKind, Operator};

use crate::{BlockKind, Cfg, EdgeKind, Function, Program};

/// The values that an edge moves into the slots of the operand stack from `base` up. Lower slots
/// keep their values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The lowest slot that gets a value.
    pub base: u32,
    /// The number of slots that get values.
    pub count: u32,
    /// The origin of the values.
    pub source: CarriedFrom,
}

/// The origin of the values on an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarriedFrom {
    /// The values of the slots from this slot up, at the end of the block that the edge leaves.
    Slots(u32),
    /// The edge creates the values, which a handler receives.
    Caught,
}

/// The open frames and the height of the operand stack during a walk over a function's operators.
pub(crate) struct StackWalk<'a> {
    program: &'a Program,
    cfg: &'a Cfg,
    /// The dispatch vertices, by their `try_table`s.
    dispatches: HashMap<OpId, BlockId>,
    frames: Vec<Frame>,
    /// The number of slots of the operand stack in use.
    pub height: u32,
    /// The values on the edges found so far.
    pub carried: HashMap<EdgeId, Carried>,
}

/// An open frame of the control stack.
struct Frame {
    /// The height below the frame's parameters.
    base: u32,
    params: u32,
    results: u32,
    kind: FrameKind,
}

impl Frame {
    /// Returns the number of values that a branch to the label carries.
    fn arity(&self) -> u32 {
        if self.kind == FrameKind::Loop {
            self.params
        } else {
            self.results
        }
    }
}

impl<'a> StackWalk<'a> {
    /// Creates a walk at the function's first operator.
    pub(crate) fn new(program: &'a Program, function: &'a Function) -> Self {
        let cfg = &function.cfg;
        let dispatches = cfg
            .blocks
            .iter()
            .filter_map(|(id, block)| match block.kind {
                BlockKind::Dispatch(Some(op)) => Some((op, id)),
                _ => None,
            });
        Self {
            program,
            cfg,
            dispatches: dispatches.collect(),
            frames: vec![Frame {
                base: 0,
                params: 0,
                results: program.types[function.ty].results.len() as u32,
                kind: FrameKind::Block,
            }],
            height: 0,
            carried: HashMap::new(),
        }
    }

    /// Updates frames and height if the operator is a marker. Returns whether the operator is a
    /// marker.
    pub(crate) fn marker(&mut self, op: OpId, operator: &Operator<'_>) -> Option<bool> {
        match operator {
            Operator::Block { blockty } | Operator::Loop { blockty } => {
                let (params, results) = self.signature(*blockty)?;
                let loops = matches!(operator, Operator::Loop { .. });
                let kind = if loops {
                    FrameKind::Loop
                } else {
                    FrameKind::Block
                };
                self.open(params, results, kind);
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

    /// Opens the frame of an `if`, after its condition was popped.
    pub(crate) fn enter_if(&mut self, operator: &Operator<'_>) -> Option<()> {
        if let Operator::If { blockty } = operator {
            let (params, results) = self.signature(*blockty)?;
            self.open(params, results, FrameKind::If);
        }
        Some(())
    }

    fn open(&mut self, params: u32, results: u32, kind: FrameKind) {
        // In unreachable code, the stack may contain fewer values than are popped.
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

    /// Records the values on the edges to the handlers of a `try_table`, if they are reachable.
    fn catches(&mut self, op: OpId, catches: &[Catch]) -> Option<()> {
        let Some(&dispatch) = self.dispatches.get(&op) else {
            return Some(());
        };
        let cfg = self.cfg;
        for &edge in cfg.graph.out_edges(dispatch) {
            if let EdgeKind::Catch(clause) = cfg.edges[edge].kind {
                let (Catch::One { label, .. }
                | Catch::OneRef { label, .. }
                | Catch::All { label }
                | Catch::AllRef { label }) = *catches.get(clause as usize)?;
                let label = self.label(label)?;
                let (base, count) = (label.base, label.arity());
                let source = CarriedFrom::Caught;
                self.carried.insert(
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

    /// Records the values on the edges of a branch at the end of a block.
    pub(crate) fn carry(
        &mut self,
        block: BlockId,
        op: OpId,
        operator: &Operator<'_>,
    ) -> Option<()> {
        if !matches!(
            operator,
            Operator::Br { .. } | Operator::BrIf { .. } | Operator::BrTable { .. }
        ) {
            return Some(());
        }
        let cfg = self.cfg;
        for &edge in cfg.graph.out_edges(block) {
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
                let source = CarriedFrom::Slots(from);
                self.carried.insert(
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
