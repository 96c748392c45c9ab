//! Counts the executions of blocks, and of the edges between them, in a window.
//!
//! A window consists of a few symbols of each segment's grammar, and parts of at most two nodes. So
//! rules are counted with multiplicities, and are not expanded. This takes O(grammar) for each
//! segment that the window touches.
//!
//! An edge has the time of the block that it leaves. So the counts of the edges out of a block add
//! up to the block's count, except for edges to the exit and at the end of the run. The edge from a
//! call to its continuation counts if the call also returned in the window. The edges from blocks
//! before the window to blocks in it are kept apart.

use std::ops::Range;

use afterimage_ids::{BlockId, FuncId, NodeId, PrimaryMap, RuleId};
use afterimage_wpp::{Kind, Node, PathError, Root, Segment, Segments, Symbol, WholePath};
use rustc_hash::FxHashMap;

use super::Window;
use super::grammar::executions;

/// Execution counts of blocks and of the edges between them.
#[derive(Debug, Default)]
pub struct WindowCounts {
    blocks: FxHashMap<(FuncId, BlockId), u64>,
    edges: FxHashMap<FuncId, FxHashMap<(BlockId, BlockId), u64>>,
    /// The edges from blocks before the window to blocks in it. There is at most one for each
    /// activation that is open when the window begins.
    into: Vec<(FuncId, BlockId, BlockId)>,
    /// The edge from the window's last block to a block after the window.
    beyond: Option<(FuncId, BlockId, BlockId)>,
}

/// The execution that precedes a place in the same activation.
#[derive(Clone, Copy, Default)]
enum Before {
    /// The activation has executed nothing.
    #[default]
    Nothing,
    /// The last execution is before the window.
    Outside,
    /// The node was completed in the window.
    Node(NodeId),
}

/// The first node that an activation executes in a window, if it also executed nodes before the
/// window.
struct First {
    node: NodeId,
    /// The number of blocks that the window executes before it.
    at: u64,
}

/// The data that a walk needs to skip a rule.
#[derive(Clone, Copy, Default)]
struct Facts {
    length: u64,
    /// The first node that the surrounding activation executes in the rule, or `None` if the rule
    /// is a call.
    first: Option<NodeId>,
    /// The number of blocks of callees before this node.
    lead: u64,
    /// The last such node, or `None` if the rule is a call.
    last: Option<NodeId>,
}

/// A part of a segment's path, in order.
enum Task {
    /// The blocks in this range of a symbol.
    Run(Symbol, Range<u64>),
    /// A whole symbol, this many times.
    Times(Symbol, u64),
    /// An activation begins, or began before the window.
    Enter(Before),
    /// An activation ends.
    Leave,
}

/// The counts of complete and partial nodes.
#[derive(Default)]
struct OfNodes {
    nodes: FxHashMap<NodeId, u64>,
    pairs: FxHashMap<(NodeId, NodeId), u64>,
    /// The partial nodes, with the ranges of the executed blocks.
    parts: Vec<(NodeId, Range<u64>)>,
    /// The last execution of the current activation.
    before: Before,
    /// The last executions of the host and of each surrounding activation.
    callers: Vec<Before>,
    firsts: Vec<First>,
    /// The number of blocks of the window that have been counted.
    done: u64,
}

impl OfNodes {
    fn pair(&mut self, left: Option<NodeId>, right: Option<NodeId>, times: u64) {
        if let (Some(left), Some(right)) = (left, right)
            && times > 0
        {
            *self.pairs.entry((left, right)).or_default() += times;
        }
    }

    /// Adds the node that the current activation executes next, after `lead` more blocks.
    fn next(&mut self, node: Option<NodeId>, lead: u64) {
        match (self.before, node) {
            (Before::Node(before), _) => self.pair(Some(before), node, 1),
            (Before::Outside, Some(node)) => self.firsts.push(First {
                node,
                at: self.done + lead,
            }),
            _ => {}
        }
    }

    fn node(&mut self, symbol: Symbol, times: u64) {
        if let Some(node) = symbol.as_node() {
            *self.nodes.entry(node).or_default() += times;
        }
    }
}

