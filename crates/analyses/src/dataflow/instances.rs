//! Which executions of an operator were decided by what, over all calls.

use afterimage_dataflow::{Outcome, Solution};
use afterimage_wpp::twpp::{CallId, CallRun, Runs, Series};
use rustc_hash::FxHashMap;

use super::calls::{Alike, RunCalls};
use super::listing::Listing;
use super::memory::Decider;

/// What decided each of an operator's executions, which are numbered from 1 in the order of time.
///
/// Calls that are alike are there once; executions are found through the dynamic call graph, in which equal subtrees are one.
pub struct Instances<'a> {
    pub(super) calls: &'a RunCalls,
    pub(super) own: Vec<Own>,
    /// Which of them is a call's.
    pub(super) of_call: FxHashMap<CallId, usize>,
    /// That of the call in which the run ended inside a block.
    pub(super) last: Option<usize>,
    /// What may have decided.
    pub(super) deciders: Vec<Option<Decider>>,
    /// By subtree, how many executions it has, and how many blocks.
    pub(super) counts: Vec<u64>,
    lengths: Vec<u64>,
    total: u64,
}

/// The executions in a call itself.
pub(super) struct Own {
    pub times: Ranked,
    /// By decider's number.
    parts: Vec<(usize, Series)>,
}

/// Timestamps of which it is known how many come before.
pub(super) struct Ranked {
    series: Series,
    /// By entry, how many timestamps the entries before it have.
    before: Vec<u64>,
    count: u64,
}

impl Ranked {
    fn new(series: Series) -> Self {
        let mut count = 0;
        let before = series.entries().iter().map(|entry| {
            let before = count;
            count += entry.count();
            before
        });
        let before = before.collect();
        Self {
            series,
            before,
            count,
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many are not later than this.
    pub fn rank(&self, t: u64) -> u64 {
        let entries = self.series.entries();
        let next = entries.partition_point(|entry| entry.first <= t);
        let Some(k) = next.checked_sub(1) else {
            return 0;
        };
        let entry = entries[k];
        self.before[k] + (t.min(entry.last) - entry.first) / entry.step + 1
    }

    /// The one before which there are so many.
    pub fn select(&self, n: u64) -> u64 {
        let k = self.before.partition_point(|&before| before <= n) - 1;
        let entry = self.series.entries()[k];
        entry.first + (n - self.before[k]) * entry.step
    }
}

impl Own {
    /// What decided at this step.
    fn decider(&self, step: u64) -> Option<usize> {
        let found = self.parts.iter().find(|part| part.1.contains(step));
        found.map(|part| part.0)
    }

    /// The executions that this decided.
    pub fn by(&self, decider: usize) -> Option<&Series> {
        let found = self.parts.iter().find(|part| part.0 == decider);
        found.map(|part| &part.1)
    }
}

/// One execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FactInstance {
    /// Which one, from 1.
    pub number: u64,
    /// The time of its block.
    pub time: u64,
    /// Which of the blocks that its call executed itself that was, from 1.
    pub step: u64,
    /// What decided; `None` stands for the call's beginning, or its end.
    pub decider: Option<Decider>,
}

/// Executions in stretches of equal lengths and distances: from `first` to `last`, and so every `stride`, `times` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceRun {
    /// The number of the first execution.
    pub first: u64,
    /// That of the last one of the first stretch.
    pub last: u64,
    /// How far apart the stretches begin; 0 if there is one.
    pub stride: u64,
    /// How many stretches there are.
    pub times: u64,
}

impl InstanceRun {
    /// How many executions these are.
    pub fn count(&self) -> u64 {
        (self.last - self.first + 1) * self.times
    }
}

/// The runs of calls, of which the last call is apart and marked if it is the one that did not return.
pub(super) fn with_last_apart(
    runs: Runs<'_>,
    has_last: bool,
) -> impl Iterator<Item = (CallRun, bool)> {
    let mut runs = runs.peekable();
    let mut last = None;
    std::iter::from_fn(move || {
        if let Some(last) = last.take() {
            return Some((last, true));
        }
        let run = runs.next()?;
        if !has_last || runs.peek().is_some() {
            return Some((run, false));
        }
        let alone = CallRun {
            first: run.last(),
            step: 0,
            count: 1,
            ..run
        };
        if run.count == 1 {
            return Some((alone, true));
        }
        last = Some(alone);
        let others = CallRun {
            count: run.count - 1,
            ..run
        };
        Some((others, false))
    })
}

/// Collects what was found in calls that are alike.
#[derive(Default)]
pub(super) struct Collecting {
    own: Vec<Own>,
    of_call: FxHashMap<CallId, usize>,
    last: Option<usize>,
    deciders: Vec<Option<Decider>>,
    numbers: FxHashMap<Outcome, usize>,
}

