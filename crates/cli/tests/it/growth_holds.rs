//! `profile A.aft --compare B.aft` shows the counts of each recording alone, and their ratios.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::Sandbox;

/// Calls functions whose costs are constant, linear and quadratic in its argument. It calls one
/// function only if the argument is at least 200.
const PROGRAM: &str = r#"(module
  (func $constant (param $n i32) nop)
  (func $linear (param $n i32)
    (loop $again
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $again (local.get $n))))
  (func $quadratic (param $n i32) (local $i i32)
    (local.set $i (local.get $n))
    (loop $again
      (call $linear_inside (local.get $n))
      (local.set $i (i32.sub (local.get $i) (i32.const 1)))
      (br_if $again (local.get $i))))
  (func $linear_inside (param $n i32)
    (loop $again
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $again (local.get $n))))
  (func $late (param $n i32) nop)
  (func $early (param $n i32) nop)
  (func $never nop)
  (func (export "run") (param $n i32)
    (call $constant (local.get $n))
    (call $linear (local.get $n))
    (call $quadratic (local.get $n))
    (if (i32.ge_u (local.get $n) (i32.const 200))
      (then (call $late (local.get $n)))
      (else (call $early (local.get $n))))))"#;

fn recorded() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.wasm("app.wasm", PROGRAM);
    for n in [100, 200] {
        sandbox.ok(&format!("record -o {n}.aft --invoke run app.wasm {n}"));
    }
    sandbox
}

fn rows(sandbox: &Sandbox, words: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(&sandbox.ok(words).stdout).unwrap();
    document["rows"].as_array().unwrap().clone()
}

fn name(row: &Value) -> String {
    let name = row["name"].as_str().or(row["function"]["name"].as_str());
    name.unwrap().to_owned()
}

/// Returns the work of each function, by name.
fn functions(sandbox: &Sandbox, recording: &str) -> BTreeMap<String, (u64, u64)> {
    let rows = rows(sandbox, &format!("profile {recording} --format json"));
    let counts = |row: &Value| {
        let [entries, instructions] = ["entries", "instructions"].map(|of| row[of].as_u64());
        (name(row), (entries.unwrap(), instructions.unwrap()))
    };
    rows.iter().map(counts).collect()
}

#[test]
fn counts_are_those_of_each_and_the_order_is_by_ratio() {
    let sandbox = recorded();
    let [a, b] = ["100.aft", "200.aft"].map(|recording| functions(&sandbox, recording));
    let rows = rows(&sandbox, "profile 100.aft --compare 200.aft --format json");
    for row in &rows {
        let name = name(row);
        for (side, counts) in [("a", a[&name]), ("b", b[&name])] {
            assert_eq!(row[side]["entries"], counts.0, "{name}");
            assert_eq!(row[side]["instructions"], counts.1, "{name}");
        }
        let expected = (a[&name].1 > 0).then(|| b[&name].1 as f64 / a[&name].1 as f64);
        assert_eq!(row["ratio"].as_f64(), expected, "{name}");
    }
    let order = Vec::from_iter(rows.iter().map(name));
    let expected = [
        "late",
        "linear_inside",
        "linear",
        "quadratic",
        "constant",
        "run",
        "early",
    ];
    let quadratic = &rows[1];
    assert!(
        (quadratic["ratio"].as_f64().unwrap() - 4.0).abs() < 0.01,
        "{quadratic}"
    );
    let mut same = order.clone();
    same.sort();
    let mut sorted = Vec::from(expected);
    sorted.sort_unstable();
    assert_eq!(same, sorted);
    assert_eq!(order[..2], expected[..2]);
    assert_eq!(order.last().unwrap(), "early");
    let ratios = rows.iter().filter_map(|row| row["ratio"].as_f64());
    assert!(ratios.is_sorted_by(|a, b| a >= b), "{rows:?}");
}

