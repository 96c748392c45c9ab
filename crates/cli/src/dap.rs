//! Implements `afterimage dap`.

use std::io::{self, BufReader};

use afterimage_dap::{ByCommand, serve};
use anyhow::Result;

use crate::exit::Exit;

/// Debug a recording in an editor, forward and backward
///
/// Editors start this server of the Debug Adapter Protocol. It reads requests from standard input
/// and writes answers to standard output. The editor names a recording, or a program to record
/// first. The program gets only the folders, variables and input that the editor's configuration
/// names.
///
/// docs/DEBUGGERS.md shows how to set up VS Code, Zed, Neovim, Sublime Text and Emacs.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Configurations (launch.json):
  { \"type\": \"afterimage\", \"request\": \"attach\", \"recording\": \"app.aft\" }
  { \"type\": \"afterimage\", \"request\": \"launch\", \"program\": \"app.wasm\",
    \"args\": [\"/data/input.txt\"], \"dirs\": [\"data::/data\"] }")]
pub(crate) struct Arguments {}

pub(crate) fn run(_: Arguments) -> Result<Exit> {
    serve(BufReader::new(io::stdin()), io::stdout(), &ByCommand)?;
    Ok(Exit::Success)
}
