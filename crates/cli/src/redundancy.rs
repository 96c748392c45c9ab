//! Implements `afterimage redundancy`.

use afterimage::RedundancyQuery;
use afterimage::check::{self, Needs};
use afterimage::named::{NamedProgram, with_names};
use afterimage_present::RedundancyOf;
use anyhow::{Result, bail};

use crate::arguments::{CodeArguments, ReportArguments, entries, formats};
use crate::exit::Exit;
use crate::lens;

/// Show redundant loads and expressions
///
/// An execution of a load is redundant if an earlier load or store covered all the bytes that it
/// reads, and none of them has been written since. It is redundant within the same call if that
/// access happened during the call, in its function or in a callee. Such loads can be removed
/// without looking at callers. It is redundant by path alone if the path shows it without any
/// addresses. The earlier access must have the same address expression. In between, none of the
/// expression's values may be computed again, and no store may occur that might write to the same
/// bytes. The run is followed from its beginning.
///
/// An execution of an operator that only computes (--expressions) is redundant if its operands have
/// the same values as when the call last computed the same expression. Expressions are the same if
/// they have the same operator on the same values, constants or expressions. It is redundant by
/// path alone if none of the expression's values has been computed again since then. Compilers call
/// this an available expression.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage redundancy app.aft
  afterimage redundancy app.aft --limit 5
  afterimage redundancy app.aft --function parse --paths 3
  afterimage redundancy app.aft --expressions
  afterimage redundancy app.aft --format csv -o loads.csv")]
pub(crate) struct Arguments {
    /// Report loads; this is the default
    #[arg(long, conflicts_with = "expressions")]
    loads: bool,
    /// Report operators that only compute, instead of loads
    #[arg(long)]
    expressions: bool,
    /// Report only this function
    #[arg(long, value_name = "FUNCTION")]
    function: Option<String>,
    /// Show only the N loads or operators with the most redundant executions [default: 20 for text
    /// on standard output, all otherwise; results by path cover 20]
    #[arg(long = "limit", alias = "top", value_name = "N", value_parser = entries)]
    top: Option<u64>,
    /// For each load or operator, show the N most frequent pairs of Ball–Larus paths: where it
    /// was redundant, and where its source ran
    #[arg(long, value_name = "N", value_parser = entries)]
    paths: Option<u64>,
    /// Leave out results by path alone
    #[arg(long)]
    exact_only: bool,
    /// Output format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    code: CodeArguments,
    #[command(flatten)]
    report: ReportArguments,
}

formats! {
    Text,
    Json,
    /// One row for each load or operator
    Csv,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    if arguments.paths.is_some() && arguments.format == Format::Csv {
        bail!("--paths works for text and JSON; csv has one row for each load or operator");
    }
    let session = arguments
        .code
        .session(|| lens::session(&arguments.report.file))?;
    check::places(&session, Needs::Path, arguments.function.as_deref())?;
    lens::build_path(&session)?;
    let found = with_names(&session, |program| arguments.answer(program));
    arguments.report.named(found)?;
    Ok(Exit::Success)
}

impl Arguments {
    fn answer(&self, program: NamedProgram<'_>) -> Result<()> {
        let screen = self.format == Format::Text && self.report.to.output.is_none();
        let query = RedundancyQuery {
            of: if self.expressions {
                RedundancyOf::Expressions
            } else {
                RedundancyOf::Loads
            },
            function: self.function.clone(),
            top: self.top.or(screen.then_some(RedundancyQuery::BY_PATH)),
            ways: self.paths.unwrap_or(0),
            own: self.format == Format::Text,
            by_path: !self.exact_only,
        };
        let view = query.shown(program, self.report.to.style())?;
        self.report.to.show(&view, self.format)
    }
}
