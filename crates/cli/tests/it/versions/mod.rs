//! Tests two versions of a program: which statements correspond, where the executions diverge, and
//! why.

mod diverged;
mod given;
mod named;

use serde_json::Value;

use crate::common::Sandbox;

/// The program as a compiler writes it without optimisation: variables are in memory, and
/// conditions are converted to 0 or 1 and negated.
const UNOPTIMISED: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (global $sp (mut i32) (i32.const 4096))
  (data (i32.const 64) "\60\00\00\00\01\00\00\00")
  (func $step (param $x i32) (param $i i32) (result i32) (local $fp i32)
    (local.set $fp (i32.sub (global.get $sp) (i32.const 16)))
    (i32.store offset=12 (local.get $fp) (local.get $x))
    (i32.store offset=8 (local.get $fp) (local.get $i))
    (i32.store offset=4 (local.get $fp)
      (i32.add (i32.mul (i32.load offset=12 (local.get $fp)) (i32.const 5)) (i32.load offset=8 (local.get $fp))))
    (i32.store offset=4 (local.get $fp)
      (i32.xor (i32.load offset=4 (local.get $fp)) (i32.shr_u (i32.load offset=12 (local.get $fp)) (i32.const 3))))
    (i32.load offset=4 (local.get $fp)))
  (func $start (export "_start") (local $fp i32)
    (local.set $fp (i32.sub (global.get $sp) (i32.const 64)))
    (global.set $sp (local.get $fp))
    (i32.store offset=12 (local.get $fp) (i32.const 0))
    (i32.store offset=8 (local.get $fp) (i32.const 7))
    (block $end
      (loop $again
        (br_if $end (i32.eqz (i32.and (i32.lt_s (i32.load offset=12 (local.get $fp)) (i32.const 100)) (i32.const 1))))
        (i32.store offset=8 (local.get $fp)
          (call $step (i32.load offset=8 (local.get $fp)) (i32.load offset=12 (local.get $fp))))
        (i32.store offset=12 (local.get $fp) (i32.add (i32.load offset=12 (local.get $fp)) (i32.const 1)))
        (br $again)))
    (i32.store8 (i32.const 96) (i32.add (i32.const 65) (i32.and (i32.load offset=8 (local.get $fp)) (i32.const 15))))
    (drop (call $write (i32.const 1) (i32.const 64) (i32.const 1) (i32.const 80)))))"#;

/// The same program, optimised: variables are in locals, the function is inlined, and the loop is
/// inverted.
const OPTIMISED: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "\60\00\00\00\01\00\00\00")
  (func $start (export "_start") (local $x i32) (local $i i32)
    (local.set $x (i32.const 7))
    (loop $again
      (local.set $x
        (i32.xor
          (i32.add (i32.mul (local.get $x) (i32.const 5)) (local.get $i))
          (i32.shr_u (local.get $x) (i32.const 3))))
      (br_if $again (i32.lt_s (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100))))
    (i32.store8 (i32.const 96) (i32.add (i32.const 65) (i32.and (local.get $x) (i32.const 15))))
    (drop (call $write (i32.const 1) (i32.const 64) (i32.const 1) (i32.const 80)))))"#;

/// Returns the offset of the operator whose name occurs once in a module's text.
fn offset_of(module: &[u8], name: &str) -> u64 {
    let text = wasmprinter_offsets(module);
    let found: Vec<u64> = text
        .iter()
        .filter(|(_, line)| line.split_whitespace().next() == Some(name))
        .map(|(offset, _)| *offset)
        .collect();
    assert_eq!(found.len(), 1, "{name} occurs {} times", found.len());
    found[0]
}

fn wasmprinter_offsets(module: &[u8]) -> Vec<(u64, String)> {
    let mut storage = String::new();
    let lines = wasmprinter::Config::new()
        .offsets_and_lines(module, &mut storage)
        .expect("a module");
    lines
        .filter_map(|(offset, line)| Some((offset? as u64, line.trim().to_owned())))
        .collect()
}

fn answer(sandbox: &Sandbox, words: &str) -> Value {
    serde_json::from_str(&sandbox.ok(words).stdout).expect("an object")
}

/// Twenty calls with two arguments, the second of which is computed differently in the other
/// version.
const CALLS: &str = r#"(module
  (memory 1)
  (func $put (param i32 i32) (i32.store (local.get 0) (i32.add (local.get 1) (i32.load (local.get 0)))))
  (func (export "main") (local $i i32) (local $x i32)
    (loop $again
      (local.set $x (i32.mul (local.get $i) (i32.const 3)))
      (call $put (i32.mul (local.get $i) (i32.const 4)) (i32.xor (local.get $x) (local.get $i)))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 20))))))"#;
