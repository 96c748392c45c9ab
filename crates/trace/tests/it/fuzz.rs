//! Runs the body of the fuzz target for about a second, on mutations of a sound file.

#[path = "../../../../fuzz/bodies/trace_file.rs"]
mod body;

use std::time::{Duration, Instant};

use crate::sample;

/// Xorshift (Marsaglia 2003), which gives the same mutations in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

#[test]
fn mutations_of_a_sound_file_do_no_harm() {
    let (sound, _) = sample::two_states();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let start = Instant::now();
    for round in 0..20_000 {
        let mut bytes = sound.clone();
        for _ in 0..=random.below(6) {
            let at = random.below(bytes.len());
            match random.below(5) {
                0 => bytes[at] = random.below(256) as u8,
                1 => bytes[at] ^= 1 << random.below(8),
                2 => bytes.truncate(at + 1),
                3 => {
                    let from = random.below(bytes.len());
                    let length = random.below(64).min(bytes.len() - from.max(at));
                    bytes.copy_within(from..from + length, at);
                }
                _ => drop(bytes.splice(at..at, (0..random.below(48)).map(|i| i as u8))),
            }
        }
        body::read_everything(&bytes);
        if start.elapsed() > Duration::from_secs(2) {
            assert!(round > 100, "{round} rounds only");
            return;
        }
    }
}
