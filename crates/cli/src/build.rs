//! `afterimage build`

use std::path::{Path, PathBuf};

use afterimage::{Adds, Beyond, Empty, KeptValues, Session};
use afterimage_record::PathFilter;
use afterimage_replay::paths::coded_path;
use afterimage_replay::values::recorded_epochs;
use afterimage_replay::{Recording, RecordingError};
use afterimage_wet::LeftOut;
use anyhow::{Context, Result, bail};

use crate::exit::Exit;
use crate::filters::FilterArguments;
use crate::input::{self, Loaded};
use crate::lens::{self, session, stoppable};
use crate::output::{pasted, say};

/// Add a lens to a recording, by re-executing it, so that later questions are answered at once
///
/// Commands that need a lens build it by themselves; this builds it beforehand.
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
    /// What to add
    #[arg(long)]
    lens: Lens,
    /// Build it anew, even if the recording has it
    #[arg(long)]
    again: bool,
    /// The recording
    #[arg(value_name = "FILE.aft")]
    file: PathBuf,
    // Last, because its heading would hold for all that follows.
    #[command(flatten)]
    filters: FilterArguments,
}

/// What can be added to a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Lens {
    /// The whole path of the run: which blocks were executed, in order
    Paths,
    /// The whole execution trace: every value, address and dependence, too
    Full,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    input::ended(&arguments.file)?;
    let session = session(&arguments.file)?;
    if arguments.lens == Lens::Full {
        return full(&arguments, session);
    }
    let recording = &*session;
    let filter = arguments.filters.path(&Loaded::of(recording))?;
    // A path that is damaged is built anew, too.
    let is_there = !arguments.again && has_path(recording)?;
    match arguments.filters.given() {
        Some(option) if is_there => bail!(
            "{}: the recording has a path already, so {option} changes nothing; build it anew with --again",
            arguments.file.display()
        ),
        _ => {}
    }
    if is_there || session.add_path(&filter, Empty::Refused)? {
        return Ok(Exit::Success);
    }
    // Another process added something.
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
    whole_path(&session, arguments.again)?;
    let recording = &*session;
    let kept = kept_values(&session, &arguments.filters, Beyond::Refused)?;
    let there = match (arguments.again, recording.epochs()) {
        (true, _) | (false, Err(RecordingError::NoValues)) => None,
        (false, found) => Some(found.with_context(|| at.display().to_string())?),
    };
    let (kept, adds) = match there {
        None => {
            // As far as their index tells.
            let known = recorded_epochs(&recording.newest(), recording.path()?);
            let adds = if matches!(known, Ok(Some(_))) {
                Adds::Instead
            } else {
                Adds::First
            };
            (kept, adds)
        }
        Some(there) => {
            let left_out = Vec::from_iter(there.windows().map(|index| &index.left_out));
            let is_enough = left_out.iter().all(|there| there.is_within(&kept.left_out));
            if is_enough && there.covers(kept.first, kept.last) {
                say(format_args!(
                    "{} has these values already; --again builds them anew",
                    at.display()
                ));
                return Ok(Exit::Success);
            }
            if left_out.iter().any(|there| **there != kept.left_out) {
                let lacks = |left_out: &LeftOut| {
                    if left_out.is_nothing() {
                        "of all functions".to_owned()
                    } else {
                        format!("without {}", left_out.words)
                    }
                };
                bail!(
                    "{}: the recording has values {} already, and these would be {}; all windows have the same functions: build the values anew with --again",
                    at.display(),
                    left_out.first().map_or(String::new(), |there| lacks(there)),
                    lacks(&kept.left_out)
                );
            }
            // Where windows are there from the beginning on, as after an interruption, it goes on behind them.
            let first = there.missing_from(kept.first);
            (KeptValues { first, ..kept }, Adds::More)
        }
    };
    if stoppable(|stop| session.add_values(&kept, adds, stop))? {
        return Ok(Exit::Success);
    }
    // Another process added something.
    full(arguments, lens::session(at)?)
}

/// LookupTables for all of the path. What is built again may be damaged, and is not read.
fn whole_path(session: &Session, again: bool) -> Result<()> {
    let recording = &**session;
    if again {
        let name = || recording.at().display().to_string();
        let coded = coded_path(recording.file(), recording.program()).with_context(name)?;
        coded.map(|path| recording.use_path(path));
    }
    session.ensure_whole_path()?;
    Ok(())
}

/// What the filters keep of a run's values.
fn kept_values(
    recording: &Session,
    filters: &FilterArguments,
    beyond: Beyond,
) -> Result<KeptValues> {
    let source = recording.source_map();
    let names = recording.module().names(&source);
    let positions = recording.positions(&names, &source)?;
    let (module, length) = (recording.module(), recording.path()?.length());
    let time = |text: &str| Ok(positions.time(text)?);
    let kept = filters
        .filters()
        .values(&names, &source, module, length, beyond, time);
    kept.with_context(|| recording.at().display().to_string())
}

/// Adds what the filters keep of the values of a run that has ended just now. If that is nothing, it is said.
pub(crate) fn follow(at: &Path, filters: &FilterArguments) -> Result<()> {
    let session = session(at)?;
    session.ensure_whole_path()?;
    match kept_values(&session, filters, Beyond::Cut) {
        Ok(kept) => {
            // If somebody asked about the run as soon as it had ended, they may be there.
            if stoppable(|stop| session.add_values(&kept, Adds::First, stop))? {
                Ok(())
            } else {
                stoppable(|stop| session.ensure_values(stop))
            }
        }
        Err(why) => {
            say(format_args!(
                "{why:#}; no values were added. The path is there: add values with: afterimage build --lens full {}",
                pasted(at)
            ));
            Ok(())
        }
    }
}

/// Compacts the path that a live run wrote.
pub(crate) fn compact(at: &Path, filter: &PathFilter) -> Result<()> {
    Ok(session(at)?.compact_path(filter)?)
}
