//! Reads data sets of small runs back, and compares them with the library's answers and with naive
//! references.

mod dependences;
mod folder;
mod read;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use afterimage::Session;
use afterimage_program::Program;
use afterimage_record::{Cache, Command, Interrupt, Launch, RecordOptions, record};
use afterimage_testkit::modules::{HANDWRITTEN, ModuleConfig, module_from_seed};
use afterimage_trace::{Existing, TraceWriter};
use tempfile::TempDir;
use wasmparser::ValType;

/// A program with calls to the host, copies and fills of memory, numbers of every type, a table and
/// a recursion.
const MIXED: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\10\00\00\00\03\00\00\00")
  (data (i32.const 16) "abc")
  (global $g (mut i64) (i64.const 5))
  (table funcref (elem $twice $fact))
  (type $unary (func (param i32) (result i32)))
  (func $twice (param i32) (result i32) (i32.add (local.get 0) (local.get 0)))
  (func $fact (param i32) (result i32)
    (if (result i32) (i32.le_s (local.get 0) (i32.const 1))
      (then (i32.const 1))
      (else (i32.mul (local.get 0) (call $fact (i32.sub (local.get 0) (i32.const 1)))))))
  (func (export "_start") (local $i i32) (local $v v128)
    (drop (call $random (i32.const 100) (i32.const 8)))
    (i32.store16 (i32.const 104) (i32.load8_s (i32.const 101)))
    (memory.copy (i32.const 102) (i32.const 100) (i32.const 6))
    (memory.fill (i32.const 120) (i32.const -1) (i32.const 5))
    (drop (i64.load (i32.const 101)))
    (global.set $g (i64.sub (global.get $g) (i64.const 9)))
    (drop (f32.sqrt (f32.convert_i32_s (i32.load (i32.const 100)))))
    (f64.store (i32.const 200) (f64.div (f64.convert_i64_s (global.get $g)) (f64.const 3)))
    (drop (f64.load (i32.const 196)))
    (drop (f32.load (i32.const 120)))
    (local.set $v (i32x4.splat (i32.load (i32.const 100))))
    (v128.store (i32.const 300) (i32x4.add (local.get $v) (i32x4.splat (i32.const 7))))
    (v128.store8_lane 3 (i32.const 400) (local.get $v))
    (loop $l
      (i32.store (i32.const 500)
        (call_indirect (type $unary) (local.get $i) (i32.rem_u (local.get $i) (i32.const 2))))
      (i32.store8 (i32.add (i32.const 500) (local.get $i))
        (i32.load16_u offset=99 (i32.mul (local.get $i) (i32.const 3))))
      (drop (i64.load offset=498 (local.get $i)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $l (i32.lt_u (local.get $i) (i32.const 6))))
    (drop (memory.grow (i32.const 1)))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#;

/// Records a program. Returns `false` if the run cannot begin.
fn recorded(at: &Path, module: &[u8], command: &Command) -> bool {
    let program = Arc::new(Program::parse(module).unwrap());
    let options = RecordOptions {
        silent: true,
        ..RecordOptions::default()
    };
    let out = TraceWriter::create(at, Existing::Replaced).unwrap();
    let (cache, interrupt) = (Cache::none(), Interrupt::new());
    let launch = Launch {
        bytes: module,
        program: &program,
        command,
        options: &options,
        cache: &cache,
        interrupt: &interrupt,
    };
    record(launch, &out).is_ok()
}

/// Makes a recording of a program in text form.
fn recording(folder: &Path, text: &str) -> PathBuf {
    let at = folder.join("run.aft");
    let command = Command {
        name: "guest".to_owned(),
        ..Command::default()
    };
    assert!(recorded(&at, &wat::parse_str(text).unwrap(), &command));
    at
}

/// Makes a recording that was stopped after 383 blocks.
fn forever(folder: &Path) -> PathBuf {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/freeze/forever.aft");
    let at = folder.join("forever.aft");
    fs::copy(kept, &at).unwrap();
    at
}

/// Returns the command that calls an export, if its parameters are all numbers.
fn call(program: &Program, export: usize) -> Option<Command> {
    let (name, function) = program.exports.get(export)?;
    let params = &program.types[program.function(*function)?.ty].params;
    let is_number = |ty: &ValType| !matches!(ty, ValType::V128 | ValType::Ref(_));
    params.iter().all(is_number).then(|| Command {
        name: "guest".to_owned(),
        invoke: Some(name.clone()),
        args: params.iter().map(|_| (1 + export).to_string()).collect(),
        ..Command::default()
    })
}

/// The maximum number of blocks. Longer runs would take too long.
const MOST_BLOCKS: u64 = 3000;

/// Passes small runs to `show`: runs of the program above, a stopped program, generated programs,
/// and hand-written programs.
fn each_run(seeds: u64, mut show: impl FnMut(&Session, &TempDir)) {
    let mut shown = |at: &Path, folder: &TempDir| {
        let session = Session::open(at).unwrap();
        if session.ensure_path().unwrap().length() <= MOST_BLOCKS {
            show(&session, folder);
        }
    };
    let folder = tempfile::tempdir().unwrap();
    shown(&recording(folder.path(), MIXED), &folder);
    let folder = tempfile::tempdir().unwrap();
    shown(&forever(folder.path()), &folder);
    let generated = (0..seeds).map(|seed| module_from_seed(seed, &ModuleConfig::default()));
    let handwritten = HANDWRITTEN.iter();
    let handwritten = handwritten.map(|(_, text)| wat::parse_str(text).unwrap());
    for (number, module) in handwritten.chain(generated).enumerate() {
        let program = Program::parse(&module).unwrap();
        for export in 0..3 {
            let Some(command) = call(&program, export) else {
                continue;
            };
            // This output is shown if a test fails.
            println!("program {number}, export {export}");
            let folder = tempfile::tempdir().unwrap();
            let at = folder.path().join("run.aft");
            if recorded(&at, &module, &command) {
                shown(&at, &folder);
            }
        }
    }
}
