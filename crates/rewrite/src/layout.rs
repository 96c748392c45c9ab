//! Defines the layout of the probes' own memory.
//!
//! Counters live in one added memory of fixed size, so a counter has a constant address.
//! `i64.load`, `i64.add` and `i64.store` then compile to one machine instruction with no bounds
//! check. Globals were rejected, because compile time grows with the square of the number of
//! distinct globals in a function.
//!
//! ```text
//! 0x00  label "aftcount"                 8 bytes
//! 0x08  version of this layout           u32
//! 0x0c  mode of the plan, and flags      u16, u16
//! 0x10  digest of module and plan        32 bytes
//! 0x30  number of counters               u64
//! 0x38  stop clock: polls so far         u64
//! 0x40  limit: the poll that stops       u64
//! 0x48  activations running              u32   (external modules only)
//! 0x4c  inside a host call               u32   (external modules only)
//! 0x48  clock of the next snapshot       u64   (modules with snapshots only)
//! 0x50  number of entry counters         u64   (external modules only)
//! 0x50  whether all activations end      u32   (modules with captures only)
//! 0x58  armed: the clock to stop at      u64
//! 0x60  armed: entries to let pass       u64
//! 0x68  scratch word of the probes       u64
//! 0x70  a local that goes through memory u64   (functions with hinges only)
//! 0x78  iterations of loops              u32   (functions with hinges only)
//! 0x7c  written and never read           u32   (functions with hinges only)
//! 0x80  counters                         u64 each
//!       entry counters, one per exported function, in export order
//! from the next multiple of 64 KiB on:
//!       the path's words, u64 each, in two halves
//!       for each memory, marks of the written lines, one byte per line;
//!       or, for each memory, the watched region's address less 16 (u64), the region's address
//!       (u64), and marks: one byte for each byte of the region, and 16 bytes on each side
//!       what an activation captures: its locals, then its operands, 8 or 16 bytes each
//! ```
//! All numbers are little-endian.

use afterimage_ids::CounterId;

/// The first bytes of the probes' memory.
pub const LABEL: [u8; 8] = *b"aftcount";
/// The version of the layout.
pub const LAYOUT_VERSION: u32 = 1;
/// The name under which a rewritten module exports the probes' memory.
pub const MEMORY_EXPORT: &str = "afterimage.counters";
/// The name under which a rewritten module exports its start function, if it had one and the caller
/// wants to start it itself.
pub const START_EXPORT: &str = "afterimage.start";

pub(crate) const VERSION_AT: u64 = 0x08;
pub(crate) const COUNT_AT: u64 = 0x30;
/// The address of the stop clock.
pub const CLOCK_AT: u64 = 0x38;
/// The address of the poll number at which the run stops.
pub const LIMIT_AT: u64 = 0x40;
pub(crate) const RUNNING_AT: u64 = 0x48;
/// The address of the clock value at which the module requests a snapshot.
pub const SNAPSHOT_AT: u64 = 0x48;
/// The name of the table with the host's functions that a module with snapshots calls.
pub const SNAPSHOT_EXPORT: &str = "afterimage.snapshot";
/// The index of the function that takes a snapshot.
pub const TAKE_SNAPSHOT: u64 = 0;
/// The index of the function that is called when a half of the path's ring is full.
pub const HALF_FULL: u64 = 1;
/// The index of the function that is called when an activation has captured itself. Its argument is
/// the number of the [`CaptureSite`](crate::CaptureSite).
pub const CAPTURED: u64 = 2;
/// The number of functions in the table of the host's functions.
pub(crate) const CALLED: u64 = 3;
/// The name of the global that counts snapshots, an `i32`.
pub const TAKEN_EXPORT: &str = "afterimage.taken";
/// The address of a flag that makes each activation return after it has captured itself.
pub const UNWIND_AT: u64 = 0x50;
pub(crate) const IN_HOST_AT: u64 = 0x4c;
pub(crate) const ENTRIES_AT: u64 = 0x50;
/// The address of the clock value at which the armed function stops.
pub const ARM_CLOCK_AT: u64 = 0x58;
/// The address of the number of entries that the armed function lets pass.
pub const ARM_SKIP_AT: u64 = 0x60;
pub(crate) const MARK_AT: u64 = 0x68;
pub(crate) const LOCAL_AT: u64 = 0x70;
pub(crate) const LOOPS_AT: u64 = 0x78;
pub(crate) const OTHER_AT: u64 = 0x7c;
pub(crate) const HEADER: u64 = 0x80;

