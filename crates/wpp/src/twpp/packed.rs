//! Entries of series as bytes.
//!
//! An entry is its one to three integers, as in the paper, each a number of variable length. The sign of the paper, which marks an
//! entry's last integer, is the lowest bit. Instead of `l` and `h` stand their distances from what is before them,
//! `l` from the end of the previous entry, because small numbers take few bytes.

use super::series::Entry;
use super::varint;

/// Appends the entry that follows one which ends at `after` (0 if none does).
pub(super) fn put(bytes: &mut Vec<u8>, entry: &Entry, after: u64) {
    let parts = [entry.first - after, entry.last - entry.first, entry.step];
    let width = entry.width() as usize;
    for (k, part) in parts[..width].iter().enumerate() {
        varint::put(bytes, part << 1 | u64::from(k + 1 == width));
    }
}

/// Takes the entry that follows one which ends at `after`; nothing if the bytes hold none.
#[inline]
pub(super) fn take(bytes: &mut &[u8], after: u64) -> Option<Entry> {
    let (distance, alone) = part(bytes)?;
    let first = after.checked_add(distance).filter(|_| distance > 0)?;
    if alone {
        return Some(Entry::single(first)).filter(within);
    }
    let (extent, neighbours) = part(bytes)?;
    let step = if neighbours {
        1
    } else {
        part(bytes).filter(|&(step, end)| end && step > 1)?.0
    };
    let last = first
        .checked_add(extent)
        .filter(|_| extent > 0 && extent.is_multiple_of(step))?;
    Some(Entry { first, last, step }).filter(within)
}

/// How many timestamps the entries stand for, if they are proper to the end, and the last one. O(bytes).
pub(super) fn measure(mut bytes: &[u8]) -> Option<(u64, u64)> {
    let (mut count, mut after) = (0u64, 0u64);
    while !bytes.is_empty() {
        let entry = take(&mut bytes, after)?;
        after = entry.last;
        count = count.saturating_add(entry.count());
    }
    Some((count, after))
}

/// One integer, and whether it is its entry's last.
fn part(bytes: &mut &[u8]) -> Option<(u64, bool)> {
    varint::take(bytes).map(|word| (word >> 1, word & 1 == 1))
}

/// Timestamps are positive numbers with a sign to spare.
fn within(entry: &Entry) -> bool {
    entry.last <= i64::MAX as u64
}
