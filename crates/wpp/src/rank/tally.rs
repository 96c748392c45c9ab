//! Counts occurrences, rule by rule.

use afterimage_ids::{EntityRef, PrimaryMap, RuleId};

use super::sparse::{Bits, Sparse};
use super::sums::{Sum, Sums};
use super::{Target, up_to};
use crate::measures::{Directory, Measured};
use crate::{Kind, Root, Symbol};

/// The numbers of occurrences in the rules of a segment.
pub(crate) enum Tally {
    /// Counts only for rules that have occurrences. For most nodes, these are few.
    Sparse(Sparse),
    /// Counts for all rules.
    Dense(Dense),
}

impl Tally {
    /// Counts occurrences, whose total must be `count`. Time: at most linear in the grammar.
    pub(super) fn new(measured: &Measured, target: &Target, count: u64) -> Self {
        let sparse = match target {
            Target::Nodes(nodes) => Sparse::new(measured, nodes),
            Target::Calls(_) => None,
        };
        match sparse {
            Some(sparse) => Self::Sparse(sparse),
            None => Self::Dense(Dense::new(measured, target, count)),
        }
    }

    /// Returns the approximate memory use, in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Sparse(sparse) => sparse.bytes(),
            Self::Dense(dense) => dense.bytes(),
        }
    }

    /// Returns the number of occurrences up to the block at `offset` blocks into the segment.
    /// `offset` must be less than the segment's length.
    pub(super) fn rank(&self, measured: &Measured, target: &Target, offset: u64) -> u64 {
        match self {
            Self::Sparse(sparse) => sparse.rank(measured, target, offset),
            Self::Dense(dense) => dense.rank(measured, target, offset),
        }
    }

    /// Returns the offset in blocks of the occurrence that comes after `others` earlier occurrences
    /// in the segment. The occurrence must exist.
    pub(super) fn select(&self, measured: &Measured, target: &Target, others: u64) -> u64 {
        match self {
            Self::Sparse(sparse) => sparse.select(measured, target, others),
            Self::Dense(dense) => dense.select(measured, target, others),
        }
    }
}

/// Counts for all rules.
pub(crate) struct Dense {
    /// At each symbol's position, its rule's running total. A 0 precedes the totals of each rule.
    ends: Sums,
    /// A directory of these sums for long rules.
    directory: Directory,
    /// The count before each item of the root, and in total.
    starts: Vec<u64>,
}

impl Dense {
    /// Counts occurrences, whose total must be `count`. Time: linear in the grammar.
    fn new(measured: &Measured, target: &Target, count: u64) -> Self {
        if u16::try_from(count).is_ok() {
            Self::counted(measured, target, Sums::Short)
        } else if u32::try_from(count).is_ok() {
            Self::counted(measured, target, Sums::Middle)
        } else {
            Self::counted(measured, target, Sums::Long)
        }
    }

    /// Counts with a fixed number of bytes per sum.
    ///
    /// Counts of everything reachable from the root fit, because the segment's counts have been
    /// verified. Other counts are never queried, so they may saturate.
    fn counted<S: Sum>(measured: &Measured, target: &Target, sums: fn(Vec<S>) -> Sums) -> Self {
        let segment = &measured.segment;
        let mut ends = vec![S::default(); measured.layout.len()];
        let mut starts = Vec::with_capacity(segment.root.len() + 1);
        let mut directory = Directory::default();
        let wanted = target.wanted();
        // The total in each rule. If the rule itself is an occurrence, the total includes it.
        let mut totals = PrimaryMap::with_capacity(segment.grammar.rules.len());
        let weight = |totals: &PrimaryMap<RuleId, S>, symbol: Symbol| -> u64 {
            match (symbol.as_rule(), symbol.as_node()) {
                (Some(rule), _) => totals[rule].into(),
                (None, Some(node)) if wanted.has(node.index()) => {
                    target.positions(node).len() as u64
                }
                (None, _) => 0,
            }
        };
        for (id, rule) in segment.grammar.rules.iter() {
            let mut sum: u64 = 0;
            let symbols = segment.grammar.symbols_of(id);
            let place = measured.layout.place(id) as usize;
            let own = &mut ends[place..place + symbols.len()];
            for (end, &symbol) in own.iter_mut().zip(symbols) {
                sum = sum.saturating_add(weight(&totals, symbol));
                *end = S::of(sum);
            }
            let body = measured.layout.body(place as u32);
            if measured.layout.long(body).is_some() {
                directory.push(own.iter().map(|&end| end.into()), S::of(sum).into());
            }
            totals.push(S::of(match rule.kind {
                Kind::Repeat(times) => sum.saturating_mul(times),
                kind => sum.saturating_add(target.itself(kind)),
            }));
        }
        let mut sum: u64 = 0;
        for item in &segment.root {
            starts.push(sum);
            sum = sum.saturating_add(match *item {
                Root::Run(symbol) => weight(&totals, symbol),
                Root::Enter(function) => target.itself(Kind::Call(function)),
                Root::Leave => 0,
            });
        }
        starts.push(sum);
        directory.shrink();
        Self {
            ends: sums(ends),
            directory,
            starts,
        }
    }

