//! Implements `afterimage report`.

use std::path::PathBuf;

use afterimage_explorer::{Report, written};
use afterimage_present::Content;
use anyhow::Result;

use crate::arguments::{CodeArguments, SourceArguments};
use crate::exit::Exit;
use crate::lens;
use crate::output::write;

/// Write a self-contained page about a run, to send to others
///
/// The page opens from disk, has no script, and loads nothing. It shows how the run ended, what it
/// printed, the hottest functions, a flame graph, hot paths, your own source with exact counts, the
/// notes beside the recording, and what you add with --why and --slice.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage report app.aft -o report.html
  afterimage report app.aft -o report.html --why 'fee at bank.c:49#11'
  afterimage report app.aft -o report.html --why trap --slice culprit")]
pub(crate) struct Arguments {
    /// Write the page to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also explain a value: PLACE#K, 'NAME at PLACE#K', stdout:BYTE, stderr:BYTE or trap; may be
    /// repeated
    #[arg(long, value_name = "VALUE")]
    why: Vec<String>,
    /// Also show a slice that was kept with `slice --save`; may be repeated
    #[arg(long, value_name = "NAME")]
    slice: Vec<String>,
    #[command(flatten)]
    code: CodeArguments,
    #[command(flatten)]
    sources: SourceArguments,
    /// The recording
    #[arg(value_name = "FILE.aft")]
    file: PathBuf,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let sources = arguments.sources.paths()?;
    let open = || Ok(lens::finished(&arguments.file)?.reading(sources));
    let session = arguments.code.session(open)?;
    let report = Report {
        why: arguments.why,
        slices: arguments.slice,
    };
    // Collect the page first, so that nothing is written if a question has no answer.
    let mut page = Vec::new();
    written(&mut page, &session, &report)?;
    write(arguments.output.as_deref(), Content::Text, |out| {
        Ok(out.write_all(&page)?)
    })?;
    lens::say_not_at_hand(&session);
    Ok(Exit::Success)
}
