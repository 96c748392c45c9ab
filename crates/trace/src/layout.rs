//! Defines the fixed-size pieces of a file, which are the file header, the chunk header and the
//! footer. All integers are little-endian.

use std::fmt;

use crate::{Result, TraceError};

/// The first eight bytes of every trace file. The high bit, the two line endings and the
/// end-of-file character reveal a transfer that was not binary, as in PNG.
pub const LABEL: [u8; 8] = *b"\x89AFT\r\n\x1a\n";
/// The major version of the format. A reader refuses a greater version.
pub const VERSION_MAJOR: u16 = 1;
/// The minor version, which counts additions that an older reader may ignore. These additions are
/// new kinds of sections.
pub const VERSION_MINOR: u16 = 11;
/// The length of the file header, in every version.
pub(crate) const HEADER_LEN: usize = 16;
/// The length of a chunk's header.
pub(crate) const CHUNK_HEADER_LEN: usize = 40;
/// The length of the footer.
pub(crate) const FOOTER_LEN: usize = 32;
/// The length of an index record, which contains a chunk's offset and a copy of its header.
pub(crate) const RECORD_LEN: usize = 8 + CHUNK_HEADER_LEN;
/// A chunk contains at most this many bytes before compression.
pub(crate) const MAX_RAW: u32 = 1 << 24;
/// A section's name has at most this many bytes.
pub(crate) const MAX_NAME: usize = 255;
/// A chunk's payload has at most this many bytes: the longest name, and raw bytes.
pub(crate) const MAX_STORED: u32 = MAX_RAW + 1 + MAX_NAME as u32;
/// The flag of the last chunk of its section.
pub(crate) const FLAG_LAST: u8 = 1;
/// The flag of a payload that begins with the section's name. Only the first chunk of a section may
/// have it.
pub(crate) const FLAG_NAMED: u8 = 2;
/// The codec that stores bytes as they are.
pub(crate) const CODEC_RAW: u8 = 0;
/// The codec that stores one Zstandard frame.
pub(crate) const CODEC_ZSTD: u8 = 1;

pub(crate) const CHUNK_LABEL: [u8; 4] = *b"AFTC";
pub(crate) const FOOTER_LABEL: [u8; 8] = *b"AFTEND\r\n";

/// The kind of a section's contents. Readers keep, list and skip unknown kinds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind(pub u16);

impl Kind {
    /// The index of one complete state. It is never listed among the sections.
    pub const INDEX: Kind = Kind(0);
    /// The program and the settings of the run ([`crate::Meta`]).
    pub const META: Kind = Kind(1);
    /// The bytes of the original module.
    pub const MODULE: Kind = Kind(2);
    /// The boundary log ([`crate::Event`]).
    pub const LOG: Kind = Kind(3);
    /// The way in which the run ended ([`crate::End`]).
    pub const END: Kind = Kind(4);
    /// Exact edge counts ([`crate::CountsLens`]). Only the latest section is used.
    pub const COUNTS: Kind = Kind(5);
    /// The whole path, with one segment of its grammar per chunk. Only the latest section is used.
    pub const PATHS: Kind = Kind(6);
    /// The nodes of the whole path, and the contents of its segments. The latest section belongs to
    /// the latest [`Kind::PATHS`].
    pub const PATH_INDEX: Kind = Kind(7);
    /// The path as the probes of a live run wrote it, in 64-bit words, before compaction into
    /// [`Kind::PATHS`].
    pub const PATH_WORDS: Kind = Kind(8);
    /// A whole execution trace, with one epoch or a part of an epoch per chunk. Only the latest
    /// section is used.
    pub const VALUES: Kind = Kind(9);
    /// The part of a whole execution trace that readers need first. The latest section belongs to
    /// the latest [`Kind::VALUES`].
    pub const VALUES_INDEX: Kind = Kind(10);
    /// Checkpoints of the machine, and the changes to memory between them. All sections that belong
    /// to the latest path are used.
    pub const CHECKPOINTS: Kind = Kind(11);
    /// The misses of a branch predictor or of caches, with one epoch per chunk and a summary in the
    /// last chunk. Only the latest section of each name is used.
    pub const SIMULATION: Kind = Kind(12);
    /// A stored slice, with its query and its contents. Only the latest section of each name is
    /// used.
    pub const SLICE: Kind = Kind(13);
    /// The opened grammars of the segments of the latest [`Kind::PATHS`], one per chunk.
    pub const PATH_GRAMMARS: Kind = Kind(14);
    /// The bytes that the host read in output calls, with several calls per chunk. Only the latest
    /// section is used.
    pub const PRINTED: Kind = Kind(15);
    /// Snapshots of the machine's state, each with the pages of memory that changed since the
    /// previous one. Only the latest section is used.
    pub const SNAPSHOTS: Kind = Kind(16);
    /// The nodes of the whole path, and the contents of its stretches. The section belongs to the
    /// latest [`Kind::PATH_WORDS`].
    pub const STRETCHES: Kind = Kind(17);
    /// The lines of memory that each stretch writes. Only the latest section is used.
    pub const WRITTEN: Kind = Kind(18);
    /// The activations that are open where stretches begin. The section belongs to the latest
    /// [`Kind::STRETCHES`].
    pub const OPEN: Kind = Kind(19);
    /// Embedded source files, each in chunks of its own, and their list in the last chunk. Only the
    /// latest section is used.
    pub const SOURCES: Kind = Kind(20);

