//! Filters that omit parts of a path.
//!
//! A gap replaces omitted blocks and stores their number, so all times stay the same. An activation
//! without kept blocks is omitted, too. All activations around kept blocks are kept.

use std::collections::HashMap;

use afterimage_ids::{BlockId, FuncId, NodeId};
use afterimage_paths::{ExecutedPath, Sink};
use afterimage_wpp::codec::NodeContext;
use afterimage_wpp::{Partial, Segment};

use super::grammar::{GrammarSink, Nodes};

/// The k-th execution of a block, or the k-th arrival at any of several places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The places, at most one per function.
    pub places: Vec<MarkedCode>,
    /// The number of the execution or arrival, from 1.
    pub number: u64,
}

/// The code in a function that counts as an arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkedCode {
    /// The function that contains the code.
    pub function: FuncId,
    /// Blocks, and the number of arrivals in each.
    pub inside: Vec<(BlockId, u64)>,
    /// Whether the beginning of an activation is an arrival.
    pub entry: bool,
    /// Pairs of blocks. Executing the second block directly after the first block, in one
    /// activation, is an arrival.
    pub over: Vec<(BlockId, BlockId)>,
}

impl Mark {
    /// Creates a mark at an execution of a block, by its number from 1.
    pub fn block(function: FuncId, block: BlockId, number: u64) -> Self {
        let place = MarkedCode {
            function,
            inside: vec![(block, 1)],
            entry: false,
            over: Vec::new(),
        };
        Self {
            places: vec![place],
            number,
        }
    }

    fn code(&self, function: FuncId) -> Option<&MarkedCode> {
        self.places.iter().find(|place| place.function == function)
    }

    /// Counts the arrivals inside a path, after its beginning.
    fn inside(&self, path: &ExecutedPath<'_>) -> u64 {
        let Some(code) = self.code(path.function) else {
            return 0;
        };
        let own = path.blocks.iter().map(|block| {
            let here = code.inside.iter().filter(|(marked, _)| marked == block);
            here.map(|(_, times)| times).sum::<u64>()
        });
        let pairs = path
            .blocks
            .windows(2)
            .filter(|pair| code.over.contains(&(pair[0], pair[1])));
        own.sum::<u64>() + pairs.count() as u64
    }

    /// Counts the arrivals at the first block of a path. `before` is the previous block of the
    /// activation, or `None` at its beginning.
    fn joining(&self, function: FuncId, before: Option<BlockId>, first: BlockId) -> u64 {
        let met = self.code(function).is_some_and(|code| match before {
            None => code.entry,
            Some(before) => code.over.contains(&(before, first)),
        });
        u64::from(met)
    }
}

/// The parts of a path to keep. The default is everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The functions whose blocks are kept. If this is empty, the blocks of all functions are kept.
    pub include: Vec<FuncId>,
    /// The functions whose blocks are omitted.
    pub exclude: Vec<FuncId>,
    /// The first and the last time to keep. A path is kept if one of its blocks is in this window.
    pub window: Option<(u64, u64)>,
    /// The mark of the first path to keep.
    pub start: Option<Mark>,
    /// The mark of the last path to keep.
    pub stop: Option<Mark>,
}

impl Filter {
    /// Whether the filter keeps everything.
    pub fn keeps_all(&self) -> bool {
        *self == Self::default()
    }

    fn keeps(&self, function: FuncId) -> bool {
        (self.include.is_empty() || self.include.contains(&function))
            && !self.exclude.contains(&function)
    }
}

/// The filter's facts about a node.
#[derive(Clone, Copy)]
struct NodeFacts {
    function: FuncId,
    /// The node in the grammar, once it is kept.
    kept: Option<NodeId>,
    length: u64,
    first: BlockId,
    last: BlockId,
    wanted: bool,
    /// The number of arrivals at the start mark inside the node.
    starts: u64,
    stops: u64,
}

/// Passes the kept paths on to a grammar.
pub(super) struct FilterSink<F> {
    filter: Filter,
    grammar: GrammarSink<F>,
    /// Facts about each node, indexed by the regenerator's nodes.
    nodes: Vec<NodeFacts>,
    /// The loops around each node.
    loops: Vec<Box<[BlockId]>>,
    /// Paths not kept so far, with the data to define them in the grammar.
    waiting: HashMap<NodeId, Waiting>,
    /// The open activations. The grammar knows the first `entered` of them.
    open: Vec<Open>,
    entered: usize,
    /// The last kept node of the host and of each activation that the grammar knows.
    last: Vec<Option<NodeId>>,
    /// Blocks omitted in the host and in each open activation, including its callees, since the
    /// grammar was last informed.
    left_out: Vec<u64>,
    /// Gap nodes, by the surrounding function and path, and by the binary logarithm of their
    /// length. Several gaps in a row make up a length that is not a power of two, so few nodes
    /// suffice.
    gaps: HashMap<(FuncId, Option<NodeId>, u32), NodeId>,
    numbering: Numbering,
    time: u64,
    starts_left: u64,
    stops_left: u64,
    started: bool,
    stopped: bool,
}

/// An open activation.
#[derive(Clone, Copy)]
struct Open {
    function: FuncId,
    /// The activation's number among all activations of its function, from 1.
    number: u64,
    /// The block that the activation executed last.
    last: Option<BlockId>,
}

/// Records which activations are kept.
#[derive(Default)]
struct Numbering {
    /// The activations of each function, indexed by function.
    functions: Vec<Numbered>,
    /// The number of pairs in the lists of all functions.
    pairs: usize,
}

