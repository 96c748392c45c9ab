//! Whatever a program does and however it ends, the path that is built of it holds: `verify` finds nothing, and exports have
//! every block.

mod common;

use std::fmt::Write as _;

use afterimage_program::Program;
use afterimage_testkit::modules::{ModuleConfig, module_from_seed};
use common::Sandbox;
use serde_json::Value;

/// How many seeds to try; the variable is for long runs by hand.
fn seeds() -> u64 {
    let seeds = std::env::var("AFTERIMAGE_TEST_SEEDS");
    seeds.ok().and_then(|n| n.parse().ok()).unwrap_or(10)
}

/// How to call an export whose parameters are all numbers.
fn invocation(program: &Program, module: &str, export: usize) -> Option<String> {
    let (name, function) = program.exports.get(export)?;
    let params = &program.types[program.function(*function)?.ty].params;
    let mut words = format!("record --force --invoke {name} -o run.aft {module}");
    for param in params {
        if matches!(
            param,
            wasmparser::ValType::V128 | wasmparser::ValType::Ref(_)
        ) {
            return None;
        }
        write!(words, " {}", 1 + export % 3).unwrap();
    }
    name.chars()
        .all(|c| c.is_ascii_alphanumeric())
        .then_some(words)
}

#[test]
fn paths_of_generated_programs_hold() {
    let mut compared = 0;
    for seed in 0..seeds() {
        let sandbox = Sandbox::new();
        let module = module_from_seed(seed, &ModuleConfig::default());
        let program = Program::parse(&module).unwrap();
        sandbox.write("a.wasm", &module);
        for export in 0..4 {
            let Some(words) = invocation(&program, "a.wasm", export) else {
                continue;
            };
            // Whatever the exit code is: the run may trap.
            sandbox.run(&words);
            if !sandbox.path("run.aft").exists() {
                continue;
            }
            sandbox.ok("profile run.aft");
            sandbox.ok("build --lens paths run.aft");
            let verified = sandbox.ok("verify --format json run.aft");
            let verified: Value = serde_json::from_str(&verified.stdout).unwrap();
            let path = &verified["path"];
            assert_eq!(
                verified["findings"],
                Value::Array(vec![]),
                "seed {seed}: {words}"
            );
            assert!(
                path["counts"] == true && path["end"] == true,
                "seed {seed}: {words}"
            );
            let blocks = path["blocks"].as_u64().unwrap();
            if blocks > 0 {
                assert_exports_have(&sandbox, blocks);
                compared += 1;
            }
        }
    }
    assert!(compared > seeds(), "few runs executed anything: {compared}");
}

/// Every export of the recording stands for so many blocks.
fn assert_exports_have(sandbox: &Sandbox, blocks: u64) {
    for limits in ["", " --min 20 --depth 3", " --min 0 --depth 1000000"] {
        let export = |format| {
            sandbox
                .ok(&format!("export run.aft --format {format}{limits}"))
                .stdout
        };
        let lines = export("collapsed");
        let weight = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
        assert_eq!(lines.lines().map(weight).sum::<u64>(), blocks);

        let firefox: Value = serde_json::from_str(&export("firefox")).unwrap();
        let samples = &firefox["threads"][0]["samples"];
        let weights = samples["weight"].as_array().unwrap();
        assert_eq!(
            weights.iter().map(|w| w.as_u64().unwrap()).sum::<u64>(),
            blocks
        );
        let length = samples["length"].as_u64().unwrap() as usize;
        for column in ["stack", "time", "weight"] {
            assert_eq!(samples[column].as_array().unwrap().len(), length);
        }
        for (table, columns) in firefox["shared"].as_object().unwrap() {
            let Some(columns) = columns.as_object() else {
                continue;
            };
            for (column, values) in columns.iter().filter(|(column, _)| *column != "length") {
                let length = values.as_array().unwrap().len();
                assert_eq!(
                    columns["length"].as_u64(),
                    Some(length as u64),
                    "{table}.{column}"
                );
            }
        }

        let perfetto: Value = serde_json::from_str(&export("perfetto")).unwrap();
        let (mut open, mut outermost) = (Vec::new(), 0);
        for event in perfetto["traceEvents"].as_array().unwrap() {
            let at = event["ts"].as_u64();
            match event["ph"].as_str().unwrap() {
                "B" => open.push(at.unwrap()),
                "E" => {
                    let begun = open.pop().unwrap();
                    outermost += if open.is_empty() {
                        at.unwrap() - begun
                    } else {
                        0
                    };
                }
                "X" if open.is_empty() => outermost += event["args"]["blocks"].as_u64().unwrap(),
                _ => {}
            }
        }
        assert!(open.is_empty());
        assert_eq!(outermost, blocks, "{limits}");
    }
}
