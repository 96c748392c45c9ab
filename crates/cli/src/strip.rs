//! Implements `afterimage strip`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use afterimage::files;
use afterimage::strip::{Stripped, kept_without_inputs, strip, strip_inputs};
use afterimage_present::size;
use anyhow::{Context, Result, anyhow};

use crate::exit::{Exit, Failed};
use crate::lens::{if_stopped, session};
use crate::output::tell;
use crate::progress::Terminal;
use crate::signals::StopFlag;

/// Remove from a recording the data that can be rebuilt
///
/// It removes counts, path, values, snapshots and simulations, and keeps the program, its input and
/// how the run ended. The next question builds what it needs again, for the whole run, even if
/// `build --window` or `--exclude` had built only a part.
///
/// With --inputs it instead removes the program's input, so that you can share the recording.
/// Counts and path stay, but from then on, commands fail if they need to run the program again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage strip app.aft
  afterimage build --lens paths app.aft && afterimage profile app.aft
  afterimage strip --inputs app.aft -o shared.aft")]
pub(crate) struct Arguments {
    /// Remove the program's input: data read from files and standard input, arguments, environment,
    /// and folder names. This also removes values, slices, simulations and embedded sources. The
    /// program, how it ended, counts and path stay, but the run can no longer be repeated
    #[arg(long)]
    inputs: bool,
    /// Write the smaller recording to this file, and leave the original unchanged
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    files::open(&arguments.file)?;
    let stop = StopFlag::watch()?;
    let Some(output) = &arguments.output else {
        return stripped(&arguments.file, arguments.inputs, &stop);
    };
    if arguments.inputs {
        kept_without_inputs(&arguments.file)?;
    }
    copy(&arguments.file, output, &stop)?;
    let done = stripped(output, arguments.inputs, &stop);
    if done.is_err() {
        // If this copy stayed, it would still contain all the data.
        let _ = fs::remove_file(output);
    }
    done
}

/// The number of bytes to copy between checks for signals.
const PIECE: u64 = 1 << 24;

/// Copies a recording to a file that does not exist yet.
fn copy(from: &Path, to: &Path, stop: &StopFlag) -> Result<()> {
    let cannot = || {
        format!(
            "{}: cannot be written; choose another name with -o",
            to.display()
        )
    };
    let mut copy = File::create_new(to).with_context(cannot)?;
    let recording = File::open(from).with_context(|| from.display().to_string())?;
    let copied = loop {
        if stop.flag().load(Ordering::SeqCst) {
            let error = anyhow!("{}: copying was interrupted", from.display());
            let exit = stop.exit();
            break Err(Failed { exit, error }.into());
        }
        match io::copy(&mut (&recording).take(PIECE), &mut copy) {
            Ok(0) => break Ok(()),
            Ok(_) => {}
            Err(error) => break Err(error).with_context(cannot),
        }
    };
    if copied.is_err() {
        let _ = fs::remove_file(to);
    }
    copied
}

fn stripped(at: &Path, inputs: bool, stop: &StopFlag) -> Result<Exit> {
    let flag = stop.flag();
    if inputs && !kept_without_inputs(at)?.counts {
        // The run cannot be counted later, and the path alone does not answer `profile`.
        if let Err(why) = session(at)?.ensure_counts() {
            tell(format_args!("there will be no counts: {why}"));
        }
    }
    let done = if inputs {
        strip_inputs(at, &Terminal, flag).map(|(stripped, kept)| (stripped, Some(kept)))
    } else {
        strip(at, &Terminal, flag).map(|stripped| (stripped, None))
    };
    let (Stripped { before, after }, kept) = done.map_err(|error| if_stopped(stop, error))?;
    let file = at.display();
    if let Some(kept) = kept {
        let what = match (kept.counts, kept.path) {
            (true, true) => "the counts, the path and ",
            (true, false) => "the counts and ",
            (false, true) => "the path and ",
            (false, false) => "",
        };
        tell(format_args!(
            "{file}: {what}the program with its debug information stay; the run can no longer \
             be repeated"
        ));
    }
    if before == after {
        tell(format_args!("{file}: there is nothing to remove"))
    } else {
        tell(format_args!(
            "{file}: now {}, was {}",
            size(after),
            size(before)
        ))
    }
    Ok(Exit::Success)
}
