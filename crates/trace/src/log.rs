//! Writes the boundary log during the run, and reads it in bounded memory.
//!
//! The log is a sequence of events, each preceded by its length. An event longer than a chunk
//! continues in the following chunks, but its length field never does.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::event::{self, HostCallRef};
use crate::limits::{MAX_EVENT, check};
use crate::wire::{Bytes, Fault, put_varint};
use crate::{Event, Kind, Result, SectionReader, SectionWriter, TraceError, TraceFile};

/// A chunk is handed to the writing thread when it reaches this many bytes.
const FLUSH: usize = 128 << 10;
/// A long event is cut into chunks of this length.
const PIECE: usize = 1 << 20;

/// The maximum number of chunks that wait for the writing thread. If more would wait, the run waits
/// for the disk.
const WAITING: usize = 8;

/// Writes the boundary log. Events reach the file in chunks of 128 KiB before compression. A
/// separate thread compresses and writes the chunks, so the run waits only if the disk is slower.
/// If that thread fails, the next call returns its error.
#[derive(Debug)]
pub struct LogWriter {
    queue: Arc<Mutex<Queue>>,
    /// The event being encoded. The buffer is kept to reuse its allocation.
    event: Vec<u8>,
}

/// Writes, from another thread, the events that a [`LogWriter`] keeps until its chunk is full.
#[derive(Clone, Debug)]
pub struct LogFlusher {
    queue: Arc<Mutex<Queue>>,
}

/// Events on their way to the writing thread.
#[derive(Debug)]
struct Queue {
    /// The channel to the writing thread, or `None` once the thread has ended.
    chunks: Option<SyncSender<Chunk>>,
    /// The writing thread, which returns the section or its error.
    thread: Option<JoinHandle<Result<SectionWriter>>>,
    /// Events not yet handed over.
    raw: Vec<u8>,
    /// The number of events before those in `raw`.
    written: u64,
    /// The number of events in total.
    events: u64,
}

/// Events on their way to the file.
#[derive(Debug)]
struct Chunk {
    /// The number of events before this chunk.
    first: u64,
    /// The number of events up to the chunk's end.
    end: u64,
    raw: Vec<u8>,
    /// The channel to notify when the chunk has been written.
    written: Option<SyncSender<()>>,
}

impl LogWriter {
    pub(crate) fn new(section: SectionWriter) -> Result<LogWriter> {
        let (chunks, waiting) = sync_channel(WAITING);
        let thread = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write(section, waiting))
            .map_err(TraceError::io("start a thread that writes the log"))?;
        let queue = Queue {
            chunks: Some(chunks),
            thread: Some(thread),
            raw: Vec::with_capacity(2 * FLUSH),
            written: 0,
            events: 0,
        };
        Ok(LogWriter {
            queue: Arc::new(Mutex::new(queue)),
            event: Vec::new(),
        })
    }

    /// Appends an event.
    ///
    /// # Errors
    /// Returns [`TraceError::TooLarge`] beyond 1 GiB, 1,000 values or 2²⁰ ranges,
    /// [`TraceError::Write`], or [`TraceError::Failed`].
    pub fn event(&mut self, event: &Event) -> Result<()> {
        self.event.clear();
        event::encode(event, &mut self.event)?;
        self.append()
    }

    /// Appends a borrowed [`Event::HostCall`], without allocating.
    ///
    /// # Errors
    /// Returns the errors of [`LogWriter::event`].
    pub fn host_call(&mut self, call: &HostCallRef<'_>) -> Result<()> {
        self.event.clear();
        event::encode_host_call(call, &mut self.event)?;
        self.append()
    }

    /// Returns the number of events appended.
    pub fn events(&self) -> u64 {
        lock(&self.queue).events
    }

    /// Writes the events that wait for a full chunk, for example before the host blocks. Returns
    /// when they are in the file.
    ///
    /// # Errors
    /// Returns [`TraceError::Write`] or [`TraceError::Failed`].
    pub fn flush(&mut self) -> Result<()> {
        let (written, done) = sync_channel(1);
        lock(&self.queue).hand_over(Some(written))?;
        // The sender is dropped unused if the thread failed.
        done.recv().or_else(|_| lock(&self.queue).failure())
    }

    /// Returns a flusher for a thread that must not get ahead of the log.
    pub fn flusher(&self) -> LogFlusher {
        LogFlusher {
            queue: Arc::clone(&self.queue),
        }
    }

    /// Writes the last chunk and returns the number of events.
    ///
    /// # Errors
    /// Returns [`TraceError::Write`] or [`TraceError::Failed`].
    pub fn finish(self) -> Result<u64> {
        let mut queue = lock(&self.queue);
        queue.hand_over(None)?;
        let events = queue.events;
        queue.end()?.finish(events, &[])?;
        Ok(events)
    }

    fn append(&mut self) -> Result<()> {
        check("an event's length", self.event.len(), MAX_EVENT)?;
        let mut queue = lock(&self.queue);
        put_varint(&mut queue.raw, self.event.len() as u64);
        queue.raw.extend_from_slice(&self.event);
        queue.events += 1;
        if queue.raw.len() < FLUSH {
            return Ok(());
        }
        // Releases the memory of a single long event.
        self.event.shrink_to(2 * FLUSH);
        queue.hand_over(None)
    }
}

