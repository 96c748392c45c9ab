//! Tests round trips of segments, node tables and summaries, and hostile bytes.

use afterimage_ids::{BlockId, FuncId, NodeId, PrimaryMap, RuleId};
use afterimage_wpp::codec::{
    CodecError, Limits, NodeContext, NodeLimits, canonical, decode, decode_nodes, decode_opened,
    decode_summary, encode, encode_nodes, encode_opened, encode_summary,
};
use afterimage_wpp::{Grammar, Kind, Node, Root, Rule, Segment, Summary, Symbol};
use proptest::collection::vec;
use proptest::prelude::*;

const LIMITS: Limits = Limits {
    symbols: 1 << 20,
    nodes: 1000,
    functions: 1000,
    open: 1000,
};
const NODES: u32 = 30;
const FUNCTIONS: u32 = 7;
const PRIME: u128 = (1 << 61) - 1;

/// A digest of a path of any length. It holds the path's value as a polynomial, its number of nodes
/// and activations if below 2^64, and the base to the power of its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digest {
    value: u128,
    power: u128,
    size: Option<u64>,
}

impl Digest {
    const EMPTY: Self = Self {
        value: 0,
        power: 1,
        size: Some(0),
    };

    fn letter(letter: u128, size: u64) -> Self {
        Self {
            value: letter + 1,
            power: 0x1234_5678_9abc_def1 % PRIME,
            size: Some(size),
        }
    }

    fn then(self, next: Self) -> Self {
        Self {
            value: (self.value * next.power + next.value) % PRIME,
            power: self.power * next.power % PRIME,
            size: self.size.zip(next.size).and_then(|(a, b)| a.checked_add(b)),
        }
    }

    fn times(self, mut times: u64) -> Self {
        let (mut sum, mut square) = (Self::EMPTY, self);
        while times > 0 {
            if times & 1 == 1 {
                sum = sum.then(square);
            }
            times >>= 1;
            if times > 0 {
                square = square.then(square);
            }
        }
        sum
    }

    fn enter(function: FuncId) -> Self {
        Self::letter(u128::from(function.as_u32()) << 33 | 1, 1)
    }

    fn leave() -> Self {
        Self::letter(2, 0)
    }
}

fn digest_of(symbol: Symbol, rules: &[Digest]) -> Digest {
    match symbol.as_rule() {
        Some(rule) => rules[rule.as_u32() as usize],
        None => Digest::letter(u128::from(symbol.bits()) << 33, 1),
    }
}

fn digest_rule(kind: Kind, symbols: &[Symbol], rules: &[Digest]) -> Digest {
    let all = symbols.iter().fold(Digest::EMPTY, |sum, &symbol| {
        sum.then(digest_of(symbol, rules))
    });
    match kind {
        Kind::Sequence => all,
        Kind::Repeat(times) => all.times(times),
        Kind::Call(function) => Digest::enter(function).then(all).then(Digest::leave()),
    }
}

/// Hashes everything that a segment executes. Panics if the grammar is not sound.
fn digest(segment: &Segment) -> Digest {
    let mut rules = Vec::new();
    let mut next = 0;
    let check = |symbol: &Symbol, known: usize| match symbol.as_rule() {
        Some(rule) => assert!((rule.as_u32() as usize) < known, "children first"),
        None => assert!(symbol.as_node().unwrap().as_u32() < LIMITS.nodes),
    };
    for (id, rule) in &segment.grammar.rules {
        assert_eq!(rule.start, next);
        next += rule.len;
        let symbols = segment.grammar.symbols_of(id);
        symbols.iter().for_each(|symbol| check(symbol, rules.len()));
        match rule.kind {
            Kind::Sequence => assert!(symbols.len() >= 2),
            Kind::Repeat(times) => assert!(times >= 2 && symbols.len() == 1),
            Kind::Call(function) => assert!(function.as_u32() < LIMITS.functions),
        }
        rules.push(digest_rule(rule.kind, symbols, &rules));
    }
    assert_eq!(next as usize, segment.grammar.symbols.len());
    let mut open = segment.open.len();
    segment.root.iter().fold(Digest::EMPTY, |sum, item| {
        sum.then(match item {
            Root::Run(symbol) => {
                check(symbol, rules.len());
                digest_of(*symbol, &rules)
            }
            Root::Enter(function) => {
                open += 1;
                Digest::enter(*function)
            }
            Root::Leave => {
                open -= 1;
                Digest::leave()
            }
        })
    })
}

