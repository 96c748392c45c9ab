//! Finds the moment to which a step leads.

use std::sync::atomic::AtomicBool;

use afterimage_ids::OrigOffset;
use afterimage_present::StepDocument;
use afterimage_replay::whole_path::Window;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::MomentQuery;
use crate::Session;
use crate::debugger::{Debugger, Direction, Named, Position, Step, debug};

/// A way to move from one moment to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Move {
    /// By lines of the user's own code.
    Line(Step),
    /// To the moment right before the next or last write to a variable. A write by the operator at
    /// the current moment does not count as the next write. For a local variable, only writes
    /// during its call count. For a variable that is not in memory, only writes that change its
    /// value count.
    Write {
        /// The variable, or an expression such as `p->next`.
        variable: String,
        /// The activation in which the variable is looked up, counted from 0 for the innermost.
        activation: usize,
        /// The number of inlined calls that lead to the variable's frame. `None` stands for the
        /// innermost frame of the activation.
        inlined: Option<u32>,
    },
}

/// Asks where a move leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepQuery {
    /// The moment before the step: `parser.c:42#7`, `main#last`, `t=123456`, `50%`, `end`.
    pub at: String,
    /// If it is given, selects the moment right before the operator at this offset of the original
    /// module, in the block that is executed at the time of `at`.
    pub offset: Option<u32>,
    /// The number of innermost frames of inlined functions to ignore, so that the move is made from
    /// a frame around them.
    pub ahead: u32,
    pub by: Move,
    pub direction: Direction,
}

impl StepQuery {
    /// Answers from the run of `session`, whose path and values must exist.
    pub(crate) fn answer(&self, session: &Session) -> Result<StepDocument> {
        let run = session.run_from_checkpoints()?;
        let next = debug(session, run, &AtomicBool::new(false), |debugger| {
            let mut from = debugger.position(&self.at)?;
            if let Some(offset) = self.offset {
                from = debugger.before(from.time, OrigOffset(offset))?;
            }
            from.ahead = from.ahead.saturating_add(self.ahead);
            let next = match &self.by {
                Move::Line(step) => debugger.step(from, *step, self.direction)?,
                Move::Write {
                    variable,
                    activation,
                    inlined,
                } => {
                    let (name, inlined) = (&**variable, *inlined);
                    self.write(debugger, from, (Named { name, inlined }, *activation))?
                }
            };
            let Some(next) = next else {
                return Ok(None);
            };
            let (_, offset) = debugger.place(next)?;
            Ok(Some((next, offset)))
        })?;
        let named = |(next, offset): (Position, OrigOffset)| {
            let at = format!("t={}", next.time);
            let offset = Some(offset.0);
            let ahead = next.ahead as usize;
            MomentQuery { at, offset }.with_calls_ahead(session, Some(ahead))
        };
        Ok(StepDocument {
            moment: next.map(named).transpose()?,
        })
    }

    fn write(
        &self,
        debugger: &Debugger<'_>,
        from: Position,
        (named, activation): (Named<'_>, usize),
    ) -> Result<Option<Position>> {
        // Look up variables of an outer activation at the call that it is making.
        let known = if activation == 0 {
            from
        } else {
            let (frames, _) = debugger.stack(from, activation.saturating_add(1))?;
            let mut frames = frames.iter();
            let frame = frames.find(|frame| frame.number == activation);
            frame.context("there is no such activation")?.position()
        };
        let changing = debugger.changing(known, named);
        if !changing
            .as_ref()
            .is_ok_and(|changing| changing.is_in_locals)
            && let Some((range, call)) = debugger.memory_of(known, named)?
        {
            let window = call.unwrap_or(Window {
                first: 1,
                last: debugger.length(),
            });
            return debugger.nearest_write(range, from, self.direction, window);
        }
        let changing = changing?;
        // A change by the operator at the current moment does not count as the next change.
        let from = match (self.direction, activation) {
            (Direction::Forward, 0) => debugger.step_operator(from, self.direction)?,
            _ => Some(known),
        };
        let Some(from) = from else {
            return Ok(None);
        };
        let change = debugger.nearest_change(&changing, from, self.direction, None)?;
        Ok(change.map(|change| change.by))
    }
}
