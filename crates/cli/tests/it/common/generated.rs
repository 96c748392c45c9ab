//! Recordings of generated programs.

use std::fmt::Write as _;

use afterimage_program::Program;
use afterimage_testkit::modules::{HANDWRITTEN, ModuleConfig, module_from_seed};
use wasmparser::ValType;

use crate::common::Sandbox;

/// Returns the number of seeds to try, which an environment variable can raise for long manual
/// runs.
pub fn seeds(usual: u64) -> u64 {
    let seeds = std::env::var("AFTERIMAGE_TEST_SEEDS");
    seeds.ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Records calls to the first exports of generated programs, builds a lens, and passes each
/// recording, `run.aft`, to `show`.
pub fn each_recording(seeds: u64, exports: usize, lens: &str, mut show: impl FnMut(&Sandbox)) {
    for seed in 0..seeds {
        // This output is shown if a test fails.
        println!("seed {seed}");
        let module = module_from_seed(seed, &ModuleConfig::default());
        each_recording_of(&module, exports, lens, &mut show);
    }
}

/// Passes recordings of some exports of generated and hand-written programs, with all values, to
/// `show`.
pub fn each_with_values(seeds: u64, mut show: impl FnMut(&Sandbox)) {
    each_recording(seeds, 3, "full", &mut show);
    for (_, text) in HANDWRITTEN {
        each_recording_of(&wat::parse_str(text).unwrap(), 3, "full", &mut show);
    }
}

/// Passes recordings of one program to `show`.
pub fn each_recording_of(
    module: &[u8],
    exports: usize,
    lens: &str,
    mut show: impl FnMut(&Sandbox),
) {
    let sandbox = Sandbox::new();
    let program = Program::parse(module).unwrap();
    sandbox.write("a.wasm", module);
    for export in 0..exports {
        let Some(words) = invocation(&program, export) else {
            continue;
        };
        println!("{words}");
        // Any exit code is fine, because the run may trap.
        sandbox.run(&words);
        if sandbox.path("run.aft").exists() {
            sandbox.ok(&format!("build --lens {lens} run.aft"));
            show(&sandbox);
        }
    }
}

/// Returns the words that call an export, if its parameters are all numbers.
fn invocation(program: &Program, export: usize) -> Option<String> {
    let (name, function) = program.exports.get(export)?;
    let params = &program.types[program.function(*function)?.ty].params;
    let mut words = format!("record --force --invoke {name} -o run.aft a.wasm");
    for param in params {
        if matches!(param, ValType::V128 | ValType::Ref(_)) {
            return None;
        }
        write!(words, " {}", 1 + export % 3).unwrap();
    }
    let simple = name.chars().all(|c| c.is_ascii_alphanumeric());
    simple.then_some(words)
}