/// Makes a sound segment from any numbers.
fn segment(rules: &[(u8, u64, Vec<u32>)], root: &[(u8, u32)], open: usize) -> Segment {
    let mut grammar = Grammar::default();
    let mut digests: Vec<Digest> = Vec::new();
    let function = |number: u64| FuncId::from_u32((number % u64::from(FUNCTIONS)) as u32);
    let symbol = |choice: u32, rules: usize| match choice % 2 {
        1 if rules > 0 => Symbol::rule(RuleId::from_u32(
            (rules - 1).saturating_sub(choice as usize / 2 % 6) as u32,
        )),
        _ => Symbol::node(NodeId::from_u32(choice / 2 % NODES)),
    };
    for (kind, number, choices) in rules {
        let mut kind = match kind % 3 {
            0 => Kind::Sequence,
            1 => Kind::Repeat((number % (u64::MAX / 2)).max(2) >> (number % 62).min(61)),
            _ => Kind::Call(function(*number)),
        };
        if let Kind::Repeat(times) = &mut kind {
            *times = (*times).max(2);
        }
        let mut symbols: Vec<_> = choices
            .iter()
            .map(|&choice| symbol(choice, digests.len()))
            .collect();
        match kind {
            Kind::Sequence => symbols.resize(symbols.len().max(2), symbol(0, 0)),
            Kind::Repeat(_) => {
                symbols.resize(symbols.len().max(1), symbol(0, 0));
                symbols.truncate(1);
            }
            Kind::Call(_) => {}
        }
        let small = |digest: Digest| digest.size.is_some_and(|size| size <= u64::MAX / 100);
        if !small(digest_rule(kind, &symbols, &digests)) {
            (kind, symbols) = (Kind::Sequence, vec![symbol(2, 0), symbol(4, 0)]);
        }
        digests.push(digest_rule(kind, &symbols, &digests));
        grammar.rules.push(Rule {
            kind,
            start: grammar.symbols.len() as u32,
            len: symbols.len() as u32,
        });
        grammar.symbols.extend(symbols);
    }
    let mut depth = open;
    let root = root
        .iter()
        .map(|&(kind, choice)| match kind % 8 {
            0 if depth > 0 => {
                depth -= 1;
                Root::Leave
            }
            0 | 1 => {
                depth += 1;
                Root::Enter(function(choice.into()))
            }
            _ => Root::Run(symbol(choice, digests.len())),
        })
        .collect();
    Segment {
        before: 5,
        length: 1 << 40,
        open: (0..open as u64).map(function).collect(),
        root,
        grammar,
        ..Segment::default()
    }
}

fn any_segment() -> impl Strategy<Value = Segment> {
    let rule = (any::<u8>(), any::<u64>(), vec(any::<u32>(), 0..7));
    let root = vec((any::<u8>(), any::<u32>()), 0..60);
    (vec(rule, 0..40), root, 0..4usize)
        .prop_map(|(rules, root, open)| segment(&rules, &root, open))
        .prop_filter("fewer than 2^64 nodes", |segment| {
            digest(segment).size.is_some()
        })
}

fn contexts() -> Vec<NodeContext> {
    (0..NODES / 2)
        .map(|node| NodeContext {
            next: node / 3,
            calls: node % 4 == 0,
        })
        .collect()
}

fn check(segment: &Segment, contexts: &[NodeContext]) -> Vec<u8> {
    let bytes = encode(segment, contexts);
    let decoded = decode(&bytes, contexts, &LIMITS).unwrap();
    assert_eq!(decoded, canonical(segment, contexts).unwrap());
    assert_eq!(digest(&decoded), digest(segment));
    let header = |s: &Segment| (s.before, s.length, s.open.clone());
    assert_eq!(header(&decoded), header(segment));
    let nodes: u64 = decoded.node_counts.iter().map(|&(_, count)| count).sum();
    let calls: u64 = decoded.call_counts.iter().map(|&(_, count)| count).sum();
    assert_eq!(Some(nodes + calls), digest(segment).size);
    // The opened form preserves every rule.
    assert_eq!(
        decode_opened(&encode_opened(&decoded), &LIMITS),
        Ok(decoded)
    );
    bytes
}

