//! What a program put out: the bytes that the host read when it was called for that.
//!
//! They follow from the path and the log, but only by following the run from a checkpoint on, which takes longer than all else that is asked about a printed line.

use std::cell::RefCell;
use std::ops::Range as Span;
use std::rc::Rc;

use afterimage_ids::{EntityRef, FuncId};
use afterimage_machine::{GlobalBits, NodeCode, Observer, Range};
use afterimage_program::Program;
use afterimage_trace::{Kind, SectionWriter, TraceError as FileError, TraceFile, TraceWriter};

use crate::epoch::wire::{put, take};

/// What a call read is not kept if it is more bytes.
pub const MOST_PRINTED: usize = 8 << 20;
/// A chunk ends with the call after which it has so many bytes.
const CHUNK: usize = 256 << 10;
/// The form of chunks and of the index.
const VERSION: u8 = 1;

/// Why what was put out cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PrintedError {
    /// The file.
    #[error(transparent)]
    File(#[from] FileError),
    /// What is in it.
    #[error(
        "what was printed is damaged: {0}; build the values again with `afterimage build --lens full --again`"
    )]
    Damaged(&'static str),
}

/// What a call of the host read to put it out, by the guest's wish: one of `fd_write` of WASI, for descriptor 1 or 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Printed<'a> {
    /// Which call of the host, from 1.
    pub call: u64,
    /// The time of the block that ends with it.
    pub time: u64,
    /// The bytes of all ranges that it read, in the order of the log: first the list of what to put out.
    pub bytes: &'a [u8],
}

impl Printed<'_> {
    /// The CRC-32 of the bytes, as the log has it.
    pub fn digest(&self) -> u32 {
        crc32fast::hash(self.bytes)
    }
}

/// Whether a call of an import is one of which is kept what it reads: by its module and name, and its first argument.
pub fn is_printing(module: &str, name: &str, descriptor: u64) -> bool {
    module == "wasi_snapshot_preview1" && name == "fd_write" && matches!(descriptor, 1 | 2)
}

/// Watches a run for what is put out.
pub(crate) struct Printing<'p> {
    program: &'p Program,
    /// Calls of the host so far.
    calls: u64,
    /// The instructions of the node at hand are done: what is called now, the guest calls.
    is_done: bool,
    /// The call at hand puts something out.
    is_printing: bool,
    /// What was announced last is what the host reads.
    is_read: bool,
    bytes: Vec<u8>,
}

impl<'p> Printing<'p> {
    pub fn new(program: &'p Program) -> Self {
        Self {
            program,
            calls: 0,
            is_done: false,
            is_printing: false,
            is_read: false,
            bytes: Vec::new(),
        }
    }

    /// What the node put out that was executed last: its last block was that of `time`.
    #[inline]
    pub fn executed(&mut self, time: u64) -> Option<Printed<'_>> {
        self.is_done = false;
        let printed = std::mem::take(&mut self.is_printing);
        (printed && self.bytes.len() <= MOST_PRINTED).then_some(Printed {
            call: self.calls,
            time,
            bytes: &self.bytes,
        })
    }
}

impl Observer for Printing<'_> {
    const REGISTERS: bool = false;

    #[inline]
    fn done(&mut self, _: &NodeCode, _: &[u64], _: &[u64]) {
        self.is_done = true;
    }

    #[inline]
    fn called(&mut self, function: FuncId, arguments: &[GlobalBits]) {
        if let Some(import) = self.program.imports.get(function.index())
            && let Some(&(descriptor, _)) = arguments.first()
        {
            let is_it = is_printing(&import.module, &import.name, descriptor);
            self.is_printing = self.is_done && is_it;
            self.bytes.clear();
        }
    }

    #[inline]
    fn host_call(&mut self) {
        self.calls += 1;
    }

    #[inline]
    fn host_read(&mut self, _: Range) {
        self.is_read = self.is_printing;
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        // What is too much is only counted.
        if std::mem::take(&mut self.is_read) && self.bytes.len() <= MOST_PRINTED {
            let left = MOST_PRINTED + 1 - self.bytes.len();
            self.bytes
                .extend_from_slice(&bytes[..bytes.len().min(left)]);
        }
    }
}

/// Writes what was put out to a file, call by call.
pub struct PrintedWriter {
    section: SectionWriter,
    chunk: Vec<u8>,
    /// Of the call that was written last in the chunk.
    last: (u64, u64),
    /// How many blocks were executed before the chunk.
    before: u64,
    /// The first call of each chunk.
    firsts: Vec<u64>,
}

impl PrintedWriter {
    /// Begins the section.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn new(out: &TraceWriter) -> Result<Self, FileError> {
        Ok(Self {
            section: out.section(Kind::PRINTED, None)?,
            chunk: Vec::new(),
            last: (0, 0),
            before: 0,
            firsts: Vec::new(),
        })
    }

    /// Writes what the next call put out.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn put(&mut self, printed: &Printed<'_>) -> Result<(), FileError> {
        if self.chunk.is_empty() {
            self.chunk.push(VERSION);
            self.firsts.push(printed.call);
            self.before = printed.time.saturating_sub(1);
            self.last = (0, 0);
        }
        put(&mut self.chunk, printed.call - self.last.0);
        put(&mut self.chunk, printed.time - self.last.1);
        put(&mut self.chunk, printed.bytes.len() as u64);
        self.chunk.extend_from_slice(printed.bytes);
        self.last = (printed.call, printed.time);
        if self.chunk.len() < CHUNK {
            Ok(())
        } else {
            self.end_chunk()
        }
    }

    fn end_chunk(&mut self) -> Result<(), FileError> {
        self.section.put(self.before, &self.chunk)?;
        self.chunk.clear();
        Ok(())
    }

    /// Ends the section with its index: all was told of so many executed blocks. The caller commits.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self, length: u64) -> Result<(), FileError> {
        if !self.chunk.is_empty() {
            self.end_chunk()?;
        }
        let mut index = vec![VERSION];
        let mut last = 0;
        for first in self.firsts {
            put(&mut index, first - last);
            last = first;
        }
        self.section.finish(length, &index)
    }
}

