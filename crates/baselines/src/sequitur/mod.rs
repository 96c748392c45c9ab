//! Implements Sequitur, which builds a grammar for a string while reading it.
//!
//! Source: C. Nevill-Manning and I. Witten, *Identifying hierarchical structure in sequences: a
//! linear-time algorithm*, JAIR 7, 1997, sections 2 and 3. J. Larus, *Whole program paths*, PLDI
//! 1999, stores control-flow traces in this form. Larus's variant, which looks one symbol ahead
//! before making a rule, is not implemented.
//!
//! Between calls, the grammar has two properties:
//! - *digram uniqueness*: no pair of neighbours occurs twice without overlap on all right-hand
//!   sides together;
//! - *rule utility*: every rule except the start rule is used at least twice.
//!
//! # Linear time
//! Let Φ be twice the number of symbols on right-hand sides, less the number of rules. Φ is never
//! negative, because each rule has at least two symbols. Reading a symbol adds 2 to Φ. Reusing a
//! rule removes a symbol (Φ − 2). Making a rule keeps the number of symbols and adds a rule (Φ −
//! 1). Dissolving a rule that is used once removes a symbol and a rule (Φ − 1). So, on average,
//! there are at most two of these steps for each symbol read, and each takes constant time.
//!
//! # Differences from the published program
//! - There is no recursion. Pairs that must be examined wait on a stack.
//! - Runs are handled. In `aaa`, the pair `aa` occurs twice with overlap, so only one occurrence is
//!   in the index. Two things can go wrong. The indexed occurrence may disappear while the other
//!   occurrence is forgotten. Or the run may grow on the far side of the indexed occurrence, so
//!   that two separate occurrences each overlap with it. Therefore, when a link is removed, its
//!   neighbours in a run are examined again. A pair that overlaps with the indexed pair is examined
//!   as a run of up to four.
//! - Both symbols of a newly matched rule are checked for rules that became underused. Both new
//!   pairs around a dissolved rule are checked for repetitions.

mod arena;
mod index;
#[cfg(test)]
mod tests;

use crate::{Grammar, Symbol};
use arena::{Arena, Code, END, NodeId};
use index::DigramIndex;

/// The largest symbol that [`Sequitur`] accepts. Numbers in the upper half denote rules.
pub const MAX_TERMINAL: u32 = Code::MAX_TERMINAL;

/// The maximum total number of symbols on all right-hand sides. There is one guard for each rule,
/// and there are at most half as many rules as symbols. So nodes stay well below 2³², and rules
/// stay below the 2³⁰ that a [`Code`] can name.
const MAX_SYMBOLS: usize = 1 << 30;

/// The reason why [`Sequitur`] rejected a symbol. The grammar is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SequiturError {
    /// The symbol is too large.
    #[error("symbol {0} is larger than {MAX_TERMINAL}, the largest that Sequitur takes")]
    SymbolTooLarge(u32),
    /// The grammar has grown to its limit.
    #[error("the grammar has {limit} symbols on its right-hand sides, the most it may have")]
    GrammarFull {
        /// The maximum total number of symbols on all right-hand sides.
        limit: usize,
    },
}

/// Reads symbols one at a time and maintains a grammar that generates them.
///
/// Time is linear in the number of symbols read. Memory is linear in the size of the grammar, at
/// about 20 to 40 bytes for each symbol on right-hand sides.
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
    /// One occurrence of each distinct pair of neighbours. If occurrences overlap, only one of them
    /// is included.
    index: DigramIndex,
    /// The nodes at which a pair begins that may be missing from the index or may be a repetition.
    /// Some of these nodes may since have been released or reused. Examining a pair again does no
    /// harm. The list is empty between calls.
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
    /// Creates the grammar of the empty string.
    pub fn new() -> Self {
        Self::with_limit(MAX_SYMBOLS)
    }

    /// Like [`Self::new`], with at most `limit` symbols on right-hand sides, or 2³⁰ if that is
    /// less.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            arena: Arena::new(),
            index: DigramIndex::default(),
            pending: Vec::new(),
            len: 0,
            limit: limit.min(MAX_SYMBOLS),
        }
    }

    /// Reads the next symbol of the string, in amortised constant time.
    ///
    /// # Errors
    /// Returns an error if the symbol is larger than [`MAX_TERMINAL`], or the grammar is full. In
    /// that case, the symbol does not become part of the string.
    pub fn push(&mut self, symbol: u32) -> Result<(), SequiturError> {
        self.append(symbol)?;
        self.settle();
        Ok(())
    }

    /// Links the symbol to the end of the start rule.
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

    /// Examines all pending pairs. Any order restores the two properties, but the grammar depends
    /// on the order.
    fn settle(&mut self) {
        while let Some(node) = self.pending.pop() {
            self.look_at(node);
        }
    }

    /// Returns the number of symbols read.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether no symbol has been read.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of rules, including the start rule.
    pub fn rules(&self) -> usize {
        self.arena.rules()
    }

    /// Returns the number of symbols on all right-hand sides.
    pub fn symbols(&self) -> usize {
        self.arena.symbols()
    }

    /// Returns the pair of neighbours that begins at `node`, if there is one.
    fn digram(&self, node: NodeId) -> Option<(Code, Code)> {
        let first = self.arena.code(node);
        if !first.is_symbol() {
            return None;
        }
        let second = self.arena.code(self.arena.next(node));
        second.is_symbol().then_some((first, second))
    }

    /// Adds the pair that begins at `node` to the index, or removes a repetition.
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
        // A run of three begins at `run`. If it is part of a run of four, that run contains two
        // separate pairs.
        let middle = self.arena.next(run);
        let last = self.arena.next(middle);
        let before = self.arena.prev(run);
        if self.arena.code(before) == digram.0 {
            self.merge(before, middle);
        } else if self.arena.code(self.arena.next(last)) == digram.0 {
            self.merge(run, last);
        }
    }

    /// Replaces the equal, non-overlapping pairs that begin at `first` and `second` by a rule.
    ///
    /// Both pairs may be whole rules. In that case, the second rule keeps a single symbol, the
    /// first rule, and the invariants still hold. This only happens if pairs are examined in an
    /// order that [`Self::push`] does not use. The grammars that it built for ten million short
    /// strings contain no such rule.
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

    /// Returns the rule whose whole right-hand side is the pair that begins at `node`. If the pair
    /// also occurs elsewhere, this is not the start rule. If it were the start rule, the pair's two
    /// symbols would lead to all rules, and one rule would contain itself.
    fn whole_rule(&self, node: NodeId) -> Option<u32> {
        let before = self.arena.prev(node);
        let after = self.arena.next(self.arena.next(node));
        (before == after)
            .then(|| self.arena.code(before).guarded_rule())
            .flatten()
    }

    /// Replaces the pair that begins at `node` by a use of `rule`. The same node then contains the
    /// use.
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

    /// If `node` is the only use of a rule, replaces it by the rule's right-hand side.
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
        // The pair that begins at `before`, if any, is already pending (see `merge`).
        self.pending.push(last);
    }

    /// Prepares for the disappearance of the pair that begins at `node`. An equal pair that
    /// overlaps with it may have to replace it in the index.
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

    /// Returns the current grammar. Time is linear in its size.
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

    /// Returns all rules, each before the rules that it names, in reversed depth-first postorder.
    /// Right-hand sides are searched from their ends, so independent rules keep their order from
    /// left to right.
    fn topological_order(&self) -> Vec<u32> {
        let mut seen = vec![false; self.arena.rule_names()];
        let mut order = Vec::with_capacity(self.arena.rules());
        // The open rules, and the position reached in each right-hand side.
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
