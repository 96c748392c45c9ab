//! Reports whether a variable of an optimised run is current.

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

/// The results for a variable, for each time that an optimised run stops at a line.
#[derive(Clone, Debug)]
pub struct CurrencyReport {
    /// The expression.
    pub variable: String,
    /// The name of its type, if there was a value.
    pub type_name: Option<String>,
    /// The line as named by the user.
    pub at: String,
    /// The number of the stop, if only one was requested.
    pub which: Option<u64>,
    /// The number of arrivals of the unoptimised and the optimised run at the line.
    pub arrivals: [u64; 2],
    /// The stops that were examined.
    pub rows: Vec<CurrencyRow>,
    /// The first stop at which the variable is not current, and the reason.
    pub explained: Option<(u64, CurrencyCause)>,
}

impl CurrencyReport {
    /// Returns the document for programs.
    pub fn document(&self) -> CurrencyDocument {
        currency_document(self)
    }
}

/// A stop of the optimised run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrencyRow {
    /// The number of the arrival at the line, from 1.
    pub number: u64,
    /// The time of its block.
    pub time: u64,
    /// The number and time of the corresponding arrival in the unoptimised run; `None` if unknown.
    pub counterpart: Option<(u64, u64)>,
    /// The value in the optimised run, or the reason why there is none.
    pub shown: Result<String, String>,
    /// The value in the unoptimised run, or the reason why there is none.
    pub expected: Option<Result<String, String>>,
    /// The result of the comparison.
    pub verdict: Verdict,
}

/// The result of comparing the shown value with the expected value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The shown value is the expected value.
    Current,
    /// The shown value is not the expected value.
    NotCurrent {
        /// The differing part, as written after the expression; empty for the whole value.
        part: String,
    },
    /// Nothing is shown.
    NotAvailable {
        /// The reason.
        why: String,
    },
    /// The shown value differs, but the source has not assigned the variable yet, so any value is
    /// right.
    NotSet,
    /// It is unknown whether the shown and the expected value are the same.
    NotComparable {
        /// The reason.
        why: String,
    },
    /// The corresponding moment of the unoptimised run is unknown.
    NotTold {
        /// If counting arrivals found a counterpart, the reason why the counterpart was rejected.
        why: Option<Unreported>,
    },
}

/// The reason why a counterpart found by counting arrivals is not reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreported {
    /// An operator of the line gave a different value.
    Differs {
        /// The column.
        column: Option<u32>,
        /// The value in the optimised run.
        optimised: Value,
        /// The value in the unoptimised run.
        unoptimised: Value,
    },
    /// All executions gave the same values, but executions within a block may have been reordered.
    Alike {
        /// The column.
        column: Option<u32>,
    },
}

/// The reason why a variable is not current.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrencyCause {
    /// The part that is not current.
    pub part: String,
    /// The assignment of the expected value in the unoptimised run.
    pub expected: Option<Assigned>,
    /// The assignment of the shown value in the optimised run.
    pub shown: Option<Assigned>,
    /// The variable's place according to the debug information of the optimised program.
    pub place: Option<String>,
    /// The optimiser's change.
    pub cause: Cause,
}

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one for each variable")]
pub enum Assigned {
    /// An execution of an operator.
    By(WhyPlace),
    /// The value existed when the run began.
    Beginning,
}

/// The optimiser's change to an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Hoisted: the source assigns the shown value later, at this time of the unoptimised run.
    Early {
        /// A time of the unoptimised run.
        time: u64,
        /// Whether the variable is in a WebAssembly local. Several variables may share a local, so
        /// code that computes the local's value may belong to another variable.
        in_local: bool,
    },
    /// Sunk or delayed: the optimised run executes the assignment later, at this time.
    Late {
        /// A time of the optimised run.
        time: u64,
    },
    /// The line was executed in time, but the assigned value is not in the variable's declared
    /// place.
    Dropped {
        /// A time of the optimised run.
        time: u64,
    },
    /// The optimised program has no code for the assignment's line.
    Removed,
    /// The optimised program has code for the line, but did not execute it in that call.
    NotExecuted,
    /// The cause is unknown.
    Unknown {
        /// The reason.
        why: String,
    },
}

impl CurrencyReport {
    /// Returns the number of stops with this verdict.
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
    /// Returns the word for this verdict.
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
    /// Returns the word for this verdict.
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
    /// The results.
    pub report: &'r CurrencyReport,
    /// Whether the text form shows all stops.
    pub all: bool,
}

impl Render for CurrencyView<'_> {
    const NAME: &'static str = "a currency report";

    fn text(&self, out: &mut dyn Write, _: Style) -> Result<(), PresentError> {
        currency_text(out, self.report, self.all)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        begin(out, &self.report.document())
    }
}

/// The reports on all variables at a line.
pub struct CurrenciesView<'r>(pub &'r [CurrencyReport]);

impl Render for CurrenciesView<'_> {
    const NAME: &'static str = "a currency report";

    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError> {
        currencies_text(out, self.0, style)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        currencies_json(out, self.0)
    }
}
