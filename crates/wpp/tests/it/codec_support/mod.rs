//! Provides sources of paths with known entropy, and a simple grammar builder.

use afterimage_ids::{BlockId, FuncId, NodeId, PrimaryMap};
use afterimage_wpp::codec::NodeContext;
use afterimage_wpp::{Builder, Limits, Node, Root, Segment, Shape, Symbol};
use std::collections::HashMap;
use std::ops::Range;

/// The generator xorshift64*.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Terminals, their information in bits according to the source, and the known properties of the
/// nodes.
pub struct Sample {
    pub path: Vec<u32>,
    pub bits: f64,
    pub contexts: Vec<NodeContext>,
}

/// Returns a sample from a source of order 1. It has points with two to five paths each, which lead
/// to other points. The first path is taken with the probability `skew`; the other paths share the
/// rest geometrically.
pub fn markov(points: u32, skew: f64, length: usize, seed: u64) -> Sample {
    let mut random = Random(seed);
    let mut first = Vec::new();
    let mut contexts = Vec::new();
    for start in 0..points {
        first.push(contexts.len() as u32);
        for _ in 0..2 + random.below(4) {
            // Most paths lead to a nearby point.
            let next = if random.below(4) > 0 {
                (start + random.below(6) as u32) % points
            } else {
                random.below(points.into()) as u32
            };
            contexts.push(NodeContext { next, calls: false });
        }
    }
    first.push(contexts.len() as u32);
    let (mut path, mut bits, mut at) = (Vec::new(), 0.0, 0usize);
    // Nodes are numbered in the order of first execution.
    let mut numbers = HashMap::new();
    let mut renamed = Vec::new();
    while path.len() < length {
        let (low, high) = (first[at], first[at + 1]);
        let (mut choice, mut p) = (low, skew);
        let mut left = 1.0;
        while choice + 1 < high && random.unit() >= p / left {
            left -= p;
            p = left * skew.min(0.7);
            choice += 1;
        }
        bits -= (if choice + 1 < high { p } else { left }).log2();
        let context = contexts[choice as usize];
        let fresh = numbers.len() as u32;
        let node = *numbers.entry(choice).or_insert_with(|| {
            renamed.push(context);
            fresh
        });
        path.push(node);
        at = context.next as usize;
    }
    Sample {
        path,
        bits,
        contexts: renamed,
    }
}

/// Returns a run of an interpreter with one path per operation. The interpreted program has basic
/// blocks of operations, which end with branches of the given probability.
pub fn interpreter(operations: u32, skew: f64, length: usize, seed: u64) -> Sample {
    let mut random = Random(seed);
    let blocks: Vec<(Vec<u32>, [usize; 2])> = (0..80)
        .map(|at: usize| {
            let count = 2 + random.below(8);
            let body = (0..count)
                .map(|_| (random.unit().powi(2) * f64::from(operations)) as u32)
                .collect();
            (body, [(at + 1) % 80, (random.next() % 80) as usize])
        })
        .collect();
    let (mut path, mut bits, mut at) = (Vec::new(), 0.0, 0);
    while path.len() < length {
        path.extend(&blocks[at].0);
        let taken = random.unit() < skew;
        bits -= (if taken { skew } else { 1.0 - skew }).log2();
        at = blocks[at].1[usize::from(!taken)];
    }
    let contexts = (0..operations)
        .map(|_| NodeContext {
            next: 0,
            calls: false,
        })
        .collect();
    Sample {
        path,
        bits,
        contexts,
    }
}

/// Returns the path as a plain sequence, without any rules.
pub fn flat(path: &[u32]) -> Segment {
    let root = path
        .iter()
        .map(|&node| Root::Run(Symbol::node(NodeId::from_u32(node))))
        .collect();
    Segment {
        root,
        ..Segment::default()
    }
}

/// Returns the builder's segment for the path if every node is an iteration of one loop.
pub fn built(path: &[u32]) -> Segment {
    let mut builder = Builder::new(Limits {
        symbols: usize::MAX,
    });
    for _ in 0..=path.iter().copied().max().unwrap_or(0) {
        builder.define(Shape {
            length: 1,
            loops: Box::new([0]),
            header: true,
        });
    }
    path.iter()
        .for_each(|&node| builder.node(NodeId::from_u32(node), 1));
    builder.finish().unwrap_or_default()
}

/// A statement of a random program.
enum Statement {
    Block(u32),
    /// A branch, with the probability of the first side, and both sides.
    If(f64, Vec<Statement>, Vec<Statement>),
    /// A loop, with its header, the number of iterations, and the body.
    Loop(u32, Trips, Vec<Statement>),
    /// A call, with the block after it and the callee.
    Call(u32, usize),
}

#[derive(Clone, Copy)]
enum Trips {
    Fixed(u64),
    /// The number of iterations is uniformly distributed from the first number to the second.
    Between(u64, u64),
    /// The loop continues with this probability.
    While(f64),
}

/// A random program of functions that call later functions, and a run of it.
pub struct Program {
    functions: Vec<Vec<Statement>>,
    random: Random,
    blocks: u32,
    builder: Builder,
    nodes: HashMap<Vec<u32>, NodeId>,
    table: PrimaryMap<NodeId, Node>,
    contexts: Vec<NodeContext>,
    /// The current path, and the loops around its first block.
    path: Vec<u32>,
    loops: Vec<u32>,
    around: (Vec<u32>, bool),
    bits: f64,
    executed: u64,
    terminals: u64,
    /// The number of terminals after which the run stops.
    length: u64,
}

