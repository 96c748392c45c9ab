//! Checks every law on generated modules.

use std::time::Duration;

use afterimage_placement::{Mode, PlanOptions};
use afterimage_program::Program;
use afterimage_record::{Command, Interrupt, RecordError, RecordOptions};
use afterimage_testkit::modules::{ModuleConfig, SplitMix64, module_from_seed};

use crate::harness::{Recording, quiet, start, try_record, wat};
use crate::random::{self, ENDINGS, Seen, invocations, kind, rare, seeds};

/// Records and checks a run, unless there is nothing to run because data or elements do not fit.
fn run(
    bytes: &[u8],
    command: &Command,
    options: &RecordOptions,
    seen: &mut Seen,
) -> Option<Recording> {
    match try_record(bytes, command, options, &Interrupt::new()) {
        Ok(recording) => {
            recording.check();
            *seen.entry(kind(recording.ending())).or_insert(0) += 1;
            Some(recording)
        }
        Err(RecordError::Instantiate(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Runs modules grown from seeds, with a plan that also counts in the live run.
fn modules(
    seeds: std::ops::Range<u64>,
    config: &ModuleConfig,
    options: &RecordOptions,
    seen: &mut Seen,
) {
    for seed in seeds {
        let bytes = module_from_seed(seed, config);
        let program = Program::parse(&bytes).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let mut random = SplitMix64(seed);
        for command in invocations(&program, 2, &mut random) {
            let live = random.below(4);
            let mode = [Mode::Quick, Mode::Program, Mode::Edges].get(live).copied();
            let options = RecordOptions {
                counts: mode.map(PlanOptions::new),
                paths: mode.is_none(),
                ..options.clone()
            };
            println!(
                "seed {seed}: {:?} {:?}, live {mode:?}",
                command.invoke, command.args
            );
            run(&bytes, &command, &options, seen);
        }
    }
}

#[test]
fn modules_that_trap() {
    let mut seen = Seen::new();
    modules(0..seeds(25), &ModuleConfig::default(), &quiet(), &mut seen);
    assert!(seen["returned"] > 3 && seen["trapped"] > 3, "{seen:?}");
}

#[test]
fn modules_that_trap_for_lack_of_fuel_only() {
    let mut seen = Seen::new();
    let config = ModuleConfig {
        traps: false,
        ..ModuleConfig::default()
    };
    modules(100_000..100_000 + seeds(25), &config, &quiet(), &mut seen);
    assert!(seen["returned"] > 5, "{seen:?}");
}

#[test]
fn modules_that_may_run_for_ever() {
    let mut seen = Seen::new();
    let config = ModuleConfig {
        traps: false,
        fuel: None,
        max_functions: 20,
        ..ModuleConfig::default()
    };
    let options = RecordOptions {
        stack: 64 << 10,
        timeout: Some(Duration::from_millis(1)),
        ..quiet()
    };
    modules(200_000..200_000 + seeds(25), &config, &options, &mut seen);
    assert!(seen.contains_key("interrupted"), "{seen:?}");
}

/// Tests every kind of ending, at random places in programs that run until their fuel is used up.
#[test]
fn programs_that_wander_and_end_in_every_way() {
    let mut seen = Seen::new();
    let mut depths = 0;
    for seed in 0..seeds(5) {
        for (i, (name, code)) in ENDINGS.iter().enumerate() {
            let text = random::program(1000 * i as u64 + seed, code);
            println!("{text}\nseed {seed}, {name}");
            let live = (i + seed as usize) % 4;
            let mode = [Mode::Quick, Mode::Program, Mode::Edges].get(live).copied();
            let endless = name.starts_with("for ever") || *name == "sleep";
            let options = RecordOptions {
                counts: mode.map(PlanOptions::new),
                paths: mode.is_none(),
                stack: 64 << 10,
                timeout: Some(Duration::from_millis(if endless { 3 } else { 300 })),
                check_effects: true,
                ..quiet()
            };
            if let Some(recording) = run(&wat(&text), &start(), &options, &mut seen) {
                depths += recording.recorded.end.frames.len();
            }
        }
    }
    println!("{seen:?}, {depths} frames");
    assert!(
        rare(&seen).is_empty() && depths > 500,
        "{seen:?}, {depths} frames"
    );
}
