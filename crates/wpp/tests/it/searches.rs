//! Compares searches in grammars of every shape with searches that look at every symbol. The shapes
//! include long rules, deep nesting, repetitions of repetitions, and times beyond 32 bits.

use std::collections::BTreeMap;
use std::sync::Arc;

use afterimage_ids::{BlockId, FuncId, NodeId, PrimaryMap, RuleId};
use afterimage_wpp::{
    Grammar, InMemory, Kind, Node, Occurrence, Root, Rule, Segment, Symbol, Visit, WholePath,
};
use proptest::prelude::*;

/// The limits on the blocks that a segment executes and the calls it makes.
const MOST: u64 = 1 << 60;

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % n
    }

    /// Returns a random size, which is mostly small but sometimes exceeds 32 bits.
    fn size(&mut self) -> u64 {
        let bits = [2, 2, 4, 8, 20, 34][self.below(6) as usize];
        1 + self.below(1 << bits)
    }
}

/// The executions of each node, the calls to each function, and the duration.
#[derive(Clone, Default)]
struct Total {
    length: u64,
    nodes: BTreeMap<NodeId, u64>,
    calls: BTreeMap<FuncId, u64>,
}

impl Total {
    fn add(&mut self, other: &Self, times: u64) {
        self.length += other.length * times;
        for (&node, count) in &other.nodes {
            *self.nodes.entry(node).or_default() += count * times;
        }
        for (&function, count) in &other.calls {
            *self.calls.entry(function).or_default() += count * times;
        }
    }

    fn size(&self) -> u64 {
        self.length + self.calls.values().sum::<u64>()
    }

    fn count(&self, target: Target) -> u64 {
        match target {
            Target::Node(node, _) => self.nodes.get(&node),
            Target::Calls(function) => self.calls.get(&function),
        }
        .copied()
        .unwrap_or(0)
    }
}

#[derive(Clone, Copy)]
enum Target {
    /// A node, and the index of one of its blocks.
    Node(NodeId, u64),
    Calls(FuncId),
}

/// A segment, and the totals of its parts.
struct Naive {
    nodes: PrimaryMap<NodeId, Node>,
    totals: Vec<Total>,
    segment: Segment,
}

impl Naive {
    /// Makes nodes of two functions, and rules that consist of them.
    fn new(seed: u64, rules: usize, longest: u64) -> Self {
        let mut random = Random(seed);
        let nodes: PrimaryMap<NodeId, Node> = (0..6)
            .map(|number| Node {
                function: FuncId::from_u32(number % 2),
                blocks: (0..=number).map(BlockId::from_u32).collect(),
                left_out: if number < 4 { 0 } else { random.size() },
            })
            .collect();
        let mut naive = Self {
            nodes,
            totals: Vec::new(),
            segment: Segment::default(),
        };
        // The function whose activations may execute each rule; `None` means any function.
        let mut owners = Vec::new();
        for _ in 0..rules {
            let owner = FuncId::from_u32(random.below(2) as u32);
            let kind = match random.below(6) {
                0 | 1 => Kind::Repeat(1 + random.size()),
                2 | 3 => Kind::Call(owner),
                _ => Kind::Sequence,
            };
            let len = match kind {
                Kind::Repeat(_) => 1,
                Kind::Call(_) => random.below(longest),
                Kind::Sequence => 2 + random.below(longest),
            };
            let start = naive.segment.grammar.symbols.len() as u32;
            let (mut total, mut len_now) = (Total::default(), 0);
            let times = match kind {
                Kind::Repeat(times) => times,
                _ => 1,
            };
            for _ in 0..len {
                let symbol = naive.symbol(&mut random, owner, &owners);
                let more = naive.total(symbol);
                let sum = u128::from(total.size()) + u128::from(more.size()) * u128::from(times);
                let symbol = if sum < u128::from(MOST) {
                    symbol
                } else {
                    // The shortest node of the function.
                    Symbol::node(NodeId::from_u32(owner.as_u32()))
                };
                total.add(&naive.total(symbol), times);
                naive.segment.grammar.symbols.push(symbol);
                len_now += 1;
            }
            if let Kind::Call(function) = kind {
                *total.calls.entry(function).or_default() += 1;
            }
            owners.push(match kind {
                Kind::Call(_) => None,
                _ => Some(owner),
            });
            naive.segment.grammar.rules.push(Rule {
                kind,
                start,
                len: len_now,
            });
            naive.totals.push(total);
        }
        naive.make_root(&mut random, &owners);
        naive
    }

