//! Searches the executions of a place for one at which a condition holds.

use std::cell::RefCell;
use std::ops::RangeInclusive;

use afterimage_ids::{FuncId, grouped};
use afterimage_profile::Line;
use afterimage_replay::state::{Condition, Truth};
use afterimage_replay::steps::{Enter, LineSteps, WantedLines, Within};
use afterimage_replay::whole_path::Window;
use afterimage_wpp::Visit;
use anyhow::{Context, Result, anyhow};

use super::stops::Points;
use super::{Debugger, Direction, Interrupted, Position, RunTo, StopPoint};

/// The number of executions to examine in the first pass. Each later pass examines twice as many as
/// the previous one, up to [`MOST`].
const FIRST: u64 = 1 << 5;
const MOST: u64 = 1 << 15;
/// If there are fewer blocks per arrival than this, the arrivals at a line are found by walking
/// along the path.
const DENSE: u64 = 1 << 9;

impl<'a> Debugger<'a> {
    /// Finds the nearest of some executions at which the condition holds.
    pub(super) fn scan(
        &self,
        point: &StopPoint<'a>,
        numbers: RangeInclusive<u64>,
        direction: Direction,
        found: &mut RunTo,
    ) -> Result<Option<Position>> {
        let Some(condition) = Self::condition(point) else {
            return Ok(None);
        };
        let look = self.look(condition, false)?;
        let (mut first, mut last) = (*numbers.start(), *numbers.end());
        let mut most = FIRST;
        while first <= last {
            let chunk = match direction {
                Direction::Forward => first..=last.min(first + (most - 1)),
                Direction::Backward => last.saturating_sub(most - 1).max(first)..=last,
            };
            match direction {
                Direction::Forward => first = chunk.end() + 1,
                Direction::Backward => last = chunk.start() - 1,
            }
            most = (2 * most).min(MOST);
            let numbered = self.executions(point, chunk)?;
            let positions = Vec::from_iter(numbered.iter().map(|(_, execution)| *execution));
            let mut truths: Vec<Option<Truth>> = vec![None; positions.len()];
            let seen = self.at_each(&positions, |number, moment| {
                let scopes = self.scopes(moment.activation.function)?;
                truths[number] = Some(look.found(moment, &scopes).0);
                Ok(())
            });
            seen.map_err(|error| match error.downcast() {
                Ok(Interrupted { .. }) => anyhow!(Interrupted {
                    looked_at: found.looked_at,
                }),
                Err(error) => error,
            })?;
            let mut looked_at = truths.iter().zip(&positions).collect::<Vec<_>>();
            if direction == Direction::Backward {
                looked_at.reverse();
            }
            for (truth, (_, at)) in looked_at {
                found.looked_at += 1;
                match truth {
                    Some(Truth::True) => return Ok(Some(*at)),
                    Some(Truth::Unknown(why)) => {
                        found.unknown += 1;
                        found.why_unknown = Some(why.clone());
                    }
                    Some(Truth::False) | None => {}
                }
            }
            look.check().context("the condition")?;
        }
        Ok(None)
    }

    /// Finds the executions of a point at which the run may stop, with their numbers, in order.
    fn executions(
        &self,
        point: &StopPoint<'a>,
        numbers: RangeInclusive<u64>,
    ) -> Result<Vec<(u64, (Visit, Position))>> {
        let (first, last) = (*numbers.start(), *numbers.end());
        if let (Points::Line(_), Some(line)) = (point.place(), point.line())
            && last - first >= FIRST
            && let Some((_, begin)) = self.execution(point, first)?
            && let Some((_, end)) = self.execution(point, last)?
            && end.time - begin.time < DENSE * (last - first)
        {
            let found = self.arrivals_between((line, point.function()), begin, end)?;
            // Two arrivals may stop at the same position. So fewer arrivals than executions may be
            // found.
            if found.len() as u64 == last - first + 1 {
                let all = numbers.zip(found);
                return Ok(all
                    .filter(|(number, _)| Self::may_stop(point, *number))
                    .collect());
            }
        }
        let mut found = Vec::new();
        for number in numbers {
            if Self::may_stop(point, number) {
                let execution = self.execution(point, number)?;
                found.extend(execution.map(|execution| (number, execution)));
            }
        }
        Ok(found)
    }

    /// Finds the arrivals at a line from one position to another. If `function` is given, it
    /// contains all of the line's code.
    fn arrivals_between(
        &self,
        (line, function): (Line, Option<FuncId>),
        from: Position,
        to: Position,
    ) -> Result<Vec<(Visit, Position)>> {
        let wanted = WantedLines {
            window: Window {
                first: from.time,
                last: to.time,
            },
            within: Within::default(),
            reverse: false,
            enter: Enter::Calls,
            function,
        };
        // The requested line may be in a library.
        let source = self.program.source;
        let tables = self.all_tables.clone();
        let mut steps = LineSteps::sharing(tables, self.run, source, self.stop, wanted)?;
        let mut found = Vec::new();
        while let Some(step) = steps.next()? {
            if step.line != line {
                continue;
            }
            let position = self.arrived(&step)?;
            if (from..=to).contains(&position) && position.time <= step.visit.last() {
                found.push((step.visit, position));
            }
        }
        Ok(found)
    }

    /// Returns the values of all expressions at each of some positions, as text. Where an
    /// expression has no value, returns the reason.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed.
    pub fn values_at(
        &self,
        positions: &[Position],
        expressions: &[Condition],
    ) -> Result<Vec<Vec<Result<String, String>>>> {
        let mut order = Vec::from_iter(0..positions.len());
        order.sort_by_key(|&number| positions[number]);
        let mut moments = Vec::new();
        for &number in &order {
            let at = positions[number];
            let visit = self.path().cursor().seek(at.time)?;
            let visit =
                visit.ok_or_else(|| anyhow!("the run has no block t={}", grouped(at.time)))?;
            moments.push((visit, at));
        }
        let looks = expressions.iter().map(|one| self.look(one, false));
        let looks = looks.collect::<Result<Vec<_>>>()?;
        let unreached = || vec![Err("the run ended before".to_owned()); expressions.len()];
        let values = RefCell::new(vec![unreached(); positions.len()]);
        self.at_each(&moments, |moment_number, moment| {
            let scopes = self.scopes(moment.activation.function)?;
            let all = looks.iter().map(|look| look.result(moment, &scopes));
            values.borrow_mut()[order[moment_number]] = all.collect();
            Ok(())
        })?;
        Ok(values.into_inner())
    }
}
