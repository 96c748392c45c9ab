//! Sequitur: a grammar for a string, built as the string is read.
//!
//! Source: C. Nevill-Manning and I. Witten, *Identifying hierarchical structure in sequences: a linear-time algorithm*,
//! JAIR 7, 1997, sections 2 and 3. J. Larus, *Whole program paths*, PLDI 1999, stores control-flow traces so. His variant, which looks one
//! symbol ahead before it makes a rule, is not built.
//!
//! The grammar keeps two properties, between calls:
//! - *digram uniqueness*: no pair of neighbours occurs twice without overlap on all right-hand sides together;
//! - *rule utility*: every rule but the start rule is used at least twice.
//!
//! # Linear time
//! Let Φ be twice the symbols on right-hand sides less the rules; it is never negative, since each rule has two symbols. A symbol read adds
//! 2 to Φ. Using a rule that is there takes a symbol away (Φ − 2), making a rule leaves as many symbols and one rule more (Φ − 1), and
//! dissolving a rule that is used once takes away a symbol and a rule (Φ − 1). So there are at most two such steps for each symbol read, on average,
//! and each takes constant time.
//!
//! # What differs from the published program
//! - No recursion: pairs that have to be looked at wait on a stack.
//! - Runs. In `aaa` the pair `aa` occurs twice, but overlaps, so only one occurrence is in the index. Two things can go wrong: the one in
//!   the index disappears and the other is forgotten, or the run grows on the far side of the one in the index, so that two occurrences that are
//!   apart each overlap with it. Here every link that is removed has its neighbours in a run looked at again, and a pair that overlaps with the
//!   one in the index is looked at as a run of up to four.
//! - Both symbols of a rule that was just matched are examined for rules that have become underused, and both new pairs around a rule that is dissolved
//!   for repetitions.

mod arena;
mod index;
#[cfg(test)]
mod tests;

use crate::{Grammar, Symbol};
use arena::{Arena, Code, END, NodeId};
use index::DigramIndex;

/// The largest symbol that [`Sequitur`] takes: the upper half of the numbers names rules.
pub const MAX_TERMINAL: u32 = Code::MAX_TERMINAL;

/// The most symbols that right-hand sides may hold together: with a guard for each rule, of which there are at most half as many,
/// they stay well below 2³² nodes, and rules below the 2³⁰ that a [`Code`] can name.
const MAX_SYMBOLS: usize = 1 << 30;

/// Why [`Sequitur`] did not take a symbol. The grammar is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SequiturError {
    /// The symbol is too large.
    #[error("symbol {0} is larger than {MAX_TERMINAL}, the largest that Sequitur takes")]
    SymbolTooLarge(u32),
    /// The grammar has grown to its limit.
    #[error("the grammar has {limit} symbols on its right-hand sides, the most it may have")]
    GrammarFull {
        /// The most symbols that right-hand sides may hold together.
        limit: usize,
    },
}

/// The Sequitur algorithm: symbols in, one at a time, and a grammar that generates them.
///
/// Time is linear in the number of symbols read, memory in the size of the grammar: about 20 to 40 bytes a symbol on
/// right-hand sides.
///
/// ```
/// use afterimage_baselines::Sequitur;
///
/// let mut sequitur = Sequitur::new();
/// for symbol in "abcdbcabcdbc".bytes() {
///     sequitur.push(u32::from(symbol))?;
/// }
/// // S → A A, A → a B d B, B → b c
/// assert_eq!((sequitur.rules(), sequitur.symbols()), (3, 8));
/// # Ok::<(), afterimage_baselines::SequiturError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sequitur {
    arena: Arena,
    /// For each distinct pair of neighbours, its occurrence; of occurrences that overlap, one.
    index: DigramIndex,
    /// Nodes with which pairs begin that may be missing in the index or be repetitions. Some are no longer in use, or are for another
    /// purpose: looking at a pair once more changes nothing. Empty between calls.
    pending: Vec<NodeId>,
    len: u64,
    limit: usize,
}

impl Default for Sequitur {
    fn default() -> Self {
        Self::new()
    }
}

