//! Finds a file's last complete state.
//!
//! A properly closed file ends in a footer that names the index, and the index lists every chunk.
//! For such a file, this module reads only the footer and the index. For any other file, it walks
//! the chunks from the start by their headers, as long as the headers are sound. If the walk ends
//! in the middle of the file, it searches the rest for footers, because damage to one chunk must
//! not hide the index that lists all others. The last footer with a sound index gives the state. A
//! file without any footer is a first recording that is being written or was killed. Its state
//! consists of the complete chunks.
//!
//! Bytes after the state are classified. Chunks of an interrupted addition may be removed, because
//! no reader can use them. Anything else may be data.
//!
//! This module reads files and does not map them, because a writer may be changing the bytes after
//! the last complete state. No writer ever changes the state itself.

use std::io::{self, Read, Seek, SeekFrom};

use crate::layout::{
    CHUNK_HEADER_LEN, CHUNK_LABEL, ChunkHeader, FOOTER_LABEL, FOOTER_LEN, Footer, HEADER_LEN, Kind,
    RECORD_LEN, check_file_header, u64_at,
};
use crate::state::{ChunkEntry, State};
use crate::{Result, TraceError, codec};

/// Finds the last complete state of a file of `length` bytes.
pub(crate) fn find_state<R: Read + Seek>(file: &mut R, length: u64) -> Result<State> {
    let mut source = Source::new(file, length);
    let header = source.read(0, length.min(HEADER_LEN as u64) as usize)?;
    check_file_header(header)?;
    source.state()
}

/// The number of bytes searched for footers at a time.
const BLOCK: u64 = 1 << 20;

/// A file that is read piece by piece.
pub(crate) struct Source<'a, R> {
    file: &'a mut R,
    length: u64,
    buffer: Vec<u8>,
}

/// Chunks and footers that lie end to end.
pub(crate) struct Walk {
    pub chunks: Vec<ChunkEntry>,
    /// The positions of footers that directly follow an index.
    footers: Vec<u64>,
    /// The end of the walk, which is the file's end or the start of truncated or damaged bytes.
    pub end: u64,
}

impl<'a, R: Read + Seek> Source<'a, R> {
    pub fn new(file: &'a mut R, length: u64) -> Self {
        Self {
            file,
            length,
            buffer: Vec::new(),
        }
    }

    /// Returns the last complete state, whatever the file's header says.
    pub fn state(&mut self) -> Result<State> {
        if let Some(at) = self.length.checked_sub(FOOTER_LEN as u64)
            && let Some(state) = self.state_at(at)?
        {
            return Ok(state);
        }
        self.recover()
    }

    /// Returns the bytes at `at`. The caller guarantees that they lie in the file.
    fn read(&mut self, at: u64, length: usize) -> Result<&[u8]> {
        self.buffer.resize(length, 0);
        let read = |file: &mut R, buffer: &mut [u8]| -> io::Result<()> {
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(buffer)
        };
        read(self.file, &mut self.buffer).map_err(TraceError::io("read the trace file"))?;
        Ok(&self.buffer)
    }

    /// Returns the bytes at `at`, or `None` if the file ends before the last byte.
    fn read_within(&mut self, at: u64, length: usize) -> Result<Option<&[u8]>> {
        let fits = at
            .checked_add(length as u64)
            .is_some_and(|end| end <= self.length);
        if fits {
            self.read(at, length).map(Some)
        } else {
            Ok(None)
        }
    }

    fn chunk_at(&mut self, offset: u64) -> Result<Option<ChunkEntry>> {
        let bytes = self.read_within(offset, CHUNK_HEADER_LEN)?;
        let header = bytes.and_then(ChunkHeader::decode);
        Ok(header
            .map(|header| ChunkEntry { offset, header })
            .filter(|chunk| chunk.end() <= self.length))
    }

