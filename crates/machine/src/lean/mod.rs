//! The executable form of nodes. It consists of operations of 16 bytes, each of which represents
//! one or several instructions.
//!
//! There are two forms. The *full* form has one operation per instruction, for observers that need
//! every result. In the *lean* form, an instruction can be part of the operation that reads its
//! result, if no other operation reads it. Results that become variables are computed in place, and
//! constants are parts of operations. Both forms are built from a node's [`NodeCode`] on demand.

mod draft;
mod lower;
mod op;
mod run;

use afterimage_ids::{BlockId, EntityRef, FuncId, NodeId};
use afterimage_program::Callee;

use self::op::Action;
pub(crate) use self::op::Op;
pub(crate) use self::run::{Exit, Window, run};
use crate::code::{NodeCode, NodeEnd};
use crate::inst::Register;

/// The number of registers that operations can name.
pub(crate) const WINDOW: usize = 1 << 16;

/// The operations of the nodes that have been executed.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    ops: Vec<Op>,
    /// The registers that nodes' ends read.
    operands: Vec<Register>,
    lean: Vec<Form<Lean>>,
    full: Vec<Form<Span>>,
}

/// One form of a node.
#[derive(Clone, Copy, Debug)]
enum Form<T> {
    NotMade,
    /// The node has no such form, because the node needs too many registers or the form does not
    /// support the node.
    None,
    Made(T),
}

const _: () = assert!(size_of::<Form<Lean>>() == 64);

/// A range of list items.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

/// A node in lean form, which fits in a cache line.
#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lean {
    pub function: FuncId,
    pub first: BlockId,
    pub ops: Span,
    /// The registers that the node's end reads.
    pub operands: Span,
    pub end: End,
}

/// The end of a node in lean form.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// The activation continues with another node.
    Next(BlockId),
    /// A call whose results go to the variables from `results` on. Then the activation continues
    /// with another node, or returns the results.
    Call {
        callee: Callee,
        results: u32,
        next: Option<BlockId>,
    },
    Return,
}

impl Operations {
    /// Whether the lean form of a node has been built.
    #[inline]
    pub(crate) fn has_lean(&self, node: NodeId) -> bool {
        matches!(self.lean.get(node.index()), Some(Form::Made(_)))
    }

    /// Returns the lean form of a node, if it has been built.
    #[inline]
    pub(crate) fn lean(&self, node: NodeId) -> Option<Lean> {
        match self.lean.get(node.index()) {
            Some(Form::Made(lean)) => Some(*lean),
            _ => None,
        }
    }

    /// Returns the full form of a node, if it has been built.
    #[inline]
    pub(crate) fn full(&self, node: NodeId) -> Option<Span> {
        match self.full.get(node.index()) {
            Some(Form::Made(span)) => Some(*span),
            _ => None,
        }
    }

    /// Builds the lean form of a node from its code, if the node has such a form. `narrow` is true
    /// if memory number 0 exists and has 32-bit addresses. Time: O(registers), once for each node.
    pub(crate) fn make_lean(&mut self, node: NodeId, code: &NodeCode, narrow: bool) {
        if self.lean.len() <= node.index() {
            self.lean.resize(node.index() + 1, Form::NotMade);
        }
        if let Form::NotMade = self.lean[node.index()] {
            let made = self.lower(code, narrow);
            self.lean[node.index()] = made.map_or(Form::None, Form::Made);
        }
    }

    /// Builds the full form of a node, like [`make_lean`](Self::make_lean).
    #[cold]
    pub(crate) fn make_full(
        &mut self,
        node: NodeId,
        code: &NodeCode,
        narrow: bool,
    ) -> Option<Span> {
        if self.full.len() <= node.index() {
            self.full.resize(node.index() + 1, Form::NotMade);
        }
        if let Form::NotMade = self.full[node.index()] {
            let ops = lower::full(code, narrow);
            let made = ops.and_then(|ops| keep(&mut self.ops, &ops));
            self.full[node.index()] = made.map_or(Form::None, Form::Made);
        }
        self.full(node)
    }

    /// Discards the forms of a node.
    pub(crate) fn forget(&mut self, node: NodeId) {
        if let Some(lean) = self.lean.get_mut(node.index()) {
            *lean = Form::NotMade;
        }
        if let Some(full) = self.full.get_mut(node.index()) {
            *full = Form::NotMade;
        }
    }

    fn lower(&mut self, code: &NodeCode, narrow: bool) -> Option<Lean> {
        let end = match (&code.end, code.next) {
            _ if code.wide => return None,
            (NodeEnd::Next, Some(next)) => End::Next(next),
            (
                NodeEnd::Call {
                    callee, results, ..
                },
                next,
            ) => End::Call {
                callee: *callee,
                results: *results,
                next,
            },
            (NodeEnd::Return(_), _) => End::Return,
            _ => return None,
        };
        let (ops, operands) = lower::lean(code, narrow)?;
        Some(Lean {
            function: code.function,
            first: code.first,
            ops: keep(&mut self.ops, &ops)?,
            operands: keep(&mut self.operands, &operands)?,
            end,
        })
    }

    #[inline]
    pub(crate) fn ops(&self, span: Span) -> &[Op] {
        &self.ops[span.start as usize..span.end as usize]
    }

    /// Returns the registers that a node's end reads. The values come first, followed by the index
    /// of a call through a table.
    #[inline]
    pub(crate) fn operands(&self, span: Span) -> &[Register] {
        &self.operands[span.start as usize..span.end as usize]
    }
}

/// Appends to a list. Returns `None` if the list would become too long.
fn keep<T: Copy>(list: &mut Vec<T>, more: &[T]) -> Option<Span> {
    let span = Span {
        start: u32::try_from(list.len()).ok()?,
        end: u32::try_from(list.len() + more.len()).ok()?,
    };
    list.extend_from_slice(more);
    Some(span)
}

impl Op {
    /// Whether the operation executes the instruction itself.
    pub(crate) fn is_rare(&self) -> bool {
        self.action == Action::Rare
    }

    /// Returns the position of the operation's instruction.
    pub(crate) fn position(&self) -> usize {
        usize::from(self.inst)
    }
}
