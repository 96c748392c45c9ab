//! Generates runs, and computes their properties by definition.

use afterimage_ids::{BlockId, FuncId, NodeId, PrimaryMap, RuleId};
use afterimage_wpp::{Builder, Kind, Limits, Node, Root, Segment, Shape, Symbol};
use proptest::collection::vec;
use proptest::prelude::*;

/// An event of the builder's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Node(NodeId, u64),
    Enter(FuncId),
    Leave,
}

/// Nodes, and a run that executes them.
#[derive(Clone, Debug)]
pub struct Run {
    pub nodes: PrimaryMap<NodeId, Node>,
    pub shapes: Vec<Shape>,
    pub events: Vec<Event>,
}

/// An activation of the expanded run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation {
    pub function: FuncId,
    /// The time of its first block: the number of blocks executed before, plus 1.
    pub entered: u64,
    /// The number of blocks executed before its end, if it ended.
    pub ended: Option<u64>,
    /// The number of activations around it.
    pub depth: usize,
}

/// An execution of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    pub node: NodeId,
    pub start: u64,
    pub length: u64,
    /// The open activations, as positions in [`Naive::activations`].
    pub stack: Vec<usize>,
}

/// The whole run, expanded.
#[derive(Clone, Debug, Default)]
pub struct Naive {
    pub visits: Vec<Visit>,
    /// The activations, in the order in which they begin.
    pub activations: Vec<Activation>,
    pub length: u64,
}

impl Run {
    /// Expands the whole run.
    pub fn naive(&self) -> Naive {
        let mut naive = Naive::default();
        let mut stack = Vec::new();
        for &event in &self.events {
            match event {
                Event::Node(node, times) => {
                    let length = self.nodes[node].length();
                    for _ in 0..times {
                        naive.visits.push(Visit {
                            node,
                            start: naive.length + 1,
                            length,
                            stack: stack.clone(),
                        });
                        naive.length += length;
                    }
                }
                Event::Enter(function) => {
                    let depth = stack.len();
                    stack.push(naive.activations.len());
                    naive.activations.push(Activation {
                        function,
                        entered: naive.length + 1,
                        ended: None,
                        depth,
                    });
                }
                Event::Leave => {
                    let last = stack.pop().unwrap();
                    naive.activations[last].ended = Some(naive.length);
                }
            }
        }
        naive
    }

    /// Returns the segments that the builder makes for this run.
    pub fn segments(&self, limit: usize) -> Vec<Segment> {
        let mut builder = Builder::new(Limits { symbols: limit });
        for (number, shape) in self.shapes.iter().enumerate() {
            assert_eq!(
                builder.define(shape.clone()),
                NodeId::from_u32(number as u32)
            );
        }
        let mut segments = Vec::new();
        for &event in &self.events {
            match event {
                Event::Node(node, times) => builder.node(node, times),
                Event::Enter(function) => builder.enter(function),
                Event::Leave => builder.leave(),
            }
            segments.extend(builder.take_segment());
        }
        segments.extend(builder.finish());
        assert!(builder.finish().is_none());
        segments
    }

    /// Returns the events, with each execution as a separate event.
    pub fn single(&self) -> Vec<Event> {
        let mut single = Vec::new();
        for &event in &self.events {
            match event {
                Event::Node(node, times) => {
                    single.extend((0..times).map(|_| Event::Node(node, 1)));
                }
                other => single.push(other),
            }
        }
        single
    }
}

/// Returns the events that a segment represents, by definition.
pub fn expand(segment: &Segment) -> Vec<Event> {
    let mut events = Vec::new();
    for item in &segment.root {
        match *item {
            Root::Run(symbol) => expand_symbol(segment, symbol, &mut events),
            Root::Enter(function) => events.push(Event::Enter(function)),
            Root::Leave => events.push(Event::Leave),
        }
    }
    events
}

