//! Stores path words in the trace file, so that a path can be read from many moments.
//!
//! Each chunk of the section begins with LEB128 numbers. First comes the state of the run before
//! its words: a count, and that many numbers of a [`Waypoint`]. The count may be 0. Then come the
//! number of the host's calls since the previous chunk, and the called functions. Words of eight
//! bytes, little-endian, fill the rest. The chunk's first item is the number of blocks executed
//! before it. The section's name identifies the plan that the words follow.

use std::sync::mpsc::Receiver;

use afterimage_ids::{EntityRef, FuncId};
use afterimage_machine::{Opened, WrittenLinesBuilder};
use afterimage_paths::{Boundary, Counter, Finish, NullSink, PathPlan, Waypoint};
use afterimage_program::Program;
use afterimage_trace::{
    BackgroundSection, Kind, LogFlusher, SectionReader, SectionWriter, TraceError, TraceFile,
    TraceWriter,
};
use afterimage_wpp::{OpenActivation, StretchDirectory, Summary};

use super::Message;
use super::stretches::{NodeCounts, NodeTally, directory};
use crate::RecordError;
use crate::snapshots::{Captured, Cut, Lines, Reader, Taken};

/// The maximum number of host calls kept for one chunk.
const MOST_CALLS: usize = 1 << 16;
/// The number of words in a chunk. They describe about a million blocks, which are regenerated in a
/// few milliseconds.
const CHUNK: usize = 1 << 14;
/// The state of the run is stored again after this many bytes of words per open activation. The
/// state takes about a tenth of those bytes, so a deep stack does not make the file much longer.
const BYTES_PER_ACTIVATION: usize = 48;

/// Returns the section name for words of this plan that the live run wrote.
fn name(plan: &PathPlan) -> String {
    format!("path words {:016x}", plan.fingerprint())
}

/// Returns the section name for words of this plan that a re-execution wrote. They are complete.
fn repeated_name(plan: &PathPlan) -> String {
    format!("path words of a re-execution {:016x}", plan.fingerprint())
}

/// A section of path words.
enum Section {
    /// Each chunk goes to the file at once, so that a kill loses nothing.
    Live(SectionWriter),
    /// Another thread compresses the chunks.
    Repeated(BackgroundSection),
}

impl Section {
    /// Writes a chunk, and empties it.
    fn put(&mut self, first: u64, chunk: &mut Vec<u8>) -> Result<(), TraceError> {
        match self {
            Section::Live(section) => section.put(first, chunk),
            Section::Repeated(section) => section.put(first, std::mem::take(chunk)),
        }
    }

    fn finish(self, first: u64) -> Result<(), TraceError> {
        match self {
            Section::Live(section) => section.finish(first, &[]),
            Section::Repeated(section) => section.finish(first, &[]),
        }
    }
}

/// Receives snapshots as they are made.
pub(crate) type SnapshotFn<'a> = dyn FnMut(Taken) -> Result<(), RecordError> + Send + 'a;

/// Writes the words of a live run or of a re-execution, on another thread. The writer also follows
/// the words far enough to describe the state of the run at each chunk. The log reaches the file
/// before the words do, so a run can be followed to the end of its path, wherever it is cut off.
pub(crate) struct WordWriter<'a, T = NullSink> {
    section: Section,
    log: Option<LogFlusher>,
    /// The reader of captured states, and the callback for snapshots.
    snapshots: Option<(Reader<'a>, &'a mut SnapshotFn<'a>)>,
    /// Collects the lines of memory that each stretch writes.
    lines: Option<WrittenLinesBuilder>,
    /// The lines written in the current stretch.
    written: Vec<Lines>,
    /// The complete stretches.
    stretches: Vec<Summary>,
    stretch: Summary,
    /// The stop clock at the beginning of each stretch except the first.
    clocks: Vec<u64>,
    /// The activations open at each of these moments, without those that are known from earlier
    /// moments.
    open: Vec<Vec<OpenActivation>>,
    counter: Counter<'a, T>,
    calls: Vec<FuncId>,
    chunk: Vec<u8>,
    /// The number of bytes of words since the state of the run was last stored.
    since: usize,
    program: &'a Program,
}

