//! Generated modules: whatever they do, every law holds.

use std::collections::BTreeMap;
use std::time::Duration;

use afterimage_placement::{Mode, PlanOptions};
use afterimage_program::Program;
use afterimage_record::{Command, Interrupt, RecordError, RecordOptions};
use afterimage_testkit::modules::{ModuleConfig, SplitMix64, module_from_seed};
use afterimage_trace::Ending;
use wasmparser::ValType;

use crate::harness::{Recording, quiet, start, try_record, wat};
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

/// Records a run, and checks it, unless there is nothing to run: data or elements that do not fit.
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

/// A literal of a type, as for `--invoke`; `None` for vectors and references.
fn literal(ty: ValType, random: &mut SplitMix64) -> Option<String> {
    let small = [0, 1, -1, 2, 7, 100, i64::from(i32::MIN), 65536];
    let integer = small[random.below(small.len())];
    Some(match ty {
        ValType::I32 | ValType::I64 => integer.to_string(),
        ValType::F32 | ValType::F64 => {
            ["0", "-1.5", "nan", "inf", "1e30"][random.below(5)].to_owned()
        }
        _ => return None,
    })
}

/// Up to `most` calls of exported functions.
fn invocations(program: &Program, most: usize, random: &mut SplitMix64) -> Vec<Command> {
    let mut commands = Vec::new();
    for (name, function) in &program.exports {
        let Some(function) = program.function(*function) else {
            continue;
        };
        let params = program.types[function.ty].params.iter();
        let args: Option<Vec<String>> = params.map(|ty| literal(*ty, random)).collect();
        if let Some(args) = args {
            let (name, invoke) = ("guest".to_owned(), Some(name.clone()));
            commands.push(Command {
                name,
                args,
                invoke,
                ..Command::default()
            });
        }
    }
    while commands.len() > most {
        commands.swap_remove(random.below(commands.len()));
    }
    commands
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

/// Every way to end, from wherever some program stands when its fuel is used up.
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
    let few: Vec<_> = ["exited", "trapped", "exception", "overflow", "interrupted"]
        .into_iter()
        .filter(|kind| seen.get(kind).is_none_or(|times| *times < 3))
        .collect();
    assert!(few.is_empty() && depths > 500, "{seen:?}, {depths} frames");
}
