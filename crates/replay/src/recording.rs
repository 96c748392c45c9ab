//! Opens a recording, and caches its parts.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use afterimage_ids::{FuncId, OpId};
use afterimage_profile::{ProfileError, Stop, stops};
use afterimage_program::{BlockEnd, Module, Names, OperatorIndex, ParseError, Program, SourceMap};
use afterimage_trace::{Ending, LogReader, Standing, TraceError, TraceFile, TrapCode};
use afterimage_wet::checkpoint::CheckpointError;
use afterimage_wet::{EpochFileError, FileEpochs};
use afterimage_wpp::{OpenActivation, PathError, Segments};

use crate::steps::{
    FileCheckpoints, Run, SnapshotError, Snapshots, WrittenLines, WrittenLinesError,
    recorded_checkpoints, stopped_before,
};
use crate::values::{
    RecordedValues, ValuesError, epochs_of_stretches, recorded_epochs, recorded_values,
};
use crate::whole_path::{
    FileSegments, Numbering, PathFileError, Positions, RecordedPath, Window, WindowCounts,
    recorded_path,
};
use crate::{WatchFn, Writers};

/// A recording and the data built for it, such as its program, its path, its values and its
/// checkpoints.
///
/// A recording never writes to its file. If data has not been built, the error names the missing
/// data. Each part is opened on first use and then kept. Threads can share a recording.
///
/// ```no_run
/// use afterimage_replay::Recording;
///
/// let recording = Recording::open("app.aft".as_ref())?;
/// println!("{} blocks were executed", recording.path()?.length());
/// # Ok::<(), afterimage_replay::RecordingError>(())
/// ```
pub struct Recording {
    at: PathBuf,
    file: TraceFile,
    /// The newest version of the file that was read. The file grows whenever data is built.
    newest: Mutex<TraceFile>,
    module: Arc<Module>,
    stops: OnceLock<Vec<Stop>>,
    path: OnceLock<Arc<RecordedPath>>,
    /// The latest window that was counted, because several questions often have the same window.
    counted: Mutex<Option<(Window, Arc<WindowCounts>)>>,
    epochs: OnceLock<FileEpochs>,
    checkpoints: OnceLock<FileCheckpoints>,
    snapshots: OnceLock<Snapshots>,
    /// The lines that each stretch writes, if stretches are used.
    writers: OnceLock<Arc<Writers>>,
}