pub(crate) const PAGE: u64 = 65536;
/// The number of bytes in a line of memory. A line is marked when anything in it is written.
pub const LINE: u64 = 64;
/// The number of bytes in the region of a memory that is watched byte by byte.
pub const WATCHED: u64 = 4096;

/// The layout of the probes' memory of one rewritten module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The number of counters.
    pub counters: u32,
    /// The number of entry counters, which follow the counters. They count activations started from
    /// outside.
    pub entry_counters: u32,
    /// The number of words in each of the two halves of the path's ring, or 0 if there is no ring.
    pub half: u32,
    /// The number of bytes that the marks of written memory take. It is a multiple of 64 KiB.
    pub marks: u64,
    /// The maximum number of bytes that an activation captures.
    pub captured: u64,
}

impl Layout {
    /// Returns the address of a counter.
    pub fn address(&self, counter: CounterId) -> u64 {
        HEADER + 8 * u64::from(counter.as_u32())
    }

    /// Returns the address of the `i`-th entry counter.
    pub fn entry_address(&self, i: u32) -> u64 {
        HEADER + 8 * (u64::from(self.counters) + u64::from(i))
    }

    /// Returns the address of the path's ring.
    pub fn buffer(&self) -> u64 {
        self.entry_address(self.entry_counters)
            .next_multiple_of(PAGE)
    }

    /// Returns the address of the marks of written memory.
    pub fn marks_at(&self) -> u64 {
        (self.buffer() + 16 * u64::from(self.half)).next_multiple_of(PAGE)
    }

    /// Returns the address of the captured values.
    pub fn captured_at(&self) -> u64 {
        self.marks_at() + self.marks
    }

    /// Returns the size of the memory in pages of 64 KiB.
    pub fn pages(&self) -> u64 {
        (self.captured_at() + self.captured).div_ceil(PAGE)
    }

    /// Reads the counters from the memory's bytes. Returns `None` if the memory is too small.
    pub fn counters(&self, memory: &[u8]) -> Option<Vec<u64>> {
        words(memory, HEADER, self.counters)
    }

    /// Reads the entry counters from the memory's bytes. Returns `None` if the memory is too small.
    pub fn entry_counters(&self, memory: &[u8]) -> Option<Vec<u64>> {
        words(memory, self.entry_address(0), self.entry_counters)
    }
}

/// The header in the memory of a module for other engines, read from a dump of that memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dump {
    /// The plan's mode, as numbered by the program that made the module.
    pub mode: u16,
    /// The flags set by the program that made the module.
    pub flags: u16,
    /// The digest of the original module and the plan.
    pub digest: [u8; 32],
    /// The number of counters.
    pub counters: u64,
    /// The number of activations started from outside that had not returned.
    pub running: u32,
    /// Whether the innermost activation was in a call to an import.
    pub in_host_call: bool,
}

impl Dump {
    /// Reads the header of a dump.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a dump, or the layout has a different version.
    pub fn read(bytes: &[u8]) -> Result<Self, DumpError> {
        let header = bytes.get(..HEADER as usize).ok_or(DumpError::NoDump)?;
        if header[..8] != LABEL {
            return Err(DumpError::NoDump);
        }
        let u16_at = |at: u64| u16::from_le_bytes([header[at as usize], header[at as usize + 1]]);
        let u32_at = |at: u64| u32::from(u16_at(at)) | u32::from(u16_at(at + 2)) << 16;
        let u64_at = |at: u64| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let version = u32_at(VERSION_AT);
        if version != LAYOUT_VERSION {
            return Err(DumpError::Version(version));
        }
        let mut digest = [0; 32];
        digest.copy_from_slice(&header[VERSION_AT as usize + 8..COUNT_AT as usize]);
        Ok(Self {
            mode: u16_at(VERSION_AT + 4),
            flags: u16_at(VERSION_AT + 6),
            digest,
            counters: u64_at(COUNT_AT),
            running: u32_at(RUNNING_AT),
            in_host_call: u32_at(IN_HOST_AT) != 0,
        })
    }
}

/// The reason why bytes are not a dump of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// The bytes do not begin like a dump.
    #[error("this is not a dump of an instrumented module's counters")]
    NoDump,
    /// The layout has a different version.
    #[error(
        "the dump has layout version {0}; this version of afterimage reads version {LAYOUT_VERSION}"
    )]
    Version(u32),
}

fn words(memory: &[u8], at: u64, count: u32) -> Option<Vec<u64>> {
    let start = usize::try_from(at).ok()?;
    let bytes = memory.get(start..start.checked_add(8 * count as usize)?)?;
    Some(
        bytes
            .chunks_exact(8)
            .map(|c| u64::from_le_bytes([c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]]))
            .collect(),
    )
}
