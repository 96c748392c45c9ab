//! Counts of several recordings of one program are the sums of each recording's counts.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::Sandbox;

/// Counts down, calls itself, takes branches and a table by its argument, and traps inside a call
/// if the argument is 7.
const PROGRAM: &str = r#"(module
  (func $odd (param $n i32) (result i32)
    (if (result i32) (i32.and (local.get $n) (i32.const 1))
      (then (i32.const 1))
      (else (call $table (local.get $n)))))
  (func $table (param $n i32) (result i32)
    (block $c (block $b (block $a
      (br_table $a $b $c (local.get $n)))
      (return (i32.const 5)))
      (return (i32.const 6)))
    (i32.const 7))
  (func $down (param $n i32) (result i32)
    (if (i32.eq (local.get $n) (i32.const 100)) (then unreachable))
    (if (result i32) (local.get $n)
      (then (i32.add (call $odd (local.get $n)) (call $down (i32.sub (local.get $n) (i32.const 1)))))
      (else (i32.const 0))))
  (func (export "run") (param $n i32) (result i32)
    (if (i32.eq (local.get $n) (i32.const 7)) (then (drop (call $down (i32.const 100)))))
    (call $down (local.get $n)))
  (func $never nop))"#;

const BYS: [&str; 5] = ["function", "line", "block", "edge", "instruction"];

/// A sandbox with recordings of the program, named after their arguments.
fn recorded(arguments: &[u32]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.wasm("app.wasm", PROGRAM);
    for n in arguments {
        sandbox.run(&format!("record -o {n}.aft --invoke run app.wasm {n}"));
    }
    sandbox
}

fn json(sandbox: &Sandbox, words: &str) -> Value {
    serde_json::from_str(&sandbox.ok(&format!("{words} --format json")).stdout).unwrap()
}

/// Returns all numbers of a document that add up over runs, by their subject.
fn counts(document: &Value) -> BTreeMap<String, u64> {
    const SUMMED: [&str; 5] = ["count", "instructions", "blocks", "entries", "open"];
    let mut all = BTreeMap::new();
    let mut take = |of: String, object: &Value| {
        for field in SUMMED {
            if let Some(count) = object[field].as_u64() {
                all.insert(format!("{of} {field}"), count);
            }
        }
    };
    take("totals".to_owned(), &document["totals"]);
    for row in document["rows"].as_array().unwrap() {
        let mut key = row.clone();
        let fields = key.as_object_mut().unwrap();
        SUMMED.iter().for_each(|field| drop(fields.remove(*field)));
        take(key.to_string(), row);
    }
    all
}

#[test]
fn sums_are_those_of_the_parts() {
    let sandbox = recorded(&[0, 3, 7, 20]);
    for by in BYS {
        let mut expected = BTreeMap::new();
        for n in [0, 3, 7, 20] {
            for (of, count) in counts(&json(&sandbox, &format!("profile {n}.aft --by {by}"))) {
                *expected.entry(of).or_default() += count;
            }
        }
        let document = json(
            &sandbox,
            &format!("profile 0.aft 3.aft --by {by} 7.aft 20.aft"),
        );
        assert_eq!(document["totals"]["runs"], 4);
        assert_eq!(counts(&document), expected, "{by}");
        assert!(by == "line" || expected.len() > 10);
    }
}

#[test]
fn every_format_has_the_sum() {
    let sandbox = recorded(&[3, 7]);
    let text = sandbox.ok("profile 3.aft 7.aft 7.aft");
    let first = text.stdout.lines().next().unwrap();
    assert!(first.contains(" over 3 runs; "), "{first}");
    assert!(
        first.ends_with("; the runs ended inside 4 calls"),
        "{first}"
    );
    let twice = "7.aft: given more than once; its counts are added each time";
    assert_eq!(text.stderr.matches(twice).count(), 1, "{text:?}");

    let document = json(&sandbox, "profile 3.aft 7.aft");
    let instructions = document["totals"]["instructions"].as_u64().unwrap();
    let callgrind = sandbox.ok("profile 3.aft 7.aft --format callgrind").stdout;
    assert!(callgrind.contains(&format!("\ntotals: {instructions}\n")));
    let csv = sandbox.ok("profile 3.aft 7.aft --format csv").stdout;
    let fifth = |row: &str| row.split(',').nth(5).and_then(|n| n.parse::<u64>().ok());
    assert_eq!(csv.lines().filter_map(fifth).sum::<u64>(), instructions);
    let dot = sandbox.ok("profile 3.aft 7.aft --format dot").stdout;
    assert!(dot.contains("down\\n5 calls\\n"), "{dot}");
    let annotated = sandbox
        .ok("profile 3.aft 7.aft --annotate --function down")
        .stdout;
    assert!(annotated.contains("down: 5 calls"), "{annotated}");
    // The placement of counters does not change the counts.
    let slow = json(&sandbox, "profile 3.aft 7.aft --mode slow");
    assert_eq!(counts(&slow), counts(&document));
}

#[test]
fn only_recordings_of_one_program_are_added() {
    let sandbox = recorded(&[3]);
    let other = PROGRAM.replace("i32.const 5", "i32.const 55");
    sandbox.wasm("other.wasm", &other);
    sandbox.ok("record -o other.aft --invoke run other.wasm 3");
    let parts = [
        "other.aft: a recording of a different program from 3.aft; only counts of the same program can be added up",
    ];
    sandbox.refused("profile 3.aft other.aft", 125, &parts);
    let parts = [
        "other.wasm is a program among recordings",
        "afterimage record other.wasm",
    ];
    sandbox.refused("profile 3.aft other.wasm", 125, &parts);
    let parts = ["cannot open nowhere.aft"];
    sandbox.refused("profile 3.aft nowhere.aft", 127, &parts);
    let parts = ["3.aft is a recording", "\"input.txt\""];
    sandbox.refused("profile 3.aft input.txt", 125, &parts);
    let mut damaged = sandbox.read("3.aft");
    let half = damaged.len() / 2;
    damaged.truncate(half);
    sandbox.write("half.aft", &damaged);
    sandbox.refused("profile 3.aft half.aft", 125, &["half.aft: "]);
    sandbox.refused("profile half.aft 3.aft", 125, &["half.aft: "]);
    sandbox.refused(
        "profile 3.aft 3.aft --env A=B",
        125,
        &["3.aft is a recording", "--env"],
    );
}
