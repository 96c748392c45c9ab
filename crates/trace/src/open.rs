//! Finding a file's last complete state.
//!
//! A file that was closed properly ends in a footer, which names the index, which lists
//! every chunk: one read each. Otherwise the chunks are walked from the start, by
//! their headers, and the last footer met whose index is sound gives the state. A file without any
//! footer is a first recording that is being written or was killed: its state is the chunks that are complete.
//!
//! All of this reads, and maps nothing, because a writer may be changing the bytes after
//! the last complete state at this moment. The state itself no writer ever changes.

use std::collections::HashMap;
use std::io::{self, Read, Seek, SeekFrom};

use afterimage_ids::FileOffset;

use crate::layout::{
    CHUNK_HEADER_LEN, ChunkHeader, FLAG_LAST, FLAG_NAMED, FOOTER_LEN, Footer, HEADER_LEN, Kind,
    RECORD_LEN, check_file_header, u64_at,
};
use crate::{Result, TraceError, codec};

/// A chunk and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkEntry {
    pub offset: u64,
    pub header: ChunkHeader,
}

impl ChunkEntry {
    /// Where the chunk ends in the file. Cannot overflow: see [`State::push`].
    pub fn end(&self) -> u64 {
        self.offset + CHUNK_HEADER_LEN as u64 + u64::from(self.header.stored)
    }

    pub fn damaged(&self, what: &'static str) -> TraceError {
        TraceError::Damaged {
            kind: self.header.kind,
            sequence: self.header.sequence,
            offset: FileOffset(self.offset),
            what,
        }
    }
}

/// The chunks of one section, in order.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub kind: Kind,
    pub chunks: Vec<ChunkEntry>,
}

impl Section {
    /// Whether the section's last chunk is there.
    pub fn is_complete(&self) -> bool {
        self.chunks
            .last()
            .is_some_and(|chunk| chunk.header.is_last())
    }

    /// Length of the section before compression.
    pub fn raw_len(&self) -> u64 {
        self.chunks
            .iter()
            .map(|chunk| u64::from(chunk.header.raw))
            .sum()
    }
}

/// A complete state of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// By first chunk.
    pub sections: Vec<Section>,
    /// The footer that ends it; `None` in a first recording that was not committed yet.
    pub footer: Option<Footer>,
    /// Where it ends in the file.
    pub end: u64,
    /// How many bytes follow it that are no part of it.
    pub ignored: u64,
    /// Position in `sections` by section number.
    numbers: HashMap<u32, usize>,
    /// Where the last chunk ends.
    chunks_end: u64,
}

impl State {
    /// The state of a file that holds nothing but its header.
    pub fn new() -> State {
        State {
            end: HEADER_LEN as u64,
            chunks_end: HEADER_LEN as u64,
            ..State::default()
        }
    }

    /// All chunks, in file order.
    pub fn chunks(&self) -> Vec<ChunkEntry> {
        let mut chunks: Vec<_> = self
            .sections
            .iter()
            .flat_map(|section| &section.chunks)
            .copied()
            .collect();
        chunks.sort_unstable_by_key(|chunk| chunk.offset);
        chunks
    }

    /// A section number that is not in use.
    pub fn next_section(&self) -> u32 {
        self.numbers
            .keys()
            .max()
            .map_or(0, |number| number.saturating_add(1))
    }

    /// Adds a chunk that lies after all others and before `limit`. The checks make a chunk's
    /// place in its section certain whatever the file says.
    pub fn push(&mut self, chunk: ChunkEntry, limit: u64) -> Result<(), &'static str> {
        let header = &chunk.header;
        if chunk.offset < self.chunks_end || chunk.offset > limit || chunk.end() > limit {
            return Err("it lies outside the chunks' place");
        }
        if header.kind == Kind::INDEX {
            return Err("an index lists itself");
        }
        if header.flags & !(FLAG_LAST | FLAG_NAMED) != 0 {
            return Err("it has unknown flags");
        }
        if header.is_named() && header.sequence != 0 {
            return Err("a name stands on a later chunk");
        }
        match self.numbers.get(&header.section) {
            None => {
                if header.sequence != 0 {
                    return Err("its section's first chunk is missing");
                }
                self.numbers.insert(header.section, self.sections.len());
                self.sections.push(Section {
                    kind: header.kind,
                    chunks: vec![chunk],
                });
            }
            Some(&position) => {
                let section = &mut self.sections[position];
                let Some(before) = section.chunks.last().map(|before| before.header) else {
                    return Err("its section is empty");
                };
                if before.kind != header.kind {
                    return Err("its section is of another kind");
                }
                if before.is_last() {
                    return Err("its section has ended");
                }
                if before.sequence.checked_add(1) != Some(header.sequence) {
                    return Err("the chunk before it is missing");
                }
                if before.first > header.first {
                    return Err("its items begin before those of the chunk before it");
                }
                section.chunks.push(chunk);
            }
        }
        self.chunks_end = chunk.end();
        Ok(())
    }
}

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
        let end = at + FOOTER_LEN as u64;
        let ignored = self.length - end;
        let mut state = State {
            footer: Some(footer),
            end,
            ignored,
            ..State::new()
        };
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
            if let Some(state) = self.state_at(at)? {
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
}
