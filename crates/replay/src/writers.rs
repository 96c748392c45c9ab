//! Finds the stretches of a run that wrote a byte of memory.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use afterimage_machine::{LINE, WatchedBytes, WrittenLines, WrittenLinesError};

/// Executes the first stretches of the run again, and reports the bytes that they write in the
/// region around an address. The first argument lists the readings of the stop clock at which the
/// stretches end. The other arguments are the index of the memory, and the address.
pub type WatchFn = Box<
    dyn Fn(&[u64], u32, u64) -> Result<WatchedBytes, Box<dyn Error + Send + Sync>> + Send + Sync,
>;

/// The number of regions to keep. With ten thousand stretches, each region takes at most ten
/// megabytes.
const KEPT: usize = 8;

/// Finds the stretch of a run that last wrote a byte. Uses the lines that the stretches write, and
/// watches the byte if necessary.
pub struct Writers {
    lines: WrittenLines,
    watch: WatchFn,
    /// The regions that were watched last, the newest at the end.
    watched: Mutex<Vec<WatchedBytes>>,
    /// The number of stretches that were executed again to watch bytes.
    executed: AtomicUsize,
    /// Whether the run could not be executed again.
    is_lost: AtomicBool,
    /// The last question about a line, and its answer.
    last_line: Mutex<Option<(LineKey, Option<usize>)>>,
}

/// The stretch before which to search, and the memory and line whose last writer to find.
type LineKey = (usize, u32, u64);

impl fmt::Debug for Writers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writers").finish_non_exhaustive()
    }
}

impl Writers {
    /// Creates an index from the lines that the stretches write. `watch` distinguishes the bytes of
    /// a line.
    pub fn new(lines: WrittenLines, watch: WatchFn) -> Self {
        Self {
            lines,
            watch,
            watched: Mutex::default(),
            executed: AtomicUsize::new(0),
            is_lost: AtomicBool::new(false),
            last_line: Mutex::default(),
        }
    }

    /// Returns the number of stretches.
    pub fn stretches(&self) -> usize {
        self.lines.stretches()
    }

    /// Returns the lines that the stretches write.
    pub fn lines(&self) -> &WrittenLines {
        &self.lines
    }

    /// Returns the last stretch, among the first `end`, that may have written a byte. If the byte's
    /// region was watched in these stretches, the stretch did write the byte. Otherwise, it wrote
    /// the byte's line. Returns `None` if there is no such stretch.
    ///
    /// # Errors
    /// Returns an error if the lines are damaged, or there are fewer than `end` stretches.
    pub fn last_before(
        &self,
        end: usize,
        memory: u32,
        address: u64,
    ) -> Result<Option<usize>, WrittenLinesError> {
        if let Some(found) = self.watched_before(end, memory, address) {
            return Ok(found);
        }
        // Questions about a byte's neighbours usually follow a question about the byte.
        let key = (end, memory, address / LINE);
        if let Some((known, found)) = *lock(&self.last_line)
            && known == key
        {
            return Ok(found);
        }
        let found = self.lines.last_before(end, memory, address, 1)?;
        *lock(&self.last_line) = Some((key, found));
        Ok(found)
    }

    /// Returns the last stretch, among the first `end`, that wrote a byte. Returns `None` unless
    /// the byte's region was watched in these stretches.
    pub fn watched_before(&self, end: usize, memory: u32, address: u64) -> Option<Option<usize>> {
        let all = lock(&self.watched);
        let known = |found: &&WatchedBytes| found.has(memory, address) && found.stretches() >= end;
        let found = all.iter().find(known)?;
        Some(found.last_before(end, address))
    }

    /// Watches the region of a byte in the first `end` stretches, unless this has been done before.
    /// Does nothing if these stretches include the run's last stretch, or if the run cannot be
    /// executed again.
    pub fn watch(&self, end: usize, memory: u32, address: u64) {
        if self.watched_before(end, memory, address).is_some()
            || self.is_lost.load(Ordering::Relaxed)
        {
            return;
        }
        // The run's last stretch has no reading of the stop clock at its end.
        let Some(ends) = self.lines.clocks().get(..end) else {
            return;
        };
        let Ok(found) = (self.watch)(ends, memory, address) else {
            self.is_lost.store(true, Ordering::Relaxed);
            return;
        };
        self.executed.fetch_add(end, Ordering::Relaxed);
        let mut all = lock(&self.watched);
        all.retain(|other| !other.has(memory, address));
        if all.len() == KEPT {
            all.remove(0);
        }
        all.push(found);
    }

    /// Returns the number of stretches executed again so far to watch bytes.
    pub fn executed(&self) -> usize {
        self.executed.load(Ordering::Relaxed)
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
