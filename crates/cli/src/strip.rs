//! `afterimage strip`

use std::path::PathBuf;

use afterimage::strip::{Stripped, strip};
use afterimage_present::size;
use anyhow::Result;

use crate::exit::Exit;
use crate::input;
use crate::output::tell;

/// Drop from a recording what can be made again: counts, path, values, snapshots, simulations
///
/// What the run itself left stays. Questions make the rest again when they need it.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit> {
    let at = &arguments.file;
    input::open(at)?;
    let Stripped { before, after } = strip(at)?;
    tell(format_args!(
        "{}: {} of {} are left",
        at.display(),
        size(after),
        size(before)
    ));
    Ok(Exit::Success)
}
