//! An activation, while its executions are gone over forward.

use std::rc::Rc;

use afterimage_ids::{BlockId, FuncId};
use rustc_hash::FxHashMap;

use crate::control::Decision;

/// An activation.
#[derive(Debug)]
pub(crate) struct Activation<L> {
    pub function: FuncId,
    /// Labels of its variables; those behind have the default one.
    variables: Vec<L>,
    /// How many of them have another one.
    labelled: usize,
    /// The label of its call.
    pub call: L,
    /// Labels of decisions about blocks, if they are not the call's.
    decided: FxHashMap<BlockId, L>,
    /// The last block, and the label of where it went.
    pub last: Option<(BlockId, L)>,
    /// The exception that the next block handles.
    pub handles: Option<L>,
    /// No code of it follows: what it gets next, it returns.
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

    /// The label of a variable.
    #[inline]
    pub fn variable(&self, variable: u32) -> L {
        let label = self.variables.get(variable as usize);
        label.copied().unwrap_or_default()
    }

    /// Gives a variable a label.
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

    /// The labels of the first variables, into registers.
    pub fn read(&self, registers: &mut [L]) {
        let known = self.variables.len().min(registers.len());
        registers[..known].copy_from_slice(&self.variables[..known]);
    }

    /// The label of what let a block run.
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

    /// The last block goes on over these edges, of which the last one stands first.
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

    /// Blocks that depend also on the exception that is handled.
    pub fn handle(&mut self, handled: &Rc<[BlockId]>, mut join: impl FnMut(L) -> L) {
        for &block in handled.iter() {
            let label = join(self.of_block(block));
            self.decide(block, label);
        }
    }

    /// Whether no variable of these has a label.
    #[inline]
    pub fn are_plain(&self, mut variables: impl Iterator<Item = u32>) -> bool {
        self.labelled == 0 || variables.all(|variable| self.variable(variable) == L::default())
    }

    /// Whether nothing that let it run has a label.
    #[inline]
    pub fn runs_plainly(&self) -> bool {
        let none = L::default();
        self.call == none
            && self.decided.is_empty()
            && self.handles.is_none_or(|label| label == none)
            && self.last.is_none_or(|(_, label)| label == none)
    }
}
