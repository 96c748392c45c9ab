//! Makes the question that a slice answers, and describes it in words. Its parts come from the
//! user's query and the places that the query names.

use afterimage_analyses::slices::{
    Algorithm, Criterion, Direction, Origin, Question, Reach, SliceQuery,
};

use super::start::SliceStart;

/// Makes the question about the run.
pub(super) fn question(query: &SliceQuery, to: SliceStart, from: Option<SliceStart>) -> Question {
    Question {
        algorithm: query.algorithm,
        direction: query.direction,
        follows: query.along.follows(),
        operators: to.operators.clone(),
        from: from.map(|from| Origin {
            criteria: from.criteria,
            operators: from.operators,
        }),
        criteria: limited(query, to),
    }
}

/// Expresses the question in words.
pub(super) fn in_words(query: &SliceQuery, to: &SliceStart, from: Option<&SliceStart>) -> String {
    let title = &to.title;
    let alone = title.trim_end_matches(',');
    let within = match query.depth {
        None => String::new(),
        Some(1) => " directly".to_owned(),
        Some(depth) => format!(" over at most {depth} dependences"),
    };
    if let Some(from) = from {
        let from = from.title.trim_end_matches(',');
        return match query.algorithm {
            Algorithm::Full => format!("how {from} influenced {alone}"),
            Algorithm::Edges => format!(
                "how statements of {from} may have influenced {alone}, through dependences that \
                 occurred at least once"
            ),
            Algorithm::Nodes => {
                format!("how statements of {from} may have influenced {alone}, by the code")
            }
        };
    }
    let whose = match (query.is_of_statements(), query.direction) {
        (true, _) => "statements of",
        (false, Direction::Forward) => "statements that used",
        (false, Direction::Backward) => "statements that made",
    };
    match (query.direction, query.algorithm) {
        (Direction::Forward, Algorithm::Full) => format!("what depends on {alone}{within}"),
        (Direction::Backward, Algorithm::Full) => format!("what {title} depends on{within}"),
        (Direction::Forward, Algorithm::Edges) => {
            format!("what ever depended on {whose} {alone}{within}")
        }
        (Direction::Backward, Algorithm::Edges) => {
            format!("what {whose} {title} ever depended on{within}")
        }
        (Direction::Forward, Algorithm::Nodes) => {
            format!("what may depend on {whose} {alone}{within}, by the code")
        }
        (Direction::Backward, Algorithm::Nodes) => {
            format!("what {whose} {title} may depend on{within}, by the code")
        }
    }
}

/// Limits the criteria to the depth. The producers of a variable, of bytes and of an operand are
/// one dependence away.
fn limited(query: &SliceQuery, to: SliceStart) -> Vec<Criterion> {
    let (mut criteria, mut taken) = (to.criteria, to.taken);
    if let Some(depth) = query.depth {
        let left = if query.is_of_statements() || query.direction == Direction::Forward {
            depth
        } else {
            depth - 1
        };
        let reach = |left| Reach::of_depth(left).unwrap_or(Reach::ALL);
        criteria.iter_mut().for_each(|one| one.reach = reach(left));
        taken
            .iter_mut()
            .for_each(|one| one.reach = reach(depth - 1));
    }
    criteria.append(&mut taken);
    criteria
}
