//! Tests instrumented modules in another engine: their counters must agree with `profile` on a
//! recording.

use std::fs;

use afterimage_testkit::tools;

use crate::common::{Ran, Sandbox, ran};

/// Runs a module in Node with small stand-ins for WASI, and saves its counters: at the end, or
/// inside the N-th call to `fd_write`.
const HARNESS: &str = r#"
const fs = require("fs");
const [code, dump, at] = process.argv.slice(2);
class Exit extends Error {}
let instance, writes = 0;
const save = () => fs.writeFileSync(dump, new Uint8Array(instance.exports["afterimage.counters"].buffer));
const wasi_snapshot_preview1 = {
  fd_write() { if (++writes == at) save(); return 0; },
  proc_exit() { throw new Exit(); },
};
instance = new WebAssembly.Instance(new WebAssembly.Module(fs.readFileSync(code)), { wasi_snapshot_preview1 });
try { instance.exports._start(); } catch (e) {
  if (!(e instanceof Exit || e instanceof WebAssembly.RuntimeError)) throw e;
}
if (at == 0) save();
"#;

const IMPORTS: &str = r#"
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (func $write (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 8))))
  (func $fib (param $n i32) (result i32)
    (if (i32.lt_u (local.get $n) (i32.const 2)) (then (return (local.get $n))))
    (i32.add (call $fib (i32.sub (local.get $n) (i32.const 1))) (call $fib (i32.sub (local.get $n) (i32.const 2)))))
  (func $work (param $n i32)
    (loop $again
      (if (i32.and (local.get $n) (i32.const 1)) (then (call $write)))
      (drop (call $fib (local.get $n)))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))"#;

/// A program with three open activations in the middle of its run, one of them in a loop.
const DEEP: &str = r#"
  (func $deep (param $n i32)
    (if (local.get $n)
      (then (call $deep (i32.sub (local.get $n) (i32.const 1))) (call $write))
      (else ENDING))
    (call $write))
  (func (export "_start") (call $work (i32.const 7)) (call $deep (i32.const 2)) (call $write))"#;

/// Returns engines other than the recorder: its bare engine, and Node if it is installed and
/// supports several memories.
fn engines() -> Vec<Engine> {
    // A module with two memories.
    const PROBE: &str =
        "new WebAssembly.Module(new Uint8Array([0,97,115,109,1,0,0,0,5,5,2,0,0,0,0]))";
    match tools::command("node").args(["-e", PROBE]).output() {
        Ok(out) if out.status.success() => return vec![Engine::Bare, Engine::Node],
        Ok(_) => tools::skipped(
            "this node is too old: it allows one memory only (22 and later allow more)",
        ),
        Err(_) => tools::skipped("node is not installed"),
    }
    vec![Engine::Bare]
}

#[derive(Clone, Copy, Debug)]
enum Engine {
    Bare,
    Node,
}

impl Engine {
    /// Runs `app.wasm`, and saves its counters as `app.dump` at the end, or inside the `at`-th call
    /// to `fd_write`.
    fn run(self, sandbox: &Sandbox, at: u32) {
        match self {
            Engine::Bare => bare(sandbox, at),
            Engine::Node => {
                let node = ran(sandbox.any("node").args([
                    "run.cjs",
                    "app.wasm",
                    "app.dump",
                    &at.to_string(),
                ]));
                assert_eq!(node.code, Some(0), "{node:?}");
            }
        }
    }
}

/// Does the same as [`HARNESS`], in the bare engine.
fn bare(sandbox: &Sandbox, at: u32) {
    let engine = wasmtime::Engine::default();
    let module = wasmtime::Module::from_file(&engine, sandbox.path("app.wasm")).unwrap();
    let mut store = wasmtime::Store::new(&engine, 0);
    let mut linker = wasmtime::Linker::new(&engine);
    let path = sandbox.path("app.dump");
    let write =
        move |mut caller: wasmtime::Caller<'_, u32>, _: i32, _: i32, _: i32, _: i32| -> i32 {
            *caller.data_mut() += 1;
            if *caller.data() == at {
                let memory = caller
                    .get_export("afterimage.counters")
                    .and_then(|e| e.into_memory())
                    .unwrap();
                fs::write(&path, memory.data(&caller)).unwrap();
            }
            0
        };
    linker
        .func_wrap("wasi_snapshot_preview1", "fd_write", write)
        .unwrap();
    let exit = |_: i32| -> wasmtime::Result<()> { Err(wasmtime::Error::msg("exit")) };
    linker
        .func_wrap("wasi_snapshot_preview1", "proc_exit", exit)
        .unwrap();
    let instance = linker.instantiate(&mut store, &module).unwrap();
    // A trap or an exit is a normal end of the run.
    let _ = instance
        .get_typed_func::<(), ()>(&mut store, "_start")
        .unwrap()
        .call(&mut store, ());
    if at == 0 {
        let memory = instance
            .get_memory(&mut store, "afterimage.counters")
            .unwrap();
        fs::write(sandbox.path("app.dump"), memory.data(&store)).unwrap();
    }
}

