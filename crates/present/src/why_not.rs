//! Reports why a place was not executed, as text and as JSON.

mod text;

use std::io::Write;

use schemars::JsonSchema;
use serde::Serialize;

pub use text::not_executed;

use crate::document::objects::Function;
use crate::document::{Document, NoRows, begin};
use crate::{PresentError, Render, Style, WhyEntry, WhyPlace};

/// The reason why a place was not executed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WhyNotReport {
    /// The place as named by the user.
    pub at: String,
    /// The time after which the place was not executed; 0 for the whole run.
    pub after: u64,
    /// The executions of the place up to the time `after`, if there are any.
    pub before: Option<WhyNotBefore>,
    /// Why the place was not executed.
    pub cause: WhyNotCause,
    /// The origin of the deciding value, as in `afterimage/why`.
    pub why: Vec<WhyEntry>,
    /// The number of moves and computations followed back.
    pub steps: u64,
    /// Other causes at the same distance.
    pub others: Vec<WhyNotCause>,
}

impl Document for WhyNotReport {
    const NAME: &'static str = "why-not";
    const COMMAND: &'static str = "why-not";
    type Row = NoRows;
}

/// The executions of a place before the part of the run that the question was about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhyNotBefore {
    /// Whether arrivals at the line are counted instead of executions of its blocks.
    pub arrivals: bool,
    /// The number of occurrences.
    pub times: u64,
    /// The time of the last occurrence.
    pub t: u64,
}

/// The cause that kept a place from being executed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WhyNotCause {
    /// The kind of cause.
    #[serde(flatten)]
    pub kind: WhyNotKind,
    /// The steps between the place and the cause, which were not executed, beginning at the place.
    pub through: Vec<WhyNotHop>,
}

/// The kind of cause.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WhyNotKind {
    /// A branch was executed, but never took the direction to the place.
    Branch {
        /// The last execution of the branch or, with `after`, its first execution after that time.
        place: WhyPlace,
        /// The number of executions after the time `after`. It includes an execution at the end of
        /// the block with this time.
        times: u64,
        /// The number of executions in the whole run.
        executions: u64,
        /// The deciding value, if known.
        value: Option<String>,
        /// The variables that the branch's line of source names, with their values before the line
        /// decided. Absent if there are none.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        variables: Vec<WhyNotVariable>,
        /// The outcome that would have led to the place.
        needs: WhyNotNeeds,
        /// The actual outcome.
        went: WhyNotWent,
    },
    /// A call through a table never called the function.
    Table {
        /// The last execution of the call or, with `after`, its first execution after that time.
        place: WhyPlace,
        /// The number of executions after the time `after`. It includes an execution at the end of
        /// the block with this time.
        times: u64,
        /// The number of executions in the whole run.
        executions: u64,
        /// The index, if known.
        value: Option<String>,
        /// The function.
        function: Function,
        /// The function that the call reached; `null` for a host function.
        called: Option<Function>,
    },
    /// Control took the direction to the place, but did not reach the regular end of a block or
    /// call.
    Ended {
        /// The operator where control arrived.
        place: WhyPlace,
        /// Whether `place` represents the entry of the function, because the function begins with a
        /// block without operators.
        entered: bool,
        /// The number of times control reached the block.
        times: u64,
        /// The end of the run; `null` if an exception left the function.
        stood: Option<WhyNotEnd>,
    },
    /// The run ended in the block of the place, before the block's end.
    Stopped {
        /// The block's last operator.
        place: WhyPlace,
        /// The end of the run.
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
    /// Returns the place of the cause, if it has one.
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

/// A variable in the condition of a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhyNotVariable {
    /// The variable, or an expression such as `p->next`, as the source writes it.
    pub name: String,
    /// Its value, as text.
    pub value: String,
}

/// The outcome with which a branch would have gone the other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhyNotNeeds {
    /// A value other than 0.
    Nonzero,
    /// The value 0.
    Zero,
    /// An exception.
    Exception,
    /// Another index.
    Index,
}

/// The actual direction of a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WhyNotWent {
    /// Control went to an operator of the branch's function.
    To {
        /// The operator.
        place: Box<WhyPlace>,
    },
    /// Control left the function.
    Left,
    /// The run ended at the branch.
    Ended,
}

/// The end of the run, and the activation that would have reached the place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhyNotEnd {
    /// The ending of the run, in words.
    pub ending: String,
    /// The place at which the run ended.
    pub place: WhyPlace,
    /// The call that the activation was executing, if there was one.
    pub call: Option<WhyPlace>,
}

/// A step that was not executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhyNotHop {
    /// The way in which the previous step depends on this step.
    pub how: WhyNotHow,
    /// The step's operator.
    pub place: WhyPlace,
}

/// The kind of dependence on a place that was not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhyNotHow {
    /// The previous step depends on a branch.
    Branch,
    /// The previous step depends on a call to its function.
    Call,
}

/// The answer, with the data needed to show it.
pub struct WhyNotView<'r> {
    /// The answer.
    pub report: &'r WhyNotReport,
    /// The name of the recording in commands.
    pub file: String,
}

impl Render for WhyNotView<'_> {
    const NAME: &'static str = "an answer of why-not";

    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError> {
        text::report(out, self.report, &self.file, style.width)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        begin(out, self.report)
    }
}
