//! Checks that every stream is restored exactly, from any place and in both directions.

use std::collections::BTreeSet;

use afterimage_streams::{BLOCK, Codec, Stream, StreamError, encode, explain};
use proptest::prelude::*;

use crate::shapes::{Random, SHAPES};

/// Reads a stream in every way, and compares the results with the vector.
fn check(values: &[u64], random: &mut Random) {
    let mut bytes = vec![7];
    encode(values, &mut bytes);
    let coded_len = bytes.len() - 1;
    bytes.extend([0xa5; 3]);
    let len = values.len() as u64;
    let stream = Stream::open(&bytes[1..], len).unwrap();
    assert_eq!((stream.len(), stream.coded_len()), (len, coded_len));
    let parts = explain(&bytes[1..], len).unwrap();
    assert_eq!(parts.iter().map(|part| part.values).sum::<u64>(), len);
    assert_eq!(
        parts.iter().map(|part| part.bytes).sum::<u64>(),
        coded_len as u64
    );
    let mut all = vec![3];
    stream.decode_all(&mut all).unwrap();
    assert_eq!(all[0], 3);
    assert!(all[1..] == *values);

    let mut cursor = stream.cursor();
    for &value in values {
        assert_eq!(cursor.next(), Ok(Some(value)));
    }
    assert_eq!((cursor.next(), cursor.position()), (Ok(None), len));
    for &value in values.iter().rev() {
        assert_eq!(cursor.previous(), Ok(Some(value)));
    }
    assert_eq!((cursor.previous(), cursor.position()), (Ok(None), 0));
    let beyond = Err(StreamError::OutOfBounds {
        position: len + 1,
        len,
    });
    assert_eq!((cursor.seek(len + 1), cursor.position()), (beyond, 0));
    assert!(cursor.get(len).is_err());

    for _ in 0..20 {
        let at = random.below(len + 1);
        cursor.seek(at).unwrap();
        let behind = values.get(at as usize).copied();
        if random.below(2) == 0 {
            assert_eq!(cursor.next(), Ok(behind));
        } else {
            assert_eq!(
                cursor.previous(),
                Ok(at.checked_sub(1).map(|at| values[at as usize]))
            );
        }
        if let Some(value) = behind {
            assert_eq!(cursor.get(at), Ok(value));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn streams_of_all_shapes_come_back(seed: u64, len in prop_oneof![0..40usize, 0..3000usize, 5000..12_000usize]) {
        let mut random = Random(seed);
        for (_, shape) in SHAPES {
            check(&shape(&mut random, len), &mut random);
        }
    }

    #[test]
    fn any_values_come_back(values in prop::collection::vec(any::<u64>(), 0..30)) {
        check(&values, &mut Random(1));
    }

    #[test]
    fn short_streams_of_small_numbers_come_back(values in prop::collection::vec(0..4u64, 0..30)) {
        check(&values, &mut Random(2));
    }
}

#[test]
fn whole_blocks_and_their_neighbours_come_back() {
    let mut random = Random(3);
    for (_, shape) in SHAPES {
        for len in [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 1] {
            check(&shape(&mut random, len), &mut random);
        }
    }
}

#[test]
fn constant_and_arithmetic_streams_cost_a_few_bytes() {
    let coded = |values: &[u64]| {
        let mut bytes = Vec::new();
        encode(values, &mut bytes);
        bytes.len()
    };
    assert_eq!(coded(&[]), 0);
    for len in [1, 2, 100, 1024, 1025, 3_000_000] {
        assert_eq!(coded(&vec![9; len]), 2, "{len}");
        assert!(coded(&vec![1 << 32; len]) <= 6, "{len}");
        let arithmetic: Vec<_> = (0..len as u64).map(|i| 1_000_000 + 8 * i).collect();
        assert!(coded(&arithmetic) <= 6, "{len}");
    }
}

#[test]
fn a_constant_stream_longer_than_memory_is_read() {
    let mut bytes = Vec::new();
    encode(&[6; 5000], &mut bytes);
    let stream = Stream::open(&bytes, 1 << 60).unwrap();
    let mut cursor = stream.cursor();
    cursor.seek(1 << 60).unwrap();
    assert_eq!(cursor.previous(), Ok(Some(6)));
    assert_eq!(
        stream.decode_all(&mut Vec::new()),
        Err(StreamError::TooLong(1 << 60))
    );
}

#[test]
fn every_codec_is_the_shortest_for_some_shape() {
    let mut used = BTreeSet::new();
    for (_, shape) in SHAPES {
        for len in [7, 1000, 20_000] {
            let values = shape(&mut Random(9), len);
            let mut bytes = Vec::new();
            encode(&values, &mut bytes);
            let parts = explain(&bytes, len as u64).unwrap();
            used.extend(parts.into_iter().map(|part| part.codec));
        }
    }
    let all = [
        Codec::Plain,
        Codec::Runs,
        Codec::Packed,
        Codec::Dictionary,
        Codec::Predicted,
        Codec::Decimal,
        Codec::Blocks,
    ];
    assert!(used.iter().eq(&all), "{used:?}");
}

#[test]
fn a_recurring_stream_costs_less_than_a_bit_for_four_values() {
    // Compare with the cost of each predictor of the paper, which is one bit for each value.
    let mut random = Random(10);
    let period: Vec<_> = (0..500).map(|_| random.below(1 << 30)).collect();
    let values: Vec<_> = (0..200_000)
        .map(|i| period[i % 500] + i as u64 / 500 % 2)
        .collect();
    let mut bytes = Vec::new();
    encode(&values, &mut bytes);
    assert!(32 * bytes.len() < values.len(), "{} bytes", bytes.len());
}
