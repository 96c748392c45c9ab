//! Keeps nested, growing lists of symbols in one buffer.

#[cfg(test)]
mod tests;

use afterimage_ids::FuncId;

use crate::Symbol;
use crate::consing::Consing;

/// A list of at most this many runs becomes one rule without folding.
const FLAT: usize = 8;
/// When a level of a list has this many runs, it is folded, except for its end.
const FULL: usize = 64;
/// The maximum number of runs in a block.
const LONGEST: usize = 32;

/// A symbol and its number of consecutive repetitions.
#[derive(Clone, Copy)]
struct Run {
    symbol: Symbol,
    level: u32,
    count: u64,
}

/// A list, which consists of the runs from `start` to the next list's start or the buffer's end.
/// From one run to the next, the level never rises, because older runs have been folded more often.
#[derive(Clone, Copy)]
struct List {
    start: usize,
    /// The start of the runs of level 0.
    tail: usize,
}

/// A stack of nested lists. Only the innermost list grows.
///
/// A long list is folded into a balanced tree by *locally consistent parsing*. Sources: Mehlhorn,
/// Sundar and Uhrig, "Maintaining dynamic sequences under equality tests in polylogarithmic time",
/// 1997; Sakamoto, Kida and Shimozono, "A space-saving linear-time algorithm for grammar-based
/// compression", 2004. Equal neighbours form a run. A block begins at a run if the scrambled number
/// of its symbol is smaller than the scrambled numbers of both neighbouring runs. Each block
/// becomes a rule, and the rules are the next level's symbols. Block boundaries depend only on
/// nearby symbols, so equal stretches get equal rules except at their ends.
///
/// A level is folded when it is full, so a list of n symbols takes O(log n) space and O(1)
/// amortised time per symbol. The result of closing a list does not depend on when its levels were
/// folded.
#[derive(Default)]
pub(crate) struct Lists {
    runs: Vec<Run>,
    lists: Vec<List>,
    scratch: Vec<Symbol>,
}