impl WindowCounts {
    /// Counts executions in a window.
    ///
    /// # Errors
    /// Returns an error if a segment cannot be read.
    pub fn new<S: Segments>(
        path: &WholePath<S>,
        window: Window,
    ) -> Result<Self, PathError<S::Error>> {
        let nodes = path.nodes();
        let mut found = OfNodes::default();
        let (from, to) = (window.first.saturating_sub(1), window.last);
        for (number, summary) in path.segments().summaries().iter().enumerate() {
            let (start, end) = (summary.before, summary.before + summary.length);
            if end <= from || start >= to {
                continue;
            }
            let segment = path.segment(number)?;
            if start <= from && !segment.open.is_empty() {
                found.callers = vec![Before::Outside; segment.open.len()];
                found.callers[0] = Before::Nothing;
                found.before = Before::Outside;
            }
            let range = from.saturating_sub(start)..to.min(end) - start;
            count(&segment, nodes, range, &mut found);
        }
        let firsts = std::mem::take(&mut found.firsts);
        let mut counts = Self::of(found, nodes);
        counts.edges_before(path, window, firsts)?;
        counts.edge_after(path, window)?;
        Ok(counts)
    }

    fn of(found: OfNodes, nodes: &PrimaryMap<NodeId, Node>) -> Self {
        let mut counts = Self::default();
        let whole = found.nodes.into_iter();
        let whole = whole.map(|(id, times)| (id, 0..nodes[id].blocks.len(), times));
        let parts = found.parts.into_iter();
        let parts = parts.map(|(id, range)| (id, range.start as usize..range.end as usize, 1));
        for (id, range, times) in whole.chain(parts) {
            let node = &nodes[id];
            // Code that a filter left out has no blocks.
            let blocks = node.blocks.get(range).unwrap_or_default();
            for &block in blocks {
                *counts.blocks.entry((node.function, block)).or_default() += times;
            }
            for two in blocks.windows(2) {
                counts.edge(node.function, (two[0], two[1]), times);
            }
        }
        for ((left, right), times) in found.pairs {
            let (left, right) = (&nodes[left], &nodes[right]);
            if let (Some(&from), Some(&to)) = (left.blocks.last(), right.blocks.first())
                && left.function == right.function
            {
                counts.edge(left.function, (from, to), times);
            }
        }
        counts
    }

    fn edge(&mut self, function: FuncId, (from, to): (BlockId, BlockId), times: u64) {
        let edges = self.edges.entry(function).or_default();
        *edges.entry((from, to)).or_default() += times;
    }

    /// Finds the edges from blocks before the window to blocks in it.
    fn edges_before<S: Segments>(
        &mut self,
        path: &WholePath<S>,
        window: Window,
        firsts: Vec<First>,
    ) -> Result<(), PathError<S::Error>> {
        let mut cursor = path.cursor();
        let nodes = path.nodes();
        let before = window.first.saturating_sub(1);
        let Some(last) = cursor.seek(before)? else {
            return Ok(());
        };
        let at = (before - last.start) as usize;
        let last = &nodes[last.node];
        if let Some(&[from, to]) = last.blocks.get(at..at + 2) {
            self.into.push((last.function, from, to));
        }
        for First { node, at } in firsts {
            cursor.seek(window.first + at)?;
            let Some(visit) = cursor.previous_in_activation()? else {
                continue;
            };
            let (last, node) = (&nodes[visit.node], &nodes[node]);
            if let (Some(&from), Some(&to)) = (last.blocks.last(), node.blocks.first())
                && last.function == node.function
            {
                self.into.push((node.function, from, to));
            }
        }
        Ok(())
    }

