//! Finds the moment to which a step leads.

use std::sync::atomic::AtomicBool;

use afterimage_ids::OrigOffset;
use afterimage_present::StepDocument;
use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::MomentQuery;
use crate::Session;
use crate::debugger::{Direction, Step, debug};

/// Asks where a step by lines of the user's own code leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepQuery {
    /// The moment before the step: `parser.c:42#7`, `main#last`, `t=123456`, `50%`, `end`.
    pub at: String,
    /// If it is given, selects the moment right before the operator at this offset of the original
    /// module, in the block that is executed at the time of `at`.
    pub offset: Option<u32>,
    pub step: Step,
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
            let Some(next) = debugger.step(from, self.step, self.direction)? else {
                return Ok(None);
            };
            let (_, offset) = debugger.place(next)?;
            Ok(Some((next.time, offset)))
        })?;
        let named = |(time, offset): (u64, OrigOffset)| {
            let at = format!("t={time}");
            let offset = Some(offset.0);
            MomentQuery { at, offset }.answer(session)
        };
        Ok(StepDocument {
            moment: next.map(named).transpose()?,
        })
    }
}
