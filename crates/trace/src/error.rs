//! Errors of reading and writing trace files.

use std::io;
use std::path::PathBuf;

use afterimage_ids::FileOffset;

use crate::{Kind, Writer};

/// The result of this crate's functions.
pub type Result<T, E = TraceError> = std::result::Result<T, E>;

/// The reason why a trace file could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The operating system refused a file operation other than a write.
    #[error("cannot {action}: {source}")]
    Io {
        /// The attempted action, as a verb and its object.
        action: &'static str,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A write failed, for example because the disk is full. Everything committed before is intact.
    #[error("cannot write the trace file: {0}")]
    Write(#[source] io::Error),
    /// An earlier write failed, so this writer accepts nothing more.
    #[error("an earlier write to the trace file failed")]
    Failed,
    /// The output exists and the caller did not allow overwriting it.
    #[error("the file already exists")]
    Exists,
    /// A different file, or no file, is at the path where the file belongs. A complete copy is kept
    /// beside that path.
    #[error(
        "{path}: the file was replaced or removed while it was being written; a complete copy is in \
         {kept}"
    )]
    Replaced {
        /// The path where the file belongs.
        path: PathBuf,
        /// The path of the copy.
        kept: PathBuf,
    },
    /// The file was moved while it was being written.
    #[error(
        "{path}: the file was moved while it was being written; the moved file contains the \
         additions"
    )]
    Moved {
        /// The file's former path.
        path: PathBuf,
    },
    /// The path is a folder, a device or something else that is not a regular file.
    #[error("not a regular file")]
    NotAFile,
    /// Another process holds the writer's lock.
    #[error("another process{0} is writing the trace file; try again when it has ended")]
    BeingWritten(Writer),
    /// Data follows the last complete state, and it is not the remainder of an interrupted
    /// addition.
    #[error(
        "the trace file is damaged from {at} on ({bytes} bytes), so nothing was added; copy its \
         intact parts with: afterimage verify --repair -o COPY.aft FILE.aft"
    )]
    Hidden {
        /// The start of that data in the file.
        at: FileOffset,
        /// The length of that data.
        bytes: u64,
    },
    /// The rewriting of the file was stopped before its end.
    #[error("rewriting the trace file was interrupted; it is unchanged")]
    Stopped,
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The file does not begin with the label of a trace file.
    #[error("not a trace file (.aft)")]
    NotATrace,
    /// The file has the label, but its header is truncated or fails its checksum.
    #[error(
        "the header of the trace file is damaged; copy the intact parts with: afterimage verify \
         --repair -o COPY.aft FILE.aft"
    )]
    DamagedHeader,
    /// The file was written by a newer, incompatible version of the format.
    #[error(
        "the trace file has format version {major}, newer than version {supported}, \
         which this program reads; use a newer afterimage",
        supported = crate::VERSION_MAJOR
    )]
    Newer {
        /// The file's major version.
        major: u16,
    },
    /// A chunk does not match its header or the index.
    #[error(
        "chunk {sequence} of section {kind}, at {offset} in the trace file, is damaged: {what}{remedy}",
        remedy = kind.remedy()
    )]
    Damaged {
        /// The section's kind.
        kind: Kind,
        /// The chunk's position in its section, from 0.
        sequence: u32,
        /// The chunk's start in the file.
        offset: FileOffset,
        /// A description of the fault.
        what: &'static str,
    },
    /// A chunk's bytes are intact but meaningless.
    #[error(
        "section {kind} is malformed at byte {at} of chunk {sequence}: {what}{remedy}",
        remedy = kind.remedy()
    )]
    Malformed {
        /// The section's kind.
        kind: Kind,
        /// The chunk's position in its section, from 0.
        sequence: u32,
        /// The offset of the fault in the decompressed chunk.
        at: usize,
        /// A description of the fault.
        what: &'static str,
    },
    /// The requested chunks do not exist in the section.
    #[error("section {kind} has {count} chunks, but chunks {from}..{to} were requested")]
    NoChunks {
        /// The section's kind.
        kind: Kind,
        /// The number of its chunks.
        count: usize,
        /// The first requested chunk, from 0.
        from: usize,
        /// The end of the requested range.
        to: usize,
    },
    /// The section was never written.
    #[error("the trace file has no section {0}")]
    Missing(Kind),
    /// The program's inputs were removed, and with them the boundary log.
    #[error(
        "`afterimage strip --inputs` removed the program's input, so its run cannot be executed or followed again"
    )]
    WithoutInputs,
    /// The section's last chunk is missing, because writing was interrupted.
    #[error("section {0} of the trace file is cut off: it was not written completely{remedy}", remedy = .0.remedy())]
    Cut(Kind),
    /// A section that may occur only once was written twice, or would be.
    #[error("the trace file has more than one section {0}")]
    Duplicate(Kind),
    /// A limit of the format was exceeded, or would be.
    #[error("{what} exceeds the format's limit of {limit}")]
    TooLarge {
        /// The part of the format that is too large.
        what: &'static str,
        /// The limit, in the unit of `what`.
        limit: u64,
    },
}

impl TraceError {
    /// Makes a [`TraceError::Io`] with its action, for `map_err`.
    pub(crate) fn io(action: &'static str) -> impl Fn(io::Error) -> TraceError {
        move |source| TraceError::Io { action, source }
    }
}
