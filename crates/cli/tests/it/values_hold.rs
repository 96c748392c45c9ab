//! Tests `verify` on values. Built values are correct, for programs that end in every way, and each
//! possible fault is found.

use afterimage_program::Program;
use afterimage_replay::values::recorded_epochs;
use afterimage_replay::whole_path::{RecordedPath, recorded_path};
use afterimage_trace::{TraceFile, TraceWriter};
use afterimage_wet::{EpochWriter, Index};
use serde_json::Value;

use crate::common::Sandbox;
use crate::common::generated::{each_recording, seeds};

/// A program with memory that a loop reads and writes, with kept, labelled and copied values.
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

/// Replaces the values in the file.
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
    // Rewriting the same values at the same places is accepted.
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

/// A build that is interrupted anywhere leaves the recording unchanged, and can be repeated.
#[test]
fn an_interrupted_build_is_done_again() {
    let sandbox = Sandbox::new();
    sandbox.wasm("a.wasm", PROGRAM);
    sandbox.ok("record --lens paths -o run.aft a.wasm");
    let at = sandbox.path("run.aft");
    let before = std::fs::read(&at).unwrap();
    sandbox.ok("build --lens full run.aft");
    let whole = std::fs::read(&at).unwrap();
    let asked = "deps run.aft --at @0x43#200 --depth 3";
    let expected = sandbox.ok(asked);
    assert!(whole.len() > before.len() && whole.starts_with(&before[..64]));
    for part in 1..16 {
        let end = before.len() + (whole.len() - before.len()) * part / 16;
        std::fs::write(&at, &whole[..end]).unwrap();
        let info = sandbox.ok("info run.aft").stdout;
        assert!(!info.contains("paths, full"), "{info}");
        assert!(info.contains("are ignored"), "{info}");
        let built = sandbox.run("build --lens full run.aft");
        // A cut index hides the sections that it listed, until the file is repaired.
        if built.stderr.contains("verify --repair") {
            sandbox.ok("verify --repair run.aft -o copy.aft");
            std::fs::rename(sandbox.path("copy.aft"), &at).unwrap();
            sandbox.ok("build --lens full run.aft");
        }
        assert_eq!(sandbox.ok(asked).stdout, expected.stdout);
        sandbox.ok("verify run.aft");
    }
}

/// A process that is killed while it builds also leaves the recording usable.
#[test]
fn a_killed_build_is_done_again() {
    let sandbox = Sandbox::new();
    let long = PROGRAM.replace("(i32.const 300)", "(i32.const 4000000)");
    let long = long.replace("(i32.shl (local.get $i) (i32.const 2))", "(i32.const 64)");
    let long = long.replace("(i32.shl (local.get $i) (i32.const 3))", "(i32.const 64)");
    sandbox.wasm("a.wasm", &long);
    sandbox.ok("record --lens paths -o run.aft a.wasm");
    for wait in [1, 20, 100] {
        let mut child = sandbox
            .command(["build", "--lens", "full", "run.aft"])
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
        let info = sandbox.ok("info run.aft").stdout;
        assert!(info.contains("lenses    paths"), "{info}");
    }
    sandbox.ok("build --lens full --window 1..1000 run.aft");
    let values = sandbox.ok("values run.aft --at @0x43 --instances 1..3");
    assert!(values.stdout.contains("#3"), "{values:?}");
}

#[test]
fn values_of_generated_programs_hold() {
    let mut compared = 0;
    each_recording(seeds(12), 3, "full", |sandbox| {
        let verified = sandbox.ok("verify --format json run.aft").stdout;
        let verified: Value = serde_json::from_str(&verified).unwrap();
        assert_eq!(verified["sound"], true, "{verified}");
        compared += verified["values"][0]["statements"].as_u64().unwrap();
    });
    assert!(compared > 0);
}
