//! Prints sizes and speeds (`--nocapture`). Only the round trip is checked.

use std::time::Instant;

use afterimage_streams::{Stream, encode};

use crate::shapes::{Random, SHAPES};

#[test]
fn sizes_and_speeds_by_shape() {
    println!(
        "{:26} {:>9} {:>9} {:>9}",
        "shape", "bits/val", "enc M/s", "dec M/s"
    );
    for len in [10, 1000, 100_000] {
        println!("{len} values");
        for (name, shape) in SHAPES {
            let mut random = Random(5);
            // Short streams vary a lot, so use several of them.
            let streams: Vec<_> = (0..10_000usize.div_ceil(len).min(100))
                .map(|_| shape(&mut random, len))
                .collect();
            let total: usize = streams.iter().map(Vec::len).sum();
            let start = Instant::now();
            let coded: Vec<_> = streams
                .iter()
                .map(|values| {
                    let mut bytes = Vec::new();
                    encode(values, &mut bytes);
                    bytes
                })
                .collect();
            let encoding = start.elapsed().as_secs_f64();
            let mut back = Vec::with_capacity(len);
            let start = Instant::now();
            for (bytes, values) in coded.iter().zip(&streams) {
                back.clear();
                let stream = Stream::open(bytes, len as u64).unwrap();
                stream.decode_all(&mut back).unwrap();
                assert!(back == *values);
            }
            let decoding = start.elapsed().as_secs_f64();
            let bytes: usize = coded.iter().map(Vec::len).sum();
            println!(
                "{name:26} {:9.3} {:9.1} {:9.1}",
                8.0 * bytes as f64 / total as f64,
                total as f64 / encoding / 1e6,
                total as f64 / decoding / 1e6,
            );
        }
    }
}
