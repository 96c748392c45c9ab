//! Tests that a recorded history reads back unchanged.

use afterimage_simulate::{Epoch, Misses, Recorder, Tally};

use crate::random::Random;

/// For each execution of a site, whether it missed the first level, and the second level.
type Bits = Vec<(bool, bool)>;

/// Generates executions of several kinds of site, in run order.
fn runs(seed: u64, count: usize) -> Vec<(usize, bool, bool)> {
    let mut random = Random(seed);
    let mut met = [0u64; 40];
    let mut made = Vec::new();
    while made.len() < count {
        let site = random.below(40) as usize;
        for _ in 0..=random.below(30) {
            met[site] += 1;
            let missed = match site % 5 {
                0 => false,
                1 => met[site].is_multiple_of(16),
                2 => true,
                3 => random.once_in(2),
                _ => random.once_in(50),
            };
            made.push((site, missed, missed && random.once_in(3)));
        }
    }
    made
}

/// Reads everything that the epochs contain.
fn read(epochs: &[Vec<u8>], two: bool, sites: usize) -> Vec<(u64, Misses, Tally)> {
    let mut found = vec![(0, Misses::default(), Tally::default()); sites];
    for bytes in epochs {
        let epoch = Epoch::open(bytes, two).expect("an epoch");
        for site in &epoch.sites {
            let (before, misses, tally) = &mut found[site.site as usize];
            site.misses(*before, misses).expect("a history");
            *before += site.tally.executions;
            tally.executions += site.tally.executions;
            tally.missed += site.tally.missed;
            tally.last += site.tally.last;
            assert_eq!(epoch.get(site.site), Some(site));
        }
    }
    found
}

#[test]
fn what_was_missed_is_read_again() {
    for two in [false, true] {
        let mut recorder = Recorder::new(two);
        let mut bits: Vec<Bits> = Vec::new();
        let mut epochs = Vec::new();
        assert_eq!(recorder.cut(), None);
        for (i, (site, missed, last)) in runs(3, 60_000).into_iter().enumerate() {
            let last = last && two;
            recorder.expect(site + 1);
            recorder.record(site, missed, last);
            bits.resize(bits.len().max(site + 1), Bits::new());
            bits[site].push((missed, last));
            if i % 25_000 == 24_999 {
                epochs.extend(recorder.cut());
            }
        }
        epochs.extend(recorder.cut());
        assert_eq!((epochs.len(), recorder.cut()), (3, None));
        let found = read(&epochs, two, bits.len());
        for (site, (bits, (executions, misses, tally))) in bits.iter().zip(found).enumerate() {
            let numbered = || (1..).zip(bits);
            let first: Vec<u64> = numbered().filter(|(_, b)| b.0).map(|(k, _)| k).collect();
            let last: Vec<u64> = numbered().filter(|(_, b)| b.1).map(|(k, _)| k).collect();
            assert_eq!(executions, bits.len() as u64);
            assert_eq!(misses.first, first, "site {site}");
            assert_eq!(misses.last, last, "site {site}");
            assert_eq!(recorder.tallies()[site], tally);
        }
    }
}

#[test]
fn regular_misses_take_next_to_no_bytes() {
    let mut recorder = Recorder::new(false);
    recorder.expect(2);
    for i in 0..1_000_000 {
        recorder.record(0, i % 16 == 0, false);
        recorder.record(1, false, false);
    }
    let bytes = recorder.cut().expect("executions");
    assert!(bytes.len() < 30, "{} bytes", bytes.len());
}

#[test]
fn an_epoch_ends_with_so_many_misses() {
    let mut recorder = Recorder::new(false);
    recorder.expect(1);
    for i in 0..Recorder::EPOCH {
        assert!(!recorder.is_full(), "after {i}");
        recorder.record(0, true, false);
        recorder.record(0, false, false);
    }
    assert!(recorder.is_full());
    recorder.cut();
    assert!(!recorder.is_full());
}
