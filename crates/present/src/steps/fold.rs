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
    /// The number of steps, and the last of them, if the row stands for steps of library code.
    pub folded: Option<(u64, Step)>,
}

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
}

impl<'s> FoldedSteps<'s> {
    /// Creates the rows of steps.
    pub fn new(next: &'s mut NextStep<'s>, code: Option<&'s CodeOf<'s>>) -> Self {
        Self {
            next,
            code,
            ahead: None,
            kept: VecDeque::new(),
        }
    }

    /// Adds rows that come before all others.
    #[must_use]
    pub fn after(self, kept: VecDeque<ShownStep>) -> Self {
        Self { kept, ..self }
    }

    /// Reads all rows, and returns the last `count` of them.
    ///
    /// # Errors
    /// If the run cannot be followed.
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
        let (mut count, mut last) = (1, step.clone());
        while let Some((next, code)) = self.read()? {
            match code {
                StepCode::Folded(other) if other == own => (count, last) = (count + 1, next),
                code => {
                    self.ahead = Some((next, code));
                    break;
                }
            }
        }
        Ok(Some(ShownStep {
            step,
            own,
            folded: Some((count, last)),
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