fn expand_symbol(segment: &Segment, symbol: Symbol, events: &mut Vec<Event>) {
    let Some(rule) = symbol.as_rule() else {
        events.push(Event::Node(symbol.as_node().unwrap(), 1));
        return;
    };
    expand_rule(segment, rule, events);
}

fn expand_rule(segment: &Segment, rule: RuleId, events: &mut Vec<Event>) {
    let (times, call) = match segment.grammar.rules[rule].kind {
        Kind::Sequence => (1, None),
        Kind::Repeat(times) => (times, None),
        Kind::Call(function) => (1, Some(function)),
    };
    events.extend(call.map(Event::Enter));
    for _ in 0..times {
        for &symbol in segment.grammar.symbols_of(rule) {
            expand_symbol(segment, symbol, events);
        }
    }
    events.extend(call.map(|_| Event::Leave));
}

/// A statement of a made-up function.
#[derive(Clone, Debug)]
enum Stmt {
    Path(u64),
    Loop(Vec<Stmt>),
    Either(Vec<Stmt>, Vec<Stmt>),
    Call(usize),
}

fn stmts() -> impl Strategy<Value = Vec<Stmt>> {
    let leaf = prop_oneof![
        3 => (1..5u64).prop_map(Stmt::Path),
        1 => (0..4usize).prop_map(Stmt::Call),
    ];
    let stmt = leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            2 => vec(inner.clone(), 1..4).prop_map(Stmt::Loop),
            1 => (vec(inner.clone(), 0..3), vec(inner, 0..3)).prop_map(|(a, b)| Stmt::Either(a, b)),
        ]
    });
    vec(stmt, 1..6)
}

/// A statement with numbered paths, within its loops.
enum Code {
    Path(NodeId),
    Loop(Vec<Code>),
    Either(Vec<Code>, Vec<Code>),
    Call(usize),
}

struct Nodes {
    nodes: PrimaryMap<NodeId, Node>,
    shapes: Vec<Shape>,
}

impl Nodes {
    fn new() -> Self {
        Self {
            nodes: PrimaryMap::new(),
            shapes: Vec::new(),
        }
    }

    fn define(&mut self, function: usize, shape: Shape) -> NodeId {
        self.shapes.push(shape.clone());
        self.nodes.push(Node {
            function: FuncId::from_u32(function as u32),
            blocks: (0..shape.length as u32).map(BlockId::from_u32).collect(),
            left_out: 0,
        })
    }

    fn number(&mut self, function: usize, stmts: &[Stmt], loops: &mut Vec<u32>) -> Vec<Code> {
        let inside = !loops.is_empty();
        let mut first = inside;
        stmts
            .iter()
            .map(|stmt| {
                let header = std::mem::replace(&mut first, false);
                match stmt {
                    Stmt::Path(length) => Code::Path(self.define(
                        function,
                        Shape {
                            length: *length,
                            loops: loops.as_slice().into(),
                            header,
                        },
                    )),
                    Stmt::Loop(body) => {
                        loops.push(self.shapes.len() as u32);
                        let body = self.number(function, body, loops);
                        loops.pop();
                        Code::Loop(body)
                    }
                    Stmt::Either(one, other) => {
                        // According to the shapes, a branch does not begin an iteration.
                        let one = self.number_inner(function, one, loops);
                        let other = self.number_inner(function, other, loops);
                        Code::Either(one, other)
                    }
                    Stmt::Call(callee) => Code::Call(*callee),
                }
            })
            .collect()
    }

    fn number_inner(&mut self, function: usize, stmts: &[Stmt], loops: &mut Vec<u32>) -> Vec<Code> {
        let from = self.shapes.len();
        let code = self.number(function, stmts, loops);
        let depth = loops.len();
        for shape in &mut self.shapes[from..] {
            if shape.loops.len() == depth {
                shape.header = false;
            }
        }
        code
    }
}

struct Interpreter<'a> {
    functions: &'a [Vec<Code>],
    choices: std::iter::Cycle<std::slice::Iter<'a, u8>>,
    events: Vec<Event>,
    fuel: usize,
    depth: usize,
}

