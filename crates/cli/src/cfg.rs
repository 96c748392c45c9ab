//! Implements `afterimage cfg`.

use std::path::PathBuf;

use afterimage::files::{self, Kind};
use afterimage::instrument::{Mode, counters};
use afterimage::path::{GraphOf, dynamic_graph};
use afterimage_present::{CfgView, DynamicCfgView, Render, Whole, render};
use afterimage_profile::location::Occurrence;
use afterimage_program::Function;
use afterimage_replay::whole_path::GraphNodes;
use anyhow::{Context, Result, bail};

use crate::arguments::{choices, formats};
use crate::exit::Exit;
use crate::lens::finished;
use crate::output::{Color, pasted, print};
use crate::progress::Terminal;

/// Show a function's control-flow graph, or one call in it
///
/// With --dynamic it shows the graph of one call in a recorded run. The nodes are what the call
/// executed: chains of blocks (dynamic basic blocks), or single blocks with --nodes blocks. Each
/// node lists the steps of the call at which it ran, as l, l:h or l:h:s (every s-th from l to h).
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage cfg app.wasm --function main
  afterimage cfg app.wasm --function 12 --format dot | dot -Tsvg > graph.svg
  afterimage cfg app.aft --function main --dynamic
  afterimage cfg app.aft --function f --dynamic --call 3 --format dot
  afterimage cfg app.aft --function f --dynamic --call last")]
pub(crate) struct Arguments {
    /// The function, by index, name or demangled name
    #[arg(long, value_name = "F")]
    function: String,
    /// Also show where counters are placed: in quick or slow mode, or over the whole program
    #[arg(long)]
    counters: Option<CountersArgument>,
    /// From a recording, show what one call executed, and when
    #[arg(long, conflicts_with = "counters")]
    dynamic: bool,
    /// The call to show: its number, from 1 in order of time, or last [default: 1]
    #[arg(
        long,
        value_name = "K|last",
        requires = "dynamic",
        conflicts_with = "trace"
    )]
    call: Option<Occurrence>,
    /// Show this unique path trace instead of a call, numbered as in `afterimage paths`
    #[arg(long, value_name = "I", requires = "dynamic")]
    trace: Option<usize>,
    /// Kind of nodes [default: dbb]
    #[arg(long, requires = "dynamic")]
    nodes: Option<NodesArgument>,
    /// Write all timestamps, without a limit
    #[arg(long, requires = "dynamic")]
    whole: bool,
    /// Format of the graph
    #[arg(long, default_value = "text")]
    format: Format,
    /// A program, or a recording of one
    #[arg(value_name = "PROGRAM")]
    program: PathBuf,
}

formats!(Text, Dot, Json);

// Defines the nodes of a dynamic graph.
choices! { NodesArgument => GraphNodes {
    /// Dynamic basic blocks: chains that execute as a whole
    #[value(name = "dbb")]
    Dynamic,
    /// Single blocks
    Blocks,
}}

// Defines the placements of counters that need no earlier run.
choices!(CountersArgument => Mode { Quick, Slow, Program });

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let loaded = files::program_of(&arguments.program)?;
    let source = loaded.source_map(&Terminal);
    let names = loaded.names(&source);
    let id = names
        .find(&arguments.function, &source)
        .with_context(|| arguments.program.display().to_string())?;
    let function = loaded.program.function(id).with_context(|| {
        format!(
            "{}: {} is imported, so it has no graph",
            arguments.program.display(),
            names.short(id)
        )
    })?;
    let name = names.function(id);
    if arguments.dynamic {
        dynamic(&arguments, function, name)?;
        return Ok(Exit::Success);
    }
    let counters = arguments
        .counters
        .map(|mode| counters(&loaded, id, mode.into()));
    let counters = counters.transpose()?;
    if counters.is_some() && matches!(arguments.format, Format::Dot) {
        bail!("--counters works only with --format text and json");
    }
    let view = CfgView {
        function,
        name,
        counters,
    };
    show(&arguments, &view)?;
    Ok(Exit::Success)
}

fn show(arguments: &Arguments, view: &impl Render) -> Result<()> {
    let style = Color::default().style(None);
    print(|out| Ok(render(out, view, arguments.format, style)?))
}

/// Shows the graph of one call.
fn dynamic(arguments: &Arguments, function: &Function, name: &str) -> Result<()> {
    let at = &arguments.program;
    if let Kind::Program = files::kind(at)? {
        bail!(
            "{}: --dynamic shows what a call did, so it needs a recording; make one with: afterimage record {}",
            at.display(),
            pasted(at)
        );
    }
    let session = finished(at)?;
    let path = session.ensure_path()?;
    let nodes = arguments.nodes.unwrap_or(NodesArgument::Dynamic).into();
    let whose = match (arguments.trace, arguments.call) {
        (Some(trace), _) => GraphOf::Trace(trace),
        (None, call) => GraphOf::Call(call.unwrap_or(Occurrence::Kth(1))),
    };
    let graph = dynamic_graph(path, (function.id, name), whose, nodes);
    let whole = if arguments.whole {
        Whole::All
    } else {
        Whole::Beginning
    };
    let view = DynamicCfgView {
        graph: graph.with_context(|| at.display().to_string())?,
        function,
        name,
        whole,
    };
    show(arguments, &view)
}