impl Lists {
    /// Returns the number of runs in all lists.
    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }

    /// Begins a list inside the innermost list.
    #[inline]
    pub(crate) fn open(&mut self) {
        let end = self.runs.len();
        self.lists.push(List {
            start: end,
            tail: end,
        });
    }

    /// Appends repetitions of a symbol to the innermost list.
    #[inline]
    pub(crate) fn push(&mut self, symbol: Symbol, count: u64, rules: &mut Consing) {
        let tail = self.innermost().tail;
        match self.runs[tail..].last_mut() {
            Some(last) if last.symbol == symbol => last.count += count,
            _ => {
                self.runs.push(Run {
                    symbol,
                    level: 0,
                    count,
                });
                if self.runs.len() - tail >= FULL {
                    self.compress(rules);
                }
            }
        }
    }

    /// Ends the innermost list, appends it to the enclosing list, and begins a new list in its
    /// place.
    #[inline]
    pub(super) fn close_and_open(&mut self, rules: &mut Consing) {
        let [.., outer, inner] = self.lists.as_mut_slice() else {
            return;
        };
        let end = self.runs.len();
        if end == inner.start + 1 && end - outer.tail < FULL {
            // A single run stays in place. Only the boundary moves.
            let run = self.runs[inner.start];
            match self.runs[outer.tail..inner.start].last_mut() {
                Some(last) if last.symbol == run.symbol => {
                    last.count += run.count;
                    self.runs.pop();
                }
                _ => {
                    *inner = List {
                        start: end,
                        tail: end,
                    };
                }
            }
        } else if end > inner.start {
            if let Some((symbol, count)) = self.close(rules) {
                self.push(symbol, count, rules);
            }
            self.open();
        }
    }

    /// Ends the innermost list and returns its symbol and count, unless the list is empty.
    #[inline]
    pub(crate) fn close(&mut self, rules: &mut Consing) -> Option<(Symbol, u64)> {
        let start = self.innermost().start;
        let closed = match self.runs.len() - start {
            0 => None,
            1 => Some((self.runs[start].symbol, self.runs[start].count)),
            _ => Some(self.close_long(rules)),
        };
        self.runs.truncate(start);
        self.lists.pop();
        closed
    }

    /// Ends the innermost list, which represents a whole activation of a function.
    pub(crate) fn close_call(&mut self, function: FuncId, rules: &mut Consing) -> Symbol {
        self.settle(rules);
        let start = self.innermost().start;
        let body = spell(&self.runs[start..], &mut self.scratch, rules);
        let call = rules.call(function, body);
        self.runs.truncate(start);
        self.lists.pop();
        call
    }

    #[inline]
    fn innermost(&self) -> List {
        self.lists[self.lists.len() - 1]
    }

    fn close_long(&mut self, rules: &mut Consing) -> (Symbol, u64) {
        self.settle(rules);
        let start = self.innermost().start;
        rule(&self.runs[start..], &mut self.scratch, rules)
    }

    /// Folds the full levels of the innermost list.
    #[cold]
    fn compress(&mut self, rules: &mut Consing) {
        let List { start, tail } = self.innermost();
        let (mut from, mut to, mut level) = (tail, self.runs.len(), 0);
        let mut tail = tail;
        loop {
            let before = self.runs.len();
            let upper = self.fold(start, from, to, false, rules);
            tail = if level == 0 {
                upper
            } else {
                tail - (before - self.runs.len())
            };
            level += 1;
            (from, to) = (self.beginning(start, upper, level), upper);
            if to - from < FULL {
                break;
            }
        }
        let innermost = self.lists.len() - 1;
        self.lists[innermost].tail = tail;
    }

    /// Folds the innermost list until it is short and has only one level.
    fn settle(&mut self, rules: &mut Consing) {
        let List { start, tail } = self.innermost();
        let (mut from, mut level) = (tail, 0);
        while from > start || self.runs.len() - start > FLAT {
            let upper = self.fold(start, from, self.runs.len(), true, rules);
            level += 1;
            from = self.beginning(start, upper, level);
        }
    }

    /// Returns the start of the runs of a level that end at `to`, in a list that begins at `start`.
    fn beginning(&self, start: usize, to: usize, level: u32) -> usize {
        let below = self.runs[start..to].iter().rev();
        to - below.take_while(|run| run.level == level).count()
    }

    /// Makes a rule from each block of a level's runs `from..to`. These rules become runs of the
    /// next level. Unless `whole` says that the level is complete, its last block stays as it is.
    /// Returns the new end of the next level.
    fn fold(
        &mut self,
        start: usize,
        from: usize,
        to: usize,
        whole: bool,
        rules: &mut Consing,
    ) -> usize {
        let level = self.runs[from].level + 1;
        let (mut upper, mut block) = (from, from);
        for end in from + 2..=to {
            let complete = if end == to {
                whole
            } else {
                end >= block + LONGEST || end >= block + 2 && self.begins_block(end, to)
            };
            if complete {
                let (symbol, count) = rule(&self.runs[block..end], &mut self.scratch, rules);
                upper = self.put(
                    start,
                    upper,
                    Run {
                        symbol,
                        level,
                        count,
                    },
                );
                block = end;
            }
        }
        if whole && block < to {
            let Run { symbol, count, .. } = self.runs[block];
            upper = self.put(
                start,
                upper,
                Run {
                    symbol,
                    level,
                    count,
                },
            );
            block = to;
        }
        self.runs.copy_within(block.., upper);
        self.runs.truncate(self.runs.len() - (block - upper));
        upper
    }

    /// Whether a block begins with the run at `at`, in a level that ends at `to`.
    fn begins_block(&self, at: usize, to: usize) -> bool {
        let key = |at: usize| scramble(self.runs[at].symbol);
        at + 1 < to && key(at) < key(at - 1) && key(at) < key(at + 1)
    }

    /// Appends a run to a level that ends at `end`. The place at `end` must be free. Returns the
    /// level's new end.
    fn put(&mut self, start: usize, end: usize, run: Run) -> usize {
        match self.runs[start..end].last_mut() {
            Some(last) if last.level == run.level && last.symbol == run.symbol => {
                last.count += run.count;
                end
            }
            _ => {
                self.runs[end] = run;
                end + 1
            }
        }
    }
}

/// Maps symbols one-to-one to numbers in an order that is unrelated to the symbols' own order.
fn scramble(symbol: Symbol) -> u32 {
    let bits = symbol.bits().wrapping_mul(0x9e37_79b1);
    (bits ^ bits >> 15).wrapping_mul(0x85eb_ca77)
}

/// Returns one run that represents the given runs. At least one must be given, and several become a
/// rule.
fn rule(runs: &[Run], scratch: &mut Vec<Symbol>, rules: &mut Consing) -> (Symbol, u64) {
    match runs {
        [run] => (run.symbol, run.count),
        _ => {
            let symbols = spell(runs, scratch, rules);
            (rules.sequence(symbols), 1)
        }
    }
}

/// Returns one symbol for each run.
fn spell<'a>(runs: &[Run], scratch: &'a mut Vec<Symbol>, rules: &mut Consing) -> &'a [Symbol] {
    scratch.clear();
    scratch.extend(runs.iter().map(|run| rules.repeat(run.symbol, run.count)));
    scratch
}
