//! Scans a path trace that is too irregular for a graph. One scan serves all questions and keeps
//! only the requested executions.

use std::collections::BTreeMap;

use afterimage_dataflow::{Direction, Outcome, Part, Site, Solution, Times};
use afterimage_ids::{BlockId, EntityRef, OpId};
use afterimage_wpp::twpp::{Entry, Series};

use super::calls::Alike;
use super::question::{FactQuery, position};

/// The number of executions merged at a time.
const GATHERED: usize = 1 << 12;

/// Finds, for each question, the site that decides each execution of the operator, in calls that
/// are alike. For each question, in order, returns the times of the executions and the answers.
/// Each question comes with the number of the call effects that matter to it.
///
/// Gives the same answers as queries over a graph. Time is O(blocks × questions). Memory is linear
/// in these executions.
pub(super) fn scan(
    blocks: impl Iterator<Item = BlockId>,
    length: u64,
    alike: &Alike,
    questions: &[(&FactQuery<'_>, Option<usize>)],
) -> Vec<(Series, Solution)> {
    let mut all = Vec::from_iter(questions.iter().map(|&(asked, effects)| {
        let calls = effects.map_or(&[][..], |number| alike.effects[number].entries());
        Scan::new(asked, calls, &alike.called)
    }));
    let last = alike.last.map(|last| last.next);
    for (t, block) in (1..).zip(blocks) {
        let last = last.filter(|_| t == length);
        for scan in &mut all {
            if !scan.passes(t, block) {
                scan.step(t, block, last);
            }
        }
    }
    all.into_iter().map(|scan| scan.finish(length)).collect()
}

/// The known facts about a block.
#[derive(Clone, Copy)]
enum BlockFacts {
    /// The block was not examined.
    Unknown,
    /// The block has no deciding site, and does not execute the operator.
    Plain,
    /// The site that decides a query that passes through the whole block, ignoring a call at the
    /// block's end.
    Own(Option<Site>),
}

/// The state of a question during the scan.
struct Scan<'a> {
    asked: &'a FactQuery<'a>,
    /// The decisions of calls from the current step on, ascending.
    calls: Pointer<'a, (Entry, Site)>,
    /// The steps after which functions of the program are called.
    called: Pointer<'a, Entry>,
    known: Vec<BlockFacts>,
    times: Gathered,
    found: BTreeMap<Outcome, Gathered>,
    /// The latest decision, for backward questions.
    last: Outcome,
    /// The executions that nothing has decided yet, for forward questions.
    waiting: Gathered,
}

impl<'a> Scan<'a> {
    fn new(asked: &'a FactQuery<'a>, calls: &'a [(Entry, Site)], called: &'a [Entry]) -> Self {
        Self {
            asked,
            calls: Pointer::new(calls, |(entry, _)| *entry),
            called: Pointer::new(called, |entry| *entry),
            known: Vec::new(),
            times: Gathered::default(),
            found: BTreeMap::new(),
            last: Outcome::Open,
            waiting: Gathered::default(),
        }
    }

    /// Whether the next block needs no work. Most blocks need none.
    #[inline]
    fn passes(&mut self, t: u64, block: BlockId) -> bool {
        if self.calls.at <= t {
            self.calls.get(t);
            if self.calls.at == t {
                return false;
            }
        }
        matches!(self.known(block), BlockFacts::Plain)
    }

    #[inline]
    fn known(&mut self, block: BlockId) -> BlockFacts {
        match self.known.get(block.index()) {
            None | Some(BlockFacts::Unknown) => self.look_up(block),
            Some(known) => *known,
        }
    }

    #[cold]
    fn look_up(&mut self, block: BlockId) -> BlockFacts {
        let FactQuery {
            direction, events, ..
        } = *self.asked;
        let own = events.first(block, direction, |_| true);
        let is_asked = block == self.asked.block;
        let known = match own {
            None if !is_asked && events.host(block).is_none() => BlockFacts::Plain,
            own => BlockFacts::Own(own),
        };
        if self.known.len() <= block.index() {
            self.known.resize(block.index() + 1, BlockFacts::Unknown);
        }
        self.known[block.index()] = known;
        known
    }

    /// Processes the next block. `last` is the block's first operator that was not executed, if the
    /// run ended in the block.
    fn step(&mut self, t: u64, block: BlockId, last: Option<OpId>) {
        let is_asked = block == self.asked.block;
        let executed = is_asked && last.is_none_or(|last| self.asked.op < last);
        match self.asked.direction {
            Direction::Backward => {
                if executed {
                    let here = position(self.asked.op);
                    let own = self
                        .asked
                        .events
                        .first(block, Direction::Backward, |at| at < here);
                    let outcome = own.map_or(self.last, Outcome::Decided);
                    self.times.push(t);
                    self.found.entry(outcome).or_default().push(t);
                }
                if let Some(site) = self.decided(t, block, last) {
                    self.last = Outcome::Decided(site);
                }
            }
            Direction::Forward => {
                if let Some(site) = self.decided(t, block, last)
                    && !self.waiting.is_empty()
                {
                    let found = self.found.entry(Outcome::Decided(site)).or_default();
                    self.waiting.pour(found);
                }
                if executed {
                    self.times.push(t);
                    let here = position(self.asked.op);
                    match self.behind(t, block, here, last) {
                        Some(site) => {
                            let found = self.found.entry(Outcome::Decided(site)).or_default();
                            found.push(t);
                        }
                        None => self.waiting.push(t),
                    }
                }
            }
        }
    }

    /// Returns the site that decides a query that passes through the whole block.
    fn decided(&mut self, t: u64, block: BlockId, last: Option<OpId>) -> Option<Site> {
        let direction = self.asked.direction;
        if direction == Direction::Forward
            && let Some(last) = last
        {
            let begun = |at: u32| at < position(last);
            return self.asked.events.first(block, direction, begun);
        }
        let own = match self.known(block) {
            BlockFacts::Own(own) => own,
            BlockFacts::Plain | BlockFacts::Unknown => None,
        };
        // A block's own operators come before the call at its end.
        match direction {
            Direction::Backward => self.by_call(t, block).or(own),
            Direction::Forward => own.or_else(|| self.by_call(t, block)),
        }
    }

    /// Returns the site that decides after a position in a block, for a forward question.
    fn behind(&mut self, t: u64, block: BlockId, here: u32, last: Option<OpId>) -> Option<Site> {
        let begun = |at: u32| at > here && last.is_none_or(|last| at < position(last));
        let own = self.asked.events.first(block, Direction::Forward, begun);
        match last {
            Some(_) => own,
            None => own.or_else(|| self.by_call(t, block)),
        }
    }

    /// Returns the site that decides at the call that ends a block.
    fn by_call(&mut self, t: u64, block: BlockId) -> Option<Site> {
        match self.asked.events.host(block) {
            Some(site) if self.called.get(t).is_none() => Some(site),
            _ => self.calls.get(t).map(|(_, site)| *site),
        }
    }

    fn finish(mut self, length: u64) -> (Series, Solution) {
        if !self.waiting.is_empty() {
            let found = self.found.entry(Outcome::Open).or_default();
            self.waiting.pour(found);
        }
        let parts = self.found.into_iter();
        let parts = parts.map(|(outcome, gathered)| Part {
            outcome,
            times: gathered.finish(),
        });
        let solution = Solution {
            parts: parts.collect(),
            queries: 1,
            scanned: length,
        };
        (self.times.finish().to_series(), solution)
    }
}

/// A list of series, read in ascending order.
struct Pointer<'a, T> {
    left: &'a [T],
    entry: fn(&T) -> Entry,
    /// The next timestamp of any series, or the largest number at the end.
    at: u64,
}

