//! Sums in as few bytes as they need.

use crate::measures::FEW;

/// Sums that do not exceed a bound, in two, four or eight bytes each. What exceeds it saturates.
pub(super) enum Sums {
    Short(Vec<u16>),
    Middle(Vec<u32>),
    Long(Vec<u64>),
}

impl Sums {
    /// Zeros for sums that are at most `bound` where it matters.
    pub(super) fn new(len: usize, bound: u64) -> Self {
        if u16::try_from(bound).is_ok() {
            Self::Short(vec![0; len])
        } else if u32::try_from(bound).is_ok() {
            Self::Middle(vec![0; len])
        } else {
            Self::Long(vec![0; len])
        }
    }

    pub(super) fn set(&mut self, at: u32, sum: u64) {
        let at = at as usize;
        match self {
            Self::Short(sums) => sums[at] = u16::try_from(sum).unwrap_or(u16::MAX),
            Self::Middle(sums) => sums[at] = u32::try_from(sum).unwrap_or(u32::MAX),
            Self::Long(sums) => sums[at] = sum,
        }
    }

    #[inline]
    pub(super) fn get(&self, at: u32) -> u64 {
        let at = at as usize;
        match self {
            Self::Short(sums) => sums[at].into(),
            Self::Middle(sums) => sums[at].into(),
            Self::Long(sums) => sums[at],
        }
    }

    /// The first place from `from` on, before `to`, whose sum is more; `to` if there is none. The sums must ascend there.
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

/// The first index whose sum is more; the length if there is none.
#[inline]
fn first_above<T: Copy + Into<u64>>(sums: &[T], sum: u64) -> usize {
    if sums.len() <= FEW {
        let above = sums.iter().position(|&other| other.into() > sum);
        above.unwrap_or(sums.len())
    } else {
        sums.partition_point(|&other| other.into() <= sum)
    }
}
