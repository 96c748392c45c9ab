//! Implements `afterimage explore`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use afterimage_explorer::{Explorer, Options};
use anyhow::{Result, bail};

use crate::arguments::{CodeArguments, SourceArguments};
use crate::exit::Exit;
use crate::output::{print, say};
use crate::pages;

/// Explore a run in the browser
///
/// It serves a page on the loopback address until Ctrl-C, and opens it. The page shows how the run
/// ended, what it printed, its source with exact counts, the state at any moment, and where each
/// value came from. Its address has a random token, so nobody else can use it.
///
/// Source files are shown if they are in the recording (record --sources), below the current folder
/// or the recording's, or where --source-path points. Notes are kept beside the recording, in
/// FILE.notes.md. Nothing is loaded from the network. docs/EXPLORE.md lists the keys, and what
/// programs can ask the page's server.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage explore app.aft
  afterimage explore app.aft --at 'parser.c:42#7'
  afterimage explore app.aft --port 8000 --no-open
  afterimage explore app.aft --read-only")]
pub(crate) struct Arguments {
    /// Begin at this moment: parser.c:42#7, main#last, t=123456, 50%, end
    #[arg(long, value_name = "POSITION", allow_hyphen_values = true)]
    at: Option<String>,
    /// Listen on this port [default: the next free port from 7380 on]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Print the address, but open no browser
    #[arg(long)]
    no_open: bool,
    /// Show notes, but save none
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    code: CodeArguments,
    #[command(flatten)]
    sources: SourceArguments,
    /// The recording
    #[arg(value_name = "FILE.aft")]
    file: PathBuf,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let options = Options {
        port: arguments.port,
        read_only: arguments.read_only,
        code: arguments.code.filter()?,
        sources: arguments.sources.paths()?,
    };
    let explorer = Explorer::open(&arguments.file, options)?;
    let url = match &arguments.at {
        Some(at) => explorer.url_at(at)?,
        None => explorer.url(),
    };
    print(|out| Ok(writeln!(out, "{url}")?))?;
    if !arguments.no_open && !opened(&url) {
        say("no browser could be started; open the address above");
    }
    // Do this only after the browser has started, because child processes inherit the setting.
    pages::small();
    explorer.serve();
    bail!("the page's server ended")
}

#[expect(
    clippy::disallowed_methods,
    reason = "the user's own browser, in the user's own environment"
)]
/// Opens an address in the system's default browser, and discards the browser's messages. Returns
/// whether this is possible.
fn opened(url: &str) -> bool {
    let openers = ["xdg-open", "open"];
    openers.iter().any(|opener| {
        let quiet = Command::new(opener)
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        quiet.is_ok()
    })
}
