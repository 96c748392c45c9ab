//! Builds the grammar of a run during the run.

pub(crate) mod lists;
mod loops;
pub(crate) mod tidy;

use afterimage_ids::{FuncId, NodeId};

use self::lists::Lists;
use self::loops::{LoopNest, Loops};
use crate::consing::Consing;
use crate::measures::tally;
use crate::{Root, Segment, Shape, Symbol};

/// The limits at which a segment is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of rules and symbols that a segment may contain.
    pub symbols: usize,
}

impl Default for Limits {
    /// A quarter of a million symbols take about 8 MB while the segment grows, and a tenth of a
    /// second to open. On the paths of real programs, an eight times larger limit saves no space.
    fn default() -> Self {
        Self { symbols: 250_000 }
    }
}

/// Builds segments from the sequence of paths that a run's activations execute.
///
/// A builder does not search for repetitions, as Sequitur or Re-Pair do, because a program's
/// structure shows where they are. Every activation becomes a rule when it ends, every iteration of
/// a loop when the next begins, and every loop when it is left. Equal rules are created once
/// (hash-consing). The unique path traces of Zhang and Gupta (2001) result from this without
/// further work. Longer sequences, such as an interpreter's main loop, are folded by locally
/// consistent parsing.
///
/// Adding a path takes O(1) amortised time. Memory is bounded by the [`Limits`] and the number of
/// open activations and loops.
pub struct Builder {
    limits: Limits,
    nodes: Vec<NodeFacts>,
    loops: Loops,
    rules: Consing,
    lists: Lists,
    /// The open activations, outermost first.
    frames: Vec<Frame>,
    /// The loops around the innermost activation's current position. Each activation has its own
    /// list, and two lists for each of these loops. One list contains the iterations, and the other
    /// contains the current iteration. The host has the same lists.
    place: LoopNest,
    before: u64,
    length: u64,
    open: Vec<FuncId>,
    root: Vec<Root>,
}

/// The facts about a node that the builder keeps.
#[derive(Clone, Copy)]
struct NodeFacts {
    length: u64,
    place: LoopNest,
    header: bool,
}

/// An open activation.
struct Frame {
    function: FuncId,
    /// Whether the activation began in this segment.
    begun: bool,
    /// The loops around the caller's current position.
    caller: LoopNest,
}

impl Builder {
    /// Creates a builder for a run that has not begun.
    pub fn new(limits: Limits) -> Self {
        let mut lists = Lists::default();
        lists.open();
        Self {
            limits,
            nodes: Vec::new(),
            loops: Loops::default(),
            rules: Consing::default(),
            lists,
            frames: Vec::new(),
            place: Loops::OUTSIDE,
            before: 0,
            length: 0,
            open: Vec::new(),
            root: Vec::new(),
        }
    }

    /// Creates a builder for a run that continues after `before` blocks, with these activations
    /// open, outermost first.
    pub fn resumed(limits: Limits, before: u64, open: Vec<FuncId>) -> Self {
        let mut builder = Self::new(limits);
        for &function in &open {
            builder.frames.push(Frame {
                function,
                begun: false,
                caller: Loops::OUTSIDE,
            });
            builder.lists.open();
        }
        builder.before = before;
        builder.open = open;
        builder
    }

    /// Defines a node under the given number.
    pub fn define_as(&mut self, node: NodeId, shape: Shape) {
        let position = node.as_u32() as usize;
        if position >= self.nodes.len() {
            let unknown = NodeFacts {
                length: 0,
                place: Loops::OUTSIDE,
                header: false,
            };
            self.nodes.resize(position + 1, unknown);
        }
        self.nodes[position] = self.facts(&shape);
    }

    fn facts(&mut self, shape: &Shape) -> NodeFacts {
        NodeFacts {
            length: shape.length,
            place: self.loops.place(&shape.loops),
            header: shape.header && !shape.loops.is_empty(),
        }
    }

    /// Defines a node. Nodes are numbered from 0 in the order of these calls.
    pub fn define(&mut self, shape: Shape) -> NodeId {
        let known = self.facts(&shape);
        self.nodes.push(known);
        NodeId::from_u32(self.nodes.len() as u32 - 1)
    }

