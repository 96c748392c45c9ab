//! Packs regular number sequences. Each number is stored as a difference from an earlier number. A
//! predictable stretch is stored as a distance back and a length.

/// The distances back that are tried for differences. They are sizes of accesses and of common
/// structures.
const BACK: [usize; 8] = [1, 2, 4, 8, 16, 12, 24, 32];
/// Tokens from this value on repeat the differences at one of the distances in [`BACK`]. A lower
/// token is the number of bytes of the difference that follows.
const REPEAT: u8 = 16;
/// Tokens from this value on continue with a constant step. The step is the difference between the
/// numbers at one of the distances in [`BACK`] and at twice this distance.
const GO_ON: u8 = 32;

fn zigzag(difference: u64) -> u64 {
    difference << 1 ^ ((difference as i64) >> 63) as u64
}

fn difference(zigzag: u64) -> u64 {
    zigzag >> 1 ^ 0u64.wrapping_sub(zigzag & 1)
}

/// Appends the packed form of numbers.
pub fn pack(numbers: &[u64], packed: &mut Vec<u8>) {
    let delta = |at: usize| numbers[at].wrapping_sub(if at == 0 { 0 } else { numbers[at - 1] });
    let mut at = 0;
    while at < numbers.len() {
        let mut best = (0, 0);
        let mut offer = |token: u8, holds: &dyn Fn(usize) -> bool| {
            let count = (at..numbers.len()).take_while(|at| holds(*at)).count();
            if count > best.0 {
                best = (count, token);
            }
        };
        for (k, &back) in (0u8..).zip(&BACK) {
            if back <= at && delta(at) == delta(at - back) {
                offer(REPEAT + k, &|at| delta(at) == delta(at - back));
            }
            let goes_on =
                |at: usize| numbers[at] == gone_on(numbers[at - back], numbers[at - 2 * back]);
            if 2 * back <= at && goes_on(at) {
                offer(GO_ON + k, &goes_on);
            }
        }
        match best {
            (0, _) => {
                let zigzag = zigzag(delta(at));
                let bytes = 8 - zigzag.leading_zeros() as usize / 8;
                packed.push(bytes as u8);
                packed.extend(&zigzag.to_le_bytes()[..bytes]);
                at += 1;
            }
            (count, token) => {
                let count = count.min(256);
                packed.extend([token, (count - 1) as u8]);
                at += count;
            }
        }
    }
}

/// Returns the number that continues a sequence with the same step.
fn gone_on(last: u64, before: u64) -> u64 {
    last.wrapping_mul(2).wrapping_sub(before)
}

/// Unpacks numbers until `numbers` is full. Returns the number of bytes consumed. Invalid input
/// gives arbitrary numbers.
pub fn unpack(packed: &[u8], numbers: &mut [u64]) -> usize {
    let (mut at, mut from) = (0, 0);
    let byte = |from: usize| packed.get(from).copied().unwrap_or(0);
    let before = |numbers: &[u64], at: usize| at.checked_sub(1).map_or(0, |k| numbers[k]);
    while at < numbers.len() {
        let token = byte(from);
        from += 1;
        if token < REPEAT {
            let mut zigzag = [0; 8];
            let bytes = usize::from(token).min(8);
            zigzag[..bytes].fill_with(|| {
                from += 1;
                byte(from - 1)
            });
            let difference = difference(u64::from_le_bytes(zigzag));
            numbers[at] = before(numbers, at).wrapping_add(difference);
            at += 1;
            continue;
        }
        let back = BACK[usize::from(token) % BACK.len()];
        let count = usize::from(byte(from)) + 1;
        from += 1;
        let end = numbers.len().min(at + count);
        for k in at..end {
            let there = k.saturating_sub(back);
            numbers[k] = if token < GO_ON {
                let difference = numbers[there].wrapping_sub(before(numbers, there));
                before(numbers, k).wrapping_add(difference)
            } else {
                gone_on(numbers[there], numbers[there.saturating_sub(back)])
            };
        }
        at = end;
    }
    from
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{pack, unpack};

    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![4 => 0..4u64, 1 => any::<u64>(), 1 => Just(u64::MAX), 1 => Just(1 << 63)]
    }

    proptest! {
        #[test]
        fn unpacking_undoes_packing(mut numbers in prop::collection::vec(number(), 1..80), copies in 1..9usize) {
            let period = numbers.len();
            numbers = numbers.repeat(copies);
            for (k, number) in numbers.iter_mut().enumerate() {
                *number = number.wrapping_add((k / period) as u64 * 5);
            }
            let mut packed = Vec::new();
            pack(&numbers, &mut packed);
            let mut again = vec![7; numbers.len()];
            prop_assert_eq!(unpack(&packed, &mut again), packed.len());
            prop_assert_eq!(again, numbers);
        }
    }

    #[test]
    fn what_a_loop_stored_is_short() {
        // Each number contains the execution that stored a byte, and the number of the store's
        // bytes that follow.
        for size in [1, 2, 4, 8, 16u64] {
            let of = |at: u64| (at / size) << 32 | 77 << 6 | (size - at % size) << 1;
            let numbers = Vec::from_iter((10_000..10_256).map(of));
            // These are the same numbers, but only for the first byte of each store.
            let is_first = |at: u64| if at.is_multiple_of(size) { of(at) } else { 0 };
            let firsts = Vec::from_iter((10_000..10_256).map(is_first));
            for (numbers, most) in [(numbers, 32), (firsts, 64)] {
                let mut packed = Vec::new();
                pack(&numbers, &mut packed);
                assert!(packed.len() <= most, "{size}: {}", packed.len());
            }
        }
    }
}
