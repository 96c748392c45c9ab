//! Changes planted in one version are found and named: operators, constants and data.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{OPTIMISED, UNOPTIMISED, answer, offset_of};
use crate::common::Sandbox;

#[test]
fn a_planted_miscompilation_is_found_and_named() {
    for (right, wrong) in [
        ("i32.xor", "i32.or"),
        ("i32.mul", "i32.shl"),
        ("i32.shr_u", "i32.rotr"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.wasm("o0.wasm", UNOPTIMISED);
        let miscompiled = OPTIMISED.replace(right, wrong);
        let bytes = wat::parse_str(&miscompiled).unwrap();
        let guilty = offset_of(&bytes, wrong);
        sandbox.write("o2.wasm", &bytes);
        sandbox.wasm("good.wasm", OPTIMISED);
        for name in ["o0", "o2", "good"] {
            sandbox.ok(&format!("record -o {name}.aft {name}.wasm"));
        }
        // Compare with the correctly compiled version. The two programs are alike, so no matching
        // is necessary.
        let found = answer(&sandbox, "diff --format json good.aft o2.aft");
        let replaced = found["alike"]["replaced"].as_array().unwrap();
        assert_eq!(replaced.len(), 1, "{found}");
        let (offset, guilty) = (guilty, json!(format!("@0x{guilty:x}")));
        assert_eq!(replaced[0]["a"]["operator"], right);
        assert_eq!(replaced[0]["b"]["operator"], wrong);
        assert_eq!(replaced[0]["b"]["at"], guilty);
        let first = &found["first"]["b"];
        assert_eq!(first["offset"], offset);
        assert_eq!(first["t"], replaced[0]["first"]["t"]);
        assert_eq!(replaced[0]["otherwise"], wrong_executions(wrong));
        let text = sandbox.ok("diff good.aft o2.aft").stdout;
        let told = format!("@0x{offset:x} in start: {wrong} instead of {right}");
        assert!(text.contains("differ only in 1 operator"), "{text}");
        assert!(text.contains(&told), "{told}: {text}");
        // Also compare with the unoptimised version. The wrong shift is an exception: from its
        // first execution on, it has no value and no neighbour in common with the right shift.
        if right != "i32.shr_u" {
            let found = answer(&sandbox, "diff --format json o0.aft o2.aft");
            let first = &found["divergences"][0];
            assert_eq!(first["b"]["offset"], offset, "{found}");
            assert_eq!(first["b"]["operator"], wrong);
            assert_eq!(first["a"]["operator"], right);
            assert_eq!(first["origin"], "computed", "{wrong}");
        }
    }
}

/// Values that are always off by the same amount look like moved addresses. Such values must still
/// be named if they are not addresses.
#[test]
fn a_constant_that_is_off_is_named() {
    let sandbox = Sandbox::new();
    let program = |bias: &str, before: &str| {
        let old = "(i32.mul (local.get $x) (i32.const 5)) (local.get $i)";
        let new = format!(
            "(i32.mul (local.get $x) (i32.const 5)) (i32.add (i32.and (local.get $i) (i32.const 7)) (i32.const {bias}))"
        );
        assert!(OPTIMISED.contains(old));
        let program = OPTIMISED.replace(old, &new);
        program.replacen("\n  (func", &format!("{before}\n  (func"), 1)
    };
    // With an additional function, the two versions are not alike.
    let more = "\n  (func $more (result i32) (i32.const 1))";
    for (wrong, gave) in [("12", "0xc"), ("500", "0x1f4")] {
        sandbox.wasm("right.wasm", &program("11", ""));
        sandbox.wasm("wrong.wasm", &program(wrong, more));
        for name in ["right", "wrong"] {
            sandbox.ok(&format!("record --force -o {name}.aft {name}.wasm"));
        }
        let found = answer(&sandbox, "diff --format json right.aft wrong.aft");
        assert!(found["alike"].is_null(), "{found}");
        let first = &found["divergences"][0];
        assert_eq!(first["origin"], "computed", "{found}");
        assert_eq!(first["b"]["operator"], "i32.add");
        assert_eq!(first["bits"], json!(["0xb", gave]), "{first}");
    }
}

/// A function in both versions that is called at their end.
const SHARED: &str = r#"
  (func $last (param $x i32) (result i32)
    (if (i32.lt_u (local.get $x) (i32.const 2)) (then (return (i32.const 1))))
    (i32.xor
      (i32.sub (i32.and (i32.rotl (local.get $x) (i32.const 7)) (i32.const 0xff)) (i32.const -9))
      (i32.const 5)))"#;

#[test]
fn another_operator_in_a_function_that_is_the_same_otherwise_is_named() {
    let sandbox = Sandbox::new();
    let with_last = |program: &str, shared: &str, number: &str| {
        let whole = program.replacen("\n  (func", &format!("{shared}\n  (func"), 1);
        let old = format!("(i32.and {number} (i32.const 15))");
        let new = format!("(i32.and (call $last {number}) (i32.const 15))");
        assert!(whole.contains(&old));
        whole.replace(&old, &new)
    };
    let loaded = "(i32.load offset=8 (local.get $fp))";
    sandbox.wasm("o0.wasm", &with_last(UNOPTIMISED, SHARED, loaded));
    let wrong = SHARED.replace("i32.rotl", "i32.rotr");
    let module = wat::parse_str(with_last(OPTIMISED, &wrong, "(local.get $x)")).unwrap();
    let guilty = offset_of(&module, "i32.rotr");
    sandbox.write("o2.wasm", &module);
    for name in ["o0", "o2"] {
        sandbox.ok(&format!("record -o {name}.aft {name}.wasm"));
    }
    let found = answer(&sandbox, "diff --format json o0.aft o2.aft");
    let suspects = found["suspects"].as_array().unwrap();
    assert_eq!(suspects[0]["b"]["offset"], guilty, "{found}");
    assert_eq!(suspects[0]["replaces"]["operator"], "i32.rotl");
    // None of the later values could be an address.
    assert!(suspects[0]["wrong"].as_u64().unwrap() >= 3, "{found}");
    let questions = found["questions"].as_array().unwrap();
    let different: HashSet<&Value> = questions.iter().collect();
    assert_eq!(different.len(), questions.len(), "{found}");
    let others = &suspects[1..];
    assert!(others.iter().all(|other| other["replaces"].is_null()));
    let text = sandbox.ok("diff o0.aft o2.aft").stdout;
    let told = format!("@0x{guilty:x}#1 i32.rotr");
    assert!(text.lines().next().unwrap().contains(&told), "{text}");
    let line = text
        .lines()
        .skip(1)
        .find(|line| line.contains(&told))
        .unwrap();
    assert!(
        line.contains("replaces @0x") && line.contains("i32.rotl"),
        "{text}"
    );
    assert!(
        text.contains(&format!("afterimage why o2.aft --at @0x{guilty:x}#1")),
        "{text}"
    );
}

/// Returns the number of rounds in which a miscompiled version computes a wrong result from its
/// inputs.
fn wrong_executions(wrong: &str) -> u64 {
    let mut x: u32 = 7;
    let mut times = 0;
    for i in 0..100 {
        let right = [x.wrapping_mul(5), x >> 3];
        let mut parts = right;
        match wrong {
            "i32.shl" => parts[0] = x << 5,
            "i32.rotr" => parts[1] = x.rotate_right(3),
            _ => {}
        }
        let sum = parts[0].wrapping_add(i);
        let joined = sum ^ parts[1];
        let next = if wrong == "i32.or" {
            sum | parts[1]
        } else {
            joined
        };
        times += u64::from(parts != right || next != joined);
        x = next;
    }
    times
}

#[test]
fn bytes_of_data_that_are_others_are_named() {
    let sandbox = Sandbox::new();
    sandbox.wasm("a.wasm", OPTIMISED);
    sandbox.wasm(
        "b.wasm",
        &OPTIMISED.replace(r"\60\00\00\00\01", r"\61\00\00\00\01"),
    );
    for name in ["a", "b"] {
        sandbox.ok(&format!("record -o {name}.aft {name}.wasm"));
    }
    let found = answer(&sandbox, "diff --format json a.aft b.aft");
    let data = json!([{ "segment": 0, "offset": 0, "bytes": 1 }]);
    let alike = json!({ "replaced": [], "more_replaced": 0, "data": data, "more_data": 0 });
    assert_eq!(found["alike"], alike);
    let text = sandbox.ok("diff a.aft b.aft").stdout;
    assert!(text.contains("differ only in 1 data segment"), "{text}");
    assert!(
        text.contains("data segment 0: 1 byte differs, the first at offset 0"),
        "{text}"
    );
}

/// A program's body, the replaced part and its replacement, and the first operator that then
/// computes something else, if any.
type Planted = (
    &'static str,
    &'static str,
    &'static str,
    Option<&'static str>,
);

const PLANTED: [Planted; 9] = [
    ("(nop)", "hello", "hexxo", Some("call")),
    (
        "(memory.init $p (i32.const 96) (i32.const 0) (i32.const 5))",
        "memory.init $p",
        "memory.init $q",
        Some("memory.init"),
    ),
    (
        "(i32.store8 (i32.const 8) (i32.const 5))",
        "(i32.const 5)",
        "(i32.const 261)",
        None,
    ),
    (
        "(i32.store (i32.const 300) (i32.const 5))",
        "(i32.const 5)",
        "(i32.const 6)",
        Some("i32.store"),
    ),
    (
        "(memory.fill (i32.const 8) (i32.const 5) (i32.const 4))",
        "(i32.const 5)",
        "(i32.const 261)",
        None,
    ),
    (
        "(global.set $g (i32.const 5))",
        "global.set $g",
        "global.set $h",
        Some("global.set"),
    ),
    (
        "(drop (i32.div_u (i32.const 7) (i32.const 2)))",
        "i32.div_u",
        "i32.rem_u",
        Some("i32.rem_u"),
    ),
    (
        "(drop (i32.div_u (i32.const 7) (i32.const 0)))",
        "i32.div_u",
        "i32.mul",
        Some("i32.mul"),
    ),
    (
        "(drop (i32.load (i32.const 70000)))",
        "i32.const 70000",
        "i32.const 70004",
        Some("i32.load"),
    ),
];

#[test]
fn whatever_operators_are_replaced_it_is_found_what_they_do() {
    for (body, from, to, expected) in PLANTED {
        let sandbox = Sandbox::new();
        let text = format!(
            r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (global $g (mut i32) (i32.const 0))
  (global $h (mut i32) (i32.const 0))
  (data (i32.const 64) "\60\00\00\00\05\00\00\00")
  (data (i32.const 96) "hello")
  (data $p "adieu")
  (data $q "salut")
  (func $start (export "_start")
    {body}
    (drop (call $write (i32.const 1) (i32.const 64) (i32.const 1) (i32.const 80)))))"#
        );
        let other = text.replace(from, to);
        assert_ne!(text, other);
        let recorded = |name: &str, text: &str| {
            sandbox.wasm(&format!("{name}.wasm"), text);
            let ran = sandbox.run(&format!("record -o {name}.aft {name}.wasm"));
            ran.stdout
        };
        let put_out = [recorded("a", &text), recorded("b", &other)];
        for (x, y) in [("a", "b"), ("b", "a")] {
            let found = answer(&sandbox, &format!("diff --format json {x}.aft {y}.aft"));
            assert!(found["alike"].is_object(), "{to}: {found}");
            assert_eq!(found["same"], expected.is_none(), "{to}: {found}");
            if let Some(expected) = expected {
                let side = if y == "b" { "b" } else { "a" };
                assert_eq!(found["first"][side]["operator"], expected, "{to}: {found}");
            }
            let outputs = found["outputs"].as_array().unwrap();
            assert_eq!(
                outputs.is_empty(),
                put_out[0] == put_out[1],
                "{to}: {found}"
            );
            for question in found["questions"].as_array().unwrap() {
                let words = question.as_str().unwrap();
                sandbox.ok(words.strip_prefix("afterimage ").unwrap());
            }
            sandbox.ok(&format!("diff {x}.aft {y}.aft"));
        }
    }
}

