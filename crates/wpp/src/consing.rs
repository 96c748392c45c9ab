//! Hash-consing, which creates equal rules only once.

use std::hash::Hasher;

use afterimage_ids::{FuncId, RuleId};
use rustc_hash::FxHasher;

use crate::{Grammar, Kind, Rule, Symbol};

/// A growing grammar without equal rules. Finding or creating a rule takes time linear in its
/// symbols.
#[derive(Default)]
pub(crate) struct Consing {
    grammar: Grammar,
    /// The hash table, with open addressing and linear probing. It is at most half full, and its
    /// size is a power of two or 0. In a large table, a look-up costs one cache miss. On structured
    /// runs, the builder takes a fifth less time than with hashbrown's table.
    slots: Vec<Slot>,
}

/// Marks an empty slot. No rule has this number, because a symbol stores a rule's number in 31
/// bits.
const EMPTY: u32 = u32::MAX;

/// A slot of the table.
#[derive(Clone, Copy)]
struct Slot {
    hash: u32,
    rule: u32,
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            hash: 0,
            rule: EMPTY,
        }
    }
}

impl Consing {
    /// Returns the rules so far.
    pub(crate) fn grammar(&self) -> &Grammar {
        &self.grammar
    }

    /// Returns the total number of rules and symbols.
    pub(crate) fn size(&self) -> usize {
        self.grammar.rules.len() + self.grammar.symbols.len()
    }

    /// Forgets the rules but keeps the allocations.
    pub(crate) fn clear(&mut self) {
        self.grammar.rules.clear();
        self.grammar.symbols.clear();
        self.slots.fill(Slot::default());
    }

    /// Returns the symbol of a rule that repeats the given symbol, or the symbol itself if it is
    /// executed once.
    pub(crate) fn repeat(&mut self, symbol: Symbol, times: u64) -> Symbol {
        if times == 1 {
            symbol
        } else {
            self.rule(Kind::Repeat(times), &[symbol])
        }
    }

    /// Returns the symbol of a sequence of the given symbols, at least two.
    pub(crate) fn sequence(&mut self, symbols: &[Symbol]) -> Symbol {
        self.rule(Kind::Sequence, symbols)
    }

    /// Returns the symbol of an activation that consists of the given symbols.
    pub(crate) fn call(&mut self, function: FuncId, symbols: &[Symbol]) -> Symbol {
        self.rule(Kind::Call(function), symbols)
    }

    fn rule(&mut self, kind: Kind, symbols: &[Symbol]) -> Symbol {
        if 2 * (self.grammar.rules.len() + 1) > self.slots.len() {
            self.grow();
        }
        let hash = hash(kind, symbols);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.rule == EMPTY {
                break;
            }
            if slot.hash == hash {
                let rule = RuleId::from_u32(slot.rule);
                if self.grammar.rules[rule].kind == kind && self.grammar.symbols_of(rule) == symbols
                {
                    return Symbol::rule(rule);
                }
            }
            at = (at + 1) & mask;
        }
        let position =
            |n: usize| u32::try_from(n).expect("a segment is taken before it has 2^32 symbols");
        let rule = self.grammar.rules.push(Rule {
            kind,
            start: position(self.grammar.symbols.len()),
            len: position(symbols.len()),
        });
        self.grammar.symbols.extend_from_slice(symbols);
        position(self.grammar.symbols.len());
        self.slots[at] = Slot {
            hash,
            rule: rule.as_u32(),
        };
        Symbol::rule(rule)
    }

    /// Doubles the table.
    #[cold]
    fn grow(&mut self) {
        let size = (2 * self.slots.len()).max(1 << 10);
        let old = std::mem::replace(&mut self.slots, vec![Slot::default(); size]);
        for slot in old.into_iter().filter(|slot| slot.rule != EMPTY) {
            let mut at = slot.hash as usize & (size - 1);
            while self.slots[at].rule != EMPTY {
                at = (at + 1) & (size - 1);
            }
            self.slots[at] = slot;
        }
    }
}

fn hash(kind: Kind, symbols: &[Symbol]) -> u32 {
    let mut hasher = FxHasher::default();
    match kind {
        Kind::Sequence => {}
        Kind::Repeat(times) => hasher.write_u64(times << 2 | 1),
        Kind::Call(function) => hasher.write_u64(u64::from(function.as_u32()) << 2 | 2),
    }
    for symbol in symbols {
        hasher.write_u32(symbol.bits());
    }
    let hash = hasher.finish();
    (hash >> 32 ^ hash) as u32
}
