//! Tests the corresponding statements, and the first statement with a different result.

use serde_json::{Value, json};

use super::{CALLS, OPTIMISED, UNOPTIMISED, answer, offset_of};
use crate::common::Sandbox;

#[test]
fn a_computation_that_is_wrong_from_the_first_execution_on_is_suspected() {
    // In both versions, the result is shifted, added, multiplied and stored. None of these values
    // could be an address.
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
    // A version with the same behaviour has no suspects.
    let found = answer(&sandbox, "diff --format json o0.aft good.aft");
    assert_eq!(found["suspects"], json!([]), "{found}");
}

#[test]
fn statements_that_cannot_be_told_apart_are_all_matches() {
    // Two consecutive additions compute exactly the same value. The second version has only one of
    // them.
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
    assert!(text.contains("chosen from several candidates: "), "{text}");
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
        assert_eq!(found["schema"], "afterimage/versions/2", "{to}: {found}");
        // The entries left out of a list are counted.
        let matched = answer(&sandbox, "match --format json a.aft b.aft");
        let first = answer(&sandbox, "match --format json --limit 1 a.aft b.aft");
        for list in ["statements", "divergences"] {
            let all = matched[list].as_array().unwrap();
            let shown = first[list].as_array().unwrap();
            assert_eq!(shown[..], all[..all.len().min(1)], "{to}: {list}");
            assert_eq!(
                first[format!("more_{list}")],
                all.len() - shown.len(),
                "{to}"
            );
        }
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
    // Every statement of the optimised version has its operator's counterpart; each operator except
    // add occurs once.
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

#[test]
fn of_calls_the_argument_and_the_execution_are_named() {
    let sandbox = Sandbox::new();
    sandbox.write("a.wat", CALLS);
    // An additional function, so that the modules are not alike.
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
    // In the second round, the second argument is 3 xor 1 = 2 in one version, and 3 or 1 = 3 in the
    // other.
    let call = all.iter().find(|one| one["b"]["operator"] == "call");
    let call = call.unwrap();
    assert_eq!(call["numbers"], json!([2, 2]));
    assert_eq!(call["arguments"], json!([2, 2]));
    assert_eq!(call["bits"], json!(["0x2", "0x3"]));
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
        // A multiplier is not an address, however large it is.
        ("0x01000193", "0x01000195", Some("i32.mul")),
        // For matching, a comparison and its negation are the same operator, and so are these two.
        ("i32.gt_s", "i32.ge_s", Some("i32.ge_s")),
        // The aligned data have a different address, so the masked bits differ.
        ("2048", "2051", None),
    ];
    for (at, (old, new, guilty)) in changes.into_iter().enumerate() {
        // An additional function, so that the modules are not alike.
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

/// Scales numbers with a function: ten in one loop and twelve in another.
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

/// The same program with the function inlined. The second copy has a different result the tenth
/// time.
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
    // The tenth execution of the second copy is the twentieth execution of the function.
    let add = all.iter().find(|one| one["b"]["operator"] == "i32.add");
    let add = add.unwrap_or_else(|| panic!("{found}"));
    assert_eq!(add["a"]["operator"], "i32.add");
    assert_eq!(add["numbers"], json!([20, 10]));
    let tenth = ((9 * 1001) ^ 21) * 3 + 7;
    let values = [tenth, tenth + 1].map(|value| format!("0x{value:x}"));
    assert_eq!(add["bits"], json!(values));
    let text = sandbox.ok("diff a.aft b.aft").stdout;
    assert!(text.contains("10 (A: 20)"), "{text}");
    for question in found["questions"].as_array().unwrap() {
        let words = question.as_str().unwrap();
        sandbox.ok(words.strip_prefix("afterimage ").unwrap());
    }
    // The same holds for a tail call, where the caller is no longer open while the callee runs.
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
        // The fourth number is 10, so the right sum is 0 + 7 + 3 + 10 = 20 (0x14).
        assert_eq!(store["bits"], json!(["0x14", "0x15"]), "{other}: {found}");
    }
}
