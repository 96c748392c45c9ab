//! Implements `afterimage addresses`.

use afterimage::AddressesQuery;
use afterimage::addresses::{write_accessed, write_address_stats};
use afterimage::rows::Form;
use anyhow::{Context, Result, bail};

use crate::arguments::{ReportArguments, choices, entries};
use crate::exit::Exit;
use crate::lens::{session, with_whole_path};

/// Show which addresses loads and stores accessed
///
/// It lists the executions, or summarises them. It covers loads and stores of single values;
/// `afterimage trace --level memory` shows bulk operations and accesses by the host. The run is
/// followed from its beginning. With --instances or #K, it is followed only near the selected
/// executions, from the last checkpoint or snapshot before them. Summaries distinguish up to 4,096
/// addresses and strides. An access that trapped is listed and marked, but summaries and --each
/// leave it out.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["at", "all"]))]
#[command(after_help = "\
Examples:
  afterimage addresses app.aft --all
  afterimage addresses app.aft --all --each --format bin -o addresses.bin
  afterimage addresses app.aft --at parser.c:42
  afterimage addresses app.aft --at @0x1f3 --instances 1000..1010
  afterimage addresses app.aft --at parse+0x2a --stats

In text, 0x1040 +4 x 1000 means 1000 consecutive executions. The first accesses
address 0x1040, and each later execution accesses the address 4 bytes further
on.")]
pub(crate) struct Arguments {
    /// The place: file.c:42, func+0x2a, @0x1f3, or a function for all its loads and stores; append
    /// #K or #last for one execution of an instruction, one arrival at a line, or one call to a
    /// function
    #[arg(long, value_name = "PLACE")]
    at: Option<String>,
    /// Show only these executions of each load or store: A..B, K, last, or t=T for all executions
    /// from block T on
    #[arg(long, value_name = "WHICH", requires = "at", conflicts_with = "stats")]
    instances: Option<String>,
    /// Summarise: number of accesses and addresses, smallest, largest, and most frequent stride
    #[arg(long)]
    stats: bool,
    /// Summarise the loads and stores of the whole program
    #[arg(long, conflicts_with = "at")]
    all: bool,
    /// List all addresses of the whole program, in groups of up to 256 of one instruction
    #[arg(long, requires = "all", conflicts_with = "stats")]
    each: bool,
    /// Show at most N lines [default: 100 for text on standard output]
    #[arg(long, value_name = "N|all", value_parser = entries)]
    limit: Option<u64>,
    /// Output format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    report: ReportArguments,
}

choices! { Format => Form {
    Text,
    /// One object per line
    Json,
    /// Addresses from --all --each for other programs; see docs/TRACE.md
    Bin,
}}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let file = &arguments.report.file;
    if arguments.format == Format::Bin && !arguments.each {
        bail!("--format bin works only with --all --each");
    }
    let rows = &arguments.report.to.rows(arguments.format, arguments.limit);
    let query = arguments.at.as_ref().map(|at| AddressesQuery {
        at: at.clone(),
        instances: arguments.instances.clone(),
        limit: rows.limit,
    });
    let session = session(file)?;
    let about = || file.display().to_string();
    if let Some(query) = query.as_ref().filter(|_| !arguments.stats)
        && query.write_early(&session, rows).with_context(about)?
    {
        return Ok(Exit::Success);
    }
    let session = with_whole_path(session)?;
    let written = match &query {
        Some(query) if !arguments.stats => query.write(&session, rows),
        None if arguments.each => write_accessed(&session, rows),
        query => write_address_stats(&session, query.as_ref().map(|query| &*query.at), rows),
    };
    written.with_context(about)?;
    Ok(Exit::Success)
}
