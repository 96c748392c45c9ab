//! Words in the trace file: a path that was written during the live run, and is still to be compacted.
//!
//! Each chunk of the section holds the calls that the host made since the chunk before (their number and the functions, as
//! LEB128), then words of eight bytes, little-endian. The section's name says by which plan they were written.

use std::sync::mpsc::Receiver;

use afterimage_ids::{EntityRef, FuncId};
use afterimage_paths::PathPlan;
use afterimage_trace::{Kind, SectionWriter, TraceError, TraceFile, TraceWriter};

use super::Message;
use crate::RecordError;

/// Most host calls that are kept for one chunk.
const MOST_CALLS: usize = 1 << 16;

/// The name of the section of a plan's words.
fn name(plan: &PathPlan) -> String {
    format!("path numbers {:016x}", plan.fingerprint())
}

/// Writes the words of a live run, on a thread of its own.
pub(crate) struct WordWriter {
    section: SectionWriter,
    calls: Vec<FuncId>,
    chunk: Vec<u8>,
    words: u64,
}

impl WordWriter {
    pub(crate) fn new(out: &TraceWriter, plan: &PathPlan) -> Result<Self, RecordError> {
        Ok(Self {
            section: out.live_section(Kind::PATH_WORDS, Some(&name(plan)))?,
            calls: Vec::new(),
            chunk: Vec::new(),
            words: 0,
        })
    }

    /// Writes until the producer is done.
    pub(crate) fn write(mut self, messages: Receiver<Message>) -> Result<(), RecordError> {
        for message in messages {
            match message {
                Message::HostCall(function) => {
                    self.calls.push(function);
                    if self.calls.len() == MOST_CALLS {
                        self.put(&[])?;
                    }
                }
                Message::Words(half) => self.put(half.words())?,
                Message::Last(word) => self.put(&[word])?,
            }
        }
        Ok(self.section.finish(self.words, &[])?)
    }

    fn put(&mut self, words: &[u64]) -> Result<(), RecordError> {
        self.chunk.clear();
        put_number(&mut self.chunk, self.calls.len() as u64);
        for function in self.calls.drain(..) {
            put_number(&mut self.chunk, function.index() as u64);
        }
        for word in words {
            self.chunk.extend_from_slice(&word.to_le_bytes());
        }
        self.section.put(self.words, &self.chunk)?;
        self.words += words.len() as u64;
        Ok(())
    }
}

/// What a chunk holds.
pub(crate) struct Piece {
    /// Calls by the host, before the words.
    pub calls: Vec<FuncId>,
    /// The words.
    pub words: Vec<u64>,
}

/// The words of a live run.
pub(crate) struct WordReader {
    section: afterimage_trace::SectionReader,
}

impl WordReader {
    /// The words that a file has, if they were written by this plan. Those of a run that was cut off are incomplete.
    pub(crate) fn open(file: &TraceFile, plan: &PathPlan) -> Result<Option<Self>, RecordError> {
        let name = name(plan);
        // Other sections may be damaged: that is why the path is built again.
        let sections = (0..).map_while(|position| file.section(position));
        let mut words = Vec::from_iter(sections.filter(|of| of.kind() == Kind::PATH_WORDS));
        while let Some(section) = words.pop() {
            if section.name()? == Some(name.as_str()) {
                return Ok(Some(Self { section }));
            }
        }
        Ok(None)
    }

    /// The next piece.
    pub(crate) fn next(&mut self) -> Result<Option<Piece>, RecordError> {
        if !self.section.advance()? || self.section.bytes().is_empty() {
            return Ok(None);
        }
        let input = &mut self.section.bytes();
        let malformed = |_| TraceError::Missing(Kind::PATH_WORDS);
        let piece = read(input).map_err(malformed)?;
        Ok(Some(piece))
    }
}

fn read(input: &mut &[u8]) -> Result<Piece, ()> {
    let count = number(input)?;
    // A call takes a byte at least.
    if count > input.len() as u64 {
        return Err(());
    }
    let calls = (0..count)
        .map(|_| {
            Ok(FuncId::from_u32(
                u32::try_from(number(input)?).map_err(|_| ())?,
            ))
        })
        .collect::<Result<_, ()>>()?;
    if !input.len().is_multiple_of(8) {
        return Err(());
    }
    let words = input.chunks_exact(8);
    let words = words.map(|c| u64::from_le_bytes([c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]]));
    Ok(Piece {
        calls,
        words: words.collect(),
    })
}

fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn number(input: &mut &[u8]) -> Result<u64, ()> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let (&byte, rest) = input.split_first().ok_or(())?;
        *input = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(())
}
