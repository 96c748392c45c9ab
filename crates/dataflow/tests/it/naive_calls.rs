//! Compares decisions of calls in generated runs with a walk over all executed blocks.

use std::collections::BTreeMap;

use afterimage_dataflow::{
    Direction, Effect, Events, Outcome, Question, Site, Summaries, TimestampedGraph, solve,
};
use afterimage_ids::{BlockId, FuncId};
use afterimage_wpp::twpp::{Collector, Event};
use proptest::prelude::*;

/// The next event of a run.
#[derive(Clone, Copy, Debug)]
enum Step {
    Block(u32),
    Enter(u32),
    Leave,
    /// A tail call, which ends one activation and begins another in its place.
    Tail(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0u32..4).prop_map(Step::Block),
        2 => (0u32..3).prop_map(Step::Enter),
        2 => Just(Step::Leave),
        1 => (0u32..3).prop_map(Step::Tail),
    ];
    (proptest::collection::vec(step, 1..60), 1usize..4).prop_map(|(steps, n)| steps.repeat(n))
}

/// Sites by function and block.
struct Sites(BTreeMap<(u32, u32), u32>);

impl Events for Sites {
    fn of_block(&self, function: FuncId, block: BlockId) -> Option<Site> {
        let place = (function.as_u32(), block.as_u32());
        self.0.get(&place).copied().map(Site)
    }

    fn any_in(&self, function: FuncId) -> bool {
        self.0.keys().any(|&(f, _)| f == function.as_u32())
    }
}

/// A block that was executed, and its activation.
struct Executed {
    activation: usize,
    function: u32,
    block: u32,
}

/// A run, with its call graph and all blocks. Each activation has the numbers of blocks executed
/// before it and before its end.
struct Run {
    wpp: afterimage_wpp::twpp::Wpp,
    all: Vec<Executed>,
    spans: Vec<(usize, usize)>,
}

fn run(steps: &[Step]) -> Run {
    let mut collector = Collector::new();
    let mut all: Vec<Executed> = Vec::new();
    let mut spans = Vec::new();
    let mut open: Vec<(usize, u32, u64)> = Vec::new();
    let enter =
        |collector: &mut Collector, open: &mut Vec<_>, spans: &mut Vec<_>, all: usize, f| {
            collector.push(Event::Enter(FuncId::from_u32(f))).unwrap();
            open.push((spans.len(), f, 0));
            spans.push((all, usize::MAX));
        };
    for &step in steps {
        match step {
            // A call follows a block.
            Step::Enter(f) if open.last().is_none_or(|top| top.2 > 0) => {
                enter(&mut collector, &mut open, &mut spans, all.len(), f);
            }
            Step::Block(block) if !open.is_empty() => {
                let (activation, function, t) = open.last_mut().unwrap();
                *t += 1;
                all.push(Executed {
                    activation: *activation,
                    function: *function,
                    block,
                });
                collector.block(BlockId::from_u32(block)).unwrap();
            }
            Step::Leave | Step::Tail(_) if open.last().is_some_and(|top| top.2 > 0) => {
                collector.leave().unwrap();
                let (activation, ..) = open.pop().unwrap();
                spans[activation].1 = all.len();
                if let Step::Tail(f) = step {
                    enter(&mut collector, &mut open, &mut spans, all.len(), f);
                }
            }
            _ => {}
        }
    }
    for (activation, ..) in open {
        spans[activation].1 = all.len();
    }
    Run {
        wpp: collector.finish().unwrap(),
        all,
        spans,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Compares the outcomes of all executions of all blocks in all activations, counted by
    /// function, block and outcome.
    #[test]
    fn calls_decide_what_a_walk_finds(
        steps in steps(),
        sites in proptest::collection::btree_map((0u32..3, 0u32..4), 0u32..3, 0..6),
        forward in any::<bool>(),
    ) {
        let direction = if forward { Direction::Forward } else { Direction::Backward };
        let run = run(&steps);
        let sites = Sites(sites);
        let event = |e: &Executed| sites.0.get(&(e.function, e.block)).copied();
        let mut expected: BTreeMap<(u32, u32, Outcome), u64> = BTreeMap::new();
        for (at, executed) in run.all.iter().enumerate() {
            let (begin, end) = run.spans[executed.activation];
            // The question concerns the moment before or after the block's own event.
            let found = match direction {
                Direction::Backward => run.all[begin..at].iter().rev().find_map(event),
                Direction::Forward => run.all[at + 1..end].iter().find_map(event),
            };
            let outcome = found.map_or(Outcome::Open, |site| Outcome::Decided(Site(site)));
            *expected.entry((executed.function, executed.block, outcome)).or_default() += 1;
        }

        let summaries = Summaries::new(&run.wpp, direction, &sites);
        let occurrences = run.wpp.calls.occurrences();
        let mut found: BTreeMap<(u32, u32, Outcome), u64> = BTreeMap::new();
        for id in run.wpp.calls.ids() {
            let call = run.wpp.calls.call(id);
            let trace = &run.wpp.path(call).unwrap().trace;
            let path: Vec<usize> = trace.blocks().map(|b| b.as_u32() as usize).collect();
            let graph = TimestampedGraph::of_path(&path);
            let effects = summaries.effects(id);
            for node in 0..graph.len() {
                let times = graph.timestamps(node);
                // The call that ends a block comes after it.
                let own = match direction {
                    Direction::Backward => Effect::Transparent,
                    Direction::Forward => effects.of_block(times, None),
                };
                let question = Question { direction, node, times, own };
                let solution = solve(&graph, &question, |node| {
                    let block = BlockId::from_u32(node as u32);
                    effects.of_block(graph.timestamps(node), sites.of_block(call.function, block))
                });
                for part in solution.parts {
                    let key = (call.function.as_u32(), node as u32, part.outcome);
                    *found.entry(key).or_default() += part.times.count() * occurrences[id.index()];
                }
            }
        }
        prop_assert_eq!(found, expected);
    }
}
