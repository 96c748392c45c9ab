//! Encodes and decodes the numbers of the section, as LEB128.

use super::{Opened, Page};

pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn take(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = input.split_first()?;
        *input = rest;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Encodes the times of activations. Each beginning is relative to the previous activation's call,
/// and each call is relative to its activation's beginning.
pub(super) fn put_opened(out: &mut Vec<u8>, opened: &[Opened]) {
    put(out, opened.len() as u64);
    let mut before = 0;
    for &Opened { entered, called } in opened {
        put(out, entered.wrapping_sub(before));
        put(out, called.wrapping_sub(entered));
        before = called;
    }
}

/// Decodes the output of [`put_opened`]. Returns `None` if the bytes are invalid.
pub(super) fn take_opened(input: &mut &[u8]) -> Option<Vec<Opened>> {
    let count = take(input)?;
    // An activation takes at least two bytes.
    if count > input.len() as u64 / 2 {
        return None;
    }
    let mut before = 0u64;
    let mut one = || {
        let entered = before.checked_add(take(input)?)?;
        let called = entered.checked_add(take(input)?)?;
        before = called;
        Some(Opened { entered, called })
    };
    (0..count).map(|_| one()).collect()
}

/// Encodes ascending pages as runs. Each run has three numbers. These are the difference from the
/// previous run's memory, the distance from the previous run's end in the same memory, and the
/// length.
pub(super) fn put_pages(out: &mut Vec<u8>, pages: impl Iterator<Item = Page>) {
    let mut runs: Vec<(Page, u64)> = Vec::new();
    for (memory, page) in pages {
        match runs.last_mut() {
            Some(((of, first), count)) if *of == memory && *first + *count == page => *count += 1,
            _ => runs.push(((memory, page), 1)),
        }
    }
    put(out, runs.len() as u64);
    let (mut before, mut next) = (0, 0);
    for ((memory, first), count) in runs {
        if memory != before {
            next = 0;
        }
        put(out, u64::from(memory - before));
        put(out, first - next);
        put(out, count);
        (before, next) = (memory, first + count);
    }
}

/// A run of pages of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub memory: u32,
    pub first: u64,
    pub count: u64,
}

/// Decodes the output of [`put_pages`]. Also returns the number of pages. Returns `None` if the
/// bytes are invalid.
pub(super) fn take_pages(mut input: &[u8]) -> Option<(Vec<Run>, u64)> {
    let input = &mut input;
    let count = take(input)?;
    // A run takes at least three bytes.
    if count > input.len() as u64 / 3 {
        return None;
    }
    let mut runs = Vec::with_capacity(count as usize);
    let (mut memory, mut next, mut all) = (0u32, 0u64, 0u64);
    for _ in 0..count {
        let further = u32::try_from(take(input)?).ok()?;
        if further > 0 {
            (memory, next) = (memory.checked_add(further)?, 0);
        }
        let first = next.checked_add(take(input)?)?;
        let count = take(input)?;
        next = first.checked_add(count)?;
        all = all.checked_add(count)?;
        runs.push(Run {
            memory,
            first,
            count,
        });
    }
    input.is_empty().then_some((runs, all))
}
