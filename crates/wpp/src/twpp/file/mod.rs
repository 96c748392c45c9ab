//! The compacted TWPP file (Zhang and Gupta 2001, section 3, "Access time study").
//!
//! One function's path traces are read alone: a reader looks at the directory and at the function's block. Every part has a
//! checksum, and a reader trusts none of them: what has a proper checksum and means nothing is an error, too.

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