impl<'a> WordWriter<'a> {
    pub(crate) fn new(
        out: &TraceWriter,
        program: &'a Program,
        plan: &'a PathPlan,
        log: LogFlusher,
    ) -> Result<Self, RecordError> {
        let section = out.live_section(Kind::PATH_WORDS, Some(&name(plan)))?;
        Ok(Self {
            section: Section::Live(section),
            log: Some(log),
            snapshots: None,
            lines: None,
            written: Vec::new(),
            stretches: Vec::new(),
            stretch: Summary::default(),
            clocks: Vec::new(),
            open: Vec::new(),
            counter: Counter::new(program, plan),
            program,
            calls: Vec::new(),
            chunk: Vec::new(),
            since: usize::MAX,
        })
    }

    /// Writes the words until the producer is done.
    pub(crate) fn write(mut self, messages: Receiver<Message>) -> Result<(), RecordError> {
        self.all(messages)?;
        Ok(self.section.finish(self.counter.time())?)
    }
}

impl<'a> WordWriter<'a, NodeTally> {
    /// Creates a writer for a re-execution. The writer passes its snapshots to `tell`.
    pub(crate) fn repeating(
        out: &TraceWriter,
        plan: &'a PathPlan,
        reader: Reader<'a>,
        tell: &'a mut SnapshotFn<'a>,
    ) -> Result<Self, RecordError> {
        let section = out.live_section(Kind::PATH_WORDS, Some(&repeated_name(plan)))?;
        Ok(Self {
            section: Section::Repeated(section.in_background()?),
            log: None,
            stretches: Vec::new(),
            stretch: Summary::default(),
            clocks: Vec::new(),
            open: Vec::new(),
            counter: Counter::with(reader.program(), plan, NodeTally::default()),
            program: reader.program(),
            snapshots: Some((reader, tell)),
            lines: Some(WrittenLinesBuilder::new(out)?),
            written: Vec::new(),
            calls: Vec::new(),
            chunk: Vec::new(),
            since: usize::MAX,
        })
    }

    /// Writes the words until the producer is done, and returns the directory of the stretches.
    pub(crate) fn write_stretches(
        mut self,
        messages: Receiver<Message>,
        finish: &Finish,
    ) -> Result<StretchDirectory, RecordError> {
        self.all(messages)?;
        let written = self.counter.time();
        self.counter.finish(finish)?;
        self.end_stretch()?;
        if let Some(lines) = self.lines.take() {
            lines.finish()?;
        }
        self.section.finish(written)?;
        let nodes = self.counter.into_tally().nodes();
        // If nothing was executed after the last cut, no stretch begins there.
        let begun = self.stretches.len().saturating_sub(1);
        self.clocks.truncate(begun);
        self.open.truncate(begun);
        Ok(StretchDirectory {
            directory: directory(self.program, nodes, self.stretches),
            clocks: self.clocks,
            open: self.open,
        })
    }
}

