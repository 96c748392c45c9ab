//! Implements `afterimage deps`.

use afterimage::DepsQuery;
use afterimage::check::{self, Needs};
use afterimage_present::{DepsAlong, DepsDirection};
use anyhow::Result;

use crate::arguments::{CodeArguments, ReportArguments, formats};
use crate::exit::Exit;
use crate::lens;

/// Show what one execution of a statement depends on
///
/// It shows what computed the operands, what wrote the bytes that were read, and which decisions or
/// calls led to the statement. Operands are traced through all copies: locals, the operand stack,
/// arguments and results. The bytes that a load or memory.copy reads may come from several writers.
/// A branch may select an operand from several values, as an `if` with a result does. The report
/// lists such a branch as having moved the value.
///
/// With --forward it shows the reverse, in order of time: what used the result and, for a branch or
/// a call, what ran because of it. The list contains exactly the executions whose own dependences
/// include this one, unless it is only a branch that moved their operand. For a call, it contains
/// the uses of its results, even if a callee computed them. It also contains the uses of bytes that
/// the host wrote during the call.
///
/// Both directions include memory that the host reads: for a call to fd_write, the writers of the
/// bytes that it printed; for a store, the host calls that read its bytes before they were
/// overwritten.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage deps app.aft --at parser.c:42#7
  afterimage deps app.aft --at parser.c:42#7 --depth 5 --data
  afterimage deps app.aft --at parser.c:42#7 --depth 5 --control
  afterimage deps app.aft --at parse+0x2a#last
  afterimage deps app.aft --at @0x1f3#1000 --data --format json
  afterimage deps app.aft --at parser.c:42#7 --forward
  afterimage deps app.aft --at malloc+0x2a#last --forward --data --limit 100
  afterimage deps app.aft --at parse+0x31#5 --forward --control")]
pub(crate) struct Arguments {
    /// The statement and its execution: func+0x2a#K, @0x1f3#last [default: the first]; or
    /// file.c:42#K, the statements that the K-th arrival at the line executes; or func#K, the first
    /// execution of each statement in the K-th call
    #[arg(long, value_name = "PLACE#K")]
    at: String,
    /// Show what it depends on; this is the default
    #[arg(long, conflicts_with = "forward")]
    backward: bool,
    /// Show what depends on the statement: uses of its result, and code that ran because of it
    #[arg(long)]
    forward: bool,
    /// Show data dependences only
    #[arg(long, conflicts_with = "control")]
    data: bool,
    /// Show control dependences only
    #[arg(long)]
    control: bool,
    /// Follow dependences of the selected kind for N steps, at most 1000; 1 shows direct
    /// dependences only. Executions that were already shown are not followed again
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(DepsQuery::DEEPEST))
    )]
    depth: u32,
    /// Show at most N uses of one execution, and N parts of the bytes that a copy reads; count the
    /// rest
    #[arg(long, value_name = "N", default_value_t = DepsQuery::LIMIT)]
    limit: u64,
    /// Output format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    code: CodeArguments,
    #[command(flatten)]
    report: ReportArguments,
}

formats!(Text, Json);

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let session = arguments
        .code
        .session(|| lens::finished(&arguments.report.file))?;
    check::places(&session, Needs::Values, [arguments.at.as_str()])?;
    let query = arguments.query();
    let report = match query.direction {
        DepsDirection::Backward => lens::answered(&session, |session| session.deps(&query))?,
        DepsDirection::Forward => lens::with_values(session)?.deps(&query)?,
    };
    arguments.report.to.show(&report, arguments.format)?;
    Ok(Exit::Success)
}

impl Arguments {
    fn query(&self) -> DepsQuery {
        DepsQuery {
            at: self.at.clone(),
            direction: if self.forward {
                DepsDirection::Forward
            } else {
                DepsDirection::Backward
            },
            along: match (self.data, self.control) {
                (true, _) => DepsAlong::Data,
                (_, true) => DepsAlong::Control,
                _ => DepsAlong::Both,
            },
            depth: self.depth,
            limit: self.limit,
        }
    }
}
