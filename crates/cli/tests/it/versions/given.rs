//! Tests the host's input to the versions, and the ends of their runs.

use serde_json::{Value, json};

use super::CALLS;
use super::answer;
use crate::common::Sandbox;

/// Adds up its input.
const READS: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "\60\00\00\00\04\00\00\00")
  (func (export "_start")
    (drop (call $read (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 80)))
    (i32.store (i32.const 84) (i32.add (i32.load (i32.const 96)) (i32.const 1)))))"#;

#[test]
fn it_is_said_that_the_host_gave_versions_something_else() {
    let sandbox = Sandbox::new();
    sandbox.wasm("a.wasm", READS);
    let other = READS.replace("i32.add", "i32.sub");
    sandbox.wasm("b.wasm", &other);
    // One version requests fewer bytes. Another has its vector at a different address.
    sandbox.wasm("less.wasm", &other.replace("\\04", "\\03"));
    sandbox.wasm("moved.wasm", &other.replace("i32.const 64", "i32.const 68"));
    for (name, module, input) in [
        ("a", "a", "four"),
        ("b", "b", "four"),
        ("c", "b", "five"),
        ("less", "less", "four"),
        ("moved", "moved", "five"),
        ("still", "moved", "four"),
    ] {
        sandbox.write(&format!("{name}.txt"), input);
        sandbox.ok(&format!(
            "record --stdin {name}.txt -o {name}.aft {module}.wasm"
        ));
    }
    for verb in ["diff", "match"] {
        let warned = |other: &str| {
            let ran = sandbox.run(&format!("{verb} a.aft {other}.aft"));
            ran.stderr
                .contains("the host did not give both runs the same data: the first difference is in host call 1, fd_read")
        };
        for (other, expected) in [
            ("b", false),
            ("c", true),
            ("less", false),
            ("moved", true),
            ("still", false),
        ] {
            assert_eq!(warned(other), expected, "{verb} {other}");
        }
    }
}

/// Asks for a folder that does not exist, as C's library does. Then reads a file, which gets the
/// same descriptor.
const OPENS: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_prestat_get" (func $prestat (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "\60\00\00\00\04\00\00\00")
  (data (i32.const 200) "file")
  (func (export "_start")
    (drop (call $prestat (i32.const 4) (i32.const 512)))
    (if (call $open (i32.const 3) (i32.const 0) (i32.const 200) (i32.const 4) (i32.const 0)
      (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 80)) (then unreachable))
    (if (i32.ne (i32.load (i32.const 80)) (i32.const 4)) (then unreachable))
    (drop (call $read (i32.load (i32.const 80)) (i32.const 64) (i32.const 1) (i32.const 84)))
    (i32.store (i32.const 88) (i32.add (i32.load (i32.const 96)) (i32.const 1)))))"#;

/// The address for a failed read differs between the versions. This difference does not concern the
/// file that later has the same descriptor.
#[test]
fn what_failed_is_no_reason_to_be_silent() {
    let sandbox = Sandbox::new();
    sandbox.wasm("a.wasm", OPENS);
    let other = OPENS.replace("i32.add", "i32.sub");
    sandbox.wasm("b.wasm", &other.replace("i32.const 512", "i32.const 528"));
    for (name, module, input) in [
        ("a", "a", "four"),
        ("b", "b", "five"),
        ("same", "b", "four"),
    ] {
        std::fs::create_dir(sandbox.path(name)).unwrap();
        sandbox.write(&format!("{name}/file"), input);
        sandbox.ok(&format!(
            "record --dir {name}::/data -o {name}.aft {module}.wasm"
        ));
    }
    for (other, expected) in [("b", true), ("same", false)] {
        let ran = sandbox.run(&format!("diff a.aft {other}.aft"));
        let said = "the first difference is in host call 3, fd_read";
        assert_eq!(ran.stderr.contains(said), expected, "{other}: {ran:?}");
        assert_eq!(
            ran.stderr.contains("did not give both runs the same data"),
            expected
        );
    }
}

/// Computes with random numbers.
const DRAWS: &str = r#"(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (drop (call $random (i32.const 64) (i32.const 32)))
    (i64.store (i32.const 128) (i64.add (i64.load (i32.const 64)) (i64.const 1)))))"#;

