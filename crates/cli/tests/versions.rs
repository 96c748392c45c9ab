//! Two versions of a program: a planted miscompilation is found and named, and lines of failing executions are told from others.

mod common;

use std::collections::HashSet;

use common::Sandbox;
use serde_json::{Value, json};

/// The program as an unoptimising compiler writes it: variables live in memory, conditions are made 0 or 1 and negated.
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

/// The same, optimised: variables in locals, the function inlined, the loop turned round.
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

/// Where an operator stands whose name occurs once in a module's text.
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
        // Against the version that was compiled rightly: that is alike, so nothing has to be matched.
        let found = answer(&sandbox, "diff --format json good.aft o2.aft");
        let replaced = found["alike"]["replaced"].as_array().unwrap();
        assert_eq!(replaced.len(), 1, "{found}");
        let (offset, guilty) = (guilty, json!(format!("@0x{guilty:x}")));
        assert_eq!(replaced[0]["a"]["operator"], right);
        assert_eq!(replaced[0]["b"]["operator"], wrong);
        assert_eq!(replaced[0]["b"]["place"], guilty);
        let first = &found["first"]["b"];
        assert_eq!(first["offset"], offset);
        assert_eq!(first["t"], replaced[0]["first"]["t"]);
        assert_eq!(replaced[0]["otherwise"], wrong_executions(wrong));
        let text = sandbox.ok("diff good.aft o2.aft").stdout;
        let told = format!("@0x{offset:x} in start: {wrong} instead of {right}");
        assert!(text.contains("alike but for 1 operator"), "{text}");
        assert!(text.contains(&told), "{told}: {text}");
        // Against the unoptimised one, unless another of two shifts by the same number has no value and no neighbour in common with the right one from the first
        // execution on.
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

/// A computation that always gives the same too much or too little is shifted as addresses are; numbers that are none are named all the same.
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
    // Another function besides: these are not alike.
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
        assert_eq!(first["values"], json!(["0xb", gave]), "{first}");
    }
}

/// A function that both versions have, and that is called at the end of both.
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
    // None of what is behind it could be an address.
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

#[test]
fn a_computation_that_is_wrong_from_the_first_execution_on_is_suspected() {
    // What it gives is shifted, added to, multiplied and stored, in both versions; none of it could be an address.
    let more = |number: &str| {
        format!(
            "(i32.store8 (i32.const 96) (i32.mul (i32.add (i32.shl (i32.div_u (i32.and {number} (i32.const 63)) (i32.const 3)) (i32.const 1)) (i32.const 9)) (i32.const 5)))"
        )
    };
    let sandbox = Sandbox::new();
    let of = |program: &str, number: &str| {
        let at = program.find("    (drop (call $write").unwrap();
        format!("{}{}\n{}", &program[..at], more(number), &program[at..])
    };
    sandbox.wasm(
        "o0.wasm",
        &of(UNOPTIMISED, "(i32.load offset=8 (local.get $fp))"),
    );
    let right = of(OPTIMISED, "(local.get $x)");
    let module = wat::parse_str(right.replace("i32.div_u", "i32.rem_u")).unwrap();
    let guilty = offset_of(&module, "i32.rem_u");
    sandbox.wasm("good.wasm", &right);
    sandbox.write("o2.wasm", &module);
    for name in ["o0", "o2", "good"] {
        sandbox.ok(&format!("record -o {name}.aft {name}.wasm"));
    }
    let found = answer(&sandbox, "diff --format json o0.aft o2.aft");
    let first = &found["suspects"][0];
    assert_eq!(first["b"]["offset"], guilty, "{found}");
    assert!(first["wrong"].as_u64().unwrap() >= 3 && first["replaces"].is_null());
    // Nothing is suspected of a version that does the same.
    let found = answer(&sandbox, "diff --format json o0.aft good.aft");
    assert_eq!(found["suspects"], json!([]), "{found}");
}

