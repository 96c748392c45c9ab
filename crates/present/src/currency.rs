//! Whether a variable of an optimised run is current.

mod json;
mod several;
mod text;

pub use self::json::CurrencyDocument;
use self::json::currency_document;
pub use self::several::{CurrenciesDocument, currencies_json, currencies_text};
pub use self::text::currency_text;
use afterimage_replay::steps::Value;

use std::io::Write;

use crate::document::begin;
use crate::render::Render;
use crate::why::WhyPlace;
use crate::{PresentError, Style};

/// What was found about a variable at the stops of an optimised run at a line.
#[derive(Clone, Debug)]
pub struct CurrencyReport {
    /// The expression.
    pub variable: String,
    /// Its type's name, if there was a value.
    pub type_name: Option<String>,
    /// The line, as it was named.
    pub at: String,
    /// Which stop was asked about, if only one was.
    pub which: Option<u64>,
    /// How often the unoptimised run arrived at the line, and the optimised one.
    pub arrivals: [u64; 2],
    /// The stops that were looked at.
    pub rows: Vec<CurrencyRow>,
    /// The first stop at which it is not current, and why.
    pub explained: Option<(u64, CurrencyCause)>,
}

impl CurrencyReport {
    /// It, for programs.
    pub fn document(&self) -> CurrencyDocument {
        currency_document(self)
    }
}

/// A stop of the optimised run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrencyRow {
    /// Which arrival at the line it is, from 1.
    pub number: u64,
    /// The time of its block.
    pub time: u64,
    /// Which arrival of the unoptimised run it is, and when that was; `None` if that cannot be told.
    pub counterpart: Option<(u64, u64)>,
    /// What the optimised run shows, or why nothing.
    pub shown: Result<String, String>,
    /// What the unoptimised one does.
    pub expected: Option<Result<String, String>>,
    /// How they compare.
    pub verdict: Verdict,
}

/// Whether what is shown is what is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Current,
    /// It is not.
    NotCurrent {
        /// In which part: as it is written behind the expression. Empty for the whole.
        part: String,
    },
    /// Nothing is shown.
    NotAvailable {
        /// Why.
        why: String,
    },
    /// Something else is shown, but the source has not assigned the variable yet: it may hold anything.
    NotSet,
    /// Whether they are the same cannot be told.
    NotComparable {
        /// Why.
        why: String,
    },
    /// Which moment of the unoptimised run it is cannot be told.
    NotTold {
        /// Why not, if it was counted.
        why: Option<Untold>,
    },
}

/// Why a moment that was counted is not told after all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untold {
    /// An operator of the line gave something else.
    Differs {
        /// The column.
        column: Option<u32>,
        /// What it gave in the optimised run.
        optimised: Value,
        /// What in the unoptimised one.
        unoptimised: Value,
    },
    /// Executions in a block may have changed places, and gave the same.
    Alike {
        /// The column.
        column: Option<u32>,
    },
}

/// Why a variable is not current.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrencyCause {
    /// Which part of it is not.
    pub part: String,
    /// What assigned the value that it should have, in the unoptimised run.
    pub expected: Option<Assigned>,
    /// What made the value that is shown, in the optimised run.
    pub shown: Option<Assigned>,
    /// Where the debug information of the optimised program has it.
    pub place: Option<String>,
    /// What the optimiser did.
    pub cause: Cause,
}

/// What made a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one for each variable")]
pub enum Assigned {
    /// An execution of an operator.
    By(WhyPlace),
    /// It was there when the run began.
    Beginning,
}

/// What the optimiser did to an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// What is shown is assigned by the source only later: in the unoptimised run at this time. It was hoisted.
    Early {
        /// A time of the unoptimised run.
        time: u64,
        /// It is in a local of WebAssembly: who computes a value for it does not say for which of the variables that have it one after the other.
        in_local: bool,
    },
    /// The assignment is executed later in the optimised run, at this time. It was sunk, or delayed.
    Late {
        /// A time of the optimised run.
        time: u64,
    },
    /// The line was executed in time, but what it assigned is not kept where the variable is said to be.
    Dropped {
        /// A time of the optimised run.
        time: u64,
    },
    /// The optimised program has no code of the assignment's line.
    Removed,
    /// It has, but did not execute it in that call.
    NotExecuted,
    /// It cannot be told.
    Unknown {
        /// Why.
        why: String,
    },
}

impl CurrencyReport {
    /// At how many of the stops the verdict has this word.
    fn count(&self, word: &str) -> u64 {
        let rows = self.rows.iter();
        rows.filter(|row| row.verdict.word() == word).count() as u64
    }
}

/// The words for verdicts.
const WORDS: [&str; 6] = [
    "current",
    "not current",
    "not available",
    "not set",
    "not comparable",
    "not told",
];

impl Verdict {
    /// The word for it.
    fn word(&self) -> &'static str {
        WORDS[match self {
            Self::Current => 0,
            Self::NotCurrent { .. } => 1,
            Self::NotAvailable { .. } => 2,
            Self::NotSet => 3,
            Self::NotComparable { .. } => 4,
            Self::NotTold { .. } => 5,
        }]
    }
}

impl Cause {
    /// The word for it.
    fn word(&self) -> &'static str {
        match self {
            Self::Early { .. } => "hoisted",
            Self::Late { .. } => "delayed",
            Self::Dropped { .. } => "dropped",
            Self::Removed => "removed",
            Self::NotExecuted => "not executed",
            Self::Unknown { .. } => "unknown",
        }
    }
}

/// A variable at the stops of a line.
pub struct CurrencyView<'r> {
    /// What was found.
    pub report: &'r CurrencyReport,
    /// Text shows all stops.
    pub all: bool,
}

impl Render for CurrencyView<'_> {
    const NAME: &'static str = "a report of what is current";

    fn text(&self, out: &mut dyn Write, _: Style) -> Result<(), PresentError> {
        currency_text(out, self.report, self.all)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        begin(out, &self.report.document())
    }
}

/// All variables at a line.
pub struct CurrenciesView<'r>(pub &'r [CurrencyReport]);

impl Render for CurrenciesView<'_> {
    const NAME: &'static str = "a report of what is current";

    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError> {
        currencies_text(out, self.0, style)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        currencies_json(out, self.0)
    }
}
