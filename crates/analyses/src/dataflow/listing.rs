//! Lists an operator's executions in order, on demand.

use afterimage_wpp::twpp::{CallRun, Series};

use super::instances::{InstanceRun, Instances, Own, with_last_apart};

/// The number of steps after which a listing ends, even if incomplete.
const MOST_STEPS: u64 = 20_000_000;

/// A call that is being listed.
struct Frame<'i> {
    own: Option<&'i Own>,
    by: Option<&'i Series>,
    /// The number of the call's own executions that have been listed or skipped.
    done: u64,
    runs: Box<dyn Iterator<Item = (CallRun, bool)> + 'i>,
    /// The current run of calls, the number of its calls that have been listed, and whether it
    /// consists of the call that never returned.
    run: Option<(CallRun, u64, bool)>,
}

/// Lists the executions that one decider decided.
pub(super) struct Listing<'i> {
    instances: &'i Instances<'i>,
    decider: usize,
    /// For each subtree, the number of executions with this decider.
    decided: Vec<u64>,
    /// The number of remaining executions with this decider.
    left: u64,
    /// The number of executions passed so far.
    number: u64,
    steps: u64,
    folded: Folded,
}

impl<'i> Listing<'i> {
    pub fn new(instances: &'i Instances<'i>, decider: usize) -> Self {
        let graph = instances.calls.graph();
        let mut decided: Vec<u64> = Vec::new();
        for id in graph.ids() {
            let own = instances.own(id, false);
            let by = own.and_then(|own| own.by(decider));
            let own = by.map_or(0, Series::count);
            let called = graph.calls(id);
            let sum = called.fold(own, |sum, run| sum + run.count * decided[run.call.index()]);
            decided.push(sum);
        }
        let usual = graph.top();
        let usual = usual.fold(0, |sum, run| sum + run.count * decided[run.call.index()]);
        let by = |own: Option<&Own>| own.and_then(|own| own.by(decider)).map_or(0, Series::count);
        // The call in which the run ended may have fewer executions than the calls with which it is
        // grouped.
        let left = match instances.calls.innermost() {
            None => usual,
            Some(id) => usual - by(instances.own(id, false)) + by(instances.own(id, true)),
        };
        Self {
            instances,
            decider,
            decided,
            left,
            number: 0,
            steps: 0,
            folded: Folded::default(),
        }
    }

    /// Returns at most `most` runs, and whether these are all.
    pub fn runs(mut self, most: usize) -> (Vec<InstanceRun>, bool) {
        let calls = self.instances.calls;
        let has_last = calls.innermost().is_some();
        let mut stack = vec![Frame {
            own: None,
            by: None,
            done: 0,
            runs: Box::new(with_last_apart(calls.graph().top(), has_last)),
            run: None,
        }];
        while let Some(frame) = stack.last_mut() {
            if self.left == 0 || self.folded.done.len() > most || self.steps > MOST_STEPS {
                break;
            }
            self.steps += 1;
            let next = match frame.run.take() {
                Some((run, j, is_last)) if j < run.count => Some((run, j, is_last)),
                _ => frame.runs.next().map(|(run, is_last)| (run, 0, is_last)),
            };
            let Some((run, j, is_last)) = next else {
                let count = frame.own.map_or(0, |own| own.times.count());
                self.own(frame, count);
                stack.pop();
                continue;
            };
            let at = run.first + j * run.step;
            let before = frame.own.map_or(0, |own| own.times.rank(at));
            self.own(frame, before);
            let index = run.call.index();
            let (count, decided) = (self.instances.counts[index], self.decided[index]);
            if !is_last && (decided == 0 || decided == count) {
                // Skips many calls at once, unless the caller's own executions lie in between.
                let between = frame.own.is_some_and(|own| own.times.count() > before);
                let many = if between && count > 0 {
                    1
                } else {
                    run.count - j
                };
                self.pass(count * many, decided > 0);
                frame.run = Some((run, j + many, is_last));
                continue;
            }
            frame.run = Some((run, j + 1, is_last));
            let has_last = is_last && calls.innermost() != Some(run.call);
            let own = self.instances.own(run.call, is_last);
            stack.push(Frame {
                own,
                by: own.and_then(|own| own.by(self.decider)),
                done: 0,
                runs: Box::new(with_last_apart(calls.graph().calls(run.call), has_last)),
                run: None,
            });
        }
        self.folded.finish();
        let mut runs = self.folded.done;
        let all = self.left == 0 && runs.len() <= most;
        runs.truncate(most);
        (runs, all)
    }

    /// Lists a call's own executions, up to number `upto`.
    fn own(&mut self, frame: &mut Frame<'_>, upto: u64) {
        let Some(own) = frame.own else {
            return;
        };
        let count = own.times.count();
        match frame.by.map_or(0, Series::count) {
            0 => self.pass(upto - frame.done, false),
            all if all == count => self.pass(upto - frame.done, true),
            _ => {
                for n in frame.done..upto {
                    let step = own.times.select(n);
                    let holds = frame.by.is_some_and(|by| by.contains(step));
                    self.pass(1, holds);
                    self.steps += 1;
                }
            }
        }
        frame.done = upto;
    }

    /// Passes `count` executions. If `decided` is true, the listing's decider decided them.
    fn pass(&mut self, count: u64, decided: bool) {
        if decided && count > 0 {
            self.folded.push(self.number + 1, self.number + count);
            self.left -= count;
        }
        self.number += count;
    }
}

/// Runs of stretches, under construction.
#[derive(Default)]
struct Folded {
    done: Vec<InstanceRun>,
    run: Option<InstanceRun>,
    stretch: Option<(u64, u64)>,
}

impl Folded {
    /// Adds the next executions, which must follow all executions added before.
    fn push(&mut self, first: u64, last: u64) {
        match &mut self.stretch {
            Some((_, end)) if *end + 1 == first => *end = last,
            _ => {
                self.close();
                self.stretch = Some((first, last));
            }
        }
    }

    fn close(&mut self) {
        let Some((first, last)) = self.stretch.take() else {
            return;
        };
        let single = InstanceRun {
            first,
            last,
            stride: 0,
            times: 1,
        };
        let Some(run) = &mut self.run else {
            self.run = Some(single);
            return;
        };
        let latest = run.first + run.stride * (run.times - 1);
        let alike = run.last - run.first == last - first;
        if alike && (run.times == 1 || first - latest == run.stride) {
            run.stride = first - latest;
            run.times += 1;
            return;
        }
        // Two stretches alone do not form a run, because the second may begin another run.
        if run.times == 2 {
            let (stride, length) = (run.stride, run.last - run.first);
            (run.stride, run.times) = (0, 1);
            let second = InstanceRun {
                first: run.first + stride,
                last: run.last + stride,
                ..*run
            };
            self.done.push(*run);
            self.run = Some(second);
            if length == last - first {
                let run = self.run.as_mut();
                run.into_iter().for_each(|run| {
                    run.stride = first - second.first;
                    run.times = 2;
                });
                return;
            }
        }
        self.done.extend(self.run.replace(single));
    }

    fn finish(&mut self) {
        self.close();
        self.done.extend(self.run.take());
    }
}
