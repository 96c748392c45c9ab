//! Reads the whole path of a run from its segments.

mod error;
mod recent;
mod segments;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use afterimage_ids::{EntityRef, NodeId, PrimaryMap};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

pub use self::error::PathError;
pub(crate) use self::recent::Recent;
pub use self::segments::{InMemory, Segments, Summary};
use crate::marks::{Known, MarkTallies};
use crate::measures::Measured;
use crate::rank::{SHARE, Tallies};
use crate::{Activation, CallGraph, Node, Segment};

/// The default limit on the memory of open segments, in bytes.
const ROOM: usize = 256 << 20;

/// The whole path of a run. Segments are opened and checked on demand, in time linear in the
/// segment's grammar. The most recently used segments stay open, as long as there is room.
pub struct WholePath<S> {
    segments: S,
    nodes: Arc<PrimaryMap<NodeId, Node>>,
    /// The number of blocks executed up to the end of each segment.
    ends: Vec<u64>,
    room: usize,
    cache: Mutex<Cache>,
    /// The counts of recently queried occurrences, which later queries for the same target use.
    pub(crate) tallies: Mutex<Tallies>,
    /// The counts of recently requested marks.
    pub(crate) marks: Mutex<Known>,
    /// The counts of recently requested marks in segments.
    pub(crate) mark_tallies: Mutex<MarkTallies>,
    /// The call graph, once requested.
    pub(crate) calls: OnceLock<CallGraph>,
    /// Signals that a segment has been opened or is needed.
    changed: Condvar,
    /// For each segment requested so far, the activations that begin in it and are open at its end.
    begun: Mutex<HashMap<usize, Arc<[Activation]>, FxBuildHasher>>,
    /// For each node, the segments in which it is executed, ascending, and the number of its
    /// executions in each. The lists are built at the first request.
    inside: OnceLock<Vec<Vec<(u32, u64)>>>,
}

/// The number of segments that the other thread may open before they are needed.
const AHEAD: usize = 8;

/// The open segments, and the segments that are being opened.
struct Cache {
    open: Recent<usize, Measured>,
    opening: Vec<usize>,
    /// The segment that was needed last.
    needed: usize,
}

impl Cache {
    fn new(room: usize) -> Mutex<Self> {
        Mutex::new(Self {
            open: Recent::new(room),
            opening: Vec::new(),
            needed: 0,
        })
    }
}

impl<S: Segments> WholePath<S> {
    /// Creates a path from its segments.
    ///
    /// # Errors
    /// Returns [`PathError::Follow`] if, according to the summaries, a segment does not follow the
    /// previous segment.
    pub fn new(
        segments: S,
        nodes: Arc<PrimaryMap<NodeId, Node>>,
    ) -> Result<Self, PathError<S::Error>> {
        let (mut length, mut open) = (0, 0);
        let mut ends = Vec::with_capacity(segments.summaries().len());
        for (segment, summary) in segments.summaries().iter().enumerate() {
            if summary.before != length || summary.open != open || summary.kept > open {
                return Err(PathError::Follow { segment });
            }
            length = length
                .checked_add(summary.length)
                .ok_or(PathError::Follow { segment })?;
            ends.push(length);
            open = summary
                .kept
                .checked_add(summary.begun)
                .ok_or(PathError::Follow { segment })?;
        }
        Ok(Self {
            segments,
            nodes,
            ends,
            room: ROOM,
            cache: Cache::new(ROOM),
            tallies: Mutex::new(Tallies::new(ROOM / SHARE)),
            marks: Mutex::new(Known::new(ROOM / SHARE)),
            mark_tallies: Mutex::new(MarkTallies::new(ROOM / SHARE)),
            calls: OnceLock::new(),
            changed: Condvar::new(),
            begun: Mutex::default(),
            inside: OnceLock::new(),
        })
    }

    /// Returns the segments in which a node is executed, ascending, and the number of its
    /// executions in each. Time: O(1), but the first call is linear in the summaries.
    pub fn segments_with(&self, node: NodeId) -> &[(u32, u64)] {
        let inside = self.inside.get_or_init(|| {
            let mut inside = vec![Vec::new(); self.nodes.len()];
            for (segment, summary) in (0..).zip(self.segments.summaries()) {
                for &(node, count) in &summary.node_counts {
                    if let Some(inside) = inside.get_mut(node.index()) {
                        inside.push((segment, count));
                    }
                }
            }
            inside
        });
        inside.get(node.index()).map_or(&[], Vec::as_slice)
    }

    /// Lets open segments take about `bytes` bytes instead of 256 MiB. At least one segment stays
    /// open.
    #[must_use]
    pub fn with_room(self, bytes: usize) -> Self {
        Self {
            room: bytes,
            cache: Cache::new(bytes),
            tallies: Mutex::new(Tallies::new(bytes / SHARE)),
            marks: Mutex::new(Known::new(bytes / SHARE)),
            mark_tallies: Mutex::new(MarkTallies::new(bytes / SHARE)),
            ..self
        }
    }

