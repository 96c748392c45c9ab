//! Lists the calls of a run in order of time, and merges calls until few enough remain to view.
//!
//! Calls that are too short or too deep are merged with their neighbours into groups. A group shows
//! the number of its calls and the number of blocks that they execute. Parts of the run that
//! contain only such calls are skipped in O(1). Code that a filter left out of the path belongs to
//! no call, so it is shown as a separate kind of group.

mod known;
mod lengths;

use std::collections::VecDeque;
use std::sync::Arc;

use afterimage_ids::{FuncId, PrimaryMap, RuleId};
use afterimage_wpp::{Kind, PathError, Root, Segment, Segments, Symbol, WholePath};

use self::known::{SymbolFacts, known, rules};
pub use self::lengths::CallLengths;
use super::Window;

/// Selects the calls to merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineLimits {
    /// The nesting depth from which calls are merged.
    pub depth: usize,
    /// The number of executed blocks below which calls are merged. Calls that are open at the
    /// beginning or end of the window, or between two segments of the path, are never merged as
    /// short.
    pub min: u64,
}

/// The reason why calls are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Merging {
    /// The calls are shorter than the limit.
    Shorter,
    /// The calls are deeper than the limit.
    Deeper,
    /// The blocks are missing from the path, and belong to no call.
    LeftOut,
}

/// An event, with the number of blocks executed before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimelineEvent {
    /// An activation begins, or is open at the beginning of the window.
    Begin {
        /// The function of the activation.
        function: FuncId,
        /// The number of blocks executed before the event.
        time: u64,
    },
    /// The innermost activation ends, or is open at the end of the window.
    End {
        /// The number of blocks executed before the event.
        time: u64,
    },
    /// Merged calls in the innermost activation.
    Merged {
        /// The reason for merging them.
        why: Merging,
        /// The number of blocks executed before the first of these calls.
        from: u64,
        /// The number of blocks executed by the end of the last of these calls.
        to: u64,
        /// The number of calls, including the calls that they make.
        calls: u64,
        /// The number of blocks executed in these calls.
        blocks: u64,
        /// The number of these blocks that were left out of the path.
        left_out: u64,
    },
}

/// Walks through the calls of a window.
pub struct Timeline<'a, S> {
    path: &'a WholePath<S>,
    window: Window,
    limits: TimelineLimits,
    is_shown: &'a dyn Fn(FuncId) -> bool,
    /// The number of the next segment to open.
    next: usize,
    segment: Option<Walked>,
    tasks: Vec<Task>,
    /// The number of blocks executed before the current point.
    at: u64,
    /// Whether the function of each open activation is shown.
    open: Vec<bool>,
    /// The number of open activations whose function is shown.
    level: usize,
    merged: Option<Merged>,
    events: VecDeque<TimelineEvent>,
    /// Whether the first segment has been opened.
    begun: bool,
    /// Whether the first block of the window has been reached. Until then, `waiting` collects the
    /// open activations.
    started: bool,
    waiting: Vec<FuncId>,
}

struct Walked {
    segment: Arc<Segment>,
    rules: PrimaryMap<RuleId, SymbolFacts>,
    item: usize,
}

/// A remaining task in an item of the root. The next task is last on the stack.
enum Task {
    Symbols(RuleId, u32),
    Repeat(Symbol, u64),
    End,
}

struct Merged {
    why: Merging,
    from: u64,
    to: u64,
    calls: u64,
    blocks: u64,
    left_out: u64,
}

impl<'a, S: Segments> Timeline<'a, S> {
    /// Returns an iterator over the calls in a window. It leaves out calls to functions that are
    /// not shown.
    pub fn new(
        path: &'a WholePath<S>,
        window: Window,
        limits: TimelineLimits,
        is_shown: &'a dyn Fn(FuncId) -> bool,
    ) -> Self {
        let from = window.first.saturating_sub(1);
        let summaries = path.segments().summaries().iter();
        let before = summaries.take_while(|s| s.before + s.length <= from);
        Self {
            path,
            window,
            limits,
            is_shown,
            next: before.count(),
            segment: None,
            tasks: Vec::new(),
            at: 0,
            open: Vec::new(),
            level: 0,
            merged: None,
            events: VecDeque::new(),
            begun: false,
            started: false,
            waiting: Vec::new(),
        }
    }

