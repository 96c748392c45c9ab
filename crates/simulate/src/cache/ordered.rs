//! Sets that keep their lines in the order of last use.

use super::Touch;

/// Marks an empty place. Lines have at least four bytes, so no line number reaches half of this
/// value.
const EMPTY: u64 = u64::MAX;

/// Sets with few lines, which are scanned.
#[derive(Clone, Debug)]
pub(super) struct Ordered {
    /// One set after another, most recently used line first. An entry is twice the line number,
    /// plus 1 if the line is dirty.
    lines: Vec<u64>,
    ways: usize,
    mask: u64,
}

impl Ordered {
    /// Creates `sets` empty sets. `sets` is a power of two.
    pub(super) fn new(sets: u64, ways: u64) -> Self {
        Self {
            lines: vec![EMPTY; (sets * ways) as usize],
            ways: ways as usize,
            mask: sets - 1,
        }
    }

    #[inline]
    fn set(&mut self, line: u64) -> &mut [u64] {
        let first = (line & self.mask) as usize * self.ways;
        &mut self.lines[first..first + self.ways]
    }

    #[inline]
    pub(super) fn touch(&mut self, line: u64, write: bool) -> Touch {
        let set = self.set(line);
        if set[0] >> 1 == line {
            set[0] |= u64::from(write);
            return Touch::Hit;
        }
        let found = set.iter().position(|&held| held >> 1 == line);
        let place = found.unwrap_or(set.len() - 1);
        let old = set[place];
        set.copy_within(..place, 1);
        if found.is_some() {
            set[0] = old | u64::from(write);
            return Touch::Hit;
        }
        set[0] = line << 1 | u64::from(write);
        if old & 1 == 1 && old != EMPTY {
            Touch::WroteBack(old >> 1)
        } else {
            Touch::Filled
        }
    }

    pub(super) fn dirty(&mut self, line: u64) {
        let mut set = self.set(line).iter_mut();
        if let Some(held) = set.find(|held| **held >> 1 == line) {
            *held |= 1;
        }
    }
}
