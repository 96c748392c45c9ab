//! Stores packed chunks, by size class.

use super::packed::{pack, unpack};

/// The smallest size class, in bytes.
const LEAST: usize = 16;
/// The number of bytes allocated at once.
const BLOCK: usize = 1 << 16;
/// The number of bits of a slot that contain the size class.
const BITS: u32 = 4;

/// Storage for packed chunks. Sizes are powers of two. Chunks of the largest size are not packed.
#[derive(Debug)]
pub(super) struct Arena {
    sizes: Vec<Size>,
}

#[derive(Debug)]
struct Size {
    bytes: usize,
    blocks: Vec<Box<[u8]>>,
    /// Places that have been freed.
    free: Vec<u32>,
    /// The number of places allocated so far.
    taken: u32,
}

impl Arena {
    /// Creates storage for chunks with this unpacked size in bytes.
    pub fn new(bytes: usize) -> Self {
        let sizes = std::iter::successors(Some(LEAST), |size| Some(size * 2));
        let sizes = sizes.take_while(|size| *size < 2 * bytes);
        let size = |bytes| Size {
            bytes,
            blocks: Vec::new(),
            free: Vec::new(),
            taken: 0,
        };
        Self {
            sizes: sizes.map(size).collect(),
        }
    }

    /// Returns the size class of a place, and its position in its block.
    fn place(&self, slot: u32) -> (usize, usize, std::ops::Range<usize>) {
        let size = (slot & ((1 << BITS) - 1)) as usize - 1;
        let bytes = self.sizes[size].bytes;
        let at = (slot >> BITS) as usize;
        let per_block = BLOCK / bytes;
        let start = at % per_block * bytes;
        (size, at / per_block, start..start + bytes)
    }

    /// Stores a chunk and returns its slot, which is not 0.
    pub fn put(&mut self, numbers: &[u64], scratch: &mut Vec<u8>) -> u32 {
        scratch.clear();
        pack(numbers, scratch);
        let last = self.sizes.len() - 1;
        let size = self.sizes[..last].iter();
        let size = size.take_while(|size| size.bytes < scratch.len()).count();
        if size == last {
            scratch.clear();
            scratch.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        }
        let room = &mut self.sizes[size];
        let at = room.free.pop().unwrap_or_else(|| {
            room.taken += 1;
            room.taken - 1
        });
        let slot = at << BITS | (size as u32 + 1);
        let (_, block, place) = self.place(slot);
        let blocks = &mut self.sizes[size].blocks;
        if block >= blocks.len() {
            blocks.push(vec![0; BLOCK].into());
        }
        blocks[block][place][..scratch.len()].copy_from_slice(scratch);
        slot
    }

    /// Unpacks the numbers of a chunk into `numbers`.
    pub fn get(&self, slot: u32, numbers: &mut [u64]) {
        let (size, block, place) = self.place(slot);
        let bytes = &self.sizes[size].blocks[block][place];
        if size + 1 < self.sizes.len() {
            unpack(bytes, numbers);
            return;
        }
        let (each, _) = bytes.as_chunks::<8>();
        for (number, bytes) in numbers.iter_mut().zip(each) {
            *number = u64::from_le_bytes(*bytes);
        }
    }

    /// Frees a chunk's slot.
    pub fn free(&mut self, slot: u32) {
        let (size, ..) = self.place(slot);
        self.sizes[size].free.push(slot >> BITS);
    }
}
