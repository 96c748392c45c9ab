//! Invents a run, as a random walk through a program's graphs, with all data of its recording.

use std::collections::{BTreeMap, HashMap};

use afterimage_ids::{
    BlockId, Counts, EdgeId, EntityRef, FuncId, FunctionCounts, NodeId, PrimaryMap,
};
use afterimage_program::{BlockEnd, BlockKind, Callee, Cfg, EdgeKind, Program};
use afterimage_testkit::modules::SplitMix64;
use afterimage_trace::{
    CountsLens, End, Ending, Existing, Frame, Kind, Standing, TraceFile, TraceWriter,
};
use afterimage_wpp::{Builder, Continuation, Directory, Limits, Node, Segment, Shape, codec};

/// An event of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Enter(FuncId),
    Node(NodeId),
    Leave,
}

/// A file's data about a path, which tests can change.
#[derive(Clone)]
pub struct Parts {
    pub events: Vec<Event>,
    /// The number of nodes after which a segment may end.
    pub segment: usize,
    pub directory: Directory,
    pub segments: Vec<Segment>,
    /// The number of blocks executed before each segment, and in total, according to the file.
    pub places: Vec<u64>,
    /// Whether the file has opened grammars.
    pub grammars: bool,
    pub counts: Counts,
    pub frames: Vec<Frame>,
}

impl Parts {
    /// Returns a file with these parts and right checksums.
    pub fn file(&self) -> TraceFile {
        TraceFile::from_bytes(self.bytes(|_, _| ())).unwrap()
    }

    /// Returns the bytes of that file. `change` modifies sections before they are written.
    pub fn bytes(&self, change: impl Fn(Kind, &mut Vec<u8>)) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.aft");
        let writer = TraceWriter::create(&path, Existing::Kept).unwrap();
        writer
            .end(&End {
                ending: Ending::StackOverflow,
                frames: self.frames.clone(),
                clock: None,
                events: 0,
                host_call_counts: vec![],
            })
            .unwrap();
        let (counts, mode) = (self.counts.clone(), "program".to_owned());
        let (counters, increments) = (0, 0);
        writer
            .counts(&CountsLens {
                counts,
                mode,
                counters,
                increments,
            })
            .unwrap();
        let mut section = writer.section(Kind::PATHS, None).unwrap();
        let contexts = self.directory.contexts();
        for (segment, &place) in self.segments.iter().zip(&self.places) {
            let mut bytes = codec::encode(segment, contexts.contexts());
            change(Kind::PATHS, &mut bytes);
            section.put(place, &bytes).unwrap();
        }
        section
            .finish(self.places[self.segments.len()], &[])
            .unwrap();
        let mut index = self.directory.encode();
        change(Kind::PATH_INDEX, &mut index);
        writer.whole(Kind::PATH_INDEX, None, &index).unwrap();
        if self.grammars {
            let mut section = writer.section(Kind::PATH_GRAMMARS, None).unwrap();
            for (segment, &place) in self.segments.iter().zip(&self.places) {
                let segment = codec::canonical(segment, contexts.contexts()).unwrap();
                let mut bytes = codec::encode_opened(&segment);
                change(Kind::PATH_GRAMMARS, &mut bytes);
                section.put(place, &bytes).unwrap();
            }
            section
                .finish(self.places[self.segments.len()], &[])
                .unwrap();
        }
        writer.commit().unwrap();
        std::fs::read(&path).unwrap()
    }

    /// Builds the segments from the events, and all related data.
    pub fn build(&mut self) {
        let mut builder = Builder::new(Limits {
            symbols: self.segment,
        });
        for node in self.directory.nodes.values() {
            builder.define(Shape {
                length: node.length(),
                loops: Box::default(),
                header: false,
            });
        }
        self.segments.clear();
        let mut executed = 0;
        for &event in &self.events {
            match event {
                Event::Enter(function) => builder.enter(function),
                Event::Leave => builder.leave(),
                Event::Node(node) => {
                    builder.node(node, 1);
                    executed += 1;
                    if executed % self.segment == 0 {
                        self.segments.extend(builder.take_segment());
                    }
                }
            }
        }
        self.segments.extend(builder.finish());
        self.tidy();
    }

    /// Updates the directory, the places and the counts of segments to match the grammars.
    pub fn tidy(&mut self) {
        let mut before = 0;
        self.places.clear();
        let mut summaries = Vec::new();
        let contexts = self.directory.contexts();
        for segment in &mut self.segments {
            // The reader's version of a segment has the right counts.
            *segment = codec::canonical(segment, contexts.contexts()).unwrap();
            segment.before = before;
            let length =
                |&(node, count): &(NodeId, u64)| self.directory.nodes[node].length() * count;
            segment.length = segment.node_counts.iter().map(length).sum();
            self.places.push(before);
            before += segment.length;
            summaries.push(segment.summary());
        }
        self.places.push(before);
        self.directory.summaries = summaries;
    }
}