    /// Finds the edge out of the window's last block.
    fn edge_after<S: Segments>(
        &mut self,
        path: &WholePath<S>,
        window: Window,
    ) -> Result<(), PathError<S::Error>> {
        let mut cursor = path.cursor();
        let Some(last) = cursor.seek(window.last)? else {
            return Ok(());
        };
        let blocks = &path.nodes()[last.node].blocks;
        let at = (window.last - last.start) as usize;
        let function = path.nodes()[last.node].function;
        let Some(&from) = blocks.get(at) else {
            return Ok(());
        };
        if let Some(&to) = blocks.get(at + 1) {
            self.beyond = Some((function, from, to));
            return Ok(());
        }
        let began = cursor.innermost()?.map(|activation| activation.entered);
        let Some(next) = cursor.next()? else {
            return Ok(());
        };
        // A block in another activation follows a call or a return, not an edge.
        let is_same = cursor.innermost()?.map(|activation| activation.entered) == began;
        if is_same && let Some(&to) = path.nodes()[next.node].blocks.first() {
            self.beyond = Some((function, from, to));
        }
        Ok(())
    }

    /// Returns the number of executions of a block.
    pub fn block(&self, function: FuncId, block: BlockId) -> u64 {
        let found = self.blocks.get(&(function, block));
        found.copied().unwrap_or(0)
    }

    /// Like [`after`](Self::after), but counts only pairs with both blocks in the window. For a
    /// call, this is the number of times that the call also returned in the window.
    pub fn within(&self, function: FuncId, from: BlockId, to: BlockId) -> u64 {
        let edges = self.edges.get(&function);
        let found = edges.and_then(|edges| edges.get(&(from, to)));
        found.copied().unwrap_or(0)
    }

    /// Returns the edges of a function that lead to blocks in the window, with their counts. An
    /// edge may be listed twice.
    pub fn edges(&self, function: FuncId) -> impl Iterator<Item = (BlockId, BlockId, u64)> {
        let within = self.edges.get(&function).into_iter().flatten();
        let within = within.map(|(&(from, to), &times)| (from, to, times));
        let into = self.into.iter().filter(move |one| one.0 == function);
        within.chain(into.map(|&(_, from, to)| (from, to, 1)))
    }

    /// Returns the number of times that a block of the window was followed by another block of the
    /// same activation.
    pub fn after(&self, function: FuncId, from: BlockId, to: BlockId) -> u64 {
        let beyond = u64::from(self.beyond == Some((function, from, to)));
        self.within(function, from, to) + beyond
    }
}

/// Returns the facts of a symbol.
fn known(
    symbol: Symbol,
    rules: &PrimaryMap<RuleId, Facts>,
    nodes: &PrimaryMap<NodeId, Node>,
) -> Facts {
    match (symbol.as_rule(), symbol.as_node()) {
        (Some(rule), _) => rules[rule],
        (None, Some(node)) => Facts {
            length: nodes[node].length(),
            first: Some(node),
            lead: 0,
            last: Some(node),
        },
        (None, None) => Facts::default(),
    }
}

/// Returns the facts about a segment's rules. Each rule comes after the rules in it.
fn rules(segment: &Segment, nodes: &PrimaryMap<NodeId, Node>) -> PrimaryMap<RuleId, Facts> {
    let mut found = PrimaryMap::<RuleId, Facts>::new();
    for (id, rule) in segment.grammar.rules.iter() {
        let symbols = segment.grammar.symbols_of(id).iter();
        let each = Vec::from_iter(symbols.map(|&symbol| known(symbol, &found, nodes)));
        let length = each
            .iter()
            .fold(0u64, |sum, one| sum.saturating_add(one.length));
        let (rounds, is_call) = match rule.kind {
            Kind::Repeat(rounds) => (rounds, false),
            Kind::Sequence => (1, false),
            Kind::Call(_) => (1, true),
        };
        let inside = |node: Option<NodeId>| node.filter(|_| !is_call);
        let lead = each.iter().take_while(|one| one.first.is_none());
        let lead = lead.fold(0u64, |sum, one| sum.saturating_add(one.length));
        let entry = each.iter().find(|one| one.first.is_some());
        found.push(Facts {
            length: length.saturating_mul(rounds),
            first: inside(entry.and_then(|one| one.first)),
            lead: lead.saturating_add(entry.map_or(0, |one| one.lead)),
            last: inside(each.iter().rev().find_map(|one| one.last)),
        });
    }
    found
}

