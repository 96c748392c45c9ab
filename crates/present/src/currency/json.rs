//! Writes currency reports for programs.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Assigned, Cause, CurrencyCause, CurrencyReport, CurrencyRow, Unreported, Verdict};
use crate::document::objects::{Function, Position, TypedValue};
use crate::document::{Document, NoRows};

/// Whether a variable is current at each stop of an optimised run: whether a debugger shows the
/// value that the source implies. docs/CURRENCY.md has the rules.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CurrencyDocument {
    /// The variable, or an expression.
    pub variable: String,
    /// The variable's type, if the variable had a value.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// The line as named by the user.
    pub at: String,
    /// The number of arrivals of the runs at the line.
    pub arrivals: CurrencyArrivals,
    /// The number of stops of the optimised run at which the variable was examined.
    pub looked_at: usize,
    /// The number of examined stops by verdict.
    #[serde(flatten)]
    pub counts: CurrencyCounts,
    /// The stops.
    pub stops: Vec<CurrencyStop>,
    /// The first stop at which the variable is not current, and the reason.
    pub explained: Option<CurrencyExplained>,
}

impl Document for CurrencyDocument {
    const NAME: &'static str = "currency";
    const COMMAND: &'static str = "currency --var NAME";
    type Row = NoRows;
}

/// The number of arrivals of two runs at a line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CurrencyArrivals {
    /// The number of arrivals of the unoptimised run.
    pub unoptimised: u64,
    /// The number of arrivals of the optimised run.
    pub optimised: u64,
}

impl From<[u64; 2]> for CurrencyArrivals {
    fn from([unoptimised, optimised]: [u64; 2]) -> Self {
        Self {
            unoptimised,
            optimised,
        }
    }
}

/// The number of stops by verdict.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CurrencyCounts {
    /// The number of stops at which the shown value is the value that the source implies.
    pub current: u64,
    /// The number of stops at which the shown value differs from the value that the source implies.
    pub not_current: u64,
    /// The number of stops at which nothing is shown.
    pub not_available: u64,
    /// The number of stops at which the source has not assigned the variable yet.
    pub not_set: u64,
    /// The number of stops at which it is unknown whether the shown and the expected value are the
    /// same.
    pub not_comparable: u64,
    /// The number of stops whose corresponding moment in the unoptimised run is unknown.
    pub not_told: u64,
}

impl CurrencyCounts {
    pub(super) fn new(report: &CurrencyReport) -> Self {
        Self {
            current: report.count("current"),
            not_current: report.count("not current"),
            not_available: report.count("not available"),
            not_set: report.count("not set"),
            not_comparable: report.count("not comparable"),
            not_told: report.count("not told"),
        }
    }
}

/// A stop of the optimised run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CurrencyStop {
    /// The number of the arrival at the line, from 1.
    pub number: u64,
    /// The time of its block.
    pub t: u64,
    /// `current`, `not current`, `not available`, `not set`, `not comparable` or `not told`.
    pub verdict: &'static str,
    /// The value in the optimised run.
    pub shown: CurrencyValue,
    /// The value in the unoptimised run.
    pub expected: Option<CurrencyValue>,
    /// The corresponding arrival in the unoptimised run.
    pub unoptimised: Option<CurrencyArrival>,
    /// The differing part, for `not current`; empty for the whole variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The reason, for `not available` and `not comparable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The code that gave a different value, if this is the reason for `not told`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differs: Option<CurrencyDiffers>,
    /// The code whose executions in a block cannot be distinguished, if this is the reason for `not
    /// told`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alike: Option<CurrencyAlike>,
}

/// The value of a variable.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CurrencyValue {
    /// The value in C notation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Why there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

impl From<&Result<String, String>> for CurrencyValue {
    fn from(value: &Result<String, String>) -> Self {
        Self {
            value: value.as_ref().ok().cloned(),
            unavailable: value.as_ref().err().cloned(),
        }
    }
}

/// An arrival at a line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CurrencyArrival {
    /// The number of the arrival, from 1.
    pub number: u64,
    /// The time of its block.
    pub t: u64,
}

/// Code that gave a different value.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CurrencyDiffers {
    /// Its column, if known.
    pub column: Option<u32>,
    /// Its value in the optimised run.
    pub optimised: TypedValue,
    /// Its value in the unoptimised run.
    pub unoptimised: TypedValue,
}

