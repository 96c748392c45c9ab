//! Builds the values of a run, and adds them to the recording.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use afterimage_present::grouped;
use afterimage_replay::whole_path::FileSegments;
use afterimage_replay::{Recording, RecordingError};
use afterimage_trace::{Kind, TraceFile};
use afterimage_wet::checkpoint::{CheckpointWriter, INTERVAL, Vertex};
use afterimage_wet::{
    EpochWriter, FileEpochs, FilePrinted, Index, LeftOut, Printed, PrintedWriter, Run, Sinks, Watch,
};

use crate::append::append;
use crate::error::Reason;
use crate::monitor::{Monitor, Note, Work};
use crate::path::{Added, refuse_gaps, refuse_running};
use crate::text::pasted;

/// The values to build.
#[derive(Clone, Debug)]
pub struct KeptValues {
    /// The first block with values.
    pub first: u64,
    /// The last block with values.
    pub last: u64,
    /// The functions without values.
    pub left_out: LeftOut,
}

impl KeptValues {
    /// Selects all values of a run of `length` blocks.
    pub fn all(length: u64) -> Self {
        Self {
            first: 1,
            last: length,
            left_out: LeftOut::default(),
        }
    }
}

/// The relation of new values to existing values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adds {
    /// There are no usable values yet.
    First,
    /// The new values extend the existing values.
    More,
    /// The new values replace the existing values once they are complete.
    Instead,
}

/// Returns the values of a recording. Builds them if they do not exist yet.
pub(crate) fn ensure_values<'r>(
    recording: &'r Recording,
    monitor: &dyn Monitor,
    cancel: &AtomicBool,
) -> Result<&'r FileEpochs, Reason> {
    let path = recording.path()?;
    refuse_running(recording)?;
    refuse_gaps(recording.at(), path)?;
    let kept = KeptValues::all(path.length());
    loop {
        match recording.epochs() {
            Err(RecordingError::NoValues) => {}
            found => return Ok(found?),
        }
        let added = add_values(recording, &kept, Adds::First, monitor, cancel)?;
        match recording.epochs() {
            Err(RecordingError::NoValues) if added == Added::Here => {
                return Err(Reason::Gone("whole execution trace"));
            }
            Err(RecordingError::NoValues) => {}
            found => return Ok(found?),
        }
    }
}

/// The time after which the remaining time of a build is first estimated.
const TOLD: Duration = Duration::from_secs(1);
/// The minimum remaining time for which to send a message.
const LONG: Duration = Duration::from_secs(20);

/// Estimates from the first blocks how much longer a build takes, and how much the file grows.
struct Outlook<'a> {
    at: &'a Path,
    blocks: u64,
    monitor: &'a dyn Monitor,
    begun: Instant,
    /// The length of the file before the build.
    bytes: u64,
    /// The number of bytes by which the file has grown, and the number of blocks with values in
    /// these bytes.
    grown: Mutex<Option<(u64, u64)>>,
    is_told: AtomicBool,
}

impl<'a> Outlook<'a> {
    /// Prepares an estimate for building the values of these blocks. Estimates nothing if the build
    /// begins in the middle of the run, because following the run to that block is faster than
    /// building.
    fn new(at: &'a Path, (first, last): (u64, u64), monitor: &'a dyn Monitor) -> Self {
        Self {
            at,
            blocks: last,
            monitor,
            begun: Instant::now(),
            bytes: length_of(at),
            grown: Mutex::new(None),
            is_told: AtomicBool::new(first > 1),
        }
    }

    /// Records that the values of the first `blocks` blocks are in the file.
    fn written(&self, blocks: u64) {
        if blocks > 0 && !self.is_told.load(Ordering::Relaxed) {
            let grown = length_of(self.at).saturating_sub(self.bytes);
            if let Ok(mut known) = self.grown.lock() {
                *known = Some((grown, blocks));
            }
        }
    }

    /// Sends the estimate to the monitor, once `done` blocks suffice for an estimate.
    fn tell(&self, done: u64) {
        let passed = self.begun.elapsed();
        if done == 0 || passed < TOLD || self.is_told.load(Ordering::Relaxed) {
            return;
        }
        let grown = self.grown.lock().ok().and_then(|known| *known);
        let Some((bytes, of)) = grown else { return };
        if self.is_told.swap(true, Ordering::Relaxed) {
            return;
        }
        let all = |so_far: f64, done: u64| so_far * self.blocks as f64 / done as f64;
        let left = all(passed.as_secs_f64(), done) - passed.as_secs_f64();
        if left >= LONG.as_secs_f64() {
            let note = Note::ValuesTake {
                seconds: left as u64,
                bytes: all(bytes as f64, of) as u64,
            };
            self.monitor.note(self.at, &note);
        }
    }
}

