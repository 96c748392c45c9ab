//! Mutation tests, which check that each rule can fire, and fires alone if possible.

use std::collections::BTreeSet;

use afterimage_ids::{BlockId, EdgeId, EntityRef, FuncId, NodeId};
use afterimage_program::{BlockEnd, Program};
use afterimage_replay::whole_path::{PathRule, verify_path};
use afterimage_testkit::modules::{ModuleConfig, SplitMix64, module_from_seed};
use afterimage_wpp::{Continuation, Node};

use crate::walk::{Event, Options, Parts, walk};

/// func0 is the host's. func1 to func3 are called directly or through the table. func4 is exported.
const PROGRAM: &str = r#"(module
  (type $void (func))
  (import "env" "host" (func $host))
  (table 2 funcref)
  (elem (i32.const 0) $leaf $other)
  (func $leaf)
  (func $other)
  (func $number (result i32)
    (block $out (br_if $out (i32.const 1)) (nop) (br_if $out (i32.const 1)) (nop))
    (i32.const 1))
  (func (export "main") (local i32)
    (call $leaf)
    (block $first
      (block $second
        (if (local.get 0)
          (then (br_table $first $second (local.get 0)))
          (else (br_table $first $second (local.get 0)))))
      (nop))
    (call_indirect (type $void) (i32.const 0))
    (call $host)
    (drop (call $number))))"#;
const LEAF: u32 = 1;
const OTHER: u32 = 2;
const MAIN: u32 = 4;

struct Case {
    module: Vec<u8>,
    program: Program,
    parts: Parts,
}

impl Case {
    /// Creates a walk through the program that ends in the main function.
    fn new(segment: usize) -> Self {
        let module = wat::parse_str(PROGRAM).unwrap();
        let program = Program::parse(&module).unwrap();
        let main = FuncId::from_u32(MAIN);
        let mut lengths = (200..).map(|blocks| {
            let options = Options {
                blocks,
                depth: 9,
                segment,
                regular: false,
            };
            walk(&program, 7, options)
        });
        let in_main = |parts: &Parts| parts.frames.len() == 1 && parts.frames[0].function == main;
        let parts = lengths.find(in_main).unwrap();
        Self {
            module,
            program,
            parts,
        }
    }

    fn rules(&self) -> Vec<PathRule> {
        rules(&self.parts, &self.program, &self.module)
    }

    /// Returns the first position of an event.
    fn first(&self, wanted: Event) -> usize {
        let at = self.parts.events.iter().position(|&event| event == wanted);
        at.unwrap_or_else(|| panic!("{wanted:?} does not happen"))
    }

    fn enter(&self, function: u32) -> usize {
        self.first(Event::Enter(FuncId::from_u32(function)))
    }

    fn node(&self, at: usize) -> NodeId {
        match self.parts.events[at] {
            Event::Node(node) => node,
            event => panic!("{event:?}"),
        }
    }

    /// Returns a node with a last block that ends in this way.
    fn ending(&self, wanted: impl Fn(BlockEnd) -> bool) -> NodeId {
        let nodes = &self.parts.directory.nodes;
        let mut found = nodes.iter().filter(|(_, node)| {
            let cfg = &self.program.function(node.function).unwrap().cfg;
            wanted(cfg.blocks[*node.blocks.last().unwrap()].end)
        });
        found.next().unwrap().0
    }
}

fn rules(parts: &Parts, program: &Program, module: &[u8]) -> Vec<PathRule> {
    let report = verify_path(&parts.file(), program, module).unwrap();
    let mut rules = Vec::new();
    for finding in report.findings {
        assert!(
            finding
                .to_string()
                .starts_with(&format!("Path{:?}: ", finding.rule))
        );
        if !rules.contains(&finding.rule) {
            rules.push(finding.rule);
        }
    }
    rules
}

/// Returns the rules violated after a change to the events, in a run of one segment and in a run of
/// many.
fn after_events(change: impl Fn(&mut Case)) -> Vec<PathRule> {
    let [one, many] = [1 << 20, 2].map(|segment| {
        let mut case = Case::new(segment);
        change(&mut case);
        case.parts.build();
        assert!(segment > 2 || case.parts.segments.len() > 5);
        case.rules()
    });
    assert_eq!(one, many);
    one
}

