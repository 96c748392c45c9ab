//! Reads one section, chunk by chunk, in bounded memory.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::file::Inner;
use crate::state::{ChunkEntry, Section};
use crate::wire::Fault;
use crate::{Kind, Result, TraceError, TraceFile, codec};

/// Reads a section's chunks in order, with one decoded chunk in memory at a time. It shares
/// ownership of the mapped file, so it can be moved to another thread or into an engine's store.
#[derive(Debug)]
pub struct SectionReader {
    inner: Arc<Inner>,
    /// The position of the section in the file's list.
    position: usize,
    /// The number of chunks read.
    read: usize,
    raw: Vec<u8>,
}

impl SectionReader {
    /// Returns the file that contains the section.
    pub(crate) fn file(&self) -> TraceFile {
        TraceFile {
            inner: Arc::clone(&self.inner),
        }
    }

    pub(crate) fn new(inner: Arc<Inner>, position: usize) -> SectionReader {
        SectionReader {
            inner,
            position,
            read: 0,
            raw: Vec::new(),
        }
    }

    /// Returns another reader of the section, positioned before its first chunk. Time: O(1).
    pub fn again(&self) -> SectionReader {
        SectionReader::new(Arc::clone(&self.inner), self.position)
    }

    pub(crate) fn section(&self) -> &Section {
        &self.inner.state.sections[self.position]
    }

    /// Returns the section's kind.
    pub fn kind(&self) -> Kind {
        self.section().kind
    }

    /// Returns the section's name, if it has one.
    ///
    /// # Errors
    /// Returns [`TraceError::Damaged`] if the section's first chunk is damaged.
    pub fn name(&self) -> Result<Option<&str>> {
        let Some(chunk) = self.section().chunks.first() else {
            return Ok(None);
        };
        let payload = self.inner.payload(chunk)?;
        if crc32fast::hash(payload) != chunk.header.crc {
            return Err(chunk.damaged("its checksum does not match"));
        }
        codec::split_name(&chunk.header, payload)
            .map(|(name, _)| name)
            .map_err(|what| chunk.damaged(what))
    }

    /// Whether the section's last chunk is in the file.
    pub fn is_complete(&self) -> bool {
        self.section().is_complete()
    }

    /// Reads the next chunk, if there is one.
    ///
    /// # Errors
    /// Returns [`TraceError::Damaged`] if the next chunk is damaged.
    pub fn advance(&mut self) -> Result<bool> {
        let section = &self.inner.state.sections[self.position];
        let Some(chunk) = section.chunks.get(self.read) else {
            return Ok(false);
        };
        self.read += 1;
        let payload = self.inner.payload(chunk)?;
        codec::decode(&chunk.header, payload, &mut self.raw).map_err(|what| chunk.damaged(what))?;
        Ok(true)
    }

    /// Returns the number of chunks in the section.
    pub fn chunks(&self) -> usize {
        self.section().chunks.len()
    }

    /// Returns the decoded length of some chunks, in bytes.
    ///
    /// # Errors
    /// Returns an error if the section lacks any of these chunks.
    pub fn length(&self, chunks: Range<usize>) -> Result<u64> {
        let chunks = self.some(&chunks)?.iter();
        Ok(chunks.map(|chunk| u64::from(chunk.header.raw)).sum())
    }

    fn some(&self, chunks: &Range<usize>) -> Result<&[ChunkEntry]> {
        let section = self.section();
        let found = section.chunks.get(chunks.clone());
        found.ok_or(TraceError::NoChunks {
            kind: section.kind,
            count: section.chunks.len(),
            from: chunks.start,
            to: chunks.end,
        })
    }

    /// Returns the length of the section's chunks in the file, without their headers.
    pub fn stored(&self) -> u64 {
        let chunks = self.section().chunks.iter();
        chunks.map(|chunk| u64::from(chunk.header.stored)).sum()
    }

    /// Moves to a chunk, by its position in the section.
    pub fn go(&mut self, chunk: usize) {
        self.read = chunk;
    }

    /// Returns the number of chunks before the next chunk to be read.
    pub(crate) fn read(&self) -> usize {
        self.read
    }

    /// Moves back to the position before the first chunk.
    pub(crate) fn restart(&mut self) {
        self.read = 0;
        self.raw.clear();
    }

