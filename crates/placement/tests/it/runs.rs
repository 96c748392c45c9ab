//! Checks that the derived counts of random executions of random programs are the true counts.

use afterimage_ids::{Counts, EntityRef};
use afterimage_placement::{
    Mode, Plan, PlanOptions, RunFacts, Site, SolveError, SplitCost, block_counts, measured_blocks,
    plan, solve,
};
use afterimage_program::{BlockKind, Program};
use afterimage_testkit::graphs::programs::programs;
use afterimage_testkit::graphs::walk::{Rules, Run, walk};
use proptest::prelude::*;

const RULES: Rules = Rules {
    steps: 400,
    ends_at_calls: false,
    host_uses_references: false,
};

fn planned(program: &Program, options: &PlanOptions<'_>) -> Plan {
    plan(program, options).expect("a plan")
}

fn walked(program: &Program, rules: Rules, seed: u64) -> Run {
    walk(program, rules, seed).expect("it may end anywhere")
}

fn solved(program: &Program, plan: &Plan, run: &Run) -> Result<Counts, SolveError> {
    solve(program, plan, &run.counters(plan), &run.facts)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn counters_on_edges_give_the_truth(program in programs(), seed: u64) {
        let run = walked(&program, RULES, seed);
        for mode in [Mode::Edges, Mode::Quick] {
            let plan = planned(&program, &PlanOptions::new(mode));
            prop_assert_eq!(solved(&program, &plan, &run), Ok(run.counts.clone()), "{:?}", mode);
        }
    }

    #[test]
    fn feedback_gives_the_truth_and_costs_no_more(program in programs(), seed: u64, other: u64) {
        let run = walked(&program, RULES, seed);
        let earlier = walked(&program, RULES, other);
        let mut options = PlanOptions::new(Mode::Feedback);
        options.feedback = Some(&earlier.counts);
        let plan = planned(&program, &options);
        prop_assert_eq!(solved(&program, &plan, &run), Ok(run.counts.clone()));
        options.feedback = Some(&run.counts);
        options.split_cost = SplitCost::FREE;
        let feedback = planned(&program, &options);
        options.mode = Mode::Quick;
        prop_assert!(edge_increments(&run, &feedback) <= edge_increments(&run, &planned(&program, &options)));
    }

    #[test]
    fn blocks_are_those_of_slow_mode(program in programs(), seed: u64) {
        let run = walked(&program, RULES, seed);
        let slow = planned(&program, &PlanOptions::new(Mode::Slow));
        let measured = measured_blocks(&program, &slow, &run.counters(&slow)).expect("it fits");
        let derived = block_counts(&program, &run.counts).expect("it fits");
        for (i, f) in program.functions.iter().enumerate() {
            for (v, block) in f.cfg.blocks.iter() {
                let measured = measured[i][v.index()];
                prop_assert_eq!(measured.is_some(), block.kind == BlockKind::Code);
                prop_assert!(measured.is_none_or(|n| n == derived[i][v.index()]));
            }
            let exit = derived[i][f.cfg.graph.exit().index()];
            prop_assert_eq!(exit, run.counts.functions[i].entries);
        }
    }

    #[test]
    fn standalone_plans_need_no_backtrace(program in programs(), seed: u64) {
        let rules = Rules { ends_at_calls: true, ..RULES };
        let Some(run) = walk(&program, rules, seed) else { return Ok(()) };
        for mode in [Mode::Quick, Mode::Feedback] {
            let mut options = PlanOptions::new(mode);
            options.standalone = true;
            options.feedback = Some(&run.counts);
            let plan = planned(&program, &options);
            let counts = solve(&program, &plan, &run.counters(&plan), &RunFacts::default());
            prop_assert_eq!(counts.as_ref(), Ok(&run.counts));
        }
    }

    #[test]
    fn whole_program_plans_give_the_truth(
        program in programs(), seed: u64, knows_imports: bool, references: bool,
    ) {
        let rules = Rules { host_uses_references: references, ..RULES };
        let mut run = walked(&program, rules, seed);
        let mut options = PlanOptions::new(Mode::Program);
        options.host_counts_import_calls = knows_imports;
        options.host_uses_references = references;
        if !knows_imports {
            run.facts.import_calls = None;
        }
        let plan = planned(&program, &options);
        prop_assert_eq!(solved(&program, &plan, &run), Ok(run.counts.clone()));
        options.feedback = Some(&run.counts);
        let plan = planned(&program, &options);
        prop_assert_eq!(solved(&program, &plan, &run), Ok(run.counts.clone()));
    }

    #[test]
    fn a_wrong_counter_is_found_where_every_edge_has_one(
        program in programs(), seed: u64, which: prop::sample::Index, by in 1u64..5,
    ) {
        let run = walked(&program, RULES, seed);
        let plan = planned(&program, &PlanOptions::new(Mode::Edges));
        let mut counters = run.counters(&plan);
        prop_assume!(!counters.is_empty());
        let i = which.index(counters.len());
        let functions = plan.functions.iter().zip(&program.functions);
        let mut probes = functions.flat_map(|(p, f)| p.probes.iter().map(move |probe| (f, probe)));
        let (f, probe) = probes.find(|(_, p)| p.counter.index() == i).expect("it has a place");
        let graph = &f.cfg.graph;
        let e = match probe.site {
            Site::Edge(e) => e,
            Site::Block(v) => graph.out_edges(v)[0],
        };
        // A cycle of one edge, or of one edge and EXIT→root, may well be executed once more.
        let (from, to) = (graph.from(e), graph.to(e));
        prop_assume!(from != to && (from, to) != (graph.root(), graph.exit()));
        counters[i] += by;
        prop_assert!(solve(&program, &plan, &counters, &run.facts).is_err());
    }
}

/// Counts increments on edges. A block counter's increments count for the edge after it.
fn edge_increments(run: &Run, plan: &Plan) -> u64 {
    let functions = plan
        .functions
        .iter()
        .zip(&run.counts.functions)
        .zip(&run.blocks);
    let probes = functions.flat_map(|((p, c), b)| p.probes.iter().map(move |probe| (probe, c, b)));
    let counts = probes.map(|(probe, counts, blocks)| match probe.site {
        Site::Edge(e) => counts.edges[e.index()],
        Site::Block(v) => {
            let stayed = counts.open.iter().find(|o| o.0 == v).map_or(0, |o| o.1);
            blocks[v.index()] - stayed
        }
    });
    counts.sum()
}