/// The options of a walk.
pub struct Options {
    /// The number of blocks that may be executed.
    pub blocks: usize,
    /// The number of activations that may be open.
    pub depth: usize,
    /// The number of nodes after which a segment may end.
    pub segment: usize,
    /// Whether nodes end only before loops and after calls.
    pub regular: bool,
}

struct Activation {
    function: usize,
    block: BlockId,
    /// The blocks of the node that is being executed.
    path: Vec<BlockId>,
}

struct Walk<'a> {
    program: &'a Program,
    random: SplitMix64,
    options: Options,
    events: Vec<Event>,
    known: HashMap<(FuncId, Vec<BlockId>, Option<BlockId>, bool), NodeId>,
    nodes: PrimaryMap<NodeId, Node>,
    continuations: Vec<Continuation>,
    counts: Vec<FunctionCounts>,
    stack: Vec<Activation>,
    blocks: usize,
}

/// The possible continuations of a walk.
#[derive(PartialEq, Eq)]
enum Next {
    Go,
    Stop,
}

/// Walks through a program at random.
pub fn walk(program: &Program, seed: u64, options: Options) -> Parts {
    let counts = program.functions.iter();
    let counts = counts.map(|function| FunctionCounts {
        entries: 0,
        edges: vec![0; function.cfg.edges.len()],
        open: Vec::new(),
    });
    let mut walk = Walk {
        program,
        random: SplitMix64(seed),
        events: Vec::new(),
        options,
        known: HashMap::new(),
        nodes: PrimaryMap::new(),
        continuations: Vec::new(),
        counts: counts.collect(),
        stack: Vec::new(),
        blocks: 0,
    };
    walk.run();
    walk.parts()
}

