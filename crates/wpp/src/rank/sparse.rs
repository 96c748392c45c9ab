//! How many there are in those rules that have any.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use afterimage_ids::NodeId;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::Kind;
use crate::measures::{Measured, Use, User};

/// All rules are counted if more than one in so many symbols has any, and more than a few.
const FEW: usize = 32;
/// How many are a few.
const ALWAYS: usize = 64;

/// How many of some nodes there are in the rules of a segment, as far as there are any.
pub(super) struct Sparse {
    /// By the place of a rule: its own sums.
    rules: HashMap<u32, (u32, u32), FxBuildHasher>,
    /// The places of the symbols that have any, ascending, and how many there are in the rule's symbols up to each, itself included.
    sums: Vec<(u32, u64)>,
    /// The same for the items of the root.
    root: Vec<(u32, u64)>,
}

impl Sparse {
    /// Counts nodes. `None` if too many symbols have any. O(s log s) for s symbols that have any, and once for each segment linear in its grammar.
    pub(super) fn new(measured: &Measured, nodes: impl Iterator<Item = NodeId>) -> Option<Self> {
        let uses = measured.uses();
        let grammar = &measured.segment.grammar;
        let most = grammar.symbols.len() / FEW + ALWAYS;
        let mut counted = Self {
            rules: HashMap::default(),
            sums: Vec::new(),
            root: Vec::new(),
        };
        // The children come before the parents, and the root last.
        let mut open: BinaryHeap<Reverse<(Use, u64)>> = BinaryHeap::new();
        for node in nodes {
            open.extend(uses.of_node(node).map(|by| Reverse((by, 1))));
        }
        while let Some(Reverse((first, _))) = open.peek().copied() {
            let User::Rule(rule) = first.user else {
                break;
            };
            let start = counted.sums.len() as u32;
            let place = measured.layout.place(rule);
            let mut sum: u64 = 0;
            while let Some(Reverse((by, count))) = open.peek().copied()
                && by.user == first.user
            {
                open.pop();
                sum = sum.saturating_add(count);
                counted.sums.push((place + by.at, sum));
            }
            let own = (start, counted.sums.len() as u32);
            counted.rules.insert(place, own);
            if let Kind::Repeat(times) = grammar.rules[rule].kind {
                sum = sum.saturating_mul(times);
            }
            open.extend(uses.of_rule(rule).map(|by| Reverse((by, sum))));
            if counted.sums.len() + open.len() > most {
                return None;
            }
        }
        let mut sum: u64 = 0;
        while let Some(Reverse((by, count))) = open.pop() {
            sum = sum.saturating_add(count);
            counted.root.push((by.at, sum));
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

    /// As for all rules; `position` is that of a node's block.
    pub(super) fn rank(
        &self,
        measured: &Measured,
        position: impl Fn(NodeId) -> Option<u64>,
        offset: u64,
    ) -> u64 {
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
        let position = word.as_node().and_then(position);
        rank + u64::from(position.is_some_and(|position| position <= within))
    }

    /// As for all rules.
    pub(super) fn select(
        &self,
        measured: &Measured,
        position: impl Fn(NodeId) -> Option<u64>,
        others: u64,
    ) -> u64 {
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
        offset + word.as_node().and_then(position).unwrap_or(0)
    }
}

/// How many there are before a place.
fn before(sums: &[(u32, u64)], place: u32) -> u64 {
    let at = sums.partition_point(|&(other, _)| other < place);
    at.checked_sub(1).map_or(0, |at| sums[at].1)
}

/// The place of the one that follows so many others, and how many others there are at that place. There must be one.
fn take(sums: &[(u32, u64)], others: &mut u64) -> u32 {
    let at = sums.partition_point(|&(_, sum)| sum <= *others);
    *others -= at.checked_sub(1).map_or(0, |at| sums[at].1);
    sums[at].0
}
