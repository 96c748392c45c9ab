//! Collects snapshots of a run, up to a size limit.

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;

use afterimage_trace::{Chunk, ChunkPacker, Kind, PackedChunk, TraceWriter};

use super::pages::{Page, page_of};
use super::wire::{put, put_opened, put_pages};
use super::{Opened, PAGES, PART, SNAPSHOT_PAGE, VERSION};
use crate::checkpoint::Snapshot;
use crate::image::Memory;

/// The number of chunks that are written together. Chunks that are not packed are compressed in
/// parallel.
const TOGETHER: usize = 256;

/// Snapshots of a run, collected in order. When they exceed their size limit, every second snapshot
/// is dropped, which doubles the distance between them.
///
/// `S` is the data of a snapshot without its pages. Complete snapshots have this data as bytes.
#[derive(Debug)]
pub struct SnapshotBuilder<S = Vec<u8>> {
    /// Receives the pages of new snapshots, to compress them while the run continues.
    packing: Option<Sender<Weak<Packing>>>,
    room: usize,
    stored: usize,
    entries: Vec<Collected<S>>,
    newest: HashMap<Page, Arc<[u8]>>,
    spacing: u64,
}

/// A snapshot, and the pages that changed since the previous snapshot.
#[derive(Debug)]
pub(super) struct Collected<S> {
    pub time: u64,
    pub state: S,
    /// The size of the state in bytes.
    size: usize,
    pub pages: BTreeMap<Page, Arc<[u8]>>,
    /// The same pages while they are compressed, unless other pages were added since.
    packing: Option<Arc<Packing>>,
}

/// Pages that another thread compresses.
#[derive(Debug)]
struct Packing {
    pages: Vec<Arc<[u8]>>,
    /// The compressed pages, [`PAGES`] to a chunk, once they are known.
    chunks: OnceLock<Vec<PackedChunk>>,
}

/// Compresses pages that are still needed, until no more are sent.
fn pack(waiting: &Receiver<Weak<Packing>>) {
    let Ok(mut packer) = ChunkPacker::new() else {
        return;
    };
    for packing in waiting.iter().filter_map(|packing| packing.upgrade()) {
        let chunks = packing.pages.chunks(PAGES);
        let chunks = chunks.map(|pages| packer.pack(&pages.concat()));
        let _ = packing.chunks.set(chunks.collect());
    }
}

impl<S> Collected<S> {
    fn bytes(&self) -> usize {
        self.size + self.pages.len() * SNAPSHOT_PAGE as usize
    }
}

impl<S> SnapshotBuilder<S> {
    /// Creates an empty collection. `room` is the limit on the total size in bytes. At least one
    /// snapshot is kept, regardless of its size.
    pub fn new(room: usize) -> Self {
        let (packing, waiting) = mpsc::channel();
        // Without this thread, the pages are compressed when they are written.
        let thread = thread::Builder::new().spawn(move || pack(&waiting));
        Self {
            packing: thread.is_ok().then_some(packing),
            room,
            stored: 0,
            entries: Vec::new(),
            newest: HashMap::new(),
            spacing: 1,
        }
    }

    /// Returns the factor by which the initial distance between snapshots should be multiplied. The
    /// factor is a power of 2.
    pub fn spacing(&self) -> u64 {
        self.spacing
    }

    /// Returns the number of snapshots.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no snapshots.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a snapshot that was taken at `time` and has about this many bytes. `pages` yields the
    /// pages that may have changed since the previously added snapshot, or since the beginning.
    /// Returns `false` if the snapshot is not later than the last one. In that case, it is not
    /// added, and its pages must be passed again.
    pub fn add_pages<'p>(
        &mut self,
        time: u64,
        (size, state): (usize, S),
        pages: impl IntoIterator<Item = (Page, &'p [u8])>,
    ) -> bool {
        let last = self.entries.last();
        if last.is_some_and(|last| last.time >= time) {
            return false;
        }
        let mut entry = Collected {
            time,
            state,
            size,
            pages: BTreeMap::new(),
            packing: None,
        };
        for (page, bytes) in pages {
            if self.newest.get(&page).is_none_or(|known| **known != *bytes) {
                let bytes: Arc<[u8]> = bytes.into();
                self.newest.insert(page, Arc::clone(&bytes));
                entry.pages.insert(page, bytes);
            }
        }
        if let Some(packing) = &self.packing {
            let made = Arc::new(Packing {
                pages: entry.pages.values().map(Arc::clone).collect(),
                chunks: OnceLock::new(),
            });
            // If the thread has ended, nothing is packed.
            let _ = packing.send(Arc::downgrade(&made));
            entry.packing = Some(made);
        }
        self.stored += entry.bytes();
        self.entries.push(entry);
        while self.stored > self.room && self.entries.len() > 1 {
            self.thin();
        }
        true
    }