    /// Picks a node or rule that activations of a function may execute. Mostly picks one of the
    /// last rules, so that rules nest.
    fn symbol(&self, random: &mut Random, owner: FuncId, owners: &[Option<FuncId>]) -> Symbol {
        let rules = owners.len() as u64;
        let near = if random.below(2) == 0 { rules } else { 3 };
        let rule = rules.checked_sub(1 + random.below(near.max(1)));
        match rule.filter(|_| random.below(4) > 0) {
            Some(rule) if owners[rule as usize].is_none_or(|of| of == owner) => {
                Symbol::rule(RuleId::from_u32(rule as u32))
            }
            _ => {
                let number = owner.as_u32() + 2 * random.below(3) as u32;
                Symbol::node(NodeId::from_u32(number))
            }
        }
    }

    fn make_root(&mut self, random: &mut Random, owners: &[Option<FuncId>]) {
        let mut total = Total::default();
        let mut owner = FuncId::from_u32(0);
        for item in 0..8 {
            if item == 0 || random.below(4) == 0 {
                owner = FuncId::from_u32(random.below(2) as u32);
                *total.calls.entry(owner).or_default() += 1;
                self.segment.root.push(Root::Enter(owner));
            }
            let symbol = self.symbol(random, owner, owners);
            if total.size() + self.total(symbol).size() < 4 * MOST {
                total.add(&self.total(symbol), 1);
                self.segment.root.push(Root::Run(symbol));
            }
        }
        self.segment.length = total.length;
        self.segment.node_counts = total.nodes.into_iter().collect();
        self.segment.call_counts = total.calls.into_iter().collect();
    }

    fn total(&self, symbol: Symbol) -> Total {
        if let Some(rule) = symbol.as_rule() {
            return self.totals[rule.as_u32() as usize].clone();
        }
        let node = symbol.as_node().unwrap();
        Total {
            length: self.nodes[node].length(),
            nodes: [(node, 1)].into(),
            ..Total::default()
        }
    }

    /// Returns the execution that contains block `time`, by scanning all symbols of each rule, and
    /// the number of occurrences of each target up to that block.
    fn at(&self, time: u64, targets: &[Target]) -> (Visit, Vec<u64>) {
        let mut ranks = vec![0; targets.len()];
        let mut pass = |total: &Total, times: u64| {
            for (rank, &target) in ranks.iter_mut().zip(targets) {
                *rank += total.count(target) * times;
            }
        };
        let call = |function| Total {
            calls: [(function, 1)].into(),
            ..Total::default()
        };
        let mut before = 0;
        let mut items = self.segment.root.iter();
        let mut symbol = loop {
            match *items.next().unwrap() {
                Root::Enter(function) => pass(&call(function), 1),
                Root::Leave => {}
                Root::Run(symbol) => {
                    let total = self.total(symbol);
                    if time <= before + total.length {
                        break symbol;
                    }
                    before += total.length;
                    pass(&total, 1);
                }
            }
        };
        while let Some(id) = symbol.as_rule() {
            let Grammar { rules, .. } = &self.segment.grammar;
            let symbols = self.segment.grammar.symbols_of(id);
            match rules[id].kind {
                Kind::Repeat(_) => {
                    let once = self.total(symbols[0]);
                    let rounds = (time - before - 1) / once.length;
                    before += rounds * once.length;
                    pass(&once, rounds);
                }
                Kind::Call(function) => pass(&call(function), 1),
                Kind::Sequence => {}
            }
            for &next in symbols {
                symbol = next;
                let total = self.total(symbol);
                if time <= before + total.length {
                    break;
                }
                before += total.length;
                pass(&total, 1);
            }
        }
        let node = symbol.as_node().unwrap();
        for (rank, target) in ranks.iter_mut().zip(targets) {
            if let Target::Node(of, position) = *target {
                *rank += u64::from(of == node && before + position < time);
            }
        }
        let visit = Visit {
            node,
            start: before + 1,
            length: self.nodes[node].length(),
        };
        (visit, ranks)
    }
}

