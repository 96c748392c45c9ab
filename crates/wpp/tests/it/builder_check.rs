//! Checks that every rule of `Segment::check` can fire, and that a segment that passes can be read.

use std::sync::Arc;

use crate::oracle::{Event, expand, runs};
use afterimage_ids::{BlockId, FuncId, NodeId, PrimaryMap, RuleId};
use afterimage_wpp::{
    CheckError, Grammar, InMemory, Kind, Node, PathError, Root, Rule, Segment, Segments, Summary,
    Symbol, WholePath,
};
use proptest::prelude::*;

fn func(n: u32) -> FuncId {
    FuncId::from_u32(n)
}

fn node(n: u32) -> Symbol {
    Symbol::node(NodeId::from_u32(n))
}

fn rule(n: u32) -> Symbol {
    Symbol::rule(RuleId::from_u32(n))
}

fn grammar(rules: &[(Kind, &[Symbol])]) -> Grammar {
    let mut grammar = Grammar::default();
    for &(kind, symbols) in rules {
        grammar.rules.push(Rule {
            kind,
            start: grammar.symbols.len() as u32,
            len: symbols.len() as u32,
        });
        grammar.symbols.extend_from_slice(symbols);
    }
    grammar
}

/// Returns two nodes of one function with 3 and 2 blocks, a node of another function, a node for
/// left-out blocks, and an impossible node.
fn nodes() -> PrimaryMap<NodeId, Node> {
    let node = |function, blocks, left_out| Node {
        function: func(function),
        blocks: (0..blocks).map(BlockId::from_u32).collect(),
        left_out,
    };
    [
        node(0, 3, 0),
        node(0, 2, 0),
        node(1, 1, 0),
        node(9, 0, 10),
        node(0, 0, 0),
    ]
    .into_iter()
    .collect()
}

/// Returns a sound segment. In it, an open activation of function 0 executes code and ends, and
/// another activation begins.
fn sound() -> Segment {
    Segment {
        before: 100,
        length: 3 + 5 * 6 + 10 + 2,
        open: vec![func(0)],
        root: vec![
            Root::Run(node(0)),
            Root::Run(rule(2)),
            Root::Run(node(3)),
            Root::Leave,
            Root::Enter(func(0)),
            Root::Run(node(1)),
        ],
        grammar: grammar(&[
            (Kind::Call(func(1)), &[node(2)]),
            (Kind::Sequence, &[node(0), node(1), rule(0)]),
            (Kind::Repeat(5), &[rule(1)]),
        ]),
        node_counts: [(0, 6), (1, 6), (2, 5), (3, 1)]
            .map(|(node, count)| (NodeId::from_u32(node), count))
            .into(),
        call_counts: vec![(func(0), 1), (func(1), 5)],
    }
}

#[test]
fn a_sound_segment_is_sound() {
    assert_eq!(sound().check(&nodes()), Ok(()));
}

