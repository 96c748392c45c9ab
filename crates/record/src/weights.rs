//! Uses the counts of an earlier run of the same module to place counters where they cost least.

use afterimage_placement::{Mode, Plan, PlanError, PlanOptions, plan};
use afterimage_program::Program;
use afterimage_trace::CountsLens;

use crate::Cache;

/// The least number of increments for which a run's counts are kept. After a shorter run,
/// better-placed counters would not save the time that compiling the module again takes.
const MANY: u64 = 1 << 23;

/// Places counters for the whole program according to cached counts, unless the options say
/// otherwise.
///
/// # Errors
/// Returns an error if the options, or the counts that they name, do not match this program.
pub(crate) fn weighted_plan(
    program: &Program,
    bytes: &[u8],
    options: &PlanOptions<'_>,
    cache: &Cache,
) -> Result<Plan, PlanError> {
    if options.mode == Mode::Program
        && options.feedback.is_none()
        && let Some(counts) = cache.counts(bytes)
    {
        let weighted = PlanOptions {
            feedback: Some(&counts),
            ..*options
        };
        // Counts that do not fit belong to another program.
        if let Ok(plan) = plan(program, &weighted) {
            return Ok(plan);
        }
    }
    plan(program, options)
}

/// Keeps the counts of a long run for later runs.
pub(crate) fn keep(cache: &Cache, bytes: &[u8], counts: &CountsLens) {
    if counts.increments >= MANY {
        cache.keep_counts(bytes, counts);
    }
}
