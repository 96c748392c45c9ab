//! Computes the intersection and difference of two arithmetic series.

use afterimage_wpp::twpp::Entry;

/// Builds a series from its first and last timestamp, inclusive.
pub(crate) fn series(first: u64, last: u64, step: u64) -> Entry {
    if first == last {
        return Entry::single(first);
    }
    Entry { first, last, step }
}

/// Returns the timestamps of a series within two bounds.
pub(crate) fn clipped(of: Entry, from: u64, to: u64) -> Option<Entry> {
    if of.first > to || of.last < from || from > to {
        return None;
    }
    let first = of.first + from.saturating_sub(of.first).div_ceil(of.step) * of.step;
    let last = of.last.min(to);
    let last = last.checked_sub(first)? / of.step * of.step + first;
    Some(series(first, last, of.step))
}

/// Returns the timestamps that two series have in common. These also form a series. O(log of the
/// steps).
pub(crate) fn common(a: Entry, b: Entry) -> Option<Entry> {
    let from = a.first.max(b.first);
    let to = a.last.min(b.last);
    if from > to {
        return None;
    }
    if a.first == a.last {
        return b.contains(a.first).then_some(a);
    }
    if b.first == b.last {
        return a.contains(b.first).then_some(b);
    }
    if a.step == b.step {
        let apart = a.first.abs_diff(b.first);
        return apart
            .is_multiple_of(a.step)
            .then(|| series(from, last(from, to, a.step), a.step));
    }
    if b.step == 1 {
        return clipped(a, from, to);
    }
    if a.step == 1 {
        return clipped(b, from, to);
    }
    // t = a.first + k·a.step ≡ b.first (mod b.step), by the Chinese remainder theorem.
    let (divisor, inverse) = inverse(a.step, b.step);
    let apart = i128::from(b.first) - i128::from(a.first);
    if apart % i128::from(divisor) != 0 {
        return None;
    }
    let modulus = i128::from(b.step / divisor);
    let k = (apart / i128::from(divisor) % modulus * i128::from(inverse)).rem_euclid(modulus);
    let step = u128::from(a.step) * modulus as u128;
    let first = u128::from(a.first) + k as u128 * u128::from(a.step);
    let missing = u128::from(from).saturating_sub(first).div_ceil(step);
    let first = first + missing * step;
    if first > u128::from(to) {
        return None;
    }
    let rest = (u128::from(to) - first) / step;
    let first = first as u64;
    match rest {
        0 => Some(Entry::single(first)),
        // Another step fits below `to`, so this does not overflow.
        rest => Some(series(
            first,
            first + rest as u64 * step as u64,
            step as u64,
        )),
    }
}

/// Passes to `tell`, in few series, the timestamps of a series that are not in `part`.
pub(crate) fn without(of: Entry, part: Entry, mut tell: impl FnMut(Entry)) {
    let mut between = |from: u64, to: u64| {
        if let Some(rest) = clipped(of, from, to) {
            tell(rest);
        }
    };
    if part.first > of.first {
        between(of.first, part.first - 1);
    }
    if part.last < of.last {
        between(part.last + 1, of.last);
    }
    let ways = part.step / of.step;
    if part.first == part.last || ways == 1 {
        return;
    }
    if part.count() - 1 < ways - 1 {
        let gaps = part.iter().zip(part.iter().skip(1));
        gaps.for_each(|(before, after)| between(before + 1, after - 1));
        return;
    }
    for way in 1..ways {
        let first = part.first + way * of.step;
        let last = part.last - part.step + way * of.step;
        tell(series(first, last, part.step));
    }
}

fn last(from: u64, to: u64, step: u64) -> u64 {
    from + (to - from) / step * step
}

/// Returns the greatest common divisor of two numbers, and an x with a·x ≡ gcd (mod b), by Euclid's
/// algorithm.
fn inverse(a: u64, b: u64) -> (u64, i64) {
    let (mut old, mut now) = (i128::from(a), i128::from(b));
    let (mut old_x, mut x) = (1i128, 0i128);
    while now != 0 {
        let quotient = old / now;
        (old, now) = (now, old - quotient * now);
        (old_x, x) = (x, old_x - quotient * x);
    }
    // |x| ≤ b.
    let x = old_x.rem_euclid(i128::from(b) / old);
    (old as u64, x as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{clipped, common, series, without};
    use afterimage_wpp::twpp::Entry;

    fn any_series() -> impl Strategy<Value = Entry> {
        (1u64..60, 1u64..12, 0u64..14)
            .prop_map(|(first, step, more)| series(first, first + step * more, step))
    }

    fn is_well_formed(entry: &Entry) -> bool {
        let whole = (entry.last - entry.first).is_multiple_of(entry.step);
        whole && (entry.first < entry.last || entry.step == 1)
    }

    proptest! {
        #[test]
        fn common_is_the_intersection(a in any_series(), b in any_series()) {
            let expected: Vec<u64> = a.iter().filter(|&t| b.contains(t)).collect();
            let found = common(a, b);
            prop_assert!(found.as_ref().is_none_or(is_well_formed));
            let found: Vec<u64> = found.iter().flat_map(Entry::iter).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn without_is_the_difference(a in any_series(), b in any_series()) {
            if let Some(part) = common(a, b) {
                let mut found = Vec::new();
                without(a, part, |rest| {
                    assert!(is_well_formed(&rest));
                    found.extend(rest.iter());
                });
                found.sort_unstable();
                let expected: Vec<u64> = a.iter().filter(|&t| !b.contains(t)).collect();
                prop_assert_eq!(found, expected);
            }
        }

        #[test]
        fn clipped_is_between(a in any_series(), from in 0u64..200, length in 0u64..100) {
            let to = from + length;
            let expected: Vec<u64> = a.iter().filter(|t| (from..=to).contains(t)).collect();
            let found: Vec<u64> = clipped(a, from, to).iter().flat_map(Entry::iter).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn large_steps_do_not_overflow() {
        let most = u64::MAX;
        let a = series(1, most, most - 1);
        let b = series(1, most - 2, most - 3);
        assert_eq!(common(a, b), Some(Entry::single(1)));
        let c = series(3, 3 + 5 * (1 << 60), 1 << 60);
        let d = series(3, 3 + 15 * (1 << 58), 5 << 58);
        assert_eq!(common(c, d), Some(Entry::single(3)));
        let e = series(3, 3 + 12 * (5 << 58), 5 << 58);
        let f = series(3, 3 + 15 * (1 << 60), 1 << 60);
        assert_eq!(common(e, f), Some(series(3, 3 + 15 * (1 << 60), 5 << 60)));
    }
}