/// Returns the rules violated after a change to the file's data.
fn after(change: impl FnOnce(&mut Case)) -> Vec<PathRule> {
    let mut case = Case::new(2);
    change(&mut case);
    case.rules()
}

#[test]
fn a_walk_breaks_no_rule() {
    assert_eq!(after_events(|_| ()), []);
}

#[test]
fn index() {
    let unknown_block = |case: &mut Case| {
        case.parts.directory.nodes[NodeId::new(0)].blocks = [BlockId::from_u32(99)].into();
    };
    assert_eq!(after(unknown_block), [PathRule::Index]);
    let import = |case: &mut Case| {
        case.parts.directory.nodes[NodeId::new(0)].function = FuncId::from_u32(0);
    };
    assert_eq!(after(import), [PathRule::Index]);
    let place = |case: &mut Case| {
        case.parts.directory.continuations[0].next = Some(BlockId::from_u32(99));
    };
    assert_eq!(after(place), [PathRule::Index]);
}

#[test]
fn place() {
    assert_eq!(after(|case| case.parts.places[1] += 1), [PathRule::Place]);
    let end = |case: &mut Case| *case.parts.places.last_mut().unwrap() += 1;
    assert_eq!(after(end), [PathRule::Place]);
    let fewer = |case: &mut Case| {
        case.parts.directory.summaries.pop();
    };
    assert_eq!(after(fewer), [PathRule::Place]);
}

#[test]
fn segment() {
    assert_eq!(
        after(|case| case.parts.segments[1].length += 1),
        [PathRule::Segment]
    );
}

#[test]
fn summary() {
    let count = |case: &mut Case| case.parts.directory.summaries[1].node_counts[0].1 += 1;
    assert_eq!(after(count), [PathRule::Summary]);
    let calls = |case: &mut Case| {
        let functions = case.parts.directory.summaries.iter_mut();
        functions.for_each(|summary| summary.call_counts.clear());
    };
    assert_eq!(after(calls), [PathRule::Summary]);
}

#[test]
fn continuity() {
    let summaries = |case: &mut Case| case.parts.directory.summaries[1].before += 1;
    assert_eq!(after(summaries), [PathRule::Continuity]);
    // The outer of two open activations belongs to another function, and no node of it follows in
    // the segment.
    let other = |case: &mut Case| {
        let segments = &mut case.parts.segments;
        let deep = segments
            .iter_mut()
            .position(|s| s.open.len() == 2 && s.root.len() == 1);
        let deep = deep.expect("a segment within a call");
        segments[deep].open[0] = FuncId::from_u32(OTHER);
    };
    let mut case = Case::new(1);
    other(&mut case);
    assert_eq!(case.rules(), [PathRule::Continuity]);
}

#[test]
fn edges() {
    let no_edge = |case: &mut Case| {
        let node = &mut case.parts.directory.nodes[NodeId::new(0)];
        let root = node.blocks[0];
        node.blocks = [&[root, root], &node.blocks[1..]].concat().into();
    };
    assert_eq!(after_events(no_edge), [PathRule::Edges]);
    let call_within = |case: &mut Case| {
        let calls = case.ending(|end| matches!(end, BlockEnd::Call(_)));
        let directory = &mut case.parts.directory;
        let next = directory.continuations[calls.index()].next.unwrap();
        let node = &mut directory.nodes[calls];
        node.blocks = [&node.blocks[..], &[next]].concat().into();
    };
    assert_eq!(after_events(call_within), [PathRule::Edges]);
}

#[test]
fn continuation() {
    let calls = |case: &mut Case| {
        let node = case.ending(|end| matches!(end, BlockEnd::Call(_)));
        case.parts.directory.continuations[node.index()].calls = false;
    };
    assert_eq!(after_events(calls), [PathRule::Continuation]);
    let behind = |case: &mut Case| {
        let node = case.ending(|end| matches!(end, BlockEnd::Call(_)));
        let elsewhere = case.parts.directory.nodes[node].blocks[0];
        case.parts.directory.continuations[node.index()].next = Some(elsewhere);
    };
    assert_eq!(after_events(behind), [PathRule::Continuation]);
    let does_not_call = |case: &mut Case| {
        let node = case.ending(|end| matches!(end, BlockEnd::Return | BlockEnd::Fall));
        case.parts.directory.continuations[node.index()].calls = true;
    };
    assert_eq!(after_events(does_not_call), [PathRule::Continuation]);
    let no_edge = |case: &mut Case| {
        let node = case.ending(|end| matches!(end, BlockEnd::Return | BlockEnd::Fall));
        let from = case.parts.directory.nodes[node].blocks[0];
        case.parts.directory.continuations[node.index()].next = Some(from);
    };
    assert_eq!(after_events(no_edge), [PathRule::Continuation]);
}