proptest! {
    #[test]
    fn what_is_decoded_executes_the_same(segment in any_segment()) {
        check(&segment, &[]);
        check(&segment, &contexts());
    }

    #[test]
    fn changed_bits_give_an_error_or_a_sound_segment(segment in any_segment(), at in any::<prop::sample::Index>(), bit in 0..8u8) {
        let mut bytes = encode(&segment, &[]);
        let place = at.index(bytes.len());
        bytes[place] ^= 1u8 << bit;
        if let Ok(other) = decode(&bytes, &[], &LIMITS) {
            digest(&other);
        }
        let mut opened = encode_opened(&segment);
        let place = at.index(opened.len());
        opened[place] ^= 1u8 << bit;
        let nodes = PrimaryMap::new();
        if let Ok(other) = decode_opened(&opened, &LIMITS) {
            let _ = other.check(&nodes);
        }
    }

    #[test]
    fn any_bytes_give_an_error_or_a_sound_segment(bytes in vec(any::<u8>(), 0..200)) {
        let mut whole = vec![1, 8, 0, 0, 20, 5, 1, 3];
        if bytes.len() > 127 {
            whole.extend([(bytes.len() & 127) as u8 | 128, 1]);
        } else {
            whole.push(bytes.len() as u8);
        }
        whole.extend(&bytes);
        for bytes in [&bytes, &whole] {
            if let Ok(other) = decode(bytes, &contexts(), &LIMITS) {
                digest(&other);
            }
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn node_tables(nodes in vec((0..20u32, vec(0..50u32, 0..12), prop_oneof![Just(0), any::<u64>()]), 0..50)) {
        let nodes: PrimaryMap<NodeId, Node> = nodes.into_iter().map(|(function, blocks, left_out)| Node {
            function: FuncId::from_u32(function),
            left_out: left_out.max(u64::from(blocks.is_empty())),
            blocks: blocks.into_iter().map(BlockId::from_u32).collect(),
        }).collect();
        let bytes = encode_nodes(&nodes);
        let limits = NodeLimits { nodes: 50, blocks: 600, functions: 20 };
        prop_assert_eq!(decode_nodes(&bytes, &limits), Ok(nodes));
        cut_anywhere(&bytes, |bytes| decode_nodes(bytes, &limits).map(|_| ()));
    }

    #[test]
    fn summaries(
        numbers in (any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>(), any::<u32>()),
        nodes in prop::collection::btree_map(0..1000u32, 1..=u64::MAX, 0..40),
        calls in prop::collection::btree_map(0..1000u32, 1..9u64, 0..40),
    ) {
        let (before, length, open, kept, begun) = numbers;
        let summary = Summary {
            before, length, open, kept, begun,
            node_counts: nodes.into_iter().map(|(node, count)| (NodeId::from_u32(node), count)).collect(),
            call_counts: calls.into_iter().map(|(function, count)| (FuncId::from_u32(function), count)).collect(),
        };
        let bytes = encode_summary(&summary);
        prop_assert_eq!(decode_summary(&bytes, &LIMITS), Ok(summary));
        cut_anywhere(&bytes, |bytes| decode_summary(bytes, &LIMITS).map(|_| ()));
    }
}

/// Checks that every proper prefix and every encoding with an extra byte is an error, and that a
/// changed bit never causes a panic.
fn cut_anywhere(bytes: &[u8], decode: impl Fn(&[u8]) -> Result<(), CodecError>) {
    for end in 0..bytes.len() {
        assert_eq!(decode(&bytes[..end]), Err(CodecError::Truncated), "{end}");
    }
    let longer = [bytes, &[0]].concat();
    assert_eq!(decode(&longer), Err(CodecError::Trailing));
    for at in 0..bytes.len() * 8 {
        let mut changed = bytes.to_vec();
        changed[at / 8] ^= 1 << (at % 8);
        let _ = decode(&changed);
    }
}

fn example() -> Segment {
    let rules: Vec<_> = (0..25u32)
        .map(|n| {
            (
                (n * 7 % 5) as u8,
                u64::from(n) * 3,
                (0..n % 6).map(|i| (i + 2) * (n + 3)).collect(),
            )
        })
        .collect();
    let root: Vec<_> = (0..40u32).map(|n| ((n * 5 % 11) as u8, n * n)).collect();
    segment(&rules, &root, 2)
}

#[test]
fn a_cut_is_noticed_and_no_bit_makes_it_panic() {
    for segment in [Segment::default(), example()] {
        let bytes = check(&segment, &contexts());
        cut_anywhere(&bytes, |bytes| {
            decode(bytes, &contexts(), &LIMITS).map(|decoded| {
                digest(&decoded);
            })
        });
        let opened = encode_opened(&segment);
        cut_anywhere(&opened, |bytes| decode_opened(bytes, &LIMITS).map(|_| ()));
    }
}

#[test]
fn little_takes_few_bytes() {
    assert!(check(&Segment::default(), &[]).len() <= 10);
    assert!(check(&segment(&[], &[(2, 0)], 0), &[]).len() <= 18);
}

#[test]
fn counts_up_to_the_last() {
    let many = |times| segment(&[(1, 0, vec![0])], &[(2, 1)], 0).with_times(times);
    for times in [
        2,
        1 << 31,
        u64::from(u32::MAX),
        1 << 32,
        u64::MAX / 2,
        u64::MAX - 1,
        u64::MAX,
    ] {
        check(&many(times), &[]);
    }
}

trait WithTimes {
    fn with_times(self, times: u64) -> Self;
}

impl WithTimes for Segment {
    /// Returns the same segment with a different count for the only rule.
    fn with_times(mut self, times: u64) -> Self {
        self.grammar.rules[RuleId::from_u32(0)].kind = Kind::Repeat(times);
        self
    }
}

#[test]
fn depth_is_no_recursion() {
    let depth = 200_000;
    let rules: Vec<_> = (0..depth)
        .map(|n: u32| ((2 - n % 2 * 2) as u8, 1, vec![1, 0]))
        .collect();
    check(&segment(&rules, &[(2, 1), (2, 1)], 0), &[]);
}

#[test]
fn limits_hold() {
    let bytes = encode(&example(), &[]);
    let opened = encode_opened(&example());
    let refused = |limits: Limits, what| {
        let error = CodecError::TooLarge(what);
        assert_eq!(decode(&bytes, &[], &limits), Err(error));
        assert_eq!(decode_opened(&opened, &limits), Err(error));
    };
    refused(Limits { nodes: 3, ..LIMITS }, "nodes");
    refused(
        Limits {
            functions: 2,
            ..LIMITS
        },
        "functions",
    );
    refused(Limits { open: 1, ..LIMITS }, "open activations");
    refused(
        Limits {
            symbols: 5,
            ..LIMITS
        },
        "symbols",
    );
}

#[test]
fn a_version_is_refused_by_its_number() {
    let mut bytes = encode(&example(), &[]);
    bytes[0] = 9;
    assert_eq!(decode(&bytes, &[], &LIMITS), Err(CodecError::Version(9)));
    let mut opened = encode_opened(&example());
    opened[0] = 9;
    let refused = Err(CodecError::Version(9));
    assert_eq!(decode_opened(&opened, &LIMITS), refused);
}

#[test]
fn opened_rules_that_name_later_ones_are_refused() {
    // Version, 0 and 0 blocks, nothing open, no root, and one rule of two symbols, each of which
    // names the rule `distance` before it.
    let bytes = |distance: u8| [1, 0, 0, 0, 0, 1, 6, 2, 0, distance << 1 | 1];
    let refused = Err(CodecError::Malformed("a rule that names a later rule"));
    for distance in [0, 1, 9] {
        assert_eq!(decode_opened(&bytes(distance), &LIMITS), refused);
    }
    // There are three symbols, but the rule has two.
    let other = [1, 0, 0, 0, 0, 1, 6, 3, 0, 0, 0];
    let refused = "rules that do not cover all symbols";
    assert_eq!(
        decode_opened(&other, &LIMITS),
        Err(CodecError::Malformed(refused))
    );
}
