//! Implements `afterimage verify`.

use std::path::PathBuf;

use afterimage::files;
use afterimage::verify::{Execute, repaired, verify};
use anyhow::Result;

use crate::arguments::{OutputArguments, formats};
use crate::exit::Exit;
use crate::output::say;
use crate::progress::Terminal;

/// Check every byte of a recording, and that its run can be repeated
///
/// Exits with 1 if a check fails.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only read the file; neither re-execute the recording nor follow its values
    #[arg(long)]
    no_execute: bool,
    /// Write a copy with all intact data, list the damaged data, and check the copy
    #[arg(long, requires = "output")]
    repair: bool,
    /// Write the repaired copy to this file
    #[arg(short, long, value_name = "FILE", requires = "repair")]
    output: Option<PathBuf>,
    /// Output format
    #[arg(long, default_value = "text")]
    format: Format,
    /// A recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

formats!(Text, Json);

pub(crate) fn run(mut arguments: Arguments) -> Result<Exit> {
    if let Some(copy) = arguments.output.take() {
        repaired(&arguments.file, &copy)?.into_iter().for_each(say);
        arguments.file = copy;
    }
    let at = &arguments.file;
    let file = files::recording(at)?;
    let execute = if arguments.no_execute {
        Execute::Not
    } else {
        Execute::Again
    };
    let module = || Ok(files::recorded_program(at, &file)?.module);
    let report = verify(at, &file, module, execute, &Terminal)?;
    OutputArguments::default().show(&report, arguments.format)?;
    Ok(if report.sound {
        Exit::Success
    } else {
        Exit::Unsound
    })
}