impl Sequitur {
    /// The grammar of the empty string.
    pub fn new() -> Self {
        Self::with_limit(MAX_SYMBOLS)
    }

    /// As [`Self::new`], but refusing to grow beyond `limit` symbols on right-hand sides, or 2³⁰ if that is less.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            arena: Arena::new(),
            index: DigramIndex::default(),
            pending: Vec::new(),
            len: 0,
            limit: limit.min(MAX_SYMBOLS),
        }
    }

    /// Reads the string's next symbol; amortised constant time.
    ///
    /// # Errors
    /// The symbol is larger than [`MAX_TERMINAL`], or the grammar is full. The symbol is then not part of the string.
    pub fn push(&mut self, symbol: u32) -> Result<(), SequiturError> {
        self.append(symbol)?;
        self.settle();
        Ok(())
    }

    /// Links the symbol to the start rule's end.
    fn append(&mut self, symbol: u32) -> Result<(), SequiturError> {
        let code = Code::terminal(symbol).ok_or(SequiturError::SymbolTooLarge(symbol))?;
        if self.arena.symbols() >= self.limit {
            return Err(SequiturError::GrammarFull { limit: self.limit });
        }
        let last = self.arena.prev(Arena::START_GUARD);
        let node = self.arena.add_node(code);
        self.arena.link(last, node);
        self.arena.link(node, Arena::START_GUARD);
        self.len += 1;
        self.pending.push(last);
        Ok(())
    }

    /// Looks at all that is pending. The result has the two properties whatever the order, but it is not the same grammar.
    fn settle(&mut self) {
        while let Some(node) = self.pending.pop() {
            self.look_at(node);
        }
    }

    /// How many symbols were read.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many rules the grammar has, the start rule included.
    pub fn rules(&self) -> usize {
        self.arena.rules()
    }

    /// How many symbols the right-hand sides of all rules have.
    pub fn symbols(&self) -> usize {
        self.arena.symbols()
    }

    /// The pair of neighbours that begins at `node`, if there is one.
    fn digram(&self, node: NodeId) -> Option<(Code, Code)> {
        let first = self.arena.code(node);
        if !first.is_symbol() {
            return None;
        }
        let second = self.arena.code(self.arena.next(node));
        second.is_symbol().then_some((first, second))
    }

    /// Enters the pair that begins at `node` into the index, or removes a repetition.
    fn look_at(&mut self, node: NodeId) {
        let Some(digram) = self.digram(node) else {
            return;
        };
        let Some(known) = self.index.find_or_insert(digram, node, &self.arena) else {
            return;
        };
        if known == node {
            return;
        }
        let run = if self.arena.next(known) == node {
            known
        } else if self.arena.next(node) == known {
            node
        } else {
            self.merge(known, node);
            return;
        };
        // A run of three begins at `run`. If it is one of four, it has two pairs that are apart.
        let middle = self.arena.next(run);
        let last = self.arena.next(middle);
        let before = self.arena.prev(run);
        if self.arena.code(before) == digram.0 {
            self.merge(before, middle);
        } else if self.arena.code(self.arena.next(last)) == digram.0 {
            self.merge(run, last);
        }
    }

    /// The pairs that begin at `first` and `second` are equal and do not overlap: a rule takes their place.
    ///
    /// Both may be whole rules. The second is then left with one symbol, the first, and all else holds. That takes an order of looking at
    /// pairs that is not [`Self::push`]'s: its grammars of ten million short strings have no such rule.
    fn merge(&mut self, first: NodeId, second: NodeId) {
        let rule = match (self.whole_rule(first), self.whole_rule(second)) {
            (Some(rule), _) => {
                self.substitute(second, rule);
                rule
            }
            (None, Some(rule)) => {
                self.substitute(first, rule);
                rule
            }
            (None, None) => {
                let (a, b) = (first, self.arena.next(first));
                let rule = self.arena.add_rule(self.arena.code(a), self.arena.code(b));
                self.substitute(first, rule);
                self.substitute(second, rule);
                rule
            }
        };
        let guard = self.arena.guard(rule);
        let (a, b) = (self.arena.next(guard), self.arena.prev(guard));
        self.pending.push(a);
        // Only the two rules named here lost uses.
        self.dissolve_if_underused(a);
        self.dissolve_if_underused(b);
    }

    /// The rule whose whole right-hand side is the pair that begins at `node`. If the pair also occurs elsewhere, that is not the start
    /// rule: all rules are reached from the pair's two symbols then, and one of them would contain itself.
    fn whole_rule(&self, node: NodeId) -> Option<u32> {
        let before = self.arena.prev(node);
        let after = self.arena.next(self.arena.next(node));
        (before == after)
            .then(|| self.arena.code(before).guarded_rule())
            .flatten()
    }

    /// Puts `rule` in the place of the pair that begins at `node`, which becomes the node of the rule.
    fn substitute(&mut self, node: NodeId, rule: u32) {
        let second = self.arena.next(node);
        let (before, after) = (self.arena.prev(node), self.arena.next(second));
        self.forget(before);
        self.forget(node);
        self.forget(second);
        self.arena.release_node(second);
        self.arena.rename(node, Code::rule(rule));
        self.arena.link(node, after);
        self.pending.push(node);
        self.pending.push(before);
    }

    /// Dissolves the rule that `node` uses, if it is a rule and this is its only use: its right-hand side takes the node's place.
    fn dissolve_if_underused(&mut self, node: NodeId) {
        let Some(rule) = self.arena.code(node).used_rule() else {
            return;
        };
        if self.arena.uses(rule) != 1 {
            return;
        }
        let (before, after) = (self.arena.prev(node), self.arena.next(node));
        let guard = self.arena.guard(rule);
        let (first, last) = (self.arena.next(guard), self.arena.prev(guard));
        self.forget(before);
        self.forget(node);
        self.arena.link(before, first);
        self.arena.link(last, after);
        self.arena.release_node(node);
        self.arena.release_rule(rule);
        // The pair that begins at `before`, if there is one, is pending already: see `merge`.
        self.pending.push(last);
    }

    /// The pair that begins at `node` is about to disappear. If it overlaps with equal pairs, those may have to take its place in the index.
    fn forget(&mut self, node: NodeId) {
        let Some(digram) = self.digram(node) else {
            return;
        };
        self.index.remove(digram, node);
        if digram.0 == digram.1 {
            self.pending.push(self.arena.prev(node));
            self.pending.push(self.arena.next(node));
        }
    }

    /// The grammar as it is now; linear in its size.
    pub fn grammar(&self) -> Grammar {
        let order = self.topological_order();
        let mut numbers = vec![END; self.arena.rule_names()];
        for (number, &rule) in (0..).zip(&order) {
            numbers[rule as usize] = number;
        }
        let mut symbols = Vec::with_capacity(self.arena.symbols());
        let mut ends = Vec::with_capacity(order.len());
        for rule in order {
            let guard = self.arena.guard(rule);
            let mut node = self.arena.next(guard);
            while node != guard {
                let code = self.arena.code(node);
                symbols.push(match code.used_rule() {
                    None => Symbol::Terminal(code.0),
                    Some(rule) => Symbol::Rule(numbers[rule as usize]),
                });
                node = self.arena.next(node);
            }
            ends.push(symbols.len());
        }
        Grammar::new(symbols, ends)
    }

    /// All rules, each before those that its right-hand side names: depth-first postorder backwards. Right-hand sides are searched from
    /// their ends, so that of rules that do not depend on each other those to the left come first.
    fn topological_order(&self) -> Vec<u32> {
        let mut seen = vec![false; self.arena.rule_names()];
        let mut order = Vec::with_capacity(self.arena.rules());
        // Rules that are open, and how far each right-hand side has been searched.
        let mut open = vec![(0, Arena::START_GUARD)];
        while let Some((rule, node)) = open.last_mut() {
            *node = self.arena.prev(*node);
            let code = self.arena.code(*node);
            if !code.is_symbol() {
                order.push(*rule);
                open.pop();
            } else if let Some(used) = code.used_rule()
                && !std::mem::replace(&mut seen[used as usize], true)
            {
                open.push((used, self.arena.guard(used)));
            }
        }
        order.reverse();
        order
    }
}
