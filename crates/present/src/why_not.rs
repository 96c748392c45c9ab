//! Why a place was not executed, as text and as JSON.

mod text;

use std::io::Write;

use schemars::JsonSchema;
use serde::Serialize;

pub use text::not_executed;

use crate::document::objects::Function;
use crate::document::{Document, NoRows, begin};
use crate::{PresentError, Render, Style, WhyEntry, WhyPlace};

/// Why a place was not executed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WhyNotReport {
    /// The place, as it was asked for.
    pub at: String,
    /// Since when it was not executed; 0 for the whole run.
    pub after: u64,
    /// How often it was executed up to then, if it was.
    pub before: Option<WhyNotBefore>,
    /// What kept it from being executed.
    pub cause: WhyNotCause,
    /// Where the value came from that decided it, as in `afterimage/why`.
    pub why: Vec<WhyEntry>,
    /// How many moves and computations were followed back.
    pub steps: u64,
    /// The other causes that are as near.
    pub others: Vec<WhyNotCause>,
}

impl Document for WhyNotReport {
    const NAME: &'static str = "why-not";
    const COMMAND: &'static str = "why-not";
    type Row = NoRows;
}

/// Executions of a place in the part of the run that is not asked about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhyNotBefore {
    /// Arrivals at the line are counted, and not executions of its blocks.
    pub arrivals: bool,
    /// How many.
    pub times: u64,
    /// When the last one was.
    pub t: u64,
}

/// What kept a place from being executed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WhyNotCause {
    /// What it is.
    #[serde(flatten)]
    pub kind: WhyNotKind,
    /// What was not executed between the place and the cause, from the place on.
    pub through: Vec<WhyNotHop>,
}

/// What kept a place from being executed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WhyNotKind {
    /// A branch was executed and never turned that way.
    Branch {
        /// Its last execution, or the first one after `after`.
        place: WhyPlace,
        /// How often it was executed after `after`, the end of that moment's block included.
        times: u64,
        /// How often it was executed in the whole run.
        executions: u64,
        /// What decided it, if that is known.
        value: Option<String>,
        /// What would have led there.
        needs: WhyNotNeeds,
        /// Where it went.
        went: WhyNotWent,
    },
    /// A call through a table never called the function.
    Table {
        /// Its last execution, or the first one after `after`.
        place: WhyPlace,
        /// How often it was executed after `after`, the end of that moment's block included.
        times: u64,
        /// How often it was executed in the whole run.
        executions: u64,
        /// The index, if that is known.
        value: Option<String>,
        /// The function.
        function: Function,
        /// Which one it called; null if the host's.
        called: Option<Function>,
    },
    /// It did turn that way, but that came to no regular end.
    Ended {
        /// Its operator.
        place: WhyPlace,
        /// The function was entered there: it begins with a block without operators.
        entered: bool,
        /// How often it went there.
        times: u64,
        /// Where the run ended; null if an exception left it.
        stood: Option<WhyNotEnd>,
    },
    /// The run ended in that block, before it came to its end.
    Stopped {
        /// The block's last operator.
        place: WhyPlace,
        /// Where the run ended.
        stood: WhyNotEnd,
    },
    /// Only the host could have called the function.
    Host {
        /// The function.
        function: Function,
    },
    /// Nothing in the program calls the function.
    Uncalled {
        /// The function.
        function: Function,
    },
}

impl WhyNotKind {
    /// The branch or call.
    pub fn place(&self) -> Option<&WhyPlace> {
        match self {
            Self::Branch { place, .. }
            | Self::Table { place, .. }
            | Self::Ended { place, .. }
            | Self::Stopped { place, .. } => Some(place),
            Self::Host { .. } | Self::Uncalled { .. } => None,
        }
    }
}

/// What would have turned a branch the other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhyNotNeeds {
    /// A value other than 0.
    Nonzero,
    /// 0.
    Zero,
    /// An exception.
    Exception,
    /// Another index.
    Index,
}

/// Where a branch went instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WhyNotWent {
    /// To an operator of its function.
    To {
        /// The operator.
        place: Box<WhyPlace>,
    },
    /// Out of its function.
    Left,
    /// Nowhere: the run ended.
    Ended,
}

/// Where the run ended, and the activation that would have come to the place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhyNotEnd {
    /// How the run ended, in words.
    pub ending: String,
    /// Where.
    pub place: WhyPlace,
    /// The call in which the activation was then, if it had called.
    pub call: Option<WhyPlace>,
}

/// Something that was not executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhyNotHop {
    /// How what comes before depends on it.
    pub how: WhyNotHow,
    /// Its operator.
    pub place: WhyPlace,
}

/// How something depends on what was not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhyNotHow {
    /// On a branch.
    Branch,
    /// On a call of its function.
    Call,
}

/// The answer, and what it is shown with.
pub struct WhyNotView<'r> {
    /// The answer.
    pub report: &'r WhyNotReport,
    /// The recording, as it is named to commands.
    pub file: String,
}

impl Render for WhyNotView<'_> {
    const NAME: &'static str = "why a place was not executed";

    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError> {
        text::report(out, self.report, &self.file, style.width)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        begin(out, self.report)
    }
}
