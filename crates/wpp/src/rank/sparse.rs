//! Counts occurrences in only those rules that contain any.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use afterimage_ids::RuleId;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::{Positions, Target, up_to};
use crate::Kind;
use crate::measures::{Measured, Use, User};

/// Counts are dense if the number of symbols with occurrences exceeds [`ALWAYS`] plus the number of
/// all symbols divided by this number.
const FEW: usize = 32;
/// Up to this number of symbols with occurrences, counts are always sparse.
const ALWAYS: usize = 64;

/// Counts of some nodes, for those rules of a segment that contain any of them.
pub(crate) struct Sparse {
    /// The range of sums of each rule, by the rule's position.
    rules: HashMap<u32, (u32, u32), FxBuildHasher>,
    /// The position of each symbol with occurrences, ascending, and the rule's running total up to
    /// and including the symbol.
    sums: Vec<(u32, u64)>,
    /// The number of each root item with occurrences, ascending, and the running total up to and
    /// including the item.
    root: Vec<(u32, u64)>,
}

impl Sparse {
    /// Counts the occurrences of nodes. Returns `None` if too many symbols have occurrences. Time:
    /// linear in the rules that have occurrences and in the occurrences of these rules. The first
    /// call for a segment is also linear in its grammar.
    pub(super) fn new(measured: &Measured, positions: &Positions) -> Option<Self> {
        let uses = measured.uses();
        let grammar = &measured.segment.grammar;
        let most = grammar.symbols.len() / FEW + ALWAYS;
        let mut counted = Self {
            rules: HashMap::default(),
            sums: Vec::new(),
            root: Vec::new(),
        };
        // Counts that have not been added to their rules yet. Each is for a symbol, given by its
        // rule and its position in the rule.
        let mut open = BinaryHeap::new();
        let mut root = Vec::new();
        let mut stands = |by: Use, count: u64, open: &mut BinaryHeap<_>| match by.user {
            User::Rule(rule) => open.push(Reverse((rule.as_u32(), by.at, count))),
            User::Root => root.push((by.at, count)),
        };
        for (node, each) in positions.weights().filter(|(_, each)| *each > 0) {
            for by in uses.of_node(node) {
                stands(by, each, &mut open);
                if open.len() > most {
                    return None;
                }
            }
        }
        // Children come before parents.
        while let Some(&Reverse((number, ..))) = open.peek() {
            let rule = RuleId::from_u32(number);
            let start = counted.sums.len() as u32;
            let place = measured.layout.place(rule);
            let mut sum: u64 = 0;
            while let Some(next) = open.peek_mut().filter(|next| next.0.0 == number) {
                let Reverse((_, at, count)) = PeekMut::pop(next);
                sum = sum.saturating_add(count);
                counted.sums.push((place + at, sum));
            }
            let own = (start, counted.sums.len() as u32);
            counted.rules.insert(place, own);
            if let Kind::Repeat(times) = grammar.rules[rule].kind {
                sum = sum.saturating_mul(times);
            }
            for by in uses.of_rule(rule) {
                stands(by, sum, &mut open);
                if counted.sums.len() + open.len() > most {
                    return None;
                }
            }
        }
        root.sort_unstable();
        let mut sum: u64 = 0;
        for (at, count) in root {
            sum = sum.saturating_add(count);
            counted.root.push((at, sum));
        }
        Some(counted)
    }

    pub(super) fn bytes(&self) -> usize {
        self.rules.capacity() * size_of::<(u32, (u32, u32))>()
            + (self.sums.capacity() + self.root.capacity()) * size_of::<(u32, u64)>()
    }

    fn of(&self, rule: u32) -> Option<&[(u32, u64)]> {
        let &(start, end) = self.rules.get(&rule)?;
        Some(&self.sums[start as usize..end as usize])
    }

    /// Does the same as [`Tally::rank`](super::tally::Tally::rank).
    pub(super) fn rank(&self, measured: &Measured, target: &Target, offset: u64) -> u64 {
        let starts = &measured.root_starts;
        let item = starts.partition_point(|&start| start <= offset) - 1;
        let layout = &measured.layout;
        let mut rank = before(&self.root, item as u32);
        let mut within = offset - starts[item];
        let mut word = measured.words[item];
        while let Some(rule) = word.as_rule() {
            let Some(own) = self.of(rule) else {
                return rank;
            };
            let body = layout.body(rule);
            if let Kind::Repeat(_) = body.kind() {
                let round = layout.end_at(body.first, body.is_wide());
                rank += within / round * own.last().map_or(0, |last| last.1);
                within %= round;
            }
            let at = layout.find(body, within);
            rank += before(own, at);
            within -= layout.end_at(at - 1, body.is_wide());
            word = layout.at(at);
        }
        rank + word
            .as_node()
            .map_or(0, |node| up_to(target.positions(node), within))
    }

    /// Does the same as [`Tally::select`](super::tally::Tally::select).
    pub(super) fn select(&self, measured: &Measured, target: &Target, others: u64) -> u64 {
        let layout = &measured.layout;
        let mut others = others;
        let item = take(&self.root, &mut others) as usize;
        let mut offset = measured.root_starts[item];
        let mut word = measured.words[item];
        while let Some(rule) = word.as_rule() {
            let body = layout.body(rule);
            let own = self.of(rule).unwrap_or(&[]);
            if let Kind::Repeat(_) = body.kind() {
                let round = own.last().map_or(1, |last| last.1);
                offset += others / round * layout.end_at(body.first, body.is_wide());
                others %= round;
            }
            let at = take(own, &mut others);
            offset += layout.end_at(at - 1, body.is_wide());
            word = layout.at(at);
        }
        let positions = word
            .as_node()
            .map_or(&[][..], |node| target.positions(node));
        offset + positions.get(others as usize).copied().unwrap_or(0)
    }
}

/// Returns the number of occurrences before a position.
fn before(sums: &[(u32, u64)], place: u32) -> u64 {
    let at = sums.partition_point(|&(other, _)| other < place);
    at.checked_sub(1).map_or(0, |at| sums[at].1)
}

/// Returns the position of the symbol whose occurrence comes after `others` earlier occurrences.
/// The occurrence must exist. Subtracts the occurrences before that position from `others`.
fn take(sums: &[(u32, u64)], others: &mut u64) -> u32 {
    let at = sums.partition_point(|&(_, sum)| sum <= *others);
    *others -= at.checked_sub(1).map_or(0, |at| sums[at].1);
    sums[at].0
}

/// A set of numbers.
#[derive(Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn set(&mut self, number: usize) {
        if self.0.len() <= number / 64 {
            self.0.resize(number / 64 + 1, 0);
        }
        self.0[number / 64] |= 1 << (number % 64);
    }

    pub(super) fn has(&self, number: usize) -> bool {
        let word = self.0.get(number / 64);
        word.is_some_and(|word| word >> (number % 64) & 1 == 1)
    }
}
