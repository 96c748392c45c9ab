//! The activations that are open at the top of a segment, and how long they have been.

use std::collections::HashMap;

use afterimage_ids::FuncId;

use super::Key;

/// Activations that do not begin and end in one segment.
#[derive(Default)]
pub(super) struct Open {
    /// The outermost first, with how many blocks were executed before each.
    stack: Vec<(FuncId, u64)>,
    /// How many of them are of each function.
    counts: HashMap<FuncId, u64>,
}

impl Open {
    /// The innermost function; `None` for the host.
    pub(super) fn function(&self) -> Option<FuncId> {
        self.stack.last().map(|open| open.0)
    }

    /// Who called the innermost activation, and its function.
    pub(super) fn innermost(&self) -> Option<Key> {
        let callee = self.function()?;
        let caller = self.stack.len().checked_sub(2).map(|at| self.stack[at].0);
        Some((caller, callee))
    }

    /// Whether an activation of the function is open.
    pub(super) fn is_open(&self, function: FuncId) -> bool {
        self.counts.get(&function).is_some_and(|&count| count > 0)
    }

    /// An activation begins.
    pub(super) fn enter(&mut self, function: FuncId, now: u64) -> Key {
        let caller = self.function();
        self.stack.push((function, now));
        *self.counts.entry(function).or_default() += 1;
        (caller, function)
    }

    /// The innermost activation ends. How long it took, if it is in no other of its function.
    pub(super) fn leave(&mut self, now: u64) -> Option<(Key, u64)> {
        let key = self.innermost()?;
        let (function, entered) = self.stack.pop()?;
        let count = self.counts.entry(function).or_default();
        *count -= 1;
        (*count == 0).then_some((key, now - entered))
    }

    /// All end with the run.
    pub(super) fn close(mut self, now: u64, each: &mut impl FnMut(Key, u64)) {
        while !self.stack.is_empty() {
            if let Some((key, length)) = self.leave(now) {
                each(key, length);
            }
        }
    }
}
