//! Checks on random runs of programs that the regenerated path is the executed path, however the
//! run ends.

use crate::witness_walk::{Event, EventLog, Random, Recorded, Rules, Run, walk};
use afterimage_ids::{BlockId, EntityRef, EntitySet};
use afterimage_paths::witness::{
    Placement, Regenerator, WitnessOptions, WitnessPlan, regenerate_simple,
};
use afterimage_paths::{FinalFrame, Finish};
use afterimage_program::{BlockEnd, BlockKind, EdgeKind, Program};
use afterimage_testkit::graphs::programs::{programs, without_calls};
use afterimage_testkit::graphs::{Shape, edge_lists};
use afterimage_testkit::modules::{ModuleConfig, module_from_seed};
use proptest::prelude::*;

const PAPER: WitnessOptions = WitnessOptions {
    split_cost: afterimage_placement::SplitCost::FREE,
    delete: false,
};

fn planned(program: &Program, options: &WitnessOptions) -> WitnessPlan {
    WitnessPlan::new(program, None, options).expect("no counts that could be wrong")
}

/// Regenerates a run in pieces, and checks that nothing is reported before it is certain.
fn regenerated(program: &Program, plan: &WitnessPlan, run: &Run, seed: u64) -> Vec<Event> {
    let mut regenerator = Regenerator::new(program, plan);
    for &function in &run.host_calls {
        regenerator.host_call(function);
    }
    let mut random = Random(seed | 1);
    let mut told = EventLog::default();
    let mut reader = Recorded {
        tokens: &run.tokens,
        read: 0,
        so_far: 0,
    };
    while reader.so_far < run.tokens.len() {
        reader.so_far = run.tokens.len().min(reader.so_far + 1 + random.below(9));
        let advanced = regenerator.advance(&mut reader, &mut told);
        assert_eq!(advanced, Ok(()), "after {:?}", told.0);
        assert!(run.events.starts_with(&told.0));
    }
    let finished = regenerator.finish(&run.finish, &mut told);
    assert_eq!(finished, Ok(()), "after {:?} of {:?}", told.0, run.events);
    told.0
}

fn frames(finish: &Finish) -> Vec<FinalFrame> {
    match finish {
        Finish::Done => Vec::new(),
        Finish::Open(frames) => frames.clone(),
    }
}

/// Returns the activations that are open after all events.
fn open_at_end(events: &[Event]) -> Vec<FinalFrame> {
    let mut stack: Vec<FinalFrame> = Vec::new();
    for &event in events {
        match event {
            Event::Enter(function) => stack.push(FinalFrame {
                function,
                block: BlockId::new(0),
            }),
            Event::Block(block) => {
                if let Some(top) = stack.last_mut() {
                    top.block = block;
                }
            }
            Event::Leave => {
                stack.pop();
            }
        }
    }
    stack
}

/// Replaces some returns by exceptions that leave the function.
fn with_exceptions(program: &Program, which: u64) -> Program {
    let mut random = Random(which | 1);
    let mut functions = program.functions.clone();
    for cfg in functions.iter_mut().map(|f| &mut f.cfg) {
        for (_, edge) in cfg.edges.iter_mut() {
            let block = &mut cfg.blocks[edge.from];
            if block.end == BlockEnd::Return && random.one_in(2) {
                (block.end, edge.kind) = (BlockEnd::Throw, EdgeKind::Throw);
            }
        }
    }
    let imports = program.imports.clone();
    let ids = program.functions.iter().map(|f| f.id);
    let ids = (0..imports.len() as u32)
        .map(afterimage_ids::FuncId::from_u32)
        .chain(ids);
    let mut taken = EntitySet::new();
    for id in ids.filter(|&id| program.address_taken.contains(id)) {
        taken.insert(id);
    }
    Program::assemble(program.types.clone(), imports, functions, taken)
}

