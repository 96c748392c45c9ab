//! The grammar of a run, made while it runs.

pub(crate) mod lists;
mod loops;
pub(crate) mod tidy;

use afterimage_ids::{FuncId, NodeId};

use self::lists::Lists;
use self::loops::{LoopNest, Loops};
use crate::consing::Consing;
use crate::measures::tally;
use crate::{Root, Segment, Shape, Symbol};

/// When a segment is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many rules and symbols a segment has room for.
    pub symbols: usize,
}

impl Default for Limits {
    /// A quarter of a million: some 8 MB while the segment grows, and a tenth of a second to open it. Of real programs' paths eight times as
    /// many are not stored in less.
    fn default() -> Self {
        Self { symbols: 250_000 }
    }
}

/// Makes segments of the sequence of paths that a run's activations execute.
///
/// It does not search for what recurs, as Sequitur or Re-Pair do; a program's structure says where to look. Every
/// activation becomes a rule when it ends, every iteration of a loop when the next begins, every loop when it is left, and equal rules are
/// made once (hash-consing). So the unique path traces of Zhang and Gupta (2001) come out by themselves. What is
/// long beyond that, such as an interpreter's main loop, is folded by locally consistent parsing.
///
/// A path takes O(1) time, amortised. Memory is bounded by the [`Limits`] and by how many activations and loops are open.
pub struct Builder {
    limits: Limits,
    nodes: Vec<NodeFacts>,
    loops: Loops,
    rules: Consing,
    lists: Lists,
    /// The open activations, the outermost first.
    frames: Vec<Frame>,
    /// Where the innermost activation is in its loops. Each activation, and the host around all, has a list for
    /// itself and for each of these loops two: the loop's iterations, and what the current one has done.
    place: LoopNest,
    before: u64,
    length: u64,
    open: Vec<FuncId>,
    root: Vec<Root>,
}

/// What has to be known of a node.
#[derive(Clone, Copy)]
struct NodeFacts {
    length: u64,
    place: LoopNest,
    header: bool,
}

/// An open activation.
struct Frame {
    function: FuncId,
    /// It began in this segment.
    begun: bool,
    /// Where its caller is.
    caller: LoopNest,
}

impl Builder {
    /// Nothing has run yet.
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

    /// The run goes on after so many blocks, with these activations open, the outermost first.
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

    /// Makes a node known that has a number already.
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

    /// Makes a node known. Nodes are numbered from 0 in this order.
    pub fn define(&mut self, shape: Shape) -> NodeId {
        let known = self.facts(&shape);
        self.nodes.push(known);
        NodeId::from_u32(self.nodes.len() as u32 - 1)
    }

    /// The innermost activation executes a node so many times in a row.
    ///
    /// # Panics
    /// If the node was not defined, or the run has 2^64 blocks.
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
                // All but the last are complete iterations.
                self.lists.push(symbol, times - 1, &mut self.rules);
                self.lists.close_and_open(&mut self.rules);
            }
            self.lists.push(symbol, 1, &mut self.rules);
        } else {
            self.lists.push(symbol, times, &mut self.rules);
        }
    }

    /// An activation of a function begins.
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

    /// The innermost activation ends.
    ///
    /// # Panics
    /// If none is open.
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

    /// How many blocks were executed.
    pub fn time(&self) -> u64 {
        self.before + self.length
    }

    /// A segment, if the limits say that it is complete. To be asked often: the segment grows until then.
    pub fn take_segment(&mut self) -> Option<Segment> {
        let size = self.rules.size() + self.lists.len() + self.root.len();
        (size >= self.limits.symbols).then(|| self.cut()).flatten()
    }

    /// What has not been taken yet as a last segment, if there is anything. The run may go on after that.
    pub fn finish(&mut self) -> Option<Segment> {
        self.cut()
    }

    /// The innermost activation goes to another place. Whether it comes out of inner loops, if any, into loops where it has
    /// been.
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

    /// Ends loops until the innermost activation is at this place around its own.
    fn leave_loops(&mut self, place: LoopNest) {
        while self.place != place {
            self.place = self.loops.parent(self.place);
            // The iteration, then the loop.
            for _ in 0..2 {
                if let Some((symbol, count)) = self.lists.close(&mut self.rules) {
                    self.lists.push(symbol, count, &mut self.rules);
                }
            }
        }
    }

    /// Ends the segment: all lists are closed, the innermost first.
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
