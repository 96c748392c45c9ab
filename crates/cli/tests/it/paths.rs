//! Compares path traces and hot paths with the profile's exact counts, for programs that end in
//! every way.

use serde_json::Value;

use crate::common::Sandbox;

/// Loops, recursion, calls through a table, a tail call, an exception that is caught three calls
/// up; each export ends in a different way.
const PROGRAM: &str = r#"(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (tag $boom)
  (type $unary (func (param i32) (result i32)))
  (table funcref (elem $fib $odd))
  (func $fib (param $n i32) (result i32)
    (if (i32.lt_u (local.get $n) (i32.const 2)) (then (return (local.get $n))))
    (i32.add
      (call $fib (i32.sub (local.get $n) (i32.const 1)))
      (call $fib (i32.sub (local.get $n) (i32.const 2)))))
  (func $odd (param $n i32) (result i32)
    (if (i32.eqz (local.get $n)) (then (return (i32.const 0))))
    (return_call $even (i32.sub (local.get $n) (i32.const 1))))
  (func $even (param $n i32) (result i32)
    (if (i32.eqz (local.get $n)) (then (return (i32.const 1))))
    (return_call $odd (i32.sub (local.get $n) (i32.const 1))))
  (func $thrower (param $n i32) (result i32)
    (if (i32.eqz (local.get $n)) (then (throw $boom)))
    (call $thrower (i32.sub (local.get $n) (i32.const 1))))
  (func $catcher
    (block $caught (try_table (catch $boom $caught) (drop (call $thrower (i32.const 3))))))
  (func $work (local $i i32)
    (local.set $i (i32.const 7))
    (loop $again
      (drop (call_indirect (type $unary) (local.get $i) (i32.and (local.get $i) (i32.const 1))))
      (br_if $again (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
    (call $catcher))
  (func $stop (param $how i32)
    (if (i32.eq (local.get $how) (i32.const 1)) (then (call $proc_exit (i32.const 0))))
    (if (i32.eq (local.get $how) (i32.const 2))
      (then (drop (i32.const 5)) (drop (i32.load (i32.const -4))) (drop (i32.const 6)))))
  (func $bottomless (param i32) (result i32)
    (i32.add (i32.const 1) (call $bottomless (i32.add (local.get 0) (i32.const 1)))))
  (func (export "return") (call $work) (call $stop (i32.const 0)))
  (func (export "exit") (call $work) (call $stop (i32.const 1)) (call $work))
  (func (export "trap") (call $work) (call $stop (i32.const 2)) (call $work))
  (func (export "throw") (call $work) (drop (call $thrower (i32.const 2))))
  (func (export "overflow") (drop (call $bottomless (i32.const 0)))))"#;

fn json(sandbox: &Sandbox, words: &str) -> Value {
    let text = sandbox.ok(&format!("{words} --format json")).stdout;
    serde_json::from_str(&text).unwrap()
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is not a number"))
}

fn rows(value: &Value) -> &Vec<Value> {
    value["rows"].as_array().unwrap()
}

fn check(end: &str) {
    let sandbox = Sandbox::new();
    sandbox.write("program.wat", PROGRAM);
    sandbox.run(&format!("record --invoke {end} program.wat"));
    let profile = json(&sandbox, "profile program.aft");
    let paths = json(&sandbox, "paths program.aft");
    for (sum, of_profile) in [("blocks", "blocks"), ("calls", "entries"), ("open", "open")] {
        let sums = (&paths["totals"][sum], &profile["totals"][of_profile]);
        assert_eq!(sums.0, sums.1, "{end}: {sum}");
    }

    let hot = json(&sandbox, "paths program.aft --hot");
    for sum in ["blocks", "instructions"] {
        assert_eq!(hot["totals"][sum], profile["totals"][sum], "{end}: {sum}");
    }
    for row in rows(&profile) {
        let index = &row["function"]["index"];
        let name = row["function"]["name"].as_str().unwrap();
        let own = |row: &&Value| row["function"]["index"] == *index;
        for (field, of_profile) in [
            ("executed_blocks", "blocks"),
            ("instructions", "instructions"),
        ] {
            let sum: u64 = rows(&hot)
                .iter()
                .filter(own)
                .map(|row| number(&row[field]))
                .sum();
            assert_eq!(sum, number(&row[of_profile]), "{end}: {field} of {name}");
        }

        let traces = json(&sandbox, &format!("paths program.aft --function {index}"));
        let calls: u64 = rows(&traces).iter().map(|row| number(&row["calls"])).sum();
        assert_eq!(calls, number(&row["entries"]), "{end}: calls to {name}");
        let mut blocks = 0;
        for row in rows(&traces) {
            let length = row["blocks"].as_array().unwrap().len() as u64;
            assert_eq!(length, number(&row["length"]));
            blocks += length * number(&row["calls"]);
        }
        assert_eq!(blocks, number(&row["blocks"]), "{end}: blocks of {name}");
        let counted = rows(&paths).iter().find(own);
        let expected = counted.map_or(0, |row| number(&row["traces"]));
        assert_eq!(
            rows(&traces).len() as u64,
            expected,
            "{end}: traces of {name}"
        );

        // A block is found as often as it was executed, and the last call's graph has the blocks of
        // its trace.
        if calls > 0 {
            let found = json(&sandbox, &format!("paths program.aft --find {index}:0"));
            assert_eq!(number(&found["totals"]["count"]), calls, "{end}: {name}");
            let graph = json(
                &sandbox,
                &format!("cfg program.aft --function {index} --dynamic --call {calls}"),
            );
            let nodes = graph["nodes"].as_array().unwrap().iter();
            let executed: u64 = nodes
                .map(|node| {
                    number(&node["count"]) * node["blocks"].as_array().unwrap().len() as u64
                })
                .sum();
            assert_eq!(executed, number(&graph["blocks"]));
        }
    }
}

#[test]
fn a_run_that_returns() {
    check("return");
}

#[test]
fn a_run_that_exits() {
    check("exit");
}

#[test]
fn a_run_that_traps() {
    check("trap");
}

#[test]
fn a_run_that_ends_with_an_exception() {
    check("throw");
}

#[test]
fn a_run_that_runs_out_of_stack() {
    check("overflow");
}
