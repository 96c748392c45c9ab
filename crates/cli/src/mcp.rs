//! `afterimage mcp`

use std::io::{stdin, stdout};
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::exit::Exit;

/// Answer agents: a server of the Model Context Protocol
///
/// It speaks over standard input and output, and ends when its input does. Agents' programs start it; docs/AGENTS.md says how they are configured.
///
/// It opens recordings and sources under the roots only, runs no program that is not in a recording that was named, and gives what it runs no access to files.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Configuration of a client:
  { \"command\": \"afterimage\", \"args\": [\"mcp\", \"--root\", \"runs\"] }")]
pub(crate) struct Arguments {
    /// A folder whose recordings and sources may be read; may be repeated [default: the current folder]
    #[arg(long, value_name = "FOLDER")]
    root: Vec<PathBuf>,
}

pub(crate) fn run(mut arguments: Arguments) -> Result<Exit> {
    if arguments.root.is_empty() {
        arguments.root.push(PathBuf::from("."));
    }
    let roots = afterimage_mcp::Roots::new(&arguments.root)?;
    let served = afterimage_mcp::serve(&roots, &mut stdin().lock(), stdout());
    served.context("cannot read standard input")?;
    Ok(Exit::Success)
}
