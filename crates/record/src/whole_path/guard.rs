//! Protects the ring's memory.

use std::ffi::c_void;
use std::io;
use std::ops::Range;

use rustix::mm::{MprotectFlags, mprotect};

/// The protected bytes at the beginning of a half. The guest writes words in order, so protecting
/// the first word would suffice. This size is a multiple of every system's page size.
const GUARD: usize = 65536;

/// The memory of the two halves. It is mapped for the guest alone until this is dropped.
pub(crate) struct Ring {
    start: *mut u8,
    half_bytes: usize,
    /// Whether the half being read is protected, so that the guest faults there.
    guarded: bool,
}

// SAFETY: no use of the pointer depends on the thread.
#[allow(unsafe_code)]
unsafe impl Send for Ring {}

impl Ring {
    /// Creates a ring of two halves with `half_words` words each.
    pub(super) fn new(start: *mut u8, half_words: u32, guarded: bool) -> Self {
        Self {
            guarded,
            start,
            half_bytes: 8 * half_words as usize,
        }
    }

    /// Returns the start of a half.
    pub(super) fn half(&self, half: usize) -> *const u64 {
        self.start.wrapping_add(half * self.half_bytes).cast()
    }

    /// Whether the address is in the protected part of a half.
    pub(super) fn begins(&self, half: usize, address: usize) -> bool {
        let first = self.half(half).addr();
        (first..first + GUARD).contains(&address)
    }

    /// Writes a word of the ring, in the guest's half.
    pub(super) fn write(&self, word: usize, value: u64) {
        let at: *mut u64 = self.start.wrapping_add(8 * word).cast();
        // SAFETY: the caller names a word of the ring in the writable half, and the guest is
        // stopped in a host call.
        #[allow(unsafe_code)]
        unsafe {
            at.write(value);
        }
    }

    /// Copies some words of the guest's half.
    pub(super) fn read(&self, half: usize, words: Range<usize>) -> Vec<u64> {
        let start = self.half(half).wrapping_add(words.start);
        // SAFETY: the caller names words of the half, which begins at a page boundary, and the
        // guest is stopped in a host call.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts(start, words.len()).to_vec()
        }
    }

    /// Makes the beginning of one half read-only and the beginning of the other writable. Does
    /// nothing if the ring is not guarded.
    pub(super) fn exchange(&self, read: usize, write: usize) -> io::Result<()> {
        if !self.guarded {
            return Ok(());
        }
        self.protect(read, MprotectFlags::READ)?;
        self.protect(write, MprotectFlags::READ | MprotectFlags::WRITE)
    }

    fn protect(&self, half: usize, flags: MprotectFlags) -> io::Result<()> {
        let start: *mut c_void = self.half(half).cast_mut().cast();
        // SAFETY: a half is at least as large as its protected part. It begins at a multiple of
        // that size in memory mapped for reading and writing. Any writer to it can handle a fault.
        #[allow(unsafe_code)]
        unsafe {
            mprotect(start, GUARD, flags)?;
        }
        Ok(())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if !self.guarded {
            return;
        }
        // Make the memory writable for its next owner. If that fails, the owner's writes fault.
        for half in [0, 1] {
            let _ = self.protect(half, MprotectFlags::READ | MprotectFlags::WRITE);
        }
    }
}
