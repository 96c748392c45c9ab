//! `afterimage redundancy`

use afterimage_present::{
    RedundancyReport, StepScene, redundancy_csv, redundancy_json, redundancy_text,
};
use afterimage_query::dataflow::path_redundancy;
use afterimage_query::redundancy::load_redundancy;
use afterimage_query::steps::Operators;
use anyhow::{Context, Result};

use crate::arguments::{ReportArguments, entries};
use crate::dataflow::run_calls;
use crate::exit::Exit;
use crate::lens::{Traced, traced};
use crate::output::{say, write};
use crate::progress::Bar;
use crate::steps::follow;

/// Show which loads read again what was available already
///
/// An execution of a load is redundant if an earlier load or store covered all bytes that it reads, and since then none of them was
/// written, by the program or the host. It is so within the same call if that access came after the call began, in the call's function or in what that called:
/// what can be removed without looking at callers. By path alone it is redundant if no address is needed to know that: the access before has the same expression
/// for its address, none of whose values was computed anew since, and no store came between that might write there. The run is followed from its beginning.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage redundancy app.aft
  afterimage redundancy app.aft --top 5
  afterimage redundancy app.aft --function parse
  afterimage redundancy app.aft --format csv -o loads.csv")]
pub(crate) struct Arguments {
    /// Only the loads of this function
    #[arg(long, value_name = "FUNCTION")]
    function: Option<String>,
    /// Only the N loads with the most redundant executions [default: 20 for text on standard output; otherwise all, and what the path tells of 20]
    #[arg(long, value_name = "N", value_parser = entries)]
    top: Option<u64>,
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
    /// A row for each load
    Csv,
}

/// Loads that text has on standard output if nothing else is asked for.
const LOADS: u64 = 20;

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let traced = traced(&arguments.report.file)?;
    answer(&arguments, &traced).with_context(|| arguments.report.file.display().to_string())?;
    Ok(Exit::Success)
}

fn answer(arguments: &Arguments, traced: &Traced) -> Result<()> {
    let loaded = &traced.loaded;
    let source = loaded.source_map();
    let names = loaded.names(&source);
    let operators = Operators::new(&loaded.program, &loaded.bytes, &source);
    let scene = StepScene {
        names: &names,
        operators: &operators,
        source: &source,
        memories: loaded.program.memories,
        style: arguments.report.style(),
    };
    let function = arguments.function.as_deref();
    let function = function.map(|text| traced.function(&names, text));
    let function = function.transpose()?;
    let mut redundancy = follow(traced, |run, log| Ok(load_redundancy(run, log)?))?;
    if let Some(function) = function {
        redundancy
            .loads
            .retain(|load| load.site.function == function);
    }
    let out = arguments.report.output.as_deref();
    let screen = arguments.format == Format::Text && out.is_none();
    let top = arguments.top.or(screen.then_some(LOADS));
    let function = function.map(|function| names.function(function).to_owned());
    let mut report = RedundancyReport::new(redundancy, function, top);
    if !arguments.exact_only {
        match run_calls(traced)? {
            Some(calls) => {
                let _bar = Bar::start("following loads back along the path", None);
                let hottest = report.loads.iter().take(top.unwrap_or(LOADS) as usize);
                let mut sites = Vec::from_iter(hottest.map(|load| load.site));
                sites.sort_unstable();
                let (program, module) = (&loaded.program, &loaded.bytes);
                report.by_path = path_redundancy(&calls, program, module, &sites);
            }
            None => {
                say("how the run ended was not recorded, so what the path alone tells is left out")
            }
        }
    }
    write(out, false, |out| {
        match arguments.format {
            Format::Text => redundancy_text(out, &scene, &report)?,
            Format::Json => redundancy_json(out, &scene, &report)?,
            Format::Csv => redundancy_csv(out, &scene, &report)?,
        }
        Ok(())
    })
}
