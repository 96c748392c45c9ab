//! `verify` on values: those that were built hold, for programs that end in every way; each thing that can be wrong with them is found.

mod common;

use afterimage_program::Program;
use afterimage_query::paths::{RecordedPath, recorded_path};
use afterimage_query::values::recorded_epochs;
use afterimage_testkit::modules::{ModuleConfig, module_from_seed};
use afterimage_trace::{TraceFile, TraceWriter};
use afterimage_wet::{EpochWriter, Index};
use common::Sandbox;
use serde_json::Value;

/// Memory that is written and read in a loop, with what is kept, labelled and copied.
const PROGRAM: &str = r#"(module
  (memory (export "memory") 1)
  (func (export "_start") (local $i i32)
    (loop $again
      (i32.store (i32.shl (local.get $i) (i32.const 2))
        (i32.mul (i32.add (local.get $i) (i32.const 1)) (i32.load (i32.shl (local.get $i) (i32.const 3)))))
      (memory.copy (i32.const 4096) (i32.shl (local.get $i) (i32.const 2)) (i32.const 8))
      (br_if $again (i32.lt_u
        (local.tee $i (i32.add (local.get $i) (i32.const 1)))
        (i32.add (i32.const 300) (i32.load8_u (i32.const 4097))))))))"#;

fn built() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.wasm("a.wasm", PROGRAM);
    sandbox.ok("record --lens full -o run.aft a.wasm");
    sandbox
}

/// Puts other values into the file.
fn replace(sandbox: &Sandbox, change: impl FnOnce(&mut Vec<(u64, Vec<u8>)>, &mut Index)) {
    let at = sandbox.path("run.aft");
    let file = TraceFile::open(&at).unwrap();
    let program = Program::parse(&file.module().unwrap()).unwrap();
    let path: RecordedPath = recorded_path(&file, &program).unwrap().unwrap();
    let stored = recorded_epochs(&file, &path).unwrap().unwrap();
    let mut index = stored.windows().next().unwrap().clone();
    let befores = index.epochs.iter().enumerate();
    let mut epochs: Vec<_> = befores
        .map(|(i, (before, _))| (*before, stored.bytes(0, i).unwrap()))
        .collect();
    change(&mut epochs, &mut index);
    let out = TraceWriter::append(&at).unwrap();
    let mut writer = EpochWriter::new(&out).unwrap();
    for (before, bytes) in &epochs {
        writer.put(*before, bytes).unwrap();
    }
    writer.finish(&out, &index).unwrap();
    out.commit().unwrap();
}

#[test]
fn what_was_built_holds() {
    let sandbox = built();
    let text = sandbox.ok("verify run.aft").stdout;
    assert!(
        text.contains("the same when the run is followed again"),
        "{text}"
    );
    // Other bytes in the same places are not refused for being other bytes.
    replace(&sandbox, |_, _| {});
    sandbox.ok("verify run.aft");
}

#[test]
fn what_is_wrong_is_found() {
    type Change = fn(&mut Vec<(u64, Vec<u8>)>, &mut Index);
    let changes: [(&str, Change); 5] = [
        ("ValuesEpoch", |epochs, _| {
            let last = epochs[0].1.last_mut().unwrap();
            *last ^= 1;
        }),
        ("ValuesEpoch", |epochs, _| epochs[0].1.push(0)),
        ("ValuesIndex", |_, index| index.statements += 1),
        ("ValuesIndex", |_, index| index.sizes.values.0 += 1),
        ("ValuesIndex", |_, index| index.nodes ^= 1),
    ];
    for (rule, change) in changes {
        let sandbox = built();
        replace(&sandbox, change);
        let ran = sandbox.run("verify run.aft");
        assert_eq!(ran.code, Some(1), "{rule}: {ran:?}");
        assert!(ran.stdout.contains(rule), "{rule}: {}", ran.stdout);
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    }
}

#[test]
fn values_of_generated_programs_hold() {
    let seeds = std::env::var("AFTERIMAGE_TEST_SEEDS");
    let seeds = seeds.ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let mut compared = 0;
    for seed in 0..seeds {
        let sandbox = Sandbox::new();
        let module = module_from_seed(seed, &ModuleConfig::default());
        let program = Program::parse(&module).unwrap();
        sandbox.write("a.wasm", &module);
        for (name, function) in program.exports.iter().take(3) {
            let Some(defined) = program.function(*function) else {
                continue;
            };
            let numbers = |ty: &wasmparser::ValType| {
                !matches!(ty, wasmparser::ValType::V128 | wasmparser::ValType::Ref(_))
            };
            let params = &program.types[defined.ty].params;
            if !params.iter().all(numbers) || !name.chars().all(|c| c.is_ascii_alphanumeric()) {
                continue;
            }
            let arguments = " 2".repeat(params.len());
            sandbox.run(&format!(
                "record --force --invoke {name} -o run.aft a.wasm{arguments}"
            ));
            if !sandbox.path("run.aft").exists() {
                continue;
            }
            sandbox.ok("build --lens full run.aft");
            let verified = sandbox.ok("verify --format json run.aft").stdout;
            let verified: Value = serde_json::from_str(&verified).unwrap();
            assert_eq!(verified["sound"], true, "{seed} {name}: {verified}");
            compared += verified["values"][0]["statements"].as_u64().unwrap();
        }
    }
    assert!(compared > 0);
}
