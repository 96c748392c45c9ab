//! Writes trace files. A chunk goes to the end of the file when it is full. [`TraceWriter::commit`]
//! makes all written chunks part of the file.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use afterimage_ids::FileOffset;
use zstd::bulk::Compressor;

use crate::layout::{
    CHUNK_HEADER_LEN, ChunkHeader, FLAG_LAST, FLAG_NAMED, Footer, Kind, MAX_NAME, MAX_RAW,
    RECORD_LEN, file_header,
};
use crate::limits::{MAX_COUNTS, MAX_END, MAX_META, MAX_MODULE, check};
use crate::open::find_state;
use crate::place::{Existing, LockedFile};
use crate::state::ChunkEntry;
use crate::{CountsLens, End, LogWriter, Meta, Result, TraceError, TraceFile, codec, counts, end};

/// A section written all at once is cut into chunks of this length.
pub(crate) const CHUNK: usize = 1 << 20;

/// Writes a trace file, or appends to one. Sections may be written from several threads.
///
/// Written data becomes part of the file only with [`TraceWriter::commit`]. If the writer of a new
/// file is dropped without a commit, the file remains as a recording that was cut off. A writer
/// that appends removes additions that were not committed.
#[derive(Debug)]
pub struct TraceWriter {
    core: Shared,
}

type Shared = Arc<Mutex<Core>>;

impl TraceWriter {
    /// Creates a trace file. A new file that replaces an existing file is written beside it, and
    /// takes its place at the first commit.
    ///
    /// # Errors
    /// Returns [`TraceError::Exists`], [`TraceError::BeingWritten`], [`TraceError::Io`],
    /// [`TraceError::Write`], or, if the path is a folder or a device, [`TraceError::NotAFile`].
    pub fn create(path: &Path, existing: Existing) -> Result<TraceWriter> {
        let place = LockedFile::create(path, existing)?;
        let mut core = Core {
            place,
            position: 0,
            committed: None,
            chunks: Vec::new(),
            kinds: Vec::new(),
            next_section: 0,
            state: 0,
            failed: false,
        };
        if let Err(error) = core.append(&file_header()) {
            // Without a header, the file could never be read.
            let _ = fs::remove_file(&core.place.path);
            return Err(error);
        }
        Ok(TraceWriter::new(core))
    }

    /// Opens a trace file to append sections. The remains of an interrupted addition are removed
    /// first. A recording that was never committed is committed as it is, without an ending.
    ///
    /// # Errors
    /// Returns the errors of [`crate::TraceFile::open`], [`TraceError::BeingWritten`],
    /// [`TraceError::Write`], and [`TraceError::Hidden`] if anything else follows the last complete
    /// state, which is left unchanged.
    pub fn append(path: &Path) -> Result<TraceWriter> {
        let mut place = LockedFile::existing(path)?;
        let length = place
            .file
            .metadata()
            .map_err(TraceError::io("examine the trace file"))?
            .len();
        let state = find_state(&mut place.file, length)?;
        if state.ignored > 0 && !state.interrupted {
            return Err(TraceError::Hidden {
                at: FileOffset(state.end),
                bytes: state.ignored,
            });
        }
        let position = |file: &mut File| {
            if state.ignored > 0 {
                file.set_len(state.end)?;
            }
            file.seek(SeekFrom::Start(state.end))
        };
        position(&mut place.file).map_err(TraceError::Write)?;
        let mut core = Core {
            place,
            position: state.end,
            committed: state.footer.map(|_| state.end),
            chunks: state.chunks(),
            kinds: state.sections.iter().map(|section| section.kind).collect(),
            next_section: state.next_section(),
            state: state.footer.map_or(0, |footer| footer.state),
            failed: false,
        };
        if core.committed.is_none() {
            core.commit(false)?;
        }
        Ok(TraceWriter::new(core))
    }

    fn new(core: Core) -> TraceWriter {
        TraceWriter {
            core: Arc::new(Mutex::new(core)),
        }
    }

