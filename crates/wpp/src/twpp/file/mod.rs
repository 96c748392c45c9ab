//! Reads and writes compacted TWPP files (Zhang and Gupta 2001, section 3, "Access time study").
//!
//! One function's path traces can be read alone, because a reader needs only the directory and the
//! function's block. Every part has a checksum, but a reader does not rely on it. Invalid contents
//! with a correct checksum are also an error.

mod consistency;
mod error;
mod function_block;
mod layout;
mod reader;
mod stored_traces;
mod write;

pub use error::{FileError, Part};
pub use layout::DirectoryEntry;
pub use reader::{FileSizes, Reader};
pub use stored_traces::StoredTraces;
pub use write::write;
