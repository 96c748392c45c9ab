//! Checks that large functions and large programs take seconds, not hours.

use std::time::{Duration, Instant};

use crate::witness_walk::{EventLog, Recorded, Rules, walk};
use afterimage_paths::witness::{Regenerator, WitnessOptions, WitnessPlan};
use afterimage_program::Program;
use afterimage_testkit::graphs::programs::Ending;
use afterimage_testkit::graphs::programs::{call_chain, regular, without_calls};

/// The time limit. It is generous, because machines differ and quadratic behaviour takes hours.
const LIMIT: Duration = Duration::from_secs(30);

fn plan_and_regenerate(program: &Program, steps: usize) {
    let start = Instant::now();
    let plan = WitnessPlan::new(program, None, &WitnessOptions::default()).expect("no counts");
    let planned = start.elapsed();
    let rules = Rules {
        steps,
        ends_one_in: usize::MAX,
        deepest: 1000,
    };
    let run = walk(program, &plan, rules, 7);
    let start = Instant::now();
    let mut regenerator = Regenerator::new(program, &plan);
    for &function in &run.host_calls {
        regenerator.host_call(function);
    }
    let mut told = EventLog::default();
    let mut reader = Recorded {
        tokens: &run.tokens,
        read: 0,
        so_far: run.tokens.len(),
    };
    assert_eq!(regenerator.advance(&mut reader, &mut told), Ok(()));
    assert_eq!(regenerator.finish(&run.finish, &mut told), Ok(()));
    assert!(told.0 == run.events);
    println!(
        "planned in {planned:?}, regenerated {} blocks in {:?}, {} tokens, {} bits, {} branches",
        run.blocks(),
        start.elapsed(),
        run.tokens.len(),
        run.bits(),
        run.branches,
    );
    assert!(planned + start.elapsed() < LIMIT);
}

/// Tests a row of diamonds in nested loops.
#[test]
fn a_function_of_200_000_edges() {
    let diamonds = 40_000;
    let mut edges = vec![(0, 1)];
    for d in 0..diamonds {
        let top = 4 * d + 1;
        edges.extend([(top, top + 1), (top, top + 2)]);
        edges.extend([(top + 1, top + 3), (top + 2, top + 3), (top + 3, top + 4)]);
        if d % 7 == 3 {
            edges.push((top + 3, top - 12));
        }
    }
    plan_and_regenerate(&without_calls(4 * diamonds + 2, &edges), 400_000);
}

/// Tests a row of bounds checks, in which silent paths lead from every branch to all later
/// branches.
#[test]
fn a_row_of_50_000_checks() {
    let checks = 50_000;
    let mut edges: Vec<(usize, usize)> = (0..checks).map(|v| (v, v + 1)).collect();
    edges.extend((0..checks).map(|v| (v, checks + 1)));
    edges.extend([(checks, 1), (checks, checks + 1)]);
    plan_and_regenerate(&without_calls(checks + 2, &edges), 400_000);
}

/// Tests a row of checks that lead back, in loops nested sixteen deep.
#[test]
fn a_nest_of_50_000_loops() {
    let states = 50_000;
    let mut edges: Vec<(usize, usize)> = (0..states).map(|v| (v, v + 1)).collect();
    edges.extend((1..states).map(|v: usize| (v, (v & (v - 1)).max(1))));
    plan_and_regenerate(&without_calls(states + 1, &edges), 400_000);
}

#[test]
fn a_branch_with_50_000_ways() {
    let ways = 50_000;
    let mut edges = vec![(0, 1)];
    edges.extend((0..ways).map(|w| (1, 2 + w)));
    edges.extend((0..ways).map(|w| (2 + w, if w % 100 == 0 { 2 + ways } else { 1 })));
    plan_and_regenerate(&without_calls(ways + 3, &edges), 400_000);
}

#[test]
fn a_program_of_100_000_functions() {
    plan_and_regenerate(&call_chain(100_000), 400_000);
    // All functions are recursive.
    let graph = |_| (4, vec![(0, 1), (0, 2), (1, 2), (2, 3)]);
    let program = regular(100_000, graph, |f, v| match v {
        1 => Ending::Call(1 + f * 31 % 100_000),
        _ => Ending::Plain,
    });
    plan_and_regenerate(&program, 400_000);
}
