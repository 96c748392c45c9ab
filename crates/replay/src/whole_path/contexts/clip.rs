//! Collects the activations of a window of a run. Takes rules that are entirely in the window as a
//! whole, and rules at its edges in part.

use std::ops::Range;

use afterimage_ids::{BlockId, FuncId, NodeId, PrimaryMap, RuleId};
use afterimage_wpp::{Kind, Node, PathError, Root, Segment, Segments, Symbol, WholePath};

use super::activations::{Activations, Doing, Item, What, compact};
use super::inlining::{ChainId, Inlining};
use super::site::chains_before;
use crate::whole_path::Window;

/// The number of items above which a rule or a node becomes its own stretch. A limit of 12 gives
/// fewer stretches, but they take 50 % more memory.
const ITEMS: usize = 2;

/// Facts about a rule or a node.
#[derive(Clone, Debug, Default)]
struct Facts {
    length: u64,
    /// The events in the surrounding activation, as a range of [`Clip::items`].
    items: Range<usize>,
    /// The chain of the last block that the surrounding activation executes, or `None` if it
    /// executes no block.
    last: Option<ChainId>,
}

/// An activation that is open.
struct Open {
    function: Option<FuncId>,
    begins: bool,
    doing: Doing,
}

struct Clip<'a, S> {
    path: &'a WholePath<S>,
    inlining: &'a Inlining,
    activations: Activations,
    nodes: PrimaryMap<NodeId, Facts>,
    items: Vec<Item>,
    /// The open activations, the host first.
    open: Vec<Open>,
}

/// Collects the activations of a window, and the host's actions in it. Ignores the inlined
/// functions that made a call if the call is nested in more than `depth` calls that are open at the
/// beginning of the window.
pub(super) fn collect<S: Segments>(
    path: &WholePath<S>,
    window: Window,
    inlining: &Inlining,
    depth: usize,
) -> Result<(Activations, u32), PathError<S::Error>> {
    let mut clip = Clip {
        path,
        inlining,
        activations: Activations::default(),
        nodes: PrimaryMap::new(),
        items: Vec::new(),
        open: Vec::new(),
    };
    clip.nodes();
    clip.enter(None, true);
    // These are the numbers of blocks before the window, and up to its end.
    let (from, to) = (window.first.saturating_sub(1), window.last);
    for (number, summary) in path.segments().summaries().iter().enumerate() {
        let (start, end) = (summary.before, summary.before + summary.length);
        if end <= from || start >= to {
            continue;
        }
        let segment = path.segment(number)?;
        if start <= from {
            let count = segment.open.len().min(depth);
            let chains = if inlining.is_empty() {
                Vec::new()
            } else {
                chains_before(path, inlining, start, count)?
            };
            let mut chains = chains.into_iter();
            for &function in &segment.open {
                clip.enter(Some(function), false);
                let last = chains.next().unwrap_or(ChainId::ITSELF);
                clip.after(Some(last));
            }
        }
        let open = clip.open[1..].iter().map(|open| open.function);
        if !open.eq(segment.open.iter().copied().map(Some)) {
            return Err(PathError::Follow { segment: number });
        }
        clip.segment(&segment, from.saturating_sub(start), to.min(end) - start);
    }
    while clip.open.len() > 1 {
        clip.leave();
    }
    let host = clip.open.pop();
    let host = host.map_or_else(Vec::new, |host| host.doing.items);
    let host = clip.activations.make(None, false, host);
    Ok((clip.activations, host))
}

/// A remaining task. The next task is last on the stack.
enum Task {
    /// The blocks of a symbol, from one number to another.
    Symbol(Symbol, u64, u64),
    /// All blocks of a symbol, this many times.
    Rounds(Symbol, u64),
    Leave,
}

