//! Maintains the control stack, with its markers, its labels and the edges that wait at them.

use super::{CfgBuilder, Frame, FrameKind, Pending, RawEdge, Vertex};
use crate::{BlockEnd, EdgeKind};

impl CfgBuilder<'_> {
    /// Opens a frame.
    pub(super) fn push(&mut self, kind: FrameKind) {
        self.frames.push(Frame {
            kind,
            join: Vec::new(),
        });
    }

    /// Handles an `else`, at which the then-arm ends. Control then continues after the else-arm.
    pub(super) fn otherwise(&mut self) {
        self.fall();
        if let Some(frame) = self.frames.last_mut() {
            frame.join.append(&mut self.pending);
            if let FrameKind::If { otherwise } = frame.kind {
                self.pending.extend(otherwise);
            }
            frame.kind = FrameKind::Else;
        }
    }

    /// Handles the `end` of any frame.
    pub(super) fn end(&mut self) {
        let Some(mut frame) = self.frames.pop() else {
            return;
        };
        match frame.kind {
            FrameKind::Function => {
                self.fall();
                for origin in std::mem::take(&mut self.pending) {
                    if let (Vertex::Code(block), EdgeKind::Fall) = (origin.from, origin.kind) {
                        self.code[block as usize].end = BlockEnd::Return;
                    }
                    self.edge(origin, Vertex::Exit, false);
                }
            }
            FrameKind::Loop { .. } => {
                self.headerless.pop_if(|last| *last == self.frames.len());
            }
            FrameKind::If { otherwise } => frame.join.extend(otherwise),
            FrameKind::Try { .. } => {
                self.tries.pop();
            }
            FrameKind::Block | FrameKind::Else => {}
        }
        if !frame.join.is_empty() {
            self.fall();
            self.pending.append(&mut frame.join);
        }
    }

    /// Returns the position in `frames` of a label.
    pub(super) fn label(&self, depth: u32) -> usize {
        self.frames.len() - 1 - depth as usize
    }

    /// Directs an edge to the label of a frame.
    pub(super) fn branch(&mut self, origin: Pending, frame: usize) {
        match &mut self.frames[frame] {
            Frame {
                kind: FrameKind::Function,
                ..
            } => self.edge(origin, Vertex::Exit, false),
            Frame {
                kind: FrameKind::Loop { header },
                ..
            } => {
                let header = header.expect("the operator that branches is in the loop");
                self.edge(origin, Vertex::Code(header), true);
            }
            Frame { join, .. } => join.push(origin),
        }
    }

    /// Adds an edge with both ends.
    pub(super) fn edge(&mut self, origin: Pending, to: Vertex, back: bool) {
        self.edges.push(RawEdge {
            origin,
            to,
            back,
            splits_for_loop: false,
        });
    }
}
