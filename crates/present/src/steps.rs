//! Reports statements and memory accesses one by one.

mod binary;
mod fold;
mod json;
mod text;

use afterimage_ids::OrigOffset;
use afterimage_profile::{OwnFunctions, ProfileError, Source};
use afterimage_program::{Location, Names};
use afterimage_replay::steps::{Level, Operators, Step};

pub use self::binary::steps_binary;
pub use self::fold::{Amount, CodeOf, Folded, FoldedSteps, ShownStep, SkipFn, StepCode};
pub use self::json::{StepRow, StepTried, StepWhat, step_rows};
pub use self::text::{range_text, steps_text};
use crate::{PresentError, Style};

/// The program that executed the steps, and the style of the output.
#[derive(Clone, Copy)]
pub struct StepScene<'a> {
    /// The functions' names.
    pub names: &'a Names,
    /// The operators.
    pub operators: &'a Operators<'a>,
    /// The source files.
    pub source: &'a dyn Source,
    /// The functions that the text form shows, if it leaves out others.
    pub own: Option<&'a OwnFunctions<'a>>,
    /// The number of memories.
    pub memories: u32,
    /// The style of text.
    pub style: Style,
}

/// Returns the next step, or `None` at the end.
pub type NextStep<'s> = dyn FnMut() -> Result<Option<Step>, PresentError> + 's;

/// The operator of a step.
pub(crate) struct Operator {
    pub name: String,
    pub offset: Option<OrigOffset>,
    pub position: Option<Location>,
}

impl StepScene<'_> {
    pub(crate) fn operator(&self, step: &Step) -> Result<Operator, ProfileError> {
        let found = match step.op {
            Some(op) => self.operators.get(step.function, op)?,
            None => None,
        };
        Ok(match found {
            Some(found) => Operator {
                name: found.name.to_string(),
                offset: Some(found.offset),
                position: found.position,
            },
            None => Operator {
                name: "host".to_owned(),
                offset: None,
                position: None,
            },
        })
    }

    pub(crate) fn file(&self, position: Location) -> &str {
        let files = self.source.files();
        let path = files.get(position.file.0 as usize);
        path.map_or("", String::as_str)
    }
}

/// Returns the name of a level.
pub(crate) fn level_name(level: Level) -> &'static str {
    match level {
        Level::Statement => "statement",
        Level::Memory => "memory",
    }
}
