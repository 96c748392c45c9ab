//! Matches two runs from beginning to end.

use std::collections::HashSet;

use afterimage_ids::FuncId;
use afterimage_matching::{Matcher, Matching, Names, StageRecord, Weights, anchors, standing};
use afterimage_wpp::Segments;

use super::collect::{Sketched, in_contexts};
use super::diverge::OpenLog;
use super::regions::regions;
use afterimage_replay::steps::{Run, StepsError};

/// The number of passes over the stretches. The second pass searches between the matches of the
/// first and matches 1 % more statements. A further pass over the same stretches finds none.
const PASSES: u32 = 2;

/// The result of matching two runs.
#[derive(Debug)]
pub struct Matched {
    /// For each statement of the second version, its counterpart in the first.
    pub matching: Matching,
    /// The functions of the first version that also stand alone in the second.
    pub(super) standing: HashSet<FuncId>,
    /// The first run. Statements of functions that do not stand alone are separated by the calls
    /// through which they are executed.
    pub(super) apart: Sketched,
    /// For each statement of the second version, its counterpart in `apart`.
    pub(super) matching_apart: Matching,
}

/// Finds a counterpart in the first run for each statement of the second run, which executed the
/// optimised version. The first stage compares all executions of each statement. The second stage
/// compares executions in corresponding stretches of both runs.
///
/// If the second version inlined a function, each copy does part of the function's work in the
/// first version. So the first stage finds which functions of the first version stand alone in the
/// second. Statements of all other functions are separated by the calls through which they are
/// executed.
///
/// The first run is followed three more times, and the second twice. Time is linear in both runs,
/// plus O(statements). Memory is bounded by the executed statements, each counted once for each
/// sequence of calls by which it is separated.
///
/// # Errors
/// Returns an error if a run cannot be followed, or the first run differs from the sketched run.
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

/// The options for matching two runs in order to fit weights or measure accuracy.
#[derive(Default)]
pub struct Trial<'t> {
    /// The weight of each feature.
    pub weights: Weights,
    /// Receives the evidence for each candidate at the end of each stage. The second stage sends it
    /// after each pass over the stretches.
    pub tell: Option<&'t mut dyn FnMut(StageRecord)>,
    /// For each statement of the second version, its correct counterparts in the first, ascending.
    /// At the end, each statement is matched again as if all other statements had been matched
    /// correctly.
    pub right: Option<&'t [Option<Vec<u32>>]>,
}

/// Matches two runs like [`match_runs`], with the options of a trial.
///
/// # Errors
/// Returns an error if a run cannot be followed, or the first run differs from the sketched run.
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
