//! Follows stretches of a run from its snapshots, so that questions are answered before all values
//! are built.

use std::cell::{OnceCell, RefCell};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use afterimage_ids::OpId;
use afterimage_program::Module;
use afterimage_record::{
    Cache, LivePath, RecordError, RecordedRun, Spacing, Stretches, Taken, build_snapshots,
    progress_end, watch,
};
use afterimage_replay::state::{Activation, Bodies, Halt, follow_standing, follow_to};
use afterimage_replay::steps::{Run, SnapshotBuilder, Snapshots, WrittenLines, take_snapshots};
use afterimage_replay::values::Bits;
use afterimage_replay::whole_path::{
    FileSegments, MakeSegment, PathSegment, RecordedDirectory, RecordedPath, StretchDirectory,
    Summary, path_in_memory, path_of_stretches, stretches_of_path,
};
use afterimage_replay::{Recording, WatchFn};
use afterimage_trace::{Kind, LogReader, TraceFile, TraceWriter};
use anyhow::Result;

use crate::Session;
use crate::append::append;
use crate::cancel::cancelled;
use crate::error::{Reason, SessionError};
use crate::monitor::{Note, Work};
use crate::path::NEVER;

/// A run that wrote its path during execution, and the snapshots of the run.
pub(crate) struct Early<'a> {
    session: &'a Session,
    file: &'a TraceFile,
    live: LivePath<'a>,
    snapshots: &'a Snapshots,
    /// The whole path, once it has been requested.
    path: OnceCell<RecordedPath>,
}

