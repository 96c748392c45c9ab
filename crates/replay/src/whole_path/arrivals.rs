//! Finds the arrivals at a source line, as marks on a path.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use afterimage_ids::{BlockId, EdgeId, EntityRef, EntitySet, FuncId, NodeId, OpId};
use afterimage_program::{BlockEnd, BlockKind, Cfg, Function, Program};
use afterimage_wpp::{
    Cursor, Marking, Marks, Node, Occurrences as WppOccurrences, PathError, Segments, Visit,
    WholePath,
};

use super::WindowCounts;
use super::own::OwnVisits;
use afterimage_profile::body::decode;
use afterimage_profile::lines::{Arrival, CallLines, arrivals, line_of};
use afterimage_profile::walk::{code_blocks, positions};
use afterimage_profile::{Line, OperatorCount, ProfileError, Source, Stop};

/// The places where a function arrives at a line other than by an exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineArrivals {
    /// The function that contains the line.
    pub function: FuncId,
    /// The blocks that contain arrivals, and the number of arrivals in each.
    pub inside: Vec<(BlockId, u64)>,
    /// Whether the beginning of an activation is an arrival.
    pub entry: bool,
    /// Pairs of consecutive blocks with an arrival between them.
    pub over: Vec<(BlockId, BlockId)>,
}

/// Finds the places where a function arrives at a line. Returns `None` if the executed blocks do
/// not determine them, because exceptions arrive there or because two edges join the same blocks.
/// Takes time linear in the function's body.
///
/// # Errors
/// Returns an error if the module's bytes do not match the program.
pub fn line_arrivals(
    program: &Program,
    module: &[u8],
    source: &dyn Source,
    function: &Function,
    line: Line,
) -> Result<Option<LineArrivals>, ProfileError> {
    let lines = FunctionLines::read(program, module, source, function)?;
    let places = Places::new(function, &lines, line);
    let is_code = |&block: &BlockId| places.cfg.blocks[block].kind == BlockKind::Code;
    let told = places.over.iter().all(|pair @ (from, to)| {
        let is_caught = places.throws(*from) && places.caught(*to) == Some(false);
        is_code(from) && is_code(to) && !places.not_over.contains(pair) && !is_caught
    });
    if !told {
        return Ok(None);
    }
    let inside = places.inside.iter();
    let mut inside: Vec<_> = inside
        .map(|(&block, ops)| (block, ops.len() as u64))
        .collect();
    inside.sort_unstable();
    let mut over: Vec<_> = places.over.iter().copied().collect();
    over.sort_unstable();
    Ok(Some(LineArrivals {
        function: function.id,
        inside,
        entry: places.entry,
        over,
    }))
}

/// The operators of a function with their lines, and the arrivals at all lines.
pub(super) struct FunctionLines {
    operators: Vec<OperatorCount>,
    calls: CallLines,
    arrivals: Vec<(Line, Arrival)>,
}

impl FunctionLines {
    /// Reads the lines of a function, and the arrivals at them. Takes time linear in the function's
    /// body.
    pub(super) fn read(
        program: &Program,
        module: &[u8],
        source: &dyn Source,
        function: &Function,
    ) -> Result<Self, ProfileError> {
        let (mut body, mut operators) = (Vec::new(), Vec::new());
        decode(program, module, function, &mut body)?;
        positions(function, &body, source, &mut operators);
        let calls = CallLines::of(&operators, source);
        let arrivals = arrivals(function, (&operators, source), &calls);
        Ok(Self {
            operators,
            calls,
            arrivals,
        })
    }

    /// Returns a line of the function.
    pub(super) fn first(&self) -> Option<Line> {
        self.arrivals.first().map(|(line, _)| *line)
    }
}

