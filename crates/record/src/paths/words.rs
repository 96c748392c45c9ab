//! Words in the trace file: a path that was written during the live run, and can be read from many moments on.
//!
//! Each chunk of the section holds, as LEB128, where the run is before its words (how many numbers, and a [`Waypoint`]'s; none where that
//! is not told), and the calls that the host made since the chunk before (their number and the functions); then words
//! of eight bytes, little-endian. Its first item is the number of blocks executed before. The section's name says by which plan the words
//! were written.

use std::sync::mpsc::Receiver;

use afterimage_ids::{EntityRef, FuncId};
use afterimage_machine::{Opened, WrittenLinesBuilder};
use afterimage_paths::{Boundary, Counter, Finish, NullSink, PathPlan, Waypoint};
use afterimage_program::Program;
use afterimage_trace::{Kind, LogFlusher, SectionReader, SectionWriter, TraceFile, TraceWriter};
use afterimage_wpp::{OpenActivation, StretchDirectory, Summary};

use super::Message;
use super::stretches::{NodeCounts, NodeTally, directory};
use crate::RecordError;
use crate::snapshots::{Captured, Cut, Lines, Reader, Taken};

/// Most host calls that are kept for one chunk.
const MOST_CALLS: usize = 1 << 16;
/// How many words a chunk has: about a million blocks, which are regenerated in some milliseconds.
const CHUNK: usize = 1 << 14;
/// Where the run is is told when so many bytes of words were written for each open activation, of which telling takes about a tenth of
/// that: a deep stack does not make the file much longer.
const BYTES_PER_ACTIVATION: usize = 48;

/// The name of the section of a plan's words, which the run wrote itself.
fn name(plan: &PathPlan) -> String {
    format!("path words {:016x}", plan.fingerprint())
}

/// The name of those that a re-execution wrote, which lacks nothing.
fn repeated_name(plan: &PathPlan) -> String {
    format!("path words of a re-execution {:016x}", plan.fingerprint())
}

/// When this many chunks are waiting, they are compressed, by all processors.
const TOGETHER: usize = 128;

/// Who is told of snapshots, as they are made.
pub(crate) type SnapshotFn<'a> = dyn FnMut(Taken) -> Result<(), RecordError> + Send + 'a;

/// Writes the words of a live run, on a thread of its own, and follows them far enough to say where the run is at each chunk. The log is
/// never behind them in the file, so that a run can be followed as far as its path goes, wherever it is cut off.
pub(crate) struct WordWriter<'a, T = NullSink> {
    section: SectionWriter,
    log: Option<LogFlusher>,
    /// What captured states mean, and who is told.
    snapshots: Option<(Reader<'a>, &'a mut SnapshotFn<'a>)>,
    /// Collects the lines of memory that each stretch writes.
    lines: Option<WrittenLinesBuilder>,
    /// The lines written in the current stretch.
    written: Vec<Lines>,
    /// The complete stretches, and the current one.
    stretches: Vec<Summary>,
    stretch: Summary,
    /// What the stop clock showed where each of them began, but for the first.
    clocks: Vec<u64>,
    /// The activations open there.
    open: Vec<Vec<OpenActivation>>,
    counter: Counter<'a, T>,
    calls: Vec<FuncId>,
    chunk: Vec<u8>,
    /// Chunks of a re-execution that are compressed together. Those of a live run are in the file at once.
    later: Option<Vec<(u64, Vec<u8>)>>,
    /// Bytes of words since it was told where the run is.
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
        Ok(Self {
            section: out.live_section(Kind::PATH_WORDS, Some(&name(plan)))?,
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
            later: None,
            since: usize::MAX,
        })
    }

    /// Writes until the producer is done.
    pub(crate) fn write(mut self, messages: Receiver<Message>) -> Result<(), RecordError> {
        self.all(messages)?;
        Ok(self.section.finish(self.counter.time(), &[])?)
    }
}

