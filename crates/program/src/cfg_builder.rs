//! Builds a function's control-flow graph in one pass over its operators.
//!
//! Edges without an existing target are *pending*. They are edges to the next operator and, for
//! each label, edges to the label's `end`. A block is created only when an operator arrives, and
//! all edges pending for that operator then lead to the block. So there are no empty blocks to
//! remove afterwards. An operator that arrives with no open block and no pending edge is
//! unreachable.
//!
//! Only a loop's end reveals whether any branch targets the loop. The first operator in a loop
//! therefore always starts a block. If it turns out that only the previous block enters this block,
//! the two blocks are joined when the graph is finished.

use afterimage_ids::{EntityRef, OpId, OrigOffset};
use std::collections::HashSet;
use std::ops::Range;
use wasmparser::{Catch, Operator};

use crate::calls::{MayThrow, Transfer};
use crate::{Block, BlockEnd, BlockKind, Cfg, EdgeKind};

mod exceptions;
mod finish;
mod frames;

/// A pending edge, given by its origin.
#[derive(Clone, Copy, Debug)]
struct Pending {
    from: Vertex,
    kind: EdgeKind,
    op: Option<OpId>,
    /// The position of the edge among the edges that leave `from`.
    slot: u32,
}

/// A vertex, before the final numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vertex {
    Code(u32),
    /// The dispatch vertex of a `try_table`, by order of creation.
    Dispatch(u32),
    /// The function's own dispatch vertex.
    OwnDispatch,
    Exit,
}

/// An edge with both ends.
#[derive(Clone, Copy, Debug)]
struct RawEdge {
    origin: Pending,
    to: Vertex,
    back: bool,
    /// Whether the edge exists only because a loop begins here. The edge is contracted if no other
    /// edge enters `to`.
    splits_for_loop: bool,
}

/// An open frame of the control stack.
#[derive(Debug)]
struct Frame {
    kind: FrameKind,
    /// The edges that lead to the operator after the frame's `end`.
    join: Vec<Pending>,
}

#[derive(Debug)]
enum FrameKind {
    Function,
    Block,
    Loop {
        /// The first block in the loop, once the loop contains an operator.
        header: Option<u32>,
    },
    If {
        /// The edge for a false condition, or `None` in unreachable code.
        otherwise: Option<Pending>,
    },
    Else,
    Try {
        op: OpId,
        offset: OrigOffset,
        catches: Vec<Catch>,
        /// The dispatch vertex of the `try_table`, once an edge reaches it.
        dispatch: Option<u32>,
    },
}

/// Builds the control-flow graph of one function. It must receive every operator in order.
#[derive(Debug)]
pub(crate) struct CfgBuilder<'a> {
    may_throw: &'a MayThrow,
    frames: Vec<Frame>,
    /// The positions in `frames` of the open `try_table`s.
    tries: Vec<usize>,
    /// The positions in `frames` of the open loops that have no operator so far. Above them, the
    /// control stack contains only other markers.
    headerless: Vec<usize>,
    /// The code blocks, in layout order.
    code: Vec<Block>,
    /// The block that the next operator extends. If there is such a block, `pending` is empty.
    current: Option<u32>,
    /// The edges that lead to the next operator.
    pending: Vec<Pending>,
    edges: Vec<RawEdge>,
    /// The `try_table`s of the dispatch vertices that some edge reaches.
    dispatches: Vec<(OpId, OrigOffset)>,
    own_dispatch: bool,
    end: OrigOffset,
}

impl<'a> CfgBuilder<'a> {
    /// Starts a function whose first operator is at `start`.
    pub(crate) fn new(may_throw: &'a MayThrow, start: OrigOffset) -> Self {
        let root = Block {
            kind: BlockKind::Code,
            ops: OpId::new(0)..OpId::new(0),
            offsets: start..start,
            end: BlockEnd::Fall,
        };
        Self {
            may_throw,
            frames: vec![Frame {
                kind: FrameKind::Function,
                join: Vec::new(),
            }],
            tries: Vec::new(),
            headerless: Vec::new(),
            code: vec![root],
            current: Some(0),
            pending: Vec::new(),
            edges: Vec::new(),
            dispatches: Vec::new(),
            own_dispatch: false,
            end: start,
        }
    }

    /// Processes the next operator, which occupies the bytes at `offsets`.
    pub(crate) fn operator(
        &mut self,
        op: OpId,
        offsets: Range<OrigOffset>,
        operator: &Operator<'_>,
    ) {
        self.end = offsets.end;
        match operator {
            Operator::Block { .. } => self.push(FrameKind::Block),
            Operator::Loop { .. } => {
                self.headerless.push(self.frames.len());
                self.push(FrameKind::Loop { header: None });
            }
            Operator::TryTable { try_table } => {
                self.tries.push(self.frames.len());
                let catches = try_table.catches.clone();
                let offset = offsets.start;
                self.push(FrameKind::Try {
                    op,
                    offset,
                    catches,
                    dispatch: None,
                });
            }
            Operator::Else => self.otherwise(),
            Operator::End => self.end(),
            _ => match self.enter(op, offsets) {
                Some(block) => self.execute(block, op, operator),
                None if matches!(operator, Operator::If { .. }) => {
                    self.push(FrameKind::If { otherwise: None });
                }
                None => {}
            },
        }
    }

