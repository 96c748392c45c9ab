//! `afterimage verify`

use std::path::{Path, PathBuf};

use afterimage::files;
use afterimage::verify::{Execute, verify};
use afterimage_present::counted;
use afterimage_trace::{TraceError, repair};
use anyhow::Result;

use crate::arguments::{OutputArguments, formats};
use crate::exit::Exit;
use crate::output::say;
use crate::progress::Terminal;

/// Check a recording: every byte, and that the run repeats
///
/// Exits with 1 if a check fails.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only read the file; neither re-execute the recording nor follow its values
    #[arg(long)]
    no_execute: bool,
    /// Write a copy with everything that is intact, list what is not, and check the copy
    #[arg(long, requires = "output")]
    repair: bool,
    /// Write the repaired copy to this file
    #[arg(short, long, value_name = "FILE", requires = "repair")]
    output: Option<PathBuf>,
    /// Output format
    #[arg(long, default_value = "text")]
    format: Format,
    /// A recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

formats!(Text, Json);

/// Writes a repaired copy, and reports the parts missing from it.
fn repaired(from: &Path, to: &Path) -> Result<()> {
    files::open(from)?;
    let name = || from.display().to_string();
    let found = repair(from, to, false).map_err(|error| {
        let place = match error {
            TraceError::Exists => to,
            _ => from,
        };
        anyhow::Error::new(error).context(place.display().to_string())
    })?;
    for lost in &found.lost {
        let which = match &lost.name {
            Some(name) => format!("{} {name:?}", lost.kind),
            None => lost.kind.to_string(),
        };
        let kept = match lost.kept {
            0 => "left out".into(),
            kept => format!("cut off after {}", counted(kept as u64, "chunk")),
        };
        say(format_args!(
            "{}: section {which} is {kept}: {}",
            name(),
            lost.why
        ));
    }
    if found.unread > 0 {
        say(format_args!(
            "{}: the origin of {} at its end is unknown",
            name(),
            counted(found.unread, "byte")
        ));
    }
    say(format_args!(
        "{} contains {} unchanged",
        to.display(),
        counted(found.whole, "section")
    ));
    Ok(())
}

pub(crate) fn run(mut arguments: Arguments) -> Result<Exit> {
    if let Some(copy) = arguments.output.take() {
        repaired(&arguments.file, &copy)?;
        arguments.file = copy;
    }
    let at = &arguments.file;
    let file = files::recording(at)?;
    let execute = if arguments.no_execute {
        Execute::Not
    } else {
        Execute::Again
    };
    let module = || Ok(files::recorded_program(at, &file)?.module);
    let report = verify(at, &file, module, execute, &Terminal)?;
    OutputArguments::default().show(&report, arguments.format)?;
    Ok(if report.sound {
        Exit::Success
    } else {
        Exit::Unsound
    })
}