    /// Writes the program and the settings of the run.
    ///
    /// # Errors
    /// Returns [`TraceError::Duplicate`], [`TraceError::TooLarge`], [`TraceError::Write`], or
    /// [`TraceError::Failed`]. The other methods that write a section return the same errors.
    pub fn meta(&self, meta: &Meta) -> Result<()> {
        let json = serde_json::to_vec(meta)
            .map_err(|error| TraceError::io("encode the description of the run")(error.into()))?;
        check("the length of META", json.len(), MAX_META)?;
        self.whole(Kind::META, None, &json)
    }

    /// Writes the original module, of at most 1 GiB.
    pub fn module(&self, wasm: &[u8]) -> Result<()> {
        check("the length of MODULE", wasm.len(), MAX_MODULE)?;
        self.whole(Kind::MODULE, None, wasm)
    }

    /// Begins the boundary log.
    pub fn log(&self) -> Result<LogWriter> {
        LogWriter::new(self.begin(Kind::LOG, None, codec::FAST)?)
    }

    /// Writes how the run ended.
    pub fn end(&self, end: &End) -> Result<()> {
        let bytes = end::encode(end)?;
        check("the length of END", bytes.len(), MAX_END)?;
        self.whole(Kind::END, None, &bytes)
    }

    /// Writes exact edge counts, at most 2²⁷ edges. They replace earlier counts.
    pub fn counts(&self, lens: &CountsLens) -> Result<()> {
        let bytes = counts::encode(lens)?;
        check("the length of COUNTS", bytes.len(), MAX_COUNTS)?;
        self.whole(Kind::COUNTS, None, &bytes)
    }

    /// Begins a section of any kind, with a name of at most 255 bytes. Its chunks may interleave
    /// with chunks of other sections.
    pub fn section(&self, kind: Kind, name: Option<&str>) -> Result<SectionWriter> {
        self.begin(kind, name, codec::NORMAL)
    }

    /// Begins a section that is needed soon, so its chunks are compressed fast.
    pub fn live_section(&self, kind: Kind, name: Option<&str>) -> Result<SectionWriter> {
        self.begin(kind, name, codec::FAST)
    }

    /// Makes everything written so far part of the file, by adding an index and a footer. If the
    /// process is killed afterwards, nothing is lost. A power failure may still lose data; see
    /// [`TraceWriter::commit_durable`].
    pub fn commit(&self) -> Result<()> {
        lock(&self.core).commit(false)
    }

    /// Commits like [`TraceWriter::commit`], but the data is on the disk before the footer is
    /// written, and the footer is on the disk before this call returns.
    pub fn commit_durable(&self) -> Result<()> {
        lock(&self.core).commit(true)
    }

    /// Returns the file's current path. Until the first commit, a file that replaces another is
    /// beside that file.
    pub fn path(&self) -> PathBuf {
        lock(&self.core).place.path.clone()
    }

    /// Removes a new file that was never committed, with all its contents.
    ///
    /// # Errors
    /// Returns [`TraceError::Io`] if the file cannot be removed. A committed file stays.
    pub fn discard(self) -> Result<()> {
        let core = lock(&self.core);
        match core.committed {
            Some(_) => Ok(()),
            None => fs::remove_file(&core.place.path)
                .map_err(TraceError::io("remove the unfinished trace file")),
        }
    }

    /// Writes a whole section of any kind, with a name of at most 255 bytes.
    ///
    /// # Errors
    /// Returns the errors of [`SectionWriter::put`].
    pub fn whole(&self, kind: Kind, name: Option<&str>, bytes: &[u8]) -> Result<()> {
        let mut section = self.begin(kind, name, codec::NORMAL)?;
        let mut rest = bytes;
        while rest.len() > CHUNK {
            let (piece, after) = rest.split_at(CHUNK);
            section.put(0, piece)?;
            rest = after;
        }
        section.finish(0, rest)
    }

    /// Allocates a number for a section whose chunks are copied from another file.
    pub(crate) fn number(&self, kind: Kind) -> Result<u32> {
        lock(&self.core).begin(kind)
    }