    /// Handles an operator in reachable code, if it ends a block.
    fn execute(&mut self, block: u32, op: OpId, operator: &Operator<'_>) {
        let origin = |kind, slot| Pending {
            from: Vertex::Code(block),
            kind,
            op: Some(op),
            slot,
        };
        match operator {
            Operator::If { .. } => {
                self.close(BlockEnd::Branch);
                self.pending.push(origin(EdgeKind::Then, 0));
                self.push(FrameKind::If {
                    otherwise: Some(origin(EdgeKind::Else, 1)),
                });
            }
            Operator::Br { relative_depth } => {
                self.close(BlockEnd::Jump);
                self.branch(origin(EdgeKind::Jump, 0), self.label(*relative_depth));
            }
            Operator::BrIf { relative_depth } => {
                self.close(BlockEnd::Branch);
                self.pending.push(origin(EdgeKind::NotTaken, 0));
                self.branch(origin(EdgeKind::Taken, 1), self.label(*relative_depth));
            }
            Operator::BrTable { targets } => {
                self.close(BlockEnd::Table);
                let mut seen = HashSet::new();
                // The targets were already read once, when the module was validated.
                let listed = targets.targets().map_while(Result::ok);
                for depth in listed.chain([targets.default()]) {
                    if seen.insert(depth) {
                        let slot = seen.len() as u32 - 1;
                        self.branch(origin(EdgeKind::Table(depth), slot), self.label(depth));
                    }
                }
            }
            Operator::Return => {
                self.close(BlockEnd::Return);
                self.edge(origin(EdgeKind::Return, 0), Vertex::Exit, false);
            }
            Operator::Unreachable => self.close(BlockEnd::Unreachable),
            Operator::Throw { .. } | Operator::ThrowRef => {
                self.close(BlockEnd::Throw);
                self.raise(origin(EdgeKind::Throw, 0));
            }
            _ => match Transfer::of(operator) {
                Some(Transfer::Call(callee)) => {
                    self.close(BlockEnd::Call(callee));
                    self.pending.push(origin(EdgeKind::CallReturn, 0));
                    if self.may_throw.call(callee) {
                        self.raise(origin(EdgeKind::CallThrow, 1));
                    }
                }
                Some(Transfer::Tail(callee)) => {
                    self.close(BlockEnd::TailCall(callee));
                    self.edge(origin(EdgeKind::Return, 0), Vertex::Exit, false);
                }
                None => {}
            },
        }
    }

    /// Returns the block to which an operator belongs, and creates it if necessary. Returns `None`
    /// if the operator is unreachable.
    fn enter(&mut self, op: OpId, offsets: Range<OrigOffset>) -> Option<u32> {
        let ops = op..OpId::new(op.index() + 1);
        let split = !self.headerless.is_empty();
        if let (Some(block), false) = (self.current, split) {
            let block = &mut self.code[block as usize];
            if block.ops.is_empty() {
                (block.ops, block.offsets) = (ops, offsets);
            } else {
                (block.ops.end, block.offsets.end) = (ops.end, offsets.end);
            }
            return self.current;
        }
        let splits_for_loop = self.current.is_some();
        self.fall();
        if self.pending.is_empty() {
            return None;
        }
        let block = self.code.len() as u32;
        self.code.push(Block {
            kind: BlockKind::Code,
            ops,
            offsets,
            end: BlockEnd::Fall,
        });
        self.current = Some(block);
        for origin in self.pending.drain(..) {
            let to = Vertex::Code(block);
            self.edges.push(RawEdge {
                origin,
                to,
                back: false,
                splits_for_loop,
            });
        }
        for frame in self.headerless.drain(..) {
            self.frames[frame].kind = FrameKind::Loop {
                header: Some(block),
            };
        }
        self.current
    }

    /// Ends the open block. There is an open block, because an operator has just been added to it.
    fn close(&mut self, end: BlockEnd) {
        if let Some(block) = self.current.take() {
            self.code[block as usize].end = end;
        }
    }

    /// If a block is open, ends it with a fall to the next operator.
    fn fall(&mut self) {
        if let Some(block) = self.current.take() {
            let ops = &self.code[block as usize].ops;
            let op = (!ops.is_empty()).then(|| OpId::new(ops.end.index() - 1));
            let from = Vertex::Code(block);
            self.pending.push(Pending {
                from,
                kind: EdgeKind::Fall,
                op,
                slot: 0,
            });
        }
    }

    /// Returns the graph. The function's last `end` must have been processed.
    pub(crate) fn finish(self) -> Cfg {
        finish::finish(self)
    }
}