impl LogFlusher {
    /// Writes the events that wait for a full chunk, and returns when all events appended before
    /// are in the file. The [`LogWriter`] reports write errors.
    pub fn flush(&self) {
        let (written, done) = sync_channel(1);
        let waits = lock(&self.queue).send(Some(written));
        if waits {
            // An error means that the thread failed.
            let _ = done.recv();
        }
    }
}

/// Locks the queue. Ignores poisoning, because a thread that panicked while holding the lock left
/// nothing half-done.
fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Queue {
    /// Passes the waiting events to the writing thread.
    fn hand_over(&mut self, written: Option<SyncSender<()>>) -> Result<()> {
        if self.send(written) {
            Ok(())
        } else {
            self.failure()
        }
    }

    /// Passes the waiting events on without error handling. Returns whether the thread still runs.
    fn send(&mut self, written: Option<SyncSender<()>>) -> bool {
        let Some(chunks) = &self.chunks else {
            return false;
        };
        let chunk = Chunk {
            first: self.written,
            end: self.events,
            raw: std::mem::replace(&mut self.raw, Vec::with_capacity(2 * FLUSH)),
            written,
        };
        self.written = self.events;
        chunks.send(chunk).is_ok()
    }

    /// Returns the reason why the writing thread has ended, as an error.
    fn failure(&mut self) -> Result<()> {
        self.end().and(Err(TraceError::Failed))
    }

    /// Waits for the writing thread to end.
    fn end(&mut self) -> Result<SectionWriter> {
        self.chunks = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            // The thread ended earlier, or panicked.
            Some(Err(_)) | None => Err(TraceError::Failed),
        }
    }
}

impl Drop for LogWriter {
    /// An abandoned recording keeps the chunks passed on so far. Nothing more is written to it.
    fn drop(&mut self) {
        let _ = lock(&self.queue).end();
    }
}

/// Compresses and writes chunks until there are no more.
fn write(mut section: SectionWriter, chunks: Receiver<Chunk>) -> Result<SectionWriter> {
    for chunk in chunks {
        let mut first = chunk.first;
        for piece in chunk.raw.chunks(PIECE) {
            section.put(first, piece)?;
            // All events of the chunk begin in the first piece, because the events before the last
            // event are shorter than a piece in total.
            first = chunk.end;
        }
        if let Some(written) = chunk.written {
            // If the writer was dropped, no thread waits any more.
            let _ = written.send(());
        }
    }
    Ok(section)
}

/// The position of an event in a log, as returned by [`LogReader::place`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPlace {
    /// The number of chunks read.
    pub chunks: u64,
    /// The position in the chunk read last.
    pub at: u64,
    /// The number of events before the position.
    pub events: u64,
}

/// Reads the boundary log from its beginning. Only one chunk is in memory at a time, plus one event
/// if the event is longer than a chunk. Reading ends after the first error.
///
/// In a recording that was cut off, the events end with the last complete chunk.
#[derive(Debug)]
pub struct LogReader {
    section: SectionReader,
    /// The position in the current chunk.
    at: usize,
    /// The number of events read.
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

    /// Returns the file that contains the log.
    pub fn file(&self) -> TraceFile {
        self.section.file()
    }

    /// Returns the number of events read.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the position of the next event, for a later return.
    pub fn place(&self) -> LogPlace {
        LogPlace {
            chunks: self.section.read() as u64,
            at: self.at as u64,
            events: self.events,
        }
    }

    /// Moves to a position in this log.
    ///
    /// # Errors
    /// Returns an error if the position does not exist or cannot be read.
    pub fn go(&mut self, place: LogPlace) -> Result<()> {
        let missing = |what| TraceError::Malformed {
            kind: Kind::LOG,
            sequence: place.chunks.try_into().unwrap_or(u32::MAX),
            at: place.at.try_into().unwrap_or(usize::MAX),
            what,
        };
        // The chunk may already be in memory, unless something failed.
        let usable = !self.done && !self.section.bytes().is_empty();
        self.at = 0;
        self.events = place.events;
        self.done = true;
        let chunks = usize::try_from(place.chunks).unwrap_or(usize::MAX);
        let Some(last) = chunks.checked_sub(1) else {
            self.section.restart();
            self.done = place != LogPlace::default();
            return if self.done {
                Err(missing("a place before the first chunk"))
            } else {
                Ok(())
            };
        };
        if !usable || self.section.read() != chunks {
            self.section.go(last);
            if !self.section.advance()? {
                return Err(missing("a place after the last chunk"));
            }
        }
        let at = usize::try_from(place.at).ok();
        let at = at.filter(|&at| at <= self.section.bytes().len());
        self.at = at.ok_or_else(|| missing("a place after its chunk"))?;
        if self.section.first() > self.events {
            return Err(missing("a place with fewer events than come before it"));
        }
        self.done = false;
        Ok(())
    }

    /// Whether the writer finished the log.
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
    /// continues in the next chunks. Returns `false` if the log ends before the event does. Memory
    /// grows with the bytes found, not with the announced length.
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
            return Err(self.malformed(
                0,
                "the number of events before this chunk differs from the \
                 number in its header",
            ));
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