/// The counts of a function's activations.
#[derive(Clone, Default)]
struct Numbered {
    all: u64,
    kept: u64,
    /// The number of omitted blocks.
    left_out: u64,
    /// The numbers of the kept activations, as pairs like those in [`Partial`].
    numbers: Vec<(u64, u64)>,
    /// Whether the list is incomplete, because the limit on pairs was reached.
    lost: bool,
}

impl Numbering {
    /// The maximum number of pairs over all functions. They take 16 MiB.
    const MOST: usize = 1 << 20;

    fn of(&mut self, function: FuncId) -> &mut Numbered {
        let index = function.as_u32() as usize;
        if index >= self.functions.len() {
            self.functions.resize(index + 1, Numbered::default());
        }
        &mut self.functions[index]
    }

    /// Records that an activation begins, and returns its number.
    fn enter(&mut self, function: FuncId) -> u64 {
        let numbered = self.of(function);
        numbered.all += 1;
        numbered.all
    }

    /// Records that an activation is kept. Calls must be in the order in which the activations
    /// began.
    fn keep(&mut self, function: FuncId, number: u64) {
        let is_full = self.pairs == Self::MOST;
        let numbered = self.of(function);
        numbered.kept += 1;
        let (kept, all) = numbered.numbers.last().copied().unwrap_or((1, 1));
        let goes_on = all + (numbered.kept - kept) == number;
        if goes_on && !numbered.numbers.is_empty() || numbered.lost {
            return;
        }
        numbered.lost = is_full;
        if !is_full {
            numbered.numbers.push((numbered.kept, number));
            self.pairs += 1;
        }
    }

    /// Returns the functions with omitted blocks.
    fn partial(self) -> Vec<Partial> {
        let all = self.functions.into_iter().enumerate();
        let some = all.filter(|(_, numbered)| numbered.left_out > 0);
        let partial = some.map(|(index, numbered)| Partial {
            function: FuncId::from_u32(index as u32),
            blocks: numbered.left_out,
            calls: numbered.all - numbered.kept,
            numbers: (!numbered.lost).then_some(numbered.numbers),
        });
        partial.collect()
    }
}

/// An owned copy of a path.
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
            starts_left: filter.start.as_ref().map_or(0, |mark| mark.number),
            stops_left: filter.stop.as_ref().map_or(0, |mark| mark.number),
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
            numbering: Numbering::default(),
            time: 0,
        }
    }

    /// Begins at `time`, with these activations open. The part of the path before `time` is
    /// unknown.
    pub(super) fn begin(&mut self, time: u64, open: impl Iterator<Item = FuncId>) {
        self.time = time;
        self.skip(time);
        open.for_each(|function| self.enter(function));
    }

    /// Omits this many blocks.
    pub(super) fn skip(&mut self, blocks: u64) {
        if let Some(left_out) = self.left_out.last_mut() {
            *left_out += blocks;
        }
    }

    /// Ends the run. Returns the nodes, and the functions with omitted blocks.
    pub(super) fn finish(mut self) -> (Nodes, Vec<Partial>) {
        // Blocks omitted by activations that never end belong to the innermost known activation.
        while self.open.len() > self.entered {
            self.leave();
        }
        self.flush();
        (self.grammar.finish(), self.numbering.partial())
    }

    /// Informs the grammar of the blocks omitted in the innermost known activation.
    fn flush(&mut self) {
        let mut rest = std::mem::take(&mut self.left_out[self.entered]);
        while rest > 0 {
            let log = rest.ilog2();
            rest -= 1 << log;
            let around = self.last.last().copied().flatten();
            let within = self.entered.checked_sub(1).map(|i| self.open[i].function);
            let function = within.unwrap_or(FuncId::from_u32(0));
            let node = *self.gaps.entry((function, around, log)).or_insert_with(|| {
                // A gap within a loop does not end the loop.
                let loops = around.map_or(&[][..], |n| &self.loops[n.as_u32() as usize]);
                self.grammar.define_gap(function, 1 << log, loops)
            });
            self.grammar.path(node);
        }
    }

    /// Whether a path lies in the time window and between the marks. Counts the marks in the path.
    fn is_time(&mut self, known: &NodeFacts) -> bool {
        let (first, last) = (self.time + 1, self.time + known.length);
        let before = self
            .open
            .last_mut()
            .and_then(|open| open.last.replace(known.last));
        let met = |mark: &Option<Mark>, inside: u64| {
            let mark = mark.as_ref()?;
            let met = inside + mark.joining(known.function, before, known.first);
            Some(met).filter(|&met| met > 0)
        };
        if !self.started
            && let Some(met) = met(&self.filter.start, known.starts)
        {
            self.starts_left = self.starts_left.saturating_sub(met);
            self.started = self.starts_left == 0;
        }
        let inside = self.started && !self.stopped;
        if !self.stopped
            && let Some(met) = met(&self.filter.stop, known.stops)
        {
            self.stops_left = self.stops_left.saturating_sub(met);
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
        let met = |mark: &Option<Mark>| mark.as_ref().map_or(0, |mark| mark.inside(&path));
        // A path has at least one block.
        let end = |block: Option<&BlockId>| block.copied().unwrap_or(BlockId::from_u32(0));
        self.nodes.push(NodeFacts {
            function: path.function,
            kept: None,
            length: path.blocks.len() as u64,
            wanted: self.filter.keeps(path.function),
            first: end(path.blocks.first()),
            last: end(path.blocks.last()),
            starts: met(&self.filter.start),
            stops: met(&self.filter.stop),
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
            self.numbering.of(known.function).left_out += known.length;
            return;
        }
        self.flush();
        while let Some(&Open {
            function, number, ..
        }) = self.open.get(self.entered)
        {
            self.grammar.enter(function);
            self.numbering.keep(function, number);
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
        let number = self.numbering.enter(function);
        self.open.push(Open {
            function,
            number,
            last: None,
        });
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
