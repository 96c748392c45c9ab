//! Finding a file's last complete state.
//!
//! A file that was closed properly ends in a footer, which names the index, which lists
//! every chunk: one read each. Otherwise the chunks are walked from the start, by
//! their headers, and the last footer met whose index is sound gives the state. A file without any
//! footer is a first recording that is being written or was killed: its state is the chunks that are complete.
//!
//! All of this reads, and maps nothing, because a writer may be changing the bytes after
//! the last complete state at this moment. The state itself no writer ever changes.

use std::io::{self, Read, Seek, SeekFrom};

use crate::layout::{
    CHUNK_HEADER_LEN, CHUNK_LABEL, ChunkHeader, FOOTER_LEN, Footer, HEADER_LEN, Kind, RECORD_LEN,
    check_file_header, u64_at,
};
use crate::state::{ChunkEntry, State};
use crate::{Result, TraceError, codec};

/// Finds the last complete state of a file of `length` bytes.
pub(crate) fn find_state<R: Read + Seek>(file: &mut R, length: u64) -> Result<State> {
    let mut source = Source {
        file,
        length,
        buffer: Vec::new(),
    };
    let header = source.read(0, length.min(HEADER_LEN as u64) as usize)?;
    check_file_header(header)?;
    if let Some(at) = length.checked_sub(FOOTER_LEN as u64)
        && let Some(state) = source.state_at(at)?
    {
        return Ok(state);
    }
    source.recover()
}

/// A file that is read piece by piece.
struct Source<'a, R> {
    file: &'a mut R,
    length: u64,
    buffer: Vec<u8>,
}

impl<R: Read + Seek> Source<'_, R> {
    /// The bytes at `at`, which the caller knows to lie in the file.
    fn read(&mut self, at: u64, length: usize) -> Result<&[u8]> {
        self.buffer.resize(length, 0);
        let read = |file: &mut R, buffer: &mut [u8]| -> io::Result<()> {
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(buffer)
        };
        read(self.file, &mut self.buffer).map_err(TraceError::io("read the trace file"))?;
        Ok(&self.buffer)
    }

    /// The bytes at `at`, or `None` if the file ends before the last of them.
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

    fn payload(&mut self, chunk: &ChunkEntry) -> Result<&[u8]> {
        self.read(
            chunk.offset + CHUNK_HEADER_LEN as u64,
            chunk.header.stored as usize,
        )
    }

    /// The state that the footer at `at` ends; `None` if there is none or its index is unsound.
    fn state_at(&mut self, at: u64) -> Result<Option<State>> {
        let Some(footer) = self.footer_at(at)? else {
            return Ok(None);
        };
        let mut state = State::new();
        state.footer = Some(footer);
        state.end = at + FOOTER_LEN as u64;
        state.ignored = self.length - state.end;
        let (mut offset, mut sequence, mut raw) = (footer.index, 0, Vec::new());
        // More records than there is room for chunks are not worth decompressing.
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

    /// The last complete state of a file whose end is cut or damaged.
    fn recover(&mut self) -> Result<State> {
        let (mut chunks, mut footers) = (Vec::new(), Vec::new());
        let mut offset = HEADER_LEN as u64;
        // Where the last index begins: only its own footer is looked at again, so that the walk stays
        // linear whatever footers a file is stuffed with.
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
        for &at in footers.iter().rev() {
            if let Some(mut state) = self.state_at(at)? {
                state.interrupted = self.is_left_over(&state, &chunks, offset)?;
                return Ok(state);
            }
        }
        let mut state = State::new();
        for chunk in chunks {
            if crc32fast::hash(self.payload(&chunk)?) != chunk.header.crc
                || state.push(chunk, self.length).is_err()
            {
                break;
            }
            state.end = chunk.end();
        }
        state.ignored = self.length - state.end;
        Ok(state)
    }

    /// Whether what follows a state is what somebody wrote who was interrupted before the next one: chunks of new sections end to end, the last of them
    /// perhaps in part. `walked` is where the walk over these chunks ended.
    fn is_left_over(&mut self, state: &State, chunks: &[ChunkEntry], walked: u64) -> Result<bool> {
        let (mut added, mut end) = (state.clone(), state.end);
        for chunk in chunks.iter().filter(|chunk| chunk.offset >= state.end) {
            if chunk.offset != end || added.push(*chunk, self.length).is_err() {
                return Ok(false);
            }
            end = chunk.end();
        }
        if end != walked {
            return Ok(false);
        }
        let rest = (self.length - end).min(CHUNK_HEADER_LEN as u64) as usize;
        let begun = self.read(end, rest)?;
        Ok(match ChunkHeader::decode(begun) {
            Some(header) => header.kind != Kind::INDEX,
            None => rest < CHUNK_HEADER_LEN && begun.iter().zip(CHUNK_LABEL).all(|(a, b)| *a == b),
        })
    }
}