#[test]
fn random_numbers_are_the_same_with_the_same_seed() {
    let sandbox = Sandbox::new();
    sandbox.wasm("a.wasm", DRAWS);
    sandbox.wasm("b.wasm", &DRAWS.replace("i64.add", "i64.sub"));
    for (name, module, seed) in [
        ("a", "a", "--seed 7"),
        ("b", "b", "--seed 7"),
        ("c", "b", "--seed 8"),
        ("d", "b", ""),
    ] {
        sandbox.ok(&format!("record {seed} -o {name}.aft {module}.wasm"));
    }
    let said =
        "the first difference is in host call 1, random_get (record both with the same --seed";
    for (other, expected) in [("b", false), ("c", true), ("d", true)] {
        let ran = sandbox.run(&format!("diff a.aft {other}.aft"));
        assert_eq!(ran.stderr.contains(said), expected, "{other}: {ran:?}");
    }
}

/// Asks for random numbers, then reads 8 bytes of standard input.
const DRAWS_AND_READS: &str = r#"(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\40\00\00\00\08\00\00\00")
  (func (export "_start")
    (drop (call $random (i32.const 128) (i32.const 32)))
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 16)))
    (i64.store (i32.const 256) (i64.add (i64.load (i32.const 64)) (i64.load (i32.const 128))))))"#;

#[test]
fn random_numbers_do_not_hide_the_input_that_differs() {
    let sandbox = Sandbox::new();
    sandbox.wasm("app.wasm", DRAWS_AND_READS);
    for (name, seed, input) in [
        ("a", 1, "count 7"),
        ("b", 2, "count 9"),
        ("c", 1, "count 9"),
        ("d", 2, "count 7"),
    ] {
        sandbox.shell(&format!(
            "printf '{input}' | $AFTERIMAGE record --seed {seed} -o {name}.aft app.wasm"
        ));
    }
    let random = "the runs received different random numbers (record both with the same --seed";
    for (other, said) in [
        (
            "b",
            Some("host call 2, fd_read: \"7\" and \"9\" from byte 6 on"),
        ),
        ("c", None),
        (
            "d",
            Some("apart from these, the host gave both runs the same data"),
        ),
    ] {
        let ran = sandbox.run(&format!("diff a.aft {other}.aft"));
        assert_eq!(ran.stderr.contains(random), said.is_some(), "{ran:?}");
        // Messages are wrapped.
        let words = Vec::from_iter(ran.stderr.split_whitespace()).join(" ");
        assert!(said.is_none_or(|said| words.contains(said)), "{ran:?}");
    }
}

#[test]
fn it_is_said_that_versions_were_recorded_otherwise() {
    let sandbox = Sandbox::new();
    let asks =
        r#"(import "wasi_snapshot_preview1" "args_sizes_get" (func (param i32 i32) (result i32)))"#;
    let module = READS.replace("(memory (export", &format!("{asks}\n  (memory (export"));
    sandbox.wasm("a.wasm", &module);
    sandbox.wasm("b.wasm", &module.replace("i32.add", "i32.sub"));
    sandbox.ok("record -o a.aft a.wasm");
    sandbox.ok("record -o b.aft b.wasm more");
    let ran = sandbox.run("diff a.aft b.aft");
    let said =
        "the runs had different inputs: the program's own name (a.wasm, b.wasm), and the arguments";
    assert!(ran.stderr.contains(said), "{ran:?}");
}

/// Its input decides whether it traps, exits or exhausts its stack, and it prints the input.
const ENDS: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "\60\00\00\00\04\00\00\00")
  (func $deep (call $deep))
  (func $letter (result i32) (i32.load8_u (i32.const 96)))
  (func (export "_start")
    (drop (call $read (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 80)))
    (drop (call $write (i32.const 1) (i32.const 64) (i32.const 1) (i32.const 80)))
    (drop (i32.div_u (i32.const 9) (i32.sub (call $letter) (i32.const 116))))
    (if (i32.eq (call $letter) (i32.const 101)) (then (call $exit (i32.const 3))))
    (if (i32.eq (call $letter) (i32.const 115)) (then (call $deep)))))"#;

