//! Generates guests that pass the same bytes to the host and get them back repeatedly, in every
//! possible way.

use std::fmt::Write as _;

use afterimage_testkit::modules::SplitMix64;

/// Returns a program that works on a few hundred bytes. The guest calls its imports directly; if
/// `hidden`, also through a table and by tail calls. If `exported`, it exports some of them.
pub fn guest(seed: u64, hidden: bool, exported: bool) -> String {
    let mut random = SplitMix64(seed ^ 0x5eed);
    let mut body = String::new();
    for _ in 0..6 + random.below(10) {
        let operation = operation(&mut random, hidden);
        // Some calls are made only in some iterations.
        match random.below(3) {
            0 => writeln!(
                body,
                "(if (i32.eqz (i32.rem_u (local.get $i) (i32.const {}))) (then {operation}))",
                2 + random.below(6)
            ),
            _ => writeln!(body, "{operation}"),
        }
        .expect("a string");
    }
    let export = if exported {
        r#"(export "again" (func $random))"#
    } else {
        ""
    };
    format!(
        r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_rename" (func $rename (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
  (memory (export "memory") 1)
  {export}
  (data (i32.const 96) "what the module has")
  (data $late "0123456789abcdef")
  (type $four (func (param i32 i32 i32 i32) (result i32)))
  (type $two (func (param i32 i32) (result i32)))
  (table funcref (elem $write $read $random $own))
  (func $own (type $two) (i32.store (i32.and (local.get 0) (i32.const 255)) (local.get 1)) (local.get 0))
  (func $tail (type $four)
    (i32.store offset=300 (i32.const 0) (local.get 1))
    (return_call $write (local.get 0) (local.get 1) (local.get 2) (local.get 3)))
  (func $tail_hidden (type $two)
    (return_call_indirect (type $two) (local.get 0) (local.get 1) (i32.const 2)))
  (func (export "_start") (local $i i32)
    (loop $again
      {body}
      (br_if $again (i32.lt_u
        (local.tee $i (i32.add (local.get $i) (i32.const 1)))
        (i32.const {})))))
  (func (export "run") (param $n i32) (result i32)
    (i32.store (i32.const 8) (local.get $n))
    (drop (call $random (i32.const 10) (i32.const 4)))
    (i32.load (i32.const 9))))"#,
        20 + random.below(60)
    )
}

/// Writes an address that differs in each iteration.
fn address(random: &mut SplitMix64) -> String {
    format!(
        "(i32.and (i32.add (i32.mul (local.get $i) (i32.const {})) (i32.const {})) (i32.const {}))",
        random.below(9),
        random.below(256),
        [63, 127, 255][random.below(3)]
    )
}

fn operation(random: &mut SplitMix64, hidden: bool) -> String {
    let (to, from) = (address(random), address(random));
    let length = random.below(12);
    match random.below(if hidden { 14 } else { 11 }) {
        0 => format!("(i32.store {to} (local.get $i))"),
        1 => format!("(i64.store offset=3 {to} (i64.extend_i32_u (local.get $i)))"),
        2 => format!("(i32.store8 {to} (i32.load {from}))"),
        3 => format!("(memory.copy {to} {from} (i32.const {length}))"),
        4 => format!("(memory.fill {to} (local.get $i) (i32.const {length}))"),
        5 => format!("(memory.init $late {to} (i32.const 2) (i32.const {length}))"),
        6 => format!("(drop (call $random {to} (i32.const {length})))"),
        7 => format!(
            "(drop (call $rename (i32.const 9) {to} (i32.const {length}) (i32.const 9) {from} (i32.const 3)))"
        ),
        8 => format!(
            "(drop (call $clock (i32.const 1) (i64.const 1) (i32.and {to} (i32.const 248))))"
        ),
        9 => vectors(random, "(call $read (i32.const 0)"),
        10 => vectors(random, "(call $write (i32.const 1)"),
        11 => vectors(random, "(call $tail (i32.const 1)"),
        12 => format!(
            "(drop (call_indirect (type $two) {to} (i32.const {length}) (i32.add (i32.const 2) (i32.and (local.get $i) (i32.const 1)))))"
        ),
        _ => format!("(drop (call $tail_hidden {to} (i32.const {length})))"),
    }
}

/// Writes a call with two vectors, which are written in several ways and may lie within the bytes
/// that they describe. The host requires aligned vectors.
fn vectors(random: &mut SplitMix64, call: &str) -> String {
    let at = 512 + 4 * random.below(3);
    let mut text = String::new();
    for vector in [at, at + 8] {
        let start = match random.below(5) {
            0 => format!("(i32.const {})", 508 + random.below(9)),
            _ => address(random),
        };
        let length = random.below(9);
        let written = match random.below(3) {
            0 => write!(
                text,
                "(i64.store (i32.const {vector}) (i64.or (i64.extend_i32_u {start}) (i64.const {})))",
                (length as u64) << 32
            ),
            1 if vector > at => write!(
                text,
                "(memory.copy (i32.const {vector}) (i32.const {at}) (i32.const 8))"
            ),
            _ => write!(
                text,
                "(i32.store offset=4 (i32.const {vector}) (i32.const {length})) (i32.store (i32.const {vector}) {start})"
            ),
        };
        written.expect("a string");
    }
    let result = [500 + 4 * random.below(9), 4 * random.below(60)][random.below(2)];
    format!("{text} (drop {call} (i32.const {at}) (i32.const 2) (i32.const {result})))")
}
