//! Opens recordings that grow as questions are asked about them.

use std::collections::HashSet;
use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use afterimage_ids::Counts;
use afterimage_profile::{CodeFilter, Folded, Profile, Remarks, Resolver};
use afterimage_program::{Names, SourceMap};
use afterimage_record::{LivePath, PathFilter};
use afterimage_replay::state::{DebugError, Variables};
use afterimage_replay::steps::{Operators, SnapshotError, Snapshots};
use afterimage_replay::whole_path::{
    FileSegments, Positions, RecordedPath, recorded_directory, recorded_path_of,
};
use afterimage_replay::{Recording, RecordingError};
use afterimage_trace::Kind;
use anyhow::Context;

use crate::cancel::Cancel;
use crate::check::{self, Needs};
use crate::counts::{self, Counting};
use crate::debug_information::DebugInformation;
use crate::early::{self, Snapshotting};
use crate::error::{QuestionError, Reason, SessionError};
use crate::files;
use crate::monitor::{Monitor, Note, Silent};
use crate::path::{self, Added, Empty};
use crate::source::{check_code, source_map_with};
use crate::sources::{SourceFiles, SourcePaths};
use crate::values::{self, Adds, KeptValues};

/// The reciprocal of the share of stretches that a question may build. Beyond this share, building
/// all values at once is as fast.
const SHARE: usize = 8;

/// A recording, and the means to build the parts of it that questions need.
///
/// Built data is added to the file, where the next session finds it. If two processes build at the
/// same time, one waits for the other.
///
/// The [`Recording`] has the methods that only read.
pub struct Session {
    recording: Arc<Recording>,
    monitor: Arc<dyn Monitor + Send>,
    /// Remarks that the monitor has already received.
    remarked: Arc<Mutex<HashSet<String>>>,
    snapshots: Arc<OnceLock<Snapshots>>,
    /// Counts that this session made. The file may not contain them.
    counts: Arc<OnceLock<Counts>>,
    /// The filter that selects the user's own code.
    code: CodeFilter,
    sources: Arc<SourceFiles>,
    debug: Arc<DebugInformation>,
    /// Can stop builds for this session's questions.
    cancel: Option<Arc<Cancel>>,
    /// The same recording, but with stretches built on demand.
    stretched: OnceLock<Option<Box<Session>>>,
}

impl Remarks for Session {
    fn remark(&self, text: String) {
        let mut known = self.remarked.lock().unwrap_or_else(PoisonError::into_inner);
        if known.insert(text.clone()) {
            self.monitor.note(self.at(), &Note::Remark(text));
        }
    }
}

impl Deref for Session {
    type Target = Recording;

    fn deref(&self) -> &Recording {
        &self.recording
    }
}

impl Session {
    /// Opens a recording, without reporting progress.
    ///
    /// # Errors
    /// Returns an error if the file is not a recording or is damaged.
    pub fn open(at: &Path) -> Result<Self, QuestionError> {
        Ok(Self::open_with(at, Silent)?)
    }

    /// Like [`open`](Self::open), with a monitor for builds.
    ///
    /// # Errors
    /// Returns the same errors as [`open`](Self::open).
    pub fn open_with(at: &Path, monitor: impl Monitor + Send + 'static) -> anyhow::Result<Self> {
        let file = files::recording(at)?;
        let module = files::recorded_program(at, &file)?.module;
        Ok(Self::of(Recording::of(at, file, module), monitor))
    }

    /// Like [`open_with`](Self::open_with), but for questions that need the end of the run. Reads
    /// the path and the program at the same time.
    ///
    /// # Errors
    /// Returns the same errors as [`open`](Self::open), and an error if the program is still
    /// running.
    pub fn open_finished(
        at: &Path,
        monitor: impl Monitor + Send + 'static,
    ) -> anyhow::Result<Self> {
        let file = files::recording(at)?;
        files::is_over(at, &file)?;
        let (loaded, directory) = thread::scope(|scope| {
            let read = || recorded_directory(&file);
            let other = thread::Builder::new().spawn_scoped(scope, read);
            let loaded = files::recorded_program(at, &file);
            // If no second thread can be started, this thread reads the path.
            let directory = match other.map(thread::ScopedJoinHandle::join) {
                Ok(Ok(directory)) => directory,
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                Err(_) => read(),
            };
            (loaded, directory)
        });
        let module = loaded?.module;
        let path = directory.and_then(|found| recorded_path_of(&file, &module.program, found));
        let recording = Recording::of(at, file, module);
        // If the path is damaged or missing, the next look-up reports it again.
        if let Ok(Some(path)) = path {
            recording.use_path(path);
        }
        Ok(Self::of(recording, monitor))
    }

