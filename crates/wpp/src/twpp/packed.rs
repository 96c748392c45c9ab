//! Encodes entries of series as bytes.
//!
//! An entry is one to three integers, as in the paper, each a variable-length number. The paper's
//! sign, which marks an entry's last integer, is the lowest bit. `l` is stored as its distance from
//! the end of the previous entry, and `h` as the number of steps from `l`, because small numbers
//! take few bytes.

use super::series::Entry;
use super::varint;

/// Appends an entry. The previous entry ends at `after`, which is 0 if there is none.
pub(super) fn put(bytes: &mut Vec<u8>, entry: &Entry, after: u64) {
    let parts = [entry.first - after, entry.count() - 1, entry.step];
    let width = entry.width() as usize;
    for (k, part) in parts[..width].iter().enumerate() {
        varint::put(bytes, part << 1 | u64::from(k + 1 == width));
    }
}

/// Reads the next entry. Returns `None` if the bytes contain no valid entry. The previous entry
/// ends at `after`.
#[inline]
pub(super) fn take(bytes: &mut &[u8], after: u64) -> Option<Entry> {
    take_counted(bytes, after).map(|(entry, _)| entry)
}

/// Returns the number of timestamps in entries, and the last timestamp, or `None` if the entries
/// are malformed. Time: O(bytes).
pub(super) fn measure(mut bytes: &[u8]) -> Option<(u64, u64)> {
    let (mut count, mut last) = (0u64, 0);
    while !bytes.is_empty() {
        let (entry, of) = take_counted(&mut bytes, last)?;
        last = entry.last;
        count = count.saturating_add(of);
    }
    Some((count, last))
}

/// Does the same as [`take`], but also returns the number of timestamps, because computing it from
/// the entry would take a division.
#[inline]
fn take_counted(bytes: &mut &[u8], after: u64) -> Option<(Entry, u64)> {
    let (distance, alone) = part(bytes)?;
    let first = after.checked_add(distance).filter(|_| distance > 0)?;
    let (steps, step) = if alone {
        (0, 1)
    } else {
        let (steps, neighbours) = part(bytes).filter(|&(steps, _)| steps > 0)?;
        let step = if neighbours {
            1
        } else {
            part(bytes).filter(|&(step, end)| end && step > 1)?.0
        };
        (steps, step)
    };
    let last = first.checked_add(steps.checked_mul(step)?)?;
    let entry = Entry { first, last, step };
    within(&entry).then_some((entry, steps + 1))
}

/// Reads one integer, and whether it is the last integer of its entry.
#[inline]
fn part(bytes: &mut &[u8]) -> Option<(u64, bool)> {
    varint::take(bytes).map(|word| (word >> 1, word & 1 == 1))
}

/// Whether all numbers of an entry are positive and leave a bit for the sign.
fn within(entry: &Entry) -> bool {
    entry.last <= i64::MAX as u64
}