impl<'a> WordWriter<'a, NodeTally> {
    /// Writes what a re-execution says, and tells of the snapshots that it makes.
    pub(crate) fn repeating(
        out: &TraceWriter,
        plan: &'a PathPlan,
        reader: Reader<'a>,
        tell: &'a mut SnapshotFn<'a>,
    ) -> Result<Self, RecordError> {
        Ok(Self {
            section: out.live_section(Kind::PATH_WORDS, Some(&repeated_name(plan)))?,
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
            later: Some(Vec::new()),
            since: usize::MAX,
        })
    }

    /// Writes until the producer is done. The answer is what the stretches between the snapshots hold.
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
        let later = self.later.take();
        self.section.put_all(&later.unwrap_or_default())?;
        self.section.finish(written, &[])?;
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
                // A re-execution under the debugger cannot be stopped by a fault.
                if self.snapshots.is_some() {
                    messages.iter().for_each(drop);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// A stretch ends here, unless nothing was executed in it: that is the answer.
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
                // What led to them was appended before they were handed over.
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

    /// The activations open at a boundary where a stretch has just ended, except those that are [known](StretchDirectory::known_before).
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

    /// Writes the words up to a cut, and ends the stretch there.
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
            // A stretch may have no words: calls of a function by itself need none.
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
        match &mut self.later {
            // In the file first: whoever kills us now has it.
            None => self.section.put(time, &self.chunk)?,
            Some(later) => {
                later.push((time, std::mem::take(&mut self.chunk)));
                if later.len() == TOGETHER {
                    self.section.put_all(later)?;
                    later.clear();
                }
            }
        }
        for function in self.calls.drain(..) {
            self.counter.host_call(function);
        }
        self.counter.feed(words)?;
        self.since += 8 * words.len();
        Ok(())
    }
}

/// What a chunk holds.
pub(crate) struct Piece {
    /// How many blocks were executed before, as the file says.
    pub first: u64,
    /// Where the run is before, if it is told.
    pub waypoint: Option<Waypoint>,
    /// Calls by the host, before the words.
    pub calls: Vec<FuncId>,
    /// The words.
    pub words: Vec<u64>,
}

/// The words of a live run.
pub(crate) struct WordReader {
    section: SectionReader,
    /// How many chunks were read.
    read: usize,
    /// A re-execution wrote them, which lacks nothing.
    pub(crate) repeated: bool,
}

impl WordReader {
    /// The words that a file has, if they were written by this plan: those of a re-execution, or else those of the run. If that was cut off, they are
    /// incomplete.
    pub(crate) fn open(file: &TraceFile, plan: &PathPlan) -> Result<Option<Self>, RecordError> {
        let repeated = Self::named(file, &repeated_name(plan), true)?;
        match repeated {
            Some(_) => Ok(repeated),
            None => Self::named(file, &name(plan), false),
        }
    }

    fn named(file: &TraceFile, name: &str, repeated: bool) -> Result<Option<Self>, RecordError> {
        // Other sections may be damaged: that is why the path is built again.
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

    /// Another reader of the same words, at the beginning. O(1).
    pub(super) fn again(&self) -> Self {
        Self {
            section: self.section.again(),
            read: 0,
            repeated: self.repeated,
        }
    }

    /// The first chunk before which at least this many blocks were executed. O(log chunks).
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

    /// Makes the last piece before block T that tells where the run is the next one. O(log pieces), and those between it and T.
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

    /// The piece before which so many blocks were executed and the words are complete, and where the run is there. O(log pieces).
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

    /// The next piece.
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
        // The first one tells where the run begins.
        if said.is_some_and(|time| time != first) || said.is_none() && self.read == 1 {
            return Err(RecordError::Words);
        }
        Ok(Some(piece))
    }

    /// How many blocks were executed before the chunk that was read last, as the file says.
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

/// So many numbers, and these.
fn list<T>(input: &mut &[u8], item: impl Fn(u64) -> Result<T, ()>) -> Result<Vec<T>, ()> {
    let count = number(input)?;
    // Each takes a byte at least.
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
        // One number has one form.
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
