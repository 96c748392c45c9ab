//! `afterimage strip`

use std::path::PathBuf;

use afterimage::files;
use afterimage::strip::{Stripped, strip};
use afterimage_present::size;
use anyhow::Result;

use crate::exit::Exit;
use crate::output::tell;
use crate::progress::Terminal;

/// Drop from a recording what can be made again
///
/// It drops counts, path, values, snapshots and simulations. The program, its input and the way it ended stay. The next question makes again what it needs, of the whole
/// run, even if `build --window` or `--exclude` had made only a part.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit> {
    let at = &arguments.file;
    files::open(at)?;
    let Stripped { before, after } = strip(at, &Terminal)?;
    let file = at.display();
    match before == after {
        true => tell(format_args!("{file}: there is nothing to drop")),
        false => tell(format_args!(
            "{file}: now {}, was {}",
            size(after),
            size(before)
        )),
    }
    Ok(Exit::Success)
}