    /// Copies a chunk of another file into the section with this number.
    pub(crate) fn copied(&self, header: ChunkHeader, number: u32, payload: &[u8]) -> Result<()> {
        let header = ChunkHeader {
            section: number,
            ..header
        };
        let chunk = [&header.encode()[..], payload].concat();
        lock(&self.core).append_chunk(header, &chunk)
    }

    /// Rewrites a trace file's last state without the sections of some kinds, chunk by chunk. The
    /// new file replaces the old file when it is complete and on the disk, with the same
    /// permissions. Until then, the old file stays unchanged, and setting `stop` ends the work and
    /// removes the new file.
    ///
    /// # Errors
    /// Returns the errors of [`TraceWriter::create`] and [`TraceFile::open`], and
    /// [`TraceError::Write`].
    pub fn rewrite_without(path: &Path, kinds: &[Kind], stop: &AtomicBool) -> Result<()> {
        Self::rewritten(path, |out| {
            out.copy(path, |kind| !kinds.contains(&kind), stop)
        })
    }

    /// Does the same as [`rewrite_without`](Self::rewrite_without), but keeps only the sections of
    /// some kinds, and replaces the description of the run.
    ///
    /// # Errors
    /// Returns the errors of [`rewrite_without`](Self::rewrite_without).
    pub fn rewrite_as(path: &Path, meta: &Meta, kinds: &[Kind], stop: &AtomicBool) -> Result<()> {
        Self::rewritten(path, |out| {
            out.meta(meta)?;
            let kept = |kind| kind != Kind::META && kinds.contains(&kind);
            out.copy(path, kept, stop)
        })
    }

    fn rewritten(path: &Path, write: impl FnOnce(&TraceWriter) -> Result<()>) -> Result<()> {
        let out = TraceWriter::create(path, Existing::Replaced)?;
        let written = write(&out).and_then(|()| out.commit_durable());
        if written.is_err() {
            let _ = out.discard();
        }
        written
    }

    fn copy(&self, from: &Path, kept: impl Fn(Kind) -> bool, stop: &AtomicBool) -> Result<()> {
        let old = fs::metadata(from).map_err(TraceError::io("examine the trace file"))?;
        fs::set_permissions(self.path(), old.permissions())
            .map_err(TraceError::io("set the permissions of the new trace file"))?;
        let file = TraceFile::open(from)?;
        let chunks = file.inner.state.chunks();
        let mut numbers = BTreeMap::new();
        for chunk in chunks.iter().filter(|chunk| kept(chunk.header.kind)) {
            let header = chunk.header;
            let number = match numbers.entry(header.section) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => *new.insert(self.number(header.kind)?),
            };
            if stop.load(Ordering::SeqCst) {
                return Err(TraceError::Stopped);
            }
            self.copied(header, number, file.inner.payload(chunk)?)?;
        }
        Ok(())
    }

    fn begin(&self, kind: Kind, name: Option<&str>, level: i32) -> Result<SectionWriter> {
        check(
            "a section name's length",
            name.map_or(0, str::len),
            MAX_NAME as u64,
        )?;
        let compressor = compressor(level)?;
        let number = lock(&self.core).begin(kind)?;
        Ok(SectionWriter {
            core: Arc::clone(&self.core),
            kind,
            name: name.map(str::to_owned),
            number,
            sequence: 0,
            level,
            compressor,
            chunk: Vec::new(),
        })
    }
}

/// The contents of a chunk, before it is written.
#[derive(Debug)]
pub enum Chunk {
    /// The bytes.
    Raw(Vec<u8>),
    /// The compressed bytes.
    Packed(PackedChunk),
}

/// A chunk that was compressed before the file was ready for it.
#[derive(Debug)]
pub struct PackedChunk {
    /// The number of bytes before compression.
    raw: usize,
    codec: u8,
    payload: Vec<u8>,
}

