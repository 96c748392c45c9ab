//! `afterimage addresses`

use afterimage::AddressesQuery;
use afterimage::addresses::{write_accessed, write_address_stats};
use afterimage::rows::Form;
use anyhow::{Context, Result, bail};

use crate::arguments::{ReportArguments, entries};
use crate::exit::Exit;
use crate::lens::{session, with_whole_path};

/// Show which addresses loads and stores accessed
///
/// It lists each execution, or sums them up. Loads and stores are those of single values; what bulk operations and the host access is in `afterimage trace --level memory`. The run is
/// followed from its beginning; for --instances and #K only where these are executed, from the last checkpoint or snapshot before.
/// Different addresses and strides are told apart up to 4,096 of them. An access that trapped is listed, and marked; sums and --each do not have it.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["at", "all"]))]
#[command(after_help = "\
Examples:
  afterimage addresses app.aft --all
  afterimage addresses app.aft --all --each --format bin -o addresses.bin
  afterimage addresses app.aft --at parser.c:42
  afterimage addresses app.aft --at @0x1f3 --instances 1000..1010
  afterimage addresses app.aft --at parse+0x2a --stats
In text, 0x1040 +4 x 1000 are 1000 executions after each other, of which each accessed what is 4 bytes after the one before.")]
pub(crate) struct Arguments {
    /// The place: file.c:42, func+0x2a, @0x1f3, or a function for all of its loads and stores; #K or #last at its end is one execution, of a line one arrival at it, of a function one call
    #[arg(long, value_name = "PLACE")]
    at: Option<String>,
    /// Which executions of each: A..B, K, last, or t=T for those in block T and later
    #[arg(long, value_name = "WHICH", requires = "at", conflicts_with = "stats")]
    instances: Option<String>,
    /// Sum up: how many accesses and addresses, the smallest and largest, the most frequent stride
    #[arg(long)]
    stats: bool,
    /// Sum up those of the whole program
    #[arg(long, conflicts_with = "at")]
    all: bool,
    /// All addresses of the whole program instead, one instruction's after the other, up to 256 at a time
    #[arg(long, requires = "all", conflicts_with = "stats")]
    each: bool,
    /// At most N lines [default: 100 for text on standard output]
    #[arg(long, value_name = "N|all", value_parser = entries)]
    limit: Option<u64>,
    /// The format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    report: ReportArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    /// One object a line
    Json,
    /// Addresses of --all --each for other programs, see docs/TRACE.md
    Bin,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let file = &arguments.report.file;
    if arguments.format == Format::Bin && !arguments.each {
        bail!("--format bin is for --all --each");
    }
    let form = match arguments.format {
        Format::Text => Form::Text,
        Format::Json => Form::Json,
        Format::Bin => Form::Bin,
    };
    let rows = &arguments.report.rows(form, arguments.limit);
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
