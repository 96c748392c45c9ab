//! `diff` names values that separate failing executions from passing executions.

use serde_json::{Value, json};

use crate::common::Sandbox;

/// `scaled` is wrong for numbers above 40. It returns a negative number, which has no other effect
/// until the end.
const PROGRAM: &str = r#"(module
  (memory (export "memory") 1)
  (func $scaled (param $n i32) (result i32)
    (i32.mul
      (local.get $n)
      (i32.sub (i32.const 3) (i32.shl (i32.gt_s (local.get $n) (i32.const 40)) (i32.const 2)))))
  (func (export "run") (param $n i32)
    (i32.store (i32.const 8) (call $scaled (local.get $n)))
    (i32.store (i32.const 12) (i32.add (local.get $n) (i32.const 1)))
    (if (i32.lt_s (i32.load (i32.const 8)) (i32.const 0)) (then unreachable))))"#;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.wasm("a.wasm", PROGRAM);
    for n in [3, 17, 40, 41, 60] {
        sandbox.run(&format!("record -o {n}.aft --invoke run a.wasm {n}"));
    }
    sandbox
}

#[test]
fn the_values_of_failing_executions_are_ranked() {
    let sandbox = sandbox();
    let ran = sandbox.ok("diff --format json --pass 3.aft 17.aft 40.aft --fail 41.aft 60.aft");
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (&found["failing"], &found["passing"]),
        (&json!(2), &json!(3))
    );
    let values = found["values"].as_array().unwrap();
    let of = |operator: &str| {
        let found = values.iter().find(|value| value["operator"] == operator);
        found.unwrap_or_else(|| panic!("{operator} is not there: {values:#?}"))
    };
    for (operator, predicate, than) in [
        ("i32.mul", "negative", Value::Null),
        ("i32.sub", "negative", Value::Null),
        ("i32.gt_s", "positive", Value::Null),
        // In every statement that n passes through, its value is larger than in any passing
        // execution.
        ("i32.add", "above", json!(41)),
    ] {
        let row = of(operator);
        assert_eq!(
            (&row["predicate"], &row["than"]),
            (&json!(predicate), &than),
            "{row}"
        );
        assert_eq!(
            (&row["failing"], &row["passing"], &row["score"]),
            (&json!(2), &json!(0), &json!(1.0)),
            "{row}"
        );
        assert_eq!(row["passing_executed"], 3, "{row}");
    }
    // Constants, and values that are the same in all executions, separate nothing.
    assert!(
        values
            .iter()
            .all(|value| value["score"].as_f64() > Some(0.0))
    );
}

#[test]
fn people_are_told_in_words() {
    let sandbox = sandbox();
    let ran = sandbox.ok("diff --color never --pass 3.aft 40.aft --fail 41.aft");
    for expected in [
        "no lines are known",
        "gave a value in every failing execution that it never gave in a passing one",
        "< 0",
        "i32.mul",
        "holds",
    ] {
        assert!(ran.stdout.contains(expected), "{expected}: {}", ran.stdout);
    }
    let words = "diff --pass 3.aft 40.aft --fail 41.aft";
    let all = sandbox.ok(&format!("{words} --format json")).stdout;
    let all: Value = serde_json::from_str(&all).unwrap();
    let ranked = all["values"].as_array().unwrap().len();
    let some = sandbox.ok(&format!("{words} --limit 1")).stdout;
    let told = format!(
        "shown: 1 of {ranked} statements ranked, only the first of each line; --format json has all"
    );
    assert!(some.contains(&told), "{told}: {some}");
    assert!(!ran.stdout.contains("shown: "), "{}", ran.stdout);
    let refused = sandbox.run("diff --no-values --pass 3.aft --fail 41.aft");
    assert_ne!(refused.code, Some(0));
    assert!(
        refused.stderr.contains("compile it with -g"),
        "{}",
        refused.stderr
    );
}