    /// Drops every second snapshot, but never the last. The next snapshot takes over the pages of a
    /// dropped snapshot.
    fn thin(&mut self) {
        let count = self.entries.len();
        let mut before = None::<Collected<S>>;
        let mut kept = Vec::with_capacity(count.div_ceil(2));
        for (number, mut entry) in self.entries.drain(..).enumerate() {
            for (page, bytes) in before.take().into_iter().flat_map(|before| before.pages) {
                entry.packing = None;
                entry.pages.entry(page).or_insert(bytes);
            }
            if number % 2 == 1 || number + 1 == count {
                kept.push(entry);
            } else {
                before = Some(entry);
            }
        }
        self.entries = kept;
        self.stored = self.entries.iter().map(Collected::bytes).sum();
        self.spacing = self.spacing.saturating_mul(2);
    }

    /// Completes the snapshots. `known` converts the data of each snapshot.
    ///
    /// # Errors
    /// Returns an error if `known` fails.
    pub fn complete<E>(
        self,
        mut known: impl FnMut(S) -> Result<(Snapshot, Vec<Opened>), E>,
    ) -> Result<SnapshotBuilder, E> {
        let mut entries = Vec::with_capacity(self.entries.len());
        for entry in self.entries {
            let (snapshot, opened) = known(entry.state)?;
            entries.push(Collected {
                time: entry.time,
                state: encoded(&snapshot, &opened),
                size: entry.size,
                pages: entry.pages,
                packing: entry.packing,
            });
        }
        Ok(SnapshotBuilder {
            packing: self.packing,
            room: self.room,
            stored: self.stored,
            entries,
            newest: self.newest,
            spacing: self.spacing,
        })
    }
}

/// Encodes a snapshot without its pages.
fn encoded(snapshot: &Snapshot, opened: &[Opened]) -> Vec<u8> {
    let mut state = Vec::new();
    put_opened(&mut state, opened);
    state.extend(snapshot.encode());
    state
}

impl SnapshotBuilder {
    /// Adds a snapshot. `written` lists the pages that may have changed since the previously added
    /// snapshot, or since the beginning. `memories` has the current contents. Returns `false` if
    /// the snapshot is not later than the last one. In that case, it is not added, and its pages
    /// must be passed again.
    ///
    /// `opened` has the times of the activations, the outermost first. It is empty if the times are
    /// unknown.
    pub fn add(
        &mut self,
        (snapshot, opened): (&Snapshot, &[Opened]),
        written: &[Page],
        memories: &[Memory],
    ) -> bool {
        let pages = written
            .iter()
            .filter_map(|&page| Some((page, page_of(memories, page)?)));
        let state = encoded(snapshot, opened);
        self.add_pages(snapshot.time, (state.len(), state), pages)
    }

    pub(super) fn into_entries(self) -> Vec<Collected<Vec<u8>>> {
        self.entries
    }

    /// Writes the snapshots to a trace file. The caller must commit the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(self, out: &TraceWriter) -> afterimage_trace::Result<()> {
        let mut section = out.live_section(Kind::SNAPSHOTS, None)?;
        let mut index = Vec::new();
        put(&mut index, VERSION);
        put(&mut index, self.entries.len() as u64);
        let (mut time, mut chunks) = (0, Vec::new());
        for entry in self.entries {
            let mut list = Vec::new();
            put_pages(&mut list, entry.pages.keys().copied());
            let parts = [list.chunks(PART), entry.state.chunks(PART)];
            put(&mut index, entry.time - time);
            parts
                .iter()
                .for_each(|part| put(&mut index, part.len() as u64));
            put(&mut index, entry.pages.len().div_ceil(PAGES) as u64);
            time = entry.time;
            let raw = |bytes: Vec<u8>| (time, Chunk::Raw(bytes));
            chunks.extend(parts.into_iter().flatten().map(|part| raw(part.to_vec())));
            // If the pages are still waiting, nothing packs them from now on.
            let packed = entry.packing.and_then(Arc::into_inner);
            match packed.and_then(|packing| packing.chunks.into_inner()) {
                Some(packed) => {
                    chunks.extend(packed.into_iter().map(|chunk| (time, Chunk::Packed(chunk))));
                }
                None => {
                    let pages = Vec::from_iter(entry.pages.into_values());
                    chunks.extend(pages.chunks(PAGES).map(|pages| raw(pages.concat())));
                }
            }
            if chunks.len() >= TOGETHER {
                section.put_all(&chunks)?;
                chunks.clear();
            }
        }
        section.put_all(&chunks)?;
        section.finish(time, &index)
    }
}
