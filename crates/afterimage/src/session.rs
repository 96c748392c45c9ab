//! A recording that grows with the questions about it.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use afterimage_record::PathFilter;
use afterimage_replay::Recording;
use afterimage_replay::paths::RecordedPath;

use crate::error::{Reason, SessionError};
use crate::monitor::Monitor;
use crate::path::{self, Added, Empty};
use crate::values::{self, Adds, KeptValues};

/// A recording, and what builds the parts of it that questions need.
///
/// What is built is added to the file, where the next session finds it. Two processes may build at the same time: one waits for the other.
pub struct Session<'m> {
    recording: Recording,
    monitor: &'m dyn Monitor,
}

impl<'m> Session<'m> {
    /// Opens a recording.
    ///
    /// # Errors
    /// If the file is no recording, or is damaged.
    pub fn open(at: &Path, monitor: &'m dyn Monitor) -> Result<Self, SessionError> {
        let recording = Recording::open(at).map_err(|why| SessionError::new(at, why))?;
        Ok(Self::of(recording, monitor))
    }

    /// A session about a recording that is open.
    pub fn of(recording: Recording, monitor: &'m dyn Monitor) -> Self {
        Self { recording, monitor }
    }

    /// The recording.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The recording alone.
    pub fn into_recording(self) -> Recording {
        self.recording
    }

    /// The path, built if it is not there yet. Of a program that still runs it is the path up to now.
    ///
    /// # Errors
    /// If the run cannot be executed again, or nothing can be added to the file.
    pub fn ensure_path(&self) -> Result<&RecordedPath, SessionError> {
        let found = self.named(self.path())?;
        self.named(path::note_gaps(&self.recording, self.monitor))?;
        Ok(found)
    }

    /// The path, built if it is not there yet, and refused if a filter left something out of it.
    ///
    /// # Errors
    /// As [`ensure_path`](Self::ensure_path), and if something was left out.
    pub fn ensure_whole_path(&self) -> Result<&RecordedPath, SessionError> {
        let found = self.named(self.path())?;
        self.named(path::refuse_gaps(self.recording.at(), found))?;
        Ok(found)
    }

    fn path(&self) -> Result<&RecordedPath, Reason> {
        let recording = &self.recording;
        if let Some(recorder) = path::recorder(recording.at(), recording.file()) {
            return Ok(recording.use_path(path::so_far(recording, recorder, self.monitor)?));
        }
        path::ensure_path(recording, &PathFilter::default(), self.monitor)
    }

    /// Reads a stretch of a path that is not built, but was written while the program ran, and uses it as the recording's path. `wanted` gets how
    /// many blocks the run has, and the most that one of its paths may have, and gives the first and the last block. Nothing is read, and the
    /// result is `false`, if it gives `None`, or if the path is built.
    ///
    /// # Errors
    /// If the file is damaged, or `wanted` fails.
    pub fn use_stretch<E: From<SessionError>>(
        &self,
        wanted: impl FnOnce(u64, u64) -> Result<Option<(u64, u64)>, E>,
    ) -> Result<bool, E> {
        let named = |why| E::from(SessionError::new(self.recording.at(), why));
        let found = path::stretch(&self.recording, wanted, named)?;
        Ok(found.map(|path| self.recording.use_path(path)).is_some())
    }

    /// Builds the values if they are not there yet; the path must be. `cancel` stops that where what was built up to then is kept.
    ///
    /// # Errors
    /// If the program still runs, something was left out of the path, the run cannot be followed, or nothing can be added to the file; or if
    /// it was cancelled.
    pub fn ensure_values(&self, cancel: &AtomicBool) -> Result<(), SessionError> {
        ensure_values(&self.recording, self.monitor, cancel)
    }

    /// Adds a path that a filter chose, in place of the one that is there.
    ///
    /// # Errors
    /// As [`ensure_path`](Self::ensure_path), and if nothing would be kept and that is refused.
    pub fn add_path(&self, filter: &PathFilter, empty: Empty) -> Result<bool, SessionError> {
        let added = path::add_path(&self.recording, filter, empty, self.monitor);
        Ok(self.named(added)? == Added::Here)
    }

    /// Builds the path of a run that has ended just now from what the run wrote of it, which is dropped then.
    ///
    /// # Errors
    /// As [`ensure_path`](Self::ensure_path).
    pub fn compact_path(&self, filter: &PathFilter) -> Result<(), SessionError> {
        self.named(path::ensure_path(&self.recording, filter, self.monitor))?;
        self.named(path::drop_words(self.recording.at(), self.monitor))
    }

    /// Adds values.
    ///
    /// # Errors
    /// As [`ensure_values`](Self::ensure_values).
    pub fn add_values(
        &self,
        kept: &KeptValues,
        adds: Adds,
        cancel: &AtomicBool,
    ) -> Result<bool, SessionError> {
        let added = values::add_values(&self.recording, kept, adds, self.monitor, cancel);
        Ok(self.named(added)? == Added::Here)
    }

    fn named<T>(&self, found: Result<T, Reason>) -> Result<T, SessionError> {
        found.map_err(|why| SessionError::new(self.recording.at(), why))
    }
}

/// Builds the values of a recording if they are not there yet; see [`Session::ensure_values`].
///
/// # Errors
/// As there.
pub fn ensure_values(
    recording: &Recording,
    monitor: &dyn Monitor,
    cancel: &AtomicBool,
) -> Result<(), SessionError> {
    match values::ensure_values(recording, monitor, cancel) {
        Ok(_) => Ok(()),
        Err(why) => Err(SessionError::new(recording.at(), why)),
    }
}