impl Interpreter<'_> {
    fn call(&mut self, function: usize) -> Option<()> {
        self.fuel = self.fuel.checked_sub(1)?;
        if self.depth > 40 {
            return Some(());
        }
        self.depth += 1;
        self.events
            .push(Event::Enter(FuncId::from_u32(function as u32)));
        let functions = self.functions;
        self.block(&functions[function])?;
        self.events.push(Event::Leave);
        self.depth -= 1;
        Some(())
    }

    fn block(&mut self, code: &[Code]) -> Option<()> {
        for code in code {
            self.fuel = self.fuel.checked_sub(1)?;
            match code {
                Code::Path(node) => {
                    let times = match self.choice() {
                        250.. => 1_000,
                        240.. => 3,
                        _ => 1,
                    };
                    self.events.push(Event::Node(*node, times));
                }
                Code::Loop(body) => {
                    for _ in 0..self.choice() % 20 {
                        self.block(body)?;
                    }
                }
                Code::Either(one, other) => {
                    let taken = if self.choice().is_multiple_of(3) {
                        one
                    } else {
                        other
                    };
                    self.block(taken)?;
                }
                Code::Call(callee) => self.call(callee % self.functions.len())?,
            }
        }
        Some(())
    }

    fn choice(&mut self) -> u8 {
        *self.choices.next().unwrap()
    }
}

/// Generates runs of made-up programs, which may end anywhere.
pub fn programs(fuel: usize) -> impl Strategy<Value = Run> {
    (vec(stmts(), 1..4), vec(any::<u8>(), 1..60), 1..fuel).prop_map(|(bodies, choices, fuel)| {
        let mut nodes = Nodes::new();
        let functions: Vec<_> = bodies
            .iter()
            .enumerate()
            .map(|(function, body)| nodes.number(function, body, &mut Vec::new()))
            .collect();
        let mut interpreter = Interpreter {
            functions: &functions,
            choices: choices.iter().cycle(),
            events: Vec::new(),
            fuel,
            depth: 0,
        };
        while interpreter.call(0).is_some() {}
        Run {
            nodes: nodes.nodes,
            shapes: nodes.shapes,
            events: interpreter.events,
        }
    })
}

/// Generates runs without any structure. Shapes and events are random, and activations may be
/// empty.
pub fn chaos(events: usize) -> impl Strategy<Value = Run> {
    let shape = (0..2usize, 1..5u64, vec(0..3u32, 0..4), any::<bool>());
    (
        vec(shape, 1..8),
        vec((0..10u8, any::<u32>(), any::<u8>()), 1..events),
    )
        .prop_map(|(shapes, choices)| {
            let mut nodes = Nodes::new();
            for (function, length, loops, header) in shapes {
                nodes.define(
                    function,
                    Shape {
                        length,
                        loops: loops.into(),
                        header,
                    },
                );
            }
            let mut stack = Vec::new();
            let mut events = Vec::new();
            for (what, which, times) in choices {
                match what {
                    0 => {
                        stack.push(which % 2);
                        events.push(Event::Enter(FuncId::from_u32(which % 2)));
                    }
                    1 if !stack.is_empty() => {
                        stack.pop();
                        events.push(Event::Leave);
                    }
                    _ => {
                        let own: Vec<_> = nodes
                            .nodes
                            .iter()
                            .filter(|(_, node)| stack.last() == Some(&node.function.as_u32()))
                            .map(|(id, _)| id)
                            .collect();
                        if !own.is_empty() {
                            let node = own[which as usize % own.len()];
                            let times = if times > 230 {
                                u64::from(times) - 230
                            } else {
                                1
                            };
                            events.push(Event::Node(node, times));
                        }
                    }
                }
            }
            Run {
                nodes: nodes.nodes,
                shapes: nodes.shapes,
                events,
            }
        })
}

/// Generates both kinds of runs.
pub fn runs(size: usize) -> impl Strategy<Value = Run> {
    prop_oneof![2 => programs(size), 1 => chaos(size)]
}