    /// Returns the window.
    pub fn window(&self) -> Window {
        self.window
    }

    /// Returns the limits that select the calls to merge.
    pub fn limits(&self) -> TimelineLimits {
        self.limits
    }

    /// Returns the next event. Every activation that begins also ends.
    ///
    /// # Errors
    /// Returns an error if a segment cannot be read.
    pub fn next_event(&mut self) -> Result<Option<TimelineEvent>, PathError<S::Error>> {
        while self.events.is_empty() {
            if self.at >= self.window.last && self.begun {
                self.end();
                return Ok(self.events.pop_front());
            }
            if let Some(task) = self.tasks.pop() {
                self.task(task);
            } else if !self.item() && !self.open_segment()? {
                self.end();
                return Ok(self.events.pop_front());
            }
        }
        Ok(self.events.pop_front())
    }

    /// Returns the number of blocks before the window.
    fn from(&self) -> u64 {
        self.window.first.saturating_sub(1)
    }

    fn open_segment(&mut self) -> Result<bool, PathError<S::Error>> {
        let number = self.next;
        let Some(summary) = self.path.segments().summaries().get(number) else {
            return Ok(false);
        };
        let segment = self.path.segment(number)?;
        self.at = summary.before;
        if !self.begun {
            self.begun = true;
            for &function in &segment.open {
                self.enter(function);
            }
        }
        if segment.open.len() != self.open.len() + self.waiting.len() {
            return Err(PathError::Follow { segment: number });
        }
        self.next += 1;
        let rules = rules(&segment, self.path.nodes(), self.is_shown);
        self.segment = Some(Walked {
            segment,
            rules,
            item: 0,
        });
        Ok(true)
    }

    /// Begins the next item of the root. Returns `false` if there is none.
    fn item(&mut self) -> bool {
        let Some(walked) = &mut self.segment else {
            return false;
        };
        let Some(&item) = walked.segment.root.get(walked.item) else {
            return false;
        };
        walked.item += 1;
        match item {
            Root::Run(symbol) => self.symbol(symbol),
            Root::Enter(function) => self.enter(function),
            Root::Leave => self.leave(),
        }
        true
    }

    fn task(&mut self, task: Task) {
        match task {
            Task::End => self.leave(),
            Task::Symbols(rule, next) => {
                let Some(walked) = &self.segment else { return };
                let symbols = walked.segment.grammar.symbols_of(rule);
                let symbol = symbols[next as usize];
                if (next as usize) + 1 < symbols.len() {
                    self.tasks.push(Task::Symbols(rule, next + 1));
                }
                self.symbol(symbol);
            }
            Task::Repeat(symbol, times) => {
                let round = self.known(symbol).length;
                let before = self.from().saturating_sub(self.at);
                // Skip the repetitions before the window.
                let skipped = before.checked_div(round).unwrap_or(0).min(times);
                self.at += skipped * round;
                if skipped < times {
                    if times - skipped > 1 {
                        self.tasks.push(Task::Repeat(symbol, times - skipped - 1));
                    }
                    self.symbol(symbol);
                }
            }
        }
    }

    fn known(&self, symbol: Symbol) -> SymbolFacts {
        let rules = self.segment.as_ref().map(|walked| &walked.rules);
        rules.map_or_else(SymbolFacts::default, |rules| {
            known(symbol, rules, self.path.nodes())
        })
    }