/// The reason why a recording, or a part of it, cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be read.
    #[error("{0}")]
    File(#[from] TraceError),
    /// The program in the recording cannot be parsed.
    #[error("the program in the recording cannot be parsed: {0}")]
    Program(#[from] ParseError),
    /// The data about the end of the run is damaged.
    #[error("{0}")]
    End(#[from] ProfileError),
    /// The path is damaged.
    #[error("{0}")]
    Path(#[from] PathFileError),
    /// A segment of the path is damaged.
    #[error("{0}")]
    Segment(#[from] PathError<PathFileError>),
    /// The path has not been built.
    #[error("the recording has no path yet; build it with: afterimage build --lens paths")]
    NoPath,
    /// The values are damaged.
    #[error("{0}")]
    Epochs(#[from] EpochFileError),
    /// The values have not been built.
    #[error("the recording has no values yet; build them with: afterimage build --lens full")]
    NoValues,
    /// The values do not belong to the program.
    #[error("{0}")]
    Values(#[from] Box<ValuesError>),
    /// The checkpoints are damaged.
    #[error("{0}")]
    Checkpoints(#[from] CheckpointError),
    /// The snapshots are damaged.
    #[error("{0}")]
    Snapshots(#[from] SnapshotError),
    /// The index of written lines is damaged.
    #[error("{0}")]
    Written(#[from] WrittenLinesError),
}

/// The number of stretches that may be built in addition to the share of all stretches.
const FEW_STRETCHES: usize = 16;

/// The operator that trapped and ended a run.
#[derive(Clone, Debug)]
pub struct Trap {
    /// The function that contains the operator.
    pub function: FuncId,
    /// The operator that trapped.
    pub op: OpId,
    /// The time of the operator's block, which is the last block of the run.
    pub time: u64,
    /// The reason that the engine reported, in words.
    pub why: String,
}

impl Trap {
    /// Whether this operator, in a block executed at this time, is the operator that trapped.
    pub fn is_at(&self, function: FuncId, op: OpId, time: u64) -> bool {
        (self.function, self.op, self.time) == (function, op, time)
    }
}

impl Recording {
    /// Opens a recording and parses its program. Takes time linear in the program.
    ///
    /// # Errors
    /// Returns an error if the file is not a recording, or is damaged.
    pub fn open(at: &Path) -> Result<Self, RecordingError> {
        let file = TraceFile::open(at)?;
        let module = Module::parse(file.module()?)?;
        Ok(Self::of(at, file, Arc::new(module)))
    }

    /// Creates a recording from an open file and its parsed program. O(1).
    pub fn of(at: &Path, file: TraceFile, module: Arc<Module>) -> Self {
        Self {
            at: at.to_owned(),
            newest: Mutex::new(file.clone()),
            file,
            module,
            stops: OnceLock::new(),
            path: OnceLock::new(),
            counted: Mutex::new(None),
            epochs: OnceLock::new(),
            checkpoints: OnceLock::new(),
            snapshots: OnceLock::new(),
            writers: OnceLock::new(),
        }
    }

    /// Uses a path that was read before or exists only in memory. If another path is already in
    /// use, that path stays.
    pub fn use_path(&self, path: impl Into<Arc<RecordedPath>>) -> &RecordedPath {
        self.path.get_or_init(|| path.into())
    }

    /// Uses stretches instead of stored values, and builds each stretch when an answer needs it.
    /// The path must consist of the stretches. Builds at most one stretch in `share`, plus a few
    /// more. If `share` is 0, there is no limit. `watch` executes stretches again to find the
    /// writer of a byte. Values or stretches that are already in use stay in use. Returns `false`
    /// if the file has no snapshots, or if its snapshots or written lines do not belong to the
    /// stretches.
    ///
    /// # Errors
    /// Returns an error if there is no path, or the path, the snapshots or the end of the run are
    /// damaged.
    pub fn use_stretches(
        &self,
        (clocks, open): (&[u64], &[Vec<OpenActivation>]),
        share: usize,
        watch: WatchFn,
    ) -> Result<bool, RecordingError> {
        let path = Arc::clone(self.shared_path()?);
        let stopped = self.run()?.stopped;
        let file = self.newest();
        // The follower and the builder of stretches each need their own snapshots.
        let (Some(own), Some(snapshots)) = (Snapshots::open(&file)?, Snapshots::open(&file)?)
        else {
            return Ok(false);
        };
        let lines = WrittenLines::open(&file)?;
        let Some(lines) = lines.filter(|lines| lines.clocks() == clocks) else {
            return Ok(false);
        };
        let stretches = path.segments().summaries();
        let is_cut = |time: &u64| stretches.binary_search_by_key(time, |of| of.before).is_ok();
        if !own.times().iter().all(is_cut) {
            return Ok(false);
        }
        let stretches = path.segments().summaries().len();
        let most = match stretches.checked_div(share) {
            Some(most) => FEW_STRETCHES + most,
            None => usize::MAX,
        };
        self.snapshots.get_or_init(|| own);
        let writers = self
            .writers
            .get_or_init(|| Arc::new(Writers::new(lines, watch)));
        self.epochs.get_or_init(|| {
            let from = (snapshots, Arc::clone(writers));
            let of = (&file, &self.module);
            epochs_of_stretches(of, (path, open), from, (stopped, most))
        });
        Ok(true)
    }

    /// Returns the index of the bytes that each stretch writes, if [stretches](Self::use_stretches)
    /// are used.
    pub fn writers(&self) -> Option<&Writers> {
        self.writers.get().map(|writers| &**writers)
    }

    /// Returns the path of the recording's file.
    pub fn at(&self) -> &Path {
        &self.at
    }

    /// Returns the file as it was when the recording was opened.
    pub fn file(&self) -> &TraceFile {
        &self.file
    }

    /// Returns the file as it was when the path or the values were last looked up. Building them
    /// adds to the file.
    pub fn newest(&self) -> TraceFile {
        let newest = self.newest.lock();
        newest.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the current state of the file. From then on, [`newest`](Self::newest) returns this
    /// state.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn look_again(&self) -> Result<TraceFile, TraceError> {
        let again = TraceFile::open(&self.at)?;
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = again.clone();
        Ok(again)
    }

    /// Returns the boundary log. It lists, in order, the data that the host passed to the program.
    ///
    /// # Errors
    /// Returns an error if the log is damaged.
    pub fn log(&self) -> Result<LogReader, TraceError> {
        self.file.log()
    }

    /// Returns the recorded module.
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// Returns the bytes of the module.
    pub fn bytes(&self) -> &[u8] {
        &self.module.bytes
    }

    /// Returns the parsed program.
    pub fn program(&self) -> &Program {
        &self.module.program
    }

    /// Returns the position of each open activation at the end of the run, innermost first. The
    /// list is empty if the end is unknown. The first call is near-linear in the program.
    ///
    /// # Errors
    /// Returns an error if the end of the run is damaged.
    pub fn stops(&self) -> Result<&[Stop], RecordingError> {
        let found = kept(&self.stops, || {
            let Some(end) = self.file.end()? else {
                return Ok(Vec::new());
            };
            let index = OperatorIndex::new(self.program(), self.bytes());
            Ok(stops(self.program(), &index, &end)?)
        });
        found.map(Vec::as_slice)
    }

    /// Returns the path of the run. The first call is linear in the path's directory.
    ///
    /// # Errors
    /// Returns an error if the path has not been built, or is damaged.
    pub fn path(&self) -> Result<&RecordedPath, RecordingError> {
        self.shared_path().map(|path| &**path)
    }

    fn shared_path(&self) -> Result<&Arc<RecordedPath>, RecordingError> {
        kept(&self.path, || {
            self.added(|file| Ok(recorded_path(file, self.program())?))?
                .map(Arc::new)
                .ok_or(RecordingError::NoPath)
        })
    }

    /// Counts the executions of blocks in a window of the path. Takes O(grammar) for each segment
    /// that the window touches, or no time if the window is the latest one.
    ///
    /// # Errors
    /// Returns an error if the path has not been built, or a segment cannot be read.
    pub fn window_counts(&self, window: Window) -> Result<Arc<WindowCounts>, RecordingError> {
        let mut latest = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, counts)) = &*latest
            && *known == window
        {
            return Ok(Arc::clone(counts));
        }
        let counts = Arc::new(WindowCounts::new(self.path()?, window)?);
        *latest = Some((window, Arc::clone(&counts)));
        Ok(counts)
    }

    /// Returns the epochs of the whole execution trace. The first call is linear in their index.
    ///
    /// # Errors
    /// Returns an error if the epochs have not been built, or are damaged.
    pub fn epochs(&self) -> Result<&FileEpochs, RecordingError> {
        let path = self.path()?;
        kept(&self.epochs, || {
            self.added(|file| Ok(recorded_epochs(file, path)?))?
                .ok_or(RecordingError::NoValues)
        })
    }

    /// Returns the values of the run, by execution.
    ///
    /// # Errors
    /// Returns an error if the values have not been built, or are damaged.
    pub fn values(&self) -> Result<RecordedValues<'_>, RecordingError> {
        let (path, epochs) = (self.path()?, self.epochs()?);
        let values = recorded_values(self.program(), self.bytes(), path, epochs);
        Ok(values.map_err(Box::new)?)
    }

    /// Returns the checkpoints from which the run can be followed, if the file has any.
    ///
    /// # Errors
    /// Returns an error if the checkpoints are damaged, or there is no path.
    pub fn checkpoints(&self) -> Result<Option<&FileCheckpoints>, RecordingError> {
        if let Some(known) = self.checkpoints.get() {
            return Ok(Some(known));
        }
        let found = recorded_checkpoints(&self.newest(), self.path()?)?;
        Ok(found.map(|made| self.checkpoints.get_or_init(|| made)))
    }

    /// Returns the run in a form that can be followed from the beginning.
    ///
    /// # Errors
    /// Returns an error if there is no path, or the path or the end of the run is damaged.
    pub fn run(&self) -> Result<Run<'_, FileSegments>, RecordingError> {
        let path = self.path()?;
        let end = self.file.end()?;
        Ok(Run {
            program: self.program(),
            module: self.bytes(),
            path,
            continuations: &path.segments().directory().continuations,
            stopped: end.and_then(|end| stopped_before(self.program(), self.bytes(), &end)),
            checkpoints: None,
            snapshots: None,
            progress: &|_| {},
        })
    }

    /// Returns the run in a form that can be followed from the beginning, from a checkpoint, or
    /// from a snapshot if snapshots are used.
    ///
    /// # Errors
    /// Returns the same errors as [`run`](Self::run), and an error if the checkpoints are damaged.
    pub fn run_from_checkpoints(&self) -> Result<Run<'_, FileSegments>, RecordingError> {
        Ok(Run {
            checkpoints: self.checkpoints()?,
            snapshots: self.snapshots.get(),
            ..self.run()?
        })
    }

    /// Returns the positions in the run. Calls keep their numbers in the whole run, even if the
    /// path leaves out some calls.
    ///
    /// # Errors
    /// Returns an error if there is no path, or the path or the end of the run is damaged.
    pub fn positions<'a>(
        &'a self,
        names: &'a Names,
        source: &'a SourceMap<'a>,
    ) -> Result<Positions<'a, FileSegments>, RecordingError> {
        let (path, stops) = (self.path()?, self.stops()?);
        let positions = Positions::new(path, self.program(), self.bytes(), names, source, stops);
        Ok(positions.numbered(Numbering::of(path.segments().directory())))
    }

    /// Returns the operator at which the run ended, in its last block. This operator trapped,
    /// called a host function that did not return, or was next when the run was stopped.
    ///
    /// # Errors
    /// Returns an error if the end of the run is damaged.
    pub fn final_operator(&self) -> Result<Option<(FuncId, OpId)>, RecordingError> {
        let Some(end) = self.file.end()? else {
            return Ok(None);
        };
        let mut frames = end.frames.iter();
        let frame = frames.find(|frame| frame.standing != Standing::NotEntered);
        Ok(frame.zip(self.stops()?.first()).and_then(|(frame, stop)| {
            let op = match frame.standing {
                Standing::At => OpId::from_u32(stop.next.as_u32().checked_sub(1)?),
                Standing::Before | Standing::NotEntered => stop.next,
            };
            let function = self.program().function(stop.function)?;
            (function.block_of(op) == Some(stop.block)).then_some((stop.function, op))
        }))
    }

    /// Returns the operator in which the run ended, with the time of its block. This is the [final
    /// operator](Self::final_operator), or the operator that threw an uncaught exception. The
    /// recording does not list the functions that the exception left, but no code was executed
    /// after the throw.
    ///
    /// # Errors
    /// Returns an error if there is no path, or the path or the end of the run is damaged.
    pub fn ended_in(&self) -> Result<Option<(u64, FuncId, OpId)>, RecordingError> {
        let path = self.path()?;
        let end = self.file.end()?.map(|end| end.ending);
        if !matches!(end, Some(Ending::Exception { .. })) {
            let stood = self.final_operator()?;
            return Ok(stood.map(|(function, op)| (path.length(), function, op)));
        }
        let Some(last) = path.cursor().seek(path.length())? else {
            return Ok(None);
        };
        let node = &path.nodes()[last.node];
        let function = self.program().function(node.function);
        let block = function.zip(node.blocks.last());
        let block = block.and_then(|(function, &block)| function.cfg.blocks.get(block));
        let block = block.filter(|block| block.end == BlockEnd::Throw);
        Ok(block.and_then(|block| {
            let op = OpId::from_u32(block.ops.end.as_u32().checked_sub(1)?);
            Some((path.length(), node.function, op))
        }))
    }

    /// Returns the operator that trapped, if the run ended with a trap.
    ///
    /// # Errors
    /// Returns the same errors as [`ended_in`](Self::ended_in).
    pub fn trap(&self) -> Result<Option<Trap>, RecordingError> {
        let end = self.file.end()?;
        let why = match end.map(|end| end.ending) {
            Some(Ending::Trapped {
                code: TrapCode::Other,
                message,
            }) => message,
            Some(Ending::Trapped { code, .. }) => code.to_string(),
            _ => return Ok(None),
        };
        let time = self.path()?.length();
        Ok(self.final_operator()?.map(|(function, op)| Trap {
            function,
            op,
            time,
            why,
        }))
    }

    /// Returns the result of `find` on the file. If `find` returns `None`, reads the file again and
    /// searches the new version, because another process may have added the data.
    fn added<T>(
        &self,
        find: impl Fn(&TraceFile) -> Result<Option<T>, RecordingError>,
    ) -> Result<Option<T>, RecordingError> {
        if let Some(found) = find(&self.newest())? {
            return Ok(Some(found));
        }
        find(&self.look_again()?)
    }
}

/// Returns the contents of a cell, and computes them if the cell is empty. Two threads may both
/// compute them, but only one result is kept.
fn kept<T>(
    cell: &OnceLock<T>,
    make: impl FnOnce() -> Result<T, RecordingError>,
) -> Result<&T, RecordingError> {
    if let Some(known) = cell.get() {
        return Ok(known);
    }
    let made = make()?;
    Ok(cell.get_or_init(|| made))
}

const _: () = {
    const fn shared_by_threads<T: Send + Sync>() {}
    shared_by_threads::<Recording>();
};