    /// Returns the remedy for a damaged section of this kind, phrased for the end of a sentence.
    /// The text is empty if there is none.
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Kind::META | Kind::MODULE | Kind::LOG | Kind::END | Kind::SOURCES => {
                "; record the program again"
            }
            Kind::PATHS | Kind::PATH_INDEX => {
                "; build the path again with `afterimage build --lens paths --again`"
            }
            Kind::VALUES
            | Kind::VALUES_INDEX
            | Kind::CHECKPOINTS
            | Kind::PATH_GRAMMARS
            | Kind::PRINTED
            | Kind::SNAPSHOTS
            | Kind::STRETCHES
            | Kind::WRITTEN
            | Kind::OPEN => "; build the values again with `afterimage build --lens full --again`",
            Kind::SIMULATION => "; simulate it again with `afterimage simulate --again`",
            Kind::SLICE => "; make the slice again and keep it with --save",
            _ => "",
        }
    }

    /// Whether a file may contain only one section of this kind.
    pub(crate) fn is_single(self) -> bool {
        (Kind::META..=Kind::END).contains(&self)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Kind::INDEX => f.pad("INDEX"),
            Kind::META => f.pad("META"),
            Kind::MODULE => f.pad("MODULE"),
            Kind::LOG => f.pad("LOG"),
            Kind::END => f.pad("END"),
            Kind::COUNTS => f.pad("COUNTS"),
            Kind::PATHS => f.pad("PATHS"),
            Kind::PATH_INDEX => f.pad("PATH-INDEX"),
            Kind::PATH_WORDS => f.pad("PATH-WORDS"),
            Kind::VALUES => f.pad("VALUES"),
            Kind::VALUES_INDEX => f.pad("VALUES-INDEX"),
            Kind::CHECKPOINTS => f.pad("CHECKPOINTS"),
            Kind::SIMULATION => f.pad("SIMULATION"),
            Kind::SLICE => f.pad("SLICE"),
            Kind::PATH_GRAMMARS => f.pad("PATH-GRAMMARS"),
            Kind::PRINTED => f.pad("PRINTED"),
            Kind::SNAPSHOTS => f.pad("SNAPSHOTS"),
            Kind::STRETCHES => f.pad("STRETCHES"),
            Kind::WRITTEN => f.pad("WRITTEN"),
            Kind::OPEN => f.pad("OPEN"),
            Kind::SOURCES => f.pad("SOURCES"),
            Kind(other) => f.pad(&format!("KIND-{other}")),
        }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns the bytes of a version 1 file header.
pub(crate) fn file_header() -> [u8; HEADER_LEN] {
    let mut bytes = [0; HEADER_LEN];
    bytes[..8].copy_from_slice(&LABEL);
    bytes[8..10].copy_from_slice(&VERSION_MAJOR.to_le_bytes());
    bytes[10..12].copy_from_slice(&VERSION_MINOR.to_le_bytes());
    seal(&mut bytes);
    bytes
}

/// Checks a file's first bytes, which are a whole header, or fewer bytes if the file is shorter.
pub(crate) fn check_file_header(bytes: &[u8]) -> Result<()> {
    if bytes.is_empty() {
        return Err(TraceError::Empty);
    }
    let label = &bytes[..bytes.len().min(LABEL.len())];
    let wrong = label.iter().zip(LABEL).filter(|(a, b)| *a != b).count();
    if wrong > 0 {
        // One or two wrong bytes are damage.
        let is_damage = label.len() == LABEL.len() && wrong <= 2;
        return Err(if is_damage {
            TraceError::DamagedHeader
        } else {
            TraceError::NotATrace
        });
    }
    let bytes: &[u8; HEADER_LEN] = bytes.try_into().map_err(|_| TraceError::DamagedHeader)?;
    if !is_sealed(bytes) {
        return Err(TraceError::DamagedHeader);
    }
    match u16_at(bytes, 8) {
        VERSION_MAJOR => Ok(()),
        0 => Err(TraceError::DamagedHeader),
        major => Err(TraceError::Newer { major }),
    }
}

/// A chunk's header. The payload follows it, with the section's name if [`FLAG_NAMED`] is set, then
/// the encoded bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkHeader {
    pub kind: Kind,
    pub codec: u8,
    pub flags: u8,
    /// The number of the section in the file.
    pub section: u32,
    /// The position of the chunk in its section, from 0.
    pub sequence: u32,
    /// The number of the section's items that begin before this chunk. The kind defines an item.
    pub first: u64,
    /// The length of the payload.
    pub stored: u32,
    /// The length of the decoded bytes, name not included.
    pub raw: u32,
    /// The CRC-32 of the payload.
    pub crc: u32,
}