impl Walk<'_> {
    fn run(&mut self) {
        let imports = self.program.imports.len();
        let exports = self.program.exports.iter().map(|export| export.1.index());
        let exports: Vec<usize> = exports.filter(|&f| f >= imports).collect();
        while self.stack.is_empty() && self.blocks < self.options.blocks && !exports.is_empty() {
            let function = exports[self.random.below(exports.len())];
            self.enter(function - imports);
            while !self.stack.is_empty() {
                if self.step() == Next::Stop {
                    return;
                }
            }
        }
    }

    fn cfg(&self, function: usize) -> &Cfg {
        &self.program.functions[function].cfg
    }

    fn enter(&mut self, function: usize) {
        self.counts[function].entries += 1;
        self.events
            .push(Event::Enter(self.program.functions[function].id));
        self.stack.push(Activation {
            function,
            block: self.cfg(function).graph.root(),
            path: Vec::new(),
        });
    }

    /// Executes one block of the innermost activation. Returns the next transfer of control.
    fn step(&mut self) -> Next {
        let Activation {
            function, block, ..
        } = *self.stack.last().unwrap();
        self.stack.last_mut().unwrap().path.push(block);
        self.blocks += 1;
        let cfg = self.cfg(function);
        let end = cfg.blocks[block].end;
        let ways = cfg.graph.out_edges(block).to_vec();
        let stops = self.blocks >= self.options.blocks;
        if let BlockEnd::Call(callee) = end {
            let behind = self.way(function, &ways, EdgeKind::CallReturn);
            let behind = behind.map(|edge| self.cfg(function).graph.to(edge));
            let behind = behind.filter(|&to| to != self.cfg(function).graph.exit());
            self.node(behind, true);
            return if stops || self.stack.len() >= self.options.depth {
                Next::Stop
            } else {
                self.call(callee)
            };
        }
        if stops || ways.is_empty() {
            self.node(None, false);
            return Next::Stop;
        }
        let edge = ways[self.random.below(ways.len())];
        self.take(function, edge);
        let cfg = self.cfg(function);
        let (to, back) = (cfg.graph.to(edge), cfg.edges[edge].back);
        if to == cfg.graph.exit() {
            self.node(None, false);
            self.leave();
            return match end {
                BlockEnd::TailCall(callee) => self.call(callee),
                _ => self.comes_back(false),
            };
        }
        if cfg.blocks[to].kind == BlockKind::Code {
            let cuts = if self.options.regular {
                let mut edges = cfg.graph.in_edges(to).iter();
                edges.any(|&edge| cfg.edges[edge].back)
            } else {
                back || self.random.below(4) == 0
            };
            if cuts {
                self.node(Some(to), false);
            }
            self.stack.last_mut().unwrap().block = to;
            return Next::Go;
        }
        self.node(Some(to), false);
        self.dispatch(to)
    }

    /// Passes an exception on until a vertex handles it.
    fn dispatch(&mut self, mut vertex: BlockId) -> Next {
        let function = self.stack.last().unwrap().function;
        loop {
            let ways = self.cfg(function).graph.out_edges(vertex).to_vec();
            let edge = ways[self.random.below(ways.len())];
            self.take(function, edge);
            let cfg = self.cfg(function);
            let to = cfg.graph.to(edge);
            if to == cfg.graph.exit() {
                let throws = cfg.edges[edge].kind == EdgeKind::Unwind;
                self.leave();
                return self.comes_back(throws);
            }
            if cfg.blocks[to].kind == BlockKind::Code {
                self.stack.last_mut().unwrap().block = to;
                return Next::Go;
            }
            vertex = to;
        }
    }

    fn call(&mut self, callee: Callee) -> Next {
        let imports = self.program.imports.len();
        let callees: Vec<usize> = match callee {
            Callee::Direct(function) => vec![function.index()],
            Callee::Indirect { ty, .. } => {
                let types = &self.program.types;
                let ty_of = |function: FuncId| match self.program.function(function) {
                    Some(function) => function.ty,
                    None => self.program.imports[function.index()].ty,
                };
                let all = (0..imports + self.program.functions.len()).map(FuncId::new);
                let taken = all.filter(|&function| self.program.address_taken.contains(function));
                let same = taken.filter(|&function| types[ty_of(function)] == types[ty]);
                same.map(|function| function.index()).collect()
            }
        };
        if callees.is_empty() {
            return Next::Stop;
        }
        let callee = callees[self.random.below(callees.len())];
        if callee < imports {
            return self.comes_back(false);
        }
        self.enter(callee - imports);
        Next::Go
    }

    /// Continues after a call that returned or threw an exception.
    fn comes_back(&mut self, mut throws: bool) -> Next {
        while let Some(&Activation {
            function, block, ..
        }) = self.stack.last()
        {
            let ways = self.cfg(function).graph.out_edges(block).to_vec();
            let kind = if throws {
                EdgeKind::CallThrow
            } else {
                EdgeKind::CallReturn
            };
            let Some(edge) = self.way(function, &ways, kind) else {
                panic!("a call without {kind:?}")
            };
            self.take(function, edge);
            let to = self.cfg(function).graph.to(edge);
            if throws {
                return self.dispatch(to);
            }
            if to != self.cfg(function).graph.exit() {
                self.stack.last_mut().unwrap().block = to;
                return Next::Go;
            }
            self.leave();
            throws = false;
        }
        if throws { Next::Stop } else { Next::Go }
    }

    fn way(&self, function: usize, ways: &[EdgeId], kind: EdgeKind) -> Option<EdgeId> {
        ways.iter()
            .copied()
            .find(|&edge| self.cfg(function).edges[edge].kind == kind)
    }

    fn take(&mut self, function: usize, edge: EdgeId) {
        self.counts[function].edges[edge.index()] += 1;
    }

    fn leave(&mut self) {
        self.events.push(Event::Leave);
        self.stack.pop();
    }

    /// Adds the node that the innermost activation has executed.
    fn node(&mut self, next: Option<BlockId>, calls: bool) {
        let top = self.stack.last_mut().unwrap();
        let path = std::mem::take(&mut top.path);
        let function = self.program.functions[top.function].id;
        let node = match self.known.get(&(function, path.clone(), next, calls)) {
            Some(&node) => node,
            None => {
                let node = self.nodes.push(Node {
                    function,
                    blocks: path.clone().into(),
                    left_out: 0,
                });
                self.continuations.push(Continuation { next, calls });
                self.known.insert((function, path, next, calls), node);
                node
            }
        };
        self.events.push(Event::Node(node));
    }

    fn parts(mut self) -> Parts {
        let mut frames = Vec::new();
        let mut open: Vec<BTreeMap<BlockId, u64>> = vec![BTreeMap::new(); self.counts.len()];
        for activation in self.stack.iter().rev() {
            *open[activation.function]
                .entry(activation.block)
                .or_default() += 1;
            let function = &self.program.functions[activation.function];
            let block = &function.cfg.blocks[activation.block];
            let (offset, standing) = if activation.block == function.cfg.graph.root() {
                (function.body.start, Standing::Before)
            } else {
                (block.offsets.start, Standing::At)
            };
            frames.push(Frame {
                function: function.id,
                offset,
                standing,
            });
        }
        for (counts, open) in self.counts.iter_mut().zip(open) {
            counts.open = open.into_iter().collect();
        }
        let mut parts = Parts {
            events: self.events,
            segment: self.options.segment,
            directory: Directory {
                nodes: self.nodes,
                continuations: self.continuations,
                ..Directory::default()
            },
            segments: Vec::new(),
            places: Vec::new(),
            grammars: false,
            counts: Counts {
                functions: self.counts,
            },
            frames,
        };
        parts.build();
        parts
    }
}
