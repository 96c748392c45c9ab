//! A complete state of a file, with its sections and their chunks, from the index or from a walk.

use std::collections::HashMap;

use afterimage_ids::FileOffset;

use crate::TraceError;
use crate::layout::{
    CHUNK_HEADER_LEN, ChunkHeader, FLAG_LAST, FLAG_NAMED, Footer, HEADER_LEN, Kind,
};

/// A chunk, with its position in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkEntry {
    pub offset: u64,
    pub header: ChunkHeader,
}

impl ChunkEntry {
    /// Returns the chunk's end in the file. The sum cannot overflow; see [`State::push`].
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
    /// Whether the section's last chunk is present.
    pub fn is_complete(&self) -> bool {
        self.chunks
            .last()
            .is_some_and(|chunk| chunk.header.is_last())
    }

    /// Returns the length of the section before compression.
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
    /// The sections, ordered by first chunk.
    pub sections: Vec<Section>,
    /// The footer that ends the state, or `None` in a first recording without a commit.
    pub footer: Option<Footer>,
    /// The state's end in the file.
    pub end: u64,
    /// The number of bytes after the state.
    pub ignored: u64,
    /// Whether the headers show that these bytes remain from an interrupted addition or first
    /// recording, and so are not damage.
    pub interrupted: bool,
    /// The position in `sections` by section number.
    numbers: HashMap<u32, usize>,
    /// The end of the last chunk.
    chunks_end: u64,
}

impl State {
    /// Returns the state of a file that contains only its header.
    pub fn new() -> State {
        State {
            end: HEADER_LEN as u64,
            chunks_end: HEADER_LEN as u64,
            ..State::default()
        }
    }

    /// Returns all chunks, in file order.
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

    /// Returns a section number that is not in use.
    pub fn next_section(&self) -> u32 {
        self.numbers
            .keys()
            .max()
            .map_or(0, |number| number.saturating_add(1))
    }

    /// Adds a chunk that lies after all other chunks and before `limit`. Checks that the chunk's
    /// header is valid and that it directly continues its section.
    pub fn push(&mut self, chunk: ChunkEntry, limit: u64) -> Result<(), &'static str> {
        let header = &chunk.header;
        if chunk.offset < self.chunks_end || chunk.offset > limit || chunk.end() > limit {
            return Err("it lies outside the area of the chunks");
        }
        if header.kind == Kind::INDEX {
            return Err("an index lists itself");
        }
        if header.flags & !(FLAG_LAST | FLAG_NAMED) != 0 {
            return Err("it has unknown flags");
        }
        if header.is_named() && header.sequence != 0 {
            return Err("a chunk that is not the first has a name");
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::CODEC_RAW;

    /// Returns an empty chunk of a LOG section at offset 100, the `sequence`-th of section 0.
    fn chunk(sequence: u32) -> ChunkEntry {
        let header = ChunkHeader {
            kind: Kind::LOG,
            codec: CODEC_RAW,
            flags: 0,
            section: 0,
            sequence,
            first: 10 * u64::from(sequence),
            stored: 0,
            raw: 0,
            crc: 0,
        };
        ChunkEntry {
            offset: 100 + 40 * u64::from(sequence),
            header,
        }
    }

    /// Returns the outcome of adding a changed chunk after a sound chunk.
    fn second(change: impl FnOnce(&mut ChunkEntry)) -> Result<(), &'static str> {
        let mut state = State::new();
        state.push(chunk(0), 1000)?;
        let mut second = chunk(1);
        change(&mut second);
        state.push(second, 1000)
    }

    #[test]
    fn chunks_that_follow_each_other_are_taken() {
        assert_eq!(second(|_| ()), Ok(()));
        assert_eq!(second(|chunk| chunk.header.flags = FLAG_LAST), Ok(()));
        assert_eq!(
            second(|chunk| (chunk.header.section, chunk.header.sequence) = (7, 0)),
            Ok(())
        );
        assert_eq!(
            second(|chunk| chunk.offset = 960),
            Ok(()),
            "up to the limit"
        );
    }

    #[test]
    fn chunks_lie_in_order_and_before_the_limit() {
        let outside = Err("it lies outside the area of the chunks");
        assert_eq!(second(|chunk| chunk.offset = 139), outside);
        assert_eq!(second(|chunk| chunk.offset = 961), outside);
        assert_eq!(second(|chunk| chunk.header.stored = 1000), outside);
        assert_eq!(second(|chunk| chunk.offset = u64::MAX), outside);
        assert_eq!(
            State::new().push(
                ChunkEntry {
                    offset: 15,
                    ..chunk(0)
                },
                1000
            ),
            outside
        );
    }

    #[test]
    fn a_section_has_one_kind_and_all_its_chunks_in_order() {
        assert_eq!(
            second(|chunk| chunk.header.kind = Kind::END),
            Err("its section is of another kind")
        );
        let missing = Err("the chunk before it is missing");
        assert_eq!(second(|chunk| chunk.header.sequence = 0), missing);
        assert_eq!(second(|chunk| chunk.header.sequence = 2), missing);
        assert_eq!(
            second(|chunk| chunk.header.section = 1),
            Err("its section's first chunk is missing")
        );
    }

    #[test]
    fn nothing_follows_a_last_chunk() {
        let mut state = State::new();
        let mut last = chunk(0);
        last.header.flags = FLAG_LAST;
        assert_eq!(state.push(last, 1000), Ok(()));
        assert_eq!(state.push(chunk(1), 1000), Err("its section has ended"));
    }

    #[test]
    fn items_are_counted_upwards() {
        let mut state = State::new();
        let mut ahead = chunk(0);
        ahead.header.first = 11;
        assert_eq!(state.push(ahead, 1000), Ok(()));
        let fault = "its items begin before those of the chunk before it";
        assert_eq!(state.push(chunk(1), 1000), Err(fault));
    }

    #[test]
    fn flags_and_names_are_where_they_belong() {
        assert_eq!(
            second(|chunk| chunk.header.flags = 4),
            Err("it has unknown flags")
        );
        let name = Err("a chunk that is not the first has a name");
        assert_eq!(second(|chunk| chunk.header.flags = FLAG_NAMED), name);
        assert_eq!(
            second(|chunk| chunk.header.kind = Kind::INDEX),
            Err("an index lists itself")
        );
    }

    #[test]
    fn section_numbers_are_not_used_again() {
        let mut state = State::new();
        assert_eq!(state.next_section(), 0);
        let mut high = chunk(0);
        high.header.section = 41;
        assert_eq!(state.push(high, 1000), Ok(()));
        assert_eq!(state.next_section(), 42);
    }
}