#[test]
fn what_is_new_or_gone_has_a_word_and_no_infinity() {
    let sandbox = recorded();
    let text = sandbox.ok("profile 100.aft --compare 200.aft").stdout;
    let row = |name: &str| {
        let row = text.lines().find(|row| row.ends_with(&format!(" {name}")));
        row.unwrap_or_else(|| panic!("{text}"))
            .split_whitespace()
            .nth(2)
            .unwrap()
    };
    assert_eq!(row("late"), "new");
    assert_eq!(row("early"), "gone");
    assert_eq!(row("constant"), "1.00");
    assert_eq!(row("linear"), "2.00");
    assert!(["3.99", "4.00"].contains(&row("linear_inside")), "{text}");
    assert!(text.contains("\n1 function ran in neither\n"), "{text}");
    assert!(!text.contains("inf"), "{text}");
    let csv = sandbox
        .ok("profile 100.aft --compare 200.aft --format csv --limit 1")
        .stdout;
    assert!(csv.contains("\r\nlate,0,1,,0,1,"), "{csv}");
    let sorted = sandbox
        .ok("profile 100.aft --compare 200.aft --sort name --format csv")
        .stdout;
    let names = sorted
        .lines()
        .skip(1)
        .map(|row| row.split(',').next().unwrap());
    assert!(names.is_sorted(), "{sorted}");
}

#[test]
fn several_recordings_are_added_up_on_both_sides() {
    let sandbox = recorded();
    let document =
        sandbox.ok("profile 100.aft 100.aft --compare 200.aft --compare 200.aft --format json");
    let document: Value = serde_json::from_str(&document.stdout).unwrap();
    for (side, recording) in [("a", "100.aft"), ("b", "200.aft")] {
        assert_eq!(document[side]["totals"]["runs"], 2);
        let one = functions(&sandbox, recording);
        let instructions = one
            .values()
            .map(|(_, instructions)| instructions)
            .sum::<u64>();
        assert_eq!(document[side]["totals"]["instructions"], 2 * instructions);
    }
    let itself = sandbox.ok("profile 100.aft --compare 100.aft");
    assert!(
        itself.stderr.contains("100.aft: compared with itself"),
        "{itself:?}"
    );
    assert!(
        itself
            .stdout
            .contains("B executed 1.00 times the instructions of A")
    );
}

#[test]
fn functions_of_different_programs_are_matched_by_name() {
    let sandbox = recorded();
    // The functions have different numbers, and one has a different name.
    let other = PROGRAM
        .replace("(func $never nop)", "")
        .replace("(module", "(module (func $never nop)");
    sandbox.wasm("other.wasm", &other.replace("$early", "$soon"));
    sandbox.ok("record -o other.aft --invoke run other.wasm 100");
    let rows = rows(
        &sandbox,
        "profile 100.aft --compare other.aft --format json",
    );
    let [a, b] = ["100.aft", "other.aft"].map(|recording| functions(&sandbox, recording));
    for row in &rows {
        let name = name(row);
        for (side, known) in [("a", &a), ("b", &b)] {
            let counts = known.get(&name).map(|counts| counts.1);
            assert_eq!(row[side]["instructions"].as_u64(), counts, "{name}");
        }
    }
    let text = sandbox
        .ok("profile 100.aft --compare other.aft --function early")
        .stdout;
    assert!(text.contains("functions are matched by name"), "{text}");
    assert!(text.contains("gone"), "{text}");
    let parts = [
        "100.aft and other.aft are recordings of different programs, whose lines cannot be matched by number",
        "afterimage diff 100.aft other.aft",
    ];
    sandbox.refused("profile 100.aft --compare other.aft --by line", 125, &parts);
    let parts = ["no function is called \"nobody\""];
    sandbox.refused(
        "profile 100.aft --compare other.aft --function nobody",
        125,
        &parts,
    );

    sandbox.wasm("strange.wasm", r#"(module (func (export "go") nop))"#);
    sandbox.ok("record -o strange.aft --invoke go strange.wasm");
    let parts = ["100.aft and strange.aft have no function name in common"];
    sandbox.refused("profile 100.aft --compare strange.aft", 125, &parts);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let sandbox = recorded();
    let compare = "profile 100.aft --compare 200.aft";
    for (words, part) in [
        ("--by block", "--by function or --by line"),
        ("--format lcov", "--compare cannot write lcov"),
        ("--format html", "--compare cannot write html"),
        ("--limit 0x", "--limit"),
    ] {
        let ran = sandbox.run(&format!("{compare} {words}"));
        assert_eq!(ran.code, Some(125), "{ran:?}");
        assert!(ran.stderr.contains(part), "{ran:?}");
    }
    sandbox.refused(
        "profile 100.aft --compare nowhere.aft",
        127,
        &["cannot open nowhere.aft"],
    );
    let parts = ["app.wasm is not a recording"];
    sandbox.refused("profile 100.aft --compare app.wasm", 125, &parts);
    let text = sandbox.ok(&format!("{compare} --by line")).stdout;
    assert!(text.contains("no source line is known"), "{text}");
}