#[test]
fn statements_that_cannot_be_told_apart_are_all_matches() {
    // Both additions do exactly the same, one after the other; the second version does one of them.
    let program = |body: &str| {
        format!(
            r#"(module (memory (export "memory") 1)
              (func (export "_start") (local $i i32) (local $a i32) (local $b i32)
                (loop $again
                  {body}
                  (i32.store (i32.const 64) (i32.mul (local.get $a) (i32.const 3)))
                  (i32.store (i32.const 68) (i32.mul (local.get $b) (i32.const 5)))
                  (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 7))) (i32.const 999))))))"#
        )
    };
    let add = "(i32.add (local.get $i) (i32.const 11))";
    let sandbox = Sandbox::new();
    let twice = format!("(local.set $a {add}) (local.set $b {add})");
    sandbox.wasm("a.wasm", &program(&twice));
    let once = format!("(local.set $a {add}) (local.set $b (local.get $a))");
    sandbox.wasm("b.wasm", &program(&once));
    for name in ["a", "b"] {
        sandbox.ok(&format!("record -o {name}.aft {name}.wasm"));
    }
    let found = answer(&sandbox, "match --format json a.aft b.aft");
    let mut several = 0;
    for statement in found["statements"].as_array().unwrap() {
        let own = &statement["match"];
        let likely = own["likely"].as_f64().unwrap();
        let others = own["others"].as_array().unwrap();
        let sum: f64 = others
            .iter()
            .map(|other| other["likely"].as_f64().unwrap())
            .sum();
        assert!(likely > 0.0 && likely + sum <= 1.001, "{statement}");
        several += others.len();
        if others.is_empty() {
            continue;
        }
        let offsets = [&own["a"], &others[0]["a"]].map(|a| a["offset"].as_u64().unwrap());
        assert_ne!(offsets[0], offsets[1]);
        let csv = sandbox.ok("match --format csv a.aft b.aft").stdout;
        assert!(
            csv.lines()
                .next()
                .unwrap()
                .ends_with("ground,likely,others")
        );
        let row = csv
            .lines()
            .find(|row| row.contains(&format!(",{likely},{}:", offsets[1])));
        assert!(row.is_some(), "{csv}");
    }
    assert!(several > 0, "{found}");
    let text = sandbox.ok("match --all a.aft b.aft").stdout;
    assert!(text.contains("or this one"), "{text}");
    assert!(
        text.contains("one of several, of which one was chosen: "),
        "{text}"
    );
}

/// In how many of its rounds a miscompiled version computes something else than it should from what it has.
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
    assert_eq!(found["alike"], json!({ "replaced": [], "data": data }));
    let text = sandbox.ok("diff a.aft b.aft").stdout;
    assert!(text.contains("alike but for 1 data segment"), "{text}");
    assert!(
        text.contains("data segment 0: 1 byte differs, the first at offset 0"),
        "{text}"
    );
}

/// What a program does, what of it is replaced by what, and the operator that is the first to do something else, if one does.
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

#[test]
fn programs_that_are_not_alike_are_matched() {
    let constants = |value: u32| format!("(drop (i32.const {value}))").repeat(65);
    let body = "(local.set $x (i32.const 7))";
    let many = OPTIMISED.replace(body, &format!("{}{body}", constants(1)));
    let changes = [
        (
            OPTIMISED,
            r#"(memory (export "memory") 1)"#,
            r#"(memory (export "memory") 2)"#,
        ),
        (OPTIMISED, "(local $i i32)", "(local $i i32) (local i64)"),
        (OPTIMISED, "(drop (call $write", "(nop) (drop (call $write"),
        (
            OPTIMISED,
            r#"(export "memory")"#,
            r#"(export "memory") (export "again")"#,
        ),
        (&many, "(drop (i32.const 1))", "(drop (i32.const 2))"),
    ];
    for (text, from, to) in changes {
        let sandbox = Sandbox::new();
        let other = text.replace(from, to);
        assert_ne!(text, other);
        for (name, text) in [("a", text), ("b", &other)] {
            sandbox.wasm(&format!("{name}.wasm"), text);
            sandbox.run(&format!("record -o {name}.aft {name}.wasm"));
        }
        let found = answer(&sandbox, "diff --format json a.aft b.aft");
        assert_eq!(found["schema"], "afterimage/versions/1", "{to}: {found}");
    }
}