impl Collecting {
    pub fn add(
        &mut self,
        alike: &Alike,
        times: &Series,
        solution: &Solution,
        decider: impl Fn(Outcome) -> Option<Decider>,
    ) {
        let number = self.own.len();
        match alike.last {
            Some(_) => self.last = Some(number),
            None => self
                .of_call
                .extend(alike.ids.iter().map(|&id| (id, number))),
        }
        let mut parts = Vec::new();
        for part in &solution.parts {
            let known = *self.numbers.entry(part.outcome).or_insert_with(|| {
                self.deciders.push(decider(part.outcome));
                self.deciders.len() - 1
            });
            parts.push((known, part.times.to_series()));
        }
        self.own.push(Own {
            times: Ranked::new(times.clone()),
            parts,
        });
    }

    /// O(subtrees and runs of calls in the dynamic call graph).
    pub fn finish(self, calls: &RunCalls) -> Instances<'_> {
        let graph = calls.graph();
        let (mut counts, mut lengths) = (Vec::new(), Vec::new());
        let sum = |runs: Runs<'_>, own: u64, of: &[u64]| {
            runs.fold(own, |sum, run| sum + run.count * of[run.call.index()])
        };
        for id in graph.ids() {
            let own = self.of_call.get(&id).map(|&own| &self.own[own]);
            let own = own.map_or(0, |own| own.times.count());
            counts.push(sum(graph.calls(id), own, &counts));
            lengths.push(sum(graph.calls(id), calls.blocks(id), &lengths));
        }
        let total = sum(graph.top(), 0, &counts);
        let mut all = Instances {
            calls,
            own: self.own,
            of_call: self.of_call,
            last: self.last,
            deciders: self.deciders,
            counts,
            lengths,
            total,
        };
        all.total = all.with_last(total);
        all
    }
}

impl Instances<'_> {
    /// How many executions there are.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The executions in a call itself. `is_last`: it is the innermost of those that never returned.
    pub(super) fn own(&self, id: CallId, is_last: bool) -> Option<&Own> {
        if is_last && self.calls.innermost() == Some(id) {
            return self.last.map(|own| &self.own[own]);
        }
        self.of_call.get(&id).map(|&own| &self.own[own])
    }

    /// One of them, by its number. `None` if there are not so many. O(depth of calls × their runs).
    pub fn get(&self, number: u64) -> Option<FactInstance> {
        if number == 0 || number > self.total {
            return None;
        }
        let graph = self.calls.graph();
        let (mut runs, mut own, mut time) = (graph.top(), None::<&Own>, 0);
        let mut has_last = self.calls.innermost().is_some();
        let mut left = number;
        loop {
            // In the calls so far: executions, and blocks.
            let (mut called, mut passed) = (0, 0);
            let mut into = None;
            for (run, is_last) in with_last_apart(runs, has_last) {
                let length = self.lengths[run.call.index()];
                let usual = self.counts[run.call.index()];
                let count = if is_last {
                    self.with_last(usual)
                } else {
                    usual
                };
                let before = |j: u64| {
                    let at = run.first + j * run.step;
                    own.map_or(0, |own| own.times.rank(at)) + called + count * j
                };
                if before(run.count - 1) + count < left {
                    called += count * run.count;
                    passed += length * run.count;
                    continue;
                }
                // The first call by whose end there are so many.
                let (mut low, mut high) = (0, run.count - 1);
                while low < high {
                    let middle = low + (high - low) / 2;
                    if before(middle) + count >= left {
                        high = middle
                    } else {
                        low = middle + 1
                    }
                }
                if before(low) < left {
                    time += run.first + low * run.step + passed + length * low;
                    left -= before(low);
                    into = Some((run.call, is_last));
                } else {
                    called += count * low;
                    passed += length * low;
                }
                break;
            }
            let Some((call, is_last)) = into else {
                let step = own?.times.select(left - called - 1);
                let decider = own?.decider(step)?;
                return Some(FactInstance {
                    number,
                    time: time + passed + step,
                    step,
                    decider: self.deciders[decider],
                });
            };
            runs = graph.calls(call);
            own = self.own(call, is_last);
            has_last = is_last && self.calls.innermost() != Some(call);
        }
    }

    /// How many executions there are where the usual calls have so many, and the call in which the run ended is among them, once more than elsewhere.
    fn with_last(&self, count: u64) -> u64 {
        let Some(innermost) = self.calls.innermost() else {
            return count;
        };
        let of = |own: Option<&Own>| own.map_or(0, |own| own.times.count());
        count - of(self.own(innermost, false)) + of(self.own(innermost, true))
    }

    /// The executions that this decided, in order: at most so many runs, and whether that is all.
    pub fn decided_by(&self, decider: Option<Decider>, most: usize) -> (Vec<InstanceRun>, bool) {
        match self.deciders.iter().position(|&known| known == decider) {
            Some(decider) => Listing::new(self, decider).runs(most),
            None => (Vec::new(), true),
        }
    }
}
