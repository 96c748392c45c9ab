//! `afterimage calls`

use afterimage::Session;
use afterimage::path::numbering;
use afterimage_ids::FuncId;
use afterimage_present::{CallReport, CallView, Scene, render};
use afterimage_program::{Names, SourceMap};
use afterimage_replay::paths::{Places, kth_call};
use anyhow::{Context, Result, anyhow};

use crate::arguments::{ReportArguments, Which, formats};
use crate::exit::Exit;
use crate::lens::{self, traced, which_call};
use crate::output::{SourceFiles, write};

/// Show who called whom, exactly, and single calls
///
/// Blocks are counted as in a profile: "self" are those that a function executes itself, "inclusive" those that are executed while it
/// is active, which counts each block once, however the function recurses.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage calls app.aft
  afterimage calls app.aft --function parse
  afterimage calls app.aft --function parse --call 1000
  afterimage calls app.aft --function parse --call last")]
pub(crate) struct Arguments {
    /// The callers and callees of this function, by index, name or demangled name
    #[arg(long, value_name = "F")]
    function: Option<String>,
    /// Its K-th call, from 1, or the last: who called, from where, when, for how long
    #[arg(long, value_name = "K|last", requires = "function")]
    call: Option<Which>,
    /// Only the first N rows of each table of text
    #[arg(long, value_name = "N", default_value_t = 25)]
    top: usize,
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
}

formats!(Text, Json);

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let traced = traced(&arguments.report.file)?;
    answer(&arguments, &traced).with_context(|| arguments.report.file.display().to_string())?;
    Ok(Exit::Success)
}

fn answer(arguments: &Arguments, traced: &Session) -> Result<()> {
    let source = traced.source_map();
    let names = traced.module().names(&source);
    let function = arguments.function.as_deref();
    let function = function.map(|text| lens::function(traced, &names, text));
    match (function.transpose()?, arguments.call) {
        (Some(function), Some(which)) => call(arguments, traced, function, which, &names, &source),
        (function, _) => graph(arguments, traced, function, &names),
    }
}

fn graph(
    arguments: &Arguments,
    traced: &Session,
    function: Option<FuncId>,
    names: &Names,
) -> Result<()> {
    let graph = traced.path()?.call_graph()?;
    let totals = graph.totals();
    let totals = totals.ok_or_else(|| anyhow!("there are more calls than can be counted"))?;
    let report = CallReport {
        graph: &graph,
        totals: &totals,
        length: traced.path()?.length(),
        names,
        left_out: &traced.path()?.segments().directory().left_out,
        only: function,
        top: arguments.top,
    };
    let out = arguments.report.output.as_deref();
    let style = arguments.report.style();
    write(out, false, |out| {
        Ok(render(out, &report, arguments.format, style)?)
    })
}

fn call(
    arguments: &Arguments,
    traced: &Session,
    function: FuncId,
    which: Which,
    names: &Names,
    source: &SourceMap<'_>,
) -> Result<()> {
    let name = names.function(function);
    let (kept, _) = which_call(traced.path()?, function, name, which)?;
    let calls = kth_call(traced.path()?, function, kept)?;
    let number = numbering(traced.path()?).of_kept(function, kept);
    let number = number.unwrap_or(kept);
    let out = arguments.report.output.as_deref();
    let places = Places::new(traced.program(), traced.bytes(), source);
    let scene = Scene {
        path: traced.path()?,
        names,
        places: &places,
        sources: &SourceFiles,
        left_out: &traced.path()?.segments().directory().left_out,
        style: arguments.report.style(),
    };
    let style = scene.style;
    let view = CallView {
        scene,
        calls,
        number,
    };
    write(out, false, |out| {
        Ok(render(out, &view, arguments.format, style)?)
    })
}
