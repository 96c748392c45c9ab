//! Matching of two runs from beginning to end.

use std::collections::HashSet;

use afterimage_ids::FuncId;
use afterimage_matching::{Matcher, Matching, Names, StageRecord, Weights, anchors, standing};
use afterimage_wpp::Segments;

use super::collect::{Sketched, in_contexts};
use super::diverge::OpenLog;
use super::regions::regions;
use afterimage_replay::steps::{Run, StepsError};

/// How often stretches are looked for: the second time between what was matched by the first. That finds one in a hundred statements more; comparing the same stretches again finds none.
const PASSES: u32 = 2;

/// What was found of two runs.
#[derive(Debug)]
pub struct Matched {
    /// By statement of the second version its counterpart in the first.
    pub matching: Matching,
    /// Functions of the first version that stand by themselves in the second, too.
    pub(super) standing: HashSet<FuncId>,
    /// The first run, with the statements of the other functions told apart by the calls through which they are executed.
    pub(super) apart: Sketched,
    /// By statement of the second version its counterpart in that.
    pub(super) matching_apart: Matching,
}

/// Finds for each statement of the second run, of the optimised version, a counterpart in the first: by what their executions were as a whole, and then by what
/// they were in stretches of both runs that correspond.
///
/// What the second version inlined does in each copy a part of what one function does in the first. So it is found out first which functions of the first version stand by themselves in the second, and the statements of the others are told apart by the calls through which they are executed.
///
/// The first run is followed three times more, and the second twice. Time is linear in both, and O(statements) besides; memory is bounded by the statements that were executed, each as often as there are calls that it is told apart by.
///
/// # Errors
/// If a run cannot be followed, or the first one is not the one that was sketched.
pub fn match_runs<S: Segments>(
    versions: [&Sketched; 2],
    names: Option<&Names>,
    runs: [(Run<'_, S>, OpenLog<'_>); 2],
) -> Result<Matched, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    match_runs_by(versions, names, runs, Trial::default())
}

/// How two runs are matched by those who fit weights, or measure.
#[derive(Default)]
pub struct Trial<'t> {
    /// For how much each feature counts.
    pub weights: Weights,
    /// Takes what spoke for each candidate: at the end of each stage, and of the second once more for each time that stretches were looked for.
    pub tell: Option<&'t mut dyn FnMut(StageRecord)>,
    /// By statement of the second version, those of the first that are right, ascending. In the end each statement is then matched once more as if all others had been matched rightly.
    pub right: Option<&'t [Option<Vec<u32>>]>,
}

/// The same in other ways.
///
/// # Errors
/// If a run cannot be followed.
pub fn match_runs_by<S: Segments>(
    versions: [&Sketched; 2],
    names: Option<&Names>,
    runs: [(Run<'_, S>, OpenLog<'_>); 2],
    trial: Trial<'_>,
) -> Result<Matched, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    let Trial {
        weights,
        tell,
        right,
    } = trial;
    let [flat, b] = versions.map(|sketched| &sketched.version);
    let found = Matcher::with_weights(flat, b, names, weights.clone()).roughly();
    let standing = standing(flat, b, &found, names).into_iter();
    let standing: HashSet<FuncId> = standing.map(FuncId::from_u32).collect();
    let log = (runs[0].1)().map_err(afterimage_machine::MachineError::from)?;
    let apart = in_contexts(runs[0].0, log, Some(&standing))?;
    let to = versions[0].numbers_of(&apart).ok_or(StepsError::OtherRun)?;
    let mut tell = tell.map(|tell| {
        |mut told: StageRecord| {
            for candidate in &mut told.candidates {
                candidate.a = to[candidate.a as usize];
            }
            tell(told);
        }
    });
    let matcher = Matcher::with_weights(&apart.version, b, names, weights);
    let mut found = matcher.by_wholes_telling(tell.as_mut().map(|tell| tell as _));
    for pass in 0..PASSES {
        let certain = anchors(&apart.version, b, &found);
        if certain.is_empty() && pass == 0 {
            break;
        }
        let of_b = found.of_b.iter();
        let wanted =
            of_b.map(|found| !found.as_ref().is_some_and(|found| found.evidence.same_code));
        let sides = [&apart, versions[1]];
        let regions = regions(sides, Some(&standing), &certain, wanted.collect(), runs)?;
        let regions = Vec::from_iter(regions.all());
        let tell = tell.as_mut().map(|tell| tell as _);
        let next = matcher.by_regions_telling(&regions, &found, tell);
        found = match right.filter(|_| pass + 1 == PASSES) {
            None => next,
            Some(right) => {
                let right = |b: u32, a: u32| {
                    let right = right[b as usize].as_ref();
                    right.is_some_and(|right| right.binary_search(&to[a as usize]).is_ok())
                };
                matcher.if_others_were_right(&regions, &found, &next, &right)
            }
        };
    }
    Ok(Matched {
        matching: found.clone().renumbered(flat, b, &to),
        standing,
        matching_apart: found,
        apart,
    })
}
