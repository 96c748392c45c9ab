//! Matching of two runs from beginning to end.

use afterimage_matching::{Matcher, Matching, Names, Told, Weights, anchors};
use afterimage_wpp::Segments;

use super::collect::Sketched;
use super::diverge::OpenLog;
use super::regions::regions;
use crate::steps::{Run, StepsError};

/// How often stretches are looked for: the second time between what was matched by the first. That finds one in a hundred statements more; comparing the same stretches again finds none.
const PASSES: u32 = 2;

/// Finds for each statement of the second run, of the optimised version, a counterpart in the first: by what their executions were as a whole, and then by what
/// they were in stretches of both runs that correspond.
///
/// Both runs are followed twice more. Time is linear in both, and O(statements) besides; memory is bounded by the statements that were executed.
///
/// # Errors
/// If a run cannot be followed.
pub fn match_runs<S: Segments>(
    versions: [&Sketched; 2],
    names: Option<&Names>,
    runs: [(Run<'_, S>, OpenLog<'_>); 2],
) -> Result<Matching, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    match_runs_by(versions, names, runs, Weights::default(), None)
}

/// The same by other weights than the fitted ones, and tells to `to` what spoke for each candidate, so that weights can be fitted: at the end of each stage, and of the second once more for each time that stretches were looked for.
///
/// # Errors
/// If a run cannot be followed.
pub fn match_runs_by<S: Segments>(
    versions: [&Sketched; 2],
    names: Option<&Names>,
    runs: [(Run<'_, S>, OpenLog<'_>); 2],
    weights: Weights,
    mut to: Option<&mut dyn FnMut(Told)>,
) -> Result<Matching, StepsError<S::Error>>
where
    S::Error: std::error::Error + 'static,
{
    fn told<'t>(to: &'t mut Option<&mut dyn FnMut(Told)>) -> Option<&'t mut dyn FnMut(Told)> {
        to.as_mut().map(|to| &mut **to as _)
    }
    let [a, b] = versions.map(|sketched| &sketched.version);
    let matcher = Matcher::with_weights(a, b, names, weights);
    let mut found = matcher.by_wholes_telling(told(&mut to));
    for pass in 0..PASSES {
        let certain = anchors(a, b, &found);
        if certain.is_empty() && pass == 0 {
            return Ok(found);
        }
        let of_b = found.of_b.iter();
        let wanted =
            of_b.map(|found| !found.as_ref().is_some_and(|found| found.evidence.same_code));
        let regions = regions(versions, &certain, wanted.collect(), runs)?;
        found = matcher.by_regions_telling(&regions, &found, told(&mut to));
    }
    Ok(found)
}