/// A chunk that was read.
#[derive(Debug)]
struct Chunk {
    bytes: Vec<u8>,
    /// The calls, ascending, with their times and where their bytes are.
    calls: Vec<(u64, u64, Span<usize>)>,
}

impl Chunk {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (&version, mut input) = bytes.split_first()?;
        let (mut call, mut time) = (0u64, 0u64);
        let mut calls = Vec::new();
        while !input.is_empty() {
            let next = take(&mut input)?;
            call = call.checked_add(next).filter(|_| next > 0)?;
            time = time.checked_add(take(&mut input)?)?;
            let length = usize::try_from(take(&mut input)?).ok()?;
            let at = bytes.len() - input.len();
            input = input.get(length..)?;
            calls.push((call, time, at..at + length));
        }
        (version == VERSION).then(|| Self {
            bytes: bytes.to_vec(),
            calls,
        })
    }

    fn get(&self, position: usize) -> Option<Printed<'_>> {
        let (call, time, at) = self.calls.get(position)?;
        Some(Printed {
            call: *call,
            time: *time,
            bytes: self.bytes.get(at.clone())?,
        })
    }
}

/// What was put out, as a file tells it.
#[derive(Debug)]
pub struct FilePrinted {
    file: TraceFile,
    /// The first call of each chunk, ascending.
    firsts: Vec<u64>,
    length: u64,
    /// The chunk that was read last.
    last: RefCell<Option<(usize, Rc<Chunk>)>>,
}

impl FilePrinted {
    /// What a file tells; `None` if it has nothing of it.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn open(file: &TraceFile) -> Result<Option<Self>, PrintedError> {
        let Some(mut section) = file.last(Kind::PRINTED) else {
            return Ok(None);
        };
        let chunks = section.chunks();
        section.go(chunks - 1);
        section.advance()?;
        let damaged = PrintedError::Damaged("its index");
        let firsts = firsts(section.bytes()).filter(|firsts| firsts.len() + 1 == chunks);
        Ok(Some(Self {
            file: file.clone(),
            firsts: firsts.ok_or(damaged)?,
            length: section.first(),
            last: RefCell::default(),
        }))
    }

    /// How many blocks were executed as far as is told.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The time of the block that ends with a call, and what it read, of which the log has this CRC-32. `None` if that is not kept. O(a chunk), or of the chunk that was read
    /// last, O(log n + bytes).
    ///
    /// # Errors
    /// If it is damaged, or not what the log says.
    pub fn get(&self, call: u64, digest: u32) -> Result<Option<(u64, Vec<u8>)>, PrintedError> {
        let behind = self.firsts.partition_point(|&first| first <= call);
        let Some(at) = behind.checked_sub(1) else {
            return Ok(None);
        };
        let chunk = self.chunk(at)?;
        let found = chunk.calls.binary_search_by_key(&call, |(call, ..)| *call);
        let Some(found) = found.ok().and_then(|found| chunk.get(found)) else {
            return Ok(None);
        };
        if found.digest() == digest {
            Ok(Some((found.time, found.bytes.to_vec())))
        } else {
            Err(PrintedError::Damaged("the log tells of other bytes"))
        }
    }

    /// Shows all calls, in order, until one is not taken.
    ///
    /// # Errors
    /// If something is damaged, or where a call is not taken.
    pub fn each<E: From<PrintedError>>(
        &self,
        mut show: impl FnMut(Printed<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        for at in 0..self.firsts.len() {
            let chunk = self.chunk(at)?;
            let mut all = (0..chunk.calls.len()).filter_map(|at| chunk.get(at));
            all.try_for_each(&mut show)?;
        }
        Ok(())
    }

    fn chunk(&self, at: usize) -> Result<Rc<Chunk>, PrintedError> {
        if let Some((known, chunk)) = &*self.last.borrow()
            && *known == at
        {
            return Ok(Rc::clone(chunk));
        }
        let section = self.file.last(Kind::PRINTED);
        let mut section = section.ok_or(PrintedError::Damaged("its chunks"))?;
        section.go(at);
        section.advance()?;
        let chunk = Chunk::decode(section.bytes());
        // The index says where it begins, and where the next one does.
        let next = self.firsts.get(at + 1);
        let chunk = chunk.filter(|chunk| {
            let (first, last) = (chunk.calls.first(), chunk.calls.last());
            first.is_some_and(|(call, ..)| self.firsts.get(at) == Some(call))
                && last.is_some_and(|(call, ..)| next.is_none_or(|next| call < next))
        });
        let chunk = Rc::new(chunk.ok_or(PrintedError::Damaged("a chunk"))?);
        *self.last.borrow_mut() = Some((at, Rc::clone(&chunk)));
        Ok(chunk)
    }
}

/// The first calls that an index tells.
fn firsts(bytes: &[u8]) -> Option<Vec<u64>> {
    let (&version, mut input) = bytes.split_first()?;
    let mut firsts = Vec::new();
    let mut last = 0u64;
    while !input.is_empty() {
        let next = take(&mut input)?;
        last = last.checked_add(next).filter(|_| next > 0)?;
        firsts.push(last);
    }
    (version == VERSION).then_some(firsts)
}
