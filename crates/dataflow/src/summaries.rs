//! Summarises the decisions of calls (Zhang and Gupta 2001, section 4.2, on GEN and KILL of a
//! call).

use afterimage_ids::{BlockId, FuncId};
use afterimage_wpp::twpp::{Call, CallId, Entry, Series, Wpp};
use rustc_hash::FxHashMap;

use crate::effect::{Effect, Site};
use crate::graph::Direction;
use crate::times::Times;

/// The sites that decide a fact, by function and block.
pub trait Events {
    /// Returns the site that a query through a block meets first. It is the last site for a
    /// backward query, and the first for a forward query. A call at the block's end is ignored.
    fn of_block(&self, function: FuncId, block: BlockId) -> Option<Site>;

    /// Whether a function may contain sites that decide the fact.
    fn any_in(&self, function: FuncId) -> bool;
}

/// The decision of every call in a run. A call's decision includes the decisions of all its
/// callees.
///
/// Equal subtrees of the dynamic call graph are summarised once, callees before callers.
/// O(subtrees + runs of calls + blocks of the unique path traces of functions with events).
pub struct Summaries<'a> {
    wpp: &'a Wpp,
    direction: Direction,
    decided: Vec<Option<Site>>,
}

impl<'a> Summaries<'a> {
    /// Summarises all calls of a run.
    pub fn new(wpp: &'a Wpp, direction: Direction, events: &impl Events) -> Self {
        let mut own: FxHashMap<Call, Option<(u64, Site)>> = FxHashMap::default();
        let calls = &wpp.calls;
        let mut all = Self {
            wpp,
            direction,
            decided: Vec::with_capacity(calls.subtrees()),
        };
        for id in calls.ids() {
            let call = calls.call(id);
            let own = if events.any_in(call.function) {
                *own.entry(call)
                    .or_insert_with(|| own_event(wpp, call, direction, events))
            } else {
                None
            };
            let decided = all.of(id, own);
            all.decided.push(decided);
        }
        all
    }

    /// Returns the decision of a call. The decisions of its callees must be known. `own` is the
    /// call's own site with its step.
    fn of(&self, id: CallId, own: Option<(u64, Site)>) -> Option<Site> {
        let deciding = self.wpp.calls.calls(id);
        let mut deciding =
            deciding.filter_map(|run| self.decided[run.call.index()].map(|site| (run, site)));
        // A block's own effect precedes the call with which it ends.
        match self.direction {
            Direction::Backward => {
                let called = deciding.last().map(|(run, site)| (run.last(), site));
                match (own, called) {
                    (Some((here, site)), Some((call, _))) if here > call => Some(site),
                    (_, Some((_, site))) | (Some((_, site)), None) => Some(site),
                    (None, None) => None,
                }
            }
            Direction::Forward => {
                let called = deciding.next().map(|(run, site)| (run.first, site));
                match (own, called) {
                    (Some((here, _)), Some((call, site))) if call < here => Some(site),
                    (Some((_, site)), _) | (None, Some((_, site))) => Some(site),
                    (None, None) => None,
                }
            }
        }
    }

    /// Returns the decision of a call, including all of its callees.
    pub fn decided(&self, id: CallId) -> Option<Site> {
        self.decided[id.index()]
    }

    /// Returns the decisions of the calls that a call makes directly.
    pub fn effects(&self, id: CallId) -> CallEffects {
        let mut effects: Vec<(Entry, Site)> = Vec::new();
        for run in self.wpp.calls.calls(id) {
            let Some(site) = self.decided(run.call) else {
                continue;
            };
            let mut entry = if run.first == run.last() {
                Entry::single(run.first)
            } else {
                Entry {
                    first: run.first,
                    last: run.last(),
                    step: run.step,
                }
            };
            // A tail call follows the call that it replaces, at the same step.
            if let Some((before, _)) = effects.last_mut()
                && before.last == entry.first
            {
                let shortened = match self.direction {
                    Direction::Backward => without_last(*before),
                    Direction::Forward => Some(*before),
                };
                match shortened {
                    Some(shortened) => *before = shortened,
                    None => drop(effects.pop()),
                }
                if self.direction == Direction::Forward {
                    match without_first(entry) {
                        Some(shortened) => entry = shortened,
                        None => continue,
                    }
                }
            }
            effects.push((entry, site));
        }
        CallEffects {
            direction: self.direction,
            effects,
        }
    }
}

