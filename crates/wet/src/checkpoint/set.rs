//! Sets of words of memory.

use super::Key;
use super::cache::Room;
use crate::epoch::wire::{put, take};

/// A set of words: lines, ascending, each with at least one of its words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set {
    pub keys: Vec<Key>,
    pub masks: Vec<u16>,
}

impl Room for Set {
    fn bytes(&self) -> usize {
        self.keys.len() * (size_of::<Key>() + size_of::<u16>())
    }
}

impl Set {
    /// Adds a line behind all others, if it has a word.
    pub fn push(&mut self, key: Key, mask: u16) {
        if mask != 0 {
            self.keys.push(key);
            self.masks.push(mask);
        }
    }

    /// Which of a line's words are in it. O(log lines).
    pub fn get(&self, key: Key) -> u16 {
        let found = self.keys.binary_search(&key);
        found.map_or(0, |found| self.masks[found])
    }

    /// Adds all words of another set. O(lines of both).
    pub fn add(&mut self, other: &Set) {
        if self.keys.is_empty() {
            self.clone_from(other);
            return;
        }
        let mut all = Set {
            keys: Vec::with_capacity(self.keys.len() + other.keys.len()),
            masks: Vec::with_capacity(self.keys.len() + other.keys.len()),
        };
        let (mut i, mut j) = (0, 0);
        loop {
            let (a, b) = (self.keys.get(i), other.keys.get(j));
            let (key, mask) = match (a, b) {
                (None, None) => break,
                (Some(&a), Some(&b)) if a == b => (a, self.masks[i] | other.masks[j]),
                (Some(&a), b) if b.is_none_or(|&b| a < b) => (a, self.masks[i]),
                (_, Some(&b)) => (b, other.masks[j]),
                (Some(&a), None) => (a, self.masks[i]),
            };
            i += usize::from(a == Some(&key));
            j += usize::from(b == Some(&key));
            all.push(key, mask);
        }
        *self = all;
    }

    /// Gives back memory that it does not need.
    pub fn shrink(&mut self) {
        self.keys.shrink_to_fit();
        self.masks.shrink_to_fit();
    }

    /// Appends its bytes: how many lines; the differences between them; the lower halves of their masks, and the upper ones.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.keys.len() as u64);
        let mut next = 0;
        for &key in &self.keys {
            put(out, key - next);
            next = key + 1;
        }
        out.extend(self.masks.iter().map(|&mask| mask as u8));
        out.extend(self.masks.iter().map(|&mask| (mask >> 8) as u8));
    }

    /// Takes a set off the front. `None` if there is none.
    pub fn decode(input: &mut &[u8]) -> Option<Self> {
        let count = take(input)?;
        if count > input.len() as u64 / 3 {
            return None;
        }
        let count = count as usize;
        let mut keys = Vec::with_capacity(count);
        let mut next = 0u64;
        for _ in 0..count {
            let key = next.checked_add(take(input)?)?;
            next = key.checked_add(1)?;
            keys.push(key);
        }
        let (low, rest) = input.split_at_checked(count)?;
        let (high, rest) = rest.split_at_checked(count)?;
        *input = rest;
        let masks = low.iter().zip(high);
        let masks = Vec::from_iter(masks.map(|(&low, &high)| u16::from_le_bytes([low, high])));
        masks
            .iter()
            .all(|&mask| mask != 0)
            .then_some(Self { keys, masks })
    }
}