fn agree(seed: u64, rules: usize, longest: u64) {
    let naive = Naive::new(seed, rules, longest);
    let length = naive.segment.length;
    let segments: InMemory = [naive.segment.clone()].into_iter().collect();
    let path = WholePath::new(segments, Arc::new(naive.nodes.clone())).unwrap();
    path.check().unwrap();
    let mut random = Random(seed ^ 1);
    let targets = [
        Target::Node(NodeId::from_u32(0), 0),
        Target::Node(NodeId::from_u32(3), 2),
        Target::Node(NodeId::from_u32(4), 0),
        Target::Calls(FuncId::from_u32(0)),
        Target::Calls(FuncId::from_u32(1)),
    ];
    let occurrences = targets.map(|target| match target {
        Target::Node(node, position) => path.executions([(node, position)]).unwrap(),
        Target::Calls(function) => path.activations(function).unwrap(),
    });
    let mut near = path.cursor();
    for case in 0..60 {
        let time = match case {
            _ if length == 0 => break,
            0 => 1,
            1 => length,
            _ => 1 + random.below(length),
        };
        let (visit, ranks) = naive.at(time, &targets);
        assert_eq!(near.seek(time), Ok(Some(visit)), "{time}");
        assert_eq!(path.cursor().seek(time), Ok(Some(visit)), "{time}");
        // Take some steps from there, forward and back again.
        let mut visits = vec![visit];
        for _ in 0..10 {
            let last = visits[visits.len() - 1].last();
            let next = (last < length).then(|| naive.at(last + 1, &[]).0);
            assert_eq!(near.next(), Ok(next));
            let Some(next) = next else {
                assert_eq!(near.previous(), Ok(visits.last().copied()));
                break;
            };
            visits.push(next);
        }
        visits.pop();
        while let Some(visit) = visits.pop() {
            if near.visit() != Some(visit) {
                assert_eq!(near.previous(), Ok(Some(visit)));
            }
        }
        let before = (visit.start > 1).then(|| naive.at(visit.start - 1, &[]).0);
        near.seek(time).unwrap();
        assert_eq!(near.previous(), Ok(before));
        for (occurrences, rank) in occurrences.iter().zip(ranks) {
            assert_eq!(occurrences.rank(time), Ok(rank), "{time}");
        }
    }
    for (occurrences, &target) in occurrences.iter().zip(&targets) {
        let count = occurrences.count();
        assert_eq!(occurrences.select(count + 1), Ok(None));
        for case in 0..30 {
            let number = match case {
                _ if count == 0 => break,
                0 => 1,
                1 => count,
                _ => 1 + random.below(count),
            };
            let found = occurrences.select(number).unwrap().unwrap();
            let Occurrence { time, .. } = found;
            assert_eq!(found.number, number);
            // Activations without blocks have the time of the next block, which may not exist.
            let rank = |time| match time {
                0 => 0,
                time => naive.at(time, &[target]).1[0],
            };
            assert!(rank(time - 1) < number, "{time}");
            match target {
                Target::Node(..) => assert_eq!(rank(time), number),
                Target::Calls(_) => assert!(time > length || rank(time) >= number),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn short_rules(seed: u64, rules in 0..60usize) {
        agree(seed, rules, 6);
    }

    #[test]
    fn long_rules(seed: u64, rules in 1..20usize) {
        agree(seed, rules, 400);
    }
}

/// Tests rules that have few symbols and mostly name one of the last rules, which gives hundreds of
/// levels.
#[test]
fn deep_nesting() {
    for seed in 0..20 {
        agree(seed, 500, 2);
    }
}
