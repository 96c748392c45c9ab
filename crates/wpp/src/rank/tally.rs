//! How many there are, rule by rule.

use afterimage_ids::{NodeId, PrimaryMap, RuleId};

use super::Target;
use crate::measures::Measured;
use crate::{Kind, Root, Rule, Symbol};

/// How many of what is looked for there are in the rules of a segment.
pub(super) struct Tally {
    /// In a rule's symbols up to each symbol.
    ends: Vec<u64>,
    /// In each rule, itself included.
    totals: PrimaryMap<RuleId, u64>,
    /// Before each item of the root, and in all.
    starts: Vec<u64>,
}

impl Tally {
    /// Counts. Linear in the grammar.
    ///
    /// What can be reached from the root can be counted, since the segment's counts were verified; what cannot is never
    /// asked for, so it may saturate.
    pub(super) fn new(measured: &Measured, target: &Target) -> Self {
        let segment = &measured.segment;
        let mut tally = Self {
            ends: Vec::with_capacity(segment.grammar.symbols.len()),
            totals: PrimaryMap::with_capacity(segment.grammar.rules.len()),
            starts: Vec::with_capacity(segment.root.len() + 1),
        };
        for (id, rule) in segment.grammar.rules.iter() {
            let mut sum: u64 = 0;
            for &symbol in segment.grammar.symbols_of(id) {
                sum = sum.saturating_add(tally.weight(target, symbol));
                tally.ends.push(sum);
            }
            tally.totals.push(match rule.kind {
                Kind::Repeat(times) => sum.saturating_mul(times),
                kind => sum.saturating_add(target.itself(kind)),
            });
        }
        let mut sum: u64 = 0;
        for item in &segment.root {
            tally.starts.push(sum);
            sum = sum.saturating_add(match *item {
                Root::Run(symbol) => tally.weight(target, symbol),
                Root::Enter(function) => target.itself(Kind::Call(function)),
                Root::Leave => 0,
            });
        }
        tally.starts.push(sum);
        tally
    }

    fn weight(&self, target: &Target, symbol: Symbol) -> u64 {
        match symbol.as_rule() {
            Some(rule) => self.totals[rule],
            None => symbol
                .as_node()
                .map_or(0, |node| u64::from(target.position(node).is_some())),
        }
    }

    /// How many there are up to the block that is executed after `offset` blocks of the segment, fewer than its length.
    pub(super) fn rank(&self, measured: &Measured, target: &Target, offset: u64) -> u64 {
        let segment = &measured.segment;
        let item = measured
            .root_starts
            .partition_point(|&start| start <= offset)
            - 1;
        let mut rank = self.starts[item];
        let mut within = offset - measured.root_starts[item];
        let Root::Run(mut symbol) = segment.root[item] else {
            return rank;
        };
        while let Some(id) = symbol.as_rule() {
            let Rule { kind, start, len } = measured.rules[id].rule;
            rank += target.itself(kind);
            let own = start as usize..(start + len) as usize;
            if let Kind::Repeat(_) = kind {
                let round = measured.symbols[own.start].end;
                rank += within / round * self.ends[own.start];
                within %= round;
            }
            let symbols = &measured.symbols[own.clone()];
            let at = symbols.partition_point(|symbol| symbol.end <= within);
            if at > 0 {
                rank += self.ends[own.start + at - 1];
                within -= symbols[at - 1].end;
            }
            symbol = symbols[at].symbol;
        }
        let position = symbol.as_node().and_then(|node| target.position(node));
        rank + u64::from(position.is_some_and(|position| position <= within))
    }

    /// After how many blocks of the segment the one is executed that follows so many others. There must be one.
    pub(super) fn select(&self, measured: &Measured, target: &Target, others: u64) -> u64 {
        let segment = &measured.segment;
        let item = self.starts.partition_point(|&start| start <= others) - 1;
        let mut offset = measured.root_starts[item];
        let mut others = others - self.starts[item];
        let Some(&Root::Run(mut symbol)) = segment.root.get(item) else {
            return offset;
        };
        while let Some(id) = symbol.as_rule() {
            let Rule { kind, start, len } = measured.rules[id].rule;
            let itself = target.itself(kind);
            if others < itself {
                return offset;
            }
            others -= itself;
            let own = start as usize..(start + len) as usize;
            if let Kind::Repeat(_) = kind {
                let round = self.ends[own.start];
                offset += others / round * measured.symbols[own.start].end;
                others %= round;
            }
            let at = self.ends[own.clone()].partition_point(|&end| end <= others);
            if at > 0 {
                others -= self.ends[own.start + at - 1];
                offset += measured.symbols[own.start + at - 1].end;
            }
            symbol = measured.symbols[own.start + at].symbol;
        }
        let position = symbol.as_node().and_then(|node| target.position(node));
        offset + position.unwrap_or(0)
    }
}

impl Target {
    /// Which block of a node it is, if any.
    fn position(&self, node: NodeId) -> Option<u64> {
        match self {
            Self::Nodes(positions) => positions.get(&node).copied(),
            Self::Calls(_) => None,
        }
    }

    /// Whether a rule of this kind is one itself.
    fn itself(&self, kind: Kind) -> u64 {
        match self {
            Self::Calls(function) => u64::from(kind == Kind::Call(*function)),
            Self::Nodes(_) => 0,
        }
    }
}