impl<'a, T> Pointer<'a, T> {
    fn new(left: &'a [T], entry: fn(&T) -> Entry) -> Self {
        let mut pointer = Self {
            left,
            entry,
            at: u64::MAX,
        };
        pointer.go_to(0);
        pointer
    }

    /// Moves to the first timestamp that is not before `t`.
    fn go_to(&mut self, t: u64) {
        self.at = u64::MAX;
        while let Some((first, rest)) = self.left.split_first() {
            let entry = (self.entry)(first);
            if entry.last >= t {
                let skipped = t.saturating_sub(entry.first).div_ceil(entry.step);
                self.at = entry.first + skipped * entry.step;
                return;
            }
            self.left = rest;
        }
    }

    /// Returns the entry with a timestamp.
    #[inline]
    fn get(&mut self, t: u64) -> Option<&'a T> {
        if self.at < t {
            self.go_to(t);
        }
        self.left.first().filter(|_| self.at == t)
    }
}

/// Gathers ascending timestamps and combines them into series.
#[derive(Default)]
struct Gathered {
    times: Times,
    next: Vec<u64>,
}

impl Gathered {
    fn push(&mut self, t: u64) {
        self.next.push(t);
        if self.next.len() == GATHERED {
            self.compact();
        }
    }

    fn compact(&mut self) {
        let series = Series::compact(self.next.drain(..));
        series.entries().iter().for_each(|&e| self.times.add(e));
    }

    fn is_empty(&self) -> bool {
        self.next.is_empty() && self.times.is_empty()
    }

    /// Moves all timestamps to `into`. They must be later than all timestamps in `into`.
    fn pour(&mut self, into: &mut Self) {
        if !self.times.is_empty() {
            into.compact();
            let times = std::mem::take(&mut self.times);
            times.entries().iter().for_each(|&e| into.times.add(e));
        }
        for t in self.next.drain(..) {
            into.push(t);
        }
    }

    fn finish(mut self) -> Times {
        self.compact();
        self.times
    }
}