    /// Makes a session for an open recording.
    pub fn of(recording: Recording, monitor: impl Monitor + Send + 'static) -> Self {
        let sources = sources_of(&recording, SourcePaths::default());
        Self {
            recording: Arc::new(recording),
            sources,
            debug: Arc::default(),
            monitor: Arc::new(monitor),
            remarked: Arc::default(),
            snapshots: Arc::default(),
            counts: Arc::default(),
            code: CodeFilter::default(),
            cancel: None,
            stretched: OnceLock::new(),
        }
    }

    /// Sets which code counts as the user's own. Text output folds other code.
    #[must_use]
    pub fn looking_at(self, code: CodeFilter) -> Self {
        Self {
            code,
            stretched: OnceLock::new(),
            ..self
        }
    }

    /// Refuses a glob that selects no code of the program.
    ///
    /// # Errors
    /// Returns an error if [`looking_at`](Self::looking_at) was given such a glob.
    pub fn check_code(&self) -> anyhow::Result<()> {
        let checked = match self.code {
            CodeFilter::Files(_) => check_code(self.source_map(), &self.code),
            CodeFilter::Mine | CodeFilter::All => Ok(()),
        };
        checked.with_context(|| self.at().display().to_string())
    }

    /// Sets where to look for source files.
    #[must_use]
    pub fn reading(self, paths: SourcePaths) -> Self {
        let sources = sources_of(&self.recording, paths);
        Self {
            sources,
            // The sources decide between several files with the same name, so the debug information
            // is read again.
            debug: Arc::default(),
            stretched: OnceLock::new(),
            ..self
        }
    }

    /// Returns a session for the same recording. `cancel` stops the questions of the new session.
    /// The two sessions share everything that either builds.
    #[must_use]
    pub fn cancelled_by(&self, cancel: Arc<Cancel>) -> Self {
        Self {
            cancel: Some(cancel),
            snapshots: Arc::clone(&self.snapshots),
            ..self.on(Arc::clone(&self.recording))
        }
    }

    /// Returns the object that can stop builds for this session's questions, if there is one.
    pub(crate) fn cancel(&self) -> Option<&Arc<Cancel>> {
        self.cancel.as_ref()
    }

    /// Returns the flag that stops a build that begins now, if the session can be cancelled.
    pub(crate) fn stop_flag(&self) -> Option<Arc<AtomicBool>> {
        self.cancel.as_ref().map(|cancel| cancel.flag())
    }

    /// Returns a copy of this session for another recording.
    fn on(&self, recording: Arc<Recording>) -> Self {
        Self {
            recording,
            monitor: Arc::clone(&self.monitor),
            remarked: Arc::clone(&self.remarked),
            snapshots: Arc::default(),
            counts: Arc::clone(&self.counts),
            code: self.code.clone(),
            cancel: self.cancel.clone(),
            sources: Arc::clone(&self.sources),
            debug: Arc::clone(&self.debug),
            stretched: OnceLock::new(),
        }
    }

    /// Returns the program's source files.
    pub fn sources(&self) -> &Arc<SourceFiles> {
        &self.sources
    }

    /// Returns the filter that selects the user's own code.
    pub fn code(&self) -> &CodeFilter {
        &self.code
    }

    /// Returns a source map that attributes inlined library code to the user's own lines into which
    /// it was inlined. If the program contains no code of the user's own, all code counts as the
    /// user's own.
    pub(crate) fn folded<'s>(&self, source: &'s SourceMap<'s>) -> Folded<'s> {
        Folded::if_any(source, &self.code)
    }