#[test]
fn versions_that_do_the_same_have_no_divergence() {
    let sandbox = Sandbox::new();
    sandbox.wasm("o0.wasm", UNOPTIMISED);
    sandbox.wasm("o2.wasm", OPTIMISED);
    for name in ["o0", "o2"] {
        sandbox.ok(&format!("record -o {name}.aft {name}.wasm"));
    }
    let found = answer(&sandbox, "match --no-names --format json o0.aft o2.aft");
    assert_eq!(found["divergences"], json!([]));
    // Every statement of the optimised version has its operator's counterpart; there is only one of each but add.
    for statement in found["statements"].as_array().unwrap() {
        let operator = statement["operator"].as_str().unwrap();
        if [
            "i32.mul",
            "i32.xor",
            "i32.shr_u",
            "i32.lt_s",
            "i32.store8",
            "call",
        ]
        .contains(&operator)
        {
            assert_eq!(statement["match"]["a"]["operator"], operator, "{statement}");
        }
    }
    let same = answer(&sandbox, "diff --format json o0.aft o2.aft");
    assert_eq!(same["outputs"], json!([]));
}

/// Adds what it reads.
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
    // It asks for less, and what it asks with lies elsewhere.
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
            ran.stderr.contains(
                "the host did not give both runs the same: first in call 1 of the host, fd_read",
            )
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
    let said = "the runs were not given the same: the program's own name (a.wasm, b.wasm), and the arguments";
    assert!(ran.stderr.contains(said), "{ran:?}");
}

/// What it reads decides whether it traps, exits or exhausts its stack, and it prints it.
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
            let expected = match differ {
                true => json!({ "a": "returned", "b": ending }),
                false => Value::Null,
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

/// Twenty calls with two arguments, of which the second is computed otherwise in the other version.
const CALLS: &str = r#"(module
  (memory 1)
  (func $put (param i32 i32) (i32.store (local.get 0) (i32.add (local.get 1) (i32.load (local.get 0)))))
  (func (export "main") (local $i i32) (local $x i32)
    (loop $again
      (local.set $x (i32.mul (local.get $i) (i32.const 3)))
      (call $put (i32.mul (local.get $i) (i32.const 4)) (i32.xor (local.get $x) (local.get $i)))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 20))))))"#;

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
        let head = format!("they put out {put_out}; ");
        assert!(text.contains(&head), "{b}: {text}");
        assert_eq!(text.contains("may be no fault"), excused, "{b}: {text}");
        assert!(text.contains("something else is computed"), "{b}: {text}");
    }
}

#[test]
fn of_calls_the_argument_and_the_execution_are_named() {
    let sandbox = Sandbox::new();
    sandbox.write("a.wat", CALLS);
    // One function more, so that the modules are not alike.
    let other = CALLS.replace("i32.xor", "i32.or");
    sandbox.write("b.wat", other.replace("(func $put", "(func) (func $put"));
    for name in ["a", "b"] {
        sandbox.ok(&format!(
            "record --lens paths --invoke main -o {name}.aft {name}.wat"
        ));
    }
    let found: Value =
        serde_json::from_str(&sandbox.ok("diff a.aft b.aft --format json").stdout).unwrap();
    let all = found["divergences"].as_array().unwrap();
    // In the second round the arguments are 4 and, of 3 and 1, 2 or 3.
    let call = all.iter().find(|one| one["b"]["operator"] == "call");
    let call = call.unwrap();
    assert_eq!(call["numbers"], json!([2, 2]));
    assert_eq!(call["arguments"], json!([2, 2]));
    assert_eq!(call["values"], json!(["0x2", "0x3"]));
    for question in found["questions"].as_array().unwrap() {
        let words = question.as_str().unwrap();
        sandbox.ok(words.strip_prefix("afterimage ").unwrap());
    }
    let text = sandbox.ok("diff a.aft b.aft").stdout;
    assert!(text.contains("argument 2: 2  argument 2: 3"), "{text}");
}

