//! Implements a stack of bits.

/// A stack of bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BitStack {
    words: Vec<u64>,
    len: u64,
}

impl BitStack {
    /// Returns the number of bits.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Pushes the low `count` bits of `bits`. `count` is at most 64, and the higher bits must be 0.
    pub(super) fn push(&mut self, bits: u64, count: u32) {
        debug_assert!(count == 64 || bits >> count == 0);
        if count == 0 {
            return;
        }
        let used = (self.len % 64) as u32;
        match self.words.last_mut() {
            Some(word) if used > 0 => *word |= bits << used,
            _ => self.words.push(bits),
        }
        if used > 0 && used + count > 64 {
            self.words.push(bits >> (64 - used));
        }
        self.len += u64::from(count);
    }

    /// Pops `count` bits. Returns `None` if there are fewer.
    pub(super) fn pop(&mut self, count: u32) -> Option<u64> {
        let start = self.len.checked_sub(count.into())?;
        let (word, used) = ((start / 64) as usize, (start % 64) as u32);
        let low = self.words.get(word).map_or(0, |word| word >> used);
        let high = match self.words.get(word + 1) {
            Some(next) if used > 0 => next << (64 - used),
            _ => 0,
        };
        let mask = u64::MAX.checked_shr(64 - count).unwrap_or(0);
        self.words.truncate(start.div_ceil(64) as usize);
        if used > 0
            && let Some(word) = self.words.last_mut()
        {
            *word &= (1 << used) - 1;
        }
        self.len = start;
        Some((low | high) & mask)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_come_back_in_reverse(numbers in prop::collection::vec((any::<u64>(), 0..=64u32), 0..50)) {
            let mut stack = BitStack::default();
            let mut before = Vec::new();
            for &(number, count) in &numbers {
                before.push(stack.clone());
                stack.push(number.checked_shr(64 - count).unwrap_or(0), count);
            }
            for &(number, count) in numbers.iter().rev() {
                prop_assert_eq!(stack.pop(count), Some(number.checked_shr(64 - count).unwrap_or(0)));
                prop_assert_eq!(Some(stack.clone()), before.pop());
            }
            prop_assert_eq!(stack.pop(1), None);
        }
    }
}