/// A run of a program.
pub struct ProgramRun {
    pub segment: Segment,
    pub contexts: Vec<NodeContext>,
    pub nodes: PrimaryMap<NodeId, Node>,
    /// The information in the run's decisions, in bits.
    pub bits: f64,
    pub blocks: u64,
    pub terminals: u64,
}

/// Runs a random program until `length` paths have been executed. Branches go one way with a
/// probability of about `skew`. Loops are regular with a probability of `regular`.
pub fn program(skew: f64, regular: f64, length: u64, seed: u64) -> ProgramRun {
    let mut program = Program {
        functions: Vec::new(),
        random: Random(seed),
        blocks: 1,
        builder: Builder::new(Limits {
            symbols: usize::MAX,
        }),
        nodes: HashMap::new(),
        table: PrimaryMap::new(),
        contexts: Vec::new(),
        path: Vec::new(),
        loops: Vec::new(),
        around: (Vec::new(), false),
        bits: 0.0,
        executed: 0,
        terminals: 0,
        length,
    };
    let count = 12;
    for function in 0..count {
        let body = program.statements(4, function + 1..count, skew, regular);
        program.functions.push(body);
    }
    let functions = std::mem::take(&mut program.functions);
    while program.terminals < length {
        program.builder.enter(FuncId::from_u32(0));
        program.run(&functions[0], &functions);
        if program.terminals < length {
            program.cut(0, false);
            program.builder.leave();
        }
    }
    ProgramRun {
        segment: program.builder.finish().unwrap_or_default(),
        contexts: program.contexts,
        nodes: program.table,
        bits: program.bits,
        blocks: program.executed,
        terminals: program.terminals,
    }
}

impl Program {
    fn fresh(&mut self) -> u32 {
        self.blocks += 1;
        self.blocks
    }

    fn statements(
        &mut self,
        depth: u32,
        callees: Range<usize>,
        skew: f64,
        regular: f64,
    ) -> Vec<Statement> {
        let count = 1 + self.random.below(4);
        let mut all = vec![Statement::Block(self.fresh())];
        for _ in 0..count {
            all.push(match self.random.below(10) {
                0..4 if depth > 0 => {
                    let p = if self.random.unit() < 0.3 { 0.5 } else { skew };
                    let first = self.statements(depth - 1, callees.clone(), skew, regular);
                    Statement::If(
                        p,
                        first,
                        self.statements(depth - 1, callees.clone(), skew, regular),
                    )
                }
                4..7 if depth > 0 => {
                    let low = 2 + self.random.below(20);
                    let trips = match self.random.unit() < regular {
                        true => Trips::Fixed(low),
                        false if self.random.below(2) == 0 => {
                            Trips::Between(low, low + 1 + self.random.below(low))
                        }
                        false => Trips::While(1.0 - 1.0 / low as f64),
                    };
                    let header = self.fresh();
                    Statement::Loop(
                        header,
                        trips,
                        self.statements(depth - 1, callees.clone(), skew, regular),
                    )
                }
                7 | 8 if !callees.is_empty() => {
                    let callee = callees.start + self.random.below(callees.len() as u64) as usize;
                    Statement::Call(self.fresh(), callee)
                }
                _ => Statement::Block(self.fresh()),
            });
        }
        all
    }

    fn run(&mut self, statements: &[Statement], functions: &[Vec<Statement>]) {
        for statement in statements {
            if self.terminals >= self.length {
                return;
            }
            match statement {
                Statement::Block(block) => self.path.push(*block),
                Statement::If(p, first, second) => {
                    let taken = self.random.unit() < *p;
                    self.bits -= (if taken { *p } else { 1.0 - *p }).log2();
                    self.run(if taken { first } else { second }, functions);
                }
                Statement::Loop(header, trips, body) => {
                    let mut left = match *trips {
                        Trips::Fixed(trips) => trips,
                        Trips::Between(low, high) => {
                            self.bits += ((high - low + 1) as f64).log2();
                            low + self.random.below(high - low + 1)
                        }
                        Trips::While(p) => {
                            let mut trips = 0;
                            while self.random.unit() < p {
                                trips += 1;
                                self.bits -= p.log2();
                            }
                            self.bits -= (1.0 - p).log2();
                            trips
                        }
                    };
                    self.path.push(*header);
                    while left > 0 && self.terminals < self.length {
                        left -= 1;
                        self.loops.push(*header);
                        self.run(body, functions);
                        self.cut(*header, false);
                        self.around = (self.loops.clone(), true);
                        self.loops.pop();
                        self.path.push(*header);
                    }
                }
                Statement::Call(after, callee) => {
                    self.cut(*after, true);
                    let loops = std::mem::take(&mut self.loops);
                    self.builder.enter(FuncId::from_u32(*callee as u32));
                    self.around = (Vec::new(), false);
                    self.run(&functions[*callee], functions);
                    self.loops = loops;
                    if self.terminals >= self.length {
                        return;
                    }
                    self.cut(0, false);
                    self.builder.leave();
                    self.around = (self.loops.clone(), false);
                    self.path.push(*after);
                }
            }
        }
    }

    /// Ends the current path.
    fn cut(&mut self, next: u32, calls: bool) {
        self.executed += self.path.len() as u64;
        self.terminals += 1;
        let path = std::mem::take(&mut self.path);
        let length = path.len() as u64;
        let node = *self.nodes.entry(path).or_insert_with_key(|path| {
            self.table.push(Node {
                function: FuncId::from_u32(0),
                blocks: path.iter().copied().map(BlockId::from_u32).collect(),
                left_out: 0,
            });
            self.contexts.push(NodeContext { next, calls });
            self.builder.define(Shape {
                length,
                loops: self.around.0.clone().into(),
                header: self.around.1,
            })
        });
        self.builder.node(node, 1);
    }
}