/// Counts a range of a segment's blocks.
fn count(
    segment: &Segment,
    nodes: &PrimaryMap<NodeId, Node>,
    range: Range<u64>,
    found: &mut OfNodes,
) {
    let grammar = &segment.grammar;
    let facts = rules(segment, nodes);
    let fact = |symbol| known(symbol, &facts, nodes);
    let mut tasks = Vec::new();
    let mut at = 0;
    for item in &segment.root {
        match *item {
            Root::Enter(_) => tasks.push(Task::Enter(if at < range.start {
                Before::Outside
            } else {
                Before::Nothing
            })),
            Root::Leave => tasks.push(Task::Leave),
            Root::Run(symbol) => {
                let length = fact(symbol).length;
                tasks.extend(clipped(symbol, at, length, &range));
                at += length;
            }
        }
    }
    tasks.reverse();
    let mut whole = Vec::new();
    while let Some(task) = tasks.pop() {
        let (symbol, range) = match task {
            Task::Enter(before) => {
                found.callers.push(found.before);
                found.before = before;
                continue;
            }
            Task::Leave => {
                found.before = found.callers.pop().unwrap_or_default();
                continue;
            }
            Task::Times(symbol, times) => {
                let Facts {
                    length,
                    first,
                    lead,
                    last,
                } = fact(symbol);
                found.next(first, lead);
                found.done += length * times;
                found.pair(last, first, times - 1);
                found.before = last.map_or(found.before, Before::Node);
                found.node(symbol, times);
                whole.push((symbol, times));
                continue;
            }
            Task::Run(symbol, range) => (symbol, range),
        };
        let Facts { first, .. } = fact(symbol);
        let Some(rule) = symbol.as_rule() else {
            if range.start == 0 {
                found.next(first, 0);
            }
            found.done += range.end - range.start;
            if let Some(node) = symbol.as_node() {
                // After a node that is cut short, the window ends.
                found.before = Before::Node(node);
                found.parts.push((node, range));
            }
            continue;
        };
        let symbols = grammar.symbols_of(rule);
        let mut inner = Vec::new();
        match grammar.rules[rule].kind {
            Kind::Repeat(_) => {
                let (body, round) = (symbols[0], fact(symbols[0]).length);
                let (first, last) = (range.start / round, (range.end - 1) / round);
                inner.extend(clipped(body, first * round, round, &range));
                if first + 1 < last {
                    inner.push(Task::Times(body, last - first - 1));
                }
                if first < last {
                    inner.extend(clipped(body, last * round, round, &range));
                }
            }
            kind => {
                let is_call = matches!(kind, Kind::Call(_));
                let before = if range.start > 0 {
                    Before::Outside
                } else {
                    Before::Nothing
                };
                inner.extend(is_call.then_some(Task::Enter(before)));
                let mut at = 0;
                for &symbol in symbols {
                    let length = fact(symbol).length;
                    inner.extend(clipped(symbol, at, length, &range));
                    at += length;
                }
                inner.extend(is_call.then_some(Task::Leave));
            }
        }
        tasks.extend(inner.into_iter().rev());
    }
    let times = executions(grammar, whole);
    for (id, rule) in grammar.rules.iter() {
        let (times, symbols) = (times[id], grammar.symbols_of(id));
        if times == 0 {
            continue;
        }
        if let Kind::Repeat(rounds) = rule.kind {
            let Facts { first, last, .. } = fact(symbols[0]);
            found.pair(last, first, times * (rounds - 1));
            found.node(symbols[0], times * rounds);
            continue;
        }
        let mut before = None;
        for &symbol in symbols {
            let Facts { first, last, .. } = fact(symbol);
            found.pair(before, first, times);
            before = last.or(before);
            found.node(symbol, times);
        }
    }
}

/// Returns the part of a symbol that lies in a range.
fn clipped(symbol: Symbol, at: u64, length: u64, range: &Range<u64>) -> Option<Task> {
    let (from, to) = (range.start.max(at), range.end.min(at + length));
    if from >= to {
        return None;
    }
    Some(if to - from == length {
        Task::Times(symbol, 1)
    } else {
        Task::Run(symbol, from - at..to - at)
    })
}