    /// Returns the decoded bytes of the chunk that [`SectionReader::advance`] read.
    pub fn bytes(&self) -> &[u8] {
        &self.raw
    }

    /// Returns the number of the section's items that begin before the current chunk.
    pub fn first(&self) -> u64 {
        self.current().map_or(0, |chunk| chunk.header.first)
    }

    /// Returns the current chunk, which was read last.
    pub(crate) fn current(&self) -> Option<&ChunkEntry> {
        self.section().chunks.get(self.read.saturating_sub(1))
    }

    /// Returns the bytes of all chunks, at most `limit`.
    ///
    /// # Errors
    /// Returns an error if there are more bytes, the section is not complete, or a chunk is
    /// damaged.
    pub fn all(self, limit: u64) -> Result<Vec<u8>> {
        Ok(self.whole("the length of a section", limit)?.bytes)
    }

    /// Returns all of the section's bytes, at most `limit`.
    pub(crate) fn whole(self, what: &'static str, limit: u64) -> Result<Whole> {
        let section = self.section();
        if !section.is_complete() {
            return Err(TraceError::Cut(section.kind));
        }
        if section.raw_len() > limit {
            return Err(TraceError::TooLarge { what, limit });
        }
        let (chunks, mut start) = (section.chunks.len(), 0);
        let starts = section.chunks.iter().map(|chunk| {
            start += chunk.header.raw as usize;
            start - chunk.header.raw as usize
        });
        Ok(Whole {
            kind: section.kind,
            starts: starts.collect(),
            bytes: self.decoded(0..chunks)?,
        })
    }

    /// Returns the bytes of some chunks, by their positions in the section. Decodes several in
    /// parallel if that is worthwhile.
    ///
    /// # Errors
    /// Returns an error if the section lacks any of these chunks, or one is damaged.
    pub fn decoded(&self, chunks: Range<usize>) -> Result<Vec<u8>> {
        let chunks = self.some(&chunks)?;
        let length = chunks.iter().map(|chunk| chunk.header.raw as usize).sum();
        let mut bytes = vec![0; length];
        let mut rest = &mut bytes[..];
        let parts = chunks.iter().map(|chunk| {
            let (part, behind) = std::mem::take(&mut rest).split_at_mut(chunk.header.raw as usize);
            rest = behind;
            Mutex::new(part)
        });
        let parts = Vec::from_iter(parts);
        let decode = |at: usize| {
            let mut part = parts[at].lock().unwrap_or_else(PoisonError::into_inner);
            let payload = self.inner.payload(&chunks[at])?;
            codec::decode_to(&chunks[at].header, payload, &mut part)
                .map_err(|what| chunks[at].damaged(what))
        };
        if length > SHORT {
            let decoded = afterimage_parallel::map(chunks.len(), decode);
            decoded.into_iter().collect::<Result<()>>()?;
        } else {
            (0..chunks.len()).try_for_each(decode)?
        }
        drop(parts);
        Ok(bytes)
    }

    /// Returns the bytes of each of these chunks, by their positions in the section. Decodes
    /// several chunks in parallel.
    ///
    /// # Errors
    /// Returns the errors of [`decoded`](Self::decoded).
    pub fn decoded_each(&self, chunks: &[usize]) -> Result<Vec<Vec<u8>>> {
        let decode = |at: usize| self.decoded(chunks[at]..chunks[at] + 1);
        let decoded = afterimage_parallel::map(chunks.len(), decode);
        decoded.into_iter().collect()
    }
}

/// At most this many bytes are decoded by one thread, because other threads would take as long to
/// start.
const SHORT: usize = 1 << 19;

/// A whole section, decoded.
pub(crate) struct Whole {
    kind: Kind,
    pub bytes: Vec<u8>,
    /// The start of each chunk in `bytes`.
    starts: Vec<usize>,
}

impl Whole {
    /// Returns the error for a fault in the section's bytes.
    pub fn malformed(&self, fault: Fault) -> TraceError {
        let chunk = self
            .starts
            .partition_point(|&start| start <= fault.at)
            .saturating_sub(1);
        TraceError::Malformed {
            kind: self.kind,
            sequence: chunk as u32,
            at: fault.at - self.starts.get(chunk).copied().unwrap_or_default(),
            what: fault.what,
        }
    }
}
