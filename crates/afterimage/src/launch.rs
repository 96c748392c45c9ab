//! Runs a program and records the run.
//!
//! Takes a loaded program, the guest's input and the options of the run. Writes the recording to
//! the file that the caller created.

use std::path::Path;
use std::time::Duration;

use afterimage_placement::{Mode, PlanOptions};
use afterimage_record::{
    Cache, Command, Interrupt, Launch, RecordError, RecordOptions, Recorded, Repeating, record,
};
pub use afterimage_trace::Existing;
use afterimage_trace::{TraceError, TraceWriter};
use anyhow::{Result, anyhow};

use crate::files::Loaded;
use crate::text::pasted;

/// A lens that is built during the run, not by a later re-execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LiveLens {
    #[default]
    Nothing,
    /// Exact execution counts.
    Counts,
    /// The path, as written by probes.
    Path,
}

/// The options for running a program and recording it.
#[derive(Clone, Debug)]
pub struct RecordQuery {
    /// The guest's input: its arguments, environment, folders and standard input.
    pub command: Command,
    pub lens: LiveLens,
    /// Whether to record without the stop clock. A live lens needs the clock and keeps it.
    pub no_clock: bool,
    /// The time after which to stop the guest.
    pub timeout: Option<Duration>,
    /// The size of the guest's stack, in bytes.
    pub stack: usize,
    /// The seed of the guest's random numbers. If `None`, the system chooses it.
    pub seed: Option<u64>,
    /// Whether to send the guest's standard output to standard error, because a report follows on
    /// standard output.
    pub output_to_stderr: bool,
}

impl RecordQuery {
    /// Whether the run can be stopped anywhere, not only in host calls.
    pub fn has_clock(&self) -> bool {
        !self.no_clock || self.lens != LiveLens::Nothing
    }

    /// Runs the program and records the run into `out`. `interrupt` stops the guest. `repeating`
    /// reports the progress of a second run, which finds the trapping operator if the engine does
    /// not report it.
    ///
    /// # Errors
    /// A [`RecordError`] with its place, if the program cannot be run or the file cannot be
    /// written. A guest that fails is not an error, because the recording says how it ended.
    pub fn run(
        &self,
        loaded: &Loaded,
        interrupt: &Interrupt,
        repeating: Repeating,
        out: &TraceWriter,
    ) -> Result<Recorded> {
        let options = RecordOptions {
            clock: self.has_clock(),
            counts: (self.lens == LiveLens::Counts).then(|| PlanOptions::new(Mode::Program)),
            paths: self.lens == LiveLens::Path,
            timeout: self.timeout,
            stack: self.stack,
            seed: self.seed,
            output_to_stderr: self.output_to_stderr,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            repeating,
            ..RecordOptions::default()
        };
        let cache = Cache::of_user();
        let launch = Launch {
            bytes: &loaded.bytes,
            program: &loaded.program,
            command: &self.command,
            options: &options,
            cache: &cache,
            interrupt,
        };
        record(launch, out).map_err(|error| {
            let place = place(&error, loaded, out);
            anyhow::Error::new(error).context(place)
        })
    }
}

/// Describes where recording failed, and what remains of the recording.
fn place(error: &RecordError, loaded: &Loaded, out: &TraceWriter) -> String {
    let program = loaded.path.display();
    match error {
        // These errors already name the place.
        RecordError::Trace(TraceError::Replaced { .. } | TraceError::Moved { .. }) => {
            error.to_string()
        }
        RecordError::Trace(_) => format!(
            "the recording stops early; what was written is kept in {}; see: afterimage info {}",
            out.path().display(),
            pasted(&out.path())
        ),
        RecordError::Interrupted => {
            format!("{program}: nothing was recorded, because the guest had not begun")
        }
        _ => program.to_string(),
    }
}

/// Creates the file of a recording.
///
/// # Errors
/// Returns an error if the file exists and must be kept, or cannot be created.
pub fn create(path: &Path, existing: Existing) -> Result<TraceWriter> {
    TraceWriter::create(path, existing).map_err(|error| {
        let path = path.display();
        match error {
            TraceError::Exists => anyhow!(
                "{path} already exists; overwrite it with --force, or choose another name with -o"
            ),
            TraceError::NotAFile => {
                anyhow!("{path} is a folder, a pipe or a device; name a file with -o")
            }
            TraceError::Io { source, .. } | TraceError::Write(source) => {
                anyhow!("cannot create {path}: {source}")
            }
            error => anyhow!("{path}: {error}"),
        }
    })
}