    fn footer_at(&mut self, at: u64) -> Result<Option<Footer>> {
        Ok(self
            .read_within(at, FOOTER_LEN)?
            .and_then(|bytes| Footer::decode(bytes, at)))
    }

    pub fn payload(&mut self, chunk: &ChunkEntry) -> Result<&[u8]> {
        self.read(
            chunk.offset + CHUNK_HEADER_LEN as u64,
            chunk.header.stored as usize,
        )
    }

    /// Returns the state that ends with the footer at `at`, or `None` if there is no footer or its
    /// index is unsound.
    fn state_at(&mut self, at: u64) -> Result<Option<State>> {
        let Some(footer) = self.footer_at(at)? else {
            return Ok(None);
        };
        let mut state = State::new();
        state.footer = Some(footer);
        state.end = at + FOOTER_LEN as u64;
        state.ignored = self.length - state.end;
        let (mut offset, mut sequence, mut raw) = (footer.index, 0, Vec::new());
        // An index with more records than there is room for chunks is not decompressed.
        let mut room = footer.index / CHUNK_HEADER_LEN as u64 * RECORD_LEN as u64;
        loop {
            let Some(chunk) = self.chunk_at(offset)? else {
                return Ok(None);
            };
            let header = chunk.header;
            if header.kind != Kind::INDEX || header.sequence != sequence || chunk.end() > at {
                return Ok(None);
            }
            let Some(rest) = room.checked_sub(header.raw.into()) else {
                return Ok(None);
            };
            room = rest;
            if codec::decode(&header, self.payload(&chunk)?, &mut raw).is_err() {
                return Ok(None);
            }
            let records = raw.chunks_exact(RECORD_LEN);
            if !records.remainder().is_empty() {
                return Ok(None);
            }
            for record in records {
                let (offset, header) = (u64_at(record, 0), ChunkHeader::decode(&record[8..]));
                let pushed =
                    header.map(|header| state.push(ChunkEntry { offset, header }, footer.index));
                if pushed != Some(Ok(())) {
                    return Ok(None);
                }
            }
            if header.is_last() {
                return Ok((chunk.end() == at).then_some(state));
            }
            (offset, sequence) = (chunk.end(), sequence + 1);
        }
    }

    /// Walks the chunks and footers from an offset on, by their headers.
    pub fn walk(&mut self, from: u64) -> Result<Walk> {
        let (mut chunks, mut footers) = (Vec::new(), Vec::new());
        let mut offset = from;
        // The beginning of the last index. Only the index's own footer is examined again, so the
        // walk stays linear however many footers a hostile file contains.
        let mut index = 0;
        loop {
            if let Some(chunk) = self.chunk_at(offset)? {
                if chunk.header.kind == Kind::INDEX && chunk.header.sequence == 0 {
                    index = offset;
                }
                offset = chunk.end();
                chunks.push(chunk);
            } else if let Some(footer) = self.footer_at(offset)? {
                if footer.index == index {
                    footers.push(offset);
                    index = 0;
                }
                offset += FOOTER_LEN as u64;
            } else {
                break;
            }
        }
        Ok(Walk {
            chunks,
            footers,
            end: offset,
        })
    }

    /// Returns the last complete state of a file whose end is truncated or damaged.
    fn recover(&mut self) -> Result<State> {
        let mut walk = self.walk(HEADER_LEN as u64)?;
        if !self.is_torn(&walk)?
            && let Some(mut state) = self.state_behind(walk.end)?
        {
            let behind = self.walk(state.end)?;
            state.interrupted = self.is_left_over(&state, &behind)?;
            return Ok(state);
        }
        for &at in walk.footers.iter().rev() {
            if let Some(mut state) = self.state_at(at)? {
                walk.chunks.retain(|chunk| chunk.offset >= state.end);
                state.interrupted = self.is_left_over(&state, &walk)?;
                return Ok(state);
            }
        }
        let mut state = State::new();
        let mut taken = 0;
        for chunk in &walk.chunks {
            if crc32fast::hash(self.payload(chunk)?) != chunk.header.crc
                || state.push(*chunk, self.length).is_err()
            {
                break;
            }
            state.end = chunk.end();
            taken += 1;
        }
        state.ignored = self.length - state.end;
        walk.chunks.drain(..taken);
        state.interrupted = self.is_left_over(&state, &walk)?;
        Ok(state)
    }