/// Returns the event of a path trace that a query meets first, with its step.
fn own_event(
    wpp: &Wpp,
    call: Call,
    direction: Direction,
    events: &impl Events,
) -> Option<(u64, Site)> {
    let trace = &wpp.path(call)?.trace;
    let mut known: FxHashMap<BlockId, Option<Site>> = FxHashMap::default();
    let mut event = |(t, block): (u64, BlockId)| {
        let site = *known
            .entry(block)
            .or_insert_with(|| events.of_block(call.function, block));
        site.map(|site| (t, site))
    };
    match (direction, trace.as_slice()) {
        (Direction::Forward, _) => (1..).zip(trace.blocks()).find_map(event),
        (Direction::Backward, Some(blocks)) => {
            let last = (1..=blocks.len() as u64).rev();
            last.zip(blocks.iter().rev().copied()).find_map(event)
        }
        (Direction::Backward, None) => (1..).zip(trace.blocks()).filter_map(&mut event).last(),
    }
}

fn without_last(entry: Entry) -> Option<Entry> {
    let last = entry.last.checked_sub(entry.step)?;
    (last >= entry.first).then(|| crate::progression::series(entry.first, last, entry.step))
}

fn without_first(entry: Entry) -> Option<Entry> {
    let first = entry.first + entry.step;
    (first <= entry.last).then(|| crate::progression::series(first, entry.last, entry.step))
}

/// The direct callees of one call that decide the fact, each with its step. The step of a call is
/// the step of the block that ends with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallEffects {
    direction: Direction,
    effects: Vec<(Entry, Site)>,
}

impl CallEffects {
    /// Creates effects in which no call decides.
    pub fn none(direction: Direction) -> Self {
        Self {
            direction,
            effects: Vec::new(),
        }
    }

    /// Returns the steps at which calls decide, with their sites. The series are in order and
    /// disjoint.
    pub fn entries(&self) -> &[(Entry, Site)] {
        &self.effects
    }

    /// Whether no call decides.
    pub fn is_none(&self) -> bool {
        self.effects.is_empty()
    }

    /// Returns the effect of a block that executes at these steps. `own` is the block's own site.
    /// O(series of the block + calls that decide).
    pub fn of_block(&self, timestamps: &Series, own: Option<Site>) -> Effect {
        let whole = own.map_or(Effect::Transparent, Effect::Decides);
        // A block's own effect precedes the call with which it ends.
        if own.is_some() && self.direction == Direction::Forward || self.is_none() {
            return whole;
        }
        let mut by_site: FxHashMap<Site, Times> = FxHashMap::default();
        for &(entry, site) in &self.effects {
            let here = Times::from_iter([entry]).of_series(timestamps);
            if !here.is_empty() {
                by_site.entry(site).or_default().append(here);
            }
        }
        if by_site.is_empty() {
            return whole;
        }
        let mut decided = Vec::with_capacity(by_site.len() + 1);
        let mut called = Times::new();
        for (site, mut times) in by_site {
            times.combine();
            decided.push((times.to_series(), site));
            called.append(times);
        }
        called.combine();
        decided.sort_unstable_by_key(|&(_, site)| site);
        let (_, rest) = Times::from(timestamps).split(&called.to_series());
        let mut rest = rest.to_series();
        if let Some(site) = own {
            decided.push((std::mem::take(&mut rest), site));
        }
        Effect::Differs { decided, rest }
    }
}
