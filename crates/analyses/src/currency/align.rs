//! Finds corresponding executions of a line's parts in two runs, by counting.

use std::collections::HashSet;

use super::Trail;
use super::trail::{Part, Unit};

/// A scope within which parts are counted. The narrowest scope comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// The part of an activation between two calls that both runs make.
    Segment,
    /// One activation that exists in both runs.
    Activation,
    /// The whole run.
    Run,
}

const LEVELS: [Level; 3] = [Level::Segment, Level::Activation, Level::Run];

type Key = (Unit, u64, u64);

impl Level {
    fn key(self, part: &Part) -> Key {
        match self {
            Self::Segment => (part.unit, part.activation, part.segment),
            Self::Activation => (part.unit, part.activation, 0),
            Self::Run => (part.unit, 0, 0),
        }
    }
}

/// Finds, for each part that run `b` executed, its counterpart in run `a`, unless the counterpart
/// is uncertain.
///
/// If both runs executed a unit of the line equally often between two calls that both make, the
/// k-th executions correspond. Otherwise the same rule applies to the whole activation, and then to
/// the whole runs. A counterpart found in a wide scope must agree with all counterparts found in
/// the narrower scopes inside it. Otherwise the wide scope gives no counterparts.
///
/// O(parts · log parts).
pub fn align(a: &Trail, b: &Trail) -> Vec<Option<u32>> {
    let mut found: Vec<Option<u32>> = vec![None; b.parts.len()];
    let open: HashSet<u64> = a.open.iter().chain(&b.open).copied().collect();
    let is_cut = a.is_cut || b.is_cut;
    for level in LEVELS {
        let of_a = by_key(&a.parts, level);
        let of_b = by_key(&b.parts, level);
        let mut rest = of_a.as_slice();
        for group in of_b.chunk_by(|x, y| x.0 == y.0) {
            let key = group[0].0;
            let before = rest.partition_point(|entry| entry.0 < key);
            rest = &rest[before..];
            let length = rest.partition_point(|entry| entry.0 == key);
            let (same, later) = rest.split_at(length);
            rest = later;
            let is_partial = match level {
                Level::Segment => false,
                Level::Activation => open.contains(&key.1),
                Level::Run => is_cut,
            };
            if same.len() != group.len() || is_partial {
                continue;
            }
            let pairs = || group.iter().zip(same).map(|(b, a)| (b.1, a.1));
            let agrees = |(b, a): (u32, u32)| found[b as usize].is_none_or(|known| known == a);
            if pairs().all(agrees) {
                for (b, a) in pairs() {
                    found[b as usize] = Some(a);
                }
            }
        }
    }
    found
}

/// Returns the parts sorted by key. Parts with equal keys are in order of time.
fn by_key(parts: &[Part], level: Level) -> Vec<(Key, u32)> {
    let mut keyed: Vec<(Key, u32)> = parts
        .iter()
        .zip(0..)
        .map(|(part, at)| (level.key(part), at))
        .collect();
    keyed.sort_unstable();
    keyed
}

#[cfg(test)]
mod tests {
    use afterimage_ids::OpId;

    use super::*;

    /// Applies the same rules literally, by counting and then checking agreement with known
    /// counterparts.
    fn slow(a: &Trail, b: &Trail) -> Vec<Option<u32>> {
        let mut found: Vec<Option<u32>> = vec![None; b.parts.len()];
        for level in LEVELS {
            let before = found.clone();
            for (at, part) in b.parts.iter().enumerate() {
                let key = level.key(part);
                let all = |parts: &[Part]| -> Vec<u32> {
                    let all = (0..parts.len()).filter(|&i| level.key(&parts[i]) == key);
                    all.map(|i| i as u32).collect()
                };
                let (of_a, of_b) = (all(&a.parts), all(&b.parts));
                let open = a.open.contains(&part.activation) || b.open.contains(&part.activation);
                let partial = match level {
                    Level::Segment => false,
                    Level::Activation => open,
                    Level::Run => a.is_cut || b.is_cut,
                };
                let agree = of_a.len() == of_b.len()
                    && of_a.iter().zip(&of_b).all(|(a, b)| {
                        let known = before[*b as usize];
                        known.is_none() || known == Some(*a)
                    });
                if agree && !partial {
                    let rank = of_b.iter().position(|&b| b as usize == at).unwrap();
                    found[at] = Some(of_a[rank]);
                }
            }
        }
        found
    }

    /// Builds a run that executes parts of a few columns, chosen by `seed`.
    fn trail(seed: &mut u64) -> Trail {
        let mut next = |below: u64| {
            *seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (*seed >> 33) % below
        };
        let mut trail = Trail::default();
        let mut segment = 0;
        for at in 0..next(14) {
            segment += next(2);
            trail.parts.push(Part {
                unit: Unit::Column(next(2) as u32),
                segment,
                activation: segment / 2,
                stop: at as u32,
                time: at + 1,
                op: OpId::from_u32(0),
                is_test: false,
            });
        }
        if next(3) == 0 {
            trail.is_cut = true;
            trail.open.push(segment / 2);
        }
        trail
    }

    #[test]
    fn what_is_aligned_is_what_counting_says() {
        let mut seed = 7;
        let (mut told, mut untold, mut wide) = (0, 0, 0);
        for _ in 0..3000 {
            let (a, b) = (trail(&mut seed), trail(&mut seed));
            let found = align(&a, &b);
            assert_eq!(found, slow(&a, &b), "{a:?}\n{b:?}");
            told += found.iter().flatten().count();
            untold += found.iter().filter(|found| found.is_none()).count();
            let pairs = found.iter().zip(&b.parts);
            wide += pairs
                .filter(|(a_part, b_part)| {
                    a_part.is_some_and(|at| a.parts[at as usize].segment != b_part.segment)
                })
                .count();
            // A run corresponds to itself.
            let own: Vec<_> = (0..a.parts.len() as u32).map(Some).collect();
            assert_eq!(align(&a, &a), own);
        }
        assert!(
            told > 500 && untold > 500 && wide > 50,
            "{told} {untold} {wide}"
        );
    }
}
