//! Generated guests: whatever they do, all follow.

use std::collections::BTreeMap;
use std::time::Duration;

use afterimage_program::Program;
use afterimage_record::{Command, HostFunction, Interrupt, RecordError, RecordOptions};
use afterimage_testkit::modules::{ModuleConfig, SplitMix64, module_from_seed};
use afterimage_trace::{Ending, RawValue};
use wasmparser::ValType;

use super::agree;
use super::exported::export_all;
use crate::harness::{invoke, quiet, start, try_record, wat};
use crate::random::{self, ENDINGS};

/// How many seeds to try; the variable is for long runs by hand.
fn seeds(usually: u64) -> u64 {
    std::env::var("AFTERIMAGE_TEST_SEEDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(usually)
}

/// How often each kind of ending was seen.
type Seen = BTreeMap<&'static str, u32>;

fn kind(ending: &Ending) -> &'static str {
    match ending {
        Ending::Returned => "returned",
        Ending::Exited { .. } => "exited",
        Ending::Trapped { .. } => "trapped",
        Ending::Exception { .. } => "exception",
        Ending::StackOverflow => "overflow",
        Ending::Interrupted { .. } => "interrupted",
        Ending::HostError { .. } => "host error",
    }
}

/// Records and follows a run, unless there is nothing to run: data or elements that do not fit.
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

/// A literal of a type, as for `--invoke`; `None` for vectors and references.
fn literal(ty: ValType, random: &mut SplitMix64) -> Option<String> {
    let integers = ["0", "1", "-1", "2", "7", "100", "-2147483648", "65536"];
    let floats = ["0", "-1.5", "nan", "inf", "1e30"];
    Some(match ty {
        ValType::I32 | ValType::I64 => integers[random.below(integers.len())].to_owned(),
        ValType::F32 | ValType::F64 => floats[random.below(floats.len())].to_owned(),
        _ => return None,
    })
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
        let mut commands = Vec::new();
        for (name, function) in &program.exports {
            let Some(function) = program.function(*function) else {
                continue;
            };
            let params = program.types[function.ty].params.iter();
            let args: Option<Vec<String>> = params.map(|ty| literal(*ty, &mut random)).collect();
            if let Some(args) = args {
                commands.push((name.clone(), args));
            }
        }
        while commands.len() > 3 {
            commands.swap_remove(random.below(commands.len()));
        }
        for (name, args) in commands {
            println!("seed {seed}: {name} {args:?}");
            let args = Vec::from_iter(args.iter().map(String::as_str));
            run(&bytes, &invoke(&name, &args), options, seen);
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

/// What [`afterimage_testkit::modules::IMPORTS`] lists.
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

/// Every way to end, from wherever some program stands when its fuel is used up.
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
    let few: Vec<_> = ["exited", "trapped", "exception", "overflow", "interrupted"]
        .into_iter()
        .filter(|kind| seen.get(kind).is_none_or(|times| *times < 3))
        .collect();
    assert!(few.is_empty(), "{seen:?}");
}
