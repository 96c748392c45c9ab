//! Searching in long rules.

/// Says of long ascending lists between which of their members a value is.
///
/// A list has slots that are equally far apart, an eighth as many as members or fewer, and each slot says how many members are not beyond it. So of
/// values that are equally likely each has few members between its slots on average, whatever the members are
/// (Devroye, "Lecture Notes on Bucket Algorithms", 1986), where halving would look at many distant ones.
#[derive(Default)]
pub(crate) struct Directory {
    /// Where each list's slots begin, and how many bits of a value are within a slot.
    lists: Vec<(u32, u32)>,
    slots: Vec<u32>,
}

impl Directory {
    /// Adds a list, with fewer than 2^32 members. Returns its number. Linear.
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
            // The slots that begin before its end.
            while end > 0 && slot <= (end - 1) >> shift {
                self.slots.push(at as u32);
                slot += 1;
            }
        }
        self.slots.push(len as u32 - 1);
        self.lists.len() as u32 - 1
    }

    /// How many members of a list are not beyond a value below its last: at least and at most so many.
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

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.lists[..]) + size_of_val(&self.slots[..])
    }
}
