//! Leaving parts of a path out on purpose.
//!
//! What is left out still passes: a gap of so many blocks stands for it, so every time stays what it is. An activation in which
//! nothing is kept is left out with its blocks; around what is kept all activations are there.

use std::collections::HashMap;

use afterimage_ids::{BlockId, FuncId, NodeId};
use afterimage_paths::{ExecutedPath, Sink};
use afterimage_wpp::Segment;
use afterimage_wpp::codec::NodeContext;

use super::grammar::{GrammarSink, Nodes};

/// The k-th execution of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The function.
    pub function: FuncId,
    /// Its block.
    pub block: BlockId,
    /// Which execution, from 1.
    pub number: u64,
}

/// What to keep of a path. By default everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Keep the blocks of these functions only; of all if there are none.
    pub include: Vec<FuncId>,
    /// Leave the blocks of these functions out.
    pub exclude: Vec<FuncId>,
    /// Keep paths that have a block from the first of these times to the last.
    pub window: Option<(u64, u64)>,
    /// Keep nothing before the path with this mark.
    pub start: Option<Mark>,
    /// Keep nothing after the path with this mark.
    pub stop: Option<Mark>,
}

impl Filter {
    /// Whether it keeps everything.
    pub fn keeps_all(&self) -> bool {
        *self == Self::default()
    }

    fn keeps(&self, function: FuncId) -> bool {
        (self.include.is_empty() || self.include.contains(&function))
            && !self.exclude.contains(&function)
    }
}

/// What the filter knows of a node.
#[derive(Clone, Copy)]
struct Known {
    /// The node in the grammar, once it is kept.
    kept: Option<NodeId>,
    length: u64,
    wanted: bool,
    starts: bool,
    stops: bool,
}

/// Whose paths come through to a grammar.
pub(super) struct FilterSink<F> {
    filter: Filter,
    grammar: GrammarSink<F>,
    /// By node of the regenerator's.
    nodes: Vec<Known>,
    /// The loops around each.
    loops: Vec<Box<[BlockId]>>,
    /// The paths that were not kept yet: what is needed to make them known.
    waiting: HashMap<NodeId, Waiting>,
    /// The open activations, and how many of them the grammar knows.
    open: Vec<FuncId>,
    entered: usize,
    /// What each of these that the grammar knows has done last of what is kept, from the host on.
    last: Vec<Option<NodeId>>,
    /// Blocks left out in the host and each open activation, with those of its callees, since the grammar was told.
    left_out: Vec<u64>,
    /// Gaps by the path that is around them and the binary logarithm of their lengths: others are sums, so that there are few.
    gaps: HashMap<(Option<NodeId>, u32), NodeId>,
    time: u64,
    starts_left: u64,
    stops_left: u64,
    started: bool,
    stopped: bool,
}

/// A path, owned.
struct Waiting {
    function: FuncId,
    blocks: Box<[BlockId]>,
    header: bool,
    next: Option<BlockId>,
    calls: bool,
}

impl<F: FnMut(Segment, &[NodeContext])> FilterSink<F> {
    pub(super) fn new(filter: Filter, grammar: GrammarSink<F>) -> Self {
        Self {
            started: filter.start.is_none(),
            stopped: false,
            starts_left: filter.start.map_or(0, |mark| mark.number),
            stops_left: filter.stop.map_or(0, |mark| mark.number),
            filter,
            grammar,
            nodes: Vec::new(),
            loops: Vec::new(),
            waiting: HashMap::new(),
            open: Vec::new(),
            entered: 0,
            last: vec![None],
            left_out: vec![0],
            gaps: HashMap::new(),
            time: 0,
        }
    }

    /// The nodes, when the run is over.
    pub(super) fn finish(mut self) -> Nodes {
        // What activations that are open to the end have left out belongs to the innermost one that is known.
        while self.open.len() > self.entered {
            self.leave();
        }
        self.flush();
        self.grammar.finish()
    }

