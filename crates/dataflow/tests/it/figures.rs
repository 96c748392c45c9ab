//! Reproduces the figures of Zhang and Gupta 2001, section 4, that ask one question.

use afterimage_dataflow::{Direction, Effect, Outcome, Question, Site, TimestampedGraph, solve};

/// Returns the loop of Figure 9. It has a load of X in node 1, and then either a load of X in node
/// 4 or a store to X in node 6. (The text does not give the other nodes.)
fn figure_9(loads: usize, stores: usize) -> TimestampedGraph {
    let mut path = [1, 2, 4, 7].repeat(loads);
    path.extend([1, 3, 6, 7].repeat(stores));
    path.push(8);
    TimestampedGraph::of_path(&path)
}

const GEN: Site = Site(1);
const KILL: Site = Site(0);

fn x_is_loaded(node: usize) -> Effect {
    match node {
        1 | 4 => Effect::Decides(GEN),
        6 => Effect::Decides(KILL),
        _ => Effect::Transparent,
    }
}

#[test]
fn figure_9_load_redundancy() {
    let graph = figure_9(60, 40);
    let question = |node| Question {
        direction: Direction::Backward,
        node,
        times: graph.timestamps(node),
        own: Effect::Transparent,
    };
    // 4_Load is redundant 60 times out of 60.
    let load = solve(&graph, &question(4), x_is_loaded);
    assert_eq!(load.count_where(|o| o == Outcome::Decided(GEN)), 60);
    assert_eq!(load.count(), 60);
    // 1_Load is not redundant after an iteration with 6_Store, nor the first time.
    let first = solve(&graph, &question(1), x_is_loaded);
    assert_eq!(first.count_where(|o| o == Outcome::Decided(GEN)), 60);
    assert_eq!(first.count_where(|o| o == Outcome::Decided(KILL)), 39);
    assert_eq!(first.times_where(|o| o == Outcome::Open).to_string(), "1");
}

#[test]
fn figure_9_takes_as_many_queries_however_often_the_loop_runs() {
    let queries = |loads, stores| {
        let graph = figure_9(loads, stores);
        let question = Question {
            direction: Direction::Backward,
            node: 4,
            times: graph.timestamps(4),
            own: Effect::Transparent,
        };
        solve(&graph, &question, x_is_loaded).queries
    };
    // ⟨T, 4⟩ and ⟨T − 1, 2⟩: node 1 answers.
    assert_eq!(queries(60, 40), 2);
    assert_eq!(queries(60_000, 40_000), 2);
}

/// Tests a load in a loop, of a value that was loaded before the loop and never killed.
#[test]
fn what_comes_from_before_a_loop_takes_no_more_queries_in_a_longer_loop() {
    let solved = |times| {
        let mut path = vec![0];
        path.extend([1, 2, 3, 4].repeat(times));
        let graph = TimestampedGraph::of_path(&path);
        let question = Question {
            direction: Direction::Backward,
            node: 3,
            times: graph.timestamps(3),
            own: Effect::Transparent,
        };
        solve(&graph, &question, |node| match node {
            0 => Effect::Decides(GEN),
            _ => Effect::Transparent,
        })
    };
    let short = solved(3);
    let long = solved(100_000);
    assert_eq!(short.queries, long.queries);
    assert_eq!(long.count_where(|o| o == Outcome::Decided(GEN)), 100_000);
    let times = long.times_where(|o| o == Outcome::Decided(GEN));
    assert_eq!(times.to_string(), "4:400000:4");
}

/// Block 1 assigns X twice, and the optimiser moves the second assignment to block 2. Is X current
/// at a breakpoint in block 3? The value is current if the same definition would reach the
/// breakpoint in the unoptimised program.
#[test]
fn figure_12_currency() {
    let unoptimised = |node| match node {
        1 => Effect::Decides(Site(2)),
        _ => Effect::Transparent,
    };
    let optimised = |node| match node {
        1 => Effect::Decides(Site(1)),
        2 => Effect::Decides(Site(2)),
        _ => Effect::Transparent,
    };
    // The path passes twice through block 2, twice around it, and once more through it.
    let path = [0, 1, 2, 3, 1, 2, 3, 1, 3, 1, 3, 1, 2, 3];
    let graph = TimestampedGraph::of_path(&path);
    let question = Question {
        direction: Direction::Backward,
        node: 3,
        times: graph.timestamps(3),
        own: Effect::Transparent,
    };
    let expected = solve(&graph, &question, unoptimised);
    let actual = solve(&graph, &question, optimised);
    let breakpoints = graph.timestamps(3).iter();
    let current: Vec<bool> = breakpoints
        .map(|t| expected.at(t) == actual.at(t))
        .collect();
    assert_eq!(current, [true, true, false, false, true]);
}