    fn symbol(&mut self, symbol: Symbol) {
        let what = self.known(symbol);
        let end = self.at + what.length;
        let is_whole = self.from() <= self.at && end <= self.window.last;
        if end <= self.from() {
            self.at = end;
            return;
        }
        self.start();
        let is_deep = self.level >= self.limits.depth;
        let (from, to) = (self.from().max(self.at), self.window.last.min(end));
        let in_deep = self.level > self.limits.depth;
        let merged = |why, from, to| Merged {
            why,
            from,
            to,
            calls: 0,
            blocks: to - from,
            left_out: 0,
        };
        if is_whole && in_deep {
            // The whole part lies inside a call that is too deep.
            self.merge(Merged {
                calls: what.calls,
                left_out: what.left_out,
                ..merged(Merging::Deeper, from, to)
            });
        } else if what.is_own() {
            if in_deep && from < to {
                self.merge(merged(Merging::Deeper, from, to));
            }
        } else if is_whole && (is_deep && what.calls > 0 || what.longest < self.limits.min) {
            let why = match what.calls {
                0 => Merging::LeftOut,
                _ if is_deep => Merging::Deeper,
                _ => Merging::Shorter,
            };
            self.merge(Merged {
                calls: what.calls,
                blocks: what.inside,
                left_out: what.left_out,
                ..merged(why, from + what.lead, to - what.trail)
            });
        } else if symbol.as_node().is_some() {
            let why = if in_deep {
                Merging::Deeper
            } else {
                Merging::LeftOut
            };
            self.merge(Merged {
                left_out: to - from,
                ..merged(why, from, to)
            });
        } else {
            self.descend(symbol);
            return;
        }
        self.at = end;
    }

    fn descend(&mut self, symbol: Symbol) {
        let (Some(rule), Some(walked)) = (symbol.as_rule(), &self.segment) else {
            return;
        };
        let grammar = &walked.segment.grammar;
        match grammar.rules[rule].kind {
            Kind::Repeat(times) => {
                let body = grammar.symbols_of(rule)[0];
                self.tasks.push(Task::Repeat(body, times));
            }
            Kind::Sequence => self.tasks.push(Task::Symbols(rule, 0)),
            Kind::Call(function) => {
                let is_empty = grammar.rules[rule].len == 0;
                self.tasks.push(Task::End);
                if !is_empty {
                    self.tasks.push(Task::Symbols(rule, 0));
                }
                self.enter(function);
            }
        }
    }

    /// Reports the activations that are open at the beginning of the window.
    fn start(&mut self) {
        if !self.started {
            self.started = true;
            for function in std::mem::take(&mut self.waiting) {
                self.enter(function);
            }
        }
    }

    fn enter(&mut self, function: FuncId) {
        if !self.started {
            self.waiting.push(function);
            return;
        }
        let time = self.at.max(self.from());
        let is_shown = (self.is_shown)(function);
        self.open.push(is_shown);
        if !is_shown {
            return;
        }
        self.level += 1;
        if self.level <= self.limits.depth {
            self.flush();
            self.events
                .push_back(TimelineEvent::Begin { function, time });
        } else {
            self.merge(Merged {
                why: Merging::Deeper,
                from: time,
                to: time,
                calls: 1,
                blocks: 0,
                left_out: 0,
            });
        }
    }

    fn leave(&mut self) {
        if !self.started {
            self.waiting.pop();
            return;
        }
        if self.open.pop() == Some(true) {
            self.level -= 1;
            if self.level < self.limits.depth {
                self.flush();
                let time = self.at.max(self.from());
                self.events.push_back(TimelineEvent::End { time });
            }
        }
    }

    /// Merges calls with the preceding merged calls, if these are near.
    fn merge(&mut self, next: Merged) {
        if let Some(merged) = &mut self.merged
            && merged.why == next.why
            && next.from - merged.to < self.limits.min.max(1)
        {
            merged.to = next.to;
            merged.calls += next.calls;
            merged.blocks += next.blocks;
            merged.left_out += next.left_out;
            return;
        }
        self.flush();
        self.merged = Some(next);
    }

    fn flush(&mut self) {
        if let Some(merged) = self.merged.take() {
            self.events.push_back(TimelineEvent::Merged {
                why: merged.why,
                from: merged.from,
                to: merged.to,
                calls: merged.calls,
                blocks: merged.blocks,
                left_out: merged.left_out,
            });
        }
    }

    /// Ends the activations that are still open at the end of the window.
    fn end(&mut self) {
        self.at = self.at.min(self.window.last);
        while !self.open.is_empty() {
            self.leave();
        }
        self.flush();
        self.tasks.clear();
        self.segment = None;
        self.next = usize::MAX;
    }
}
