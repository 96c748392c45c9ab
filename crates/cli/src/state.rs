//! Implements `afterimage state`.

use afterimage::StateQuery;
use afterimage::check::{self, Needs};
use afterimage::files;
use anyhow::Result;

use crate::arguments::{ViewArguments, formats};
use crate::exit::Exit;
use crate::lens;

/// Show the call stack and its variables at a moment
///
/// It shows the state right before a place executes: before the first instruction of a line, after
/// the prologue of a function (as other debuggers do), or before the block of a time. Functions
/// that wait for a call show their state before that call. Variables are those of the source if the
/// program has debug information (-g), otherwise WebAssembly locals. To find the contents of
/// memory, the run is followed from the last checkpoint before the moment.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Moments:
  123456, t=123456    the 123456th executed block
  start, -1000        the first block, the 1000th from the end
  end                 where the run ended: before what trapped, before the host
                      call that did not return, or before what came next; after
                      a return, before the last block
  50%                 halfway through the run
  main#3, main#last   the third call to main, the last (without #: the first)
  main+0              its very first operator, where parameters may not be in
                      their places yet
  file.c:42#3         the third arrival at line 42
  @0x1f3#3, f+0x2a    the third execution of this operator, or the first

Examples:
  afterimage state app.aft --at parser.c:42#7
  afterimage state app.aft --at end --depth 3
  afterimage state app.aft --at 50% --frame 2
  afterimage state app.aft --at parse#last --globals --format json")]
pub(crate) struct Arguments {
    /// The moment to show
    #[arg(
        long,
        value_name = "MOMENT",
        allow_hyphen_values = true,
        default_value = "end"
    )]
    at: String,
    /// Show this many functions of the call stack, innermost first
    #[arg(long, value_name = "N", default_value_t = StateQuery::DEPTH, value_parser = depth)]
    depth: usize,
    /// Show only this function of the call stack; 0 is the innermost
    #[arg(long, value_name = "N", conflicts_with = "depth")]
    frame: Option<usize>,
    /// Also show globals
    #[arg(long)]
    globals: bool,
    /// Output format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    view: ViewArguments,
}

formats!(Text, Json);

fn depth(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("--depth 0 shows nothing; give a number from 1 on".to_owned()),
        Ok(depth) => Ok(depth),
        Err(_) => Err("give a number from 1 on".to_owned()),
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    files::ended(&arguments.view.report.file)?;
    let session = arguments.view.session(lens::session)?;
    check::places(&session, Needs::Values, [arguments.at.as_str()])?;
    let query = StateQuery {
        at: arguments.at,
        depth: arguments.depth,
        frame: arguments.frame,
        globals: arguments.globals,
    };
    let view = match session.early_state(&query)? {
        Some(view) => view,
        None => lens::answered(&session, |session| session.state(&query))?,
    };
    arguments.view.report.to.show(&view, arguments.format)?;
    Ok(Exit::Success)
}
