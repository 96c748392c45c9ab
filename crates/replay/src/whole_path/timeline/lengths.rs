//! Computes the distribution of the lengths of calls, which determines the resolution of a
//! timeline.

use std::ops::Range;

use afterimage_ids::{FuncId, NodeId, PrimaryMap, RuleId};
use afterimage_wpp::{Kind, Node, PathError, Root, Segment, Segments, Symbol, WholePath};

use super::known::{SymbolFacts, known, rules};
use crate::whole_path::Window;
use crate::whole_path::grammar::executions;

/// Counts calls and gaps by their number of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallLengths {
    /// The number of calls and gaps for each binary logarithm of the length, rounded down.
    counts: [u64; 64],
    /// The number of calls and gaps that begin or end outside the window, or span several segments
    /// of the path.
    across: u64,
}

impl CallLengths {
    /// Counts the calls and gaps in a window. Takes time linear in the grammars of the segments
    /// that the window touches.
    ///
    /// # Errors
    /// Returns an error if a segment cannot be read.
    pub fn new<S: Segments>(
        path: &WholePath<S>,
        window: Window,
        is_shown: &dyn Fn(FuncId) -> bool,
    ) -> Result<Self, PathError<S::Error>> {
        let mut lengths = Self {
            counts: [0; 64],
            across: 0,
        };
        let (from, to) = (window.first.saturating_sub(1), window.last);
        for (number, summary) in path.segments().summaries().iter().enumerate() {
            let (start, end) = (summary.before, summary.before + summary.length);
            if end <= from || start >= to {
                continue;
            }
            let segment = path.segment(number)?;
            let known = rules(&segment, path.nodes(), is_shown);
            let whole = lengths.clip(
                path.nodes(),
                &segment,
                &known,
                from.saturating_sub(start)..to.min(end) - start,
                is_shown,
            );
            let times = executions(&segment.grammar, whole);
            for (id, rule) in segment.grammar.rules.iter() {
                if matches!(rule.kind, Kind::Call(function) if is_shown(function)) {
                    lengths.add(known[id].length, times[id]);
                }
                let rounds = match rule.kind {
                    Kind::Repeat(rounds) => rounds,
                    Kind::Sequence | Kind::Call(_) => 1,
                };
                for &symbol in segment.grammar.symbols_of(id) {
                    let left_out = symbol
                        .as_node()
                        .map_or(0, |node| path.nodes()[node].left_out);
                    if left_out > 0 {
                        lengths.add(left_out, times[id].saturating_mul(rounds));
                    }
                }
            }
        }
        Ok(lengths)
    }

    fn add(&mut self, length: u64, times: u64) {
        let class = length.checked_ilog2().unwrap_or(0);
        let count = &mut self.counts[class as usize];
        *count = count.saturating_add(times);
    }

    /// Returns the symbols that lie entirely in a range of a segment's blocks, with their numbers
    /// of occurrences. Counts the calls that lie only partly in the range.
    fn clip(
        &mut self,
        nodes: &PrimaryMap<NodeId, Node>,
        segment: &Segment,
        rules: &PrimaryMap<RuleId, SymbolFacts>,
        range: Range<u64>,
        is_shown: &dyn Fn(FuncId) -> bool,
    ) -> Vec<(Symbol, u64)> {
        let length = |symbol| known(symbol, rules, nodes).length;
        let mut whole = Vec::new();
        let mut tasks = Vec::new();
        let mut at = 0;
        for item in &segment.root {
            match *item {
                _ if at >= range.end => break,
                Root::Enter(function) => self.across += u64::from(is_shown(function)),
                Root::Leave => {}
                Root::Run(symbol) => {
                    push(&mut tasks, symbol, at, length(symbol), &range);
                    at += length(symbol);
                }
            }
        }
        while let Some((symbol, range)) = tasks.pop() {
            let Some(rule) = symbol.as_rule() else {
                self.across += u64::from(symbol.as_node().is_some_and(|n| nodes[n].left_out > 0));
                continue;
            };
            if range == (0..length(symbol)) {
                whole.push((symbol, 1));
                continue;
            }
            let symbols = segment.grammar.symbols_of(rule);
            match segment.grammar.rules[rule].kind {
                Kind::Repeat(_) => {
                    let (body, round) = (symbols[0], length(symbols[0]));
                    let (first, last) = (range.start / round, (range.end - 1) / round);
                    push(&mut tasks, body, first * round, round, &range);
                    if first < last {
                        push(&mut tasks, body, last * round, round, &range);
                        whole.push((body, last - first - 1));
                    }
                    continue;
                }
                Kind::Call(function) => self.across += u64::from(is_shown(function)),
                Kind::Sequence => {}
            }
            let mut at = 0;
            for &symbol in symbols {
                push(&mut tasks, symbol, at, length(symbol), &range);
                at += length(symbol);
            }
        }
        whole
    }

    /// Returns the number of calls and gaps with an unknown number of blocks or at least 2^`log`
    /// blocks.
    pub fn at_least(&self, log: u32) -> u64 {
        let counts = self.counts.iter().skip(log as usize);
        counts.fold(self.across, |sum, &count| sum.saturating_add(count))
    }

    /// Returns the smallest power of two for which at most `most` calls and gaps have at least this
    /// number of blocks. Calls and gaps of unknown length count, too. Returns 2^63 if there is no
    /// such power.
    pub fn resolution(&self, most: u64) -> u64 {
        let fits = (0..63).find(|&log| self.at_least(log) <= most);
        1 << fits.unwrap_or(63)
    }
}

/// Adds a task for the part of a symbol in a range, unless this part is empty. The symbol begins
/// after `at` blocks.
fn push(
    tasks: &mut Vec<(Symbol, Range<u64>)>,
    symbol: Symbol,
    at: u64,
    length: u64,
    range: &Range<u64>,
) {
    let (from, to) = (range.start.max(at), range.end.min(at + length));
    if from < to {
        tasks.push((symbol, from - at..to - at));
    }
}