/// The places where a function arrives at a line.
struct Places<'a> {
    cfg: &'a Cfg,
    /// The operators in each block at which control arrives, ascending.
    inside: HashMap<BlockId, Vec<OpId>>,
    /// Whether the beginning of an activation is an arrival.
    entry: bool,
    /// The pairs of vertices joined by an edge that is an arrival. `not_over` contains the pairs
    /// joined by any other edge.
    over: HashSet<(BlockId, BlockId)>,
    not_over: HashSet<(BlockId, BlockId)>,
    /// The second blocks of the pairs in `over`.
    targets: HashSet<BlockId>,
    /// The first operator of each block that has a position. A block with only a skipped jump has
    /// no such operator.
    first: HashMap<BlockId, OpId>,
    /// The operators, except jumps, of each block that has code of the line, and whether each
    /// operator belongs to the line.
    steps: HashMap<BlockId, Vec<(OpId, bool)>>,
    /// The numbers of arrivals between blocks that were requested so far.
    known: RefCell<HashMap<(BlockId, BlockId), u64>>,
    /// Whether a question depended on facts that the path does not show.
    ambiguous: Cell<bool>,
}

/// The arrivals at a line, as marks on a path's nodes.
pub(super) struct Arrivals<'a, S> {
    path: &'a WholePath<S>,
    line: Line,
    places: HashMap<FuncId, Places<'a>>,
    /// The positions of arrivals in nodes that have any.
    inside: HashMap<NodeId, Vec<u64>>,
    /// The nodes in `inside`. Counting looks up each symbol of a grammar, and most symbols have no
    /// arrival.
    has_inside: EntitySet<NodeId>,
    /// The nodes that may begin with an arrival.
    may_join: EntitySet<NodeId>,
}

impl<'a, S: Segments> Arrivals<'a, S> {
    /// Creates marks for a line, without any arrivals.
    pub(super) fn new(path: &'a WholePath<S>, line: Line) -> Self {
        Self {
            path,
            line,
            places: HashMap::default(),
            inside: HashMap::default(),
            has_inside: EntitySet::new(),
            may_join: EntitySet::new(),
        }
    }

    /// Adds the arrivals of a function at the line. Takes time linear in its body and in the blocks
    /// of all nodes.
    pub(super) fn add(&mut self, code: &'a Function, lines: &FunctionLines) {
        let function = code.id;
        if self.places.contains_key(&function) {
            return;
        }
        let places = Places::new(code, lines, self.line);
        for (id, node) in self.path.nodes().iter() {
            if node.function != function {
                continue;
            }
            let mut marks = Vec::new();
            let mut before = None;
            for (at, &block) in node.blocks.iter().enumerate() {
                let over = before.map(|before| places.over(before, block));
                let count = over.unwrap_or(0) + places.inside_of(block).len() as u64;
                marks.extend((0..count).map(|_| at as u64));
                before = Some(block);
            }
            if !marks.is_empty() {
                self.inside.insert(id, marks);
                self.has_inside.insert(id);
            }
            if node
                .blocks
                .first()
                .is_some_and(|&first| places.may_join(first))
            {
                self.may_join.insert(id);
            }
        }
        self.places.insert(function, places);
    }