/// Code whose executions in one block cannot be distinguished from each other.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CurrencyAlike {
    /// Its column, if known.
    pub column: Option<u32>,
}

/// The reason why a variable is not current at a stop.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CurrencyExplained {
    /// The number of the arrival at which the run stopped.
    pub number: u64,
    /// The part of the variable; empty for the whole variable.
    pub part: String,
    /// `hoisted`, `delayed`, `dropped`, `removed`, `not executed` or `unknown`.
    pub cause: &'static str,
    /// The time of the assignment: in the unoptimised run for `hoisted`, otherwise in the optimised
    /// run.
    pub t: Option<u64>,
    /// The reason, for `unknown`.
    pub why: Option<String>,
    /// The assignment of the expected value.
    pub expected: Option<CurrencyAssigned>,
    /// The assignment of the shown value.
    pub shown: Option<CurrencyAssigned>,
    /// The variable's place according to the debug information.
    pub place: Option<String>,
}

/// The origin of a value.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum CurrencyAssigned {
    /// An operator.
    By(CurrencyOperator),
    /// `"beginning"`: the value existed when the run began.
    Beginning(&'static str),
}

/// An operator that assigned a variable.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CurrencyOperator {
    /// Its function.
    pub function: Function,
    /// Its line, if known.
    pub source: Option<Position>,
    /// The operator's name in the text format.
    pub operator: String,
    /// Its name in commands: `@0x1f3#7`.
    pub at: String,
    /// The time of its block.
    pub t: u64,
}

pub(crate) fn currency_document(report: &CurrencyReport) -> CurrencyDocument {
    let explained = report.explained.as_ref();
    CurrencyDocument {
        variable: report.variable.clone(),
        type_name: report.type_name.clone(),
        at: report.at.clone(),
        arrivals: report.arrivals.into(),
        looked_at: report.rows.len(),
        counts: CurrencyCounts::new(report),
        stops: report.rows.iter().map(stop).collect(),
        explained: explained.map(|(number, why)| cause(*number, why)),
    }
}

fn stop(row: &CurrencyRow) -> CurrencyStop {
    let counterpart = row.counterpart;
    let mut stop = CurrencyStop {
        number: row.number,
        t: row.time,
        verdict: row.verdict.word(),
        shown: (&row.shown).into(),
        expected: row.expected.as_ref().map(CurrencyValue::from),
        unoptimised: counterpart.map(|(number, t)| CurrencyArrival { number, t }),
        part: None,
        why: None,
        differs: None,
        alike: None,
    };
    match &row.verdict {
        Verdict::NotCurrent { part } => stop.part = Some(part.clone()),
        Verdict::NotAvailable { why } | Verdict::NotComparable { why } => {
            stop.why = Some(why.clone());
        }
        Verdict::NotTold {
            why:
                Some(Unreported::Differs {
                    column,
                    optimised,
                    unoptimised,
                }),
        } => {
            stop.differs = Some(CurrencyDiffers {
                column: *column,
                optimised: optimised.into(),
                unoptimised: unoptimised.into(),
            });
        }
        Verdict::NotTold {
            why: Some(Unreported::Alike { column }),
        } => stop.alike = Some(CurrencyAlike { column: *column }),
        Verdict::Current | Verdict::NotSet | Verdict::NotTold { why: None } => {}
    }
    stop
}

fn cause(number: u64, cause: &CurrencyCause) -> CurrencyExplained {
    let assigned = |by: &Assigned| match by {
        Assigned::By(place) => CurrencyAssigned::By(CurrencyOperator {
            function: place.function.clone(),
            source: place.source.as_ref().map(Position::from),
            operator: place.operator.clone(),
            at: place.at.clone(),
            t: place.t,
        }),
        Assigned::Beginning => CurrencyAssigned::Beginning("beginning"),
    };
    let (time, why) = match &cause.cause {
        Cause::Early { time, .. } | Cause::Late { time } | Cause::Dropped { time } => {
            (Some(*time), None)
        }
        Cause::Unknown { why } => (None, Some(why.clone())),
        Cause::Removed | Cause::NotExecuted => (None, None),
    };
    CurrencyExplained {
        number,
        part: cause.part.clone(),
        cause: cause.cause.word(),
        t: time,
        why,
        expected: cause.expected.as_ref().map(assigned),
        shown: cause.shown.as_ref().map(assigned),
        place: cause.place.clone(),
    }
}
