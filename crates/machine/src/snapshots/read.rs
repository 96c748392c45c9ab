//! Restores machines to snapshots.

use afterimage_trace::{Kind, SectionReader, TraceError, TraceFile};

use super::build::{Collected, SnapshotBuilder};
use super::wire::{Run, take, take_opened, take_pages};
use super::{Opened, PAGES, SNAPSHOT_PAGE, VERSION};
use crate::MachineError;
use crate::checkpoint::Snapshot;
use crate::image::{GlobalBits, State};
use crate::machine::Machine;

/// The maximum size, in bytes, of a snapshot without its pages, and of the list of its pages.
const LARGEST: u64 = 1 << 30;

/// The snapshots of a run, in a file or in memory.
#[derive(Debug)]
pub struct Snapshots {
    /// The times of the snapshots, ascending.
    times: Vec<u64>,
    place: Storage,
}

/// The storage of snapshots.
#[derive(Debug)]
enum Storage {
    /// The snapshots are in a file. The fields are the file, the section, and the positions in the
    /// section.
    File(TraceFile, usize, Vec<Entry>),
    Memory(Vec<Collected<Vec<u8>>>),
}

/// The position of a snapshot.
#[derive(Clone, Copy, Debug)]
struct Entry {
    time: u64,
    /// The first chunk of the snapshot.
    chunk: usize,
    /// The number of chunks that contain the snapshot's list of pages. The chunks of the snapshot
    /// itself follow.
    lists: usize,
    states: usize,
}

/// The contents of a snapshot in addition to the machine's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The times of the open activations, the outermost first, if known.
    pub opened: Option<Vec<Opened>>,
    /// The arguments of the call that is about to begin.
    pub arguments: Vec<GlobalBits>,
}

