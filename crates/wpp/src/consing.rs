//! Hash-consing: equal rules are made once.

use std::hash::Hasher;

use afterimage_ids::{FuncId, RuleId};
use hashbrown::HashTable;
use rustc_hash::FxHasher;

use crate::{Grammar, Kind, Rule, Symbol};

/// A grammar that grows, in which no two rules are equal. Finding or making a rule takes time linear in its symbols.
#[derive(Default)]
pub(crate) struct Consing {
    grammar: Grammar,
    /// The hash of every rule, and the rule.
    table: HashTable<(u32, RuleId)>,
}

impl Consing {
    /// The rules so far.
    pub(crate) fn grammar(&self) -> &Grammar {
        &self.grammar
    }

    /// How many rules and symbols there are, in all.
    pub(crate) fn size(&self) -> usize {
        self.grammar.rules.len() + self.grammar.symbols.len()
    }

    /// Forgets the rules and keeps their room.
    pub(crate) fn clear(&mut self) {
        self.grammar.rules.clear();
        self.grammar.symbols.clear();
        self.table.clear();
    }

    /// The symbol so many times.
    pub(crate) fn repeat(&mut self, symbol: Symbol, times: u64) -> Symbol {
        if times == 1 {
            symbol
        } else {
            self.rule(Kind::Repeat(times), &[symbol])
        }
    }

    /// These symbols, at least two, one after the other.
    pub(crate) fn sequence(&mut self, symbols: &[Symbol]) -> Symbol {
        self.rule(Kind::Sequence, symbols)
    }

    /// An activation.
    pub(crate) fn call(&mut self, function: FuncId, symbols: &[Symbol]) -> Symbol {
        self.rule(Kind::Call(function), symbols)
    }

    fn rule(&mut self, kind: Kind, symbols: &[Symbol]) -> Symbol {
        let hash = hash(kind, symbols);
        let Self { grammar, table } = self;
        let found = table.find(spread(hash), |&(other, rule)| {
            other == hash && grammar.rules[rule].kind == kind && grammar.symbols_of(rule) == symbols
        });
        if let Some(&(_, rule)) = found {
            return Symbol::rule(rule);
        }
        let position =
            |n: usize| u32::try_from(n).expect("a segment is taken before it has 2^32 symbols");
        let rule = grammar.rules.push(Rule {
            kind,
            start: position(grammar.symbols.len()),
            len: position(symbols.len()),
        });
        grammar.symbols.extend_from_slice(symbols);
        position(grammar.symbols.len());
        table.insert_unique(spread(hash), (hash, rule), |&(hash, _)| spread(hash));
        Symbol::rule(rule)
    }
}

/// The hash table takes its buckets from the low bits and its tags from the high ones.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
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