    /// Returns a session for the same recording that builds stretches of its path and values on
    /// demand. Adds only snapshots to the file. One re-execution takes them. Returns `None` if the
    /// values exist, the run is short, or snapshots cannot be taken.
    ///
    /// # Errors
    /// Returns an error if the run cannot be executed again, or the recording is damaged.
    fn stretched(&self) -> anyhow::Result<Option<&Self>> {
        if self.newest().last(Kind::VALUES_INDEX).is_some() {
            return Ok(None);
        }
        if let Some(known) = self.stretched.get() {
            return Ok(known.as_deref());
        }
        let found = if early::is_long(self)? {
            self.on_stretches(SHARE)?.map(Box::new)
        } else {
            None
        };
        Ok(self.stretched.get_or_init(|| found).as_deref())
    }

    /// Like [`stretched`](Self::stretched), but builds at most one of every `share` stretches, or
    /// all needed stretches if `share` is 0.
    ///
    /// # Errors
    /// Returns the same errors as [`stretched`](Self::stretched).
    #[doc(hidden)]
    pub fn on_stretches(&self, share: usize) -> anyhow::Result<Option<Self>> {
        let found = early::stretched(self, share)?;
        Ok(found.map(|recording| Self {
            stretched: OnceLock::from(None),
            ..self.on(Arc::new(recording))
        }))
    }

    /// Like [`stretched`](Self::stretched), but for stepping through the run, without a limit on
    /// stretches. If that is impossible, builds the path and the values, and returns `None`.
    ///
    /// # Errors
    /// Returns an error if the program is still running, the run cannot be executed again, or the
    /// recording is damaged.
    pub(crate) fn for_stepping(&self) -> anyhow::Result<Option<Self>> {
        if early::is_long(self)? && self.newest().last(Kind::VALUES_INDEX).is_none() {
            early::ensure_for_stepping(self)?;
            if let Some(stretched) = self.on_stretches(0)? {
                return Ok(Some(stretched));
            }
        }
        self.ensure_whole_path()?;
        self.ensure_all_values()?;
        Ok(None)
    }

    /// Answers a question that needs the path, or both the path and the values. If the recording
    /// lacks them, first tries to answer from stretches of the run, which are built on demand. If
    /// these do not suffice, `build` adds the missing parts, and the whole run answers the
    /// question.
    ///
    /// # Errors
    /// Returns an error if the run cannot be executed again, the recording is damaged, or `build`
    /// or `ask` fails.
    pub fn answer<R>(
        &self,
        needs: Needs,
        build: impl FnOnce(&Self) -> anyhow::Result<()>,
        mut ask: impl FnMut(&Self) -> anyhow::Result<R>,
    ) -> Result<R, QuestionError> {
        self.about(|| {
            if !check::is_built(self, needs)
                && let Some(found) = self.ask_stretches(&mut ask)?
            {
                return Ok(found);
            }
            build(self)?;
            ask(self)
        })
    }

    /// Runs `ask`, and adds the recording's path to its error.
    pub(crate) fn about<R>(
        &self,
        ask: impl FnOnce() -> anyhow::Result<R>,
    ) -> Result<R, QuestionError> {
        ask().map_err(|error| error.context(self.at().display().to_string()).into())
    }

    /// Answers from stretches of the run, if the recording has no values. Returns `None` if there
    /// are no stretches, or if they do not suffice for the answer.
    ///
    /// # Errors
    /// Returns an error if the run cannot be executed again, the recording is damaged, or `ask`
    /// fails.
    pub(crate) fn ask_stretches<R>(
        &self,
        ask: impl FnOnce(&Self) -> anyhow::Result<R>,
    ) -> anyhow::Result<Option<R>> {
        let Some(stretched) = self.stretched()? else {
            return Ok(None);
        };
        stretched.path()?.segments().begin();
        stretched.epochs()?.begin();
        let answer = ask(stretched);
        if answer.is_err() && stretched.needs_too_many_stretches()? {
            return Ok(None);
        }
        answer.map(Some)
    }

    /// Whether more stretches were needed than a question may build.
    ///
    /// # Errors
    /// Returns an error if there is no path, or there are no values.
    pub(crate) fn needs_too_many_stretches(&self) -> Result<bool, RecordingError> {
        let of_path = self.path()?.segments().are_too_many();
        Ok(of_path || self.epochs()?.are_too_many())
    }