    fn bytes(&self) -> usize {
        self.ends.bytes() + self.directory.bytes() + size_of_val(&self.starts[..])
    }

    fn rank(&self, measured: &Measured, target: &Target, offset: u64) -> u64 {
        let starts = &measured.root_starts;
        let item = starts.partition_point(|&start| start <= offset) - 1;
        let layout = &measured.layout;
        let mut rank = self.starts[item];
        let mut within = offset - starts[item];
        let mut word = measured.words[item];
        while let Some(rule) = word.as_rule() {
            let body = layout.body(rule);
            rank += target.itself(body.kind());
            if let Kind::Repeat(_) = body.kind() {
                let round = layout.end_at(body.first, body.is_wide());
                rank += within / round * self.ends.get(body.first);
                within %= round;
            }
            let at = layout.find(body, within);
            rank += self.ends.get(at - 1);
            within -= layout.end_at(at - 1, body.is_wide());
            word = layout.at(at);
        }
        rank + word
            .as_node()
            .map_or(0, |node| up_to(target.positions(node), within))
    }

    fn select(&self, measured: &Measured, target: &Target, others: u64) -> u64 {
        let item = self.starts.partition_point(|&start| start <= others) - 1;
        let layout = &measured.layout;
        let mut offset = measured.root_starts[item];
        let mut others = others - self.starts[item];
        let mut word = measured.words[item];
        while let Some(rule) = word.as_rule() {
            let body = layout.body(rule);
            let itself = target.itself(body.kind());
            if others < itself {
                return offset;
            }
            others -= itself;
            if let Kind::Repeat(_) = body.kind() {
                let round = self.ends.get(body.first);
                offset += others / round * layout.end_at(body.first, body.is_wide());
                others %= round;
            }
            let (mut from, mut to) = (body.first, body.end);
            if let Some(list) = layout.long(body) {
                let (least, most) = self.directory.range(list, others);
                (from, to) = (body.first + least, body.first + most);
            }
            let at = self.ends.find(from, to, others);
            others -= self.ends.get(at - 1);
            offset += layout.end_at(at - 1, body.is_wide());
            word = layout.at(at);
        }
        let positions = word
            .as_node()
            .map_or(&[][..], |node| target.positions(node));
        offset + positions.get(others as usize).copied().unwrap_or(0)
    }
}

impl Target {
    /// Returns the nodes whose occurrences are counted.
    fn wanted(&self) -> Bits {
        let mut wanted = Bits::default();
        if let Self::Nodes(positions) = self {
            for (node, _) in positions.weights() {
                wanted.set(node.index());
            }
        }
        wanted
    }

    /// Returns 1 if a rule of this kind is itself an occurrence, and otherwise 0.
    fn itself(&self, kind: Kind) -> u64 {
        match self {
            Self::Calls(function) => u64::from(kind == Kind::Call(*function)),
            Self::Nodes(_) => 0,
        }
    }
}
