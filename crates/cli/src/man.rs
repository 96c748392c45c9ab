//! Implements `afterimage man`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::exit::Exit;

/// Write a manual page for each command into a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  mkdir -p man1 && afterimage man man1
  man -l man1/afterimage-why.1")]
pub(crate) struct Arguments {
    /// The folder, which must exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    clap_mangen::generate_to(crate::Cli::command(), &arguments.folder).with_context(|| {
        format!(
            "{}: cannot write manual pages there; name a folder that you can write to",
            arguments.folder.display()
        )
    })?;
    Ok(Exit::Success)
}
