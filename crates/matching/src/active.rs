//! Records approximate times of executions.

/// The number of parts into which a run is divided.
pub(crate) const WINDOWS: usize = 512;

/// The parts of a run in which something was executed. All parts of a run are equally long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Active([u64; WINDOWS / 64]);

impl Active {
    /// Returns the part to which a time belongs. Times count from 1 to the length of the run.
    pub fn window(time: u64, length: u64) -> usize {
        let before = u128::from(time.saturating_sub(1)) * WINDOWS as u128;
        ((before / u128::from(length.max(1))) as usize).min(WINDOWS - 1)
    }

    /// Returns the earliest time after the end of a part.
    pub fn behind(window: usize, length: u64) -> u64 {
        let before = (window as u128 + 1) * u128::from(length.max(1));
        let before = before.div_ceil(WINDOWS as u128);
        u64::try_from(before).map_or(u64::MAX, |before| before.saturating_add(1))
    }

    /// Records an execution in this part.
    #[inline(always)]
    pub fn set(&mut self, window: usize) {
        self.0[window / 64 % (WINDOWS / 64)] |= 1 << (window % 64);
    }

    /// Whether there was an execution in one of the parts from `first` to `last`.
    pub fn any(&self, first: usize, last: usize) -> bool {
        let last = last.min(WINDOWS - 1);
        if first > last {
            return false;
        }
        let from = u64::MAX << (first % 64);
        let to = u64::MAX >> (63 - last % 64);
        let (low, high) = (first / 64, last / 64);
        if low == high {
            return self.0[low] & from & to != 0;
        }
        self.0[low] & from != 0
            || self.0[high] & to != 0
            || self.0[low + 1..high].iter().any(|&word| word != 0)
    }

    /// Iterates over the parts with an execution, ascending.
    pub fn windows(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(at, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(at * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Active, WINDOWS};

    #[test]
    fn the_first_and_the_last_block_are_in_the_first_and_last_part() {
        for length in [1, 2, 511, 512, 513, 100_000, u64::MAX] {
            assert_eq!(Active::window(1, length), 0);
            let last = Active::window(length, length);
            assert!(last < WINDOWS && (length < WINDOWS as u64 || last == WINDOWS - 1));
        }
    }

    #[test]
    fn a_part_ends_where_the_next_one_begins() {
        for length in [1, 2, 511, 512, 513, 100_000, u64::MAX] {
            for window in (0..WINDOWS).filter(|&window| window < length as usize) {
                let behind = Active::behind(window, length);
                assert!(Active::window(behind - 1, length) <= window);
                let next = Active::window(behind, length);
                assert!(
                    next > window || window == WINDOWS - 1,
                    "{window} of {length}"
                );
            }
        }
    }

    #[test]
    fn what_was_set_is_there() {
        let mut active = Active::default();
        for window in [3, 64, 511] {
            active.set(window);
        }
        assert_eq!(Vec::from_iter(active.windows()), [3, 64, 511]);
        assert!(active.any(0, 3) && active.any(60, 70) && !active.any(4, 63));
        for first in 0..WINDOWS {
            for last in [first, first + 1, first + 63, first + 64, first + 200] {
                let expected = [3, 64, 511].iter().any(|set| (first..=last).contains(set));
                assert_eq!(active.any(first, last), expected, "{first}..={last}");
            }
        }
        assert!(!active.any(9, 3));
    }
}
