//! The boundary log: writing while the run goes on, reading in bounded memory.
//!
//! The log is a sequence of events, each preceded by its length. An event longer than a
//! chunk continues in the next ones; its length never does.

use crate::event::{self, HostCallRef};
use crate::limits::{MAX_EVENT, check};
use crate::wire::{Bytes, Fault, put_varint};
use crate::{Event, Kind, Result, SectionReader, SectionWriter, TraceError};

/// A chunk is written when it holds this many bytes: what a kill can lose.
const FLUSH: usize = 128 << 10;
/// A long event is cut into chunks of this length.
const PIECE: usize = 1 << 20;

/// Writes the boundary log. Events reach the file in chunks of 128 KiB before compression.
#[derive(Debug)]
pub struct LogWriter {
    section: SectionWriter,
    /// Events not yet written.
    raw: Vec<u8>,
    /// The event being encoded; kept for its allocation.
    event: Vec<u8>,
    /// Events before `raw`.
    written: u64,
    /// Events in all.
    events: u64,
}

impl LogWriter {
    pub(crate) fn new(section: SectionWriter) -> LogWriter {
        LogWriter {
            section,
            raw: Vec::new(),
            event: Vec::new(),
            written: 0,
            events: 0,
        }
    }

    /// Appends an event.
    ///
    /// # Errors
    /// [`TraceError::TooLarge`] beyond 1 GiB, 1,000 values or 2²⁰ ranges, [`TraceError::Write`], [`TraceError::Failed`].
    pub fn event(&mut self, event: &Event) -> Result<()> {
        self.event.clear();
        event::encode(event, &mut self.event)?;
        self.append()
    }

    /// Appends an [`Event::HostCall`] without allocating.
    ///
    /// # Errors
    /// Those of [`LogWriter::event`].
    pub fn host_call(&mut self, call: &HostCallRef<'_>) -> Result<()> {
        self.event.clear();
        event::encode_host_call(call, &mut self.event)?;
        self.append()
    }

    /// How many events were appended.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Writes the events that wait for a full chunk, for example before the host blocks.
    ///
    /// # Errors
    /// [`TraceError::Write`], [`TraceError::Failed`].
    pub fn flush(&mut self) -> Result<()> {
        let mut first = self.written;
        for piece in self.raw.chunks(PIECE) {
            self.section.put(first, piece)?;
            // All events waiting begin in the first piece: those before the last are shorter together.
            first = self.events;
        }
        self.written = self.events;
        self.raw.clear();
        // One long event does not keep its memory for the whole run.
        self.raw.shrink_to(2 * FLUSH);
        self.event.shrink_to(2 * FLUSH);
        Ok(())
    }

    /// Writes the last chunk and returns the number of events.
    ///
    /// # Errors
    /// [`TraceError::Write`], [`TraceError::Failed`].
    pub fn finish(mut self) -> Result<u64> {
        self.flush()?;
        self.section.finish(self.events, &[])?;
        Ok(self.events)
    }

    fn append(&mut self) -> Result<()> {
        check("an event's length", self.event.len(), MAX_EVENT)?;
        put_varint(&mut self.raw, self.event.len() as u64);
        self.raw.extend_from_slice(&self.event);
        self.events += 1;
        if self.raw.len() >= FLUSH {
            self.flush()
        } else {
            Ok(())
        }
    }
}

/// Reads the boundary log from its beginning, one chunk in memory at a time (and one
/// event, if it is longer than a chunk). Ends after the first error.
///
/// In a recording that was cut the events end where the last complete chunk ends.
#[derive(Debug)]
pub struct LogReader {
    section: SectionReader,
    /// Position in the current chunk.
    at: usize,
    /// Events read.
    events: u64,
    /// The parts of a long event.
    parts: Vec<u8>,
    done: bool,
}

impl LogReader {
    pub(crate) fn new(section: SectionReader) -> LogReader {
        LogReader {
            section,
            at: 0,
            events: 0,
            parts: Vec::new(),
            done: false,
        }
    }

    /// How many events were read.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Whether the log was finished by its writer.
    pub fn is_complete(&self) -> bool {
        self.section.is_complete()
    }

    fn read(&mut self) -> Result<Option<Event>> {
        while self.at == self.section.bytes().len() {
            if !self.advance()? {
                return Ok(None);
            }
        }
        let start = self.at;
        let mut bytes = Bytes::new(&self.section.bytes()[start..]);
        let length = match bytes.varint() {
            Ok(length) if length <= MAX_EVENT => length as usize,
            Ok(_) => return Err(self.malformed(start, "an event of more than 1 GiB")),
            Err(fault) => return Err(self.malformed(start + fault.at, fault.what)),
        };
        let (sequence, body) = (self.sequence(), start + bytes.at());
        self.events += 1;
        let decoded = if let Some(event) = self.section.bytes()[body..].get(..length) {
            self.at = body + length;
            event::decode(event)
        } else if self.collect(body, length)? {
            event::decode(&self.parts)
        } else if self.is_complete() {
            return Err(self.malformed(start, "an event ends after the log"));
        } else {
            // The writer was killed inside a long event.
            self.events -= 1;
            return Ok(None);
        };
        decoded
            .map(Some)
            .map_err(|Fault { at, what }| TraceError::Malformed {
                kind: Kind::LOG,
                sequence,
                at: body + at,
                what,
            })
    }

    /// Gathers the `length` bytes of an event that begins at `body` in the current chunk and
    /// continues in the next ones. `false` if the log ends before the event does. Memory grows
    /// with the bytes found, not with those announced.
    fn collect(&mut self, body: usize, length: usize) -> Result<bool> {
        self.parts.clear();
        self.at = body;
        loop {
            let rest = &self.section.bytes()[self.at..];
            let part = rest.len().min(length - self.parts.len());
            self.parts.extend_from_slice(&rest[..part]);
            self.at += part;
            if self.parts.len() == length {
                return Ok(true);
            }
            if !self.advance()? {
                return Ok(false);
            }
        }
    }

    fn advance(&mut self) -> Result<bool> {
        self.at = 0;
        if !self.section.advance()? {
            return Ok(false);
        }
        if self.section.first() != self.events {
            return Err(
                self.malformed(0, "the events before this chunk are not as many as it says")
            );
        }
        Ok(true)
    }

    fn sequence(&self) -> u32 {
        self.section
            .current()
            .map_or(0, |chunk| chunk.header.sequence)
    }

    fn malformed(&self, at: usize, what: &'static str) -> TraceError {
        TraceError::Malformed {
            kind: Kind::LOG,
            sequence: self.sequence(),
            at,
            what,
        }
    }
}

impl Iterator for LogReader {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Result<Event>> {
        if self.done {
            return None;
        }
        let event = self.read().transpose();
        self.done = !matches!(event, Some(Ok(_)));
        event
    }
}
