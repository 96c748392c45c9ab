//! Compares the three slicing algorithms with their definitions (Agrawal and Horgan 1990), on
//! generated programs and paths.

use std::collections::{BTreeMap, BTreeSet};

use afterimage_dataflow::TimestampedGraph;
use afterimage_dataflow::slices::{Approach, Criterion, Slicing, Statement, Variable, slice};
use proptest::prelude::*;

const VARIABLES: u32 = 3;

fn statement(nodes: usize) -> impl Strategy<Value = Statement> {
    let variables = || proptest::collection::btree_set((0..VARIABLES).prop_map(Variable), 0..2);
    let controls = proptest::collection::btree_set(0..nodes, 0..2);
    (variables(), variables(), controls).prop_map(|(defines, uses, controlled_by)| Statement {
        defines: defines.into_iter().collect(),
        uses: uses.into_iter().collect(),
        controlled_by: controlled_by.into_iter().collect(),
    })
}

/// Returns the dependences of an execution. They are the latest earlier definition of each
/// variable, and the latest execution of the controlling block.
fn dependences(
    path: &[usize],
    statements: &[Statement],
    t: usize,
    uses: &[Variable],
) -> Vec<usize> {
    let before = |is: &dyn Fn(usize) -> bool| (1..t).rev().find(|&s| is(path[s - 1]));
    let data = uses
        .iter()
        .filter_map(|v| before(&|node| statements[node].defines.contains(v)));
    let control = before(&|node| statements[path[t - 1]].controlled_by.contains(&node));
    data.chain(control).collect()
}

/// Computes the third approach, as the closure of the dependences between executions.
fn instances(path: &[usize], statements: &[Statement], criterion: &Criterion) -> BTreeSet<usize> {
    let t = criterion.time as usize;
    let mut found = BTreeSet::from([t]);
    let mut open = dependences(path, statements, t, &criterion.variables);
    while let Some(t) = open.pop() {
        if found.insert(t) {
            open.extend(dependences(
                path,
                statements,
                t,
                &statements[path[t - 1]].uses,
            ));
        } else if t == criterion.time as usize {
            unreachable!("it depends on what comes before");
        }
    }
    found
}

/// Computes the second approach, with all exercised dependences as edges between statements.
fn edges(path: &[usize], statements: &[Statement], criterion: &Criterion) -> BTreeSet<usize> {
    let mut exercised: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for t in 1..=path.len() {
        let node = path[t - 1];
        let all = dependences(path, statements, t, &statements[node].uses);
        exercised
            .entry(node)
            .or_default()
            .extend(all.iter().map(|&s| path[s - 1]));
    }
    let first = dependences(
        path,
        statements,
        criterion.time as usize,
        &criterion.variables,
    );
    closure(
        first.iter().map(|&s| path[s - 1]).collect(),
        criterion.node,
        |node| {
            exercised
                .get(&node)
                .into_iter()
                .flatten()
                .copied()
                .collect()
        },
    )
}

/// Computes the first approach, with static dependences along edges between executed nodes.
fn nodes(
    path: &[usize],
    statements: &[Statement],
    before: &[Vec<usize>],
    criterion: &Criterion,
) -> BTreeSet<usize> {
    let executed: BTreeSet<usize> = path.iter().copied().collect();
    let reaching = |node: usize, answers: &dyn Fn(usize) -> bool| {
        let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
        let mut open = before[node].clone();
        while let Some(other) = open.pop() {
            if !executed.contains(&other) || !seen.insert(other) {
                continue;
            }
            if answers(other) {
                found.push(other);
            } else {
                open.extend(&before[other]);
            }
        }
        found
    };
    let of = |node: usize, uses: &[Variable]| {
        let data = uses
            .iter()
            .flat_map(|v| reaching(node, &|other| statements[other].defines.contains(v)));
        let mut all: Vec<usize> = data.collect();
        all.extend(reaching(node, &|other| {
            statements[node].controlled_by.contains(&other)
        }));
        all
    };
    closure(
        of(criterion.node, &criterion.variables),
        criterion.node,
        |node| of(node, &statements[node].uses),
    )
}

fn closure(
    mut open: Vec<usize>,
    criterion: usize,
    next: impl Fn(usize) -> Vec<usize>,
) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    while let Some(node) = open.pop() {
        if found.insert(node) {
            open.extend(next(node));
        }
    }
    found.insert(criterion);
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn slices_are_those_of_the_definitions(
        path in proptest::collection::vec(0usize..7, 1..50),
        repeated in 1usize..4,
        statements in proptest::collection::vec(statement(7), 7),
        more in proptest::collection::btree_set((0usize..7, 0usize..7), 0..6),
        which in any::<prop::sample::Index>(),
        variable in 0..VARIABLES,
    ) {
        let path = path.repeat(repeated);
        let graph = TimestampedGraph::of_path(&path);
        let mut flow: BTreeSet<(usize, usize)> = path.windows(2).map(|pair| (pair[1], pair[0])).collect();
        flow.extend(more);
        let mut before = vec![Vec::new(); 7];
        for (to, from) in flow {
            before[to].push(from);
        }
        let t = which.index(path.len());
        let criterion = Criterion {
            node: path[t],
            time: t as u64 + 1,
            variables: vec![Variable(variable)],
        };
        let slicing = Slicing::new(&graph, &statements, &before);
        let by = |approach| slice(&slicing, &criterion, approach);

        let third = by(Approach::Instances);
        let found: BTreeSet<usize> = third
            .instances
            .values()
            .flat_map(|series| series.iter().map(|t| t as usize).collect::<Vec<_>>())
            .collect();
        let expected = instances(&path, &statements, &criterion);
        prop_assert_eq!(&found, &expected);
        let of_instances: BTreeSet<usize> = expected.iter().map(|&t| path[t - 1]).collect();
        prop_assert_eq!(&third.nodes, &of_instances);

        let second = by(Approach::Edges);
        prop_assert_eq!(&second.nodes, &edges(&path, &statements, &criterion));
        let first = by(Approach::Nodes);
        prop_assert_eq!(&first.nodes, &nodes(&path, &statements, &before, &criterion));

        prop_assert!(third.nodes.is_subset(&second.nodes));
        prop_assert!(second.nodes.is_subset(&first.nodes));
    }
}
