//! Answers questions about a place in a function, for all calls to the function.

use std::cell::Cell;

use afterimage_dataflow::{
    CallEffects, Direction, Effect, Outcome, Question, Site, Solution, Summaries, Times, solve,
};
use afterimage_ids::{BlockId, FuncId, OpId};
use afterimage_wpp::twpp::Series;
use rustc_hash::FxHashMap;

use super::calls::{Alike, PathGraph, RunCalls};
use super::scan::scan;

/// The events that decide a fact in the blocks of a function.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnEvents {
    /// For each block, the positions of the deciding events, with their sites, in order.
    blocks: FxHashMap<BlockId, Vec<(u32, Site)>>,
    /// For each block that ends with a call through a table, the site that decides the fact if the
    /// call reaches the host.
    hosts: FxHashMap<BlockId, Site>,
}

/// The position of a block's beginning.
const BEGIN: u32 = 0;

/// Returns the position of an operator in its block.
pub(super) fn position(op: OpId) -> u32 {
    op.as_u32() + 1
}

impl OwnEvents {
    /// Adds a site that decides the fact at the beginning of a block.
    pub fn at_begin(&mut self, block: BlockId, site: Site) {
        self.add(block, BEGIN, site);
    }

    /// Adds a site that decides the fact at an operator.
    pub fn at_operator(&mut self, block: BlockId, op: OpId, site: Site) {
        self.add(block, position(op), site);
    }

    /// Adds a site that decides the fact whenever a block's final call reaches the host.
    pub fn at_host(&mut self, block: BlockId, site: Site) {
        self.hosts.insert(block, site);
    }

    fn add(&mut self, block: BlockId, position: u32, site: Site) {
        let events = self.blocks.entry(block).or_default();
        let after = events.partition_point(|&(other, _)| other <= position);
        events.insert(after, (position, site));
    }

    /// Returns the site that decides the fact whenever the block's final call through a table
    /// reaches the host.
    pub fn host(&self, block: BlockId) -> Option<Site> {
        self.hosts.get(&block).copied()
    }

    fn of(&self, block: BlockId) -> &[(u32, Site)] {
        self.blocks.get(&block).map_or(&[], |events| events)
    }

    /// Returns the first event of a block that a query meets, considering only some positions.
    pub fn first(
        &self,
        block: BlockId,
        direction: Direction,
        at: impl Fn(u32) -> bool,
    ) -> Option<Site> {
        let mut events = self.of(block).iter().filter(|event| at(event.0));
        let event = match direction {
            Direction::Backward => events.next_back(),
            Direction::Forward => events.next(),
        };
        event.map(|event| event.1)
    }
}

/// A query for the site that decides the fact before, or after, each execution of an operator.
pub(super) struct FactQuery<'a> {
    pub direction: Direction,
    pub block: BlockId,
    pub op: OpId,
    pub events: &'a OwnEvents,
    /// The decisions of calls. `None` if calls do not matter.
    pub summaries: Option<&'a Summaries<'a>>,
}

/// The time that a question takes for a block of a path trace, relative to the time for summarising
/// the block. Most of this time is spent on the calls that the function makes.
const ASKED: u64 = 16;

/// Returns the work of a question about a function, for a [`Meter`].
pub(super) fn work(calls: &RunCalls, function: FuncId) -> u64 {
    calls.trace_blocks(function).saturating_mul(ASKED)
}

/// Measures the work of answering questions, in blocks of path traces to summarise.
pub(super) struct Meter<'t> {
    all: u64,
    done: Cell<u64>,
    tell: &'t dyn Fn(f64),
}

impl<'t> Meter<'t> {
    /// Creates a meter for this amount of work. `tell` receives the share of the work that is done.
    pub fn new(all: u64, tell: &'t dyn Fn(f64)) -> Self {
        let done = Cell::new(0);
        Self { all, done, tell }
    }

