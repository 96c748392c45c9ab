//! Reads the history of one site, execution by execution.

use std::ops::ControlFlow;

use afterimage_simulate::{Misses, Tally};

use super::stored::{StoredError, StoredSimulation};

/// The outcome of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// A branch was predicted correctly, or an access hit the first level.
    Hit,
    /// A branch was mispredicted, or an access missed the first level but hit the second, if there
    /// is one.
    Missed,
    /// An access missed both levels.
    MissedBoth,
}

/// Consecutive executions with the same outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutcomeRun {
    /// The number of the first execution, from 1.
    pub first: u64,
    /// The number of executions in the run.
    pub count: u64,
    /// The outcome of these executions.
    pub outcome: Outcome,
}

/// The outcome of one execution, with the nearest misses before and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneOutcome {
    /// The outcome of the execution.
    pub outcome: Outcome,
    /// The number of misses up to and including this execution.
    pub missed: u64,
    /// The number of the nearest earlier execution that missed.
    pub before: Option<u64>,
    /// The number of the nearest later execution that missed.
    pub after: Option<u64>,
}

/// The reason why the iteration ended.
enum Ended {
    Enough,
    Error(StoredError),
}

impl From<StoredError> for Ended {
    fn from(error: StoredError) -> Self {
        Self::Error(error)
    }
}

fn unless_enough(ended: Result<(), Ended>) -> Result<(), StoredError> {
    match ended {
        Err(Ended::Error(error)) => Err(error),
        Ok(()) | Err(Ended::Enough) => Ok(()),
    }
}

impl StoredSimulation {
    /// Passes the history of a site to `each`, in the longest possible runs, until `each` returns a
    /// break. `site` is the site's number in the summary. Needs memory for the misses of one epoch.
    ///
    /// # Errors
    /// Returns an error if the history is damaged.
    pub fn runs(
        &self,
        site: usize,
        mut each: impl FnMut(OutcomeRun) -> ControlFlow<()>,
    ) -> Result<(), StoredError> {
        let mut pending: Option<OutcomeRun> = None;
        let mut tell = |first, count, outcome| -> Result<(), Ended> {
            if count == 0 {
                return Ok(());
            }
            match &mut pending {
                Some(run) if run.outcome == outcome => run.count += count,
                pending => {
                    let next = OutcomeRun {
                        first,
                        count,
                        outcome,
                    };
                    if let Some(run) = pending.replace(next)
                        && each(run).is_break()
                    {
                        *pending = None;
                        return Err(Ended::Enough);
                    }
                }
            }
            Ok(())
        };
        let all = |before: u64, tally: Tally, misses: &Misses| -> Result<(), Ended> {
            let mut next = before + 1;
            let mut last = misses.last.iter().peekable();
            for &missed in &misses.first {
                tell(next, missed - next, Outcome::Hit)?;
                let outcome = match last.next_if_eq(&&missed) {
                    Some(_) => Outcome::MissedBoth,
                    None => Outcome::Missed,
                };
                tell(missed, 1, outcome)?;
                next = missed + 1;
            }
            tell(next, before + tally.executions + 1 - next, Outcome::Hit)
        };
        let ended = self.misses(site, all);
        unless_enough(ended)?;
        if let Some(run) = pending {
            let _ = each(run);
        }
        Ok(())
    }

    /// Returns the outcome of an execution of a site. Executions are numbered from 1. Returns
    /// `None` if there is no such execution.
    ///
    /// # Errors
    /// Returns an error if the history is damaged.
    pub fn outcome(&self, site: usize, number: u64) -> Result<Option<OneOutcome>, StoredError> {
        let mut found: Option<OneOutcome> = None;
        let (mut passed, mut last) = (0, None);
        let ended = self.misses(site, |before, tally, misses| -> Result<(), Ended> {
            let at = misses.first.partition_point(|&missed| missed < number);
            if let Some(found) = &mut found {
                found.after = misses.first.first().copied();
            } else if number > before && number - before <= tally.executions {
                let is_missed = misses.first.get(at) == Some(&number);
                found = Some(OneOutcome {
                    outcome: match misses.last.binary_search(&number) {
                        Ok(_) => Outcome::MissedBoth,
                        Err(_) if is_missed => Outcome::Missed,
                        Err(_) => Outcome::Hit,
                    },
                    missed: passed + at as u64 + u64::from(is_missed),
                    before: at.checked_sub(1).map(|at| misses.first[at]).or(last),
                    after: misses.first.get(at + usize::from(is_missed)).copied(),
                });
            }
            if found.is_some_and(|found| found.after.is_some()) {
                return Err(Ended::Enough);
            }
            passed += misses.first.len() as u64;
            last = misses.first.last().copied().or(last);
            Ok(())
        });
        unless_enough(ended)?;
        Ok(found)
    }

    /// Returns up to `most` executions of the site that missed, spread evenly, including the first
    /// and the last. If at least a tenth of the misses also missed the second level, samples only
    /// these misses.
    ///
    /// # Errors
    /// Returns an error if the history is damaged.
    pub fn sample(&self, site: usize, most: u64) -> Result<Vec<u64>, StoredError> {
        let Some((_, tally)) = self.summary.sites.get(site) else {
            return Ok(Vec::new());
        };
        let behind = tally.last > 0 && tally.last >= tally.missed / 10;
        let count = if behind { tally.last } else { tally.missed };
        let most = most.min(count);
        let mut wanted = (0..most).map(|i| match most {
            1 => 0,
            _ => (u128::from(i) * u128::from(count - 1) / u128::from(most - 1)) as u64,
        });
        let mut next = wanted.next();
        let (mut passed, mut found) = (0, Vec::new());
        self.misses(site, |_, _, misses| -> Result<(), StoredError> {
            let numbers = if behind { &misses.last } else { &misses.first };
            while let Some(&number) = next
                .and_then(|next: u64| next.checked_sub(passed))
                .and_then(|at| numbers.get(at as usize))
            {
                found.push(number);
                next = wanted.next();
            }
            passed += numbers.len() as u64;
            Ok(())
        })?;
        Ok(found)
    }
}