    /// Tells the grammar what was left out in the innermost activation that it knows.
    fn flush(&mut self) {
        let mut rest = std::mem::take(&mut self.left_out[self.entered]);
        while rest > 0 {
            let log = rest.ilog2();
            rest -= 1 << log;
            let around = self.last.last().copied().flatten();
            let node = *self.gaps.entry((around, log)).or_insert_with(|| {
                // A gap within a loop is no end of the loop.
                let loops = around.map_or(&[][..], |n| &self.loops[n.as_u32() as usize]);
                let within = self.entered.checked_sub(1).map(|i| self.open[i]);
                let function = within.unwrap_or(FuncId::from_u32(0));
                self.grammar.define_gap(function, 1 << log, loops)
            });
            self.grammar.path(node);
        }
    }

    /// Whether a path is kept, by when it is executed.
    fn is_time(&mut self, known: &Known) -> bool {
        let (first, last) = (self.time + 1, self.time + known.length);
        if known.starts && !self.started {
            self.starts_left = self.starts_left.saturating_sub(1);
            self.started = self.starts_left == 0;
        }
        let inside = self.started && !self.stopped;
        if known.stops && !self.stopped {
            self.stops_left = self.stops_left.saturating_sub(1);
            self.stopped = self.stops_left == 0;
        }
        let window = self.filter.window;
        inside && window.is_none_or(|(from, to)| last >= from && first <= to)
    }

    fn keep(&mut self, node: NodeId) -> Option<NodeId> {
        let known = &mut self.nodes[node.as_u32() as usize];
        if known.kept.is_none() {
            let path = self.waiting.remove(&node)?;
            known.kept = Some(self.grammar.define(ExecutedPath {
                function: path.function,
                blocks: &path.blocks,
                loops: &self.loops[node.as_u32() as usize],
                header: path.header,
                next: path.next,
                calls: path.calls,
            }));
        }
        known.kept
    }
}

impl<F: FnMut(Segment, &[NodeContext])> Sink for FilterSink<F> {
    fn define(&mut self, path: ExecutedPath<'_>) -> NodeId {
        let node = NodeId::from_u32(self.nodes.len() as u32);
        let has = |mark: Option<Mark>| {
            mark.is_some_and(|mark| {
                mark.function == path.function && path.blocks.contains(&mark.block)
            })
        };
        self.nodes.push(Known {
            kept: None,
            length: path.blocks.len() as u64,
            wanted: self.filter.keeps(path.function),
            starts: has(self.filter.start),
            stops: has(self.filter.stop),
        });
        self.loops.push(path.loops.into());
        self.waiting.insert(
            node,
            Waiting {
                function: path.function,
                blocks: path.blocks.into(),
                header: path.header,
                next: path.next,
                calls: path.calls,
            },
        );
        node
    }

    fn path(&mut self, node: NodeId) {
        let known = self.nodes[node.as_u32() as usize];
        let kept = self.is_time(&known) && known.wanted;
        self.time += known.length;
        if !kept {
            if let Some(left_out) = self.left_out.last_mut() {
                *left_out += known.length;
            }
            return;
        }
        self.flush();
        while let Some(&function) = self.open.get(self.entered) {
            self.grammar.enter(function);
            self.last.push(None);
            self.entered += 1;
            self.flush();
        }
        if let Some(last) = self.last.last_mut() {
            *last = Some(node);
        }
        if let Some(node) = self.keep(node) {
            self.grammar.path(node);
        }
    }

    fn enter(&mut self, function: FuncId) {
        self.open.push(function);
        self.left_out.push(0);
    }

    fn leave(&mut self) {
        if self.entered == self.open.len() {
            self.flush();
            self.grammar.leave();
            self.last.pop();
            self.entered -= 1;
        }
        self.open.pop();
        let within = self.left_out.pop().unwrap_or(0);
        if let Some(left_out) = self.left_out.last_mut() {
            *left_out += within;
        }
    }
}