/// The reason why a machine cannot be restored to a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] TraceError),
    /// The snapshots are damaged.
    #[error("the snapshots in the recording are damaged: {0}")]
    Damaged(&'static str),
    /// The snapshots do not fit the run.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

impl Snapshots {
    /// Opens the snapshots in the last complete section of a file. Time: O(snapshots).
    ///
    /// # Errors
    /// Returns an error if the snapshots are damaged.
    pub fn open(file: &TraceFile) -> Result<Option<Self>, SnapshotError> {
        let sections = (0..).map_while(|position| file.section(position));
        let known = |(_, section): &(usize, SectionReader)| {
            section.kind() == Kind::SNAPSHOTS && section.is_complete()
        };
        let Some((position, mut section)) = sections.enumerate().filter(known).last() else {
            return Ok(None);
        };
        let chunks = section.chunks();
        let last = chunks.checked_sub(1);
        section.go(last.ok_or(SnapshotError::Damaged("no index"))?);
        section.advance()?;
        let entries = index(section.bytes(), chunks - 1);
        let entries = entries.ok_or(SnapshotError::Damaged("their index"))?;
        Ok(Some(Self {
            times: entries.iter().map(|entry| entry.time).collect(),
            place: Storage::File(file.clone(), position, entries),
        }))
    }

    /// Returns the snapshots that have been collected in memory.
    pub fn in_memory(collected: SnapshotBuilder) -> Self {
        let entries = collected.into_entries();
        Self {
            times: entries.iter().map(|entry| entry.time).collect(),
            place: Storage::Memory(entries),
        }
    }

    /// Returns the ascending times of the snapshots, as the numbers of blocks executed before them.
    pub fn times(&self) -> &[u64] {
        &self.times
    }

    /// Returns the last snapshot at or before a time, or `None` if there is none.
    pub fn at(&self, time: u64) -> Option<usize> {
        self.times
            .partition_point(|known| *known <= time)
            .checked_sub(1)
    }

    /// Returns a snapshot without its pages, and the times of its activations, the outermost first.
    /// The list of times is empty if the times are unknown.
    ///
    /// # Errors
    /// Returns an error if the snapshot is damaged or does not exist.
    pub fn snapshot(&self, number: usize) -> Result<(Snapshot, Vec<Opened>), SnapshotError> {
        let missing = || SnapshotError::Damaged("one is missing");
        match &self.place {
            Storage::File(file, section, entries) => {
                let entry = entries.get(number).ok_or_else(missing)?;
                let section = section_of(file, *section)?;
                let first = entry.chunk + entry.lists;
                state(&bytes(&section, first, entry.states)?, entry.time)
            }
            Storage::Memory(entries) => {
                let entry = entries.get(number).ok_or_else(missing)?;
                state(&entry.state, entry.time)
            }
        }
    }

    /// Restores a machine of the run to a snapshot. The nodes of the path that the machine follows
    /// must have been expected or defined. Time: O(pages ever written).
    ///
    /// # Errors
    /// Returns an error if the snapshots are damaged or belong to another run. The machine is then
    /// unusable.
    pub fn restore(
        &self,
        machine: &mut Machine<'_>,
        number: usize,
    ) -> Result<Restored, SnapshotError> {
        let (snapshot, opened) = self.snapshot(number)?;
        let restored = Restored {
            opened: (!opened.is_empty() || snapshot.frames.is_empty()).then_some(opened),
            arguments: snapshot.arguments.clone(),
        };
        let mut filled = Ok(());
        let (program, bytes) = (machine.program, machine.bytes);
        machine.restore_snapshot(snapshot, |state| {
            filled = State::of_module(program, bytes)
                .map_err(SnapshotError::from)
                .and_then(|(first, _)| {
                    let mut filling = Filling::new(state);
                    self.fill(number, &mut filling)?;
                    filling.fill_first(&first);
                    Ok(())
                });
        })?;
        if filled.is_err() {
            machine.fail();
        }
        filled.map(|()| restored)
    }

    /// Fills each page with its newest version.
    fn fill(&self, number: usize, filling: &mut Filling<'_>) -> Result<(), SnapshotError> {
        match &self.place {
            Storage::File(file, section, entries) => {
                fill(section_of(file, *section)?, entries, number, filling)
            }
            Storage::Memory(entries) => {
                for entry in entries[..=number].iter().rev() {
                    for (&(memory, page), bytes) in &entry.pages {
                        if let Some(place) = filling.missing(memory, page) {
                            place.copy_from_slice(bytes);
                        }
                    }
                }
                Ok(())
            }
        }
    }
}

fn section_of(file: &TraceFile, section: usize) -> Result<SectionReader, SnapshotError> {
    let section = file.section(section);
    section.ok_or(SnapshotError::Damaged("their section is missing"))
}

fn bytes(section: &SectionReader, first: usize, count: usize) -> Result<Vec<u8>, SnapshotError> {
    if section.length(first..first + count)? > LARGEST {
        return Err(SnapshotError::Damaged(
            "more bytes than a snapshot may have",
        ));
    }
    Ok(section.decoded(first..first + count)?)
}

/// Decodes a snapshot, which must have this time.
fn state(mut bytes: &[u8], time: u64) -> Result<(Snapshot, Vec<Opened>), SnapshotError> {
    let damaged = || SnapshotError::Damaged("a snapshot");
    let opened = take_opened(&mut bytes).ok_or_else(damaged)?;
    let snapshot = Snapshot::decode(bytes).filter(|found| {
        let known = opened.is_empty() || opened.len() == found.frames.len();
        found.time == time && known
    });
    Ok((snapshot.ok_or_else(damaged)?, opened))
}

fn fill(
    section: SectionReader,
    entries: &[Entry],
    number: usize,
    filling: &mut Filling<'_>,
) -> Result<(), SnapshotError> {
    let mut wanted: Vec<WantedChunk> = Vec::new();
    for (number, entry) in entries.iter().enumerate().take(number + 1).rev() {
        let list = bytes(&section, entry.chunk, entry.lists)?;
        let (runs, count) = take_pages(&list).ok_or_else(damaged)?;
        let first = entry.chunk + entry.lists + entry.states;
        let end = entries.get(number + 1).map(|next| next.chunk);
        let end = end.unwrap_or(section.chunks() - 1);
        if count.div_ceil(PAGES as u64) != (end - first) as u64 {
            return Err(damaged());
        }
        let mut at = 0;
        for run in runs {
            filling.check(run).ok_or_else(damaged)?;
            for page in run.first..run.first + run.count {
                if filling.claim(run.memory, page) {
                    let chunk = first + at / PAGES;
                    let page = (at % PAGES, run.memory, page);
                    match wanted.last_mut() {
                        Some(last) if last.chunk == chunk => last.pages.push(page),
                        _ => {
                            if wanted.len() == TOGETHER {
                                filling.copy(&section, &mut wanted)?;
                            }
                            let pages = vec![page];
                            wanted.push(WantedChunk { chunk, pages });
                        }
                    }
                }
                at += 1;
            }
        }
    }
    filling.copy(&section, &mut wanted)
}

fn damaged() -> SnapshotError {
    SnapshotError::Damaged("the pages of memory")
}

/// The number of chunks of pages that are decoded together, in parallel.
const TOGETHER: usize = 64;

/// A chunk of pages, with the pages to copy from it. Each page has its index in the chunk, its
/// memory and its number in the memory.
struct WantedChunk {
    chunk: usize,
    pages: Vec<(usize, u32, u64)>,
}

/// Memories with pages that are filled only once.
struct Filling<'s> {
    state: &'s mut State,
    /// Whether each page of each memory has been filled.
    filled: Vec<Vec<bool>>,
}

