//! Computes slices over the dependences between statements that some execution exercised.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;

use afterimage_slice::{Edge, Exercised, Follows, Operator, Reach, Why};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;
use serde::{Deserialize, Serialize};

use super::ahead::{Wanted, ahead};
use afterimage_replay::steps::{Run, StepsError};

/// The number of nodes to follow before they are processed.
const NODES: usize = 1 << 19;

/// Finds the dependences between operators that were exercised up to a time. Follows the run from
/// its beginning.
///
/// Time is linear in the executed statements. Needs the guest's memory, plus memory for the edges.
///
/// # Errors
/// Returns an error if the run cannot be followed.
pub fn exercised<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    until: u64,
) -> Result<BTreeSet<Edge>, StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let Run { program, path, .. } = run;
    let (nodes, until) = (path.nodes(), until.min(path.length()));
    ahead(
        run,
        log,
        |stretches| {
            loop {
                let time = stretches.follower.machine.time();
                (run.progress)(time);
                let goes_on = |nodes, time| nodes < NODES && time < until;
                if time >= until || stretches.give(goes_on)? == Wanted::Enough {
                    return Ok(());
                }
            }
        },
        |coming| {
            let mut edges = Exercised::new(program, nodes);
            coming.each(|followed| {
                for (node, code) in &followed.codes {
                    edges.prepare(*node, code);
                }
                edges.pass(&followed.stretch);
                Wanted::More
            });
            edges.finish()
        },
    )
}

/// The direction in which edges are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From users of values to their dependences.
    Backward,
    /// From dependences to their users.
    Forward,
}

/// Finds the operators reachable over at most `reach` edges. For exercised edges, this is the slice
/// that Agrawal and Horgan's second approach finds (1990, section 3.2). Time is linear in the
/// edges.
pub fn reachable(
    edges: &BTreeSet<Edge>,
    from: &[Operator],
    follows: Follows,
    direction: Direction,
    mut reach: Reach,
) -> BTreeSet<Operator> {
    let followed = edges.iter().filter(|edge| is_followed(edge.why, follows));
    let mut next: HashMap<Operator, Vec<Operator>> = HashMap::new();
    for edge in followed {
        let (from, to) = match direction {
            Direction::Backward => (edge.user, edge.on),
            Direction::Forward => (edge.on, edge.user),
        };
        next.entry(from).or_default().push(to);
    }
    let mut found = BTreeSet::new();
    let mut level = from.to_vec();
    while reach.is_some() && !level.is_empty() {
        reach = reach.next();
        let mut behind = Vec::new();
        for operator in level {
            if found.insert(operator) {
                behind.extend(next.get(&operator).into_iter().flatten());
            }
        }
        level = behind;
    }
    found
}

/// Whether to follow an edge.
pub fn is_followed(why: Why, follows: Follows) -> bool {
    match why {
        Why::Data => follows.data,
        Why::Address => follows.data && follows.addresses,
        Why::Control => follows.control,
        Why::Moved => follows.data && follows.control,
    }
}

/// Returns the edges between groups of operators, with the number of edges of each kind. Edges
/// within a group are left out. Time is linear in the edges.
pub fn grouped<G: Ord + Copy>(
    edges: &BTreeSet<Edge>,
    group: impl Fn(Operator) -> Option<G>,
) -> BTreeMap<(G, G, Why), usize> {
    let mut all = BTreeMap::new();
    for edge in edges {
        if let (Some(user), Some(on)) = (group(edge.user), group(edge.on))
            && user != on
        {
            *all.entry((user, on, edge.why)).or_default() += 1;
        }
    }
    all
}