    /// Returns the positions of all marks in nodes. A mark between two nodes is placed at the start
    /// of the second node, or after the first node if that node always leads to the mark. Returns
    /// `None` if the executed nodes do not determine the marks. Takes time linear in the blocks of
    /// all nodes and the edges at their ends.
    pub(super) fn by_nodes(&self) -> Option<ByNodes> {
        let mut ends: HashMap<FuncId, Ends<'_>> = HashMap::default();
        for (id, node) in self.path.nodes().iter() {
            if let (true, [first, ..]) = (self.places.contains_key(&node.function), &*node.blocks) {
                let ends = ends.entry(node.function).or_default();
                ends.nodes.push((id, node));
                ends.firsts.insert(*first);
                ends.lasts.extend(node.blocks.last());
            }
        }
        let mut all = Vec::new();
        for (function, ends) in &ends {
            let places = &self.places[function];
            let (mut at, mut behind) = (HashSet::default(), HashSet::default());
            for &first in &ends.firsts {
                match places.joins(first, &ends.lasts)? {
                    Joins::Never => {}
                    Joins::Always => drop(at.insert(first)),
                    Joins::After(blocks) => {
                        if !blocks
                            .iter()
                            .all(|&last| places.only_leads(last, first, &ends.firsts))
                        {
                            return None;
                        }
                        behind.extend(blocks);
                    }
                }
            }
            for &(id, node) in &ends.nodes {
                let (Some(first), Some(last)) = (node.blocks.first(), node.blocks.last()) else {
                    continue;
                };
                let inside = self.inside.get(&id).map_or(&[][..], Vec::as_slice);
                let at = at.contains(first).then_some(0);
                let behind = behind.contains(last).then_some(node.length());
                let own = at.into_iter().chain(inside.iter().copied()).chain(behind);
                all.push((id, own.collect()));
            }
        }
        let nodes = self.path.nodes();
        let is_behind = |(node, positions): &(NodeId, Vec<u64>)| {
            positions.last() == Some(&nodes[*node].length())
        };
        Some(ByNodes {
            behind: all.iter().any(is_behind),
            positions: all,
        })
    }

    /// Returns the positions of arrivals in a node, except those at its beginning.
    fn inside_of(&self, node: NodeId) -> &[u64] {
        if !self.has_inside.contains(node) {
            return &[];
        }
        self.inside.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Whether nodes of the functions with arrivals were left out of the recording.
    pub(super) fn leaves_out(&self) -> bool {
        let mut nodes = self.path.nodes().values();
        nodes.any(|node| node.left_out > 0 && self.places.contains_key(&node.function))
    }

    /// Whether a question depended on facts that the path does not show.
    pub(super) fn is_ambiguous(&self) -> bool {
        self.places.values().any(|places| places.ambiguous.get())
    }

    /// Returns the number of arrivals that the run did not reach in the blocks where it ended.
    pub(super) fn unreached(&self, stops: &[Stop]) -> u64 {
        let mut sum = 0;
        for stop in stops {
            let inside = self.places.get(&stop.function);
            let inside = inside.map_or(&[][..], |places| places.inside_of(stop.block));
            sum += inside.iter().filter(|&&op| op >= stop.next).count() as u64;
        }
        sum
    }
}

/// The numbers of arrivals at a function's lines in a window.
#[derive(Debug, Default)]
pub struct WindowArrivals {
    counts: HashMap<Line, u64>,
    /// The lines for which the executed blocks do not determine the number.
    ambiguous: HashSet<Line>,
}

impl WindowArrivals {
    /// Returns the number of arrivals at a line, or `None` if the executed blocks do not determine
    /// it.
    pub fn at(&self, line: Line) -> Option<u64> {
        let known = !self.ambiguous.contains(&line);
        known.then(|| self.counts.get(&line).copied().unwrap_or(0))
    }

