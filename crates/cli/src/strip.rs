//! `afterimage strip`

use std::path::{Path, PathBuf};

use afterimage::files;
use afterimage::strip::{Stripped, strip, strip_copy, strip_inputs};
use afterimage_present::size;
use anyhow::Result;

use crate::exit::Exit;
use crate::output::tell;
use crate::progress::Terminal;

/// Remove from a recording what can be built again
///
/// It removes counts, path, values, snapshots and simulations, and keeps the program, its input and
/// how the run ended. The next question builds what it needs again, for the whole run, even if
/// `build --window` or `--exclude` had built only a part.
///
/// With --inputs it instead removes what the program was given, so that you can share the
/// recording. Counts and path stay, but whatever needs to run the program again fails from then on.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage strip app.aft
  afterimage build --lens paths app.aft && afterimage profile app.aft
  afterimage strip --inputs app.aft -o shared.aft")]
pub(crate) struct Arguments {
    /// Remove what the program was given: data read from files and standard input, arguments,
    /// environment, and folder names; with them values, slices, simulations and embedded sources.
    /// The program, how it ended, counts and path stay, but the run can no longer be repeated
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
    let Some(output) = &arguments.output else {
        return stripped(&arguments.file, arguments.inputs);
    };
    strip_copy(&arguments.file, output, |copy| {
        stripped(copy, arguments.inputs)
    })
}

fn stripped(at: &Path, inputs: bool) -> Result<Exit> {
    let (Stripped { before, after }, kept) = if inputs {
        let (stripped, kept) = strip_inputs(at, &Terminal)?;
        (stripped, Some(kept))
    } else {
        (strip(at, &Terminal)?, None)
    };
    let file = at.display();
    if let Some(kept) = kept {
        let what = match (kept.counts, kept.path) {
            (true, true) => "counts and path stay",
            (true, false) => "counts stay; there was no path",
            (false, _) => "the path stays; there were no counts",
        };
        tell(format_args!(
            "{file}: {what}, and the program with its debug information; the run can no longer \
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