/// The named slices are shown as their commands show them, for programs that are alike and for
/// others.
#[test]
fn the_slices_behind_a_difference_are_shown() {
    let sandbox = Sandbox::new();
    sandbox.wasm("o0.wasm", UNOPTIMISED);
    sandbox.wasm("good.wasm", OPTIMISED);
    sandbox.wasm("bad.wasm", &OPTIMISED.replace("i32.mul", "i32.shl"));
    for name in ["o0", "good", "bad"] {
        sandbox.ok(&format!("record -o {name}.aft {name}.wasm"));
    }
    for pair in ["good.aft bad.aft", "o0.aft bad.aft"] {
        let told = sandbox.ok(&format!("diff {pair} --slice")).stdout;
        let commands = told.lines().map(str::trim);
        let commands = commands.filter_map(|line| line.strip_prefix("afterimage slice "));
        let commands = Vec::from_iter(commands);
        assert!(!commands.is_empty(), "{told}");
        for command in commands {
            let slice = sandbox.ok(&format!("slice {command} --limit 20")).stdout;
            assert!(told.contains(&slice), "{command}:\n{slice}\n{told}");
        }
    }
    let same = sandbox.run("diff good.aft good.aft --slice");
    assert!(same.stderr.contains("no difference between"), "{same:?}");
    sandbox.refused(
        "diff good.aft bad.aft --slice --format json",
        125,
        &["--slice"],
    );
}
