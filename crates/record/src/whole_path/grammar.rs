//! Builds segments of a grammar from paths.

use afterimage_ids::{BlockId, FuncId, NodeId, PrimaryMap};
use afterimage_paths::{ExecutedPath, Sink};
use afterimage_wpp::codec::NodeContext;
use afterimage_wpp::{Builder, Contexts, Continuation, Limits, Node, Segment, Shape};

/// Builds a grammar from the paths it receives, and passes on each segment as it is completed.
pub struct GrammarSink<F> {
    builder: Builder,
    nodes: PrimaryMap<NodeId, Node>,
    continuations: Vec<Continuation>,
    contexts: Contexts,
    segment: F,
    /// The number of paths since the last check for a complete segment.
    paths: u32,
}

/// The number of paths between two checks for a complete segment.
const ASK: u32 = 1 << 12;

/// The nodes of a run, and the facts needed to code them.
#[derive(Debug, Default)]
pub struct Nodes {
    /// The nodes of the run, by number.
    pub nodes: PrimaryMap<NodeId, Node>,
    /// The continuation of each node.
    pub continuations: Vec<Continuation>,
}

impl<F: FnMut(Segment, &[NodeContext])> GrammarSink<F> {
    /// Creates a sink that passes each segment to `segment`, with the contexts of the nodes so far.
    pub fn new(limits: Limits, segment: F) -> Self {
        Self {
            builder: Builder::new(limits),
            nodes: PrimaryMap::new(),
            continuations: Vec::new(),
            contexts: Contexts::default(),
            segment,
            paths: 0,
        }
    }

    /// Ends the run. Passes on the last segment, and returns the nodes.
    pub fn finish(mut self) -> Nodes {
        if let Some(segment) = self.builder.finish() {
            (self.segment)(segment, self.contexts.contexts());
        }
        Nodes {
            nodes: self.nodes,
            continuations: self.continuations,
        }
    }

    /// Defines a node for an omitted stretch.
    pub(super) fn define_gap(
        &mut self,
        function: FuncId,
        blocks: u64,
        loops: &[BlockId],
    ) -> NodeId {
        let nowhere = Continuation::default();
        self.continuations.push(nowhere);
        self.contexts.push(function, nowhere);
        self.nodes.push(Node {
            function,
            blocks: Box::default(),
            left_out: blocks,
        });
        self.builder.define(Shape {
            length: blocks,
            loops: loops.iter().map(|b| b.as_u32()).collect(),
            header: false,
        })
    }

    #[cold]
    fn ask(&mut self) {
        self.paths = 0;
        if let Some(segment) = self.builder.take_segment() {
            (self.segment)(segment, self.contexts.contexts());
        }
    }
}

impl<F: FnMut(Segment, &[NodeContext])> Sink for GrammarSink<F> {
    fn define(&mut self, path: ExecutedPath<'_>) -> NodeId {
        let continuation = Continuation {
            next: path.next,
            calls: path.calls,
        };
        self.continuations.push(continuation);
        self.contexts.push(path.function, continuation);
        self.nodes.push(Node {
            function: path.function,
            blocks: path.blocks.into(),
            left_out: 0,
        });
        self.builder.define(Shape {
            length: path.blocks.len() as u64,
            loops: path.loops.iter().map(|b| b.as_u32()).collect(),
            header: path.header,
        })
    }

    #[inline]
    fn path(&mut self, node: NodeId) {
        self.builder.node(node, 1);
        self.paths += 1;
        if self.paths == ASK {
            self.ask();
        }
    }

    #[inline]
    fn enter(&mut self, function: FuncId) {
        self.builder.enter(function);
    }

    #[inline]
    fn leave(&mut self) {
        self.builder.leave();
    }
}
