//! Recordings that are measured as they are.

use std::path::Path;

use afterimage_program::Program;
use afterimage_record::measure::process_time;
use afterimage_replay::paths::FileSegments;
use afterimage_replay::paths::{RecordedPath, recorded_path};
use afterimage_replay::steps::{Run, stopped_before};
use afterimage_trace::TraceFile;
use anyhow::{Context, Result};

/// A recording with its path.
pub(crate) struct Recorded {
    pub name: String,
    pub file: TraceFile,
    pub bytes: Vec<u8>,
    pub program: Program,
    pub path: RecordedPath,
}

impl Recorded {
    pub(crate) fn open(at: &Path) -> Result<Self> {
        let stem = at.file_stem();
        let name = stem.map_or("?".into(), |stem| stem.to_string_lossy().into_owned());
        let file = TraceFile::open(at).with_context(|| at.display().to_string())?;
        let bytes = file.module()?;
        let program = Program::parse(&bytes)?;
        let path = recorded_path(&file, &program)?.with_context(|| {
            format!(
                "{}: it has no path; make it with: afterimage build --lens paths",
                at.display()
            )
        })?;
        Ok(Self {
            name,
            file,
            bytes,
            program,
            path,
        })
    }

    /// Its run, from the beginning.
    pub(crate) fn run(&self) -> Result<Run<'_, FileSegments>> {
        let end = self.file.end()?;
        Ok(Run {
            program: &self.program,
            module: &self.bytes,
            path: &self.path,
            continuations: &self.path.segments().directory().continuations,
            stopped: end.and_then(|end| stopped_before(&self.program, &self.bytes, &end)),
            checkpoints: None,
            progress: &|_| {},
        })
    }
}

/// What something gives, and how many seconds of processor time it took.
pub(crate) fn timed<T>(does: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let start = process_time();
    let found = does()?;
    Ok((found, process_time() - start))
}
