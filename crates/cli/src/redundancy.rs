//! `afterimage redundancy`

use afterimage::check::{self, Needs};
use afterimage::named::{NamedProgram, with_names};
use afterimage::redundancy::RedundancyQuery;
use afterimage_present::{RedundancyOf, render};
use anyhow::{Context, Result, bail};

use crate::arguments::{ReportArguments, entries, formats};
use crate::exit::Exit;
use crate::lens;
use crate::output::write;

/// Show redundant loads and expressions
///
/// An execution of a load is redundant if an earlier load or store covered all bytes that it reads, and since then none of them was
/// written, by the program or the host. It is so within the same call if that access came after the call began, in the call's function or in what that called:
/// what can be removed without looking at callers. By path alone it is redundant if no address is needed to know that: the access before has the same expression
/// for its address, none of whose values was computed anew since, and no store came between that might write there. The run is followed from its beginning.
///
/// An execution of an operator that only computes (--expressions) is redundant if, when the same expression was computed last in the same call, its operands had the same
/// values: the same operator on the same values, constants or expressions. By path alone it is redundant if none of the values that the expression is made of was
/// computed anew since: an available expression.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage redundancy app.aft
  afterimage redundancy app.aft --limit 5
  afterimage redundancy app.aft --function parse --paths 3
  afterimage redundancy app.aft --expressions
  afterimage redundancy app.aft --format csv -o loads.csv")]
pub(crate) struct Arguments {
    /// Loads; this is the default
    #[arg(long, conflicts_with = "expressions")]
    loads: bool,
    /// Operators that only compute, instead of loads
    #[arg(long)]
    expressions: bool,
    /// Only those of this function
    #[arg(long, value_name = "FUNCTION")]
    function: Option<String>,
    /// Only the N with the most redundant executions [default: 20 for text on standard output; otherwise all, and what the path tells of 20]
    #[arg(long = "limit", alias = "top", value_name = "N", value_parser = entries)]
    top: Option<u64>,
    /// Tell of each the N most frequent ways: through which Ball–Larus path it was executed when it was redundant, and through which its source was
    #[arg(long, value_name = "N", value_parser = entries)]
    paths: Option<u64>,
    /// Leave out what the path alone tells
    #[arg(long)]
    exact_only: bool,
    /// The format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    report: ReportArguments,
}

formats! {
    Text,
    Json,
    /// A row for each
    Csv,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    if arguments.paths.is_some() && arguments.format == Format::Csv {
        bail!("--paths is for text and JSON: comma-separated values have a row for each");
    }
    let session = lens::session(&arguments.report.file)?;
    check::places(&session, Needs::Path, arguments.function.as_deref())?;
    let session = lens::with_path(session)?;
    let found = with_names(&session, |program| arguments.answer(program));
    found.with_context(|| arguments.report.file.display().to_string())?;
    Ok(Exit::Success)
}

impl Arguments {
    fn answer(&self, program: NamedProgram<'_>) -> Result<()> {
        let screen = self.format == Format::Text && self.report.output.is_none();
        let query = RedundancyQuery {
            of: if self.expressions {
                RedundancyOf::Expressions
            } else {
                RedundancyOf::Loads
            },
            function: self.function.clone(),
            top: self.top.or(screen.then_some(RedundancyQuery::BY_PATH)),
            ways: self.paths.unwrap_or(0),
            by_path: !self.exact_only,
        };
        let style = self.report.style();
        let view = query.shown(program, style)?;
        write(self.report.output.as_deref(), false, |out| {
            Ok(render(out, &view, self.format, style)?)
        })
    }
}
