//! Reads a trace file.

use std::fs::{File, OpenOptions};
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use memmap2::{Mmap, MmapOptions};

use crate::layout::CHUNK_HEADER_LEN;
use crate::limits::{MAX_COUNTS, MAX_END, MAX_META, MAX_MODULE};
use crate::open::find_state;
use crate::place::{Identity, open_regular};
use crate::state::{ChunkEntry, State};
use crate::wire::Fault;
use crate::{
    CountsLens, End, Kind, LogReader, Meta, Result, SectionReader, TraceError, codec, counts, end,
};

/// A trace file's last complete state, open for reading. It is cheap to clone.
///
/// Opening reads the footer and the index, whatever the file's length. Everything else is read and
/// verified on demand.
#[derive(Clone, Debug)]
pub struct TraceFile {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    data: Data,
    pub state: State,
    /// The file's identity, if the file is not in memory.
    identity: Option<Identity>,
}

#[derive(Debug)]
enum Data {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

/// One section of a file, as `afterimage info --sizes` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionInfo {
    /// The kind of its contents.
    pub kind: Kind,
    /// The section's name, if it has one.
    pub name: Option<String>,
    /// The number of its chunks.
    pub chunks: u64,
    /// The number of bytes in the file, including chunk headers.
    pub stored: u64,
    /// The number of bytes before compression.
    pub raw: u64,
    /// Whether its last chunk is present.
    pub complete: bool,
}

impl TraceFile {
    /// Opens a file by its footer. If the file's end is truncated or damaged, the last complete
    /// state is found by walking the chunks. [`TraceFile::ignored_bytes`] then returns the number
    /// of bytes after it.
    ///
    /// # Errors
    /// Returns [`TraceError::Io`], [`TraceError::NotAFile`], [`TraceError::Empty`],
    /// [`TraceError::NotATrace`], [`TraceError::DamagedHeader`], or [`TraceError::Newer`].
    pub fn open(path: &Path) -> Result<TraceFile> {
        let mut file = open_regular(path, OpenOptions::new().read(true))?;
        let identity = Identity::of(&file).map_err(TraceError::io("examine the trace file"))?;
        let length = file
            .metadata()
            .map_err(TraceError::io("examine the trace file"))?
            .len();
        let state = find_state(&mut file, length)?;
        let data = map(&file, state.end).map_err(TraceError::io("map the trace file"))?;
        Ok(TraceFile {
            inner: Arc::new(Inner {
                data: Data::Mapped(data),
                state,
                identity: Some(identity),
            }),
        })
    }