impl PackedChunk {
    fn new(compressor: &mut Compressor<'static>, raw: &[u8]) -> Self {
        let mut payload = Vec::new();
        let codec = codec::encode(compressor, raw, &mut payload);
        let raw = raw.len();
        Self {
            raw,
            codec,
            payload,
        }
    }
}

/// Compresses chunks for a [live section](TraceWriter::live_section), on any thread.
pub struct ChunkPacker(Compressor<'static>);

impl ChunkPacker {
    /// Creates a packer.
    ///
    /// # Errors
    /// Returns [`TraceError::Io`] if there is too little memory.
    pub fn new() -> Result<Self> {
        Ok(Self(compressor(codec::FAST)?))
    }

    /// Compresses the bytes of a chunk.
    pub fn pack(&mut self, raw: &[u8]) -> PackedChunk {
        PackedChunk::new(&mut self.0, raw)
    }
}

/// The maximum number of chunks that wait for the thread of a [`BackgroundSection`].
const WAITING: usize = 64;

/// A section whose chunks another thread compresses and writes, in order.
pub struct BackgroundSection {
    chunks: SyncSender<(u64, Vec<u8>)>,
    /// The thread, until its result is known.
    writer: Option<JoinHandle<Result<SectionWriter>>>,
}

impl BackgroundSection {
    /// Hands over a chunk. Waits while too many earlier chunks are not yet written.
    ///
    /// # Errors
    /// Returns the errors of [`SectionWriter::put`], for this chunk or an earlier one.
    pub fn put(&mut self, first: u64, raw: Vec<u8>) -> Result<()> {
        match self.chunks.send((first, raw)) {
            Ok(()) => Ok(()),
            // The thread ends early only if it fails.
            Err(_) => self.joined().map(drop),
        }
    }

    /// Waits until all chunks are written, and writes the section's last chunk.
    ///
    /// # Errors
    /// Returns the errors of [`SectionWriter::put`].
    pub fn finish(mut self, first: u64, raw: &[u8]) -> Result<()> {
        // Without a sender, the thread ends after the last chunk.
        self.chunks = mpsc::sync_channel(0).0;
        self.joined()?.finish(first, raw)
    }

    fn joined(&mut self) -> Result<SectionWriter> {
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(section)) => section,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Err(TraceError::Failed),
        }
    }
}

impl fmt::Debug for BackgroundSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackgroundSection").finish_non_exhaustive()
    }
}

/// Writes one section, chunk by chunk. It shares ownership of the file, so it can be moved to
/// another thread or into an engine's store.
pub struct SectionWriter {
    core: Shared,
    kind: Kind,
    name: Option<String>,
    number: u32,
    sequence: u32,
    level: i32,
    compressor: Compressor<'static>,
    /// The chunk under construction. The buffer is kept to reuse its allocation.
    chunk: Vec<u8>,
}

impl SectionWriter {
    /// Writes a chunk. `first` is the number of the section's items that begin before the chunk. It
    /// never decreases.
    ///
    /// # Errors
    /// Returns [`TraceError::TooLarge`] beyond 16 MiB, [`TraceError::Write`], or
    /// [`TraceError::Failed`].
    pub fn put(&mut self, first: u64, raw: &[u8]) -> Result<()> {
        self.chunk(first, raw, 0)
    }

    /// Writes several chunks, each as [`put`](Self::put) does. Several threads compress those that
    /// are not packed, and the resulting file is the same.
    ///
    /// # Errors
    /// Returns the errors of [`SectionWriter::put`].
    pub fn put_all(&mut self, chunks: &[(u64, Chunk)]) -> Result<()> {
        let level = self.level;
        let packed = afterimage_parallel::map_with(
            chunks.len(),
            || codec::compressor(level).ok(),
            |compressor, at| match &chunks[at].1 {
                Chunk::Packed(_) => None,
                Chunk::Raw(raw) => Some(PackedChunk::new(compressor.as_mut()?, raw)),
            },
        );
        for ((first, chunk), packed) in chunks.iter().zip(packed) {
            match (chunk, packed) {
                (Chunk::Packed(packed), _) => self.put_packed(*first, packed)?,
                (_, Some(packed)) => self.put_packed(*first, &packed)?,
                (Chunk::Raw(raw), None) => self.put(*first, raw)?,
            }
        }
        Ok(())
    }

