//! Implements `afterimage match`.

use std::path::PathBuf;

use afterimage::Session;
use afterimage::diff::versions::{MatchQuery, matched};
use anyhow::Result;

use crate::arguments::{OutputArguments, formats, rows};
use crate::exit::Exit;
use crate::lens::traced_whole;
use crate::output::say;

/// Match the statements of two versions of a program
///
/// It shows which statements correspond, and where corresponding statements first behave
/// differently. The first run is followed five times, the second four times. Statements are first
/// compared by their values and the addresses that they accessed. Then they are compared by the
/// producers of their operands, the users of their results, their neighbours, and what else ran at
/// the same time. This step is repeated until no match changes. The second version may be the first
/// version compiled differently, optimised, or changed; it should have run on the same input. Line
/// tables are not used, and function names only as a hint.
///
/// Matching is by evidence, not by proof: each match shows its evidence and how likely it is. If
/// several statements of the first version are nearly as likely, --all and the other formats list
/// them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage match unoptimised.aft optimised.aft
  afterimage match unoptimised.aft optimised.aft --all --no-names
  afterimage match old.aft new.aft --format json
  afterimage match unoptimised.aft optimised.aft --check")]
pub(crate) struct Arguments {
    /// Do not use function names
    #[arg(long)]
    no_names: bool,
    /// Show every statement of the second version with its counterparts
    #[arg(long)]
    all: bool,
    /// Show at most N rows of each list [default: 10 for text, all otherwise]; --all has no limit
    #[arg(long = "limit", alias = "top", value_name = "N", value_parser = rows)]
    top: Option<usize>,
    /// Compare the matches with the line tables of both versions
    #[arg(long)]
    check: bool,
    /// Output format; csv has one row per statement
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    to: OutputArguments,
    /// The first version, such as the unoptimised version
    #[arg(value_name = "A.aft")]
    a: PathBuf,
    /// The second version, whose statements are looked up in the first
    #[arg(value_name = "B.aft")]
    b: PathBuf,
}

formats!(Text, Json, Csv);

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let (a, b) = (&arguments.a, &arguments.b);
    let sessions = [traced_whole(a)?, traced_whole(b)?];
    sessions.iter().try_for_each(Session::ensure_inputs)?;
    let query = MatchQuery {
        names: !arguments.no_names,
        all: arguments.all,
        check: arguments.check,
        top: arguments.top,
    };
    matched(
        sessions.each_ref(),
        query,
        |[of_a, of_b]| {
            say(format_args!(
                "the runs ended differently: {} {}; {} {}",
                a.display(),
                of_a.words(),
                b.display(),
                of_b.words(),
            ));
        },
        |report| arguments.to.show(report, arguments.format),
    )?;
    Ok(Exit::Success)
}