    /// Reads a file that is in memory.
    ///
    /// # Errors
    /// Returns the errors of [`TraceFile::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<TraceFile> {
        let state = find_state(&mut Cursor::new(&bytes), bytes.len() as u64)?;
        Ok(TraceFile {
            inner: Arc::new(Inner {
                data: Data::Owned(bytes),
                state,
                identity: None,
            }),
        })
    }

    /// Whether a path still leads to this file, and not to a file that has replaced it. Returns
    /// `false` for a file in memory.
    pub fn is_at(&self, path: &Path) -> bool {
        let identity = self.inner.identity;
        identity.is_some_and(|identity| identity.is_at(path).unwrap_or(false))
    }

    /// Returns the program and the settings of the run.
    ///
    /// # Errors
    /// Returns [`TraceError::Missing`], [`TraceError::Cut`], [`TraceError::Duplicate`],
    /// [`TraceError::Damaged`], [`TraceError::Malformed`], or [`TraceError::TooLarge`]. The other
    /// methods that read a section return the same errors.
    pub fn meta(&self) -> Result<Meta> {
        let whole = self
            .single(Kind::META)?
            .whole("the length of META", MAX_META)?;
        serde_json::from_slice(&whole.bytes).map_err(|error| {
            // serde_json gives a line and a column, and the writer makes only one line.
            let at = error.column().saturating_sub(1);
            whole.malformed(Fault {
                at,
                what: "not the description of a run",
            })
        })
    }

    /// Returns the original module's bytes.
    pub fn module(&self) -> Result<Vec<u8>> {
        let reader = self.single(Kind::MODULE)?;
        Ok(reader.whole("the length of MODULE", MAX_MODULE)?.bytes)
    }

    /// Returns the boundary log, from its first event.
    ///
    /// # Errors
    /// Returns the errors of [`TraceFile::meta`], and [`TraceError::WithoutInputs`] if the
    /// program's inputs were removed.
    pub fn log(&self) -> Result<LogReader> {
        match self.single(Kind::LOG) {
            Err(TraceError::Missing(_)) if self.meta()?.is_without_inputs() => {
                Err(TraceError::WithoutInputs)
            }
            found => found.map(LogReader::new),
        }
    }

    /// Returns how the run ended, or `None` if the recording was cut off before an ending was
    /// recorded.
    pub fn end(&self) -> Result<Option<End>> {
        let reader = match self.single(Kind::END) {
            Err(TraceError::Missing(_)) => return Ok(None),
            reader => reader?,
        };
        if !reader.is_complete() {
            return Ok(None);
        }
        let whole = reader.whole("the length of END", MAX_END)?;
        end::decode(&whole.bytes)
            .map(Some)
            .map_err(|fault| whole.malformed(fault))
    }

    /// Returns the latest exact edge counts, or `None` if the file has no counts.
    pub fn counts(&self) -> Result<Option<CountsLens>> {
        let mut sections = self.inner.state.sections.iter();
        let Some(position) =
            sections.rposition(|section| section.kind == Kind::COUNTS && section.is_complete())
        else {
            return Ok(None);
        };
        let reader = self.reader(position);
        let whole = reader.whole("the length of COUNTS", MAX_COUNTS)?;
        counts::decode(&whole.bytes)
            .map(Some)
            .map_err(|fault| whole.malformed(fault))
    }

    /// Returns the most recently completed section of a kind.
    pub fn last(&self, kind: Kind) -> Option<SectionReader> {
        let mut sections = self.inner.state.sections.iter();
        let position =
            sections.rposition(|section| section.kind == kind && section.is_complete())?;
        Some(self.reader(position))
    }

    /// Returns the most recently begun section of a kind, complete or not.
    pub fn last_begun(&self, kind: Kind) -> Option<SectionReader> {
        let mut sections = self.inner.state.sections.iter();
        let position = sections.rposition(|section| section.kind == kind)?;
        Some(self.reader(position))
    }

    /// Returns all bytes of the most recently completed section of a kind, at most `limit`.
    ///
    /// # Errors
    /// Returns [`TraceError::Damaged`] or [`TraceError::TooLarge`].
    pub fn last_whole(&self, kind: Kind, limit: u64) -> Result<Option<Vec<u8>>> {
        let reader = self.last(kind);
        reader.map(|reader| reader.all(limit)).transpose()
    }

    /// Returns all sections, ordered by first chunk, including unknown kinds.
    ///
    /// # Errors
    /// Returns no error. A section whose name cannot be read is listed without a name.
    pub fn sections(&self) -> Result<Vec<SectionInfo>> {
        (0..self.inner.state.sections.len())
            .map(|position| {
                let reader = self.reader(position);
                let section = reader.section();
                let stored = section
                    .chunks
                    .iter()
                    .map(|chunk| chunk.end() - chunk.offset);
                Ok(SectionInfo {
                    kind: section.kind,
                    // A damaged section has no name here. Reading its chunks returns the reason.
                    name: reader.name().unwrap_or_default().map(str::to_owned),
                    chunks: section.chunks.len() as u64,
                    stored: stored.sum(),
                    raw: section.raw_len(),
                    complete: section.is_complete(),
                })
            })
            .collect()
    }

    /// Returns the apparent name of the section at a position in [`TraceFile::sections`], even if
    /// its first chunk is damaged. The name is good enough for a message, but it is not reliable.
    pub fn seeming_name(&self, position: usize) -> Option<String> {
        let chunk = self.inner.state.sections.get(position)?.chunks.first()?;
        let payload = self.inner.payload(chunk).ok()?;
        let (name, _) = codec::split_name(&chunk.header, payload).ok()?;
        name.map(str::to_owned)
    }

    /// Reads the section at a position in [`TraceFile::sections`].
    pub fn section(&self, position: usize) -> Option<SectionReader> {
        (position < self.inner.state.sections.len()).then(|| self.reader(position))
    }

    /// Returns the number of this complete state of the file, from 1. Returns `None` if no state
    /// was ever committed, because the recording is still running or was killed.
    pub fn state(&self) -> Option<u32> {
        self.inner.state.footer.map(|footer| footer.state)
    }

    /// Returns the number of bytes after the last complete state, which remain from an unfinished
    /// or damaged write.
    pub fn ignored_bytes(&self) -> u64 {
        self.inner.state.ignored
    }

    /// Whether the headers of the ignored bytes show an addition that was interrupted before it
    /// became part of the file. If so, only that addition is lost. Otherwise, the bytes may be
    /// damage. Returns `false` if there are none.
    pub fn is_interrupted(&self) -> bool {
        self.inner.state.interrupted
    }

    /// Returns the length of the last complete state in bytes.
    pub fn length(&self) -> u64 {
        self.inner.state.end
    }

    pub(crate) fn reader(&self, position: usize) -> SectionReader {
        SectionReader::new(Arc::clone(&self.inner), position)
    }

    /// Returns the only section of a kind.
    fn single(&self, kind: Kind) -> Result<SectionReader> {
        let sections = self.inner.state.sections.iter().enumerate();
        let mut found = sections.filter(|(_, section)| section.kind == kind);
        match (found.next(), found.next()) {
            (None, _) => Err(TraceError::Missing(kind)),
            (Some((position, _)), None) => Ok(self.reader(position)),
            (Some(_), Some(_)) => Err(TraceError::Duplicate(kind)),
        }
    }
}

