//! Prepares a program for measurement, with a recording of its run, its counts, and its whole path
//! in the recording.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use afterimage_ids::Counts;
use afterimage_paths::Sink;
use afterimage_placement::Mode;
use afterimage_placement::PlanOptions;
use afterimage_program::Program;
use afterimage_record::{
    BuiltPaths, Cache, Command, Interrupt, Launch, PathFilter, Progress, RecordOptions,
    RecordedRun, build_paths, count, record, trace_paths,
};
use afterimage_replay::whole_path::{RecordedPath, recorded_path};
use afterimage_trace::{Existing, TraceFile, TraceWriter};
use afterimage_wpp::Segments;
use anyhow::{Context, Result, ensure};

use crate::Arguments;
use crate::corpus::Entry;
use crate::profile::executed_blocks;

/// The memory for open segments. All segments stay open, so that only reading is measured.
const ROOM: usize = 6 << 30;

pub(crate) struct Subject {
    pub bytes: Vec<u8>,
    pub program: Program,
    pub command: Command,
    pub folder: tempfile::TempDir,
    pub counts: Counts,
    pub file: TraceFile,
    pub built: BuiltPaths,
    /// The number of bytes that the path added to the file.
    pub growth: u64,
    /// Seconds to build the path, that is, to compile, execute again, regenerate, code and write.
    pub build_seconds: f64,
    /// Seconds to open the file and the path.
    pub open_seconds: f64,
    /// The path in the file. Used segments stay open.
    pub path: RecordedPath,
}

impl Subject {
    /// Records a program, counts its run, and builds the path. All three must agree on the number
    /// of executed blocks.
    pub(crate) fn new(entry: &Entry, arguments: &Arguments) -> Result<Self> {
        let bytes = entry.module(&arguments.corpus)?;
        let program = Program::parse(&bytes)?;
        let command = entry.command(&arguments.corpus);
        let folder = tempfile::tempdir()?;
        let at = folder.path().join("run.aft");
        let settings = Settings {
            cache: &Cache::none(),
            paths: false,
            deterministic: true,
        };
        make_recording(&bytes, &program, &command, &at, settings)?;
        let recorded = TraceFile::open(&at)?;
        let options = PlanOptions::new(Mode::Quick);
        let (cache, progress) = (Cache::none(), quiet());
        let run = RecordedRun {
            file: &recorded,
            bytes: &bytes,
            program: &program,
            cache: &cache,
            progress: &progress,
            cancel: None,
        };
        let counts = count(&run, &options)?;
        let counts = counts.counts;

        let start = Instant::now();
        let out = TraceWriter::append(&at)?;
        let built = build(&recorded, &bytes, &program, &out)?;
        out.commit()?;
        drop(out);
        let build_seconds = start.elapsed().as_secs_f64();

        let start = Instant::now();
        let file = TraceFile::open(&at)?;
        let path =
            recorded_path(&file, &program)?.context("the path that was built is not there")?;
        let open_seconds = start.elapsed().as_secs_f64();
        let executed = executed_blocks(&program, &counts)?;
        ensure!(
            built.time == executed && path.length() == executed,
            "the profile has {executed} executed blocks, regeneration {}, the file {}",
            built.time,
            path.length()
        );
        Ok(Self {
            growth: file.length() - recorded.length(),
            bytes,
            program,
            command,
            folder,
            counts,
            file,
            built,
            build_seconds,
            open_seconds,
            path: path.with_room(ROOM),
        })
    }

    /// Opens all segments of the path.
    pub(crate) fn open_all(&self) -> Result<()> {
        let mut cursor = self.path.cursor();
        for summary in self.path.segments().summaries() {
            cursor.seek(summary.before + 1)?;
        }
        Ok(())
    }

    /// Opens the path again, with none of its data in memory.
    pub(crate) fn reopened(&self) -> Result<RecordedPath> {
        recorded_path(&self.file, &self.program)?.context("the path is not there")
    }

    /// Executes the recorded run again, and passes its path to a sink.
    pub(crate) fn again<S: Sink + Send>(&self, sink: S) -> Result<S> {
        let traced = trace_paths(
            &RecordedRun {
                file: &self.file,
                bytes: &self.bytes,
                program: &self.program,
                cache: &Cache::none(),
                progress: &quiet(),
                cancel: None,
            },
            None,
            sink,
        )?;
        Ok(traced.sink)
    }
}

/// Adds the path to a recording.
pub(crate) fn build(
    file: &TraceFile,
    bytes: &[u8],
    program: &Program,
    out: &TraceWriter,
) -> Result<BuiltPaths> {
    let run = RecordedRun {
        file,
        bytes,
        program,
        cache: &Cache::none(),
        progress: &quiet(),
        cancel: None,
    };
    Ok(build_paths(&run, None, &PathFilter::default(), out)?)
}

fn quiet() -> Progress {
    Arc::new(|_| ())
}

/// Records a run, with its path live if requested. Returns the guest's processor time.
pub(crate) fn make_recording(
    bytes: &[u8],
    program: &Program,
    command: &Command,
    at: &Path,
    settings: Settings<'_>,
) -> Result<f64> {
    let out = TraceWriter::create(at, Existing::Replaced)?;
    let options = RecordOptions {
        silent: true,
        clock: false,
        deterministic: settings.deterministic,
        paths: settings.paths,
        ..RecordOptions::default()
    };
    let interrupt = Interrupt::new();
    let launch = Launch {
        bytes,
        program,
        command,
        options: &options,
        cache: settings.cache,
        interrupt: &interrupt,
    };
    let recorded = record(launch, &out)?;
    Ok(recorded.cpu_seconds)
}

/// The settings with which to record a run.
pub(crate) struct Settings<'a> {
    pub cache: &'a Cache,
    /// Whether to write the path live.
    pub paths: bool,
    /// Whether to canonicalise NaNs, which is measured separately.
    pub deterministic: bool,
}