impl<T: NodeCounts> WordWriter<'_, T> {
    fn all(&mut self, messages: Receiver<Message>) -> Result<(), RecordError> {
        for message in &messages {
            if let Err(error) = self.message(message) {
                // A fault cannot stop a re-execution under the debugger, so drain the messages.
                if self.snapshots.is_some() {
                    messages.iter().for_each(drop);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Ends the current stretch. Returns false if nothing was executed in that stretch.
    fn end_stretch(&mut self) -> Result<bool, RecordError> {
        let (before, time) = (self.stretch.before, self.counter.time());
        if time == before {
            return Ok(false);
        }
        let depth = self.counter.depth() as u32;
        let (tally, kept) = self.counter.take()?;
        let kept = (kept as u32).min(self.stretch.open);
        let next = Summary {
            before: time,
            open: depth,
            ..Summary::default()
        };
        if let Some(lines) = &mut self.lines {
            let last = self.stretches.len().checked_sub(1);
            if let Some(&clock) = last.and_then(|last| self.clocks.get(last)) {
                lines.next(clock)?;
            }
            for (memory, page, bits) in self.written.drain(..) {
                lines.lines().add(memory, page as usize, bits);
            }
        }
        let ended = std::mem::replace(&mut self.stretch, next);
        self.stretches.push(Summary {
            length: time - before,
            kept,
            begun: depth - kept,
            node_counts: tally.taken(),
            ..ended
        });
        Ok(true)
    }

    fn message(&mut self, message: Message) -> Result<(), RecordError> {
        match message {
            Message::HostCall(function) => {
                self.calls.push(function);
                if self.calls.len() == MOST_CALLS {
                    self.put(&[])?;
                }
            }
            Message::Words(half) => {
                // The events that led to these words were logged before the words were handed over.
                self.flush();
                for words in half.words().chunks(CHUNK) {
                    self.put(words)?;
                }
            }
            Message::Cut(words, captured) => self.cut(&words, *captured)?,
            Message::Written(mut lines) => self.written.append(&mut lines),
            Message::Last(word) => {
                self.flush();
                self.put(&[word])?;
            }
        }
        Ok(())
    }

    fn flush(&self) {
        if let Some(log) = &self.log {
            log.flush();
        }
    }

    /// Returns the activations open at a boundary where a stretch just ended, except those that are
    /// [known](StretchDirectory::known_before).
    fn open_at(&self, boundary: &Boundary) -> Vec<OpenActivation> {
        let known = self.stretches.last().map(StretchDirectory::known_before);
        let waiting = boundary.waiting.iter();
        let waiting = waiting.map(|frame| (frame.function, Some(frame.block)));
        let active = boundary.header.map(|_| (boundary.function, None));
        let all = waiting.chain(active).zip(self.counter.opened());
        let all = all.map(|((function, call), (entered, called))| OpenActivation {
            function,
            call,
            entered,
            called,
        });
        all.skip(known.unwrap_or(0)).collect()
    }

    /// Writes the words up to a cut and ends the stretch there.
    fn cut(&mut self, words: &[u64], mut captured: Captured) -> Result<(), RecordError> {
        self.written.append(&mut captured.lines);
        for words in words.chunks(CHUNK) {
            self.put(words)?;
        }
        if !self.calls.is_empty() {
            self.put(&[])?;
        }
        if let Some((reader, tell)) = &mut self.snapshots
            && let Some(Cut {
                clock,
                boundary,
                taken,
            }) = reader.read(captured)?
        {
            let time = self.counter.close(&boundary)?;
            self.since = usize::MAX;
            if let Some(mut taken) = taken {
                taken.snapshot.time = time;
                let opened = self.counter.opened();
                let opened = opened.map(|(entered, called)| Opened { entered, called });
                taken.opened = opened.collect();
                tell(taken)?;
            }
            if self.end_stretch()? {
                self.clocks.push(clock);
                self.open.push(self.open_at(&boundary));
            }
            // A stretch may have no words, because consecutive calls to functions need none.
            self.put(&[])?;
        }
        Ok(())
    }

    fn put(&mut self, words: &[u64]) -> Result<(), RecordError> {
        self.chunk.clear();
        if self.since / BYTES_PER_ACTIVATION >= self.counter.depth() {
            let waypoint = self.counter.waypoint()?;
            put_number(&mut self.chunk, waypoint.numbers().len() as u64);
            for &number in waypoint.numbers() {
                put_number(&mut self.chunk, number);
            }
            self.since = 0;
        } else {
            put_number(&mut self.chunk, 0);
        }
        put_number(&mut self.chunk, self.calls.len() as u64);
        for &function in &self.calls {
            put_number(&mut self.chunk, function.index() as u64);
        }
        for word in words {
            self.chunk.extend_from_slice(&word.to_le_bytes());
        }
        let time = self.counter.time();
        self.section.put(time, &mut self.chunk)?;
        for function in self.calls.drain(..) {
            self.counter.host_call(function);
        }
        self.counter.feed(words)?;
        self.since += 8 * words.len();
        Ok(())
    }
}

/// The contents of a chunk.
pub(crate) struct Piece {
    /// The number of blocks executed before the words, according to the file.
    pub first: u64,
    /// The state of the run before the words, if stored.
    pub waypoint: Option<Waypoint>,
    /// The host's calls before the words.
    pub calls: Vec<FuncId>,
    /// The words of the piece.
    pub words: Vec<u64>,
}

/// A reader for the path words in a file.
pub(crate) struct WordReader {
    section: SectionReader,
    /// The number of chunks before the next chunk to read.
    read: usize,
    /// Whether a re-execution wrote the words, in which case they are complete.
    pub(crate) repeated: bool,
}

impl WordReader {
    /// Opens the words in a file that follow this plan. Prefers the words of a re-execution. The
    /// words of a run that was cut off are incomplete.
    pub(crate) fn open(file: &TraceFile, plan: &PathPlan) -> Result<Option<Self>, RecordError> {
        let repeated = Self::named(file, &repeated_name(plan), true)?;
        match repeated {
            Some(_) => Ok(repeated),
            None => Self::named(file, &name(plan), false),
        }
    }

    fn named(file: &TraceFile, name: &str, repeated: bool) -> Result<Option<Self>, RecordError> {
        // Other sections may be damaged, which may be the reason for rebuilding the path.
        let sections = (0..).map_while(|position| file.section(position));
        let mut words = Vec::from_iter(sections.filter(|of| of.kind() == Kind::PATH_WORDS));
        while let Some(section) = words.pop() {
            if section.name()? == Some(name) {
                return Ok(Some(Self {
                    section,
                    read: 0,
                    repeated,
                }));
            }
        }
        Ok(None)
    }

    /// Returns another reader of the same words, at the beginning. Time: O(1).
    pub(super) fn again(&self) -> Self {
        Self {
            section: self.section.again(),
            read: 0,
            repeated: self.repeated,
        }
    }

    /// Returns the first chunk with at least this many blocks before it. Time: O(log chunks).
    fn first_from(&mut self, time: u64) -> usize {
        let (mut low, mut high) = (0, self.section.chunks());
        while low < high {
            let middle = low.midpoint(high);
            self.section.go(middle + 1);
            if self.section.first() < time {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Seeks the last piece before `time` that stores the state of the run. Time: O(log pieces),
    /// plus the number of pieces between that piece and `time`.
    pub(crate) fn seek(&mut self, time: u64) -> Result<(), RecordError> {
        let mut low = self.first_from(time);
        while low > 0 {
            low -= 1;
            self.go(low);
            if self.next()?.is_some_and(|piece| piece.waypoint.is_some()) {
                break;
            }
        }
        self.go(low);
        Ok(())
    }

    /// Returns the piece that begins after `time` blocks and at the beginning of a word, and the
    /// state of the run there. Time: O(log pieces).
    pub(super) fn between(&mut self, time: u64) -> Result<(Waypoint, Piece), RecordError> {
        let low = self.first_from(time);
        self.go(low);
        while let Some(mut piece) = self.next()?
            && piece.first == time
        {
            if let Some(waypoint) = piece.waypoint.take()
                && waypoint.is_between_words()
            {
                return Ok((waypoint, piece));
            }
        }
        Err(RecordError::Words)
    }

    fn go(&mut self, chunk: usize) {
        self.section.go(chunk);
        self.read = chunk;
    }

    /// Reads the next piece.
    pub(crate) fn next(&mut self) -> Result<Option<Piece>, RecordError> {
        if !self.section.advance()? {
            return Ok(None);
        }
        self.read += 1;
        let input = &mut self.section.bytes();
        if input.is_empty() && self.read == self.section.chunks() && self.section.is_complete() {
            return Ok(None);
        }
        let first = self.section.first();
        let piece = read(input, first).map_err(|()| RecordError::Words)?;
        let said = piece.waypoint.as_ref().map(Waypoint::time);
        // The first piece stores the run's initial state.
        if said.is_some_and(|time| time != first) || said.is_none() && self.read == 1 {
            return Err(RecordError::Words);
        }
        Ok(Some(piece))
    }

    /// Returns the number of blocks before the chunk read last, according to the file.
    pub(crate) fn first(&self) -> u64 {
        self.section.first()
    }
}

fn read(input: &mut &[u8], first: u64) -> Result<Piece, ()> {
    let numbers = list(input, Ok)?;
    let index = |number| u32::try_from(number).map(FuncId::from_u32).map_err(|_| ());
    let calls = list(input, index)?;
    if !input.len().is_multiple_of(8) {
        return Err(());
    }
    let words = input.chunks_exact(8);
    let words = words.map(|c| u64::from_le_bytes([c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]]));
    Ok(Piece {
        first,
        waypoint: (!numbers.is_empty()).then(|| Waypoint::from_numbers(numbers)),
        calls,
        words: words.collect(),
    })
}

/// Reads a count and that many items.
fn list<T>(input: &mut &[u8], item: impl Fn(u64) -> Result<T, ()>) -> Result<Vec<T>, ()> {
    let count = number(input)?;
    // Each item takes at least one byte.
    if count > input.len() as u64 {
        return Err(());
    }
    (0..count).map(|_| item(number(input)?)).collect()
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
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = input.split_first().ok_or(())?;
        *input = rest;
        // Each number has only one valid encoding.
        if shift == 63 && byte > 1 || shift > 0 && byte == 0 {
            break;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(())
}