impl<S: Segments> Clip<'_, S> {
    fn enter(&mut self, function: Option<FuncId>, begins: bool) {
        self.open.push(Open {
            function,
            begins,
            doing: Doing::after(ChainId::ITSELF),
        });
    }

    fn leave(&mut self) {
        let Some(Open {
            function,
            begins,
            doing,
        }) = self.open.pop()
        else {
            return;
        };
        // The activation ended before the window.
        if !begins && doing.items.is_empty() {
            return;
        }
        let id = self.activations.make(function, begins, doing.items);
        self.add(&[self.item(What::of_part(id), 1)], None, 1);
    }

    /// Returns the chain of events before the first known block.
    fn unknown(&self) -> ChainId {
        // Without inlining, no chain can be inherited.
        if self.inlining.is_empty() {
            ChainId::ITSELF
        } else {
            ChainId::INHERITED
        }
    }

    /// Returns an item for an event right after the last block.
    fn item(&self, what: What, times: u64) -> Item {
        let chain = self.unknown();
        Item { what, chain, times }
    }

    fn add(&mut self, items: &[Item], last: Option<ChainId>, times: u64) {
        if let Some(open) = self.open.last_mut() {
            open.doing.add(items, last, times);
        }
    }

    /// Continues after skipped blocks, the last of which belongs to chain `last`.
    fn after(&mut self, last: Option<ChainId>) {
        if let Some(open) = self.open.last_mut() {
            open.doing.last = last.unwrap_or(open.doing.last);
        }
    }

    /// Computes the facts of each node. Takes linear time.
    fn nodes(&mut self) {
        for (_, node) in self.path.nodes() {
            let mut items = Vec::new();
            let last = self.blocks(node, &node.blocks, node.left_out, &mut items);
            let items = self.kept(items);
            self.nodes.push(Facts {
                length: node.length(),
                items,
                last,
            });
        }
    }

    /// Adds the events in some blocks of a node, or in `left_out` omitted blocks, to `items`.
    /// Returns the chain of the call at the last block's end.
    fn blocks(
        &self,
        node: &Node,
        blocks: &[BlockId],
        left_out: u64,
        items: &mut Vec<Item>,
    ) -> Option<ChainId> {
        if left_out > 0 {
            items.push(self.item(What::GAP, left_out));
        }
        items.extend(blocks.iter().map(|&block| Item {
            what: What::OWN,
            chain: self.inlining.of_block(node.function, block),
            times: 1,
        }));
        compact(items);
        let last = blocks.last()?;
        Some(self.inlining.of_call(node.function, *last))
    }

    /// Stores the events of a symbol directly if there are few, and otherwise as a stretch.
    fn kept(&mut self, mut items: Vec<Item>) -> Range<usize> {
        compact(&mut items);
        let start = self.items.len();
        if items.len() > ITEMS {
            self.items.push(self.activations.stretch(items));
        } else {
            self.items.extend(items);
        }
        start..self.items.len()
    }

    /// Processes the blocks from `from` to `to` of a segment.
    fn segment(&mut self, segment: &Segment, from: u64, to: u64) {
        let nodes = self.items.len();
        let rules = self.rules(segment);
        let mut at = 0;
        for item in &segment.root {
            match *item {
                _ if at >= to => break,
                Root::Enter(function) => self.enter(Some(function), at >= from),
                Root::Leave => self.leave(),
                Root::Run(symbol) => {
                    let Facts { length, last, .. } = self.known(symbol, &rules);
                    let (first, end) = (from.max(at), to.min(at + length));
                    if first < end {
                        self.part(segment, &rules, symbol, first - at, end - at);
                    } else {
                        self.after(last);
                    }
                    at += length;
                }
            }
        }
        self.items.truncate(nodes);
    }

    /// Computes the facts of each rule. Takes linear time.
    fn rules(&mut self, segment: &Segment) -> PrimaryMap<RuleId, Facts> {
        let grammar = &segment.grammar;
        let mut rules = PrimaryMap::with_capacity(grammar.rules.len());
        for (id, rule) in grammar.rules.iter() {
            let times = match rule.kind {
                Kind::Repeat(times) => times,
                Kind::Call(_) | Kind::Sequence => 1,
            };
            let mut doing = Doing::after(match rule.kind {
                Kind::Call(_) => ChainId::ITSELF,
                Kind::Repeat(_) | Kind::Sequence => self.unknown(),
            });
            let (mut length, mut last) = (0, None);
            for &symbol in grammar.symbols_of(id) {
                let known = self.known(symbol, &rules);
                doing.add(&self.items[known.items], known.last, times);
                length += known.length;
                last = known.last.or(last);
            }
            rules.push(match rule.kind {
                Kind::Call(function) => {
                    let id = self.activations.make(Some(function), true, doing.items);
                    Facts {
                        length,
                        items: self.kept(vec![self.item(What::of_part(id), 1)]),
                        last: None,
                    }
                }
                Kind::Repeat(_) | Kind::Sequence => Facts {
                    // In rules that are never executed, the lengths may overflow.
                    length: length.saturating_mul(times),
                    items: self.kept(doing.items),
                    last,
                },
            });
        }
        rules
    }

    fn known(&self, symbol: Symbol, rules: &PrimaryMap<RuleId, Facts>) -> Facts {
        match (symbol.as_rule(), symbol.as_node()) {
            (Some(rule), _) => rules[rule].clone(),
            (None, Some(node)) => self.nodes[node].clone(),
            (None, None) => Facts::default(),
        }
    }

    /// Processes a non-empty part of a symbol. Examines the rules on the way down to its two edges.
    fn part(
        &mut self,
        segment: &Segment,
        rules: &PrimaryMap<RuleId, Facts>,
        symbol: Symbol,
        from: u64,
        to: u64,
    ) {
        let mut tasks = vec![Task::Symbol(symbol, from, to)];
        let mut items = Vec::new();
        while let Some(task) = tasks.pop() {
            let (symbol, from, to) = match task {
                Task::Symbol(symbol, from, to) => (symbol, from, to),
                Task::Rounds(symbol, times) => {
                    let known = self.known(symbol, rules);
                    items.clear();
                    items.extend_from_slice(&self.items[known.items]);
                    self.add(&items, known.last, times);
                    continue;
                }
                Task::Leave => {
                    self.leave();
                    continue;
                }
            };
            let known = self.known(symbol, rules);
            if from == 0 && to >= known.length {
                tasks.push(Task::Rounds(symbol, 1));
                continue;
            }
            let Some(rule) = symbol.as_rule() else {
                // A node consists of blocks or is a gap.
                if let Some(node) = symbol.as_node() {
                    let node = &self.path.nodes()[node];
                    let blocks = node.blocks.get(from as usize..to as usize);
                    let left_out = (to - from).min(node.left_out);
                    items.clear();
                    let blocks = blocks.unwrap_or_default();
                    let last = self.blocks(node, blocks, left_out, &mut items);
                    self.add(&items, last, 1);
                }
                continue;
            };
            let symbols = segment.grammar.symbols_of(rule);
            match segment.grammar.rules[rule].kind {
                Kind::Repeat(times) => {
                    let round = known.length / times;
                    let (first, last) = (from / round, (to - 1) / round);
                    let body = symbols[0];
                    if first > 0 {
                        self.after(self.known(body, rules).last);
                    }
                    if first == last {
                        tasks.push(Task::Symbol(body, from - first * round, to - first * round));
                        continue;
                    }
                    tasks.push(Task::Symbol(body, 0, to - last * round));
                    tasks.push(Task::Rounds(body, last - first - 1));
                    tasks.push(Task::Symbol(body, from - first * round, round));
                    continue;
                }
                Kind::Call(function) => {
                    self.enter(Some(function), from == 0);
                    tasks.push(Task::Leave);
                }
                Kind::Sequence => {}
            }
            let begun = tasks.len();
            let mut at = 0;
            for &symbol in symbols {
                let Facts { length, last, .. } = self.known(symbol, rules);
                let (first, end) = (from.max(at), to.min(at + length));
                if first < end {
                    tasks.push(Task::Symbol(symbol, first - at, end - at));
                } else if at < from {
                    self.after(last);
                }
                at += length;
            }
            tasks[begun..].reverse();
        }
    }
}
