//! `afterimage info`

use std::path::PathBuf;

use afterimage::files;
use afterimage::info::info;
use afterimage_present::render;
use anyhow::{Context, Result, bail};

use crate::arguments::formats;
use crate::exit::Exit;
use crate::output::write;
use crate::progress::Terminal;

/// Show what a recording holds, and how the run ended
///
/// It also says what whoever gets the file learns: arguments, variables, what was read and put out, paths in the debug information, embedded sources.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Also show which bytes tell what: by kind of stream, before and after coding, against the papers' original form; and by section of the file
    #[arg(long)]
    sizes: bool,
    /// List the source files that are embedded
    #[arg(long)]
    sources: bool,
    /// The format of the report
    #[arg(long, default_value = "text")]
    format: Format,
    /// A recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

formats!(Text, Json);

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let file = files::recording(&arguments.file)?;
    let loaded = files::recorded_program(&arguments.file, &file)?;
    let name = || arguments.file.display().to_string();
    let wanted = (arguments.sizes, arguments.sources);
    let report = info(&arguments.file, &file, &loaded, wanted, &Terminal);
    let report = report.with_context(name)?;
    write(None, false, |out| {
        Ok(render(out, &report, arguments.format, Default::default())?)
    })?;
    // All that can be said was said.
    if !report.problems.is_empty() {
        bail!("{}: {}", name(), report.problems.join("; "));
    }
    Ok(Exit::Success)
}