    pub fn add(&self, work: u64) {
        self.reach(self.done.get().saturating_add(work));
    }

    fn reach(&self, done: u64) {
        self.done.set(done);
        (self.tell)(done as f64 / self.all.max(1) as f64);
    }
}

/// Answers questions about one function, call by call. Calls that are alike are taken together.
/// `tell` receives the number of the question, the number of blocks that each call executed itself,
/// the calls, the times of the operator's executions, and the answer.
pub(super) fn ask(
    calls: &RunCalls,
    function: FuncId,
    questions: &[FactQuery<'_>],
    meter: &Meter<'_>,
    mut tell: impl FnMut(usize, u64, &Alike, &Series, Solution),
) {
    let mut summaries: Vec<&Summaries<'_>> = Vec::new();
    let mut numbers = Vec::new();
    for asked in questions {
        let number = asked.summaries.map(|wanted| {
            let known = summaries.iter().position(|&s| std::ptr::eq(s, wanted));
            known.unwrap_or_else(|| {
                summaries.push(wanted);
                summaries.len() - 1
            })
        });
        numbers.push(number);
    }
    let needs_called = questions.iter().any(|asked| !asked.events.hosts.is_empty());
    let all = work(calls, function).saturating_mul(questions.len() as u64);
    let ends = meter.done.get().saturating_add(all);
    calls.visit(function, &summaries, needs_called, |path, alike| {
        let length = path.trace.len();
        let share = (length / path.groups).saturating_mul(ASKED);
        if path.is_irregular {
            let asked = questions.iter().zip(numbers.iter().copied());
            let found = scan(path.trace.blocks(), length, alike, &Vec::from_iter(asked));
            for (k, (times, solution)) in found.into_iter().enumerate() {
                if times.count() > 0 {
                    tell(k, length, alike, &times, solution);
                }
            }
            meter.add(share.saturating_mul(questions.len() as u64));
            return;
        }
        let Some(path) = path.graph() else {
            return;
        };
        let called = Series::from_ascending(alike.called.clone());
        for (k, asked) in questions.iter().enumerate() {
            let Ok(node) = path.blocks.binary_search(&asked.block) else {
                continue;
            };
            let none = CallEffects::none(asked.direction);
            let of = Of {
                asked,
                path,
                effects: numbers[k].map_or(&none, |number| &alike.effects[number]),
                called: &called,
                last: alike.last.map(|last| last.next),
            };
            let times = of.executions(node);
            if times.count() == 0 {
                continue;
            }
            let question = Question {
                direction: asked.direction,
                node,
                times: &times,
                own: of.own(node),
            };
            // Most of the time is spent on the effects of nodes.
            let part = share / path.blocks.len().max(1) as u64;
            let solution = solve(&path.graph, &question, |node| {
                meter.add(part);
                of.effect(node)
            });
            tell(k, length, alike, &times, solution);
        }
    });
    meter.reach(ends);
}

/// A question, applied to a group of calls that are alike.
struct Of<'a> {
    asked: &'a FactQuery<'a>,
    path: &'a PathGraph,
    effects: &'a CallEffects,
    /// The steps after which functions of the program are called.
    called: &'a Series,
    /// The first operator in the last block that the run did not execute.
    last: Option<OpId>,
}

