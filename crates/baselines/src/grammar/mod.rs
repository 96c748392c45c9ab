//! Represents a grammar that generates exactly one string.

mod file;
mod size;

pub use size::GrammarSize;

use std::ops::Range;

/// A symbol on a rule's right-hand side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Symbol {
    /// A terminal symbol of the string.
    Terminal(u32),
    /// A use of the rule with this number.
    Rule(u32),
}

/// A straight-line grammar, which has no choices or cycles and so generates exactly one string.
///
/// Rule 0 is the start rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grammar {
    /// All right-hand sides, concatenated. Each right-hand side names only rules with larger
    /// numbers than its own, so there is no cycle.
    symbols: Vec<Symbol>,
    /// The end of each rule's right-hand side in `symbols`. The next right-hand side begins there.
    ends: Vec<usize>,
}

impl Grammar {
    /// Creates a grammar from right-hand sides. The caller guarantees that each rule names only
    /// rules with larger numbers.
    pub(crate) fn new(symbols: Vec<Symbol>, ends: Vec<usize>) -> Self {
        Self { symbols, ends }
    }

    /// Returns the number of rules, including the start rule.
    pub fn rules(&self) -> usize {
        self.ends.len()
    }

    /// Returns a rule's right-hand side.
    ///
    /// # Panics
    /// Panics if there is no rule with that number.
    pub fn rule(&self, rule: u32) -> &[Symbol] {
        &self.symbols[self.range(rule as usize)]
    }

    /// Iterates over the string. The average time per symbol is constant if all rules have at least
    /// two symbols, as Sequitur's do.
    pub fn expand(&self) -> Expansion<'_> {
        Expansion {
            grammar: self,
            open: vec![self.rule(0)],
        }
    }

    /// Returns a grammar for the same string, reduced to the terminals that `keep` accepts. Rules
    /// that generate no kept terminal are dropped. Time is linear in the size of this grammar. This
    /// extracts one function's trace from a whole program path without expanding all of it (Zhang
    /// and Gupta 2001, section 3, Table 5: "process").
    pub fn restricted(&self, mut keep: impl FnMut(u32) -> bool) -> Self {
        // Visits the last rule first, so that each rule is visited before the rules that name it.
        let mut generates = vec![false; self.rules()];
        let mut kept = vec![false; self.symbols.len()];
        for rule in (0..self.rules()).rev() {
            for at in self.range(rule) {
                kept[at] = match self.symbols[at] {
                    Symbol::Terminal(terminal) => keep(terminal),
                    Symbol::Rule(rule) => generates[rule as usize],
                };
                generates[rule] |= kept[at];
            }
        }
        // The start rule stays even if it is empty.
        generates[0] = true;
        let mut numbers = vec![0; self.rules()];
        for (number, rule) in (0..).zip((0..self.rules()).filter(|&rule| generates[rule])) {
            numbers[rule] = number;
        }
        let mut restricted = Self::new(Vec::new(), Vec::new());
        for rule in (0..self.rules()).filter(|&rule| generates[rule]) {
            for at in self.range(rule).filter(|&at| kept[at]) {
                restricted.symbols.push(match self.symbols[at] {
                    Symbol::Rule(rule) => Symbol::Rule(numbers[rule as usize]),
                    terminal => terminal,
                });
            }
            restricted.ends.push(restricted.symbols.len());
        }
        restricted
    }

    fn range(&self, rule: usize) -> Range<usize> {
        let start = if rule == 0 { 0 } else { self.ends[rule - 1] };
        start..self.ends[rule]
    }
}

/// The string of a [`Grammar`], symbol by symbol. The memory needed is bounded by the depth of the
/// grammar.
#[derive(Clone, Debug)]
pub struct Expansion<'a> {
    grammar: &'a Grammar,
    /// The unread rest of each rule that is being expanded, innermost last. Empty rests are not
    /// kept.
    open: Vec<&'a [Symbol]>,
}

impl Iterator for Expansion<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while let Some(rest) = self.open.last_mut() {
            let Some((&symbol, after)) = rest.split_first() else {
                // The rule was empty from the start.
                self.open.pop();
                continue;
            };
            if after.is_empty() {
                self.open.pop();
            } else {
                *rest = after;
            }
            match symbol {
                Symbol::Terminal(terminal) => return Some(terminal),
                Symbol::Rule(rule) => self.open.push(self.grammar.rule(rule)),
            }
        }
        None
    }
}
