//! Runs the body of the fuzz target on mutations of sound streams.

#[path = "../../../../fuzz/bodies/stream.rs"]
mod body;

use std::time::{Duration, Instant};

use afterimage_streams::encode;

use crate::shapes::{Random, SHAPES};

#[test]
fn mutations_of_sound_streams_do_no_harm() {
    let mut random = Random(11);
    let start = Instant::now();
    for round in 0.. {
        let shape = random.below(SHAPES.len() as u64) as usize;
        let len = random.below(if round % 4 == 0 { 9000 } else { 300 }) as usize;
        let mut sound = Vec::new();
        encode(&SHAPES[shape].1(&mut random, len), &mut sound);
        for _ in 0..20 {
            let mut bytes = sound.clone();
            let mut told = len as u64;
            damage(&mut bytes, &mut told, &mut random);
            body::read_everything(&bytes, told);
        }
        if start.elapsed() > Duration::from_secs(2) {
            assert!(round > 50, "{round} rounds only");
            return;
        }
    }
}

#[test]
fn arbitrary_bytes_do_no_harm() {
    let mut random = Random(12);
    for _ in 0..100_000 {
        let bytes: Vec<_> = (0..random.below(40)).map(|_| random.bits() as u8).collect();
        let len = random.bits() >> random.below(64);
        body::read_everything(&bytes, len);
    }
}

/// Damages a stream. Cuts off, flips or replaces bytes, or gives a different length.
fn damage(bytes: &mut Vec<u8>, len: &mut u64, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => *len = random.bits() >> random.below(64),
            2 => bytes.insert(at, random.bits() as u8),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
    }
}
