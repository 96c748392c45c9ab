//! Finds the beginnings of a function's unique path traces, without building the traces.

use std::ops::{Range, RangeInclusive};

use afterimage_ids::{BlockId, FuncId, NodeId, PrimaryMap, RuleId};
use rustc_hash::FxHashMap;

use super::CollectError;
use super::call::activations_in;
use super::counts::{own_fingerprints, own_of};
use super::fingerprint::{Fingerprint, Points};
use super::function::{calls_in, executes};
use crate::measures::{Measured, occurrences_in};
use crate::{Grammar, Kind, Node, Root, Segments, Summary, Symbol, WholePath};

/// A unique path trace of a function, without most of its blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathOutline {
    /// The number of the trace's blocks.
    pub length: u64,
    /// The first blocks of the trace.
    pub beginning: Vec<BlockId>,
    /// The number of calls that took the trace.
    pub calls: u64,
    /// The number of these calls that never returned.
    pub unfinished: u64,
    /// The number of chosen calls that took the trace.
    pub chosen: u64,
    /// The number of chosen calls that took the trace and never returned.
    pub chosen_unfinished: u64,
}

/// Returns the unique path traces of a function, each with at most its first `most` blocks, in the
/// order of [`function_paths`](super::function_paths). If `chosen` is given, the calls with these
/// numbers, from 1 in the order in which calls begin, are also counted on their own.
///
/// Time: linear in the grammars of the segments in which the function is called or executed,
/// however long the traces are, and in the beginnings. Traces are distinguished as in
/// [`count_paths`](super::count_paths).
///
/// # Errors
/// Returns an error if a segment cannot be read, or a part of the function was left out of the
/// path.
pub fn path_outlines<S: Segments>(
    path: &WholePath<S>,
    function: FuncId,
    most: usize,
    chosen: Option<RangeInclusive<u64>>,
) -> Result<Vec<PathOutline>, CollectError<S::Error>> {
    let nodes = path.nodes();
    let points = Points::random();
    let of_nodes = nodes.values().map(|node| {
        if node.function == function {
            points.of(&node.blocks)
        } else {
            Fingerprint::EMPTY
        }
    });
    let of_nodes: PrimaryMap<NodeId, Fingerprint> = of_nodes.collect();
    let mut found = Outlines {
        function,
        most,
        chosen: chosen.map_or(0..0, |calls| calls.start().saturating_sub(1)..*calls.end()),
        begun: 0,
        outlines: Vec::new(),
        numbers: FxHashMap::default(),
        open: Vec::new(),
    };
    for (number, summary) in path.segments().summaries().iter().enumerate() {
        let is_own = executes(summary, nodes, function);
        let is_left_out = |&(node, _): &(NodeId, u64)| {
            let node = &nodes[node];
            node.function == function && node.left_out > 0
        };
        if is_own && summary.node_counts.iter().any(is_left_out) {
            return Err(CollectError::LeftOut(function));
        }
        if calls_in(summary, function) == 0 && !is_own {
            found.pass(summary);
            continue;
        }
        let measured = path.open(number)?;
        found.segment(&measured, &of_nodes, nodes);
    }
    for open in std::mem::take(&mut found.open) {
        found.add(open, false);
    }
    Ok(found.outlines)
}

/// The traces found so far.
struct Outlines {
    function: FuncId,
    /// The maximum number of blocks of a beginning.
    most: usize,
    /// The chosen calls, as numbers from 0.
    chosen: Range<u64>,
    /// The number of calls that began before the place that was reached.
    begun: u64,
    outlines: Vec<PathOutline>,
    /// The index of each trace in `outlines`.
    numbers: FxHashMap<Fingerprint, usize>,
    /// The open activations of the function, outermost first.
    open: Vec<Open>,
}

/// An open activation.
struct Open {
    /// The number of activations around it.
    depth: u32,
    trace: Fingerprint,
    beginning: Vec<BlockId>,
    is_chosen: bool,
}

/// A segment, with the data needed to find the beginnings of traces.
struct Rules<'a> {
    grammar: &'a Grammar,
    nodes: &'a PrimaryMap<NodeId, Node>,
    /// The fingerprint of the blocks that the surrounding activation executes in each rule.
    own: PrimaryMap<RuleId, Fingerprint>,
    /// The number of the function's activations that begin in each rule.
    totals: Vec<u64>,
}

impl Outlines {
    /// Skips a segment in which the function executes nothing.
    fn pass(&mut self, summary: &Summary) {
        let ended = |open: &Open| open.depth < summary.kept;
        let kept = self.open.partition_point(ended);
        for open in self.open.split_off(kept).into_iter().rev() {
            self.add(open, true);
        }
    }

