//! `afterimage state`

use afterimage::StateQuery;
use afterimage::check::{self, Needs};
use afterimage::files;
use afterimage_present::render;
use anyhow::Result;

use crate::arguments::{CodeArguments, ReportArguments, SourceArguments, formats};
use crate::exit::Exit;
use crate::lens;
use crate::output::write;

/// Show the call stack and its variables at a moment
///
/// Shown is the state right before the place is executed: of a line before its first instruction, of a function behind its prologue, as in other
/// debuggers, of a time before its block; of functions that wait for a call, the state before the call. Variables are those of the source, if the
/// program has debug information (-g), otherwise the locals of WebAssembly. What is in memory is known by following the run from the last checkpoint
/// before the moment.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Moments:
  123456, t=123456    the block that was executed as the 123456th
  start, -1000        the first block, the 1000th from the end
  end                 where the run ended: before what trapped, called the host and did not return, or came next; after a return before the last block
  50%                 half of the run
  main#3, main#last   the third call of main, the last (without #: the first)
  main+0              its very first operator: parameters may not be in their places yet
  file.c:42#3         the third time that line 42 was arrived at
  @0x1f3#3, f+0x2a    the third time that this operator was executed, the first

Examples:
  afterimage state app.aft --at parser.c:42#7
  afterimage state app.aft --at end --depth 3
  afterimage state app.aft --at 50% --frame 2
  afterimage state app.aft --at parse#last --globals --format json")]
pub(crate) struct Arguments {
    /// The moment
    #[arg(
        long,
        value_name = "MOMENT",
        allow_hyphen_values = true,
        default_value = "end"
    )]
    at: String,
    /// How many functions of the call stack, from the innermost one
    #[arg(long, value_name = "N", default_value_t = StateQuery::DEPTH, value_parser = depth)]
    depth: usize,
    /// Only this function of the call stack, counted from the innermost one, which is 0
    #[arg(long, value_name = "N", conflicts_with = "depth")]
    frame: Option<usize>,
    /// Also show the globals
    #[arg(long)]
    globals: bool,
    /// The format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    code: CodeArguments,
    #[command(flatten)]
    sources: SourceArguments,
    #[command(flatten)]
    report: ReportArguments,
}

formats!(Text, Json);

fn depth(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("0 shows nothing; give a number from 1 on".to_owned()),
        Ok(depth) => Ok(depth),
        Err(_) => Err("give a number from 1 on".to_owned()),
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    files::ended(&arguments.report.file)?;
    let (code, sources) = (arguments.code.filter()?, arguments.sources.paths()?);
    let session = lens::session(&arguments.report.file)?;
    let session = session.looking_at(code).reading(sources);
    check::places(&session, Needs::Values, [arguments.at.as_str()])?;
    let query = StateQuery {
        at: arguments.at,
        depth: arguments.depth,
        frame: arguments.frame,
        globals: arguments.globals,
    };
    let view = match session.early_state(&query)? {
        Some(view) => view,
        None => lens::answered(session, |session| session.state(&query))?,
    };
    let (output, style) = (arguments.report.output.as_deref(), arguments.report.style());
    write(output, false, |out| {
        Ok(render(out, &view, arguments.format, style)?)
    })?;
    Ok(Exit::Success)
}