/// Passes a recording to `ask` if it has snapshots and the path that a run wrote, but no values.
/// Returns `None` for other recordings.
///
/// # Errors
/// Returns an error if the recording is damaged, or `ask` fails.
pub(crate) fn early<T>(
    session: &Session,
    ask: impl FnOnce(&Early<'_>) -> Result<Option<T>>,
) -> Result<Option<T>> {
    let file = session.newest();
    if file.last(Kind::VALUES_INDEX).is_some() || file.last_begun(Kind::PATH_WORDS).is_none() {
        return Ok(None);
    }
    let Some(snapshots) = session.snapshots()? else {
        return Ok(None);
    };
    let live = LivePath::open(&file, session.bytes(), session.program())?;
    let Some(live) = live.filter(|live| live.length() > 0) else {
        return Ok(None);
    };
    ask(&Early {
        session,
        file: &file,
        live,
        snapshots,
        path: OnceCell::new(),
    })
}

impl Early<'_> {
    /// Returns the number of executed blocks.
    pub fn length(&self) -> u64 {
        self.live.length()
    }

    /// Returns the whole path. Its stretches are made on demand, or all at once if the recording
    /// does not say where they begin.
    ///
    /// # Errors
    /// Returns an error if the file is damaged.
    pub fn path(&self) -> Result<&RecordedPath> {
        if let Some(known) = self.path.get() {
            return Ok(known);
        }
        let path = self.make_path()?;
        Ok(self.path.get_or_init(|| path))
    }

    /// Like [`path`](Self::path), but the caller keeps the path.
    ///
    /// # Errors
    /// Returns an error if the file is damaged.
    pub fn make_path(&self) -> Result<RecordedPath> {
        let module = self.session.module();
        let directory = stretches_of_path(self.file)?.map(|found| found.directory);
        let made =
            directory.map(|directory| path_from_words(self.file, module, directory, usize::MAX));
        if let Some(path) = made.transpose()?.flatten() {
            return Ok(path);
        }
        let whole = self.live.whole(|_| {})?;
        Ok(path_in_memory(self.file, whole.directory, whole.segments)?)
    }

    /// Returns the path from the last snapshot before a block up to the block, and the time of its
    /// first block. For the other parts of the run, the path has only the number of blocks.
    ///
    /// # Errors
    /// Returns an error if the file is damaged.
    pub fn stretch_to(&self, last: u64) -> Result<(RecordedPath, u64)> {
        let number = self.snapshots.at(last.saturating_sub(1));
        let first = number.map_or(0, |number| self.snapshots.times()[number]) + 1;
        let stretch = self.live.stretch(first, last)?;
        let path = path_in_memory(self.file, stretch.directory, stretch.segments)?;
        Ok((path, first))
    }

    /// Passes the run with this path to `ask`, to be followed from its snapshots.
    ///
    /// # Errors
    /// Returns an error if the file is damaged, or `ask` fails.
    pub fn on<T>(
        &self,
        path: impl Into<Arc<RecordedPath>>,
        ask: impl FnOnce(Run<'_, FileSegments>, LogReader) -> Result<T>,
    ) -> Result<T> {
        on_path(self.session, self.file, path, |run, log| {
            let run = Run {
                snapshots: Some(self.snapshots),
                ..run
            };
            ask(run, log)
        })
    }

    /// Finds the arguments of the activation that began with a block.
    ///
    /// # Errors
    /// Returns an error if the file is damaged.
    pub fn arguments(&self, bodies: &Bodies<'_>, entered: u64) -> Result<Option<Box<[Bits]>>> {
        let (path, _) = self.stretch_to(entered)?;
        let start = Activation::on_path(&path, bodies, entered, None)?
            .instance
            .time;
        let halt = Halt {
            start,
            instructions: 0,
        };
        self.on(path, |run, log| {
            let found = follow_standing(run, log, halt, |standing, _, _| {
                let innermost = standing.open.into_iter().next_back();
                innermost.and_then(|open| open.arguments.filter(|_| open.times.entered == entered))
            });
            Ok(found?.flatten())
        })
    }

    /// Finds a variable of the activation that executes a block, as of the moment before an
    /// operator in it.
    ///
    /// # Errors
    /// Returns an error if the file is damaged.
    pub fn variable_before(
        &self,
        bodies: &Bodies<'_>,
        (time, op): (u64, OpId),
        variable: u32,
    ) -> Result<Option<Bits>> {
        let (path, _) = self.stretch_to(time)?;
        let activation = Activation::on_path(&path, bodies, time, Some(op))?;
        let halt = Halt {
            start: activation.instance.time,
            instructions: activation.instructions(),
        };
        self.on(path, |run, log| {
            let mut found = None;
            follow_to(run, log, &[halt], |_, first_result, paused| {
                let (low, high) = (paused.inside.low, paused.inside.high);
                found = activation.followed(low, high, first_result, variable);
            })?;
            Ok(found)
        })
    }
}

/// The stretches of the path that a run wrote. Segments are made from them.
#[derive(Debug)]
struct FromWords(Stretches);

impl MakeSegment for FromWords {
    fn segment(
        &self,
        directory: &RecordedDirectory,
        number: usize,
    ) -> Result<PathSegment, Box<dyn Error + Send + Sync>> {
        Ok(self.0.load(directory, number)?)
    }
}

/// Opens the path of a run and makes its segments on demand, at most `most` of them. Returns `None`
/// if the run did not write its path to the file.
fn path_from_words(
    file: &TraceFile,
    module: &Arc<Module>,
    directory: RecordedDirectory,
    most: usize,
) -> Result<Option<RecordedPath>> {
    let Some(words) = Stretches::open(file, module)? else {
        return Ok(None);
    };
    let maker = (Box::new(FromWords(words)) as Box<_>, most);
    let path = path_of_stretches(file, &module.program, directory, maker)?;
    Ok(Some(path))
}

/// The smallest limit on the number of path segments that a question may make.
const FEW_SEGMENTS: usize = 32;

/// The number of polls in a run of about ten milliseconds. For a shorter run, building all values
/// is faster than executing it again to take snapshots.
const LONG: u64 = 1 << 14;

/// Whether a run has at least [`LONG`] polls.
///
/// # Errors
/// Returns an error if the recording is damaged.
pub(crate) fn is_long(session: &Session) -> Result<bool> {
    let file = session.newest();
    let clock = file.end()?.and_then(|end| end.clock);
    Ok(clock.is_some_and(|polls| polls >= LONG))
}

/// Opens the recording in a form that builds stretches of the path and of the values on demand.
/// Builds at most one of every `share` stretches, or all needed stretches if `share` is 0.
///
/// # Errors
/// Returns an error if the run cannot be executed again, or the recording is damaged.
pub(crate) fn stretched(session: &Session, share: usize) -> Result<Option<Recording>> {
    let file = session.newest();
    if file.last(Kind::STRETCHES).is_none() {
        ensure_for_questions(session)?;
    }
    let file = session.newest();
    let Some(stretches) = stretches_of_path(&file)? else {
        return Ok(None);
    };
    if file.last(Kind::VALUES_INDEX).is_some() {
        return Ok(None);
    }
    let StretchDirectory {
        directory,
        clocks,
        open,
    } = stretches;
    let Some(snapshots) = Snapshots::open(&file)? else {
        return Ok(None);
    };
    // A segment that was dropped from memory must be made again. So keep room for all segments
    // between two snapshots, because a question may follow them repeatedly.
    let apart = most_apart(snapshots.times(), &directory.summaries);
    let most = match directory.summaries.len().checked_div(share) {
        Some(most) => FEW_SEGMENTS + 2 * apart.max(most),
        None => usize::MAX,
    };
    let Some(path) = path_from_words(&file, session.module(), directory, most)? else {
        return Ok(None);
    };
    let watch = watch_of(session, &file);
    let recording = Recording::of(session.at(), file, Arc::clone(session.module()));
    recording.use_path(path);
    let used = recording.use_stretches((&clocks, &open), share, watch)?;
    Ok(used.then_some(recording))
}

/// Returns the largest number of stretches between two snapshots. The beginning and the end of the
/// run count as snapshots.
fn most_apart(snapshots: &[u64], stretches: &[Summary]) -> usize {
    let at = |time: &u64| stretches.partition_point(|stretch| stretch.before < *time);
    let ends = snapshots.iter().map(at).chain([stretches.len()]);
    let mut begin = 0;
    let apart = ends.map(|end| end.saturating_sub(std::mem::replace(&mut begin, end)));
    apart.max().unwrap_or(0)
}

/// Returns a function that executes a run again to find the writers of bytes.
fn watch_of(session: &Session, file: &TraceFile) -> WatchFn {
    let (file, module) = (file.clone(), Arc::clone(session.module()));
    let monitor = session.shared_monitor();
    let cancel = session.cancel().cloned();
    Box::new(move |ends, memory, address| {
        let progress = monitor.begin(Work::Writer, Some(ends.len() as u64));
        let cancel = cancel.as_ref().map(|cancel| cancel.flag());
        let run = RecordedRun {
            file: &file,
            bytes: &module.bytes,
            program: &module.program,
            cache: &Cache::of_user(),
            progress: &progress,
            cancel: cancel.as_deref(),
        };
        Ok(watch(&run, ends, memory, address)?)
    })
}

fn on_path<T>(
    session: &Session,
    file: &TraceFile,
    path: impl Into<Arc<RecordedPath>>,
    ask: impl FnOnce(Run<'_, FileSegments>, LogReader) -> Result<T>,
) -> Result<T> {
    let module = Arc::clone(session.module());
    let recording = Recording::of(session.at(), file.clone(), module);
    recording.use_path(path);
    ask(recording.run()?, file.log()?)
}

/// The way to make snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshotting {
    /// By running the program again. This run also writes its path.
    Executed(Spacing),
    /// By following the run along the path that it wrote, with about this many blocks between
    /// snapshots. This is slow.
    Followed(u64),
}

/// Makes snapshots if there are none. Followed snapshots stay in memory if the file cannot be
/// written. Returns `None` if there are snapshots already, or if they cannot be made in this way.
/// For example, the program may be unsupported, its inputs may have been removed, or the run may
/// not have written its path to the file.
///
/// # Errors
/// Returns an error if the recording is damaged, or the file cannot be written.
pub(crate) fn ensure_snapshots(session: &Session, how: Snapshotting) -> Result<Option<Snapshots>> {
    let append = |file: &TraceFile| {
        let lost = "the snapshots cannot be added to the recording";
        let cancel = session.stop_flag().unwrap_or_default();
        let out = append(session.at(), file, lost, session.monitor(), &cancel);
        out.map_err(|why| SessionError::new(session.at(), why))
    };
    let (made, out) = loop {
        if session.snapshots()?.is_some() {
            return Ok(None);
        }
        let file = session.newest();
        if file.meta()?.is_without_inputs() {
            return Ok(None);
        }
        break match how {
            Snapshotting::Executed(spacing) => {
                // The data that another process added in the meantime may contain the snapshots.
                let Some(out) = append(&file)? else {
                    session.look_again()?;
                    continue;
                };
                (executed(session, &file, spacing, &out)?, Some(out))
            }
            Snapshotting::Followed(every) => (
                followed(session, &file, every)?,
                append(&file).ok().flatten(),
            ),
        };
    };
    match (made, out) {
        (None, _) => Ok(None),
        (Some(made), None) => Ok(Some(Snapshots::in_memory(made))),
        (Some(made), Some(out)) => {
            let snapshots = made.len();
            made.write(&out)?;
            out.commit()?;
            let file = session.look_again()?;
            let added = [
                Kind::SNAPSHOTS,
                Kind::PATH_WORDS,
                Kind::STRETCHES,
                Kind::OPEN,
                Kind::WRITTEN,
            ];
            let sections = added.map(|kind| file.last(kind));
            let bytes = sections.iter().flatten().map(|of| of.stored()).sum();
            let note = Note::SnapshotsTaken { snapshots, bytes };
            session.monitor().note(session.at(), &note);
            Ok(Snapshots::open(&file)?)
        }
    }
}

/// The distances between snapshots and between cuts, in execution time. Cuts are closer, because
/// building the values of a stretch is slow, while following the run from a snapshot is fast.
const SPACING: Spacing = Spacing::Time {
    snapshots: Duration::from_millis(20),
    cuts: Duration::from_micros(250),
};

/// The distances for stepping. Following the run from one snapshot to the next then takes a tenth
/// of a second.
const NEAR: Spacing = Spacing::Time {
    snapshots: Duration::from_millis(6),
    cuts: Duration::from_micros(250),
};

/// Makes snapshots for a question about a moment, if the recording has neither snapshots nor
/// values. Does nothing if snapshots cannot be made: during the run, for a recording that was cut
/// off, for unsupported programs, or if nothing can be added to the file.
///
/// # Errors
/// Returns an error if the run cannot be executed again, or the recording is damaged.
pub(crate) fn ensure_for_questions(session: &Session) -> Result<()> {
    ensure_spaced(session, SPACING)
}

/// Like [`ensure_for_questions`], but for questions about many moments, with snapshots closer
/// together.
///
/// # Errors
/// Returns the same errors as [`ensure_for_questions`].
pub(crate) fn ensure_for_stepping(session: &Session) -> Result<()> {
    ensure_spaced(session, NEAR)
}

fn ensure_spaced(session: &Session, spacing: Spacing) -> Result<()> {
    let file = session.newest();
    if file.last(Kind::VALUES_INDEX).is_some() || file.end()?.is_none() {
        return Ok(());
    }
    let is_lost = |error: &anyhow::Error| {
        let session = error.downcast_ref::<SessionError>();
        session.is_some_and(|error| matches!(*error.why, Reason::Lost { .. }))
    };
    match session.snapshots_made(Snapshotting::Executed(spacing)) {
        Err(error) if !is_lost(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Makes snapshots by running the program again, and adds the path that this run writes to the
/// file. Returns `None` if that is impossible for this program or run.
fn executed(
    session: &Session,
    file: &TraceFile,
    spacing: Spacing,
    out: &TraceWriter,
) -> Result<Option<SnapshotBuilder>> {
    let total = file.end()?.and_then(|end| progress_end(&end));
    let progress = session.monitor().begin(Work::Snapshots, total);
    let cancel = session.stop_flag();
    let run = RecordedRun {
        file,
        bytes: session.bytes(),
        program: session.program(),
        cache: &Cache::of_user(),
        progress: &progress,
        cancel: Some(cancel.as_deref().unwrap_or(&NEVER)),
    };
    let mut found = SnapshotBuilder::new(ROOM);
    // If a snapshot is not later than the previous one, keep its changed pages for the next
    // snapshot.
    let mut changed = Vec::new();
    let made = build_snapshots(&run, spacing, out, |mut taken| {
        changed.append(&mut taken.pages);
        let pages = changed.iter().map(|(page, bytes)| (*page, &**bytes));
        if found.add_pages(taken.time(), (taken.bytes(), taken), pages) {
            changed.clear();
        }
        Ok(found.spacing())
    });
    match made {
        // Snapshots make frames larger, so a deep recursion may run out of stack.
        Err(
            RecordError::NoSnapshots(_)
            | RecordError::OverflowNotFound
            | RecordError::Diverged { .. }
            | RecordError::Rewrite(_),
        ) => return Ok(None),
        made => made.map_err(cancelled("the snapshots"))?,
    }
    let complete = found.complete(|mut taken: Taken| {
        let opened = std::mem::take(&mut taken.opened);
        Ok::<_, RecordError>((taken.complete()?, opened))
    });
    Ok(Some(complete?))
}

/// Makes snapshots about `every` blocks apart by following the run. Returns `None` if no run wrote
/// its path to the file.
fn followed(session: &Session, file: &TraceFile, every: u64) -> Result<Option<SnapshotBuilder>> {
    let live = LivePath::open(file, session.bytes(), session.program())?;
    let Some(live) = live else {
        return Ok(None);
    };
    let whole = live.whole(|_| {})?;
    let path = path_in_memory(file, whole.directory, whole.segments)?;
    let mut found = SnapshotBuilder::new(ROOM);
    on_path(session, file, path, |run, log| {
        Ok(take_snapshots(run, log, every, &mut found)?)
    })?;
    Ok(Some(found))
}

/// The maximum total size of snapshots in bytes before compression.
const ROOM: usize = 1 << 28;

/// Follows the run to verify that the snapshots of a recording are states of it. Returns the first
/// fault, if there is one. Checks nothing if there are values or there is no path, because no
/// question uses the snapshots in these cases.
///
/// # Errors
/// Returns an error if the run cannot be followed.
pub(crate) fn verify_snapshots(
    at: &Path,
    file: &TraceFile,
    module: &Arc<Module>,
    progress: &dyn Fn(u64),
) -> Result<Option<String>> {
    // If there are values, questions use them instead of the snapshots.
    if file.last(Kind::VALUES_INDEX).is_some() {
        return Ok(None);
    }
    let Some(snapshots) = Snapshots::open(file)? else {
        return Ok(None);
    };
    let recording = Recording::of(at, file.clone(), Arc::clone(module));
    let told = stretches_of_path(file)?;
    let path = told
        .as_ref()
        .map(|told| path_from_words(file, module, told.directory.clone(), usize::MAX));
    if let Some((told, path)) = told.as_ref().zip(path.transpose()?.flatten()) {
        if let Err(error) = path.check() {
            return Ok(Some(format!(
                "a stretch between two snapshots does not match its description: {error}"
            )));
        }
        recording.use_path(path);
        let lines = WrittenLines::open(file)?.filter(|lines| lines.clocks() == told.clocks);
        let run = Run {
            progress,
            ..recording.run()?
        };
        let log = || file.log();
        return Ok(afterimage_replay::steps::verify_snapshots(
            run,
            log,
            &snapshots,
            (Some(told), lines.as_ref()),
        )?);
    }
    let is_whole = recording.path().is_ok_and(|path| {
        let mut nodes = path.nodes().values();
        nodes.all(|node| node.left_out == 0)
    });
    let recording = if is_whole {
        recording
    } else {
        let live = LivePath::open(file, &module.bytes, &module.program)?;
        let Some(live) = live else {
            return Ok(None);
        };
        let whole = live.whole(|_| {})?;
        let again = Recording::of(at, file.clone(), Arc::clone(module));
        again.use_path(path_in_memory(file, whole.directory, whole.segments)?);
        again
    };
    let run = Run {
        progress,
        ..recording.run()?
    };
    Ok(afterimage_replay::steps::verify_snapshots(
        run,
        || file.log(),
        &snapshots,
        (None, None),
    )?)
}

/// Holds the first failure of code that cannot return an error.
#[derive(Default)]
pub(crate) struct Failure(RefCell<Option<anyhow::Error>>);

impl Failure {
    /// Returns the value, or keeps the error.
    pub fn keep<T>(&self, found: Result<T>) -> Option<T> {
        match found {
            Ok(found) => Some(found),
            Err(error) => {
                self.0.borrow_mut().get_or_insert(error);
                None
            }
        }
    }

    /// Reports the failure.
    ///
    /// # Errors
    /// Returns an error if there was a failure.
    pub fn report(&self) -> Result<()> {
        match self.0.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}
