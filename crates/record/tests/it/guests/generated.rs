//! Checks that the machine can follow all generated guests.

use std::time::Duration;

use afterimage_program::Program;
use afterimage_record::{Command, HostFunction, Interrupt, RecordError, RecordOptions};
use afterimage_testkit::modules::{ModuleConfig, SplitMix64, module_from_seed};
use afterimage_trace::RawValue;

use super::agree;
use super::exported::export_all;
use crate::harness::{quiet, start, try_record, wat};
use crate::random::{self, ENDINGS, Seen, invocations, kind, rare, seeds};

/// Records and follows a run, unless there is nothing to run because data or elements do not fit.
fn run(bytes: &[u8], command: &Command, options: &RecordOptions, seen: &mut Seen) {
    match try_record(bytes, command, options, &Interrupt::new()) {
        Ok(recording) => {
            agree(&recording);
            *seen.entry(kind(recording.ending())).or_insert(0) += 1;
        }
        Err(RecordError::Instantiate(_)) => {}
        Err(error) => panic!("{error}"),
    }
}

/// Calls some exported functions of modules grown from seeds.
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
        for command in invocations(&program, 3, &mut random) {
            println!("seed {seed}: {:?} {:?}", command.invoke, command.args);
            run(&bytes, &command, options, seen);
        }
    }
}

#[test]
fn modules_that_trap() {
    let mut seen = Seen::new();
    modules(0..seeds(40), &ModuleConfig::default(), &quiet(), &mut seen);
    assert!(seen["returned"] > 10 && seen["trapped"] > 10, "{seen:?}");
}

#[test]
fn modules_that_trap_for_lack_of_fuel_only() {
    let mut seen = Seen::new();
    let config = ModuleConfig {
        traps: false,
        max_instructions: 600,
        entropy: 16384,
        ..ModuleConfig::default()
    };
    modules(500_000..500_000 + seeds(40), &config, &quiet(), &mut seen);
    assert!(seen["returned"] > 15, "{seen:?}");
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
    modules(600_000..600_000 + seeds(15), &config, &options, &mut seen);
    assert!(seen.contains_key("interrupted"), "{seen:?}");
}

/// Returns the functions listed in [`afterimage_testkit::modules::IMPORTS`].
fn host() -> Vec<HostFunction> {
    let mut given = 0;
    vec![
        HostFunction::new("env", "nothing", |_, _| Ok(Vec::new())),
        HostFunction::new("env", "take", |_, _| Ok(Vec::new())),
        HostFunction::new("env", "give", move |_, _| {
            given += 1;
            Ok(vec![RawValue::I32(given)])
        }),
        HostFunction::new("env", "twist", |_, args| {
            let [RawValue::I64(a), RawValue::I32(b)] = *args else {
                return Err("other arguments".to_owned());
            };
            Ok(vec![RawValue::I32(a as i32), RawValue::I64(!i64::from(b))])
        }),
    ]
}

#[test]
fn modules_that_call_the_host() {
    let mut seen = Seen::new();
    let config = ModuleConfig {
        traps: false,
        imports: true,
        max_instructions: 400,
        ..ModuleConfig::default()
    };
    let options = RecordOptions {
        functions: host(),
        ..quiet()
    };
    modules(900_000..900_000 + seeds(40), &config, &options, &mut seen);
    assert!(seen["returned"] > 15, "{seen:?}");
}

/// Tests every kind of ending, at random places in programs that run until their fuel is used up.
#[test]
fn programs_that_wander_and_end_in_every_way() {
    let mut seen = Seen::new();
    for seed in 0..seeds(4) {
        for (i, (name, code)) in ENDINGS.iter().enumerate() {
            let text = random::program(1000 * i as u64 + seed, code);
            println!("{text}\nseed {seed}, {name}");
            let endless = name.starts_with("for ever") || *name == "sleep";
            let options = RecordOptions {
                stack: 64 << 10,
                timeout: Some(Duration::from_millis(if endless { 3 } else { 300 })),
                ..quiet()
            };
            run(&export_all(&wat(&text)), &start(), &options, &mut seen);
        }
    }
    assert!(rare(&seen).is_empty(), "{seen:?}");
}