impl ChunkHeader {
    pub fn encode(&self) -> [u8; CHUNK_HEADER_LEN] {
        let mut bytes = [0; CHUNK_HEADER_LEN];
        bytes[..4].copy_from_slice(&CHUNK_LABEL);
        bytes[4..6].copy_from_slice(&self.kind.0.to_le_bytes());
        bytes[6] = self.codec;
        bytes[7] = self.flags;
        bytes[8..12].copy_from_slice(&self.section.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.first.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.stored.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.raw.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.crc.to_le_bytes());
        seal(&mut bytes);
        bytes
    }

    /// Decodes the header in `bytes`. Returns `None` if it is invalid or its lengths exceed the
    /// limits.
    pub fn decode(bytes: &[u8]) -> Option<ChunkHeader> {
        let bytes: &[u8; CHUNK_HEADER_LEN] = bytes.try_into().ok()?;
        if bytes[..4] != CHUNK_LABEL || !is_sealed(bytes) {
            return None;
        }
        let header = ChunkHeader {
            kind: Kind(u16_at(bytes, 4)),
            codec: bytes[6],
            flags: bytes[7],
            section: u32_at(bytes, 8),
            sequence: u32_at(bytes, 12),
            first: u64_at(bytes, 16),
            stored: u32_at(bytes, 24),
            raw: u32_at(bytes, 28),
            crc: u32_at(bytes, 32),
        };
        (header.stored <= MAX_STORED && header.raw <= MAX_RAW).then_some(header)
    }

    pub fn is_last(&self) -> bool {
        self.flags & FLAG_LAST != 0
    }

    pub fn is_named(&self) -> bool {
        self.flags & FLAG_NAMED != 0
    }
}

/// The footer, which ends a complete state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    /// The start of the index's first chunk.
    pub index: u64,
    /// The length of the index's chunks, headers included. The footer follows them.
    pub length: u64,
    /// The number of this complete state of the file, from 1.
    pub state: u32,
}

impl Footer {
    pub fn encode(&self) -> [u8; FOOTER_LEN] {
        let mut bytes = [0; FOOTER_LEN];
        bytes[..8].copy_from_slice(&FOOTER_LABEL);
        bytes[8..16].copy_from_slice(&self.index.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.length.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.state.to_le_bytes());
        seal(&mut bytes);
        bytes
    }

    /// Decodes the footer in `bytes`, which begin at `at` in the file. Returns `None` if it is
    /// invalid or belongs elsewhere.
    pub fn decode(bytes: &[u8], at: u64) -> Option<Footer> {
        let bytes: &[u8; FOOTER_LEN] = bytes.try_into().ok()?;
        if bytes[..8] != FOOTER_LABEL || !is_sealed(bytes) {
            return None;
        }
        let footer = Footer {
            index: u64_at(bytes, 8),
            length: u64_at(bytes, 16),
            state: u32_at(bytes, 24),
        };
        let fits = footer.index >= HEADER_LEN as u64
            && footer.index.checked_add(footer.length) == Some(at);
        fits.then_some(footer)
    }
}

/// Writes the CRC-32 of all bytes except the last four into the last four.
fn seal(bytes: &mut [u8]) {
    let at = bytes.len() - 4;
    let crc = crc32fast::hash(&bytes[..at]);
    bytes[at..].copy_from_slice(&crc.to_le_bytes());
}

fn is_sealed(bytes: &[u8]) -> bool {
    let at = bytes.len() - 4;
    u32_at(bytes, at) == crc32fast::hash(&bytes[..at])
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

/// Returns the integer at `at`. The caller guarantees that the bytes exist.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: ChunkHeader = ChunkHeader {
        kind: Kind::LOG,
        codec: CODEC_ZSTD,
        flags: FLAG_LAST,
        section: 1,
        sequence: 2,
        first: 3,
        stored: MAX_STORED,
        raw: MAX_RAW,
        crc: 4,
    };

    #[test]
    fn a_chunk_header_is_read_back_up_to_the_limits() {
        assert_eq!(ChunkHeader::decode(&HEADER.encode()), Some(HEADER));
        for header in [
            ChunkHeader {
                stored: MAX_STORED + 1,
                ..HEADER
            },
            ChunkHeader {
                raw: MAX_RAW + 1,
                ..HEADER
            },
        ] {
            assert_eq!(ChunkHeader::decode(&header.encode()), None);
        }
        assert_eq!(ChunkHeader::decode(&HEADER.encode()[1..]), None);
    }

    #[test]
    fn a_footer_belongs_to_its_place() {
        let footer = Footer {
            index: 100,
            length: 50,
            state: 1,
        };
        assert_eq!(Footer::decode(&footer.encode(), 150), Some(footer));
        assert_eq!(Footer::decode(&footer.encode(), 151), None);
        let before_the_chunks = Footer {
            index: 15,
            length: 85,
            state: 1,
        };
        assert_eq!(Footer::decode(&before_the_chunks.encode(), 100), None);
        let overflowing = Footer {
            index: u64::MAX,
            length: 101,
            state: 1,
        };
        assert_eq!(Footer::decode(&overflowing.encode(), 100), None);
    }
}