fn program(sandbox: &Sandbox, ending: &str) {
    sandbox.write(
        "app.wat",
        format!("(module {IMPORTS} {})", DEEP.replace("ENDING", ending)),
    );
    sandbox.write("run.cjs", HARNESS);
}

/// Returns the report from counters that an engine leaves behind.
fn counted(sandbox: &Sandbox, engine: Engine, options: &str, at: u32, report: &str) -> Ran {
    sandbox.ok(&format!("instrument app.wat -o app.wasm {options}"));
    engine.run(sandbox, at);
    sandbox.run(&format!("profile --counters app.dump app.wat {report}"))
}

/// Returns the report from a recording.
fn recorded(sandbox: &Sandbox, report: &str) -> String {
    sandbox.run("record --force app.wat");
    sandbox.ok(&format!("profile app.aft {report}")).stdout
}

const MODES: [&str; 4] = [
    "--mode quick",
    "--mode program",
    "--mode slow",
    "--standalone",
];
const NOT_STANDALONE: [&str; 3] = ["--mode quick", "--mode program", "--mode slow"];
const EDGES: &str = "--by edge --format csv";

#[test]
fn after_a_normal_return_the_counters_say_what_a_recording_says() {
    let sandbox = Sandbox::new();
    program(&sandbox, "");
    let wanted = recorded(&sandbox, EDGES);
    for engine in engines() {
        for mode in MODES {
            let read = counted(&sandbox, engine, mode, 0, EDGES);
            assert_eq!(
                (read.code, read.stderr.as_str()),
                (Some(0), ""),
                "{engine:?} {mode}"
            );
            assert_eq!(read.stdout, wanted, "{engine:?} {mode}");
        }
    }
}

#[test]
fn after_an_exit_counters_are_exact_with_standalone_and_say_so_without() {
    let sandbox = Sandbox::new();
    program(&sandbox, "(call $proc_exit (i32.const 3))");
    let wanted = recorded(&sandbox, EDGES);
    for engine in engines() {
        let read = counted(&sandbox, engine, "--standalone", 0, EDGES);
        assert_eq!(
            (read.code, read.stderr.as_str()),
            (Some(0), ""),
            "{engine:?}"
        );
        assert_eq!(read.stdout, wanted, "{engine:?}");
        for mode in NOT_STANDALONE {
            says_that_it_is_not_exact(&sandbox, engine, mode, 0);
        }
    }
}

#[test]
fn inside_a_host_call_counters_are_exact_with_standalone_and_say_so_without() {
    // The fifth call to fd_write is the first one in $deep.
    let sandbox = Sandbox::new();
    program(&sandbox, "(call $write)");
    let mut exact = Vec::new();
    for engine in engines() {
        let read = counted(
            &sandbox,
            engine,
            "--standalone",
            5,
            "--by block --format csv",
        );
        assert_eq!(
            (read.code, read.stderr.as_str()),
            (Some(0), ""),
            "{engine:?}"
        );
        exact.push(read.stdout);
        for mode in NOT_STANDALONE {
            says_that_it_is_not_exact(&sandbox, engine, mode, 5);
        }
    }
    assert!(exact.iter().all(|csv| *csv == exact[0]));
    let count = |function: &str| -> Vec<u64> {
        let rows = exact[0]
            .lines()
            .map(|row| row.split(',').collect::<Vec<_>>());
        rows.filter(|row| row[1] == function)
            .map(|row| row[6].parse().unwrap())
            .collect()
    };
    // Before the dump, $work writes four times, for 7, 5, 3 and 1. Then $deep is called for 2, 1
    // and 0, and none of these calls has returned.
    let once: Vec<u64> = count("write");
    assert_eq!(
        once,
        [5, 4],
        "the fifth write has not returned: {}",
        exact[0]
    );
    assert_eq!(count("deep").iter().max(), Some(&3), "{}", exact[0]);
}