    fn put_packed(&mut self, first: u64, chunk: &PackedChunk) -> Result<()> {
        let flags = self.begin(chunk.raw)?;
        self.chunk.extend_from_slice(&chunk.payload);
        self.append(first, chunk.raw, chunk.codec, flags)
    }

    /// Lets another thread compress and write the following chunks.
    ///
    /// # Errors
    /// Returns [`TraceError::Io`] if no thread can be created.
    pub fn in_background(mut self) -> Result<BackgroundSection> {
        let (chunks, waiting) = mpsc::sync_channel::<(u64, Vec<u8>)>(WAITING);
        let written = move || {
            for (first, raw) in waiting {
                self.put(first, &raw)?;
            }
            Ok(self)
        };
        let writer = thread::Builder::new()
            .spawn(written)
            .map_err(TraceError::io("create a thread"))?;
        Ok(BackgroundSection {
            chunks,
            writer: Some(writer),
        })
    }

    /// Writes the section's last chunk, which may be empty.
    ///
    /// # Errors
    /// Returns the errors of [`SectionWriter::put`].
    pub fn finish(mut self, first: u64, raw: &[u8]) -> Result<()> {
        self.chunk(first, raw, FLAG_LAST)
    }

    fn chunk(&mut self, first: u64, raw: &[u8], flags: u8) -> Result<()> {
        let flags = flags | self.begin(raw.len())?;
        let codec = codec::encode(&mut self.compressor, raw, &mut self.chunk);
        self.append(first, raw.len(), codec, flags)
    }

    /// Reserves space for a header, and for the section's name if it begins here. Returns the
    /// flags.
    fn begin(&mut self, raw: usize) -> Result<u8> {
        check("a chunk's length", raw, MAX_RAW.into())?;
        self.chunk.clear();
        self.chunk.resize(CHUNK_HEADER_LEN, 0);
        let mut flags = 0;
        if self.sequence == 0
            && let Some(name) = &self.name
        {
            flags |= FLAG_NAMED;
            self.chunk.push(name.len() as u8);
            self.chunk.extend_from_slice(name.as_bytes());
        }
        Ok(flags)
    }

    /// Appends the chunk, which is complete except for its header.
    fn append(&mut self, first: u64, raw: usize, codec: u8, flags: u8) -> Result<()> {
        let payload = &self.chunk[CHUNK_HEADER_LEN..];
        let header = ChunkHeader {
            kind: self.kind,
            codec,
            flags,
            section: self.number,
            sequence: self.sequence,
            first,
            stored: payload.len() as u32,
            raw: raw as u32,
            crc: crc32fast::hash(payload),
        };
        self.chunk[..CHUNK_HEADER_LEN].copy_from_slice(&header.encode());
        let limit = u32::MAX.into();
        let next = self.sequence.checked_add(1);
        self.sequence = next.ok_or(TraceError::TooLarge {
            what: "a section's chunks",
            limit,
        })?;
        lock(&self.core).append_chunk(header, &self.chunk)
    }
}

impl fmt::Debug for SectionWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SectionWriter")
            .field("kind", &self.kind)
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}

/// The state shared by all writers of a file.
#[derive(Debug)]
struct Core {
    place: LockedFile,
    /// The file's length, which is also the position of the next write.
    position: u64,
    /// The file's length at the last commit.
    committed: Option<u64>,
    /// All chunks except chunks of indexes, in file order.
    chunks: Vec<ChunkEntry>,
    /// The kinds of all sections begun.
    kinds: Vec<Kind>,
    next_section: u32,
    /// The number of committed states.
    state: u32,
    /// Whether a write failed. Later writes would then land in the wrong place.
    failed: bool,
}

