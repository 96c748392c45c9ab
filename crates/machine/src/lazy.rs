//! Lists that are mostly zero. Their unwritten pages take no memory.

use std::fmt::{Debug, Formatter, Result as FmtResult};
use std::hash::{Hash, Hasher};
use std::io;
use std::ops::{Deref, DerefMut};

use memmap2::{MmapMut, MmapOptions};

use crate::image::Growth;

/// The number of bytes examined together when a list is moved, which is a page of the system's
/// memory.
const CHUNK: usize = 4096;

/// The bytes of a memory. They are initially zero, and unwritten pages of zeros take no memory.
///
/// The memory comes directly from the system, because an allocator that reuses memory would write
/// to it. Spare room filled with zeros follows the end.
#[derive(Default)]
pub struct Bytes {
    room: Option<MmapMut>,
    length: usize,
}

impl Bytes {
    /// Extends the memory to `length` bytes. The memory never exceeds `most` bytes. Does not touch
    /// existing bytes.
    pub(crate) fn grow(&mut self, length: usize, most: usize) -> Result<(), Growth> {
        let room = self.room.as_ref().map_or(0, |room| room.len());
        if length > room {
            let room = length.max(most.min(2 * self.length));
            let made = match self.room.take() {
                Some(known) => extended(known, room),
                None => mapped(room),
            };
            let no_memory = |_| Growth::Limit("memory that this machine does not have");
            self.room = Some(made.map_err(no_memory)?);
        }
        self.length = length;
        Ok(())
    }
}

fn mapped(length: usize) -> io::Result<MmapMut> {
    MmapOptions::new().len(length).no_reserve_swap().map_anon()
}

#[cfg(target_os = "linux")]
fn extended(mut room: MmapMut, length: usize) -> io::Result<MmapMut> {
    let options = memmap2::RemapOptions::new().may_move(true);
    // SAFETY: no file is mapped, and no other code uses the mapping.
    #[allow(unsafe_code)]
    unsafe {
        room.remap(length, options)?;
    }
    Ok(room)
}

#[cfg(not(target_os = "linux"))]
fn extended(room: MmapMut, length: usize) -> io::Result<MmapMut> {
    let mut longer = mapped(length)?;
    copy(&room, &mut longer);
    Ok(longer)
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match &self.room {
            Some(room) => &room[..self.length],
            None => &[],
        }
    }
}

impl DerefMut for Bytes {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.room {
            Some(room) => &mut room[..self.length],
            None => &mut [],
        }
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl Hash for Bytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self[..].hash(state);
    }
}

impl Debug for Bytes {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        f.debug_struct("Bytes")
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

/// Extends a list with zeros up to a length. Pages of zeros are not written.
pub fn lengthened<T: Copy + Default + PartialEq>(list: &[T], length: usize) -> Vec<T> {
    let mut longer = vec![T::default(); length];
    copy(list, &mut longer);
    longer
}

/// Copies only nonzero parts to the beginning of a zeroed list.
fn copy<T: Copy + Default + PartialEq>(from: &[T], to: &mut [T]) {
    let chunk = (CHUNK / size_of::<T>()).max(1);
    let chunks = from.chunks(chunk).zip(to.chunks_mut(chunk));
    for (from, to) in chunks.filter(|(from, _)| !is_zero(from)) {
        to[..from.len()].copy_from_slice(from);
    }
}

/// Whether all elements are zero.
pub(crate) fn is_zero<T: Copy + Default + PartialEq>(elements: &[T]) -> bool {
    // Without a branch per element, many elements are compared at once.
    let zero = T::default();
    let mut blocks = elements.chunks(64);
    blocks.all(|block| block.iter().fold(true, |all, &one| all & (one == zero)))
}