#[test]
fn entry() {
    // An activation executes nothing.
    let nothing = |case: &mut Case| {
        let at = case.enter(LEAF) + 1;
        case.parts.events.remove(at);
    };
    assert_eq!(after_events(nothing), [PathRule::Entry]);
    // An activation begins with the node after its first call.
    let later = |case: &mut Case| {
        let at = case.enter(MAIN) + 1;
        case.parts.events.drain(at..at + 4);
    };
    assert_eq!(after_events(later), [PathRule::Entry]);
}

#[test]
fn sequel() {
    // An activation repeats its last node.
    let again = |case: &mut Case| {
        let at = case.enter(LEAF) + 1;
        case.parts.events.insert(at, case.parts.events[at]);
    };
    assert_eq!(after_events(again), [PathRule::Sequel]);
    // A call returns to its own block.
    let behind = |case: &mut Case| {
        let at = case.enter(MAIN) + 1;
        case.parts.events.insert(at + 4, case.parts.events[at]);
        case.parts
            .events
            .splice(at + 5..at + 5, case.parts.events[at + 1..at + 4].to_vec());
    };
    assert_eq!(after_events(behind), [PathRule::Sequel]);
}

#[test]
fn callee() {
    // A direct call reaches another function.
    let other = |case: &mut Case| {
        let at = case.enter(LEAF);
        let function = FuncId::from_u32(OTHER);
        let blocks = case.parts.directory.nodes[case.node(at + 1)].blocks.clone();
        let directory = &mut case.parts.directory;
        let node = directory.nodes.push(Node {
            function,
            blocks,
            left_out: 0,
        });
        directory.continuations.push(Continuation::default());
        case.parts.events[at] = Event::Enter(function);
        case.parts.events[at + 1] = Event::Node(node);
    };
    assert_eq!(after_events(other), [PathRule::Callee]);
    // A direct call reaches no function.
    let nobody = |case: &mut Case| {
        let at = case.enter(LEAF);
        case.parts.events.drain(at..at + 3);
    };
    assert_eq!(after_events(nobody), [PathRule::Callee]);
    // A direct call reaches two functions.
    let twice = |case: &mut Case| {
        let at = case.enter(LEAF);
        let activation = case.parts.events[at..at + 3].to_vec();
        case.parts.events.splice(at..at, activation);
    };
    assert_eq!(after_events(twice), [PathRule::Callee]);
    // A function is called without a call in the code.
    let uncalled = |case: &mut Case| {
        let at = case.enter(LEAF);
        let activation = case.parts.events[at..at + 3].to_vec();
        let end = case.parts.events.windows(2).position(|pair| {
            let ends = |node: NodeId| case.parts.directory.continuations[node.index()];
            matches!(pair, [Event::Node(node), Event::Node(_)] if !ends(*node).calls)
        });
        let end = end.expect("two nodes one after the other");
        case.parts.events.splice(end + 1..end + 1, activation);
    };
    assert_eq!(after_events(uncalled), [PathRule::Callee]);
    // The host calls a function that is not exported.
    let unexported = |case: &mut Case| {
        let at = case.enter(LEAF);
        let activation = case.parts.events[at..at + 3].to_vec();
        case.parts.events.splice(0..0, activation);
    };
    assert_eq!(after_events(unexported), [PathRule::Callee]);
}

#[test]
fn return_() {
    let early = |case: &mut Case| {
        let main = FuncId::from_u32(MAIN);
        let nodes = &case.parts.directory.nodes;
        let end = case.parts.events.windows(2).position(|pair| {
            matches!(pair, [Event::Node(node), Event::Leave] if nodes[*node].function == main)
        });
        case.parts.events.remove(end.expect("main ends"));
    };
    assert_eq!(after_events(early), [PathRule::Return]);
}

#[test]
fn call_counts() {
    let entries = |case: &mut Case| case.parts.counts.functions[0].entries += 1;
    assert_eq!(after(entries), [PathRule::CallCounts]);
}

