//! Numbers without what repeats in them: each as the difference from the one before, and stretches of differences that are there already as how far back and how many.

/// How far back differences are looked for: sizes of accesses, and of common structures.
const BACK: [usize; 8] = [1, 2, 4, 8, 16, 12, 24, 32];
/// A token from here on is one of these; below, it is how many bytes of a difference follow.
const REPEAT: u8 = 16;

fn zigzag(difference: u64) -> u64 {
    difference << 1 ^ ((difference as i64) >> 63) as u64
}

fn difference(zigzag: u64) -> u64 {
    zigzag >> 1 ^ 0u64.wrapping_sub(zigzag & 1)
}

/// Packs numbers.
pub fn pack(numbers: &[u64], packed: &mut Vec<u8>) {
    let delta = |at: usize| numbers[at].wrapping_sub(if at == 0 { 0 } else { numbers[at - 1] });
    let mut at = 0;
    while at < numbers.len() {
        let mut best = (0, 0);
        for (k, &back) in (0u8..).zip(&BACK).filter(|(_, back)| **back <= at) {
            let mut count = 0;
            while at + count < numbers.len() && delta(at + count) == delta(at + count - back) {
                count += 1;
            }
            if count > best.0 {
                best = (count, k);
            }
            if at + count == numbers.len() {
                break;
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
            (count, k) => {
                // As long as it is: in steps of at most 256.
                let count = count.min(256);
                packed.extend([REPEAT + k, (count - 1) as u8]);
                at += count;
            }
        }
    }
}

/// Unpacks as many numbers as there is room for: how many bytes they took. What was not packed gives anything.
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
        let back = BACK[usize::from(token - REPEAT) % BACK.len()].min(at.max(1));
        let count = usize::from(byte(from)) + 1;
        from += 1;
        let end = numbers.len().min(at + count);
        for k in at..end {
            let there = k.saturating_sub(back);
            let difference = numbers[there].wrapping_sub(before(numbers, there));
            numbers[k] = before(numbers, k).wrapping_add(difference);
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
        // Which execution stored a byte, and how many bytes of it follow.
        for size in [1, 2, 4, 8, 16u64] {
            let of = |at: u64| (at / size) << 32 | 77 << 6 | (size - at % size) << 1;
            let numbers = Vec::from_iter((10_000..10_256).map(of));
            let mut packed = Vec::new();
            pack(&numbers, &mut packed);
            assert!(packed.len() <= 32, "{size}: {}", packed.len());
        }
    }
}