fn rules(random: &mut Random) -> Rules {
    Rules {
        steps: [0, 5, 50, 400][random.below(4)].max(1),
        ends_one_in: [10, 100, 1000][random.below(3)],
        deepest: [3, 30][random.below(2)],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn what_is_regenerated_is_what_happened(program in programs(), seed: u64, exceptions: u64) {
        let program = with_exceptions(&program, exceptions);
        let rules = rules(&mut Random(exceptions | 1));
        for options in [PAPER, WitnessOptions::default()] {
            let plan = planned(&program, &options);
            let run = walk(&program, &plan, rules, seed);
            prop_assert_eq!(&regenerated(&program, &plan, &run, seed), &run.events);
        }
    }

    #[test]
    fn the_tables_agree_with_the_papers_algorithm(
        edges in edge_lists(Shape { fresh_root: true, ..Shape::CONTROL_FLOW }), seed: u64,
    ) {
        let program = without_calls(edges.0, &edges.1);
        let graph = &program.functions[0].cfg.graph;
        let plan = planned(&program, &WitnessOptions::default());
        let rules = Rules { steps: 1, ends_one_in: usize::MAX, deepest: 1 };
        let run = walk(&program, &plan, rules, seed);
        if run.finish != Finish::Done {
            return Ok(());
        }
        let witnesses = plan.functions()[0].edges();
        let placement = Placement::new(graph, witnesses.iter().map(|w| w.0));
        // The paper's traces consist of the edges themselves.
        let trace: Vec<_> = run.path.iter().copied().filter(|&e| placement.writes(e)).collect();
        let told = regenerated(&program, &plan, &run, seed);
        let mut blocks: Vec<BlockId> = told.iter().filter_map(|e| match e {
            Event::Block(v) => Some(*v),
            _ => None,
        }).collect();
        blocks.push(graph.exit());
        prop_assert_eq!(regenerate_simple(graph, &placement, &trace), Ok(blocks));
    }

    #[test]
    fn damaged_tokens_give_an_error_or_a_run_with_the_known_end(
        program in programs(), seed: u64, damage: u64, which: prop::sample::Index, ends: bool,
    ) {
        let plan = planned(&program, &WitnessOptions::default());
        let rules = Rules { steps: 100, ends_one_in: 1000, deepest: 30 };
        let mut run = walk(&program, &plan, rules, seed);
        prop_assume!(!run.tokens.is_empty());
        let i = which.index(run.tokens.len());
        match damage % 3 {
            0 => run.tokens.truncate(i),
            1 => {
                run.tokens.remove(i);
            }
            _ => run.tokens[i].value ^= 1,
        }
        if ends {
            run.finish = match run.finish {
                Finish::Done => Finish::Open(Vec::new()),
                Finish::Open(_) => Finish::Done,
            };
        }
        let mut regenerator = Regenerator::new(&program, &plan);
        for &function in &run.host_calls {
            regenerator.host_call(function);
        }
        let mut reader = Recorded { tokens: &run.tokens, read: 0, so_far: run.tokens.len() };
        let mut told = EventLog::default();
        let outcome = regenerator.advance(&mut reader, &mut told);
        let outcome = outcome.and_then(|()| regenerator.finish(&run.finish, &mut told));
        prop_assert!(outcome.is_err() || open_at_end(&told.0) == frames(&run.finish));
    }

    #[test]
    fn deletion_never_writes_more(program in programs(), seed: u64) {
        let rules = Rules { steps: 300, ends_one_in: 1000, deepest: 30 };
        let [before, after] = [false, true].map(|delete| {
            let options = WitnessOptions { delete, ..PAPER };
            walk(&program, &planned(&program, &options), rules, seed)
        });
        prop_assert_eq!(&before.events, &after.events);
        prop_assert!(after.tokens.len() <= before.tokens.len());
    }
}

/// The function calls itself through a table in which no other function has its type, so it writes
/// nothing. Before each such call, it calls another function. So an activation of that function is
/// open below the deepest final activation.
#[test]
fn calls_from_a_stack_that_is_full_are_regenerated() {
    let module = wat::parse_str(
        "(module (table 1 funcref) (elem (i32.const 0) $deep) (func $other)
           (func $deep call $other i32.const 0 call_indirect))",
    );
    let program = Program::parse(&module.expect("valid text")).expect("it is supported");
    let plan = planned(&program, &WitnessOptions::default());
    let mut full = 0;
    for seed in 0..50 {
        let rules = Rules {
            steps: 400,
            ends_one_in: 1000,
            deepest: 30,
        };
        let run = walk(&program, &plan, rules, seed);
        assert_eq!(regenerated(&program, &plan, &run, seed), run.events);
        full += usize::from(frames(&run.finish).len() == rules.deepest);
    }
    assert!(full > 10, "{full}");
}

#[test]
fn generated_modules_regenerate() {
    let mut endings = [0; 2];
    let mut left_by_exception = 0;
    for seed in 0..60 {
        let program = Program::parse(&module_from_seed(seed, &ModuleConfig::default()));
        let program = program.expect("generated modules are supported");
        if program.functions.is_empty() {
            continue;
        }
        let plan = planned(&program, &WitnessOptions::default());
        for run_seed in 0..60 {
            let rules = rules(&mut Random(7919 * (run_seed + 1)));
            let run = walk(&program, &plan, rules, 31 * seed + 1000 * run_seed + 17);
            assert_eq!(regenerated(&program, &plan, &run, run_seed), run.events);
            endings[usize::from(run.finish == Finish::Done)] += 1;
            left_by_exception += run
                .counts
                .functions
                .iter()
                .zip(&program.functions)
                .flat_map(|(counts, f)| counts.edges.iter().zip(f.cfg.edges.values()))
                .filter(|(count, edge)| **count > 0 && edge.kind == EdgeKind::Unwind)
                .count();
        }
    }
    assert!(endings.iter().all(|&n| n > 50), "{endings:?}");
    assert!(left_by_exception > 20, "{left_by_exception}");
}

#[test]
fn operators_that_can_fail_have_no_witness_behind_them() {
    for seed in 0..60 {
        let program = Program::parse(&module_from_seed(seed, &ModuleConfig::default()));
        let program = program.expect("generated modules are supported");
        let plan = planned(&program, &WitnessOptions::default());
        for (f, witnesses) in program.functions.iter().zip(plan.functions()) {
            for (e, _) in witnesses.edges() {
                let edge = &f.cfg.edges[*e];
                let fails = matches!(
                    f.cfg.blocks[edge.from].end,
                    BlockEnd::TailCall(_) | BlockEnd::Throw
                );
                assert!(!fails || f.cfg.blocks[edge.to].kind == BlockKind::Code);
            }
        }
    }
}