#[test]
fn block_counts() {
    // A function that was never entered has counts that satisfy the flow equations.
    let entered = |case: &mut Case| {
        for counts in &mut case.parts.counts.functions[..1] {
            counts.entries += 1;
            counts.edges[0] += 1;
        }
    };
    let all = [
        PathRule::CallCounts,
        PathRule::BlockCounts,
        PathRule::EdgeCounts,
    ];
    assert_eq!(after(entered), all);
}

#[test]
fn edge_counts() {
    // Two blocks branch to the same two blocks. Their edges are exchanged once, so that every block
    // is executed as often as before.
    let across = |case: &mut Case| {
        let main = case.program.function(FuncId::from_u32(MAIN)).unwrap();
        let tables: Vec<_> = main
            .cfg
            .blocks
            .iter()
            .filter(|(_, block)| block.end == BlockEnd::Table)
            .map(|(id, _)| main.cfg.graph.out_edges(id).to_vec())
            .collect();
        let [one, other] = &tables[..] else {
            panic!("{tables:?}")
        };
        let counts = &mut case.parts.counts.functions[MAIN as usize - 1].edges;
        let swap = counts[one[1].index()] == 0 || counts[other[0].index()] == 0;
        let mut change = |edge: EdgeId, more: bool| {
            let count = &mut counts[edge.index()];
            *count = if more != swap { *count + 1 } else { *count - 1 };
        };
        change(one[0], true);
        change(one[1], false);
        change(other[0], false);
        change(other[1], true);
    };
    assert_eq!(after(across), [PathRule::EdgeCounts]);
}

#[test]
fn stack() {
    let nobody = |case: &mut Case| case.parts.frames.clear();
    assert_eq!(after(nobody), [PathRule::Stack]);
    let elsewhere = |case: &mut Case| {
        let leaf = &case.program.functions[0];
        case.parts.frames[0].function = leaf.id;
        case.parts.frames[0].offset = leaf.body.start;
        case.parts.frames[0].standing = afterimage_trace::Standing::Before;
    };
    assert_eq!(after(elsewhere), [PathRule::Stack]);
    let shorter = |case: &mut Case| case.parts.events.truncate(case.parts.events.len() - 1);
    assert_eq!(after_events(shorter), [PathRule::Stack]);
}

/// Checks that the same rules are violated for any division of the run into segments.
#[test]
fn segments_do_not_matter() {
    let mut fired = BTreeSet::new();
    for seed in 0..300 {
        let module = match seed % 2 {
            0 => module_from_seed(seed / 10, &ModuleConfig::default()),
            _ => wat::parse_str(crate::EXCEPTIONS).unwrap(),
        };
        let program = Program::parse(&module).unwrap();
        let mut random = SplitMix64(seed);
        let options = Options {
            blocks: 100,
            depth: 10,
            segment: 1 << 20,
            regular: false,
        };
        let mut parts = walk(&program, seed, options);
        if parts.events.len() < 4 {
            continue;
        }
        let at = random.below(parts.events.len() - 2);
        match (random.below(3), parts.events[at]) {
            (0, Event::Node(_)) => drop(parts.events.remove(at)),
            (1, Event::Node(_)) => parts.events.insert(at, parts.events[at]),
            (_, Event::Node(node)) => {
                // This is a different path of the same function.
                let nodes = &parts.directory.nodes;
                let same = |other: &NodeId| nodes[*other].function == nodes[node].function;
                let others: Vec<_> = nodes.keys().filter(same).collect();
                parts.events[at] = Event::Node(others[random.below(others.len())]);
            }
            _ => continue,
        }
        let found = [1 << 20, 8, 1].map(|segment| {
            parts.segment = segment;
            parts.build();
            let mut rules = rules(&parts, &program, &module);
            rules.sort_unstable_by_key(|rule| *rule as u8);
            rules
        });
        assert_eq!(found[0], found[1], "seed {seed}");
        assert_eq!(found[0], found[2], "seed {seed}");
        fired.extend(found[0].iter().map(|rule| format!("{rule:?}")));
    }
    for rule in ["Sequel", "Entry", "Return", "Callee", "Stack"] {
        assert!(fired.contains(rule), "{rule} has never fired: {fired:?}");
    }
}