impl<'s> Filling<'s> {
    fn new(state: &'s mut State) -> Self {
        let memories = state.memories.iter();
        let pages = memories.map(|memory| memory.bytes.len() / SNAPSHOT_PAGE as usize);
        Self {
            filled: pages.map(|pages| vec![false; pages]).collect(),
            state,
        }
    }

    /// Whether a memory has these pages.
    fn check(&self, run: Run) -> Option<()> {
        let pages = self.filled.get(run.memory as usize)?.len() as u64;
        (run.first.checked_add(run.count)? <= pages).then_some(())
    }

    /// Marks a page as filled. Returns whether it was unfilled before.
    fn claim(&mut self, memory: u32, page: u64) -> bool {
        let pages = self.filled.get_mut(memory as usize);
        let filled = pages.and_then(|pages| pages.get_mut(page as usize));
        filled.is_some_and(|filled| !std::mem::replace(filled, true))
    }

    /// Returns the bytes of a page.
    fn page(&mut self, memory: u32, page: u64) -> Option<&mut [u8]> {
        let size = SNAPSHOT_PAGE as usize;
        let memory = &mut self.state.memories.get_mut(memory as usize)?.bytes;
        memory.get_mut(page as usize * size..)?.get_mut(..size)
    }

    /// Returns the bytes of a page that has not been filled, and marks the page as filled.
    fn missing(&mut self, memory: u32, page: u64) -> Option<&mut [u8]> {
        let claimed = self.claim(memory, page);
        claimed.then(|| self.page(memory, page)).flatten()
    }

    /// Copies pages from chunks, and clears the list.
    fn copy(
        &mut self,
        section: &SectionReader,
        wanted: &mut Vec<WantedChunk>,
    ) -> Result<(), SnapshotError> {
        let chunks = Vec::from_iter(wanted.iter().map(|wanted| wanted.chunk));
        let decoded = section.decoded_each(&chunks)?;
        let size = SNAPSHOT_PAGE as usize;
        for (wanted, bytes) in wanted.drain(..).zip(decoded) {
            for (index, memory, page) in wanted.pages {
                let from = bytes.get(index * size..).and_then(|from| from.get(..size));
                let to = self.page(memory, page);
                let (from, to) = from.zip(to).ok_or_else(damaged)?;
                to.copy_from_slice(from);
            }
        }
        Ok(())
    }

    /// Fills the remaining pages with the initial memory contents. Zeros need no filling.
    fn fill_first(&mut self, first: &State) {
        let size = SNAPSHOT_PAGE as usize;
        for (number, memory) in (0..).zip(&first.memories) {
            for (page, bytes) in (0..).zip(memory.bytes.chunks(size)) {
                if bytes.iter().any(|byte| *byte != 0)
                    && let Some(place) = self.missing(number, page)
                {
                    place.copy_from_slice(bytes);
                }
            }
        }
    }
}

/// Decodes the index of a section with `chunks` chunks before the index. Returns `None` if the
/// index is damaged.
fn index(mut input: &[u8], chunks: usize) -> Option<Vec<Entry>> {
    let input = &mut input;
    if take(input)? != VERSION {
        return None;
    }
    let count = take(input)?;
    // An entry takes at least four bytes.
    if count > input.len() as u64 / 4 {
        return None;
    }
    let mut entries = Vec::with_capacity(count as usize);
    let (mut time, mut chunk) = (0u64, 0usize);
    for number in 0..count {
        let later = take(input)?;
        let mut part = || usize::try_from(take(input)?).ok();
        let (lists, states, pages) = (part()?, part()?, part()?);
        time = time
            .checked_add(later)
            .filter(|_| number == 0 || later > 0)?;
        entries.push(Entry {
            time,
            chunk,
            lists,
            states,
        });
        for part in [lists, states, pages] {
            chunk = chunk.checked_add(part)?;
        }
    }
    (input.is_empty() && chunk == chunks).then_some(entries)
}
