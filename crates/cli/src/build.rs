//! Implements `afterimage build`.

use std::path::{Path, PathBuf};

use afterimage::files;
use afterimage::values::{add_first_values, missing_values};
use afterimage::{Empty, Session};
use afterimage_replay::{Recording, RecordingError};
use anyhow::{Context, Result, bail};

use crate::exit::Exit;
use crate::filters::FilterArguments;
use crate::lens::{self, session, stoppable};
use crate::output::say;

/// Prepare a recording so that later questions are fast
///
/// It re-executes the run and adds counts, the path or all values. Other commands build the lens
/// they need by themselves; `build` does it beforehand.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage build --lens paths app.aft
  afterimage build --lens full app.aft
  afterimage build --lens full --window 1_000_000..2_000_000 app.aft
  afterimage build --lens full --start 'parse#3' --stop 'parse#4' app.aft
  afterimage build --lens full --include parse --include lex app.aft
  afterimage build --lens paths --exclude memcpy app.aft
  afterimage build --lens paths --start 'parse#3' --stop 'parse#4' app.aft
  afterimage build --lens paths --start app.c:42#1000 app.aft")]
pub(crate) struct Arguments {
    /// The lens to build
    #[arg(long)]
    lens: Lens,
    /// Build the lens again even if the recording has it
    #[arg(long)]
    again: bool,
    /// The recording
    #[arg(value_name = "FILE.aft")]
    file: PathBuf,
    // These come last, because their heading would apply to all options after them.
    #[command(flatten)]
    filters: FilterArguments,
}

/// The data that can be added to a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Lens {
    /// The whole path of the run: which blocks ran, in order
    Paths,
    /// The whole execution trace: also every value, address and dependence
    Full,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    files::ended(&arguments.file)?;
    let session = session(&arguments.file)?;
    if arguments.lens == Lens::Full {
        return full(&arguments, session);
    }
    let recording = &*session;
    let filter = arguments.filters.path(&session)?;
    // A damaged path is also built again.
    let is_there = !arguments.again && has_path(recording)?;
    match arguments.filters.given() {
        Some(option) if is_there => bail!(
            "{}: the recording already has a path, so {option} changes nothing; build the path \
             again with --again",
            arguments.file.display()
        ),
        _ => {}
    }
    if is_there || session.add_path(&filter, Empty::Refused)? {
        return Ok(Exit::Success);
    }
    // Another process has added data in the meantime.
    run(arguments)
}

fn has_path(recording: &Recording) -> Result<bool> {
    match recording.path() {
        Ok(_) => Ok(true),
        Err(RecordingError::NoPath) => Ok(false),
        Err(error) => Err(error).with_context(|| recording.at().display().to_string()),
    }
}

fn full(arguments: &Arguments, session: Session) -> Result<Exit> {
    let at = &arguments.file;
    let missing = missing_values(&session, &arguments.filters.filters(), arguments.again)?;
    let Some((kept, adds)) = missing else {
        say(format_args!(
            "{} already has these values; --again builds them again",
            at.display()
        ));
        return Ok(Exit::Success);
    };
    if stoppable(|stop| session.add_values(&kept, adds, stop))? {
        return Ok(Exit::Success);
    }
    // Another process has added data in the meantime.
    full(arguments, lens::session(at)?)
}

/// Adds the values that the filters keep for a run that has just ended.
pub(crate) fn follow(at: &Path, filters: &FilterArguments) -> Result<()> {
    let session = session(at)?;
    stoppable(|stop| add_first_values(&session, &filters.filters(), stop))
}

/// Compacts the path that a live run wrote.
pub(crate) fn compact(at: &Path, filters: &FilterArguments) -> Result<()> {
    let session = session(at)?;
    Ok(session.compact_path(&filters.path(&session)?)?)
}
