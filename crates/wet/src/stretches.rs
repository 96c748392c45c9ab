//! Builds stretches of a run on demand, up to a limit.

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use afterimage_ids::FuncId;

use crate::build::LastWriters;
use crate::epoch::Epoch;
use crate::file::EpochFileError;
use crate::recent::Loaded;
use crate::trace::{HostCalls, StorageCell};

/// The reason why a stretch cannot be built.
pub type StretchError = Box<dyn Error + Send + Sync>;

/// The state of an activation at a stretch's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The time of the activation's first block.
    pub entered: u64,
    /// The time of the call for which the activation waits, if it waits.
    pub called: Option<u64>,
}

/// Builds individual stretches of a run on demand.
pub trait MakeStretch: std::fmt::Debug + Send + Sync {
    /// Builds the stretch at a position. Returns its coded epoch, and the last writers in it.
    ///
    /// # Errors
    /// Returns an error if the stretch cannot be built.
    fn stretch(
        &self,
        position: usize,
        host: &HostCalls,
    ) -> Result<(Vec<u8>, LastWriters), StretchError>;

    /// Returns the state of an activation at a stretch's beginning, or `None` if it is unknown.
    /// Activations are numbered from the outermost.
    ///
    /// # Errors
    /// Returns an error if the data about the stretches is damaged.
    fn opened(&self, position: usize, activation: usize) -> Result<Option<Standing>, StretchError>;

    /// Whether an activation of a function may have written a variable in a stretch. Activations
    /// are numbered from the outermost.
    ///
    /// # Errors
    /// Returns an error if the data about the stretches is damaged.
    fn may_write(
        &self,
        position: usize,
        activation: usize,
        variable: (FuncId, u32),
    ) -> Result<bool, StretchError>;

    /// Returns the last earlier stretch that may have written a place, or `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if the data about the stretches is damaged.
    fn written_before(
        &self,
        position: usize,
        place: StorageCell,
    ) -> Result<Option<usize>, StretchError>;

    /// Returns the last earlier stretch that wrote exactly this byte, or `None` if there is none.
    /// Also returns the cost, as the number of stretches that could have been built in the same
    /// time.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed.
    fn wrote_byte(
        &self,
        position: usize,
        memory: u32,
        address: u64,
    ) -> Result<(Option<usize>, usize), StretchError>;
}

/// A builder of stretches with a limit on their number.
#[derive(Debug)]
pub(crate) struct Made {
    maker: Box<dyn MakeStretch>,
    /// The number of stretches built so far.
    built: AtomicUsize,
    /// The limit on the number of stretches built.
    most: usize,
    /// The limit for the current question.
    limit: AtomicUsize,
    /// Whether the overall limit has been exceeded.
    is_exceeded: AtomicBool,
    /// Whether the question's limit has been exceeded.
    is_over_limit: AtomicBool,
}

impl Made {
    /// Creates a builder of at most `most` of `all` stretches. There is no limit if `most` covers
    /// all of them.
    pub(crate) fn new(maker: Box<dyn MakeStretch>, most: usize, all: usize) -> Self {
        Self {
            maker,
            built: AtomicUsize::new(0),
            most: if most < all { most } else { usize::MAX },
            limit: AtomicUsize::new(usize::MAX),
            is_exceeded: AtomicBool::new(false),
            is_over_limit: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.is_exceeded.load(Ordering::Relaxed)
    }

    pub(crate) fn is_over_limit(&self) -> bool {
        self.is_over_limit.load(Ordering::Relaxed)
    }

    /// Returns the number of stretches built so far, or `None` without a limit.
    pub(crate) fn built(&self) -> Option<usize> {
        (self.most != usize::MAX).then(|| self.built.load(Ordering::Relaxed))
    }

    pub(crate) fn begin(&self) {
        self.is_exceeded.store(false, Ordering::Relaxed);
        self.limit(None);
    }

    pub(crate) fn limit(&self, most: Option<usize>) {
        let most = most.unwrap_or(usize::MAX);
        self.limit.store(most, Ordering::Relaxed);
        self.is_over_limit.store(false, Ordering::Relaxed);
    }

    /// Counts work that takes as long as building this many stretches. A stretch that is built
    /// twice counts twice.
    fn count(&self, stretches: usize) -> Result<(), EpochFileError> {
        let built = self.built.load(Ordering::Relaxed);
        let limit = self.limit.load(Ordering::Relaxed);
        let (exceeded, most) = if built >= self.most {
            (&self.is_exceeded, self.most)
        } else {
            (&self.is_over_limit, limit)
        };
        if built >= most {
            exceeded.store(true, Ordering::Relaxed);
            return Err(EpochFileError::TooMany(most));
        }
        self.built.fetch_add(stretches, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn build(
        &self,
        position: usize,
        host: &HostCalls,
    ) -> Result<Loaded, EpochFileError> {
        self.count(1)?;
        let stretch = self.maker.stretch(position, host);
        let (bytes, writers) = stretch.map_err(EpochFileError::Made)?;
        Ok(Loaded {
            epoch: Epoch::open(bytes)?.into(),
            writers: Some(writers.into()),
        })
    }

    pub(crate) fn opened(
        &self,
        position: usize,
        activation: usize,
    ) -> Result<Option<Standing>, EpochFileError> {
        let found = self.maker.opened(position, activation);
        found.map_err(EpochFileError::Made)
    }

    pub(crate) fn may_write(
        &self,
        position: usize,
        activation: usize,
        variable: (FuncId, u32),
    ) -> Result<bool, EpochFileError> {
        let found = self.maker.may_write(position, activation, variable);
        found.map_err(EpochFileError::Made)
    }

    pub(crate) fn written_before(
        &self,
        position: usize,
        place: StorageCell,
    ) -> Result<Option<usize>, EpochFileError> {
        let found = self.maker.written_before(position, place);
        found.map_err(EpochFileError::Made)
    }

    /// Works like [`MakeStretch::wrote_byte`], but also counts the cost.
    pub(crate) fn wrote_byte(
        &self,
        position: usize,
        memory: u32,
        address: u64,
    ) -> Result<Option<usize>, EpochFileError> {
        self.count(0)?;
        let found = self.maker.wrote_byte(position, memory, address);
        let (found, cost) = found.map_err(EpochFileError::Made)?;
        self.built.fetch_add(cost, Ordering::Relaxed);
        Ok(found)
    }
}