impl Inner {
    /// Returns the bytes of the file, at least up to the end of the last complete state.
    pub fn bytes(&self) -> &[u8] {
        match &self.data {
            Data::Mapped(map) => map,
            Data::Owned(bytes) => bytes,
        }
    }

    /// Returns a chunk's payload, not yet verified.
    pub fn payload(&self, chunk: &ChunkEntry) -> Result<&[u8]> {
        let bytes = usize::try_from(chunk.offset)
            .ok()
            .and_then(|offset| self.bytes().get(offset..))
            .and_then(|bytes| bytes.split_at_checked(CHUNK_HEADER_LEN));
        let Some((header, rest)) = bytes else {
            return Err(chunk.damaged("it lies beyond the file's end"));
        };
        if header != chunk.header.encode() {
            return Err(chunk.damaged("its header differs from the index"));
        }
        rest.get(..chunk.header.stored as usize)
            .ok_or_else(|| chunk.damaged("it lies beyond the file's end"))
    }
}

/// Maps the first `length` bytes, which are a complete state.
#[allow(unsafe_code)]
fn map(file: &File, length: u64) -> std::io::Result<Mmap> {
    let length = usize::try_from(length).map_err(|_| std::io::ErrorKind::FileTooLarge)?;
    // SAFETY: the bytes of a mapping must not change while they are borrowed. The bytes of a
    // complete state never change. Every writer of this crate appends after the last complete
    // state, under a lock, and replaces a file only by renaming another over it. The state was
    // found by ordinary reads, so the map covers nothing that a writer may still change. Nothing
    // here protects against a foreign program that rewrites or shortens the file in place. As with
    // every mapped file, that can kill the process with a signal.
    unsafe { MmapOptions::new().len(length).map(file) }
}
