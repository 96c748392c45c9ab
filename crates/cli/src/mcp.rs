//! Implements `afterimage mcp`.

use std::io::{stdin, stdout};
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::exit::Exit;
use crate::pages;

/// Answer agents over the Model Context Protocol
///
/// The server speaks over standard input and output, and ends when its input does. Agent programs
/// start it; docs/AGENTS.md shows how to configure them.
///
/// It opens only recordings and sources below the roots, runs only programs inside recordings that
/// were named, and gives these programs no access to files.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Configuration of a client:
  { \"command\": \"afterimage\", \"args\": [\"mcp\", \"--root\", \"runs\"] }")]
pub(crate) struct Arguments {
    /// A folder whose recordings and sources may be read; may be repeated [default: the current
    /// folder]
    #[arg(long, value_name = "FOLDER")]
    root: Vec<PathBuf>,
}

pub(crate) fn run(mut arguments: Arguments) -> Result<Exit> {
    if arguments.root.is_empty() {
        arguments.root.push(PathBuf::from("."));
    }
    let roots = afterimage_mcp::Roots::new(&arguments.root)?;
    pages::small();
    let served = afterimage_mcp::serve(&roots, &mut stdin().lock(), stdout());
    served.context("cannot read standard input")?;
    Ok(Exit::Success)
}