    fn segment(
        &mut self,
        measured: &Measured,
        of_nodes: &PrimaryMap<NodeId, Fingerprint>,
        nodes: &PrimaryMap<NodeId, Node>,
    ) {
        let grammar = &measured.segment.grammar;
        let mut traces: FxHashMap<RuleId, Fingerprint> = FxHashMap::default();
        let own = own_fingerprints(grammar, of_nodes, |rule, function, trace| {
            if function == self.function {
                traces.insert(rule, trace);
            }
        });
        let rules = Rules {
            grammar,
            nodes,
            own,
            totals: activations_in(grammar, self.function),
        };
        let mut chosen = Chosen::default();
        for (item, &depth) in measured.segment.root.iter().zip(&measured.depths) {
            match *item {
                Root::Run(symbol) => {
                    if let Some(open) = self.open.last_mut()
                        && open.depth + 1 == depth
                    {
                        open.trace = open.trace.then(own_of(symbol, &rules.own, of_nodes));
                        rules.begin(symbol, self.most, &mut open.beginning);
                    }
                    let end = self.begun + rules.total(symbol);
                    let inside = overlap(&self.chosen, self.begun..end);
                    chosen.add(&rules, self.function, symbol, inside);
                    self.begun = end;
                }
                Root::Enter(entered) => {
                    if entered == self.function {
                        self.open.push(Open {
                            depth,
                            trace: Fingerprint::EMPTY,
                            beginning: Vec::new(),
                            is_chosen: self.chosen.contains(&self.begun),
                        });
                        self.begun += 1;
                    }
                }
                Root::Leave => {
                    if let Some(ended) = self.open.pop_if(|open| open.depth + 1 == depth) {
                        self.add(ended, true);
                    }
                }
            }
        }
        let of_symbols = occurrences_in(measured, chosen.symbols.iter().copied());
        for call in measured.call_rules().of(self.function) {
            let beginning = |most| {
                let mut blocks = Vec::new();
                for &symbol in grammar.symbols_of(call.rule) {
                    rules.begin(symbol, most, &mut blocks);
                }
                blocks
            };
            let outline = self.outline(traces[&call.rule], beginning);
            outline.calls += call.times;
            outline.chosen += of_symbols[call.rule.as_u32() as usize]
                + chosen.calls.get(&call.rule).copied().unwrap_or(0);
        }
    }

    /// Returns the trace with a fingerprint. Adds it with its beginning if it is new.
    fn outline(
        &mut self,
        trace: Fingerprint,
        beginning: impl FnOnce(usize) -> Vec<BlockId>,
    ) -> &mut PathOutline {
        let number = *self.numbers.entry(trace).or_insert_with(|| {
            self.outlines.push(PathOutline {
                length: trace.len(),
                beginning: beginning(self.most),
                ..PathOutline::default()
            });
            self.outlines.len() - 1
        });
        &mut self.outlines[number]
    }

    /// Adds the trace of an activation that was open at a segment's boundary.
    fn add(&mut self, open: Open, returned: bool) {
        let outline = self.outline(open.trace, |_| open.beginning);
        outline.calls += 1;
        outline.unfinished += u64::from(!returned);
        outline.chosen += u64::from(open.is_chosen);
        outline.chosen_unfinished += u64::from(open.is_chosen && !returned);
    }
}

impl Rules<'_> {
    fn total(&self, symbol: Symbol) -> u64 {
        let rule = symbol.as_rule();
        rule.map_or(0, |rule| self.totals[rule.as_u32() as usize])
    }

    /// Appends the blocks that the surrounding activation executes in a symbol, until there are
    /// `most` blocks. Time: linear in these blocks and in the rules that contain them.
    fn begin(&self, symbol: Symbol, most: usize, blocks: &mut Vec<BlockId>) {
        let mut left = vec![(symbol, 1)];
        while blocks.len() < most
            && let Some((symbol, times)) = left.pop()
        {
            if times > 1 {
                left.push((symbol, times - 1));
            }
            let Some(rule) = symbol.as_rule() else {
                let node = symbol.as_node().map(|node| &self.nodes[node].blocks[..]);
                let node = node.unwrap_or_default();
                blocks.extend(node.iter().take(most - blocks.len()));
                continue;
            };
            if self.own[rule].len() == 0 {
                continue;
            }
            let rounds = match self.grammar.rules[rule].kind {
                Kind::Repeat(rounds) => rounds,
                Kind::Sequence | Kind::Call(_) => 1,
            };
            let symbols = self.grammar.symbols_of(rule).iter().rev();
            left.extend(symbols.map(|&symbol| (symbol, rounds)));
        }
    }
}

/// The chosen calls of a segment.
#[derive(Default)]
struct Chosen {
    /// Symbols whose calls are all chosen, with numbers of executions.
    symbols: Vec<(Symbol, u64)>,
    /// The number of other chosen calls, by the rules that represent them.
    calls: FxHashMap<RuleId, u64>,
}

impl Chosen {
    /// Adds the calls in a symbol whose numbers, from 0 in the symbol, are in a range. Time: linear
    /// in the rules that contain the ends of the range.
    fn add(&mut self, rules: &Rules<'_>, function: FuncId, symbol: Symbol, range: Range<u64>) {
        let mut left = vec![(symbol, range)];
        while let Some((symbol, range)) = left.pop() {
            let Some(rule) = symbol.as_rule().filter(|_| !range.is_empty()) else {
                continue;
            };
            if range == (0..rules.total(symbol)) {
                self.symbols.push((symbol, 1));
                continue;
            }
            let symbols = rules.grammar.symbols_of(rule);
            if let Kind::Repeat(_) = rules.grammar.rules[rule].kind {
                let round = rules.total(symbols[0]);
                let (first, last) = (range.start / round, (range.end - 1) / round);
                for one in [first, last] {
                    let begin = one * round;
                    left.push((symbols[0], overlap(&range, begin..begin + round)));
                }
                if first == last {
                    left.pop();
                }
                self.symbols
                    .push((symbols[0], (last - first).saturating_sub(1)));
                continue;
            }
            let mut begun = 0;
            if rules.grammar.rules[rule].kind == Kind::Call(function) {
                *self.calls.entry(rule).or_default() += u64::from(range.start == 0);
                begun = 1;
            }
            for &symbol in symbols {
                let end = begun + rules.total(symbol);
                left.push((symbol, overlap(&range, begun..end)));
                begun = end;
            }
        }
    }
}

/// Returns the part of a symbol's calls that is in a range, as numbers from 0 in the symbol.
fn overlap(range: &Range<u64>, symbol: Range<u64>) -> Range<u64> {
    let [from, to] = [range.start, range.end].map(|end| end.clamp(symbol.start, symbol.end));
    from - symbol.start..to.max(from) - symbol.start
}