/// Hashes numbers, counts those beyond a bound, and aligns an address.
const HASHED: &str = r#"(module
  (memory (export "memory") 1)
  (func $hash (param $h i32) (param $i i32) (result i32)
    (i32.mul (i32.xor (local.get $h) (local.get $i)) (i32.const 0x01000193)))
  (func $beyond (param $i i32) (result i32)
    (i32.gt_s (local.get $i) (i32.const 9)))
  (func $aligned (param $at i32) (result i32)
    (i32.and (local.get $at) (i32.const 7)))
  (func (export "main") (local $i i32) (local $h i32) (local $n i32)
    (local.set $h (i32.const 7))
    (loop $again
      (local.set $h (call $hash (local.get $h) (local.get $i)))
      (local.set $n (i32.add (local.get $n) (call $beyond (local.get $i))))
      (i32.store (i32.mul (local.get $i) (i32.const 4)) (local.get $h))
      (i32.store offset=200 (i32.mul (local.get $i) (i32.const 4)) (local.get $n))
      (i32.store8 offset=400 (local.get $i) (call $aligned (i32.add (local.get $i) (i32.const 2048))))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 20))))))"#;

#[test]
fn what_took_something_else_computes_nothing_else() {
    let sandbox = Sandbox::new();
    sandbox.wasm("a.wasm", HASHED);
    sandbox.ok("record --lens paths --invoke main -o a.aft a.wasm");
    let changes = [
        // A multiplier is no address, however large it is.
        ("0x01000193", "0x01000195", Some("i32.mul")),
        // Both are one operator to matching, as a comparison and its negation are.
        ("i32.gt_s", "i32.ge_s", Some("i32.ge_s")),
        // What is aligned lies elsewhere, and so differ the bits that are masked.
        ("2048", "2051", None),
    ];
    for (at, (old, new, guilty)) in changes.into_iter().enumerate() {
        // One function more, so that the modules are not alike.
        let other = HASHED.replace("(func $hash", "(func) (func $hash");
        assert!(other.contains(old));
        let name = format!("b{at}");
        sandbox.wasm(&format!("{name}.wasm"), &other.replace(old, new));
        sandbox.ok(&format!(
            "record --lens paths --invoke main -o {name}.aft {name}.wasm"
        ));
        let found = answer(&sandbox, &format!("diff --format json a.aft {name}.aft"));
        let all = found["divergences"].as_array().unwrap();
        assert!(!all.is_empty(), "{found}");
        let computed = all.iter().filter(|one| one["origin"] == "computed");
        let computed = Vec::from_iter(computed.map(|one| one["b"]["operator"].as_str().unwrap()));
        assert_eq!(computed, Vec::from_iter(guilty), "{new}: {found}");
    }
}

/// Scales numbers, ten in one loop and twelve in another, by a function.
const CALLED_TWICE: &str = r#"(module
  (memory (export "memory") 1)
  (func $scale (param $x i32) (result i32) (local $fp i32)
    (local.set $fp (i32.const 4000))
    (i32.store offset=12 (local.get $fp) (local.get $x))
    (i32.add (i32.mul (i32.load offset=12 (local.get $fp)) (i32.const 3)) (i32.const 7)))
  (func (export "main") (local $i i32)
    (loop $again
      (i32.store (i32.mul (local.get $i) (i32.const 4))
        (call $scale (i32.shl (local.get $i) (i32.const 3))))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 10))))
    (local.set $i (i32.const 0))
    (loop $again
      (i32.store offset=1000 (i32.mul (local.get $i) (i32.const 8))
        (call $scale (i32.xor (i32.mul (local.get $i) (i32.const 1001)) (i32.const 21))))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 12))))))"#;

/// The same, inlined; the second copy computes something else the tenth time.
const INLINED_TWICE: &str = r#"(module
  (memory (export "memory") 1)
  (func (export "main") (local $i i32)
    (loop $again
      (i32.store (i32.mul (local.get $i) (i32.const 4))
        (i32.add (i32.mul (i32.shl (local.get $i) (i32.const 3)) (i32.const 3)) (i32.const 7)))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 10))))
    (local.set $i (i32.const 0))
    (loop $again
      (i32.store offset=1000 (i32.mul (local.get $i) (i32.const 8))
        (i32.add
          (i32.mul (i32.xor (i32.mul (local.get $i) (i32.const 1001)) (i32.const 21)) (i32.const 3))
          (i32.add (i32.const 7) (i32.eq (local.get $i) (i32.const 9)))))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 12))))))"#;

