//! `afterimage deps`

use afterimage::DepsQuery;
use afterimage::check::{self, Needs};
use afterimage_present::{DepsAlong, DepsDirection, render};
use anyhow::Result;

use crate::arguments::{ReportArguments, formats};
use crate::exit::Exit;
use crate::lens;
use crate::output::write;

/// Show what one execution of a statement depends on
///
/// It shows who made the operands, who wrote what was read, and what let the statement run. An operand's maker is found through all copies: locals, the operand stack, arguments and results. What a load or a memory.copy reads may come
/// from several writers, byte by byte. Where branches chose which of several values an operand is, as those of an `if` with a result do, the ones that did are told as what moved it.
///
/// With --forward it is the other way round: who used what the execution made, in the order of time, and what it let run, if it decides or calls. These are
/// exactly those that name it when they are asked backward, but for what moved their operands. Of a call it is who used its results, whoever made them, and what the host wrote in it.
///
/// What the host reads of memory is among both: of a call of fd_write, who wrote the bytes that it put out; of a store, the calls of the host that read its bytes
/// before others wrote over them.
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
    /// The statement and which of its executions: func+0x2a#K, @0x1f3#last [default: the first]; or file.c:42#K, the statements that the K-th arrival at the line executes; of func#K, those of the K-th call, each where it is executed first in it
    #[arg(long, value_name = "PLACE#K")]
    at: String,
    /// What it depends on; this is what is shown without --forward
    #[arg(long, conflicts_with = "forward")]
    backward: bool,
    /// What depends on it: who used what it made, what it let run
    #[arg(long)]
    forward: bool,
    /// Dependences on data only
    #[arg(long, conflicts_with = "control")]
    data: bool,
    /// Dependences on control only
    #[arg(long)]
    control: bool,
    /// Go on so many steps along what is shown, data, control or both, at most 1000: 1 shows direct dependences only. What was shown before is not gone into again
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(DepsQuery::DEEPEST))
    )]
    depth: u32,
    /// At most so many uses of one execution, and so many parts of what a copy reads; how many there are besides is said
    #[arg(long, value_name = "N", default_value_t = DepsQuery::LIMIT)]
    limit: u64,
    /// The format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    report: ReportArguments,
}

formats!(Text, Json);

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let session = lens::finished(&arguments.report.file)?;
    check::places(&session, Needs::Values, [arguments.at.as_str()])?;
    let query = arguments.query();
    let report = match query.direction {
        DepsDirection::Backward => lens::answered(session, |session| session.deps(&query))?,
        DepsDirection::Forward => lens::with_values(session)?.deps(&query)?,
    };
    let (output, style) = (arguments.report.output.as_deref(), arguments.report.style());
    write(output, false, |out| {
        Ok(render(out, &report, arguments.format, style)?)
    })?;
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
