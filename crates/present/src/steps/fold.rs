//! Joins consecutive steps of library code into one row of text.

use std::collections::VecDeque;

use afterimage_replay::steps::Step;

use super::NextStep;
use crate::PresentError;
use crate::own::OwnPlace;

/// The code of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepCode {
    /// Shown code. Contains its line if library code was inlined into it or called by it.
    Shown(Option<OwnPlace>),
    /// Library code. Contains the line that called it, if that line is shown.
    Folded(Option<OwnPlace>),
}

/// Finds the code of a step.
pub type CodeOf<'s> = dyn Fn(&Step) -> Result<StepCode, PresentError> + 's;

/// A row of text.
#[derive(Clone, Debug)]
pub struct ShownStep {
    /// The step, or the first of the steps.
    pub step: Step,
    /// The line to show instead of the step's own line.
    pub own: Option<OwnPlace>,
    /// The steps of library code that the row represents. `None` for a step of shown code.
    pub folded: Option<Folded>,
}

/// Consecutive steps of library code that share a row.
#[derive(Clone, Debug)]
pub struct Folded {
    /// The number of steps, including the first.
    pub amount: Amount,
    /// The last step, if it is known.
    pub last: Option<Step>,
}

/// The amount of library code that a row represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// The number of steps.
    Steps(u64),
    /// The number of blocks that contain the steps. Some of the steps were not read.
    Blocks(u64),
}

/// Skips steps after a time, in the direction of the steps, if library code executes many blocks
/// there. The next steps are then those right before the library code ends. Returns the last time
/// at which the library code executes a block, or `None` if nothing was skipped.
pub type SkipFn<'s> = dyn FnMut(u64) -> Result<Option<u64>, PresentError> + 's;

/// After this number of consecutive steps of library code, further steps may be left out.
const MANY: u64 = 10_000;

/// The rows of steps. Consecutive steps of library code for which the same line is shown share a
/// row.
pub struct FoldedSteps<'s> {
    next: &'s mut NextStep<'s>,
    /// Finds the code of each step. If absent, no steps are folded.
    code: Option<&'s CodeOf<'s>>,
    /// The first step of the next row, if it was read.
    ahead: Option<(Step, StepCode)>,
    /// Rows that come before all others.
    kept: VecDeque<ShownStep>,
    /// Leaves out steps of library code.
    skip: Option<&'s mut SkipFn<'s>>,
}

impl<'s> FoldedSteps<'s> {
    /// Creates the rows of steps.
    pub fn new(next: &'s mut NextStep<'s>, code: Option<&'s CodeOf<'s>>) -> Self {
        Self {
            next,
            code,
            ahead: None,
            kept: VecDeque::new(),
            skip: None,
        }
    }

    /// Leaves out most steps where library code executes for a long time.
    #[must_use]
    pub fn skipping(self, skip: &'s mut SkipFn<'s>) -> Self {
        let skip = Some(skip);
        Self { skip, ..self }
    }

    /// Adds rows that come before all others.
    #[must_use]
    pub fn after(self, kept: VecDeque<ShownStep>) -> Self {
        Self { kept, ..self }
    }

    /// Reads all rows, and returns the last `count` of them.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed.
    pub fn last(mut self, count: usize) -> Result<VecDeque<ShownStep>, PresentError> {
        let mut kept = VecDeque::new();
        while let Some(row) = self.next()? {
            if kept.len() == count {
                kept.pop_front();
            }
            kept.push_back(row);
        }
        Ok(kept)
    }

    /// Returns the next row.
    pub(crate) fn next(&mut self) -> Result<Option<ShownStep>, PresentError> {
        if let Some(row) = self.kept.pop_front() {
            return Ok(Some(row));
        }
        let Some((step, code)) = self.read()? else {
            return Ok(None);
        };
        let own = match code {
            StepCode::Shown(own) => {
                return Ok(Some(ShownStep {
                    step,
                    own,
                    folded: None,
                }));
            }
            StepCode::Folded(own) => own,
        };
        let (mut count, mut last) = (1, Some(step.clone()));
        let mut blocks = None;
        while let Some((next, code)) = self.read()? {
            match code {
                StepCode::Folded(other) if other == own => {
                    count += 1;
                    if count == MANY
                        && let Some(skip) = &mut self.skip
                        && let Some(end) = skip(next.time)?
                    {
                        blocks = Some(end.abs_diff(step.time) + 1);
                        last = None;
                    } else {
                        last = Some(next);
                    }
                }
                code => {
                    self.ahead = Some((next, code));
                    break;
                }
            }
        }
        Ok(Some(ShownStep {
            step,
            own,
            folded: Some(Folded {
                amount: blocks.map_or(Amount::Steps(count), Amount::Blocks),
                last,
            }),
        }))
    }

    /// Returns the first step of the next row, without reading the rest of the row.
    pub(crate) fn begin_of_next(&mut self) -> Result<Option<Step>, PresentError> {
        if let Some(row) = self.kept.front() {
            return Ok(Some(row.step.clone()));
        }
        self.ahead = self.read()?;
        Ok(self.ahead.as_ref().map(|(step, _)| step.clone()))
    }

    fn read(&mut self) -> Result<Option<(Step, StepCode)>, PresentError> {
        if let Some(ahead) = self.ahead.take() {
            return Ok(Some(ahead));
        }
        let Some(step) = (self.next)()? else {
            return Ok(None);
        };
        let code = match self.code {
            Some(code) => code(&step)?,
            None => StepCode::Shown(None),
        };
        Ok(Some((step, code)))
    }
}
