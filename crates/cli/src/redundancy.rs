//! `afterimage redundancy`

use afterimage::Session;
use afterimage::steps::follow;
use afterimage_analyses::dataflow::{path_expressions, path_redundancy};
use afterimage_analyses::redundancy::{expression_redundancy, load_redundancy};
use afterimage_present::{
    RedundancyOf, RedundancyReport, RedundancyScene, RedundancyView, StepScene, render,
};
use afterimage_replay::steps::Operators;
use anyhow::{Context, Result, bail};

use crate::arguments::{ReportArguments, entries, formats};
use crate::build::Lens;
use crate::dataflow::run_calls;
use crate::early;
use crate::exit::Exit;
use crate::lens;
use crate::output::{say, write};
use crate::progress::Bar;

/// Show which loads read again what was available already, or which expressions were computed again
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
  afterimage redundancy app.aft --top 5
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
    #[arg(long, value_name = "N", value_parser = entries)]
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    /// A row for each
    Csv,
}

formats!(Text, Json, Csv);

/// So many text has on standard output if nothing else is asked for.
const SHOWN: u64 = 20;

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    if arguments.paths.is_some() && arguments.format == Format::Csv {
        bail!("--paths is for text and JSON: comma-separated values have a row for each");
    }
    let session = lens::session(&arguments.report.file)?;
    early::places(&session, Lens::Paths, arguments.function.as_deref())?;
    let traced = lens::with_path(session)?;
    answer(&arguments, &traced).with_context(|| arguments.report.file.display().to_string())?;
    Ok(Exit::Success)
}

fn answer(arguments: &Arguments, traced: &Session) -> Result<()> {
    let loaded = traced.module();
    let source = traced.source_map();
    let names = loaded.names(&source);
    let operators = Operators::new(&loaded.program, &loaded.bytes, &source);
    let scene = RedundancyScene {
        steps: StepScene {
            names: &names,
            operators: &operators,
            source: &source,
            memories: loaded.program.memories,
            style: arguments.report.style(),
        },
        program: &loaded.program,
        paths: traced.path()?.nodes(),
    };
    let function = arguments.function.as_deref();
    let function = function.map(|text| lens::function(traced, &names, text));
    let function = function.transpose()?;
    let of = if arguments.expressions {
        RedundancyOf::Expressions
    } else {
        RedundancyOf::Loads
    };
    let mut redundancy = follow(traced, |run, log| {
        Ok(match of {
            RedundancyOf::Loads => load_redundancy(run, log)?,
            RedundancyOf::Expressions => expression_redundancy(run, log)?,
        })
    })?;
    if let Some(function) = function {
        let own = &mut redundancy.operators;
        own.retain(|operator| operator.site.function == function);
    }
    let out = arguments.report.output.as_deref();
    let screen = arguments.format == Format::Text && out.is_none();
    let top = arguments.top.or(screen.then_some(SHOWN));
    let function = function.map(|function| names.function(function).to_owned());
    let mut report = RedundancyReport::new(of, redundancy, function, top);
    report.ways = arguments.paths.map_or(0, |paths| paths as usize);
    if !arguments.exact_only {
        match run_calls(traced)? {
            Some(calls) => {
                let _bar = Bar::start("going back along the path", None);
                let hottest = report.operators.iter().take(top.unwrap_or(SHOWN) as usize);
                let mut sites = Vec::from_iter(hottest.map(|operator| operator.site));
                sites.sort_unstable();
                let (program, module) = (&loaded.program, &loaded.bytes);
                report.by_path = match of {
                    RedundancyOf::Loads => path_redundancy(&calls, program, module, &sites),
                    RedundancyOf::Expressions => path_expressions(&calls, program, module, &sites),
                };
            }
            None => {
                say("how the run ended was not recorded, so what the path alone tells is left out")
            }
        }
    }
    let style = scene.steps.style;
    let view = RedundancyView { scene, report };
    write(out, false, |out| {
        Ok(render(out, &view, arguments.format, style)?)
    })
}
