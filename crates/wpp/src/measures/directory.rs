//! Speeds up searches in long rules.

/// Locates values in long ascending lists.
///
/// A list is divided into slots of equal width. There is at most one slot for every eight members.
/// Each slot stores the number of members that do not lie after it. So if all values are equally
/// likely, a value's slot contains few members on average, whatever the members are (Devroye,
/// "Lecture Notes on Bucket Algorithms", 1986). A binary search would examine many distant members.
#[derive(Default)]
pub(crate) struct Directory {
    /// The start of each list's slots, and the width of a slot in bits.
    lists: Vec<(u32, u32)>,
    slots: Vec<u32>,
}

impl Directory {
    /// Adds a list with fewer than 2^32 members. Returns its number. Time: linear.
    pub(crate) fn push(&mut self, list: impl ExactSizeIterator<Item = u64>, last: u64) -> u32 {
        let len = list.len();
        let most = (len as u64 / 8).max(1);
        let mut shift = 0;
        while last.saturating_sub(1) >> shift >= most {
            shift += 1;
        }
        self.lists.push((self.slots.len() as u32, shift));
        let mut slot = 0;
        for (at, end) in list.enumerate() {
            // Fill the slots that begin before the member's end.
            while end > 0 && slot <= (end - 1) >> shift {
                self.slots.push(at as u32);
                slot += 1;
            }
        }
        self.slots.push(len as u32 - 1);
        self.lists.len() as u32 - 1
    }

    /// Returns bounds for the number of a list's members that do not exceed a value. The value must
    /// be below the last member.
    #[inline]
    pub(crate) fn range(&self, list: u32, value: u64) -> (u32, u32) {
        let (start, shift) = self.lists[list as usize];
        let slot = start as usize + (value >> shift) as usize;
        (self.slots[slot], self.slots[slot + 1])
    }

    pub(crate) fn shrink(&mut self) {
        self.lists.shrink_to_fit();
        self.slots.shrink_to_fit();
    }

    /// Returns the approximate memory use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.lists[..]) + size_of_val(&self.slots[..])
    }
}
