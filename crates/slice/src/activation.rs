//! Tracks an activation during a forward walk over its executions.

use std::rc::Rc;

use afterimage_ids::{BlockId, FuncId};
use rustc_hash::FxHashMap;

use crate::control::Decision;

/// An activation with the labels of its variables and decisions.
#[derive(Debug)]
pub(crate) struct Activation<L> {
    pub function: FuncId,
    /// The labels of the activation's first variables. All other variables have the default label.
    variables: Vec<L>,
    /// The number of variables whose label is not the default.
    labelled: usize,
    /// The label of the call that began the activation.
    pub call: L,
    /// The labels of decisions about blocks, where they differ from the call's label.
    decided: FxHashMap<BlockId, L>,
    /// The last block, and the label of its exit.
    pub last: Option<(BlockId, L)>,
    /// The exception to be handled by the next block.
    pub handles: Option<L>,
    /// Whether no more code of the activation follows. If so, the activation returns whatever it
    /// receives next.
    pub returns: bool,
}

impl<L: Copy + Default + PartialEq> Activation<L> {
    pub fn new(function: FuncId, variables: Vec<L>, call: L) -> Self {
        Self {
            function,
            labelled: variables
                .iter()
                .filter(|label| **label != L::default())
                .count(),
            variables,
            call,
            decided: FxHashMap::default(),
            last: None,
            handles: None,
            returns: false,
        }
    }

    /// Returns the label of a variable.
    #[inline]
    pub fn variable(&self, variable: u32) -> L {
        let label = self.variables.get(variable as usize);
        label.copied().unwrap_or_default()
    }

    /// Sets the label of a variable.
    #[inline]
    pub fn set(&mut self, variable: u32, label: L) {
        let at = variable as usize;
        if self.variables.len() <= at {
            if label == L::default() {
                return;
            }
            self.variables.resize(at + 1, L::default());
        }
        let none = L::default();
        let before = std::mem::replace(&mut self.variables[at], label);
        self.labelled += usize::from(label != none);
        self.labelled -= usize::from(before != none);
    }

    /// Copies the labels of the first variables to registers.
    pub fn read(&self, registers: &mut [L]) {
        let known = self.variables.len().min(registers.len());
        registers[..known].copy_from_slice(&self.variables[..known]);
    }

    /// Returns the label of the decision to execute a block.
    #[inline]
    pub fn of_block(&self, block: BlockId) -> L {
        self.decided.get(&block).copied().unwrap_or(self.call)
    }

    fn decide(&mut self, block: BlockId, label: L) {
        if label == self.call {
            self.decided.remove(&block)
        } else {
            self.decided.insert(block, label)
        };
    }

    /// Leaves the last block over the edges of `decisions`, which are listed from last to first.
    pub fn pass(&mut self, decisions: &[Decision], from: L) {
        if from == self.call && self.decided.is_empty() {
            return;
        }
        for decision in decisions.iter().rev() {
            let label = if decision.dispatches {
                self.of_block(decision.from)
            } else {
                from
            };
            for &block in &decision.decided {
                self.decide(block, label);
            }
        }
    }

    /// Makes the blocks in `handled` also depend on the exception that is being handled.
    pub fn handle(&mut self, handled: &Rc<[BlockId]>, mut join: impl FnMut(L) -> L) {
        for &block in handled.iter() {
            let label = join(self.of_block(block));
            self.decide(block, label);
        }
    }

    /// Whether none of these variables has a label.
    #[inline]
    pub fn are_plain(&self, mut variables: impl Iterator<Item = u32>) -> bool {
        self.labelled == 0 || variables.all(|variable| self.variable(variable) == L::default())
    }

    /// Whether no decision to execute the activation's next code has a label.
    #[inline]
    pub fn runs_plainly(&self) -> bool {
        let none = L::default();
        self.call == none
            && self.decided.is_empty()
            && self.handles.is_none_or(|label| label == none)
            && self.last.is_none_or(|(_, label)| label == none)
    }
}