#[test]
fn every_rule_fires() {
    type Change = fn(&mut Segment);
    let r = RuleId::from_u32;
    let cases: &[(CheckError, Change)] = &[
        (CheckError::Gap(r(1)), |s| {
            s.grammar.rules[RuleId::from_u32(1)].start = 2
        }),
        (CheckError::Beyond(r(2)), |s| {
            s.grammar.symbols.pop();
        }),
        (CheckError::LeftOver, |s| s.grammar.symbols.push(node(0))),
        (CheckError::ShortSequence(r(0)), |s| {
            s.grammar.rules[RuleId::from_u32(0)].kind = Kind::Sequence;
        }),
        (CheckError::RepeatedSymbols(r(1)), |s| {
            s.grammar.rules[RuleId::from_u32(1)].kind = Kind::Repeat(2);
        }),
        (CheckError::FewTimes(r(2)), |s| {
            s.grammar.rules[RuleId::from_u32(2)].kind = Kind::Repeat(1);
        }),
        (
            CheckError::Forward {
                rule: r(1),
                names: r(1),
            },
            |s| s.grammar.symbols[3] = rule(1),
        ),
        (CheckError::UnknownRule(r(3)), |s| {
            s.root[1] = Root::Run(rule(3))
        }),
        (CheckError::UnknownNode(NodeId::from_u32(5)), |s| {
            s.grammar.symbols[1] = node(5);
        }),
        (CheckError::UnknownNode(NodeId::from_u32(6)), |s| {
            s.root[0] = Root::Run(node(6));
        }),
        (CheckError::EmptyNode(NodeId::from_u32(4)), |s| {
            s.grammar.symbols[1] = node(4);
        }),
        (CheckError::LongRule(r(2)), |s| {
            s.grammar.rules[RuleId::from_u32(2)].kind = Kind::Repeat(u64::MAX / 5);
        }),
        (CheckError::LongRoot, |s| {
            s.grammar.rules[RuleId::from_u32(2)].kind = Kind::Repeat(u64::MAX / 6);
        }),
        (
            CheckError::Mixed {
                rule: r(1),
                one: func(0),
                other: func(1),
            },
            |s| s.grammar.symbols[2] = node(2),
        ),
        (
            CheckError::Mixed {
                rule: r(0),
                one: func(1),
                other: func(2),
            },
            |s| s.grammar.rules[RuleId::from_u32(0)].kind = Kind::Call(func(2)),
        ),
        (
            CheckError::Foreign {
                item: 5,
                function: func(0),
            },
            |s| s.root[4] = Root::Enter(func(1)),
        ),
        (
            CheckError::Foreign {
                item: 0,
                function: func(0),
            },
            |s| s.open.clear(),
        ),
        (CheckError::LeaveNone(4), |s| s.root[4] = Root::Leave),
        (CheckError::LeaveBegun(6), |s| s.root.push(Root::Leave)),
        (
            CheckError::Length {
                length: 44,
                found: 45,
            },
            |s| s.length = 44,
        ),
        (CheckError::End, |s| s.before = u64::MAX - 44),
        (CheckError::NodeCounts, |s| s.node_counts[2].1 += 1),
        (CheckError::NodeCounts, |s| {
            s.node_counts.push((NodeId::from_u32(4), 0));
        }),
        (CheckError::CallCounts, |s| s.call_counts[1].1 -= 1),
        (CheckError::CallCounts, |s| {
            s.call_counts.pop();
        }),
        (CheckError::Uncountable, |s| {
            s.grammar = grammar(&[
                (Kind::Call(func(1)), &[]),
                (Kind::Repeat(u64::MAX), &[rule(0)]),
                (Kind::Repeat(2), &[rule(1)]),
            ]);
            s.length = 15;
        }),
    ];
    for (error, change) in cases {
        let mut segment = sound();
        change(&mut segment);
        assert_eq!(segment.check(&nodes()).as_ref(), Err(error));
    }
}

#[test]
fn times_without_number_take_no_time() {
    // 2^63 empty activations, between two nodes.
    let mut segment = sound();
    segment.root.truncate(3);
    segment.grammar = grammar(&[
        (Kind::Call(func(1)), &[]),
        (Kind::Repeat(1 << 62), &[rule(0)]),
        (Kind::Repeat(2), &[rule(1)]),
    ]);
    segment.length = 13;
    segment.before = 0;
    segment.node_counts = vec![(NodeId::from_u32(0), 1), (NodeId::from_u32(3), 1)];
    segment.call_counts = vec![(func(1), 1 << 63)];
    assert_eq!(segment.check(&nodes()), Ok(()));
    let before = Segment {
        root: vec![Root::Enter(func(0))],
        call_counts: vec![(func(0), 1)],
        ..Segment::default()
    };
    let path: InMemory = [before, segment].into_iter().collect();
    let path = WholePath::new(path, Arc::new(nodes())).unwrap();
    path.check().unwrap();
    let mut cursor = path.cursor();
    assert_eq!(cursor.next().unwrap().unwrap().start, 1);
    assert_eq!(cursor.next().unwrap().unwrap().start, 4);
    assert_eq!(cursor.previous().unwrap().unwrap().start, 1);
    let calls = path.activations(func(1)).unwrap();
    assert_eq!(calls.rank(3), Ok(0));
    assert_eq!(calls.rank(4), Ok(1 << 63));
    assert_eq!(calls.select(1 << 63).unwrap().unwrap().time, 4);
}