    /// Whether a walk ended at the file's end, in a truncated chunk, or in a truncated footer after
    /// an index, as when a writer was killed while writing.
    fn is_torn(&mut self, walk: &Walk) -> Result<bool> {
        let last = walk.chunks.last();
        let is_indexed = last.is_some_and(|last| {
            last.header.kind == Kind::INDEX && last.header.is_last() && last.end() == walk.end
        });
        let rest = (self.length - walk.end).min(CHUNK_HEADER_LEN as u64) as usize;
        let begun = self.read(walk.end, rest)?;
        let begins = |label: &[u8]| begun.iter().zip(label).all(|(a, b)| a == b);
        // These bytes are a whole header without its payload. Otherwise, the walk would have
        // continued.
        Ok(ChunkHeader::decode(begun).is_some()
            || rest < CHUNK_HEADER_LEN && begins(&CHUNK_LABEL)
            || rest < FOOTER_LEN && is_indexed && begins(&FOOTER_LABEL))
    }

    /// Returns the last complete state whose footer is after `from`. This is used where the chunks
    /// cannot be walked.
    fn state_behind(&mut self, from: u64) -> Result<Option<State>> {
        let mut found = Vec::new();
        let mut at = from;
        while at < self.length {
            let length = (self.length - at).min(BLOCK + FOOTER_LEN as u64 - 1) as usize;
            let bytes = self.read(at, length)?;
            for (i, window) in bytes.windows(FOOTER_LEN).enumerate() {
                if window.starts_with(&FOOTER_LABEL)
                    && let Some(footer) = Footer::decode(window, at + i as u64)
                {
                    found.push((at + i as u64, footer.index));
                }
            }
            at += BLOCK;
        }
        // The indexes of a file's states do not overlap, so nothing is examined twice, however many
        // footers a hostile file contains.
        let mut before = self.length;
        for (at, index) in found.into_iter().rev() {
            if at + FOOTER_LEN as u64 > before {
                continue;
            }
            if let Some(state) = self.state_at(at)? {
                return Ok(Some(state));
            }
            before = index;
        }
        Ok(None)
    }

    /// Whether the bytes after a state were left by a writer that was interrupted before the next
    /// commit. Such bytes are adjacent chunks, and the last chunk may be incomplete. After an
    /// earlier state, these chunks belong to new sections. None belongs to an index, because
    /// everything that an index lists is written before the index is begun. Without an earlier
    /// state, all complete chunks belong to the state, and only an index may follow.
    fn is_left_over(&mut self, state: &State, behind: &Walk) -> Result<bool> {
        if state.ignored == 0 {
            return Ok(false);
        }
        let (mut added, mut end) = (state.clone(), state.end);
        for (sequence, chunk) in behind.chunks.iter().enumerate() {
            let header = &chunk.header;
            let follows = match state.footer {
                Some(_) => added.push(*chunk, self.length).is_ok(),
                None => header.kind == Kind::INDEX && header.sequence as usize == sequence,
            };
            if chunk.offset != end || !follows {
                return Ok(false);
            }
            end = chunk.end();
        }
        if end != behind.end || !self.is_torn(behind)? {
            return Ok(false);
        }
        let begun = self.read_within(end, CHUNK_HEADER_LEN)?;
        let next = begun.and_then(ChunkHeader::decode);
        Ok(match (next, state.footer) {
            (Some(next), Some(_)) => next.kind != Kind::INDEX,
            (Some(next), None) => behind.chunks.is_empty() || next.kind == Kind::INDEX,
            (None, _) => true,
        })
    }
}