#[test]
fn executions_of_what_was_inlined_are_counted_over_all_calls() {
    let sandbox = Sandbox::new();
    sandbox.write("a.wat", CALLED_TWICE);
    sandbox.write("b.wat", INLINED_TWICE);
    for name in ["a", "b"] {
        sandbox.ok(&format!(
            "record --lens paths --invoke main -o {name}.aft {name}.wat"
        ));
    }
    let found = answer(&sandbox, "diff a.aft b.aft --format json");
    let all = found["divergences"].as_array().unwrap();
    // The tenth of the second copy is the twentieth of the function.
    let add = all.iter().find(|one| one["b"]["operator"] == "i32.add");
    let add = add.unwrap_or_else(|| panic!("{found}"));
    assert_eq!(add["a"]["operator"], "i32.add");
    assert_eq!(add["numbers"], json!([20, 10]));
    let tenth = ((9 * 1001) ^ 21) * 3 + 7;
    let values = [tenth, tenth + 1].map(|value| format!("0x{value:x}"));
    assert_eq!(add["values"], json!(values));
    let text = sandbox.ok("diff a.aft b.aft").stdout;
    assert!(text.contains("10 (A: 20)"), "{text}");
    for question in found["questions"].as_array().unwrap() {
        let words = question.as_str().unwrap();
        sandbox.ok(words.strip_prefix("afterimage ").unwrap());
    }
    // By a tail call, too: there the caller is gone, and what it calls stands by itself.
    let tail = CALLED_TWICE.replace(
        "  (func (export",
        "  (func $then (param i32) (result i32) (return_call $scale (local.get 0)))\n  (func (export",
    );
    sandbox.write("tail.wat", tail.replace("(call $scale", "(call $then"));
    sandbox.ok("record --lens paths --invoke main -o tail.aft tail.wat");
    let found = answer(&sandbox, "match tail.aft b.aft --format json");
    let statements = found["statements"].as_array().unwrap();
    let multiplied = statements
        .iter()
        .filter(|one| one["operator"] == "i32.mul" && one["match"]["a"]["operator"] == "i32.mul");
    assert!(multiplied.count() >= 2, "{found}");
}

/// Adds numbers up, and reads data.
const BALANCE: &str = r#"(module
  (memory (export "memory") 1)
  (data (i32.const 2048) "alpha")
  (data (i32.const 2064) "gamma")
  (func $head (result i32)
    (i32.load8_u (i32.const 2048)))
  (func $second (result i32)
    (i32.mul (i32.load8_u (i32.const 2065)) (i32.const 2)))
  (func $add (param $v i32)
    (i32.store (i32.const 1024)
      (i32.add (i32.load (i32.const 1024)) (local.get $v))))
  (func (export "main") (local $i i32) (local $t i32)
    (local.set $t (i32.add (call $head) (call $second)))
    (loop $again
      (call $add (i32.rem_u (i32.mul (local.get $i) (i32.const 7)) (i32.const 11)))
      (i32.store (i32.const 1028) (i32.add (local.get $t) (i32.load (i32.const 1024))))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 12))))))"#;

#[test]
fn a_number_that_differs_by_as_much_as_data_moved_is_no_address() {
    let sandbox = Sandbox::new();
    let wrong = BALANCE.replace(
        "(local.get $v)",
        "(i32.add (local.get $v) (i32.gt_s (local.get $v) (i32.const 9)))",
    );
    let mut moved = wrong.clone();
    for (from, to) in [("2065", "2066"), ("2064", "2065"), ("2048", "2049")] {
        moved = moved.replace(from, to);
    }
    for (name, text) in [("a", BALANCE), ("b", &wrong), ("c", &moved)] {
        sandbox.wasm(&format!("{name}.wasm"), text);
        sandbox.ok(&format!(
            "record --lens paths --invoke main -o {name}.aft {name}.wasm"
        ));
    }
    for other in ["b", "c"] {
        let found = answer(&sandbox, &format!("diff --format json a.aft {other}.aft"));
        let all = found["divergences"].as_array().unwrap();
        let store = all.iter().find(|one| one["b"]["operator"] == "i32.store");
        let store = store.unwrap_or_else(|| panic!("{other}: {found}"));
        // The fourth number is 10; with it, there are 0 + 7 + 3 + 10.
        assert_eq!(store["values"], json!(["0x14", "0x15"]), "{other}: {found}");
    }
}
