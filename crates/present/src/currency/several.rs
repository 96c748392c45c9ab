//! Writes reports on all variables at a line.

use std::io::Write;

use schemars::JsonSchema;
use serde::Serialize;

use super::json::{CurrencyArrivals, CurrencyCounts};
use super::{CurrencyReport, WORDS};
use crate::PresentError;
use crate::document::{Document, NoRows, begin};
use crate::number::{counted, grouped};
use crate::table::{Align::Left, Align::Right, Paint, Style, Table, plain};

/// Writes the number of stops with each verdict, for each variable. All reports are about the same
/// stops.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn currencies_text(
    out: &mut dyn Write,
    reports: &[CurrencyReport],
    style: Style,
) -> Result<(), PresentError> {
    let Some(first) = reports.first() else {
        return Ok(());
    };
    let (looked_at, all) = (first.rows.len() as u64, first.arrivals[1]);
    let of = match (first.which, looked_at < all) {
        (Some(number), _) => format!("arrival {} of {}", grouped(number), grouped(all)),
        (None, true) => format!(
            "the first {} of {} arrivals",
            grouped(looked_at),
            grouped(all)
        ),
        (None, false) => counted(all, "arrival"),
    };
    let stale = reports
        .iter()
        .filter(|report| report.count("not current") > 0);
    let unread = |report: &CurrencyReport| report.count("not available") == looked_at;
    writeln!(
        out,
        "{} in scope at {}, at {of} of the optimised run; {}",
        counted(reports.len() as u64, "variable"),
        plain(&first.at),
        match stale.count() {
            0 if reports.iter().all(unread) => "none can be read there".to_owned(),
            0 => "no variable was found that is not current".to_owned(),
            1 => "1 is not always current".to_owned(),
            many => format!("{} are not always current", grouped(many as u64)),
        }
    )?;
    let mut columns = WORDS.map(|word| (word, Right)).to_vec();
    columns.push(("variable", Left));
    let mut table = Table::new(&columns);
    for report in reports {
        let kind = report.type_name.as_deref();
        let kind = kind.map_or(String::new(), |kind| format!(" ({})", plain(kind)));
        let counts = WORDS.map(|word| match report.count(word) {
            0 => String::new(),
            count => grouped(count),
        });
        let because = report.explained.as_ref().map(|(number, cause)| {
            let number = grouped(*number);
            format!(": {}, first at #{number}", cause.cause.word())
        });
        let name = format!(
            "{}{kind}{}",
            plain(&report.variable),
            because.unwrap_or_default()
        );
        table.row(counts.into_iter().chain([name]));
    }
    table.write(out, style, |_| Paint::Plain)?;
    Ok(())
}

/// Whether the variables in scope at a line of an optimised run are current.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CurrenciesDocument {
    /// The line as named by the user.
    pub at: String,
    /// The number of arrivals of the runs at the line.
    pub arrivals: CurrencyArrivals,
    /// The number of stops of the optimised run at which the variables were examined.
    pub looked_at: usize,
    /// The variables.
    pub variables: Vec<CurrencyVariable>,
}

impl Document for CurrenciesDocument {
    const NAME: &'static str = "currencies";
    const COMMAND: &'static str = "currency";
    type Row = NoRows;
}

/// A variable of an optimised run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CurrencyVariable {
    /// Its name.
    pub variable: String,
    /// The variable's type, if the variable had a value.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// The number of examined stops by verdict.
    #[serde(flatten)]
    pub counts: CurrencyCounts,
    /// The first stop at which the variable is not current, and the cause.
    pub explained: Option<CurrencyFirst>,
}

/// The first stop at which a variable is not current.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CurrencyFirst {
    /// The number of the arrival at the line, from 1.
    pub number: u64,
    /// `hoisted`, `delayed`, `dropped`, `removed`, `not executed` or `unknown`.
    pub cause: &'static str,
}

/// Writes the document for programs.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn currencies_json(
    out: &mut dyn Write,
    reports: &[CurrencyReport],
) -> Result<(), PresentError> {
    let Some(first) = reports.first() else {
        return Ok(());
    };
    let variables = reports.iter().map(|report| {
        let explained = report.explained.as_ref();
        CurrencyVariable {
            variable: report.variable.clone(),
            type_name: report.type_name.clone(),
            counts: CurrencyCounts::new(report),
            explained: explained.map(|(number, cause)| CurrencyFirst {
                number: *number,
                cause: cause.cause.word(),
            }),
        }
    });
    let document = CurrenciesDocument {
        at: first.at.clone(),
        arrivals: first.arrivals.into(),
        looked_at: first.rows.len(),
        variables: variables.collect(),
    };
    begin(out, &document)
}
