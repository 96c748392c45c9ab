//! A grammar that generates one string.

mod file;
mod size;

pub use size::GrammarSize;

use std::ops::Range;

/// A symbol on a rule's right-hand side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Symbol {
    /// A symbol of the string.
    Terminal(u32),
    /// A rule, by its number.
    Rule(u32),
}

/// A grammar without choices or cycles, so that it generates exactly one string: a straight-line grammar.
///
/// Rule 0 is the start rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grammar {
    /// All right-hand sides, one after the other. Each names only rules of larger numbers than its own, so there is no cycle.
    symbols: Vec<Symbol>,
    /// Where each rule's right-hand side ends in `symbols`; it begins where the one before ends.
    ends: Vec<usize>,
}

impl Grammar {
    /// The grammar with these right-hand sides, of which the caller knows that each names only rules of larger numbers.
    pub(crate) fn new(symbols: Vec<Symbol>, ends: Vec<usize>) -> Self {
        Self { symbols, ends }
    }

    /// How many rules there are, the start rule included.
    pub fn rules(&self) -> usize {
        self.ends.len()
    }

    /// A rule's right-hand side.
    ///
    /// # Panics
    /// If there is no rule of that number.
    pub fn rule(&self, rule: u32) -> &[Symbol] {
        &self.symbols[self.range(rule as usize)]
    }

    /// The string, in constant time a symbol on average if rules have at least two symbols, as Sequitur's do.
    pub fn expand(&self) -> Expansion<'_> {
        Expansion {
            grammar: self,
            open: vec![self.rule(0)],
        }
    }

    /// The grammar of the same string with only the terminals that `keep` accepts, without rules that generate nothing of it; linear
    /// in the size of this grammar. This is how one function's trace is extracted from a whole program path
    /// without expanding all of it (Zhang and Gupta 2001, section 3, Table 5: "process").
    pub fn restricted(&self, mut keep: impl FnMut(u32) -> bool) -> Self {
        // The last rule first, so that rules come before those that name them.
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

/// The string of a [`Grammar`], symbol by symbol. Holds no more than the grammar's depth.
#[derive(Clone, Debug)]
pub struct Expansion<'a> {
    grammar: &'a Grammar,
    /// What is left of each rule that is being expanded, the innermost last. Those of which nothing is left are not held.
    open: Vec<&'a [Symbol]>,
}

impl Iterator for Expansion<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while let Some(rest) = self.open.last_mut() {
            let Some((&symbol, after)) = rest.split_first() else {
                // The rule was empty to begin with.
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