    /// Returns the source map of the program. The first question reads it, in time near-linear in
    /// the debug information, and reports unreadable parts to the monitor.
    pub fn source_map(&self) -> &SourceMap<'_> {
        let sources = Arc::clone(&self.sources);
        self.debug.source_map(self.module(), |module| {
            source_map_with(self.at(), module, self.monitor(), sources)
        })
    }

    /// Returns the names of the program's functions. The first question reads them, and the source
    /// map if a function has no other name.
    pub fn program_names(&self) -> &Names {
        let source = || self.source_map();
        self.debug.names(|| self.module().names_with(&source))
    }

    /// Returns the program's variables. The first question reads the debug information.
    ///
    /// # Errors
    /// Returns an error if the module has no debug information, or it describes no variables.
    pub(crate) fn variables(&self) -> Result<&Variables<'_>, DebugError> {
        let found = self.debug.variables(self.module());
        found.as_ref().map_err(DebugError::clone)
    }

    /// Returns the program's operators, with their names and source positions.
    pub(crate) fn operators(&self) -> Operators<'_> {
        let operators = Operators::new(self.program(), self.bytes(), self.source_map());
        operators.with_cache(&self.debug.operators)
    }

    /// Returns a resolver of places in the program. The monitor receives a remark if a place is not
    /// taken literally.
    pub fn resolver<'a>(&'a self, names: &'a Names, source: &'a SourceMap<'a>) -> Resolver<'a> {
        let resolver = Resolver::new(self.program(), self.bytes(), names, source);
        resolver.heard_by(Some(self))
    }

    /// Returns a resolver of positions in the run. The monitor receives remarks as for
    /// [`resolver`](Self::resolver).
    ///
    /// # Errors
    /// Returns an error if the path was not built, or is damaged.
    pub fn positions<'a>(
        &'a self,
        names: &'a Names,
        source: &'a SourceMap<'a>,
    ) -> Result<Positions<'a, FileSegments>, RecordingError> {
        Ok(self.recording.positions(names, source)?.heard_by(self))
    }

    pub(crate) fn shared_monitor(&self) -> Arc<dyn Monitor + Send> {
        Arc::clone(&self.monitor)
    }

    /// Returns the monitor that receives the session's reports.
    pub fn monitor(&self) -> &dyn Monitor {
        &*self.monitor
    }

    /// Refuses a recording whose program input was stripped.
    ///
    /// # Errors
    /// Returns an error if the input was stripped, or the recording is damaged.
    pub fn ensure_inputs(&self) -> Result<(), SessionError> {
        let log = self.file().log();
        self.named(log.map(drop).map_err(Reason::from))
    }

    /// Returns the path. Builds it if it does not exist yet. If the program is still running,
    /// returns the path up to now.
    ///
    /// # Errors
    /// Returns an error if the run cannot be executed again, or nothing can be added to the file.
    pub fn ensure_path(&self) -> Result<&RecordedPath, SessionError> {
        let found = self.named(self.built_path())?;
        self.named(path::note_gaps(&self.recording, self.monitor()))?;
        Ok(found)
    }

    /// Returns the path. Builds it if it does not exist yet. Refuses a path with gaps.
    ///
    /// # Errors
    /// Returns the same errors as [`ensure_path`](Self::ensure_path), and an error if parts were
    /// left out.
    pub fn ensure_whole_path(&self) -> Result<&RecordedPath, SessionError> {
        let found = self.named(self.built_path())?;
        self.named(path::refuse_gaps(self.recording.at(), found))?;
        Ok(found)
    }

    fn built_path(&self) -> Result<&RecordedPath, Reason> {
        let recording = &self.recording;
        if let Some(recorder) = path::recorder(recording.at(), recording.file()) {
            return Ok(recording.use_path(path::so_far(recording, recorder, self.monitor())?));
        }
        // Other questions about the same recording may need only a part of the run. Make snapshots
        // for them first, because these are ready sooner than the whole path. The path is built
        // even if there are no snapshots.
        let is_asked_more = self.cancel.is_some();
        if is_asked_more
            && matches!(recording.path(), Err(RecordingError::NoPath))
            && early::is_long(self).unwrap_or(false)
        {
            let _ = early::ensure_for_questions(self);
        }
        let cancel = self.stop_flag();
        path::ensure_path(
            recording,
            &PathFilter::default(),
            self.monitor(),
            cancel.as_deref(),
        )
    }

    /// Reads a stretch of a path that was not built but was written during the run, and uses it as
    /// the recording's path. `wanted` receives the number of blocks of the run, and the largest
    /// number of blocks in one of its paths. It returns the first and the last block of the
    /// stretch. If it returns `None`, or the path has been built, this method reads nothing and
    /// returns `false`.
    ///
    /// # Errors
    /// Returns an error if the file is damaged, or `wanted` fails.
    pub fn use_stretch<E: From<SessionError>>(
        &self,
        wanted: impl FnOnce(u64, u64) -> Result<Option<(u64, u64)>, E>,
    ) -> Result<bool, E> {
        let named = |why| E::from(SessionError::new(self.recording.at(), why));
        let found = path::stretch(&self.recording, wanted, named)?;
        Ok(found.map(|path| self.recording.use_path(path)).is_some())
    }

    /// Returns the snapshots from which the run can be followed on stretches of its path, if there
    /// are any.
    ///
    /// # Errors
    /// Returns an error if the snapshots are damaged.
    pub fn snapshots(&self) -> Result<Option<&Snapshots>, SnapshotError> {
        if let Some(known) = self.snapshots.get() {
            return Ok(Some(known));
        }
        let found = Snapshots::open(&self.recording.newest())?;
        Ok(found.map(|found| self.snapshots.get_or_init(|| found)))
    }

    /// Makes snapshots if there are none. Returns `false` if none can be made.
    ///
    /// # Errors
    /// Returns an error if the run cannot be executed again, the recording is damaged, or nothing
    /// can be added to the file.
    #[doc(hidden)]
    pub fn ensure_snapshots(&self, how: Snapshotting) -> Result<bool, QuestionError> {
        let made = self.snapshots_made(how);
        Ok(made.map_err(|error| error.context(self.at().display().to_string()))?)
    }

    pub(crate) fn snapshots_made(&self, how: Snapshotting) -> anyhow::Result<bool> {
        let Some(found) = early::ensure_snapshots(self, how)? else {
            return Ok(self.snapshots.get().is_some());
        };
        self.snapshots.get_or_init(|| found);
        Ok(true)
    }

    /// Builds the values if they do not exist yet. The path must exist. `cancel` stops the build
    /// and keeps the values built so far.
    ///
    /// # Errors
    /// Returns an error if the program is still running, the path has gaps, the run cannot be
    /// followed, nothing can be added to the file, or the build was cancelled.
    pub fn ensure_values(&self, cancel: &AtomicBool) -> Result<(), SessionError> {
        let found = values::ensure_values(&self.recording, self.monitor(), cancel);
        self.named(found).map(|_| ())
    }

    /// Builds the values if they do not exist yet. Cancelling the session stops the build.
    ///
    /// # Errors
    /// Returns the same errors as [`ensure_values`](Self::ensure_values).
    pub fn ensure_all_values(&self) -> Result<(), SessionError> {
        self.ensure_values(&self.stop_flag().unwrap_or_default())
    }

    /// Adds a filtered path, which replaces the present path.
    ///
    /// # Errors
    /// Returns the same errors as [`ensure_path`](Self::ensure_path), and an error if the filter
    /// keeps nothing and `empty` refuses this.
    pub fn add_path(&self, filter: &PathFilter, empty: Empty) -> Result<bool, SessionError> {
        let cancel = self.stop_flag();
        let added = path::add_path(
            &self.recording,
            filter,
            empty,
            self.monitor(),
            cancel.as_deref(),
        );
        Ok(self.named(added)? == Added::Here)
    }

    /// Builds the path of a run that has just ended from the data that the run wrote for it, and
    /// then removes that data from the recording.
    ///
    /// # Errors
    /// Returns the same errors as [`ensure_path`](Self::ensure_path).
    pub fn compact_path(&self, filter: &PathFilter) -> Result<(), SessionError> {
        let cancel = self.stop_flag();
        let built = path::ensure_path(&self.recording, filter, self.monitor(), cancel.as_deref());
        self.named(built)?;
        let dropped = path::drop_words(self.recording.at(), self.monitor(), cancel.as_deref());
        self.named(dropped)
    }

    /// Adds values. Returns `false` if another process has already added data that makes this
    /// unnecessary.
    ///
    /// # Errors
    /// Returns the same errors as [`ensure_values`](Self::ensure_values).
    pub fn add_values(
        &self,
        kept: &KeptValues,
        adds: Adds,
        cancel: &AtomicBool,
    ) -> Result<bool, SessionError> {
        let added = values::add_values(&self.recording, kept, adds, self.monitor(), cancel);
        Ok(self.named(added)? == Added::Here)
    }

    /// Returns the exact counts of the run. If the file has no counts, makes them by running the
    /// program again. Returns `None` if the recording was cut off before the end of the run was
    /// written.
    ///
    /// # Errors
    /// Returns an error if the run cannot be executed again.
    pub fn ensure_counts(&self) -> Result<Option<Counts>, SessionError> {
        self.named(counts::ensure_counts(self))
    }

    /// Returns the counts that this session has made, or calls `make` to make them.
    pub(crate) fn counts_once(
        &self,
        make: impl FnOnce() -> Result<Option<Counts>, Reason>,
    ) -> Result<Option<Counts>, Reason> {
        if let Some(known) = self.counts.get() {
            return Ok(Some(known.clone()));
        }
        let made = make()?;
        Ok(made.map(|made| self.counts.get_or_init(|| made).clone()))
    }

    /// Counts again in the way that `counting` specifies. Compares the result with the counts in
    /// the file, or stores it if there are none. Returns `None` in the same cases as
    /// [`ensure_counts`](Self::ensure_counts).
    ///
    /// # Errors
    /// Returns the same errors as [`ensure_counts`](Self::ensure_counts), and an error if the
    /// counts differ.
    pub fn count(&self, counting: &Counting<'_>) -> Result<Option<Counts>, SessionError> {
        self.named(counts::made(self, counting))
    }

    /// Returns the number of blocks that the run executed. Counts them if the recording does not
    /// contain the number.
    ///
    /// # Errors
    /// Returns an error if the run cannot be executed again, or its end is unknown.
    pub fn length(&self) -> anyhow::Result<u64> {
        // A damaged path is ignored here, because it can be built again.
        if let Ok(path) = self.path() {
            return Ok(path.length());
        }
        let file = self.newest();
        let live = LivePath::open(&file, self.bytes(), self.program())?;
        match live.map_or(0, |live| live.length()) {
            0 => Ok(self.profile(|profile| Ok(profile.totals().blocks))?),
            length => Ok(length),
        }
    }

    /// Passes the profile of the run to `ask`: the exact counts of functions, lines, blocks, edges
    /// and instructions.
    ///
    /// # Errors
    /// Returns an error if the run cannot be executed again, its end is unknown, or `ask` fails.
    pub fn profile<R>(
        &self,
        ask: impl FnOnce(&Profile<'_>) -> anyhow::Result<R>,
    ) -> Result<R, QuestionError> {
        let prepare = || -> anyhow::Result<R> {
            let Some(counts) = self.ensure_counts()? else {
                return Err(anyhow::Error::from(SessionError::new(
                    self.at(),
                    Reason::NoCounts,
                )));
            };
            let (source, stops) = (self.source_map(), self.stops()?);
            let (program, bytes) = (self.program(), self.bytes());
            ask(&Profile::new(
                program,
                bytes,
                &counts,
                stops,
                self.program_names(),
                source,
            )?)
        };
        prepare().map_err(QuestionError::from)
    }

    fn named<T>(&self, found: Result<T, Reason>) -> Result<T, SessionError> {
        found.map_err(|why| SessionError::new(self.recording.at(), why))
    }
}

/// Returns a recording's source files.
fn sources_of(recording: &Recording, paths: SourcePaths) -> Arc<SourceFiles> {
    let sources = SourceFiles::new(recording.at(), paths);
    Arc::new(sources.embedded_in(recording.file().clone()))
}

const _: () = {
    const fn shared_by_threads<T: Send + Sync>() {}
    shared_by_threads::<Session>();
};