#[test]
fn rules_nested_without_end() {
    // A chain of a million sequences. Each is the previous sequence plus a node.
    const DEPTH: u32 = 1_000_000;
    let mut rules = Grammar::default();
    for n in 0..DEPTH {
        rules.rules.push(Rule {
            kind: Kind::Sequence,
            start: 2 * n,
            len: 2,
        });
        rules
            .symbols
            .push(if n == 0 { node(0) } else { rule(n - 1) });
        rules.symbols.push(node(1));
    }
    let segment = Segment {
        length: 3 + 2 * u64::from(DEPTH),
        root: vec![Root::Enter(func(0)), Root::Run(rule(DEPTH - 1))],
        grammar: rules,
        node_counts: vec![
            (NodeId::from_u32(0), 1),
            (NodeId::from_u32(1), u64::from(DEPTH)),
        ],
        call_counts: vec![(func(0), 1)],
        ..Segment::default()
    };
    let path: InMemory = [segment].into_iter().collect();
    let path = WholePath::new(path, Arc::new(nodes())).unwrap();
    path.check().unwrap();
    let mut cursor = path.cursor();
    let mut count = 0;
    while cursor.next().unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, DEPTH + 1);
    let ones = path.executions([(NodeId::from_u32(1), 0)]).unwrap();
    assert_eq!(ones.select(1).unwrap().unwrap().time, 4);
}

/// A whole path whose summaries differ from its segments.
struct Lying(InMemory, Vec<Summary>);

impl Segments for Lying {
    type Error = std::convert::Infallible;

    fn summaries(&self) -> &[Summary] {
        &self.1
    }

    fn load(&self, segment: usize) -> Result<Arc<Segment>, Self::Error> {
        self.0.load(segment)
    }
}

#[test]
fn segments_must_follow_each_other() {
    let mut first = Segment {
        root: vec![Root::Enter(func(0)), Root::Run(rule(0))],
        length: 100,
        call_counts: vec![(func(0), 1)],
        node_counts: vec![(NodeId::from_u32(1), 50)],
        grammar: grammar(&[(Kind::Repeat(50), &[node(1)])]),
        ..Segment::default()
    };
    let path = |first: &Segment, change: fn(&mut [Summary])| {
        let segments: InMemory = [first.clone(), sound()].into_iter().collect();
        let mut summaries = segments.summaries().to_vec();
        change(&mut summaries);
        WholePath::new(Lying(segments, summaries), Arc::new(nodes()))
    };
    let follow = |segment| Some(PathError::Follow { segment });
    path(&first, |_| {}).unwrap().check().unwrap();
    assert_eq!(path(&first, |s| s[0].length = 99).err(), follow(1));
    assert_eq!(path(&first, |s| s[0].before = 1).err(), follow(0));
    assert_eq!(path(&first, |s| s[1].open = 0).err(), follow(1));
    assert_eq!(path(&first, |s| s[1].kept = 2).err(), follow(1));
    assert_eq!(path(&first, |s| s[1].length = u64::MAX).err(), follow(1));
    let lies = path(&first, |s| s[1].node_counts[0].1 += 1).unwrap();
    assert_eq!(lies.check(), Err(PathError::Summary { segment: 1 }));
    assert_eq!(
        lies.cursor().seek(101),
        Err(PathError::Summary { segment: 1 })
    );
    // Change which activations are open, not only their number.
    first.root[0] = Root::Enter(func(1));
    first.call_counts[0].0 = func(1);
    first.grammar.symbols[0] = node(2);
    first.node_counts[0] = (NodeId::from_u32(2), 100);
    first.grammar.rules[RuleId::from_u32(0)].kind = Kind::Repeat(100);
    let other = path(&first, |_| {}).unwrap();
    assert_eq!(other.check(), Err(PathError::Follow { segment: 1 }));
}

