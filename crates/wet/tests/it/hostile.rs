//! Runs the body of the fuzz target on mutations of sound epochs.

#[path = "../../../../fuzz/bodies/values.rs"]
mod body;

use std::time::{Duration, Instant};

use afterimage_testkit::modules::SplitMix64;
use body::{GUEST, Guest};

/// The size of an epoch that holds the whole run.
const LARGE: usize = 1 << 20;

fn guest() -> Guest {
    Guest::new(wat::parse_str(GUEST).expect("a module"))
}

#[test]
fn sound_epochs_answer() {
    let guest = guest();
    for size in [1, 50, LARGE] {
        let (answered, refused) = guest.ask(&guest.build(size));
        // The first node does not read the argument that the host passed, so only the log has the
        // argument.
        assert!(answered > 200 && refused == 1, "{answered}, {refused}");
    }
}

#[test]
fn mutations_of_sound_epochs_do_no_harm() {
    let guest = guest();
    let random = &mut SplitMix64(4);
    let sound = [guest.build(60), guest.build(LARGE)];
    let start = Instant::now();
    let (mut answered, mut refused, mut slowest) = (0, 0, Duration::ZERO);
    while start.elapsed() < Duration::from_secs(4) {
        let mut epochs = sound[random.below(2)].clone();
        for _ in 0..=random.below(3) {
            let epoch = random.below(epochs.len());
            damage(&mut epochs[epoch].1, random);
        }
        let begin = Instant::now();
        let (a, r) = guest.ask(&epochs);
        slowest = slowest.max(begin.elapsed());
        answered += a;
        refused += r;
    }
    assert!(answered > 1000 && refused > 1000, "{answered}, {refused}");
    assert!(slowest < Duration::from_secs(20), "{slowest:?}");
}

#[test]
fn arbitrary_bytes_do_no_harm() {
    let guest = guest();
    let random = &mut SplitMix64(5);
    for _ in 0..20_000 {
        let bytes = (0..random.below(60)).map(|_| random.next() as u8 >> random.below(8));
        guest.ask(&[(0, bytes.collect())]);
    }
}

/// Damages bytes at random. Cuts them off, inserts a byte, flips a bit, or makes a number large.
fn damage(bytes: &mut Vec<u8>, random: &mut SplitMix64) {
    let at = random.below(bytes.len() + 1);
    match random.below(8) {
        0 => bytes.truncate(at),
        1 => bytes.insert(at, random.next() as u8),
        2 => {
            let end = (at + 8).min(bytes.len());
            bytes[at..end].fill(0xff);
        }
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
    }
}