    /// Appends `times` consecutive executions of a node by the innermost activation.
    ///
    /// # Panics
    /// Panics if the node was not defined.
    #[inline]
    pub fn node(&mut self, node: NodeId, times: u64) {
        let NodeFacts {
            length,
            place,
            header,
        } = self.nodes[node.as_u32() as usize];
        if times == 0 {
            return;
        }
        self.length += length * times;
        let inside = place == self.place || self.go(place);
        let symbol = Symbol::node(node);
        if header {
            if inside {
                self.lists.close_and_open(&mut self.rules);
            }
            if times > 1 {
                // All executions but the last are complete iterations.
                self.lists.push(symbol, times - 1, &mut self.rules);
                self.lists.close_and_open(&mut self.rules);
            }
            self.lists.push(symbol, 1, &mut self.rules);
        } else {
            self.lists.push(symbol, times, &mut self.rules);
        }
    }

    /// Begins an activation of a function.
    #[inline]
    pub fn enter(&mut self, function: FuncId) {
        self.frames.push(Frame {
            function,
            begun: true,
            caller: self.place,
        });
        self.place = Loops::OUTSIDE;
        self.lists.open();
    }

    /// Ends the innermost activation.
    ///
    /// # Panics
    /// Panics if no activation is open.
    pub fn leave(&mut self) {
        let frame = self.frames.pop().expect("an activation is open");
        self.leave_loops(Loops::OUTSIDE);
        self.place = frame.caller;
        if frame.begun {
            let call = self.lists.close_call(frame.function, &mut self.rules);
            self.lists.push(call, 1, &mut self.rules);
        } else {
            if let Some((symbol, count)) = self.lists.close(&mut self.rules) {
                let run = self.rules.repeat(symbol, count);
                self.root.push(Root::Run(run));
            }
            self.root.push(Root::Leave);
        }
    }

    /// Returns the number of blocks executed.
    pub fn time(&self) -> u64 {
        self.before + self.length
    }

    /// Returns the current segment if it is complete according to the limits. Callers should call
    /// this often, because a segment keeps growing until it is taken.
    pub fn take_segment(&mut self) -> Option<Segment> {
        let size = self.rules.size() + self.lists.len() + self.root.len();
        (size >= self.limits.symbols).then(|| self.cut()).flatten()
    }

    /// Returns everything that has not been taken yet as a last segment, or `None` if there is
    /// nothing. The run may continue afterwards.
    pub fn finish(&mut self) -> Option<Segment> {
        self.cut()
    }

    /// Moves the innermost activation to another loop nest. Returns `true` if the move enters no
    /// loop. The move may leave loops.
    #[cold]
    fn go(&mut self, place: LoopNest) -> bool {
        let common = self.loops.common(self.place, place);
        self.leave_loops(common);
        for _ in self.loops.depth(common)..self.loops.depth(place) {
            self.lists.open();
            self.lists.open();
        }
        self.place = place;
        common == place
    }

    /// Ends loops until the innermost activation is in the given loop nest, which must surround the
    /// current loop nest.
    fn leave_loops(&mut self, place: LoopNest) {
        while self.place != place {
            self.place = self.loops.parent(self.place);
            // End the iteration first, then the loop.
            for _ in 0..2 {
                if let Some((symbol, count)) = self.lists.close(&mut self.rules) {
                    self.lists.push(symbol, count, &mut self.rules);
                }
            }
        }
    }

    /// Ends the segment by closing all lists, innermost first.
    fn cut(&mut self) -> Option<Segment> {
        let ended = self.root.len();
        let mut function = self.frames.len();
        loop {
            self.leave_loops(Loops::OUTSIDE);
            if let Some((symbol, count)) = self.lists.close(&mut self.rules) {
                let run = self.rules.repeat(symbol, count);
                self.root.push(Root::Run(run));
            }
            if function == 0 {
                break;
            }
            function -= 1;
            let frame = &mut self.frames[function];
            if frame.begun {
                self.root.push(Root::Enter(frame.function));
            }
            frame.begun = false;
            self.place = std::mem::take(&mut frame.caller);
        }
        self.root[ended..].reverse();
        for _ in 0..=self.frames.len() {
            self.lists.open();
        }
        if self.root.is_empty() {
            return None;
        }

        let mut root = std::mem::take(&mut self.root);
        let grammar = tidy::tidy(self.rules.grammar(), &mut root);
        self.rules.clear();
        let open = self.frames.iter().map(|frame| frame.function).collect();
        let (node_counts, call_counts) =
            tally(&grammar, &root).expect("no node and no call is counted 2^64 times");
        let segment = Segment {
            before: self.before,
            length: self.length,
            open: std::mem::replace(&mut self.open, open),
            root,
            grammar,
            node_counts,
            call_counts,
        };
        self.before += self.length;
        self.length = 0;
        Some(segment)
    }
}