#[test]
fn after_a_trap_counters_say_that_they_are_not_exact() {
    let sandbox = Sandbox::new();
    program(&sandbox, "(unreachable)");
    for engine in engines() {
        for mode in MODES {
            says_that_it_is_not_exact(&sandbox, engine, mode, 0);
        }
    }
}

/// Checks that every question either says that the counts are not exact, or is refused.
fn says_that_it_is_not_exact(sandbox: &Sandbox, engine: Engine, options: &str, at: u32) {
    let text = counted(sandbox, engine, options, at, "");
    assert!(text.stderr.contains("not exact"), "{options}: {text:?}");
    if text.code != Some(0) {
        text.is_refusal(options, 125, &["app.dump", "not exact"]);
        return;
    }
    assert!(text.stdout.contains("not exact"), "{options}: {text:?}");
    let json = sandbox.ok("profile --counters app.dump app.wat --format json");
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert!(
        json["note"].as_str().unwrap().contains("not exact"),
        "{options}: {json}"
    );
    for format in ["csv", "callgrind", "pprof", "dot"] {
        sandbox.refused(
            &format!("profile --counters app.dump app.wat --format {format}"),
            125,
            &["not exact", "json"],
        );
    }
}

#[test]
fn a_rust_program_counts_the_same_in_another_engine() {
    if engines().len() == 1 {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.rust(
        "app",
        r#"fn main() {
            let mut words: Vec<String> = (0..50).map(|i| format!("{}", i * 7919 % 101)).collect();
            words.sort();
            println!("{}", words.join(" "));
        }"#,
    );
    sandbox.write(
        "run.cjs",
        r#"
const fs = require("fs");
const { WASI } = require("node:wasi");
const wasi = new WASI({ version: "preview1", args: ["app.wasm"], env: {} });
const code = new WebAssembly.Module(fs.readFileSync(process.argv[2]));
// Closures, because node 22 cannot call its own functions from a module with two memories.
const wasi_snapshot_preview1 = {};
for (const [name, f] of Object.entries(wasi.wasiImport)) wasi_snapshot_preview1[name] = (...args) => f(...args);
const instance = new WebAssembly.Instance(code, { wasi_snapshot_preview1 });
wasi.start(instance);
fs.writeFileSync("app.dump", new Uint8Array(instance.exports["afterimage.counters"].buffer));
"#,
    );
    let plain = sandbox.ok("record app.wasm");
    let wanted = sandbox.ok(&format!("profile app.aft {EDGES}")).stdout;
    for mode in MODES {
        sandbox.ok(&format!("instrument app.wasm -o counting.wasm {mode}"));
        let node = ran(sandbox
            .any("node")
            .args(["--no-warnings", "run.cjs", "counting.wasm"]));
        assert_eq!(
            (node.code, node.stdout),
            (Some(0), plain.stdout.clone()),
            "{}",
            node.stderr
        );
        let read = sandbox.ok(&format!("profile --counters app.dump app.wasm {EDGES}"));
        assert!(read.stdout == wanted, "{mode}: {}", read.stderr);
    }
}