#[test]
fn runs_that_did_not_end_alike_are_told_in_each_mode() {
    let sandbox = Sandbox::new();
    let modules = [
        ("same", ENDS.to_owned()),
        ("alike", ENDS.replace("(i32.const 9)", "(i32.const 8)")),
        (
            "other",
            ENDS.replace("(func $letter", "(func) (func $letter"),
        ),
    ];
    let endings = [
        ("ends", "returned", None),
        (
            "trap",
            "trapped: integer division by zero",
            Some("why NAME --trap"),
        ),
        ("exit", "exited with code 3", Some("why NAME --trap")),
        ("stop", "exhausted its stack", Some("why NAME --trap")),
    ];
    for (input, ..) in endings {
        // Only the first letter counts.
        sandbox.write("input.txt", input.replace("ends", "none"));
        for (name, text) in &modules {
            sandbox.wasm("m.wasm", text);
            sandbox.run(&format!(
                "record --stdin input.txt --stack 64 -o {name}-{input}.aft m.wasm"
            ));
        }
    }
    let a = "same-ends.aft";
    for (name, _) in &modules {
        for (input, ending, question) in endings {
            let b = format!("{name}-{input}.aft");
            let found = answer(&sandbox, &format!("diff --format json {a} {b}"));
            let told = format!("{a} returned; {b} {ending}");
            let text = sandbox.ok(&format!("diff {a} {b}")).stdout;
            let first = text.lines().take(2).any(|line| line == told);
            let warned = sandbox.ok(&format!("match {a} {b}")).stderr.contains(&told);
            let differ = input != "ends";
            assert_eq!((first, warned), (differ, differ), "{b}: {text}");
            let expected = if differ {
                json!({ "a": "returned", "b": ending })
            } else {
                Value::Null
            };
            assert_eq!(found["endings"], expected, "{b}: {found}");
            let questions = found["questions"].as_array().unwrap();
            if let Some(question) = question {
                let question = format!("afterimage {}", question.replace("NAME", &b));
                assert!(questions.contains(&json!(question)), "{b}: {found}");
                let byte = json!(format!("afterimage why {b} --stdout 0"));
                assert!(questions.contains(&byte), "{b}: {found}");
            }
            for question in questions {
                let words = question.as_str().unwrap();
                sandbox.ok(words.strip_prefix("afterimage ").unwrap());
            }
        }
    }
}

#[test]
fn what_is_put_out_alike_is_no_excuse_if_they_ended_otherwise() {
    let sandbox = Sandbox::new();
    let writing = CALLS
        .replace(
            "(memory 1)",
            r#"(import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
            (memory (export "memory") 1) (data (i32.const 200) "\d8\00\00\00\01\00\00\00") (data (i32.const 216) "x")"#,
        )
        .replace(
            "(loop $again",
            "(drop (call $write (i32.const 1) (i32.const 200) (i32.const 1) (i32.const 208))) (loop $again",
        );
    let other = |text: &str| {
        let other = text.replace("i32.xor", "i32.or");
        other.replace("(func $put", "(func) (func $put")
    };
    let ended = other(&writing).replace("(i32.const 20))))", "(i32.const 20)))(unreachable))");
    let modules = [
        ("silent", CALLS.to_owned()),
        ("silent-other", other(CALLS)),
        ("other", other(&writing)),
        ("ended", ended),
        ("writing", writing),
    ];
    for (name, text) in modules {
        sandbox.wasm("m.wasm", &text);
        sandbox.run(&format!("record --invoke main -o {name}.aft m.wasm"));
    }
    for (a, b, put_out, excused) in [
        ("silent", "silent-other", "nothing", false),
        ("writing", "other", "the same", true),
        ("writing", "ended", "the same", false),
    ] {
        let text = sandbox.ok(&format!("diff {a}.aft {b}.aft")).stdout;
        let head = format!("they printed {put_out}; ");
        assert!(text.contains(&head), "{b}: {text}");
        assert_eq!(text.contains("may not be a fault"), excused, "{b}: {text}");
        assert!(
            text.contains("equal operands first give a different result"),
            "{b}: {text}"
        );
    }
}