    /// Counts the arrivals. `stops` are the places where the run ended, if it ended in the window.
    /// Takes time linear in the function's body and the executed edges.
    pub(super) fn count(
        function: &Function,
        lines: &FunctionLines,
        counts: &WindowCounts,
        stops: &[Stop],
    ) -> Self {
        let mut found = Self::default();
        let edges = &function.cfg.edges;
        let mut over: HashMap<(BlockId, BlockId), HashMap<Line, HashSet<EdgeId>>> =
            HashMap::default();
        for &(line, arrival) in &lines.arrivals {
            match arrival {
                // Nothing leads to a function's first block.
                Arrival::Entry => {
                    let begun = counts.block(function.id, function.cfg.graph.root());
                    *found.counts.entry(line).or_default() += begun;
                }
                Arrival::At(op) => {
                    let Some(block) = function.block_of(op) else {
                        continue;
                    };
                    let stopped = stops.iter().filter(|stop| {
                        stop.function == function.id && stop.block == block && op >= stop.next
                    });
                    let executed = counts.block(function.id, block);
                    *found.counts.entry(line).or_default() += executed - stopped.count() as u64;
                }
                Arrival::Over(edge) => {
                    let pair = (edges[edge].from, edges[edge].to);
                    let of_line = over.entry(pair).or_default().entry(line).or_default();
                    of_line.insert(edge);
                }
            }
        }
        let mut joining: HashMap<(BlockId, BlockId), usize> = HashMap::default();
        for (_, edge) in edges.iter() {
            *joining.entry((edge.from, edge.to)).or_default() += 1;
        }
        let dispatches = |edge: &EdgeId| {
            let from = function.cfg.graph.from(*edge);
            matches!(function.cfg.blocks[from].kind, BlockKind::Dispatch(_))
        };
        let none = HashMap::default();
        for (from, to, times) in counts.edges(function.id) {
            // The executed blocks may be joined by several edges. An exception goes through a
            // dispatch vertex, which the path does not contain.
            let direct = joining.get(&(from, to)).copied().unwrap_or(0);
            let over_direct = over.get(&(from, to)).unwrap_or(&none);
            let mut out = function.cfg.graph.out_edges(from).iter();
            let throws = out.any(|&edge| {
                let to = function.cfg.graph.to(edge);
                matches!(function.cfg.blocks[to].kind, BlockKind::Dispatch(_))
            });
            let caught = function.cfg.graph.in_edges(to).iter().copied();
            let caught = caught.filter(|_| throws).find(dispatches);
            let caught = caught.map(|edge| function.cfg.graph.from(edge));
            let over_caught = caught.and_then(|dispatch| over.get(&(dispatch, to)));
            let over_caught = over_caught.unwrap_or(&none);
            let of_caught = over_caught
                .keys()
                .filter(|line| !over_direct.contains_key(line));
            for &line in over_direct.keys().chain(of_caught) {
                let arriving = over_direct.get(&line).map_or(0, HashSet::len);
                let is_caught = caught.map(|_| over_caught.contains_key(&line));
                let ways = [
                    (arriving > 0).then_some(true),
                    (arriving < direct).then_some(false),
                    is_caught,
                ];
                let mut ways = ways.into_iter().flatten();
                let first = ways.next();
                if ways.any(|way| Some(way) != first) {
                    found.ambiguous.insert(line);
                }
                if first == Some(true) {
                    *found.counts.entry(line).or_default() += times;
                }
            }
        }
        found
    }
}

/// The positions of marks in nodes.
pub(super) struct ByNodes {
    pub(super) positions: Vec<(NodeId, Vec<u64>)>,
    /// Whether some marks come after their node's last block.
    pub(super) behind: bool,
}

/// The first and last blocks of a function's executed nodes.
#[derive(Default)]
struct Ends<'a> {
    nodes: Vec<(NodeId, &'a Node)>,
    firsts: HashSet<BlockId>,
    lasts: HashSet<BlockId>,
}

/// The condition for an arrival at a line at the beginning of a node.
enum Joins {
    Never,
    Always,
    /// Control arrives if the preceding node ends with one of these blocks.
    After(Vec<BlockId>),
}

impl<'a> Places<'a> {
    /// Returns the number of arrivals between two consecutive blocks of an activation.
    fn over(&self, from: BlockId, to: BlockId) -> u64 {
        let mut known = self.known.borrow_mut();
        *known.entry((from, to)).or_insert_with(|| {
            let over = self.over.contains(&(from, to));
            let not_over = self.not_over.contains(&(from, to));
            // An exception first goes from the block to a dispatch vertex.
            let thrown = self.throws(from).then(|| self.caught(to)).flatten();
            let ways = [over.then_some(true), not_over.then_some(false), thrown];
            let mut ways = ways.into_iter().flatten();
            let first = ways.next();
            if ways.any(|way| Some(way) != first) {
                self.ambiguous.set(true);
            }
            u64::from(first == Some(true))
        })
    }

