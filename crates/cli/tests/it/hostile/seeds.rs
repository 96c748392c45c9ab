//! Makes the recordings that the tests tamper with.

use crate::common::Sandbox;

/// A program with memory, globals, tables, all kinds of calls, loops, and reads and writes by the
/// host.
const BUSY: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (memory (export "memory") 1 4)
  (global $g (mut i64) (i64.const 7))
  (table funcref (elem $work $twice))
  (type $t (func (param i32) (result i32)))
  (data (i32.const 0) "\10\00\00\00\02\00\00\00")
  (data (i32.const 16) "x\n")
  (func $work (param $n i32) (result i32) (local $s i32)
    (loop $again
      (local.set $s (i32.add (local.get $s) (i32.mul (local.get $n) (local.get $n))))
      (i32.store (i32.add (i32.const 1024) (i32.and (local.get $s) (i32.const 0xff))) (local.get $s))
      (if (i32.and (local.get $s) (i32.const 4))
        (then (global.set $g (i64.add (global.get $g) (i64.load32_u (i32.const 1030))))))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (i32.load (i32.const 1024)))
  (func $twice (param $n i32) (result i32)
    (memory.copy (i32.const 3000) (i32.const 1020) (i32.const 100))
    (i32.add (call $work (local.get $n)) (call $work (i32.const 3))))
  (func $lanes (param $n i32)
    (v128.store (i32.const 4000)
      (i32x4.add (v128.load (i32.const 3000)) (i32x4.splat (local.get $n)))))
  (func (export "_start") (local $i i32)
    (drop (memory.grow (i32.const 1)))
    (loop $again
      (drop (call_indirect (type $t) (i32.add (i32.const 5) (local.get $i)) (i32.and (local.get $i) (i32.const 1))))
      (call $lanes (local.get $i))
      (drop (call $random_get (i32.const 2000) (i32.const 16)))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 12))))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
    END))"#;

/// Programs with endless recursion and with exceptions.
const OTHERS: [(&str, &str); 2] = [
    (
        "deep",
        r#"(module
          (func $work (param $n i32) (result i32)
            (i32.add (i32.const 1) (call $work (i32.add (local.get $n) (i32.const 1)))))
          (func (export "_start") (drop (call $work (i32.const 0)))))"#,
    ),
    (
        "thrown",
        r#"(module
          (tag $oops (param i32))
          (func $work (param $n i32) (result i32)
            (if (i32.eqz (local.get $n)) (then (throw $oops (i32.const 9))))
            (call $work (i32.sub (local.get $n) (i32.const 1))))
          (func (export "_start") (local $i i32)
            (loop $again
              (block $caught (result i32)
                (try_table (catch $oops $caught) (drop (call $work (local.get $i))))
                (i32.const 1))
              (local.set $i (i32.add (local.get $i)))
              (br_if $again (i32.lt_u (local.get $i) (i32.const 30))))
            (drop (call $work (i32.const 5)))))"#,
    ),
];

/// Makes recordings of programs that end in several ways, with everything that a file can contain.
/// Returns their names.
pub fn recordings(sandbox: &Sandbox) -> Vec<String> {
    let busy = |end: &str| BUSY.replace("END", end);
    let programs = [
        ("busy", busy("")),
        (
            "trap",
            busy("(drop (i32.div_u (local.get $i) (i32.const 0)))"),
        ),
        (
            "spin",
            busy(
                "(loop $l
            (drop (call $random_get (i32.const 2000) (i32.const 999)))
            (drop (call $work (i32.const 9)))
            (br $l))",
            ),
        ),
    ];
    let others = OTHERS.map(|(name, text)| (name, text.to_owned()));
    let mut names = Vec::new();
    for (name, text) in programs.into_iter().chain(others) {
        let program = format!("{name}.wat");
        sandbox.write(&program, text);
        let limit = match name {
            "spin" => "--timeout 0.003",
            // A few thousand nested calls are enough.
            "deep" => "--stack 128",
            _ => "",
        };
        for (kind, lens) in [
            ("plain", ""),
            ("live", "--lens paths"),
            ("full", "--lens full"),
        ] {
            let file = format!("{name}-{kind}.aft");
            let ran = sandbox.run(&format!("record {limit} {lens} -o {file} {program}"));
            let codes = [Some(0), Some(124), Some(134)];
            assert!(codes.contains(&ran.code), "{name}: {ran:?}");
            if kind == "full" {
                sandbox.ok(&format!("profile {file}"));
                sandbox.ok(&format!(
                    "simulate {file} --cache 256,2,16 --cache2 1k,4,32 --branch-predictor tage:bits=4"
                ));
                // Not every program has memory, or an end at which it can be inspected.
                let words = format!("slice {file} --at end --address 0x10..0x3f --save kept");
                let ran = sandbox.run(&words);
                assert!([Some(0), Some(125)].contains(&ran.code), "{name}: {ran:?}");
            }
            names.push(file);
        }
    }
    names
}
