//! Tests damaged histories and texts.

use std::time::{Duration, Instant};

use afterimage_simulate::{Recorder, Site, SiteKind, Spec, Summary, Tally, Traffic};

use crate::random::Random;

#[path = "../../../../fuzz/bodies/simulation.rs"]
mod body;

fn sound(random: &mut Random, two: bool) -> Vec<u8> {
    let mut recorder = Recorder::new(two);
    let sites = 1 + random.below(20) as usize;
    recorder.expect(sites);
    for _ in 0..random.below(3000) {
        let site = random.below(sites as u64) as usize;
        let missed = random.once_in(1 + site as u64);
        recorder.record(site, missed, missed && random.once_in(2));
    }
    recorder.cut().unwrap_or_default()
}

/// Returns the summary of a random simulation.
fn summary(random: &mut Random) -> Summary {
    let (text, kinds) = match random.below(3) {
        0 => (
            "--branch-predictor tage",
            [SiteKind::Conditional, SiteKind::Table],
        ),
        1 => ("--cache 1k,2,64", [SiteKind::Load, SiteKind::Bulk]),
        _ => (
            "--cache 1k,2,64 --cache2 4k,2,64",
            [SiteKind::Store, SiteKind::Load],
        ),
    };
    let spec: Spec = text.parse().expect(text);
    let sites = (0..random.below(30)).map(|i| {
        let missed = random.below(1000);
        let site = Site {
            function: random.below(1 << 20) as u32,
            op: i as u32,
            kind: kinds[random.below(2) as usize],
        };
        let tally = Tally {
            executions: missed + random.below(1 << 31),
            missed,
            last: if spec.is_two() { missed / 2 } else { 0 },
        };
        (site, tally)
    });
    Summary {
        sites: sites.collect(),
        spec,
        blocks: random.bits(),
        instructions: random.bits() >> 20,
        traffic: Traffic {
            touched: random.below(1 << 31),
            first: 7,
            ..Traffic::default()
        },
    }
}

#[test]
fn a_summary_is_read_again() {
    let mut random = Random(23);
    for _ in 0..200 {
        let summary = summary(&mut random);
        assert_eq!(Summary::decode(&summary.encode()), Ok(summary));
    }
}

/// Truncates, inserts and changes bytes.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        match random.below(5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.bits() as u8),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
    }
}

#[test]
fn mutations_of_sound_histories_do_no_harm() {
    let mut random = Random(21);
    let start = Instant::now();
    for round in 0.. {
        let two = random.once_in(2);
        let sound = sound(&mut random, two);
        for _ in 0..20 {
            let mut bytes = sound.clone();
            damage(&mut bytes, &mut random);
            body::read_history(&bytes, two);
        }
        let sound = summary(&mut random).encode();
        for _ in 0..20 {
            let mut bytes = sound.clone();
            damage(&mut bytes, &mut random);
            body::read_summary(&bytes);
        }
        if start.elapsed() > Duration::from_secs(1) {
            assert!(round > 20, "{round} rounds only");
            return;
        }
    }
}

#[test]
fn arbitrary_texts_do_no_harm() {
    let mut random = Random(22);
    let words = [
        "--branch-predictor ",
        "--cache ",
        " --cache2 ",
        "gshare",
        "tage",
        "bimodal",
        ":",
        ",",
        "=",
        "bits",
        "history",
        "tables",
        "max",
        "min",
        "32k",
        "8",
        "64",
        "full",
        "0",
        "1g",
        "é",
        "18446744073709551615",
        "640",
    ];
    for _ in 0..50_000 {
        let count = random.below(12);
        let text: String = (0..count)
            .map(|_| words[random.below(words.len() as u64) as usize])
            .collect();
        body::read_spec(&text);
    }
}