    /// Whether control may arrive at the line where this block begins. If not, [`over`](Self::over)
    /// is 0, whichever block comes before.
    fn may_join(&self, to: BlockId) -> bool {
        self.entry && to == self.cfg.graph.root() || self.targets.contains(&to)
    }

    /// Returns the condition under which a node that begins with `first` begins with an arrival.
    /// The node's activation last executed one of `lasts`. Returns `None` if these blocks do not
    /// decide it.
    fn joins(&self, first: BlockId, lasts: &HashSet<BlockId>) -> Option<Joins> {
        let graph = &self.cfg.graph;
        // Control may come from the beginning of an activation, or from the dispatch of an
        // exception.
        let entered = (first == graph.root()).then_some(self.entry);
        let mut others = entered.into_iter().chain(self.caught(first));
        let (mut yes, mut no) = (Vec::new(), false);
        for &edge in graph.in_edges(first) {
            let pair = (graph.from(edge), first);
            match (self.over.contains(&pair), self.not_over.contains(&pair)) {
                _ if !lasts.contains(&pair.0) => {}
                (true, true) => return None,
                (true, false) => yes.push(pair.0),
                (false, _) => no = true,
            }
        }
        let mut others_all = others.clone();
        if !no && others_all.all(|other| other) {
            let is_any = others.next().is_some() || !yes.is_empty();
            return is_any.then_some(Joins::Always);
        }
        if others.any(|other| other) {
            return None;
        }
        Some(if yes.is_empty() {
            Joins::Never
        } else {
            Joins::After(yes)
        })
    }

    /// Whether a node that ends with `last` is always directly followed by a node that begins with
    /// `first`.
    fn only_leads(&self, last: BlockId, first: BlockId, firsts: &HashSet<BlockId>) -> bool {
        let graph = &self.cfg.graph;
        let is_plain = matches!(
            self.cfg.blocks[last].end,
            BlockEnd::Fall | BlockEnd::Jump | BlockEnd::Branch | BlockEnd::Table
        );
        let mut ways = graph.out_edges(last).iter().map(|&edge| graph.to(edge));
        is_plain
            && ways.all(|to| {
                let is_code = self.cfg.blocks[to].kind == BlockKind::Code;
                to == first || is_code && !firsts.contains(&to)
            })
    }

    fn new(function: &'a Function, lines: &FunctionLines, line: Line) -> Self {
        let FunctionLines {
            operators,
            calls,
            arrivals,
        } = lines;
        let cfg = &function.cfg;
        let (mut first, mut steps) = (HashMap::default(), HashMap::default());
        for (id, block) in code_blocks(function) {
            let all = operators[block.ops.start.index()..block.ops.end.index()].iter();
            let all = all.filter(|operator| operator.is_step());
            let is_own = |operator: &OperatorCount| {
                line_of(operator) == Some(line) || calls.at(operator.op).contains(&line)
            };
            if let Some(operator) = all.clone().next() {
                first.insert(id, operator.op);
            }
            if all.clone().any(is_own) {
                let all = all.map(|operator| (operator.op, is_own(operator)));
                steps.insert(id, Vec::from_iter(all));
            }
        }
        let mut places = Self {
            cfg,
            inside: HashMap::default(),
            entry: false,
            over: HashSet::default(),
            not_over: HashSet::default(),
            targets: HashSet::default(),
            first,
            steps,
            known: RefCell::default(),
            ambiguous: Cell::new(false),
        };
        let mut edges = HashSet::default();
        for (_, arrival) in arrivals.iter().filter(|(other, _)| *other == line) {
            match arrival {
                Arrival::Entry => places.entry = true,
                Arrival::Over(edge) => drop(edges.insert(*edge)),
                Arrival::At(op) => {
                    if let Some(block) = function.block_of(*op) {
                        places.inside.entry(block).or_default().push(*op);
                    }
                }
            }
        }
        for (id, edge) in cfg.edges.iter() {
            let pairs = if edges.contains(&id) {
                &mut places.over
            } else {
                &mut places.not_over
            };
            pairs.insert((edge.from, edge.to));
        }
        places.targets = places.over.iter().map(|&(_, to)| to).collect();
        places
    }

