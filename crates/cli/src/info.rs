//! Implements `afterimage info`.

use std::path::PathBuf;

use afterimage::OutputQuery;
use afterimage::files;
use afterimage::info::info;

use anyhow::{Context, Result, bail};

use crate::arguments::{CodeArguments, OutputArguments, formats};
use crate::exit::Exit;
use crate::lens::session;
use crate::progress::Terminal;

/// Show what a recording contains, and how the run ended
///
/// It also lists what the file reveals to anyone who gets it: arguments, variables, data read and
/// written, paths in the debug information, and embedded sources.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Also show the sizes of all data: by section of the file, and by kind of stream before and
    /// after coding, compared with the papers' original form
    #[arg(long)]
    sizes: bool,
    /// List the embedded source files
    #[arg(long)]
    sources: bool,
    /// Show only what the program printed, call by call
    #[arg(long, conflicts_with_all = ["sizes", "sources"])]
    output: bool,
    /// With --output: show at most the first N bytes of each stream
    #[arg(
        long,
        value_name = "N",
        default_value_t = OutputQuery::LIMIT,
        requires = "output",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    limit: u64,
    #[command(flatten)]
    code: CodeArguments,
    /// Output format
    #[arg(long, default_value = "text")]
    format: Format,
    /// A recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

formats!(Text, Json);

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    if arguments.output {
        let query = OutputQuery {
            limit: arguments.limit,
        };
        let report = session(&arguments.file)?.output(&query)?;
        OutputArguments::default().show(&report, arguments.format)?;
        return Ok(Exit::Success);
    }
    let file = files::recording(&arguments.file)?;
    let loaded = files::recorded_program(&arguments.file, &file)?;
    let name = || arguments.file.display().to_string();
    let wanted = (arguments.sizes, arguments.sources);
    let code = arguments.code.filter()?;
    let report = info(&arguments.file, &file, &loaded, wanted, &code, &Terminal);
    let report = report.with_context(name)?;
    OutputArguments::default().show(&report, arguments.format)?;
    // All readable parts have been reported by now, so fail only here.
    if !report.problems.is_empty() {
        bail!("{}: {}", name(), report.problems.join("; "));
    }
    Ok(Exit::Success)
}
