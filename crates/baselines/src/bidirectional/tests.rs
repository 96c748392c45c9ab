use std::collections::HashMap;

use proptest::prelude::*;

use super::super::{METHODS, select};
use super::*;

/// Walks to the end and back to the beginning, with extra turns at `turns`.
fn check(values: &[u64], method: Method, turns: &[usize]) {
    let mut stream = Bidirectional::new(values, method);
    let start = stream.clone();
    let window = method.window().min(values.len());
    let mut at = 0;
    assert!(
        stream.window().eq(values[..window].iter().copied()),
        "{method:?}"
    );
    for (&steps, forward) in turns
        .iter()
        .chain([&usize::MAX; 3])
        .zip([true, false].into_iter().cycle())
    {
        for _ in 0..steps {
            if forward {
                let entering = stream.step_forward();
                assert_eq!(entering, values.get(at + window).copied(), "{method:?}");
                if entering.is_none() {
                    break;
                }
                at += 1;
            } else {
                let entering = stream.step_backward();
                assert_eq!(
                    entering,
                    at.checked_sub(1).map(|at| values[at]),
                    "{method:?}"
                );
                if entering.is_none() {
                    break;
                }
                at -= 1;
            }
            assert!(stream.bits() <= stream.allocated_bits());
            assert!(stream.window().eq(values[at..at + window].iter().copied()));
        }
    }
    while stream.step_backward().is_some() {}
    // The bits and tables are the same as before, and no more bits were used than were allocated.
    assert!(stream == start, "{method:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn walks_in_both_directions_agree(
        values in prop_oneof![
            prop::collection::vec(any::<u64>(), 0..80),
            prop::collection::vec(0..6u64, 0..200),
            prop::collection::vec(prop_oneof![Just(4u64), Just(8), 0..100u64], 0..200).prop_map(|steps| {
                steps.iter().scan(1000u64, |sum, step| { *sum += step; Some(*sum) }).collect()
            }),
        ],
        turns in prop::collection::vec(0..100usize, 0..6),
    ) {
        for method in METHODS {
            check(&values, method, &turns);
        }
    }
}

#[test]
fn a_hit_takes_a_bit_and_a_miss_33() {
    // Going from left to right, 9 is predicted once a 9 with right context 9 has been seen.
    let constant = Bidirectional::new(&[9; 1000], Method::Fcm { context: 1 });
    assert_eq!(constant.bits(), 32 + 33 + 998);
    let strange: Vec<u64> = (0..1000).map(|i| 1 + i * i * 7919 % 1_000_003).collect();
    let mut misses = Bidirectional::new(&strange, Method::LastN { n: 2 });
    assert_eq!(misses.bits(), 32 + 999 * 33);
    // Wide values take 64 bits.
    misses = Bidirectional::new(&[1, 1 << 40, 3], Method::LastN { n: 2 });
    assert_eq!(misses.bits(), 64 + 2 * 65);
}

#[test]
fn differential_methods_know_strides() {
    let values: Vec<u64> = (0..2000).map(|i| 100 + 12 * i).collect();
    let (method, stream) = select(&values);
    assert_eq!(method, Method::DifferentialFcm { context: 1 });
    assert_eq!(stream.bits(), 2 * 32 + 33 + 1997);
    let plain = Bidirectional::new(&values, Method::Fcm { context: 1 });
    assert_eq!(plain.bits(), 32 + 33 * 1999);
}

/// Figures 9 and 10 as printed, with a context of one value. A miss stores the value itself.
struct Printed {
    stack: Vec<(bool, u64)>,
    table: HashMap<u64, u64>,
}

impl Printed {
    fn compress(&mut self, value: u64, context: u64) {
        if self.table.get(&context) == Some(&value) {
            self.stack.push((true, 0));
        } else {
            self.stack.push((false, value));
            self.table.insert(context, value);
        }
    }

    fn uncompress(&mut self, context: u64) -> Option<u64> {
        let (hit, stored) = self.stack.pop()?;
        if hit {
            return self.table.get(&context).copied();
        }
        self.table.insert(context, stored);
        Some(stored)
    }
}

#[test]
fn as_printed_the_scheme_cannot_run_backward() {
    let (mut wrong, mut state) = (0, 1u64);
    for _ in 0..500 {
        let values: Vec<_> = (0..200)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                state >> 62
            })
            .collect();
        let mut printed = Printed {
            stack: Vec::new(),
            table: HashMap::new(),
        };
        for pair in values.windows(2) {
            printed.compress(pair[0], pair[1]);
        }
        let mut back = vec![values[199]];
        while let Some(value) = printed.uncompress(back[back.len() - 1]) {
            back.push(value);
        }
        back.reverse();
        wrong += u32::from(back != values);
        check(&values, Method::Fcm { context: 1 }, &[]);
    }
    assert_eq!(wrong, 500);
}
