//! Implements `afterimage calls`.

use afterimage::calls::{show_call, show_calls};
use afterimage::named::{NamedProgram, with_names};
use afterimage::{ActivationQuery, Session};
use afterimage_present::Render;
use afterimage_profile::location::Occurrence;
use anyhow::Result;

use crate::arguments::{ViewArguments, formats};
use crate::exit::Exit;
use crate::lens;

/// Show who called whom, and single calls
///
/// Blocks are counted as in a profile. "Self" blocks are the blocks that a function executes
/// itself. "Inclusive" blocks are all blocks executed while the function is active; each block
/// counts once, even if the function recurses.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage calls app.aft
  afterimage calls app.aft --format csv
  afterimage calls app.aft --function parse
  afterimage calls app.aft --function parse --call 1000
  afterimage calls app.aft --function parse --call last
  afterimage calls app.aft --function parse --call 3 --lines")]
pub(crate) struct Arguments {
    /// Show the callers and callees of this function, by index, name or demangled name
    #[arg(long, value_name = "F")]
    function: Option<String>,
    /// Show its K-th call, from 1, or the last: who made it, from where, when, and how long it took
    #[arg(long, value_name = "K|last", requires = "function")]
    call: Option<Occurrence>,
    /// With --call, show the whole call: its arguments and result, its path by lines, and what each
    /// line changed, wrote and called
    #[arg(long, requires = "call")]
    lines: bool,
    /// Show only the first N rows of each text table
    #[arg(long = "limit", alias = "top", value_name = "N", default_value_t = 25)]
    top: usize,
    /// Output format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    view: ViewArguments,
}

formats!(Text, Json, Csv);

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let session = arguments.view.session(lens::traced)?;
    if arguments.lines {
        arguments.whole(&session)?;
        lens::say_not_at_hand(&session);
        return Ok(Exit::Success);
    }
    let found = with_names(&session, |program| arguments.answer(program));
    arguments.view.report.named(found)?;
    lens::say_not_at_hand(&session);
    Ok(Exit::Success)
}

impl Arguments {
    fn answer(&self, program: NamedProgram<'_>) -> Result<()> {
        let function = self.function.as_deref();
        let function = function.map(|text| program.function(text)).transpose()?;
        match (function, self.call) {
            (Some(function), Some(which)) => {
                let style = self.view.report.to.style();
                show_call(program, function, which, style, |call| self.shown(call))
            }
            (only, _) => show_calls(program, only, self.top, |calls| self.shown(calls)),
        }
    }

    /// Shows one call line by line.
    fn whole(&self, session: &Session) -> Result<()> {
        let number = match self.call {
            Some(Occurrence::Kth(number)) => number.to_string(),
            Some(Occurrence::Last) | None => "last".to_owned(),
        };
        let function = self.function.as_deref().unwrap_or_default();
        let at = format!("{function}#{number}");
        self.shown(&session.activation(&ActivationQuery::new(at))?)
    }

    fn shown(&self, report: &impl Render) -> Result<()> {
        self.view.report.to.show(report, self.format)
    }
}
