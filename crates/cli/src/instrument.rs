//! Implements `afterimage instrument`.

use std::path::PathBuf;

use afterimage::files;
use afterimage::instrument::{Instrumented, MEMORY_EXPORT, Mode, instrument};
use afterimage_present::document::begin;
use afterimage_present::{InstrumentDocument, counted};
use anyhow::{Result, bail};

use crate::arguments::{choices, formats};
use crate::exit::{Exit, Failed};
use crate::output::{print, say, write_module};

/// Write the instrumented module for other engines and browsers
///
/// The module exports its counters in a separate memory, "afterimage.counters", so the engine must
/// support multiple memories (Node does from version 22 on). After the run, save the bytes of that
/// memory: in JavaScript, new Uint8Array(instance.exports["afterimage.counters"].buffer).
/// `afterimage profile --counters DUMP PROGRAM` turns them into a report. While calls are open
/// (inside a host call, after an exit or a trap) the counters are not exact, and the report says
/// so; see --standalone.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage instrument app.wasm -o app.counting.wasm
  node run.js app.counting.wasm app.dump
  afterimage profile --counters app.dump app.wasm")]
pub(crate) struct Arguments {
    /// Write the module to this file
    #[arg(short, long, value_name = "OUT.wasm")]
    output: PathBuf,
    /// Placement of counters
    #[arg(long, default_value = "quick")]
    mode: Placement,
    /// Place enough counters to make a dump exact inside host calls, or after the program exited in
    /// one; needs --mode quick
    #[arg(long)]
    standalone: bool,
    /// Format of the summary
    #[arg(long, default_value = "text")]
    format: Format,
    /// A .wasm or .wat file
    #[arg(value_name = "PROGRAM")]
    program: PathBuf,
}

// Placement by feedback is not offered, because a dump does not contain the earlier counts that the
// placement uses.
choices! { Placement => Mode {
    /// In each function, on the edges that are executed least
    Quick,
    /// Over the whole program at once, which needs the fewest counters
    Program,
    /// On every edge
    #[value(name = "slow")]
    Edges,
}}

formats!(Text, Json);

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    if files::are_same(&arguments.output, &arguments.program) {
        bail!(
            "{} is the program itself; choose another name with -o",
            arguments.output.display()
        );
    }
    if arguments.standalone && arguments.mode != Placement::Quick {
        bail!("--standalone works only with --mode quick");
    }
    let loaded = files::program(&arguments.program)?;
    let made = instrument(&loaded, arguments.mode.into(), arguments.standalone);
    let Instrumented { module, counters } = made.map_err(|error| Failed {
        exit: Exit::CannotRun,
        error: error.context(arguments.program.display().to_string()),
    })?;
    write_module(&arguments.output, |out| Ok(out.write_all(&module)?))?;
    match arguments.format {
        Format::Text => say(format_args!(
            "wrote {} with {}; read them from the exported memory {MEMORY_EXPORT:?}",
            arguments.output.display(),
            counted(u64::from(counters), "counter"),
        )),
        Format::Json => print(|out| {
            let document = InstrumentDocument {
                output: arguments.output.display().to_string(),
                bytes: module.len(),
                counters,
                memory_export: MEMORY_EXPORT,
                standalone: arguments.standalone,
            };
            Ok(begin(out, &document)?)
        })?,
    }
    Ok(Exit::Success)
}
