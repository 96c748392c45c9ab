//! Errors of reading a file.

use std::fmt;

use afterimage_ids::FuncId;

use crate::twpp::lzw::LzwError;

/// The reason why a file, or a part of a file, cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The file does not begin like a TWPP file.
    #[error("not a timestamped whole program path")]
    NotTwpp,
    /// The file was written in an unknown version of the format.
    #[error("written in version {0} of the format, but this program reads {known}", known = super::layout::VERSION)]
    UnknownVersion(u32),
    /// The file ends in the middle of a part.
    #[error("{0} is cut off")]
    Truncated(Part),
    /// A part does not match its checksum.
    #[error("{0} is damaged: its checksum is wrong")]
    Checksum(Part),
    /// A part is invalid.
    #[error("{0} is damaged: {1}")]
    Malformed(Part, &'static str),
    /// The call graph cannot be decompressed.
    #[error("the call graph is damaged: {0}")]
    Compression(#[from] LzwError),
    /// The call graph exceeds the memory limit.
    #[error("the call graph takes more than {0} bytes of memory")]
    TooLarge(usize),
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The header and the directory.
    Directory,
    /// The dynamic call graph.
    Calls,
    /// The path traces of a function.
    Function(FuncId),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory => f.write_str("the directory"),
            Self::Calls => f.write_str("the call graph"),
            Self::Function(function) => write!(f, "the block of {function}"),
        }
    }
}
