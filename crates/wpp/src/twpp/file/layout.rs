//! Defines the layout of a file.
//!
//! A file consists of a header, a directory, the dynamic call graph, and function blocks. The
//! directory has one entry per function, ascending by function. The function blocks begin with the
//! block of the most frequently called function. Fixed-width numbers are little-endian.

use afterimage_ids::FuncId;

/// The first bytes of a file.
pub(super) const MAGIC: [u8; 8] = *b"TWPP\r\n\x1a\n";
/// The version of the format.
pub(super) const VERSION: u32 = 1;
/// The size of the header in bytes. Its fields are the magic, the version, the number of functions,
/// the compressed and plain lengths of the call graph, and its checksum. The last field is the
/// checksum of the other fields and the directory.
pub(super) const HEADER: usize = 40;
/// The size of an entry in bytes. An entry contains the fields of a [`DirectoryEntry`], and four
/// bytes that are 0.
pub(super) const ENTRY: usize = 40;

/// The contents of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) functions: u32,
    pub(super) calls_length: u64,
    pub(super) plain_length: u64,
    pub(super) calls_checksum: u32,
}

/// A directory entry, which contains a file's data about a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// The function that the entry describes.
    pub function: FuncId,
    /// The start of its block, in bytes from the beginning of the file.
    pub offset: u64,
    /// The length of its block in bytes.
    pub length: u64,
    /// The number of calls to the function.
    pub calls: u64,
    /// The number of unique path traces that these calls took.
    pub paths: u32,
    /// The block's checksum (CRC-32).
    pub(super) checksum: u32,
}

impl Header {
    /// Returns the bytes of the header, except for the last checksum.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.functions.to_le_bytes());
        bytes.extend(self.calls_length.to_le_bytes());
        bytes.extend(self.plain_length.to_le_bytes());
        bytes.extend(self.calls_checksum.to_le_bytes());
        bytes
    }

    /// Reads a header with a valid beginning.
    pub(super) fn from_bytes(bytes: &[u8; HEADER]) -> Self {
        Self {
            functions: u32_at(bytes, 12),
            calls_length: u64_at(bytes, 16),
            plain_length: u64_at(bytes, 24),
            calls_checksum: u32_at(bytes, 32),
        }
    }
}

impl DirectoryEntry {
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.function.as_u32().to_le_bytes().to_vec();
        bytes.extend(self.paths.to_le_bytes());
        bytes.extend(self.offset.to_le_bytes());
        bytes.extend(self.length.to_le_bytes());
        bytes.extend(self.calls.to_le_bytes());
        bytes.extend(self.checksum.to_le_bytes());
        bytes.extend(0u32.to_le_bytes());
        bytes
    }

    /// Reads an entry. Returns `None` if the function's number is reserved.
    pub(super) fn from_bytes(bytes: &[u8; ENTRY]) -> Option<Self> {
        let function = Some(u32_at(bytes, 0)).filter(|&n| n < u32::MAX)?;
        Some(Self {
            function: FuncId::from_u32(function),
            paths: u32_at(bytes, 4),
            offset: u64_at(bytes, 8),
            length: u64_at(bytes, 16),
            calls: u64_at(bytes, 24),
            checksum: u32_at(bytes, 32),
        })
    }
}

/// Returns the number at a fixed offset in a header or an entry.
pub(super) fn u32_at(bytes: &[u8; 40], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|k| bytes[at + k]))
}

fn u64_at(bytes: &[u8; 40], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|k| bytes[at + k]))
}
