//! Draws a small sample of a multiset, with the exact frequency of each element.

/// The maximum number of different elements.
const KEPT: usize = 24;

/// The elements with the smallest hashes, and their frequencies (bottom-k sampling, Cohen and
/// Kaplan 2007, on distinct elements).
///
/// An element that is still kept at the end has been kept since its first occurrence, because the
/// bound only falls. So its count is exact, and all elements with a hash up to the
/// [bound](Self::bound) are present. Two samples can therefore prove that one multiset does not
/// contain the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The hashes of the kept elements, ascending.
    hashes: [u64; KEPT],
    counts: [u64; KEPT],
    kept: u8,
    /// The position of the kept element that was added last.
    recent: u8,
    /// The bound. Elements with larger hashes are not kept.
    bound: u64,
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            hashes: [0; KEPT],
            counts: [0; KEPT],
            kept: 0,
            recent: 0,
            bound: u64::MAX,
        }
    }
}

impl Sample {
    /// Adds an element by its hash. O(1).
    #[inline(always)]
    pub fn add(&mut self, hash: u64) {
        let recent = usize::from(self.recent);
        if self.hashes[recent] == hash && recent < usize::from(self.kept) {
            self.counts[recent] += 1;
        } else if hash <= self.bound {
            self.insert(hash);
        }
    }

    fn insert(&mut self, hash: u64) {
        let kept = usize::from(self.kept);
        let at = match self.hashes[..kept].binary_search(&hash) {
            Ok(at) => {
                self.counts[at] += 1;
                at
            }
            Err(at) => {
                // If there is no room, the element with the largest hash is removed.
                let last = kept.min(KEPT - 1);
                self.hashes.copy_within(at..last, at + 1);
                self.counts.copy_within(at..last, at + 1);
                self.hashes[at] = hash;
                self.counts[at] = 1;
                self.kept = (last + 1) as u8;
                if last + 1 == KEPT {
                    self.bound = self.hashes[last];
                }
                at
            }
        };
        self.recent = at as u8;
    }

    /// Returns the hashes of the kept elements, ascending, with the elements' frequencies.
    pub fn elements(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let kept = usize::from(self.kept);
        let counts = self.counts[..kept].iter().copied();
        self.hashes[..kept].iter().copied().zip(counts)
    }

    /// Returns the frequency of an element; `None` if it is unknown because its hash exceeds the
    /// bound.
    pub fn count(&self, hash: u64) -> Option<u64> {
        if hash > self.bound {
            return None;
        }
        let found = self.hashes[..self.len()].binary_search(&hash);
        Some(found.map_or(0, |at| self.counts[at]))
    }

    /// Returns the bound. All elements with hashes up to it are present.
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// Returns the number of different elements kept. If fewer than 24 elements are kept, the
    /// sample contains all elements.
    pub fn len(&self) -> usize {
        usize::from(self.kept)
    }

    /// Whether nothing has been added.
    pub fn is_empty(&self) -> bool {
        self.kept == 0
    }

    /// Counts the elements of this multiset that occur in the other, among the elements with known
    /// frequencies. O(kept elements).
    pub fn found_in(&self, other: &Self) -> Overlap {
        let theirs = &other.hashes[..other.len()];
        let mut found = Overlap::default();
        let mut next = 0;
        for (hash, here) in self.elements() {
            if hash > other.bound {
                break;
            }
            while next < theirs.len() && theirs[next] < hash {
                next += 1;
            }
            let there = match theirs.get(next) {
                Some(their) if *their == hash => other.counts[next],
                _ => 0,
            };
            found.known += 1;
            found.occurring += u32::from(there > 0);
            found.as_often += u32::from(there >= here);
        }
        found
    }
}

/// Counts of the elements of one multiset that occur in another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlap {
    /// The number of elements whose frequencies are known in both multisets.
    pub known: u32,
    /// The number of these elements that occur in the other multiset.
    pub occurring: u32,
    /// The number of these elements that occur at least as often in the other multiset.
    pub as_often: u32,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::mix;

    fn sample(elements: &[u64]) -> Sample {
        let mut sample = Sample::default();
        elements
            .iter()
            .for_each(|&element| sample.add(mix(element)));
        sample
    }

    proptest! {
        #[test]
        fn what_is_kept_is_counted_exactly(elements in prop::collection::vec(0u64..40, 0..400)) {
            let sample = sample(&elements);
            let mut all: BTreeMap<u64, u64> = BTreeMap::new();
            for &element in &elements {
                *all.entry(mix(element)).or_default() += 1;
            }
            let kept: BTreeMap<u64, u64> = sample.elements().collect();
            let expected: BTreeMap<u64, u64> = all.iter().take(KEPT).map(|(&h, &n)| (h, n)).collect();
            prop_assert_eq!(kept, expected);
            for (&hash, &count) in &all {
                if let Some(known) = sample.count(hash) {
                    prop_assert_eq!(known, count);
                }
            }
        }

        #[test]
        fn what_is_known_of_another_is_counted(a in prop::collection::vec(0u64..60, 0..300), b in prop::collection::vec(20u64..90, 0..300)) {
            let (a, b) = (sample(&a), sample(&b));
            let known = a.elements().filter_map(|(hash, here)| Some((b.count(hash)?, here)));
            let known = Vec::from_iter(known);
            let count = |of: &dyn Fn(u64, u64) -> bool| known.iter().filter(|&&(there, here)| of(there, here)).count() as u32;
            let expected = Overlap {
                known: known.len() as u32,
                occurring: count(&|there, _| there > 0),
                as_often: count(&|there, here| there >= here),
            };
            prop_assert_eq!(a.found_in(&b), expected);
        }

        #[test]
        fn a_part_is_never_refuted(elements in prop::collection::vec(0u64..60, 1..400), keep in prop::collection::vec(any::<bool>(), 400)) {
            let part: Vec<u64> = elements.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(e, _)| *e).collect();
            let found = sample(&part).found_in(&sample(&elements));
            prop_assert_eq!(found.as_often, found.known);
        }
    }
}