/// Locks the state. Ignores poisoning, because a thread that panicked while holding the lock left
/// nothing half-done, except what `failed` records.
fn lock(core: &Shared) -> MutexGuard<'_, Core> {
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Core {
    /// Allocates a number for a new section.
    fn begin(&mut self, kind: Kind) -> Result<u32> {
        if kind.is_single() && self.kinds.contains(&kind) {
            return Err(TraceError::Duplicate(kind));
        }
        let number = self.next_section;
        self.next_section = number.checked_add(1).ok_or(TraceError::TooLarge {
            what: "the number of sections",
            limit: u32::MAX.into(),
        })?;
        self.kinds.push(kind);
        Ok(number)
    }

    fn append_chunk(&mut self, header: ChunkHeader, bytes: &[u8]) -> Result<()> {
        let offset = self.position;
        self.append(bytes)?;
        self.chunks.push(ChunkEntry { offset, header });
        Ok(())
    }

    /// Writes at the end. After a failure, the file is truncated to the last whole piece.
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.failed {
            return Err(TraceError::Failed);
        }
        if let Err(error) = self.place.file.write_all(bytes) {
            self.failed = true;
            // If this fails too, readers skip the remains, because they know where the last state
            // ends.
            let _ = self.place.file.set_len(self.position);
            return Err(TraceError::Write(error));
        }
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn commit(&mut self, durable: bool) -> Result<()> {
        let sync = |file: &File| if durable { file.sync_data() } else { Ok(()) };
        sync(&self.place.file).map_err(TraceError::Write)?;
        let ending = self.index()?;
        self.append(&ending)?;
        sync(&self.place.file).map_err(TraceError::Write)?;
        self.state = self.state.saturating_add(1);
        self.committed = Some(self.position);
        self.place.settle()
    }

    /// Returns the index's chunks and the footer.
    fn index(&self) -> Result<Vec<u8>> {
        const PER_CHUNK: usize = CHUNK / RECORD_LEN;
        let mut compressor = compressor(codec::NORMAL)?;
        let mut out = Vec::new();
        let mut pieces = self.chunks.chunks(PER_CHUNK).peekable();
        for sequence in 0.. {
            let raw: Vec<u8> = pieces
                .next()
                .unwrap_or_default()
                .iter()
                .flat_map(record)
                .collect();
            let last = pieces.peek().is_none();
            let start = out.len();
            out.resize(start + CHUNK_HEADER_LEN, 0);
            let codec = codec::encode(&mut compressor, &raw, &mut out);
            let payload = &out[start + CHUNK_HEADER_LEN..];
            let header = ChunkHeader {
                kind: Kind::INDEX,
                codec,
                flags: if last { FLAG_LAST } else { 0 },
                section: 0,
                sequence,
                first: u64::from(sequence) * PER_CHUNK as u64,
                stored: payload.len() as u32,
                raw: raw.len() as u32,
                crc: crc32fast::hash(payload),
            };
            out[start..start + CHUNK_HEADER_LEN].copy_from_slice(&header.encode());
            if last {
                break;
            }
        }
        let state = self.state.saturating_add(1);
        let footer = Footer {
            index: self.position,
            length: out.len() as u64,
            state,
        };
        out.extend(footer.encode());
        Ok(out)
    }
}

fn compressor(level: i32) -> Result<Compressor<'static>> {
    codec::compressor(level).map_err(TraceError::io("set up the compressor"))
}

/// Returns a chunk's entry in the index.
fn record(chunk: &ChunkEntry) -> [u8; RECORD_LEN] {
    let mut record = [0; RECORD_LEN];
    record[..8].copy_from_slice(&chunk.offset.to_le_bytes());
    record[8..].copy_from_slice(&chunk.header.encode());
    record
}

impl Drop for Core {
    fn drop(&mut self) {
        if let Some(length) = self.committed
            && length != self.position
        {
            // This is only for tidiness, because a reader ignores everything after the last state.
            let _ = self.place.file.set_len(length);
        }
    }
}