fn length_of(at: &Path) -> u64 {
    fs::metadata(at).map_or(0, |file| file.len())
}

fn built<E: Error + Send + Sync + 'static>(error: E) -> Reason {
    Reason::Values(error.into())
}

/// Builds values, and adds them to the recording.
pub(crate) fn add_values(
    recording: &Recording,
    kept: &KeptValues,
    adds: Adds,
    monitor: &dyn Monitor,
    cancel: &AtomicBool,
) -> Result<Added, Reason> {
    let (at, file, path) = (recording.at(), recording.newest(), recording.path()?);
    let length = path.length();
    let KeptValues {
        first,
        last,
        ref left_out,
    } = *kept;
    let lost = "the values cannot be added to the recording";
    let Some(out) = append(at, &file, lost, monitor, cancel)? else {
        return Ok(Added::Elsewhere);
    };
    let followed = recording.run()?;
    let run = Run {
        program: recording.program(),
        bytes: recording.bytes(),
        path,
        continuations: followed.continuations,
        window: first..=last,
        left_out,
        stopped: followed.stopped,
        epoch: Run::<FileSegments>::EPOCH,
    };
    let mut writer = EpochWriter::new(&out)?;
    let mut checkpoints = CheckpointWriter::new(&out)?;
    let anew = adds != Adds::More;
    // Damaged parts are ignored, and are written again.
    let known = FilePrinted::open(&file).ok().flatten();
    let known = known.map_or(0, |printed| printed.length());
    let mut printed = if anew || known < last.min(length) {
        Some(PrintedWriter::new(&out)?)
    } else {
        None
    };
    let progress = monitor.begin(Work::Values, Some(last.min(length)));
    let outlook = Outlook::new(at, (first, last.min(length)), monitor);
    let index = run
        .build_until(
            file.log()?,
            |before, epoch| {
                outlook.written(before);
                writer.put(before, &epoch)
            },
            Sinks {
                interval: INTERVAL,
                vertices: |vertex: &Vertex| checkpoints.put(vertex),
                printed: |call: &Printed<'_>| printed.as_mut().map_or(Ok(()), |all| all.put(call)),
            },
            Watch {
                progress: |time| {
                    progress(time);
                    outlook.tell(time);
                },
                stop: cancel,
            },
        )
        .map_err(built)?;
    let cancelled = cancel.load(Ordering::SeqCst) && index.length < last.min(length);
    // Without a commit, the file remains unchanged.
    if cancelled && index.length < first {
        let how = "before any were finished; nothing was added".to_owned();
        return Err(Reason::Cancelled { how });
    }
    if cancelled && adds == Adds::Instead {
        let how = format!(
            "at t={}: the recording keeps its old values",
            grouped(index.length)
        );
        return Err(Reason::Cancelled { how });
    }
    checkpoints.finish(index.nodes, INTERVAL)?;
    if let Some(printed) = printed {
        printed.finish(index.length)?;
    }
    let segments = path.segments();
    if !cancelled && (anew || segments.grammars().is_none()) {
        segments.write_grammars(&out)?;
    }
    writer.finish(
        &out,
        &Index {
            anew,
            ..index.clone()
        },
    )?;
    out.commit()?;
    drop(progress);
    let stored = TraceFile::open(at)?.last(Kind::VALUES);
    let is_whole = first == 1 && last.min(index.length) >= length;
    let note = Note::ValuesBuilt {
        statements: index.statements,
        part: (!is_whole).then_some((first, index.length)),
        bytes: stored.map_or(0, |values| values.stored()),
        left_out: left_out.words.clone(),
    };
    monitor.note(at, &note);
    if cancelled {
        let window = if first == 1 && last >= length {
            String::new()
        } else {
            format!(" --window {first}..{last}")
        };
        let filters = if left_out.is_nothing() {
            ""
        } else {
            ", and the same functions"
        };
        let how = format!(
            "at t={}: questions before that are answered; continue from there with: afterimage \
             build --lens full{window} {}{filters}",
            grouped(index.length),
            pasted(at)
        );
        return Err(Reason::Cancelled { how });
    }
    if index.length < last.min(length) {
        let note = Note::CutOff {
            values: index.length,
            path: length,
        };
        monitor.note(at, &note);
    }
    Ok(Added::Here)
}