#[test]
fn what_is_instrumented_is_valid() {
    let sandbox = Sandbox::new();
    // The references in this code are valid only because of declarations that a rewriter may remove
    // or move.
    let more = [
        (
            "ref-func",
            r#"(module (func $f (export "f")) (func (export "g") (result i32) (ref.is_null (ref.func $f))))"#,
        ),
        (
            "ref-func-import",
            r#"(module (import "a" "b" (func $f)) (export "f" (func $f)) (export "again" (func $f)) (elem declare func)
              (func $g (export "g") (export "h") (drop (ref.func $f)) (drop (ref.func $g))))"#,
        ),
        (
            "ref-func-elements",
            r#"(module (table 1 funcref) (elem (i32.const 0) $f) (elem func $f) (func $f)
              (func $g (export "g") (drop (ref.func $g)) (table.init 0 1 (i32.const 0) (i32.const 0) (i32.const 0))))"#,
        ),
        (
            "data-count",
            r#"(module (memory 1) (data "abc") (func $g (export "g")
              (memory.init 0 (i32.const 0) (i32.const 0) (i32.const 3)) (data.drop 0) (drop (ref.func $g))))"#,
        ),
        ("empty", "(module)"),
        (
            "start",
            r#"(module (global (export "v") (mut i32) (i32.const 0)) (table (export "t") 1 funcref)
              (func $s (export "s") (drop (ref.func $s))) (start $s))"#,
        ),
        (
            "atomics",
            r#"(module (memory 1) (func (export "g") (result i32)
              (atomic.fence) (memory.atomic.notify (i32.const 0) (i32.const 1))))"#,
        ),
    ];
    let handwritten = afterimage_testkit::modules::HANDWRITTEN;
    for (name, text) in more.iter().chain(handwritten) {
        sandbox.wasm("original.wasm", text);
        for mode in MODES {
            println!("{name} {mode}");
            sandbox.ok(&format!("instrument original.wasm -o counting.wasm {mode}"));
            crate::common::valid(&sandbox, "counting.wasm", "original.wasm");
        }
    }
}

#[test]
fn dumps_that_are_none() {
    let sandbox = Sandbox::new();
    program(&sandbox, "");
    sandbox.write("other.wat", "(module (func (export \"_start\")))");
    sandbox.ok("instrument app.wat -o app.wasm");
    let memory = |module: &str| {
        // The module contains the initial counters as the first bytes of the memory.
        let bytes = sandbox.read(module);
        let at = bytes
            .windows(8)
            .position(|window| window == b"aftcount")
            .unwrap();
        let mut memory = bytes[at..at + 128].to_vec();
        memory.resize(1 << 16, 0);
        memory
    };
    let dump = memory("app.wasm");
    sandbox.write("app.dump", &dump);
    sandbox.write("empty.dump", "");
    sandbox.write("cut.dump", &dump[..200]);
    sandbox.write("random.dump", [0x9c; 4096]);
    let mut wrong = dump.clone();
    wrong[128..136].copy_from_slice(&u64::MAX.to_le_bytes());
    sandbox.write("wrong.dump", &wrong);
    fs::create_dir(sandbox.path("folder")).unwrap();
    sandbox.refused(
        "profile --counters nowhere app.wat",
        127,
        &["nowhere", "No such file"],
    );
    sandbox.refused("profile --counters folder app.wat", 125, &["folder"]);
    sandbox.refused(
        "profile --counters empty.dump app.wat",
        125,
        &["empty.dump", "not a dump"],
    );
    sandbox.refused(
        "profile --counters random.dump app.wat",
        125,
        &["random.dump", "not a dump"],
    );
    sandbox.refused(
        "profile --counters cut.dump app.wat",
        125,
        &["cut.dump", "cut off"],
    );
    sandbox.refused(
        "profile --counters app.dump other.wat",
        125,
        &["app.dump", "not counters of other.wat"],
    );
    sandbox.refused(
        "profile --counters wrong.dump app.wat",
        125,
        &["wrong.dump"],
    );
    sandbox.refused(
        "profile --counters app.dump app.wat argument",
        125,
        &["--counters", "\"argument\""],
    );
    sandbox.refused(
        "profile --counters app.dump --timeout 1 app.wat",
        125,
        &["--counters", "--timeout"],
    );
    let ran = sandbox.ok("profile --counters app.dump app.wat");
    assert!(
        ran.stdout.starts_with("ran 0 instructions"),
        "nothing ran: {ran:?}"
    );
}

#[test]
fn instrumenting_says_what_it_made() {
    let sandbox = Sandbox::new();
    program(&sandbox, "");
    let ran = sandbox.ok("instrument app.wat -o app.wasm --format json --standalone");
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["schema"], "afterimage/instrument/2");
    assert_eq!(json["output"], "app.wasm");
    assert_eq!(json["bytes"], sandbox.read("app.wasm").len());
    assert_eq!(json["memory_export"], "afterimage.counters");
    assert_eq!(json["standalone"], true);
    // An instrumented module cannot be instrumented again.
    sandbox.refused(
        "record app.wasm",
        126,
        &["app.wasm", "\"afterimage.counters\""],
    );
    sandbox.refused(
        "instrument app.wasm -o again.wasm",
        126,
        &["app.wasm", "\"afterimage.counters\""],
    );
}
