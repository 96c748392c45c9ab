//! Finds when a place was executed.

use afterimage_present::{ExecutionTime, ExecutionsDocument};
use afterimage_profile::location::Place;
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::Session;
use crate::named::with_names;
use crate::trace::Bounds;

/// Asks when the run arrived at a line, called a function, or executed an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutionsQuery {
    /// The place: `parser.c:42`, `parse`, `@0x1f3`.
    pub at: String,
    /// The stretch of the run.
    pub bounds: Bounds,
    /// The maximum number of executions to report, evenly spread by execution number.
    pub limit: u64,
    /// A moment. If it is given, the report also counts the executions up to it.
    pub by: Option<String>,
}

impl ExecutionsQuery {
    /// The maximum number of executions to find without the whole path.
    pub const FEW: u64 = 8;

    pub(crate) fn answer(&self, session: &Session) -> Result<ExecutionsDocument> {
        with_names(session, |program| {
            let positions = program.positions()?;
            let window = self.bounds.window(&positions)?;
            let by = self.by.as_deref().map(|text| positions.time(text));
            let by = by.transpose()?;
            let found = program.resolver().location(&self.at)?;
            if found.occurrence.is_some() {
                bail!("{} is one execution; name the place, without #", self.at);
            }
            match found.place {
                Place::Line(line, operators) => {
                    let functions = operators.iter().map(|(function, _)| *function);
                    let all = positions.arrivals(line, functions)?;
                    let time = |number| Ok(all.time(number)?);
                    self.page((window.first, window.last), by, all.count(), time, |time| {
                        Ok(all.by(time)?)
                    })
                }
                Place::Function(function) => {
                    let all = session.path()?.activations(function)?;
                    let time = |number| Ok(all.select(number)?.map(|found| found.time));
                    self.page((window.first, window.last), by, all.count(), time, |time| {
                        Ok(all.rank(time)?)
                    })
                }
                Place::Operator(function, op) => {
                    let Some(all) = positions.executions_of(function, op)? else {
                        bail!(
                            "{}: no control flow leads there, so it is never executed",
                            self.at
                        );
                    };
                    let time = |number| Ok(all.select(number)?.map(|found| found.time));
                    self.page((window.first, window.last), by, all.count(), time, |time| {
                        Ok(all.rank(time)?)
                    })
                }
            }
        })
    }

    fn page(
        &self,
        (first, last): (u64, u64),
        by: Option<u64>,
        count: u64,
        time: impl Fn(u64) -> Result<Option<u64>>,
        up_to: impl Fn(u64) -> Result<u64>,
    ) -> Result<ExecutionsDocument> {
        let before = match first {
            0 | 1 => 0,
            first => up_to(first - 1)?,
        };
        let within = up_to(last)?.min(count) - before;
        let shown = within.min(self.limit.max(1));
        let mut executions = Vec::new();
        for index in 0..shown {
            // The executions to show include the first and the last.
            let further = match shown {
                1 => 0,
                _ => u128::from(index) * u128::from(within - 1) / u128::from(shown - 1),
            };
            let number = before + 1 + further as u64;
            if let Some(t) = time(number)? {
                executions.push(ExecutionTime { number, t });
            }
        }
        Ok(ExecutionsDocument {
            at: self.at.clone(),
            count,
            first: before + 1,
            within,
            executions,
            by: by
                .map(|time| Ok::<_, anyhow::Error>(up_to(time)?.min(count)))
                .transpose()?,
        })
    }
}
