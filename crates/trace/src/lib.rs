//! Reads and writes the `.aft` file, version 1. The crate defines the contents of a recording, and
//! their layout on disk. It contains no engine and no analysis. `docs/FORMAT.md` describes the same
//! bytes in prose.
//!
//! A file is append-only. It has a header, then checksummed chunks, then an index and a footer.
//! Chunks belong to sections ([`Kind`]), and chunks of different sections may interleave. Adding a
//! section appends its chunks, a new index and a new footer, and changes nothing written before. So
//! a kill at any moment leaves the last complete state readable.
//!
//! - [`TraceWriter`] writes a recording, or appends sections to one.
//! - [`TraceFile`] maps a file and reads it. Each chunk is verified when it is read.
//! - [`TraceFile::verify`] reads the whole file and checks the invariants one by one ([`Rule`]).
//!
//! We rejected three alternatives. SQLite has about thirty times as many lines of code as this
//! crate, and it rewrites pages in place. One file per section would lose the atomic commit. An
//! archive (zip, tar) has no checksummed append.

mod codec;
mod counts;
mod end;
mod error;
mod event;
mod file;
#[cfg(test)]
mod format_doc;
mod layout;
mod limits;
mod log;
mod meta;
mod open;
mod place;
mod repair;
mod section;
mod sources;
mod state;
mod verify;
mod wire;
mod writer;

pub use counts::CountsLens;
pub use end::{End, Ending, Frame, Interrupter, Standing, TrapCode};
pub use error::{Result, TraceError};
pub use event::{Event, HostCallRef, HostRead, HostStop, HostWrite, HostWriteRef, RawValue};
pub use file::{SectionInfo, TraceFile};
pub use layout::{Kind, LABEL, VERSION_MAJOR, VERSION_MINOR};
pub use limits::{MAX_ELEMENTS, MAX_MEMORY, MAX_SOURCE, MAX_VARIABLES};
pub use log::{LogFlusher, LogPlace, LogReader, LogWriter};
pub use meta::{Meta, Stdin};
pub use place::{Existing, Writer, writer};
pub use repair::{Lost, Repaired, repair};
pub use section::SectionReader;
pub use sources::{EmbeddedSources, SourcesWriter};
pub use verify::{Finding, Report, Rule};
pub use writer::{BackgroundSection, Chunk, ChunkPacker, PackedChunk, SectionWriter, TraceWriter};
