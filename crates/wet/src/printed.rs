//! Stores a program's output, that is, the bytes that the host read in output calls.
//!
//! These bytes follow from the path and the log, but only if the run is followed from a checkpoint.
//! For a question about a printed line, following the run would take longer than the rest of the
//! work. So the bytes are stored.

use std::cell::RefCell;
use std::ops::Range as Span;
use std::rc::Rc;

use afterimage_ids::{EntityRef, FuncId};
use afterimage_machine::{GlobalBits, NodeCode, Observer, Range};
use afterimage_program::Program;
use afterimage_trace::{Kind, SectionWriter, TraceError as FileError, TraceFile, TraceWriter};

use crate::epoch::wire::{put, take};

/// The maximum number of bytes stored for one call. If a call has more bytes, none of them are
/// stored.
pub const MOST_PRINTED: usize = 8 << 20;
/// The size in bytes at which a chunk ends.
const CHUNK: usize = 256 << 10;
/// The version of chunks and of the index.
const VERSION: u8 = 1;

/// The reason why the output cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PrintedError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The stored output is damaged.
    #[error(
        "the printed output is damaged: {0}; build the values again with `afterimage build \
         --lens full --again`"
    )]
    Damaged(&'static str),
}

/// The bytes that the host read in an output call. An output call is a call to WASI's `fd_write`
/// for descriptor 1 or 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Printed<'a> {
    /// The number of the host call, from 1.
    pub call: u64,
    /// The time of the block that ends with the call.
    pub time: u64,
    /// The bytes of all ranges that the host read, in the order of the log. The list of buffers
    /// comes first.
    pub bytes: &'a [u8],
}

impl Printed<'_> {
    /// Returns the CRC-32 of the bytes, as in the log.
    pub fn digest(&self) -> u32 {
        crc32fast::hash(self.bytes)
    }
}

/// Whether a call to an import with this module, name and first argument is an output call.
pub fn is_printing(module: &str, name: &str, descriptor: u64) -> bool {
    module == "wasi_snapshot_preview1" && name == "fd_write" && matches!(descriptor, 1 | 2)
}

/// Observes a run's output.
pub(crate) struct Printing<'p> {
    program: &'p Program,
    /// The number of calls to the host so far.
    calls: u64,
    /// Whether the instructions of the current node are done. If so, the guest makes the next call.
    is_done: bool,
    /// Whether the current call outputs bytes.
    is_printing: bool,
    /// Whether the host read the next reported bytes in an output call.
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

    /// Returns the output of the last executed node, whose last block has this time.
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
        // One byte beyond the limit is kept, to show that there were too many bytes.
        if std::mem::take(&mut self.is_read) && self.bytes.len() <= MOST_PRINTED {
            let left = MOST_PRINTED + 1 - self.bytes.len();
            self.bytes
                .extend_from_slice(&bytes[..bytes.len().min(left)]);
        }
    }
}

/// Writes output to a file, call by call.
pub struct PrintedWriter {
    section: SectionWriter,
    chunk: Vec<u8>,
    /// The last call written in the chunk, with its time.
    last: (u64, u64),
    /// The number of blocks executed before the chunk.
    before: u64,
    /// The first call of each chunk.
    firsts: Vec<u64>,
}

impl PrintedWriter {
    /// Begins the section.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn new(out: &TraceWriter) -> Result<Self, FileError> {
        Ok(Self {
            section: out.section(Kind::PRINTED, None)?,
            chunk: Vec::new(),
            last: (0, 0),
            before: 0,
            firsts: Vec::new(),
        })
    }

    /// Writes the output of the next call.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
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

    /// Writes the index, and ends the section. The output of the first `length` blocks is then
    /// complete. The caller must commit the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
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

/// A decoded chunk.
#[derive(Debug)]
struct Chunk {
    bytes: Vec<u8>,
    /// The calls, ascending, with their times and the positions of their bytes.
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

/// The output stored in a file.
#[derive(Debug)]
pub struct FilePrinted {
    file: TraceFile,
    /// The first call of each chunk, ascending.
    firsts: Vec<u64>,
    length: u64,
    /// The chunk read last.
    last: RefCell<Option<(usize, Rc<Chunk>)>>,
}

impl FilePrinted {
    /// Opens the output in a file. Returns `None` if the file has none.
    ///
    /// # Errors
    /// Returns an error if the stored output is damaged.
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

    /// Returns the number of executed blocks that the stored output covers.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the time of the block that ends with a call, and the bytes that the host read in it.
    /// `digest` is the CRC-32 of the bytes in the log. Returns `None` if the bytes are not stored.
    /// Decodes a chunk, unless the call is in the chunk read last. In that case, this takes only
    /// O(log n + bytes).
    ///
    /// # Errors
    /// Returns an error if the stored output is damaged, or does not match the log.
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
            Err(PrintedError::Damaged("the log has different bytes"))
        }
    }

    /// Passes all calls to `show`, in order, until `show` fails.
    ///
    /// # Errors
    /// Returns an error if the stored output is damaged, or `show` fails.
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
        // The index lists the first call of this chunk and of the next chunk.
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

/// Decodes the first calls that an index lists.
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
