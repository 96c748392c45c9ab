//! Sources of paths whose entropy is known, and a simple grammar builder.

use afterimage_ids::{FuncId, NodeId};
use afterimage_wpp::codec::NodeContext;
use afterimage_wpp::{Grammar, Kind, Root, Rule, Segment, Symbol};
use std::collections::HashMap;

/// xorshift64*.
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

/// Terminals, what the source knows to be their information in bits, and what is known of the nodes.
pub struct Sample {
    pub path: Vec<u32>,
    pub bits: f64,
    pub contexts: Vec<NodeContext>,
}

/// Points with two to five paths each; the first path is taken with the probability `skew`, the others share the
/// rest geometrically. Order 1. Points are visited as the paths lead.
pub fn markov(points: u32, skew: f64, length: usize, seed: u64) -> Sample {
    let mut random = Random(seed);
    let mut first = Vec::new();
    let mut contexts = Vec::new();
    for start in 0..points {
        first.push(contexts.len() as u32);
        for _ in 0..2 + random.below(4) {
            // Most paths lead near.
            let next = if random.below(4) > 0 { (start + random.below(6) as u32) % points } else { random.below(points.into()) as u32 };
            contexts.push(NodeContext { start, next, calls: false });
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
    Sample { path, bits, contexts: renamed }
}

/// An interpreter: one path per operation; the interpreted program has basic blocks of operations that end with a
/// branch of the given probability.
pub fn interpreter(operations: u32, skew: f64, length: usize, seed: u64) -> Sample {
    let mut random = Random(seed);
    let blocks: Vec<(Vec<u32>, [usize; 2])> = (0..80)
        .map(|at: usize| {
            let count = 2 + random.below(8);
            let body = (0..count).map(|_| (random.unit().powi(2) * f64::from(operations)) as u32).collect();
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
    let contexts = (0..operations).map(|_| NodeContext { start: 0, next: 0, calls: false }).collect();
    Sample { path, bits, contexts }
}

/// Hash-conses rules.
#[derive(Default)]
pub struct Consing {
    pub grammar: Grammar,
    known: HashMap<(u64, Vec<Symbol>), Symbol>,
}

impl Consing {
    pub fn rule(&mut self, kind: Kind, symbols: &[Symbol]) -> Symbol {
        let tag = match kind {
            Kind::Sequence => 0,
            Kind::Repeat(times) => times,
            Kind::Call(function) => u64::MAX - u64::from(function.as_u32()),
        };
        let grammar = &mut self.grammar;
        *self.known.entry((tag, symbols.to_vec())).or_insert_with(|| {
            let start = grammar.symbols.len() as u32;
            grammar.symbols.extend_from_slice(symbols);
            Symbol::rule(grammar.rules.push(Rule { kind, start, len: symbols.len() as u32 }))
        })
    }

    pub fn sequence(&mut self, symbols: &[Symbol]) -> Symbol {
        if let [symbol] = symbols { *symbol } else { self.rule(Kind::Sequence, symbols) }
    }

    /// Runs become repeats; then blocks end where the hash of a symbol is a local minimum, level by level.
    pub fn parse(&mut self, mut symbols: Vec<Symbol>) -> Vec<Symbol> {
        for level in 0..64u64 {
            if symbols.len() <= 8 {
                break;
            }
            let mut runs = Vec::new();
            let mut at = 0;
            while at < symbols.len() {
                let count = symbols[at..].iter().take_while(|&&s| s == symbols[at]).count();
                runs.push(if count >= 2 { self.rule(Kind::Repeat(count as u64), &symbols[at..=at]) } else { symbols[at] });
                at += count;
            }
            let hash = |s: Symbol| (u64::from(s.bits()) + level * 77 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            let mut next = Vec::new();
            let mut from = 0;
            for at in 1..=runs.len() {
                let cut = at == runs.len()
                    || at - from >= 16
                    || (at - from >= 2
                        && at + 1 < runs.len()
                        && hash(runs[at]) < hash(runs[at - 1])
                        && hash(runs[at]) < hash(runs[at + 1]));
                if cut {
                    next.push(self.sequence(&runs[from..at]));
                    from = at;
                }
            }
            if next.len() == symbols.len() {
                break;
            }
            symbols = next;
        }
        symbols
    }

    pub fn segment(self, symbols: Vec<Symbol>) -> Segment {
        Segment { root: symbols.into_iter().map(Root::Run).collect(), grammar: self.grammar, ..Segment::default() }
    }
}

pub fn terminals(path: &[u32]) -> Vec<Symbol> {
    path.iter().map(|&node| Symbol::node(NodeId::from_u32(node))).collect()
}

/// The path as it is.
pub fn flat(path: &[u32]) -> Segment {
    Consing::default().segment(terminals(path))
}

/// The path, parsed.
pub fn parsed(path: &[u32]) -> Segment {
    let mut consing = Consing::default();
    let symbols = consing.parse(terminals(path));
    consing.segment(symbols)
}

/// Loops in loops in functions; trip counts and branches vary a little.
pub fn loops(noise: f64, outer: usize, seed: u64) -> (Segment, u64) {
    let mut random = Random(seed);
    let mut c = Consing::default();
    let mut all = Vec::new();
    let mut terminals = 0;
    let node = |n: u32| Symbol::node(NodeId::from_u32(n));
    for i in 0..outer {
        let mut body = vec![node(0)];
        for inner in 0..3u32 {
            let base = 1 + inner * 10;
            let plain = c.rule(Kind::Sequence, &[node(base), node(base + 1), node(base + 2)]);
            let other = c.rule(Kind::Sequence, &[node(base), node(base + 3), node(base + 2)]);
            let mut left = 20 + inner as u64 * 7 + u64::from(random.unit() < noise) * random.below(5);
            terminals += left * 3;
            while left > 0 {
                let mut run = 0;
                while run < left && random.unit() >= noise / 4.0 {
                    run += 1;
                }
                match run {
                    0 => {}
                    1 => body.push(plain),
                    _ => body.push(c.rule(Kind::Repeat(run), &[plain])),
                }
                left -= run;
                if left > 0 {
                    body.push(other);
                    left -= 1;
                }
            }
            body.push(node(base + 4));
            terminals += 1;
        }
        let callee = FuncId::from_u32((i % 7 == 0) as u32);
        body.push(node(40));
        body.push(c.rule(Kind::Call(callee), &[node(41), node(42)]));
        all.push(c.rule(Kind::Call(FuncId::from_u32(9)), &body));
        terminals += 4;
    }
    let symbols = c.parse(all);
    (c.segment(symbols), terminals)
}