    /// Returns the number of blocks executed.
    pub fn length(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the nodes.
    pub fn nodes(&self) -> &PrimaryMap<NodeId, Node> {
        &self.nodes
    }

    /// Returns the segments.
    pub fn segments(&self) -> &S {
        &self.segments
    }

    /// Verifies that every segment is sound, matches its summary, and continues the previous
    /// segment. Time: linear in the size of the grammars.
    ///
    /// # Errors
    /// Returns the first fault, or the error of loading a segment.
    pub fn check(&self) -> Result<(), PathError<S::Error>> {
        let mut open = Vec::new();
        for segment in 0..self.segments.summaries().len() {
            let measured = self.measure(segment)?;
            if measured.segment.open != open {
                return Err(PathError::Follow { segment });
            }
            open = measured.segment.open_after();
        }
        Ok(())
    }

    /// Returns the segment that contains block `time`, which must be from 1 to the length.
    pub(crate) fn segment_of(&self, time: u64) -> usize {
        self.ends.partition_point(|&end| end < time)
    }

    /// Returns the limit on the memory of open segments, in bytes.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// Returns a segment. First checks all properties on which a walk over its grammar relies.
    /// Time: linear in its grammar, unless it is open.
    ///
    /// # Errors
    /// Returns an error if the segment cannot be read.
    pub fn segment(&self, segment: usize) -> Result<Arc<Segment>, PathError<S::Error>> {
        Ok(Arc::clone(&self.open(segment)?.segment))
    }

    /// Opens a segment.
    pub(crate) fn open(&self, segment: usize) -> Result<Arc<Measured>, PathError<S::Error>> {
        let mut cache = self.cache();
        if cache.needed != segment {
            cache.needed = segment;
            self.changed.notify_all();
        }
        self.opened(segment, cache)
    }

    /// Calls `read`, which reads the path from one time to another. Another thread opens the
    /// segments between these times before `read` needs them.
    pub fn read_ahead<T>(&self, first: u64, last: u64, read: impl FnOnce() -> T) -> T
    where
        S: Sync,
    {
        let (first, last) = (self.segment_of(first), self.segment_of(last));
        let last = last.min(self.ends.len().saturating_sub(1));
        if last <= first {
            return read();
        }
        /// Ends the other thread's work, even if `read` panics.
        struct Ending<'p, S: Segments>(&'p WholePath<S>, &'p AtomicBool);
        impl<S: Segments> Drop for Ending<'_, S> {
            fn drop(&mut self) {
                let cache = self.0.cache();
                self.1.store(true, Ordering::Relaxed);
                self.0.changed.notify_all();
                drop(cache);
            }
        }
        self.cache().needed = first;
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let _ending = Ending(self, &is_over);
            let open_all = || {
                let mut segment = first;
                loop {
                    let mut cache = self.cache();
                    while segment > cache.needed.saturating_add(AHEAD)
                        && !is_over.load(Ordering::Relaxed)
                    {
                        cache = self.wait(cache);
                    }
                    // `read` may have skipped segments.
                    segment = segment.max(cache.needed);
                    // If a segment cannot be opened, `read` reports it.
                    if segment > last
                        || is_over.load(Ordering::Relaxed)
                        || self.opened(segment, cache).is_err()
                    {
                        return;
                    }
                    segment += 1;
                }
            };
            // If no thread can be started, `read` opens the segments itself.
            let _ = thread::Builder::new().spawn_scoped(scope, open_all);
            read()
        })
    }

    /// Opens a segment, unless it is open or another thread is opening it.
    fn opened(
        &self,
        segment: usize,
        mut cache: MutexGuard<'_, Cache>,
    ) -> Result<Arc<Measured>, PathError<S::Error>> {
        loop {
            if let Some(measured) = cache.open.get(&segment) {
                return Ok(measured);
            }
            if !cache.opening.contains(&segment) {
                break;
            }
            cache = self.wait(cache);
        }
        cache.opening.push(segment);
        drop(cache);
        /// Removes the segment from the list, even if opening it panics.
        struct Opening<'p, S: Segments>(&'p WholePath<S>, usize);
        impl<S: Segments> Drop for Opening<'_, S> {
            fn drop(&mut self) {
                self.0.cache().opening.retain(|&other| other != self.1);
                self.0.changed.notify_all();
            }
        }
        let _opening = Opening(self, segment);
        let measured = Arc::new(self.measure(segment)?);
        let bytes = measured.bytes();
        self.cache().open.insert(segment, &measured, bytes);
        Ok(measured)
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'c>(&self, cache: MutexGuard<'c, Cache>) -> MutexGuard<'c, Cache> {
        let woken = self.changed.wait(cache);
        woken.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the activations that begin in a segment and are open at its end, outermost first.
    /// Opens the segment only for the first request.
    pub(crate) fn begun(&self, segment: usize) -> Result<Arc<[Activation]>, PathError<S::Error>> {
        let mut known = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(begun) = known.get(&segment) {
            return Ok(Arc::clone(begun));
        }
        let measured = self.open(segment)?;
        let begun: Arc<[_]> = measured.begun(measured.segment.root.len()).into();
        known.insert(segment, Arc::clone(&begun));
        Ok(begun)
    }

    fn measure(&self, segment: usize) -> Result<Measured, PathError<S::Error>> {
        let loaded = self
            .segments
            .load(segment)
            .map_err(|source| PathError::Load { segment, source })?;
        let measured = Measured::new(loaded, &self.nodes)
            .map_err(|source| PathError::Check { segment, source })?;
        if measured.segment.summary() != self.segments.summaries()[segment] {
            return Err(PathError::Summary { segment });
        }
        Ok(measured)
    }
}
