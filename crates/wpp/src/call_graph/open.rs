//! Tracks the activations that a segment's root enters and leaves, and their durations.

use std::collections::HashMap;

use afterimage_ids::FuncId;

use super::Key;

/// Activations that do not begin and end in one segment.
#[derive(Clone, Default)]
pub(super) struct Open {
    /// The open activations, outermost first, with the number of blocks executed before each.
    stack: Vec<(FuncId, u64)>,
    /// The number of open activations of each function.
    counts: HashMap<FuncId, u64>,
    /// The durations of ended activations that were not nested in another activation of their
    /// function.
    ended: Vec<(Key, u64)>,
}

impl Open {
    /// Returns the function of the innermost activation, or `None` for the host.
    pub(super) fn function(&self) -> Option<FuncId> {
        self.stack.last().map(|open| open.0)
    }

    /// Returns the caller of the innermost activation, and its function.
    pub(super) fn innermost(&self) -> Option<Key> {
        let callee = self.function()?;
        let caller = self.stack.len().checked_sub(2).map(|at| self.stack[at].0);
        Some((caller, callee))
    }

    /// Whether an activation of the function is open.
    pub(super) fn is_open(&self, function: FuncId) -> bool {
        self.counts.get(&function).is_some_and(|&count| count > 0)
    }

    /// Begins an activation.
    pub(super) fn enter(&mut self, function: FuncId, now: u64) -> Key {
        let caller = self.function();
        self.stack.push((function, now));
        *self.counts.entry(function).or_default() += 1;
        (caller, function)
    }

    /// Returns the calls that are open.
    pub(super) fn calls(&self) -> impl Iterator<Item = Key> {
        let functions = self.stack.iter().map(|open| open.0);
        let callers = std::iter::once(None).chain(functions.clone().map(Some));
        callers.zip(functions)
    }

    /// Ends the innermost activation.
    pub(super) fn leave(&mut self, now: u64) {
        let Some(key) = self.innermost() else {
            return;
        };
        let entered = self.stack.pop().map_or(now, |open| open.1);
        let count = self.counts.entry(key.1).or_default();
        *count -= 1;
        if *count == 0 {
            self.ended.push((key, now - entered));
        }
    }

    /// Ends all activations at the end of the run.
    pub(super) fn close(&mut self, now: u64) {
        while !self.stack.is_empty() {
            self.leave(now);
        }
    }

    /// Reports the durations of activations that have ended since the last report and were not
    /// nested in another activation of their function.
    pub(super) fn ended(&mut self, each: &mut impl FnMut(Key, u64)) {
        for (key, length) in self.ended.drain(..) {
            each(key, length);
        }
    }
}
