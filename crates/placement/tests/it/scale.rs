//! Checks that large functions and large programs take seconds, not hours.

use std::time::{Duration, Instant};

use afterimage_ids::{Counts, EntityRef, FuncId, FunctionCounts};
use afterimage_placement::{Mode, PlanOptions, RunFacts, Site, plan, solve};
use afterimage_program::Program;
use afterimage_testkit::graphs::programs::{Ending, call_chain, regular};

/// The time limit. It is generous, because machines differ and quadratic behaviour takes hours.
const LIMIT: Duration = Duration::from_secs(60);

/// Makes a plan, and solves for the counts of a run that executed nothing.
fn plan_and_solve(program: &Program, mode: Mode) {
    let start = Instant::now();
    let plan = plan(program, &PlanOptions::new(mode)).expect("a plan");
    let planned = start.elapsed();
    let facts = RunFacts {
        import_calls: Some(vec![0]),
        ..RunFacts::default()
    };
    let counters = vec![0; plan.counters as usize];
    let counts = solve(program, &plan, &counters, &facts).expect("a solution");
    println!(
        "{mode:?}: {} counters, {} derived, planned in {planned:?}, solved in {:?}",
        plan.counters,
        plan.derived.len(),
        start.elapsed() - planned
    );
    assert!(
        counts
            .functions
            .iter()
            .all(|f| f.edges.iter().all(|&n| n == 0))
    );
    assert!(
        start.elapsed() < LIMIT,
        "{mode:?} took {:?}",
        start.elapsed()
    );
}

/// Tests a row of diamonds in nested loops, with calls on the arms.
#[test]
fn a_function_of_200_000_edges() {
    let diamonds = 40_000;
    let n = 4 * diamonds + 2;
    let mut edges = vec![(0, 1)];
    for d in 0..diamonds {
        let top = 4 * d + 1;
        edges.extend([
            (top, top + 1),
            (top, top + 2),
            (top + 1, top + 3),
            (top + 2, top + 3),
        ]);
        edges.push((top + 3, top + 4));
        if d % 7 == 3 {
            edges.push((top + 3, top - 12));
        }
    }
    let program = regular(
        1,
        |_| (n, edges.clone()),
        |_, v| {
            if v % 4 == 2 {
                Ending::Call(v % 8 / 4)
            } else {
                Ending::Plain
            }
        },
    );
    for mode in [Mode::Edges, Mode::Quick, Mode::Program] {
        plan_and_solve(&program, mode);
    }
}

/// Calls lead everywhere, and some lead back, so that most of the program is one recursion.
#[test]
fn a_program_of_100_000_functions() {
    let functions = 100_000;
    // Two branches over calls, in a loop.
    let graph = vec![
        (0, 1),
        (1, 2),
        (1, 3),
        (2, 4),
        (3, 4),
        (4, 5),
        (4, 6),
        (5, 6),
        (6, 1),
        (6, 7),
    ];
    let program = regular(
        functions,
        |_| (8, graph.clone()),
        |f, v| match v {
            2 => Ending::Call((f * 7919 + 13) % functions + 1),
            3 => Ending::Call((f * 31 + 7) % 100 + 1),
            5 if f % 5 == 0 => Ending::Call((f * 104_729 + 1) % functions + 1),
            5 => Ending::Call((f + 1) % (functions + 1)),
            _ => Ending::Plain,
        },
    );
    for mode in [Mode::Quick, Mode::Program] {
        plan_and_solve(&program, mode);
    }
}

/// One equation leads to the next, 20,000 times.
#[test]
fn a_long_chain_of_calls_is_solved_exactly() {
    let functions = 20_000;
    let program = call_chain(functions);
    let plan = plan(&program, &PlanOptions::new(Mode::Program)).expect("a plan");
    // Entries fall from 2^40 to 1 along the chain.
    let entries = |f: usize| 1u64 << (40 - 40 * f / functions);
    let functions_counts = (0..functions).map(|f| {
        let called = if f + 1 == functions {
            1
        } else {
            entries(f + 1)
        };
        let past = entries(f) - called;
        FunctionCounts {
            entries: entries(f),
            edges: vec![called, past, called, entries(f)],
            open: Vec::new(),
        }
    });
    let truth = Counts {
        functions: functions_counts.collect(),
    };
    let mut counters = vec![0; plan.counters as usize];
    for (function, counts) in plan.functions.iter().zip(&truth.functions) {
        for probe in &function.probes {
            let Site::Edge(e) = probe.site else {
                panic!("edges only")
            };
            counters[probe.counter.index()] = counts.edges[e.index()];
        }
    }
    let facts = RunFacts {
        host_entries: vec![(FuncId::new(1), entries(0))],
        import_calls: Some(vec![1]),
        ..RunFacts::default()
    };
    assert!((plan.counters as usize) < functions);
    assert_eq!(solve(&program, &plan, &counters, &facts), Ok(truth));
}
