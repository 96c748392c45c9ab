//! Compares the answers of `diff` with the two runs, written out in full and compared line by line.

use serde_json::Value;

use crate::common::Sandbox;

/// A program that reads the number and the size of its arguments, and uses them.
fn program(body: &str) -> String {
    format!(
        r#"(module
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (global $g (mut i32) (i32.const 0))
  (type $unary (func (param i32) (result i32)))
  (table funcref (elem $double $half))
  (func $double (type $unary) (i32.add (local.get 0) (local.get 0)))
  (func $half (type $unary) (i32.div_u (local.get 0) (i32.const 2)))
  (func $fall (param $n i32) (result i32)
    (if (result i32) (local.get $n)
      (then (i32.add (i32.const 1) (call $fall (i32.sub (local.get $n) (i32.const 1)))))
      (else (i32.const 0))))
  (func $start (export "_start") (local $n i32) (local $bytes i32)
    (drop (call $sizes (i32.const 0) (i32.const 4)))
    (local.set $n (i32.load (i32.const 0)))
    (local.set $bytes (i32.load (i32.const 4)))
    {body}))"#
    )
}

const BODIES: [&str; 6] = [
    // Only a value differs.
    "(global.set $g (i32.mul (local.get $n) (i32.const 3)))",
    // The number of iterations differs.
    "(loop $again
       (global.set $g (i32.add (global.get $g) (local.get $n)))
       (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))",
    // The depth of recursion differs.
    "(global.set $g (call $fall (local.get $n)))",
    // A different function is called through a table.
    "(global.set $g (call_indirect (type $unary) (local.get $bytes) (i32.and (local.get $n) (i32.const 1))))",
    // An address differs, but the values are the same.
    "(global.set $g (i32.load (i32.shl (local.get $n) (i32.const 4))))",
    // One of the runs traps.
    "(global.set $g (i32.div_u (local.get $bytes) (i32.sub (local.get $n) (i32.const 2))))",
];

const ARGUMENTS: [&[&str]; 5] = [&[], &["a"], &["ab"], &["a", "b"], &["a", "b"]];

fn lines(sandbox: &Sandbox, level: &str, file: &str) -> Vec<Value> {
    let ran = sandbox.ok(&format!(
        "trace --level {level} --format json --limit all {file}"
    ));
    let lines = ran.stdout.lines().skip(1);
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn first_different(a: &[Value], b: &[Value]) -> Option<(Value, Value)> {
    let longer = a.len().max(b.len());
    let at = |all: &[Value], i: usize| all.get(i).cloned().unwrap_or(Value::Null);
    let mut pairs = (0..longer).map(|i| (at(a, i), at(b, i)));
    pairs.find(|(x, y)| x != y)
}

#[test]
fn the_first_difference_is_that_of_the_two_traces() {
    for body in BODIES {
        let sandbox = Sandbox::new();
        sandbox.wasm("m.wasm", &program(body));
        let mut traces = Vec::new();
        for (i, arguments) in ARGUMENTS.into_iter().enumerate() {
            let file = format!("{i}.aft");
            sandbox.run(&format!("record -o {file} m.wasm {}", arguments.join(" ")));
            let statements = lines(&sandbox, "statement", &file);
            let blocks = lines(&sandbox, "block", &file);
            traces.push((statements, blocks));
        }
        for (i, (statements, blocks)) in traces.iter().enumerate() {
            for (j, (others, other_blocks)) in traces.iter().enumerate() {
                let ran = sandbox.ok(&format!("diff --format json {i}.aft {j}.aft"));
                let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
                let first = &answer["first"];
                // The bytes that the host writes are not in the trace, but later reads show them.
                if !first["bytes"].is_null() {
                    assert_eq!(first["a"]["kind"], "host write", "{body}");
                    assert_ne!(ARGUMENTS[i], ARGUMENTS[j], "{body}");
                    let behind = first_different(statements, others);
                    let (x, y) = behind.expect("what the host wrote is read");
                    assert!(x["t"].as_u64().or(y["t"].as_u64()) >= first["a"]["t"].as_u64());
                } else {
                    let expected = first_different(statements, others);
                    assert_eq!(first.is_null(), expected.is_none(), "{body}");
                    if let Some((x, y)) = expected {
                        assert_eq!((&first["a"], &first["b"]), (&x, &y), "{body}");
                    }
                }
                let parts = first_different(blocks, other_blocks);
                let t = parts.map(|(x, y)| {
                    if x.is_null() {
                        y["t"].clone()
                    } else {
                        x["t"].clone()
                    }
                });
                assert_eq!(answer["control"]["t"], t.unwrap_or(Value::Null), "{body}");
            }
        }
    }
}
