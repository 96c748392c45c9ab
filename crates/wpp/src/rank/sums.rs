//! Sums that are stored in as few bytes as necessary.

use crate::measures::FEW;

/// Sums up to a bound, in two, four or eight bytes each. Larger values saturate.
pub(super) enum Sums {
    Short(Vec<u16>),
    Middle(Vec<u32>),
    Long(Vec<u64>),
}

/// An integer with enough bytes for a sum.
pub(super) trait Sum: Copy + Default + Into<u64> {
    /// Converts a sum. A sum that is too large becomes the largest value.
    fn of(sum: u64) -> Self;
}

impl Sum for u16 {
    fn of(sum: u64) -> Self {
        Self::try_from(sum).unwrap_or(Self::MAX)
    }
}

impl Sum for u32 {
    fn of(sum: u64) -> Self {
        Self::try_from(sum).unwrap_or(Self::MAX)
    }
}

impl Sum for u64 {
    fn of(sum: u64) -> Self {
        sum
    }
}

impl Sums {
    #[inline]
    pub(super) fn get(&self, at: u32) -> u64 {
        let at = at as usize;
        match self {
            Self::Short(sums) => sums[at].into(),
            Self::Middle(sums) => sums[at].into(),
            Self::Long(sums) => sums[at],
        }
    }

    /// Returns the first position in `from..to` whose sum is greater than `sum`, or `to` if there
    /// is none. The sums in this range must be in ascending order.
    pub(super) fn find(&self, from: u32, to: u32, sum: u64) -> u32 {
        let own = from as usize..to as usize;
        let before = match self {
            Self::Short(sums) => first_above(&sums[own], sum),
            Self::Middle(sums) => first_above(&sums[own], sum),
            Self::Long(sums) => first_above(&sums[own], sum),
        };
        from + before as u32
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Short(sums) => size_of_val(&sums[..]),
            Self::Middle(sums) => size_of_val(&sums[..]),
            Self::Long(sums) => size_of_val(&sums[..]),
        }
    }
}

/// Returns the first index whose sum is greater than `sum`, or the length if there is none.
#[inline]
fn first_above<T: Copy + Into<u64>>(sums: &[T], sum: u64) -> usize {
    if sums.len() <= FEW {
        let above = sums.iter().position(|&other| other.into() > sum);
        above.unwrap_or(sums.len())
    } else {
        sums.partition_point(|&other| other.into() <= sum)
    }
}