    fn inside_of(&self, block: BlockId) -> &[OpId] {
        self.inside.get(&block).map_or(&[], Vec::as_slice)
    }

    fn is_dispatch(&self, block: BlockId) -> bool {
        matches!(self.cfg.blocks[block].kind, BlockKind::Dispatch(_))
    }

    /// Whether an exception may leave a block for a dispatch vertex.
    fn throws(&self, block: BlockId) -> bool {
        let graph = &self.cfg.graph;
        let mut edges = graph.out_edges(block).iter();
        edges.any(|&edge| self.is_dispatch(graph.to(edge)))
    }

    /// Returns whether catching an exception in this block is an arrival, or `None` if the block
    /// catches none.
    fn caught(&self, block: BlockId) -> Option<bool> {
        let graph = &self.cfg.graph;
        let edges = graph.in_edges(block).iter().copied();
        let mut catching = edges.filter(|&edge| self.is_dispatch(graph.from(edge)));
        let edge = catching.next()?;
        Some(self.over.contains(&(graph.from(edge), block)))
    }
}

/// Shared arrivals, as marks found by examining each node.
pub(super) struct Shared<'a, S>(pub Rc<Arrivals<'a, S>>);

impl<S: Segments> Marking for Shared<'_, S> {
    fn inside(&self, node: NodeId) -> &[u64] {
        self.0.inside_of(node)
    }

    fn key(&self) -> Box<[u32]> {
        let Line { file, number } = self.0.line;
        let functions = self.0.places.keys().map(|function| function.as_u32());
        let mut functions = Vec::from_iter(functions);
        functions.sort_unstable();
        [file.0, number].into_iter().chain(functions).collect()
    }

    fn may_mark(&self, node: NodeId) -> bool {
        let node = self.0.path.nodes().get(node);
        node.is_some_and(|node| self.0.places.contains_key(&node.function))
    }

    fn joining(&self, before: Option<NodeId>, node: NodeId) -> u64 {
        let arrivals = &*self.0;
        if !arrivals.may_join.contains(node) {
            return 0;
        }
        let nodes = arrivals.path.nodes();
        let places = arrivals.places.get(&nodes[node].function);
        let (Some(places), Some(&block)) = (places, nodes[node].blocks.first()) else {
            return 0;
        };
        match before.map(|before| nodes[before].blocks.last()) {
            None => u64::from(places.entry),
            Some(Some(&before)) => places.over(before, block),
            Some(None) => 0,
        }
    }
}

/// All arrivals at a line, in order of time.
pub struct ArrivalTimes<'a, S: Segments> {
    path: &'a WholePath<S>,
    arrivals: Rc<Arrivals<'a, S>>,
    times: Times<'a, S>,
    count: u64,
    last: RefCell<Last<'a, S>>,
}

/// The result of the last search, kept because arrivals are mostly requested in order.
struct Last<'a, S: Segments> {
    cursor: Cursor<'a, S>,
    /// The number and time of the last arrival that was found.
    time: Option<(u64, u64)>,
}

/// The method that finds arrivals.
pub(super) enum Times<'a, S> {
    /// The nodes determine the arrivals. Opens only segments that contain the requested nodes.
    Nodes {
        all: WppOccurrences<'a, S>,
        /// Whether some arrivals come after the last block of a node. An arrival after the run's
        /// last node was not executed.
        behind: bool,
    },
    /// The arrivals, found by examining all segments.
    Marks(Marks<'a, S, Shared<'a, S>>),
}

