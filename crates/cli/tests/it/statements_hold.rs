//! Slices by statements contain slices by executions, for any depth and beginning: instances ⊆
//! edges ⊆ nodes.

use std::collections::BTreeSet;

use afterimage_analyses::slices::{
    Algorithm, Criterion, Direction, Edge, Follows, Operator, Origin, Question, Reach, Want,
    answer, by_statements, exercised_of, reachable,
};
use afterimage_replay::values::{Kind, Statement};
use afterimage_testkit::modules::SplitMix64;

use crate::common::Sandbox;
use crate::common::generated::{each_with_values, seeds};
use crate::common::recorded::Recorded;

/// The maximum number of blocks. Longer runs are left out.
const MOST: u64 = 2000;
/// The number of places in the questions about a run.
const ASKED: usize = 6;

const FOLLOWS: [Follows; 3] = [Follows::ALL, Follows::THIN, Follows::CONTROL];

#[derive(Debug, Default)]
struct Compared {
    slices: usize,
    /// The number of slices that are larger by edges than by executions, and larger by nodes than
    /// by edges.
    wider: [usize; 2],
    /// The number of nonempty chops.
    chops: usize,
}

#[test]
fn instances_are_in_edges_and_edges_in_nodes() {
    let mut all = Compared::default();
    crate::forward::recorded::each_recorded(3, |sandbox| compare(sandbox, &mut all));
    each_with_values(seeds(6), |sandbox| compare(sandbox, &mut all));
    let Compared {
        slices,
        wider,
        chops,
    } = all;
    assert!(slices > 1000 && chops > 50, "{all:?}");
    assert!(wider.iter().all(|wider| *wider > 100), "{all:?}");
}

/// Returns everything reachable over a few edges, computed round by round.
fn reached(
    edges: &BTreeSet<Edge>,
    from: &[Operator],
    direction: Direction,
    depth: Option<u8>,
) -> BTreeSet<Operator> {
    let mut found = BTreeSet::from_iter(from.iter().copied());
    let mut rounds = 0;
    while depth.is_none_or(|depth| rounds < depth) {
        let before = found.len();
        let ends = edges.iter().map(|edge| match direction {
            Direction::Backward => (edge.user, edge.on),
            Direction::Forward => (edge.on, edge.user),
        });
        let more = Vec::from_iter(ends.filter(|(from, _)| found.contains(from)));
        found.extend(more.into_iter().map(|(_, to)| to));
        if found.len() == before {
            break;
        }
        rounds = rounds.saturating_add(1);
    }
    found
}

fn compare(sandbox: &Sandbox, all: &mut Compared) {
    let Some(recorded) = Recorded::short(sandbox, MOST) else {
        return;
    };
    let program = recorded.program();
    let path = recorded.path().unwrap();
    let values = recorded.values().unwrap();
    let run = recorded.run_from_checkpoints().unwrap();
    let log = || recorded.log().unwrap();
    let mut random = SplitMix64(path.length());
    let mut before: Option<Origin> = None;
    for _ in 0..ASKED {
        let time = 1 + random.below(path.length() as usize) as u64;
        let instance = values.at(time).unwrap().expect("an execution");
        let node = &path.nodes()[instance.node];
        let compiled = values.compiled(instance.node).unwrap();
        let statements = Statement::all(program, &compiled.code, &node.blocks);
        let mut asked = vec![
            (Want::Variable(0), Vec::new()),
            (Want::Block(random.below(node.blocks.len())), Vec::new()),
        ];
        if !statements.is_empty() {
            let (op, one) = statements[random.below(statements.len())];
            let want = match one.kind {
                Kind::Inst(inst) => Want::Inst(inst),
                Kind::Call(_) | Kind::Return | Kind::Throw => Want::End,
            };
            asked.push((want, vec![(node.function, op)]));
        }
        for (want, operators) in asked {
            for (depth, direction, follows) in cases() {
                let reach = depth.and_then(Reach::of_depth).unwrap_or(Reach::ALL);
                let full = Question {
                    algorithm: Algorithm::Full,
                    direction,
                    follows,
                    criteria: vec![Criterion {
                        start: instance.time,
                        wants: vec![want],
                        reach,
                    }],
                    operators: operators.clone(),
                    from: None,
                };
                let is_chop = direction == Direction::Backward && depth.is_none();
                let chops = before.iter().filter(|_| is_chop).cloned().map(Some);
                for from in chops.chain([None]) {
                    let full = Question {
                        from,
                        ..full.clone()
                    };
                    let mut asked = full.clone();
                    if asked.operators.is_empty() {
                        asked = by_statements(run, log(), asked).unwrap();
                    }
                    let found = |question: &Question, algorithm| {
                        let question = Question {
                            algorithm,
                            ..question.clone()
                        };
                        let slice = answer(run, [log(), log()], &question).unwrap();
                        BTreeSet::from_iter(slice.operators.into_keys())
                    };
                    let instances = found(&full, Algorithm::Full);
                    let edges = found(&asked, Algorithm::Edges);
                    let nodes = found(&asked, Algorithm::Nodes);
                    let what = format!("{full:?}");
                    let lacking = |one: &BTreeSet<Operator>, other: &BTreeSet<Operator>| {
                        let lacking = Vec::from_iter(one.difference(other));
                        assert!(lacking.is_empty(), "{what}: {lacking:?}");
                    };
                    lacking(&instances, &edges);
                    lacking(&edges, &nodes);
                    all.slices += 1;
                    all.wider[0] += usize::from(edges.len() > instances.len());
                    all.wider[1] += usize::from(nodes.len() > edges.len());
                    let over = exercised_of(run, log(), &asked).unwrap();
                    let left = asked.criteria[0].reach.depth();
                    let mut expected = reached(&over, &asked.operators, direction, left);
                    if let Some(from) = &asked.from {
                        let forward = Direction::Forward;
                        let influenced =
                            reachable(&over, &from.operators, follows, forward, Reach::ALL);
                        expected.retain(|one| influenced.contains(one));
                        all.chops += usize::from(!instances.is_empty());
                    }
                    assert_eq!(edges, expected, "{what}");
                }
            }
            if !operators.is_empty() {
                before = Some(Origin {
                    criteria: vec![Criterion {
                        start: instance.time,
                        wants: vec![want],
                        reach: Reach::ALL,
                    }],
                    operators,
                });
            }
        }
    }
}

fn cases() -> impl Iterator<Item = (Option<u8>, Direction, Follows)> {
    let depths = [None, Some(0), Some(1), Some(2), Some(5)].into_iter();
    let ways = [Direction::Backward, Direction::Forward];
    depths.flat_map(move |depth| {
        ways.into_iter().flat_map(move |way| {
            FOLLOWS
                .into_iter()
                .map(move |follows| (depth, way, follows))
        })
    })
}