/// Changes one property of a segment.
fn mutate(segment: &mut Segment, what: u8, at: usize, value: u32) {
    let symbol = if value.is_multiple_of(2) {
        node(value / 2 % 8)
    } else {
        rule(value / 2 % 40)
    };
    let rules = segment.grammar.rules.len();
    let symbols = segment.grammar.symbols.len();
    let items = segment.root.len();
    match what {
        0 if symbols > 0 => segment.grammar.symbols[at % symbols] = symbol,
        1 if rules > 0 => {
            let rule = RuleId::from_u32((at % rules) as u32);
            segment.grammar.rules[rule].kind = match value % 4 {
                0 => Kind::Sequence,
                1 => Kind::Repeat(u64::from(value / 4)),
                2 => Kind::Repeat(u64::MAX / u64::from(value)),
                _ => Kind::Call(func(value / 4 % 3)),
            };
        }
        2 if items > 0 => {
            segment.root[at % items] = match value % 3 {
                0 => Root::Leave,
                1 => Root::Enter(func(value / 4 % 3)),
                _ => Root::Run(symbol),
            };
        }
        3 if rules > 0 => segment.grammar.rules[RuleId::from_u32((at % rules) as u32)].len = value,
        4 if rules > 0 => {
            segment.grammar.rules[RuleId::from_u32((at % rules) as u32)].start = value;
        }
        5 => segment.open.push(func(value % 3)),
        6 => {
            segment.open.pop();
        }
        _ => segment.length ^= u64::from(value),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Corrects counts and lengths first, so that the test covers other faults, too.
    #[test]
    fn what_passes_can_be_read(
        run in runs(60),
        changes in prop::collection::vec((0..8u8, any::<usize>(), any::<u32>()), 1..3),
    ) {
        let Some(mut segment) = run.segments(usize::MAX).pop() else {
            return Ok(());
        };
        for (what, at, value) in changes {
            mutate(&mut segment, what, at, value);
        }
        if let Err(CheckError::Length { found, .. }) = segment.check(&run.nodes) {
            segment.length = found;
        }
        if segment.length > 5_000 {
            // The path is too long to be expanded.
            let _ = segment.check(&run.nodes);
            return Ok(());
        }
        if segment.check(&run.nodes) == Err(CheckError::NodeCounts)
            && segment.grammar.rules.values().all(|rule| !matches!(rule.kind, Kind::Repeat(5_000..)))
        {
            let events = expand(&segment);
            let mut nodes = std::collections::BTreeMap::<NodeId, u64>::new();
            let mut calls = std::collections::BTreeMap::<FuncId, u64>::new();
            for event in events {
                match event {
                    Event::Node(node, times) => *nodes.entry(node).or_default() += times,
                    Event::Enter(function) => *calls.entry(function).or_default() += 1,
                    Event::Leave => {}
                }
            }
            segment.node_counts = nodes.into_iter().collect();
            segment.call_counts = calls.into_iter().collect();
        }
        if segment.check(&run.nodes).is_err() || !segment.open.is_empty() {
            return Ok(());
        }
        let expanded = expand(&segment);
        let length = segment.length;
        let path: InMemory = [segment].into_iter().collect();
        let path = WholePath::new(path, Arc::new(run.nodes.clone())).unwrap();
        let mut cursor = path.cursor();
        let expected = expanded.iter().filter_map(|event| match event {
            Event::Node(node, _) => Some(*node),
            _ => None,
        });
        for node in expected {
            prop_assert_eq!(cursor.next().unwrap().unwrap().node, node);
        }
        prop_assert_eq!(cursor.next(), Ok(None));
        for time in 0..length + 2 {
            cursor.seek(time).unwrap();
            cursor.stack().unwrap();
        }
        let mut calls = path.calls(0, usize::MAX).unwrap();
        let mut count = 0;
        while calls.next().unwrap().is_some() {
            count += 1;
        }
        prop_assert_eq!(
            count,
            expanded.iter().filter(|event| !matches!(event, Event::Node(..))).count()
        );
    }
}
