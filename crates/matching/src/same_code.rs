//! Finds functions with equal or nearly equal code in both versions.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::Version;

/// Returns the counterparts of statements in functions that [`same_functions`] pairs.
pub(crate) fn same_code(a: &Version, b: &Version) -> Vec<Option<u32>> {
    let pairs = same_functions(&a.bodies, &b.bodies);
    let statements = (0..).zip(&a.statements);
    let places: FxHashMap<(u32, u32), u32> = statements
        .map(|(at, statement)| ((statement.function, statement.ordinal), at))
        .collect();
    let of_b = b.statements.iter();
    let found = of_b.map(|statement| {
        let function = pairs.get(&statement.function)?;
        places.get(&(*function, statement.ordinal)).copied()
    });
    found.collect()
}

type Bodies = FxHashMap<u32, Box<[u64]>>;

/// Returns the functions of the second version that have the same code as a function of the first,
/// if that code is unique in each version. Also pairs other functions of equal length if at least
/// nine of ten operators agree, place by place, and no other unpaired function in either version
/// has that length. Functions of this kind were changed in only a few places. O(operators).
fn same_functions(a: &Bodies, b: &Bodies) -> FxHashMap<u32, u32> {
    fn only<'b, K: std::hash::Hash + Eq>(
        bodies: &'b Bodies,
        left: impl Fn(u32) -> bool,
        key: impl Fn(&'b [u64]) -> K,
    ) -> FxHashMap<K, Option<u32>> {
        let mut only = FxHashMap::default();
        for (&function, body) in bodies.iter().filter(|(function, _)| left(**function)) {
            let known = only.entry(key(body)).or_insert(Some(function));
            if *known != Some(function) {
                *known = None;
            }
        }
        only
    }
    let of_a = only(a, |_| true, |body| body);
    let mut pairs: FxHashMap<u32, u32> = only(b, |_| true, |body| body)
        .into_iter()
        .filter_map(|(body, of_b)| Some((of_b?, (*of_a.get(body)?)?)))
        .collect();
    let taken: FxHashSet<u32> = pairs.values().copied().collect();
    let of_a = only(a, |function| !taken.contains(&function), <[u64]>::len);
    let of_b = only(b, |function| !pairs.contains_key(&function), <[u64]>::len);
    for (length, of_b) in of_b {
        let Some((of_b, of_a)) = of_b.zip(of_a.get(&length).copied().flatten()) else {
            continue;
        };
        let both = a[&of_a].iter().zip(&b[&of_b]);
        let same = both.filter(|(x, y)| x == y).count();
        if same * 10 >= length * 9 {
            pairs.insert(of_b, of_a);
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::{Bodies, same_functions};

    fn bodies(all: &[(u32, &[u64])]) -> Bodies {
        all.iter()
            .map(|&(function, body)| (function, body.into()))
            .collect()
    }

    #[test]
    fn functions_that_are_the_same_or_nearly_so_are_pairs() {
        let long: Vec<u64> = (0..20).collect();
        let mut changed = long.clone();
        changed[7] = 99;
        let other: Vec<u64> = (50..68).collect();
        let mut too_different = other.clone();
        too_different[..2].fill(1);
        let a = bodies(&[
            (1, &[1, 2, 3]),
            (2, &[4, 4]),
            (3, &[4, 4]),
            (4, &long),
            (5, &other),
        ]);
        let b = bodies(&[
            (11, &[4, 4]),
            (12, &[1, 2, 3]),
            (13, &changed),
            (14, &too_different),
        ]);
        let mut pairs: Vec<_> = same_functions(&a, &b).into_iter().collect();
        pairs.sort_unstable();
        assert_eq!(pairs, [(12, 1), (13, 4)]);
    }
}
