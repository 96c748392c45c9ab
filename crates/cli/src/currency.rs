//! Implements `afterimage currency`.

use std::path::PathBuf;

use afterimage::currency::question::{CurrencyQuery, refuse_unlike};
use afterimage::files;
use afterimage_present::{CurrenciesView, CurrencyView};
use afterimage_profile::location::split_occurrence;
use anyhow::{Result, bail};

use crate::arguments::{ReportArguments, SourceArguments, entries, formats};
use crate::exit::Exit;
use crate::lens::{self, traced_whole};

/// Show whether variables of an optimised run are current
///
/// A variable is current at a line if a debugger shows what the programmer expects there. Both
/// versions must have run on the same input. For each stop of the optimised run at the line, the
/// command finds the corresponding stop of the unoptimised run, and reads the variable in both. It
/// is *current* if the values are the same. It is *not current* if they differ because an
/// assignment was moved or removed; the report names that assignment. Otherwise it is *not
/// available*. With #K one stop is examined, otherwise all stops. The answer holds for this
/// execution, not for all possible executions. The report names the cases that it cannot decide;
/// docs/CURRENCY.md has the rules.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "afterimage currency [OPTIONS] --unoptimised <A.aft> --at <LOC#K> <B.aft>"
)]
#[command(after_help = "\
Examples:
  afterimage currency o2.aft --unoptimised o0.aft --at a.c:17 --var total
  afterimage currency o2.aft --unoptimised o0.aft --at a.c:17#4 --var total
  afterimage currency o2.aft --unoptimised o0.aft --at a.c:17
  afterimage currency o2.aft --unoptimised o0.aft --at a.c:17#last --var 'p->k'
  afterimage currency o2.aft --unoptimised o0.aft --at a.c:17 --var total --all
  afterimage currency o2.aft --unoptimised o0.aft --at a.c:17 --format json")]
pub(crate) struct Arguments {
    /// The recording of the unoptimised version, run on the same input; it shows what the variable
    /// should hold
    #[arg(long, value_name = "FILE.aft")]
    unoptimised: PathBuf,
    /// The line, and the arrival at it in the optimised run: file.c:42, file.c:42#K, file.c:42#last
    #[arg(long, value_name = "LOC[#K]")]
    at: String,
    /// The source variable or expression: total, p->next, s.member [default: a summary of all
    /// variables in scope there]
    #[arg(long, value_name = "NAME")]
    var: Option<String>,
    /// Also match statements by their effects, as `afterimage match` does, to find the moment that
    /// corresponds to a stop; this is evidence, not proof
    #[arg(long = "match")]
    matching: bool,
    /// Show each stop of the variable that --var names, as text
    #[arg(long)]
    all: bool,
    /// Without #K, examine the first N stops [default: 10,000]
    #[arg(long, value_name = "N", value_parser = entries)]
    limit: Option<u64>,
    /// Output format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    sources: SourceArguments,
    #[command(flatten)]
    report: ReportArguments,
}

formats!(Text, Json);

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let (optimised, unoptimised) = (&arguments.report.file, &arguments.unoptimised);
    for file in [unoptimised, optimised] {
        files::ended(file)?;
    }
    let query = CurrencyQuery {
        at: arguments.at.clone(),
        variable: arguments.var.clone(),
        matching: arguments.matching,
        limit: arguments.limit.unwrap_or(CurrencyQuery::STOPS),
    };
    query.check()?;
    if arguments.all && arguments.var.is_none() {
        bail!("--all shows each stop of one variable: name it with --var");
    }
    let one = matches!(split_occurrence(&arguments.at), Ok((_, Some(_))));
    if one && arguments.limit.is_some() {
        bail!("--at {}: that is one stop; leave out --limit", arguments.at);
    }
    let sources = arguments.sources.paths()?;
    let a = traced_whole(unoptimised)?.reading(sources.clone());
    let b = traced_whole(optimised)?.reading(sources);
    refuse_unlike([&a, &b])?;
    [&a, &b].into_iter().try_for_each(lens::ensure_values)?;
    let reports = query.answer([&a, &b])?;
    let (to, format) = (&arguments.report.to, arguments.format);
    match (&arguments.var, reports.first()) {
        (Some(_), Some(report)) => {
            let all = arguments.all;
            to.show(&CurrencyView { report, all }, format)?;
        }
        _ => to.show(&CurrenciesView(&reports), format)?,
    }
    lens::say_not_at_hand(&a);
    Ok(Exit::Success)
}