impl<S: Segments> Times<'_, S> {
    /// Returns the number of arrivals.
    pub(super) fn count(&self) -> Result<u64, PathError<S::Error>> {
        Ok(match self {
            Self::Nodes { all, behind } => {
                let count = all.count();
                let last = if *behind { all.select(count)? } else { None };
                let beyond = last.is_some_and(|last| last.time > all.path().length());
                count - u64::from(beyond)
            }
            Self::Marks(marks) => marks.count(),
        })
    }

    fn select(&self, number: u64) -> Result<Option<u64>, PathError<S::Error>> {
        match self {
            Self::Nodes { all, .. } => Ok(all.select(number)?.map(|found| found.time)),
            Self::Marks(marks) => marks.select(number),
        }
    }
}

/// An arrival at a line, which is the moment before its first operator is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivedAt {
    /// The time of the operator's block. This is later than the arrival if jumps lead to the line.
    pub time: u64,
    /// The operator, or `None` if the run ended before reaching it. The time is then the time of
    /// the arrival.
    pub op: Option<OpId>,
}

/// An operator that was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The time of the operator's block.
    pub time: u64,
    /// The function that contains the operator.
    pub function: FuncId,
    /// The operator that was executed.
    pub op: OpId,
}

impl<'a, S: Segments> ArrivalTimes<'a, S> {
    /// Creates the list of the first `count` arrivals.
    pub(super) fn new(
        path: &'a WholePath<S>,
        arrivals: Rc<Arrivals<'a, S>>,
        times: Times<'a, S>,
        count: u64,
    ) -> Self {
        Self {
            path,
            arrivals,
            times,
            count,
            last: RefCell::new(Last {
                cursor: path.cursor(),
                time: None,
            }),
        }
    }

    /// Returns the number of arrivals.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the positions of a node's blocks with arrivals, ascending, with one entry per
    /// arrival. Arrivals at the beginning of the node are not included.
    pub fn inside(&self, node: NodeId) -> &[u64] {
        self.arrivals.inside_of(node)
    }

    /// Returns the number of arrivals at the beginning of a node. The node follows `before` in its
    /// activation, or begins the activation if `before` is `None`.
    pub fn joining(&self, before: Option<NodeId>, node: NodeId) -> u64 {
        Shared(Rc::clone(&self.arrivals)).joining(before, node)
    }

    /// Returns the operators of a block at which control arrives, ascending.
    pub fn operators(&self, function: FuncId, block: BlockId) -> &[OpId] {
        let places = self.arrivals.places.get(&function);
        places.map_or(&[], |places| places.inside_of(block))
    }

    /// Returns the time of the k-th arrival, from 1, or `None` if there are fewer. Takes time
    /// linear in the grammar of its segment.
    ///
    /// # Errors
    /// Returns an error if the segment cannot be read.
    pub fn time(&self, number: u64) -> Result<Option<u64>, PathError<S::Error>> {
        if number <= self.count {
            self.times.select(number)
        } else {
            Ok(None)
        }
    }

