//! Answers questions about slices.

use std::collections::BTreeSet;
use std::error::Error;

use afterimage_ids::NodeId;
use afterimage_slice::{Criterion, Edge, Follows, Operator, Potential, Reach, Slice};
use afterimage_trace::LogReader;
use afterimage_wpp::Segments;
use serde::{Deserialize, Serialize};

use super::exercised::{Direction, exercised, is_followed, reachable};
use super::report::executions;
use super::{backward, chop, forward};
use afterimage_replay::steps::{Follower, Run, StepsError};

/// The precision of a slice. The least precise variant comes first. A slice contains all slices
/// that are more precise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// Consists of statements. Follows the dependences that the code allows between executed
    /// statements (Agrawal and Horgan 1990, the first approach).
    Nodes,
    /// Consists of statements. Follows the dependences that some execution exercised (the second
    /// approach).
    Edges,
    /// Consists of executions (the third approach; Zhang and Gupta 2005, section 6.1).
    Full,
}

/// A question whose answer is a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The precision of the slice.
    pub algorithm: Algorithm,
    /// The direction in which dependences are followed.
    pub direction: Direction,
    /// The dependences to follow.
    pub follows: Follows,
    /// The starting criteria of the slice. Their reach also limits slices by statements.
    pub criteria: Vec<Criterion>,
    /// The starting statements of a slice by statements. They are the statements that the criteria
    /// executed, or the statements that [produced](by_statements) the value that the question is
    /// about.
    pub operators: Vec<Operator>,
    /// For a chop, the executions on which everything in the slice must also depend.
    pub from: Option<Origin>,
}

/// The executions at which a chop begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The criteria for these executions.
    pub criteria: Vec<Criterion>,
    /// The statements of these executions.
    pub operators: Vec<Operator>,
}

impl Question {
    /// Returns the time up to which exercised dependences count.
    fn until(&self) -> u64 {
        let starts = self.criteria.iter().map(|criterion| criterion.start);
        match self.direction {
            Direction::Forward => u64::MAX,
            Direction::Backward => starts.max().unwrap_or(0),
        }
    }

    /// Returns the number of dependences that a slice by statements follows.
    pub(super) fn reach(&self) -> Reach {
        let reaches = self.criteria.iter().map(|criterion| criterion.reach);
        reaches.max().unwrap_or(Reach::ALL)
    }
}

/// Converts a question about a value, such as the value of a variable, into a question about
/// statements. The new question begins with the statements that produced the value or, for a
/// forward slice, used it. These are at most one dependence away. The reach of the question shrinks
/// accordingly.
///
/// Takes as long as [`backward`] or [`forward`].
///
/// # Errors
/// Returns an error if the run cannot be followed.
pub fn by_statements<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    mut question: Question,
) -> Result<Question, StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let left = question.reach().depth();
    let first = left.map_or(1, |left| left.min(1));
    question.operators = makers(run, log, &question, first)?;
    if let Some(left) = left {
        question.criteria = limited(&question, left - first);
    }
    Ok(question)
}

/// Returns the statements at most `depth` dependences away that produced the value that the
/// question is about or, for a forward slice, used it.
pub(super) fn makers<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    question: &Question,
    depth: u8,
) -> Result<Vec<Operator>, StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let (follows, criteria) = (question.follows, limited(question, depth));
    let found = match question.direction {
        Direction::Backward => backward(run, log, follows, criteria)?,
        Direction::Forward => forward(run, log, follows, criteria)?,
    };
    Ok(found.operators.into_keys().collect())
}

/// Returns a question's criteria, with their reach limited to `depth`.
fn limited(question: &Question, depth: u8) -> Vec<Criterion> {
    let reach = Reach::of_depth(depth).unwrap_or(Reach::ALL);
    let mut criteria = question.criteria.clone();
    criteria.iter_mut().for_each(|one| one.reach = reach);
    criteria
}

/// Computes the slice. A slice by statements contains all executions of each statement. `logs` are
/// two readers of the run's log. Only a chop needs the second.
///
/// Takes as long as [`backward`], [`forward`], [`chop`] or [`exercised`]. With
/// [`Algorithm::Nodes`], time is linear in the executed code, and the run is not followed.
///
/// # Errors
/// Returns an error if the run cannot be followed.
pub fn answer<S: Segments>(
    run: Run<'_, S>,
    logs: [LogReader; 2],
    question: &Question,
) -> Result<Slice, StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let [log, second] = logs;
    let (follows, criteria) = (question.follows, question.criteria.clone());
    let (program, path) = (run.program, run.path);
    let of_operators = |found: &BTreeSet<Operator>| Slice {
        operators: executions(found, program, path),
        initial: Vec::new(),
    };
    match (question.algorithm, question.direction, &question.from) {
        (Algorithm::Full, _, Some(from)) => {
            chop(run, [log, second], follows, from.criteria.clone(), criteria)
        }
        (Algorithm::Full, Direction::Forward, None) => forward(run, log, follows, criteria),
        (Algorithm::Full, Direction::Backward, None) => backward(run, log, follows, criteria),
        (Algorithm::Edges, ..) => {
            let edges = exercised_of(run, log, question)?;
            let found = from_statements(question, |from, direction, reach| {
                reachable(&edges, from, follows, direction, reach)
            });
            Ok(of_operators(&found))
        }
        (Algorithm::Nodes, ..) => {
            let mut potential = potential(run, log)?;
            let found = from_statements(question, |from, direction, reach| match direction {
                Direction::Backward => potential.backward(from, follows, reach),
                Direction::Forward => potential.forward(from, follows, reach),
            });
            Ok(of_operators(&found))
        }
    }
}

/// Returns the operators reachable from a question's statements or, for a chop, from both ends.
fn from_statements(
    question: &Question,
    mut reached: impl FnMut(&[Operator], Direction, Reach) -> BTreeSet<Operator>,
) -> BTreeSet<Operator> {
    let mut found = reached(&question.operators, question.direction, question.reach());
    if let Some(from) = &question.from {
        let influenced = reached(&from.operators, Direction::Forward, Reach::ALL);
        found.retain(|operator| influenced.contains(operator));
    }
    found
}

/// Returns the exercised dependences between statements that a question follows, up to the last
/// criterion or in the whole run.
///
/// # Errors
/// Returns an error if the run cannot be followed.
pub fn exercised_of<S: Segments>(
    run: Run<'_, S>,
    log: LogReader,
    question: &Question,
) -> Result<BTreeSet<Edge>, StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let mut edges = exercised(run, log, question.until())?;
    edges.retain(|edge| is_followed(edge.why, question.follows));
    Ok(edges)
}

/// Returns the dependences that the code allows between the executed statements.
fn potential<'a, S: Segments>(
    run: Run<'a, S>,
    log: LogReader,
) -> Result<Potential<'a>, StepsError<S::Error>>
where
    S::Error: Error + 'static,
{
    let summaries = run.path.segments().summaries().iter();
    let nodes = summaries.flat_map(|summary| summary.node_counts.iter());
    let nodes: BTreeSet<NodeId> = nodes.map(|&(node, _)| node).collect();
    let mut follower = Follower::new(run, log)?;
    let mut codes = Vec::with_capacity(nodes.len());
    for node in nodes {
        follower.compile(node)?;
        let code = follower.machine.codes().get(node);
        codes.extend(code.map(|code| (node, code.clone())));
    }
    Ok(Potential::new(run.program, run.path.nodes(), codes))
}
