//! The ring's memory, and its protection.

use std::ffi::c_void;
use std::io;
use std::ops::Range;

use rustix::mm::{MprotectFlags, mprotect};

/// How much of a half is protected, in bytes: the guest writes words one after the other, so that the first one would do. It is
/// a multiple of the page size of all systems.
const GUARD: usize = 65536;

/// The memory of two halves. It was mapped for the guest alone, and stays so until this is dropped.
pub(crate) struct Ring {
    start: *mut u8,
    half_bytes: usize,
    /// The half that is read is protected, so that the guest faults there.
    guarded: bool,
}

// SAFETY: nothing is done with the pointer that depends on the thread.
#[allow(unsafe_code)]
unsafe impl Send for Ring {}

impl Ring {
    /// Two halves of so many words each, from here on.
    pub(super) fn new(start: *mut u8, half_words: u32, guarded: bool) -> Self {
        Self {
            guarded,
            start,
            half_bytes: 8 * half_words as usize,
        }
    }

    /// Where a half begins.
    pub(super) fn half(&self, half: usize) -> *const u64 {
        self.start.wrapping_add(half * self.half_bytes).cast()
    }

    /// Whether the address is in the protected part of a half.
    pub(super) fn begins(&self, half: usize, address: usize) -> bool {
        let first = self.half(half).addr();
        (first..first + GUARD).contains(&address)
    }

    /// Writes a word of the ring, in the half that is the guest's.
    pub(super) fn write(&self, word: usize, value: u64) {
        let at: *mut u64 = self.start.wrapping_add(8 * word).cast();
        // SAFETY: the caller names a word of the ring, in the writable half, and the guest stands still in a call of the host.
        #[allow(unsafe_code)]
        unsafe {
            at.write(value);
        }
    }

    /// Some words of the half that is the guest's.
    pub(super) fn read(&self, half: usize, words: Range<usize>) -> Vec<u64> {
        let start = self.half(half).wrapping_add(words.start);
        // SAFETY: the caller names words of the half, which begins at a page of memory, and the guest stands still in a call of the host.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts(start, words.len()).to_vec()
        }
    }

    /// Makes one half read-only and the other writable.
    pub(super) fn exchange(&self, read: usize, write: usize) -> io::Result<()> {
        if !self.guarded {
            return Ok(());
        }
        self.protect(read, MprotectFlags::READ)?;
        self.protect(write, MprotectFlags::READ | MprotectFlags::WRITE)
    }

    fn protect(&self, half: usize, flags: MprotectFlags) -> io::Result<()> {
        let start: *mut c_void = self.half(half).cast_mut().cast();
        // SAFETY: a half is at least as large as its protected part, begins at a multiple of that from the beginning of memory that
        // was mapped to be read and written, and whoever would write to it meanwhile is ready for a fault.
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
        // Whoever has the memory next may write to it. If that fails, it faults as a bug would.
        for half in [0, 1] {
            let _ = self.protect(half, MprotectFlags::READ | MprotectFlags::WRITE);
        }
    }
}