    /// Returns the number of arrivals up to and including the block at `time`. Takes at most O(log
    /// arrivals) calls to [`time`](Self::time).
    ///
    /// # Errors
    /// Returns an error if a segment cannot be read.
    pub fn by(&self, time: u64) -> Result<u64, PathError<S::Error>> {
        if let Times::Nodes { all, behind: false } = &self.times {
            return Ok(all.rank(time)?.min(self.count));
        }
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = high - (high - low) / 2;
            match self.time(middle)? {
                Some(found) if found <= time => low = middle,
                _ => high = middle - 1,
            }
        }
        Ok(low)
    }

    /// Returns the k-th arrival, from 1, or `None` if there are fewer.
    ///
    /// # Errors
    /// Returns an error if a segment cannot be read.
    pub fn get(&self, number: u64) -> Result<Option<ArrivedAt>, PathError<S::Error>> {
        let mut last = self.last.borrow_mut();
        let Last { cursor, time: next } = &mut *last;
        let time = match *next {
            Some((known, time)) if known == number && number <= self.count => Some(time),
            _ => self.time(number)?,
        };
        let Some(time) = time else {
            return Ok(None);
        };
        let Some(mut visit) = cursor.seek(time)? else {
            return Ok(None);
        };
        let nodes = self.path.nodes();
        let function = nodes[visit.node].function;
        let places = self.arrivals.places.get(&function);
        let block = |visit: &Visit, time: u64| {
            let at = (time - visit.start) as usize;
            nodes[visit.node].blocks.get(at).copied()
        };
        let inside = match (block(&visit, time), places) {
            (Some(block), Some(places)) => places.inside_of(block),
            _ => &[],
        };
        // The arrival at a block's start comes first. The arrivals inside follow in the order of
        // the block's operators.
        let mut later = 0;
        loop {
            let after = number + later + 1;
            let found = self.times.select(after)?;
            *next = found.map(|found| (after, found));
            if found != Some(time) {
                break;
            }
            later += 1;
        }
        let position = (inside.len() as u64).checked_sub(later + 1);
        if let Some(&op) = position.and_then(|position| inside.get(position as usize)) {
            let op = Some(op);
            return Ok(Some(ArrivedAt { time, op }));
        }
        // After a jump, the activation continues in another block.
        let mut at = time;
        while let (Some(block), Some(places)) = (block(&visit, at), places) {
            if let Some(&op) = places.first.get(&block) {
                let op = Some(op);
                return Ok(Some(ArrivedAt { time: at, op }));
            }
            at += 1;
            if at > visit.last() {
                match cursor.next()? {
                    Some(next) if nodes[next.node].function == function => visit = next,
                    _ => break,
                }
            }
        }
        Ok(Some(ArrivedAt { time, op: None }))
    }

    /// Returns the line's operators that the k-th arrival (from 1) executes, in order of time. They
    /// end where the arrival's activation leaves the line or arrives there again. Operators of
    /// callees are not included. Each operator is listed once. If the run ended in the last block,
    /// operators after the end are included. The list is empty if there are fewer arrivals, or if
    /// the run ended before reaching the line. Takes as long as [`get`](Self::get), plus O(1) for
    /// each node of the activation.
    ///
    /// # Errors
    /// Returns an error if a segment cannot be read.
    pub fn executed(&self, number: u64) -> Result<Vec<Step>, PathError<S::Error>> {
        let mut found = Vec::new();
        let Some(ArrivedAt { time, op: Some(op) }) = self.get(number)? else {
            return Ok(found);
        };
        let mut visits = OwnVisits::from(self.path, time)?;
        let nodes = self.path.nodes();
        let (from, mut before) = ((time, op), None);
        while let Some(visit) = visits.next()? {
            let Node {
                function, blocks, ..
            } = &nodes[visit.node];
            let Some(places) = self.arrivals.places.get(function) else {
                break;
            };
            let timed = (visit.start..).zip(blocks);
            for (time, &block) in timed.filter(|(time, _)| *time >= from.0) {
                if before.is_some_and(|before| places.over(before, block) > 0) {
                    return Ok(found);
                }
                before = Some(block);
                let Some(steps) = places.steps.get(&block) else {
                    // A block with only jumps does not leave the line.
                    if places.first.contains_key(&block) {
                        return Ok(found);
                    } else {
                        continue;
                    }
                };
                for &(op, is_own) in steps.iter().filter(|(op, _)| (time, *op) >= from) {
                    if !is_own {
                        return Ok(found);
                    }
                    let function = *function;
                    found.push(Step { time, function, op });
                }
            }
        }
        Ok(found)
    }
}
