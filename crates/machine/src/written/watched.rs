//! Records the bytes of a small region of memory that the stretches of a run write.

/// The number of bytes in a region.
pub const WATCHED: u64 = 4096;

/// The number of bytes of memory that a mask covers.
const BITS: u64 = u64::BITS as u64;

/// The bytes that each of the first stretches of a run writes in a region of [`WATCHED`] bytes.
#[derive(Clone, Debug)]
pub struct WatchedBytes {
    memory: u32,
    /// The address of the region's first byte.
    first: u64,
    /// For each stretch, the parts of 64 bytes that it writes, ascending, each with a mask of the
    /// written bytes.
    stretches: Vec<Box<[(u8, u64)]>>,
}

impl WatchedBytes {
    /// Creates a region without known stretches.
    pub fn new(memory: u32, first: u64) -> Self {
        Self {
            memory,
            first,
            stretches: Vec::new(),
        }
    }

    /// Returns the first address of the region that contains an address.
    pub fn region(address: u64) -> u64 {
        address - address % WATCHED
    }

    /// Adds the next stretch. `written` has an entry for each byte of the region. The entry is not
    /// 0 if the stretch writes the byte. Time: O(region).
    pub fn add(&mut self, written: &[u8]) {
        let mut parts = Vec::new();
        for (part, bytes) in (0..).zip(written.chunks(BITS as usize)) {
            let bits = (0..).zip(bytes);
            let bits = bits.fold(0, |bits, (i, &byte)| bits | u64::from(byte != 0) << i);
            if bits != 0 {
                parts.push((part, bits));
            }
        }
        self.stretches.push(parts.into());
    }

    /// Returns the number of stretches.
    pub fn stretches(&self) -> usize {
        self.stretches.len()
    }

    /// Whether the region contains a byte.
    pub fn has(&self, memory: u32, address: u64) -> bool {
        self.memory == memory && self.first == Self::region(address)
    }

    /// Returns the last stretch, among the first `end`, that writes this byte of the region. Time:
    /// O(stretches from the result to `end` · log 64).
    pub fn last_before(&self, end: usize, address: u64) -> Option<usize> {
        let at = address.checked_sub(self.first)?;
        let (part, bit) = (at / BITS, at % BITS);
        self.stretches[..end].iter().rposition(|parts| {
            let found = parts.binary_search_by_key(&part, |&(part, _)| part.into());
            found.is_ok_and(|found| parts[found].1 >> bit & 1 != 0)
        })
    }
}
