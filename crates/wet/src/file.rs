//! Whole execution traces in trace files.

use std::cell::OnceCell;

use afterimage_trace::{Kind, SectionWriter, TraceError as FileError, TraceFile, TraceWriter};

use crate::epoch::{Epoch, EpochError};
use crate::index::Index;
use crate::trace::{Epochs, HostCalls};

/// Most bytes of an epoch in one chunk.
const PART: usize = 15 << 20;
/// Most bytes that an epoch may have.
const LARGEST: usize = 1 << 30;
/// Most bytes that an index may have.
const LARGEST_INDEX: u64 = 1 << 28;

/// Why the epochs of a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum EpochFileError {
    /// The file.
    #[error(transparent)]
    File(#[from] FileError),
    /// An epoch.
    #[error(transparent)]
    Epoch(#[from] EpochError),
    /// The index.
    #[error("the index of the whole execution trace is damaged")]
    Index,
    /// It is of another path.
    #[error(
        "the whole execution trace belongs to a path that was built anew since: build it again (afterimage build --lens full --again)"
    )]
    OtherPath,
}

/// Writes epochs to a file, as they come.
pub struct EpochWriter {
    section: SectionWriter,
    epochs: Vec<(u64, u32)>,
}

impl EpochWriter {
    /// Begins the section.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn new(out: &TraceWriter) -> Result<Self, FileError> {
        Ok(Self {
            section: out.section(Kind::VALUES, None)?,
            epochs: Vec::new(),
        })
    }

    /// Writes the next epoch, before which so many blocks were executed.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn put(&mut self, before: u64, epoch: &[u8]) -> Result<(), FileError> {
        let mut chunks = 0;
        for part in epoch.chunks(PART) {
            self.section.put(before, part)?;
            chunks += 1;
        }
        self.epochs.push((before, chunks));
        Ok(())
    }

    /// Ends the section and writes the index. The caller commits.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(self, out: &TraceWriter, index: &Index) -> Result<(), FileError> {
        self.section.finish(index.length, &[])?;
        let index = Index {
            epochs: self.epochs,
            ..index.clone()
        };
        out.whole(Kind::VALUES_INDEX, &index.encode())
    }
}

/// The epochs of a file. One that was read stays in memory.
#[derive(Debug)]
pub struct FileEpochs {
    file: TraceFile,
    index: Index,
    before: Vec<u64>,
    /// The first chunk of each epoch.
    chunks: Vec<u32>,
    loaded: Vec<OnceCell<Epoch>>,
    host: OnceCell<HostCalls>,
}

impl FileEpochs {
    /// The whole execution trace of a file; `None` if there is none. `nodes` is the [`fingerprint`](crate::fingerprint) of its path.
    ///
    /// # Errors
    /// If it is damaged, or of another path.
    pub fn open(file: &TraceFile, nodes: u32) -> Result<Option<Self>, EpochFileError> {
        let Some(bytes) = file.last_whole(Kind::VALUES_INDEX, LARGEST_INDEX)? else {
            return Ok(None);
        };
        let index = Index::decode(&bytes).ok_or(EpochFileError::Index)?;
        if index.nodes != nodes {
            return Err(EpochFileError::OtherPath);
        }
        let section = file.last(Kind::VALUES).ok_or(EpochFileError::Index)?;
        let mut chunks = Vec::with_capacity(index.epochs.len());
        let mut next = 0u32;
        for &(_, count) in &index.epochs {
            chunks.push(next);
            next = next.checked_add(count).ok_or(EpochFileError::Index)?;
        }
        // The last chunk is empty.
        if section.chunks() != next as usize + 1 {
            return Err(EpochFileError::Index);
        }
        Ok(Some(Self {
            file: file.clone(),
            before: index.epochs.iter().map(|(before, _)| *before).collect(),
            loaded: index.epochs.iter().map(|_| OnceCell::new()).collect(),
            chunks,
            index,
            host: OnceCell::new(),
        }))
    }

    /// What is known of it at once.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The coded form of an epoch, by its position.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn bytes(&self, position: usize) -> Result<Vec<u8>, EpochFileError> {
        let mut section = self.file.last(Kind::VALUES).ok_or(EpochFileError::Index)?;
        let (_, count) = *self
            .index
            .epochs
            .get(position)
            .ok_or(EpochFileError::Index)?;
        let first = self.chunks[position] as usize;
        let mut bytes = Vec::new();
        for chunk in first..first + count as usize {
            section.go(chunk);
            if !section.advance()? || bytes.len() > LARGEST {
                return Err(EpochFileError::Index);
            }
            bytes.extend_from_slice(section.bytes());
        }
        Ok(bytes)
    }
}

impl Epochs for FileEpochs {
    type Error = EpochFileError;

    fn before(&self) -> &[u64] {
        &self.before
    }

    fn end(&self) -> u64 {
        self.index.length
    }

    fn load(&self, position: usize) -> Result<&Epoch, EpochFileError> {
        let cell = self.loaded.get(position).ok_or(EpochFileError::Index)?;
        if let Some(epoch) = cell.get() {
            return Ok(epoch);
        }
        let epoch = Epoch::open(self.bytes(position)?)?;
        Ok(cell.get_or_init(|| epoch))
    }

    fn host(&self) -> Result<&HostCalls, EpochFileError> {
        if let Some(host) = self.host.get() {
            return Ok(host);
        }
        let host = HostCalls::read(self.file.log()?)?;
        Ok(self.host.get_or_init(|| host))
    }
}
