//! Finds the site that decided each execution of an operator, over all calls.

use afterimage_dataflow::{Outcome, Solution};
use afterimage_wpp::twpp::{CallId, CallRun, Runs, Series};
use rustc_hash::FxHashMap;

use super::calls::{Alike, RunCalls};
use super::listing::Listing;
use super::memory::Decider;

/// The sites that decided an operator's executions. The executions are numbered from 1 in order of
/// time.
///
/// Calls that are alike are stored once. Executions are found through the dynamic call graph, in
/// which equal subtrees are shared.
pub struct Instances<'a> {
    pub(super) calls: &'a RunCalls,
    pub(super) own: Vec<Own>,
    /// For each call, the index of its entry in `own`.
    pub(super) of_call: FxHashMap<CallId, usize>,
    /// The entry of the call in which the run ended inside a block.
    pub(super) last: Option<usize>,
    pub(super) deciders: Vec<Option<Decider>>,
    /// For each subtree, the numbers of its executions and blocks.
    pub(super) counts: Vec<u64>,
    lengths: Vec<u64>,
    total: u64,
}

/// The executions in a call itself, without those in its callees.
pub(super) struct Own {
    pub times: Ranked,
    /// The executions, by decider number.
    parts: Vec<(usize, Series)>,
}

/// Timestamps that can be counted and found by position (rank and select).
pub(super) struct Ranked {
    series: Series,
    /// For each entry, the number of timestamps in the entries before it.
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

    /// Returns the number of timestamps up to `t`.
    pub fn rank(&self, t: u64) -> u64 {
        let entries = self.series.entries();
        let next = entries.partition_point(|entry| entry.first <= t);
        let Some(k) = next.checked_sub(1) else {
            return 0;
        };
        let entry = entries[k];
        self.before[k] + (t.min(entry.last) - entry.first) / entry.step + 1
    }

    /// Returns the timestamp that has `n` timestamps before it.
    pub fn select(&self, n: u64) -> u64 {
        let k = self.before.partition_point(|&before| before <= n) - 1;
        let entry = self.series.entries()[k];
        entry.first + (n - self.before[k]) * entry.step
    }
}

impl Own {
    /// Returns the decider of the execution at this step.
    fn decider(&self, step: u64) -> Option<usize> {
        let found = self.parts.iter().find(|part| part.1.contains(step));
        found.map(|part| part.0)
    }

    /// Returns the executions that this decider decided.
    pub fn by(&self, decider: usize) -> Option<&Series> {
        let found = self.parts.iter().find(|part| part.0 == decider);
        found.map(|part| &part.1)
    }
}

/// One execution of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FactInstance {
    /// The number of the execution, from 1.
    pub number: u64,
    /// The time of the execution's block.
    pub time: u64,
    /// The position of the block among the blocks that its call executed itself, from 1.
    pub step: u64,
    /// The deciding site; `None` means the beginning or the end of the call.
    pub decider: Option<Decider>,
}

/// Executions in `times` stretches of equal length and distance. The first stretch is from `first`
/// to `last`, and each later stretch begins `stride` after the stretch before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceRun {
    /// The number of the first execution.
    pub first: u64,
    /// The number of the last execution of the first stretch.
    pub last: u64,
    /// The distance between the beginnings of stretches; 0 if there is one stretch.
    pub stride: u64,
    /// The number of stretches.
    pub times: u64,
}

impl InstanceRun {
    /// Returns the number of executions.
    pub fn count(&self) -> u64 {
        (self.last - self.first + 1) * self.times
    }
}

/// Iterates over the runs of calls. If the last call did not return, it is listed separately and
/// marked.
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

/// Collects the answers of calls that are alike.
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

    /// Finishes the collection. O(subtrees and runs of calls in the dynamic call graph).
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
    /// Returns the number of executions.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Returns the executions in a call itself. `is_last` is true if this call never returned.
    pub(super) fn own(&self, id: CallId, is_last: bool) -> Option<&Own> {
        if is_last && self.calls.innermost() == Some(id) {
            return self.last.map(|own| &self.own[own]);
        }
        self.of_call.get(&id).map(|&own| &self.own[own])
    }

    /// Returns the execution with this number, or `None` if there are fewer executions. O(depth of
    /// calls × their runs).
    pub fn get(&self, number: u64) -> Option<FactInstance> {
        if number == 0 || number > self.total {
            return None;
        }
        let graph = self.calls.graph();
        let (mut runs, mut own, mut time) = (graph.top(), None::<&Own>, 0);
        let mut has_last = self.calls.innermost().is_some();
        let mut left = number;
        loop {
            // The numbers of executions and blocks in the calls so far.
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
                // Searches for the first call that ends at or after the execution with this number.
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

    /// Corrects a count of executions for the call in which the run ended. That call may have fewer
    /// executions than the calls with which it is grouped.
    fn with_last(&self, count: u64) -> u64 {
        let Some(innermost) = self.calls.innermost() else {
            return count;
        };
        let of = |own: Option<&Own>| own.map_or(0, |own| own.times.count());
        count - of(self.own(innermost, false)) + of(self.own(innermost, true))
    }

    /// Returns the executions with this decider, in order. Returns at most `most` runs, and whether
    /// these are all.
    pub fn decided_by(&self, decider: Option<Decider>, most: usize) -> (Vec<InstanceRun>, bool) {
        match self.deciders.iter().position(|&known| known == decider) {
            Some(decider) => Listing::new(self, decider).runs(most),
            None => (Vec::new(), true),
        }
    }
}
