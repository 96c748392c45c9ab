//! Checks that the example in `docs/FORMAT.md` has the bytes that the code writes.

use afterimage_ids::{BlockId, FuncId, NodeId, PrimaryMap};
use afterimage_wpp::codec::{self, encode_nodes, encode_summary};
use afterimage_wpp::{
    Continuation, Directory, DirectoryLimits, Grammar, Kind, Node, Partial, Root, Rule, Segment,
    Symbol,
};

const DOC: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/FORMAT.md"));

fn block(number: u32) -> BlockId {
    BlockId::from_u32(number)
}

/// Returns the run of the example.
fn example() -> (Directory, Segment) {
    let function = FuncId::from_u32(0);
    let mut nodes = PrimaryMap::new();
    let node = |blocks: &[BlockId]| Node {
        function,
        blocks: blocks.into(),
        left_out: 0,
    };
    let first = nodes.push(node(&[block(0)]));
    let round = nodes.push(node(&[block(1), block(2)]));
    let mut rules = PrimaryMap::new();
    let repeat = rules.push(Rule {
        kind: Kind::Repeat(3),
        start: 0,
        len: 1,
    });
    let call = rules.push(Rule {
        kind: Kind::Call(function),
        start: 1,
        len: 2,
    });
    let symbols = vec![
        Symbol::node(round),
        Symbol::node(first),
        Symbol::rule(repeat),
    ];
    let segment = Segment {
        before: 0,
        length: 7,
        open: vec![],
        root: vec![Root::Run(Symbol::rule(call))],
        grammar: Grammar { rules, symbols },
        node_counts: vec![(NodeId::from_u32(0), 1), (NodeId::from_u32(1), 3)],
        call_counts: vec![(function, 1)],
    };
    let goes_on = Continuation {
        next: Some(block(1)),
        calls: false,
    };
    let directory = Directory {
        nodes,
        continuations: vec![goes_on; 2],
        summaries: vec![segment.summary()],
        bits: 3,
        ..Directory::default()
    };
    (directory, segment)
}

fn hex(bytes: &[u8]) -> String {
    let bytes = bytes.iter().map(|byte| format!("{byte:02x}"));
    bytes.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_example_has_the_documented_bytes() {
    let (directory, segment) = example();
    assert_eq!(segment.check(&directory.nodes), Ok(()));
    let contexts = directory.contexts();
    let opened = codec::canonical(&segment, contexts.contexts()).unwrap();
    let said = [
        (
            "node0 = block0 and node1 = block1 block2 is\n",
            encode_nodes(&directory.nodes),
        ),
        ("the segment ", codec::encode(&segment, contexts.contexts())),
        ("its summary ", encode_summary(&directory.summaries[0])),
        ("as both continuations, ", directory.encode()),
        ("chunk in PATH-GRAMMARS is ", codec::encode_opened(&opened)),
    ];
    for (label, bytes) in said {
        let said = format!("{label}`{}`", hex(&bytes));
        assert!(DOC.contains(&said), "FORMAT.md lacks {said:?}");
    }
}

#[test]
fn the_example_is_read_back() {
    let (directory, segment) = example();
    let limits = DirectoryLimits {
        nodes: 2,
        blocks: 3,
        functions: 1,
        open: 0,
    };
    assert_eq!(
        Directory::decode(&directory.encode(), &limits),
        Ok(directory.clone())
    );
    let contexts = directory.contexts();
    let encoded = codec::encode(&segment, contexts.contexts());
    let limits = codec::Limits {
        symbols: 5,
        nodes: 2,
        functions: 1,
        open: 0,
    };
    assert_eq!(
        codec::decode(&encoded, contexts.contexts(), &limits),
        codec::canonical(&segment, contexts.contexts())
    );
}

/// A continuation is `2n + c`, as documented.
#[test]
fn continuations_are_the_documented_numbers() {
    let (mut directory, _) = example();
    let bytes = |directory: &Directory| {
        let nodes = encode_nodes(&directory.nodes).len();
        // Skip the version, the bits, the empty text, the table's length and the table.
        directory.encode()[4 + nodes..][..2].to_vec()
    };
    assert_eq!(bytes(&directory), [4, 4]);
    directory.continuations = vec![
        Continuation::default(),
        Continuation {
            next: Some(block(2)),
            calls: true,
        },
    ];
    assert_eq!(bytes(&directory), [0, 7]);
}

#[test]
fn what_was_left_out_is_read_as_it_was_written() {
    let (whole, _) = example();
    let of = |function, numbers| Partial {
        function: FuncId::from_u32(function),
        blocks: 1 << 40,
        calls: 3,
        numbers,
    };
    let directory = Directory {
        left_out: "all but f".to_owned(),
        partial: Some(vec![
            of(0, Some(vec![(1, 4), (7, 300)])),
            of(1, None),
            of(2, Some(vec![])),
        ]),
        ..whole.clone()
    };
    let limits = DirectoryLimits {
        nodes: 10,
        blocks: 100,
        functions: 3,
        open: 10,
    };
    let bytes = directory.encode();
    assert_eq!(Directory::decode(&bytes, &limits), Ok(directory.clone()));
    for end in 0..bytes.len() {
        assert!(Directory::decode(&bytes[..end], &limits).is_err(), "{end}");
    }
    let fewer = DirectoryLimits {
        functions: 2,
        ..limits
    };
    assert!(Directory::decode(&bytes, &fewer).is_err());
    // These directories are refused, because their numbers or their functions do not ascend.
    for partial in [
        vec![of(0, Some(vec![(1, 1), (1, 2)]))],
        vec![of(1, None), of(1, None)],
    ] {
        let wrong = Directory {
            partial: Some(partial),
            ..directory.clone()
        };
        assert!(Directory::decode(&wrong.encode(), &limits).is_err());
    }
    // First, nothing is left out. Then, there is a description without further data.
    assert_eq!(whole.encode()[0], 1);
    let unknown = Directory {
        partial: None,
        ..directory
    };
    assert_eq!(unknown.encode()[0], 1);
    assert_eq!(Directory::decode(&unknown.encode(), &limits), Ok(unknown));
}
