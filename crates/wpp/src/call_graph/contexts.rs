//! Counts the occurrences of each rule, by the function of the surrounding activation.

use afterimage_ids::{FuncId, RuleId};

use crate::Kind;
use crate::measures::Measured;

/// Marks the absence of an entry.
const NONE: u32 = u32::MAX;

/// The occurrences of each rule, by the function of the innermost activation around the occurrence,
/// for `L` kinds of counts.
///
/// Nearly every rule contains a node, so it occurs only in activations of that node's function.
/// Only rules that consist entirely of calls can occur in activations of several functions.
pub(super) struct Contexts<const L: usize> {
    /// The index of the first entry of each rule.
    first: Vec<u32>,
    entries: Vec<Entry<L>>,
}

#[derive(Clone, Copy)]
struct Entry<const L: usize> {
    caller: Option<FuncId>,
    times: [u64; L],
    next: u32,
}

impl<const L: usize> Contexts<L> {
    pub(super) fn new(rules: usize) -> Self {
        Self {
            first: vec![NONE; rules],
            entries: Vec::new(),
        }
    }

    /// Whether no occurrence of a rule is known so far.
    pub(super) fn is_empty(&self, rule: RuleId) -> bool {
        self.first[rule.as_u32() as usize] == NONE
    }

    /// Adds occurrences of a rule. Returns `None` if the count overflows.
    pub(super) fn add(
        &mut self,
        rule: RuleId,
        caller: Option<FuncId>,
        times: [u64; L],
    ) -> Option<()> {
        let rule = rule.as_u32() as usize;
        let mut at = self.first[rule];
        while at != NONE {
            let entry = &mut self.entries[at as usize];
            if entry.caller == caller {
                for (sum, times) in entry.times.iter_mut().zip(times) {
                    *sum = sum.checked_add(times)?;
                }
                return Some(());
            }
            at = entry.next;
        }
        self.entries.push(Entry {
            caller,
            times,
            next: self.first[rule],
        });
        self.first[rule] = self.entries.len() as u32 - 1;
        Some(())
    }

    /// Returns the functions in whose activations a rule occurs, each with the number of the rule's
    /// occurrences.
    pub(super) fn of(&self, rule: RuleId) -> impl Iterator<Item = (Option<FuncId>, [u64; L])> {
        let entry = |at: u32| self.entries.get(at as usize);
        let first = entry(self.first[rule.as_u32() as usize]);
        std::iter::successors(first, move |last| entry(last.next))
            .map(|entry| (entry.caller, entry.times))
    }

    /// Adds the rule's occurrences to its symbols. If the rule is an activation, its symbols occur
    /// in that activation. Otherwise, they occur in the same activations as the rule. Returns
    /// `None` if a count overflows.
    pub(super) fn hand_down(
        &mut self,
        measured: &Measured,
        rule: RuleId,
        called: Option<(FuncId, [u64; L])>,
    ) -> Option<()> {
        let times = match measured.segment.grammar.rules[rule].kind {
            Kind::Repeat(times) => times,
            _ => 1,
        };
        let mut at = self.first[rule.as_u32() as usize];
        while at != NONE {
            let entry = self.entries[at as usize];
            let (caller, counts) = match called {
                Some((function, counts)) => (Some(function), counts),
                None => (entry.caller, entry.times),
            };
            let mut counts = counts;
            for count in &mut counts {
                *count = count.checked_mul(times)?;
            }
            for symbol in measured.segment.grammar.symbols_of(rule) {
                if let Some(child) = symbol.as_rule().filter(|&child| measured.calls[child]) {
                    self.add(child, caller, counts)?;
                }
            }
            at = if called.is_some() { NONE } else { entry.next };
        }
        Some(())
    }
}
