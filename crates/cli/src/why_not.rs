//! Implements `afterimage why-not`.

use afterimage::WhyNotQuery;
use afterimage::check::{self, Needs};
use afterimage_present::WhyNotView;
use anyhow::Result;

use crate::arguments::{ViewArguments, entries, formats};
use crate::exit::Exit;
use crate::lens;
use crate::output::pasted;

/// Explain why a line did not run
///
/// It shows the branch that went another way, what decided it, and where the deciding value came
/// from. A line depends on the branches that decide whether it is reached or, if no branch of its
/// function does, on the calls to that function. If that branch or call was not reached either, the
/// command asks the same question about it, until it finds a branch or call that ran. The report
/// shows the last execution of that branch or call or, with --after, the first execution after that
/// moment. It shows which way control went, what decided this, and where the deciding value came
/// from, as in `afterimage why`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage why-not app.aft --at parser.c:42
  afterimage why-not app.aft --at handle_error
  afterimage why-not app.aft --at parser.c:42 --after 1000000
  afterimage why-not app.aft --at parser.c:42 --after 'parse#3' --format json")]
pub(crate) struct Arguments {
    /// The place: file.c:42, func+0x2a, @0x1f3, or a function
    #[arg(long, value_name = "PLACE")]
    at: String,
    /// Explain why it did not run after this moment: t=N, 50%, func#K, file.c:42#K, or -N, the N-th
    /// block from the end; a branch at the end of that block is included
    #[arg(long, value_name = "POSITION", allow_hyphen_values = true)]
    after: Option<String>,
    /// Go back at most N moves and computations from what decided the branch
    #[arg(long, value_name = "N", default_value_t = WhyNotQuery::STEPS, value_parser = entries)]
    steps: u64,
    /// Output format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    view: ViewArguments,
}

formats!(Text, Json);

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let session = arguments.view.session(lens::finished)?;
    check::places(&session, Needs::Values, [arguments.at.as_str()])?;
    let session = lens::with_values(session)?;
    let query = WhyNotQuery {
        at: arguments.at,
        after: arguments.after,
        steps: arguments.steps,
    };
    let view = WhyNotView {
        report: &session.why_not(&query)?,
        file: pasted(&arguments.view.report.file),
    };
    arguments.view.report.to.show(&view, arguments.format)?;
    lens::say_not_at_hand(&session);
    Ok(Exit::Success)
}