impl Of<'_> {
    /// Returns the times at which the operator is executed.
    fn executions(&self, node: usize) -> Series {
        let all = self.path.graph.timestamps(node);
        let end = self.path.graph.length();
        if self.last.is_none_or(|last| self.asked.op < last) || !all.contains(end) {
            return all.clone();
        }
        let mut times = Times::from(all);
        times.take(end);
        times.to_series()
    }

    /// Returns the effect of the part of the block between the operator and the point where a query
    /// leaves the block.
    fn own(&self, node: usize) -> Effect {
        let here = position(self.asked.op);
        match self.asked.direction {
            Direction::Backward => {
                let before = |at| at < here;
                let found = self
                    .asked
                    .events
                    .first(self.asked.block, Direction::Backward, before);
                found.map_or(Effect::Transparent, Effect::Decides)
            }
            Direction::Forward => self.behind(node, here),
        }
    }

    /// Returns the effect of a whole block.
    fn effect(&self, node: usize) -> Effect {
        match self.asked.direction {
            Direction::Backward => {
                let block = self.path.blocks[node];
                let own = self
                    .asked
                    .events
                    .first(block, Direction::Backward, |_| true);
                let hosts = self.asked.events.host(block);
                self.with_call(self.path.graph.timestamps(node), own, hosts)
            }
            Direction::Forward => self.behind(node, BEGIN),
        }
    }

    /// Returns the effect of a block after a position, for a forward query.
    fn behind(&self, node: usize, from: u32) -> Effect {
        let block = self.path.blocks[node];
        let events = self.asked.events;
        let behind = |at: u32| at > from || from == BEGIN;
        let own = events.first(block, Direction::Forward, behind);
        let hosts = events.host(block);
        let timestamps = self.path.graph.timestamps(node);
        let whole = self.with_call(timestamps, own, hosts);
        let end = self.path.graph.length();
        let Some(last) = self.last.filter(|_| timestamps.contains(end)) else {
            return whole;
        };
        // If the run ended in this block, its last execution did not reach the block's end.
        let begun = |at: u32| behind(at) && at < position(last);
        let own = events.first(block, Direction::Forward, begun);
        let without = |series: &Series| {
            let mut times = Times::from(series);
            times.take(end);
            times.to_series()
        };
        let (mut decided, mut rest) = match whole {
            Effect::Transparent => (Vec::new(), timestamps.clone()),
            Effect::Decides(site) => (vec![(timestamps.clone(), site)], Series::default()),
            Effect::Differs { decided, rest } => (decided, rest),
        };
        decided
            .iter_mut()
            .for_each(|(series, _)| *series = without(series));
        rest = without(&rest);
        match own {
            Some(site) => decided.push((Series::compact([end]), site)),
            None => rest = Series::compact(rest.iter().chain([end])),
        }
        Effect::Differs { decided, rest }
    }

    /// Returns the effect of a block. It combines the effect of the block's own operators with the
    /// effect of host calls through a table.
    fn with_call(&self, timestamps: &Series, own: Option<Site>, hosts: Option<Site>) -> Effect {
        let plain = self.effects.of_block(timestamps, own);
        let decided_before = own.is_some() && self.asked.direction == Direction::Forward;
        let Some(site) = hosts.filter(|_| !decided_before) else {
            return plain;
        };
        let (called, by_host) = Times::from(timestamps).split(self.called);
        if by_host.is_empty() {
            return plain;
        }
        let called = called.to_series();
        let kept = |series: &Series| Times::from(series).of_series(&called).to_series();
        let (mut decided, rest) = match plain {
            Effect::Transparent => (Vec::new(), called.clone()),
            Effect::Decides(own) => (vec![(called.clone(), own)], Series::default()),
            Effect::Differs { decided, rest } => {
                let decided = decided.iter().map(|(series, site)| (kept(series), *site));
                (decided.collect(), kept(&rest))
            }
        };
        decided.push((by_host.to_series(), site));
        Effect::Differs { decided, rest }
    }
}

/// The number of executions that each site decided, over all calls that are alike.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub by_outcome: FxHashMap<Outcome, u64>,
    pub queries: u64,
    pub scanned: u64,
    pub executions: u64,
}

impl Counts {
    pub fn add(&mut self, alike: &Alike, solution: &Solution) {
        for part in &solution.parts {
            let count = part.times.count() * alike.calls;
            *self.by_outcome.entry(part.outcome).or_default() += count;
            self.executions += count;
        }
        self.queries += solution.queries;
        self.scanned += solution.scanned;
    }
}
