//! Functions with thousands of branches are rewritten for the engine, and must behave as before.
//!
//! The oracle computes the result of the function from the list of its parts. The machine is
//! independent of the engine, and `verify` compares it with the recording.

use std::fmt::Write;

use crate::common::Sandbox;

/// The effects of the function's parts on its locals.
#[derive(Clone, Copy, Debug, PartialEq)]
struct State {
    a: i32,
    b: i32,
    c: i64,
}

/// Writes a condition that depends only on memory.
fn condition(i: usize) -> String {
    format!("(i32.and (i32.load8_u (i32.const {i})) (i32.const 1))")
}

/// The number of kinds of parts.
const KINDS: usize = 13;
/// Writes a part of one of the `KINDS` kinds, and applies its effect to `s` if its condition holds.
fn part(kind: usize, i: usize, holds: bool, s: &mut State) -> String {
    let cond = condition(i);
    let (a, b, c) = ("(local.get 0)", "(local.get 1)", "(local.get 2)");
    match kind {
        0 => {
            s.a = if holds { s.a.wrapping_add(1) } else { s.a };
            format!("(if {cond} (then (local.set 0 (i32.add {a} (i32.const 1)))))")
        }
        1 => {
            s.b = if holds { s.b } else { s.b ^ s.a };
            format!("(block (br_if 0 {cond}) (local.set 1 (i32.xor {b} {a})))")
        }
        2 => {
            s.a = if holds { s.b } else { s.a };
            format!("(local.set 0 (select {b} {a} {cond}))")
        }
        3 => {
            s.b = if holds { s.a } else { 7 };
            format!("(local.set 1 (block (result i32) (br_if 0 {a} {cond}) (drop) (i32.const 7)))")
        }
        4 => {
            s.c = if holds {
                s.c.wrapping_add(3)
            } else {
                s.c.wrapping_mul(5)
            };
            format!(
                "(local.set 2 (if (result i64) {cond} (then (i64.add {c} (i64.const 3))) (else (i64.mul {c} (i64.const 5)))))"
            )
        }
        5 => {
            s.a = if holds { s.a } else { s.a.wrapping_add(2) };
            format!(
                "(block (block (br_table 0 1 {cond})) (local.set 0 (i32.add {a} (i32.const 2))))"
            )
        }
        6 => {
            s.a = s.a.wrapping_add(1);
            while s.a & 3 != 0 {
                s.a = s.a.wrapping_add(1);
            }
            format!(
                "(loop (local.set 0 (i32.add {a} (i32.const 1))) (br_if 0 (i32.and {a} (i32.const 3))))"
            )
        }
        7 => {
            s.a = s.a.wrapping_add(1);
            while s.a & 7 != 0 {
                s.a = s.a.wrapping_add(1);
            }
            s.b = s.a;
            "local.get 0 loop (param i32) (result i32) i32.const 1 i32.add local.tee 1 local.get 1 i32.const 7 i32.and br_if 0 end local.set 0".to_owned()
        }
        8 => {
            s.b = if holds { s.b.wrapping_mul(3) } else { s.b };
            format!(
                "local.get 1 {cond} if (param i32) (result i32) i32.const 3 i32.mul end local.set 1"
            )
        }
        9 => {
            s.a = if holds {
                s.a.wrapping_mul(2).wrapping_add(1)
            } else {
                s.a
            };
            format!("(if {cond} (then (local.set 0 (call $f {a}))))")
        }
        10 => {
            let inner = s.b & 1 != 0;
            s.a = if holds && !inner {
                s.a.wrapping_add(5)
            } else {
                s.a
            };
            format!(
                "(block (if {cond} (then (if (i32.and {b} (i32.const 1)) (then (br 2))) (local.set 0 (i32.add {a} (i32.const 5))))))"
            )
        }
        11 => {
            let (inner, more) = (s.a & 1 != 0, s.b.wrapping_add(3));
            (s.a, s.b) = match (holds, inner) {
                (true, true) => (s.a.wrapping_sub(5), more),
                (true, false) => (s.a ^ 9, more),
                (false, _) => (s.a, s.b.wrapping_sub(4)),
            };
            format!(
                "(if {cond}
                  (then
                    (if (i32.and {a} (i32.const 1))
                      (then (local.set 0 (i32.sub {a} (i32.const 5))))
                      (else (local.set 0 (i32.xor {a} (i32.const 9)))))
                    (local.set 1 (i32.add {b} (i32.const 3))))
                  (else (local.set 1 (i32.sub {b} (i32.const 4)))))"
            )
        }
        _ => {
            (s.a, s.c) = if holds { (s.b, s.c) } else { (9, 11) };
            format!(
                "(block (result i32 i64) {b} {c} (br_if 0 {cond}) (drop) (drop) (i32.const 9) (i64.const 11)) (local.set 2) (local.set 0)"
            )
        }
    }
}

#[test]
fn functions_with_many_branches_do_what_they_did() {
    let mut seed = 1u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
        (seed >> 33) % below
    };
    let mut state = State { a: 1, b: 2, c: 3 };
    let (mut data, mut body) = (String::new(), String::new());
    for i in 0..6000 {
        let byte = random(256);
        write!(data, "\\{byte:02x}").unwrap();
        let kind = random(KINDS as u64) as usize;
        writeln!(body, "{}", part(kind, i, byte & 1 != 0, &mut state)).unwrap();
    }
    let text = format!(
        r#"(module (memory 1) (data (i32.const 0) "{data}")
        (func $f (param i32) (result i32) (i32.add (i32.mul (local.get 0) (i32.const 2)) (i32.const 1)))
        (func (export "run") (param i32 i32 i64) (result i32 i32 i64)
            {body} (local.get 0) (local.get 1) (local.get 2)))"#
    );
    let sandbox = Sandbox::new();
    sandbox.wasm("many.wasm", &text);
    let State { a, b, c } = state;
    for lens in ["", "--lens paths", "--lens counts"] {
        let words = format!("record -q --force {lens} -o run.aft --invoke run many.wasm 1 2 3");
        let ran = sandbox.ok(&words);
        let results = Vec::from_iter(ran.stdout.split_whitespace().map(str::to_owned));
        assert_eq!(results, [a.to_string(), b.to_string(), c.to_string()]);
        sandbox.ok("verify run.aft");
        sandbox.ok("profile --mode slow run.aft");
        let shown = sandbox
            .ok("trace --level statement --last 5 run.aft")
            .stdout;
        assert!(shown.contains(&c.to_string()), "{shown}");
    }
}
