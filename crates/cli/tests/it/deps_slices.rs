//! The transitive closure of direct dependences equals the slice, execution by execution. The two
//! computations share little code.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::Sandbox;

/// A program with all kinds of dependences that slices and direct dependences report in the same
/// way. Slices treat a table as a whole, and follow a copy byte by byte, while direct dependences
/// list all its parts. In direct dependences, a reference to an exception represents its values,
/// not the throw.
pub const PROGRAM: &str = r#"(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1 4)
  (tag $t (param i32))
  (tag $u (param i32 i32))
  (global $g (mut i32) (i32.const 5))
  (table funcref (elem $even $odd))
  (type $unary (func (param i32) (result i32)))
  (func $even (param $n i32) (result i32)
    (if (result i32) (local.get $n)
      (then (return_call $odd (i32.sub (local.get $n) (i32.const 1))))
      (else (i32.const 1))))
  (func $odd (param $n i32) (result i32)
    (if (result i32) (local.get $n)
      (then (return_call_indirect (type $unary) (i32.sub (local.get $n) (i32.const 1)) (i32.const 0)))
      (else (global.get $g))))
  (func $maybe (param $n i32) (result i32)
    (if (i32.and (local.get $n) (i32.const 1)) (then
      (if (i32.and (local.get $n) (i32.const 2))
        (then (throw $t (i32.mul (local.get $n) (i32.const 3))))
        (else (throw $u (local.get $n) (i32.add (local.get $n) (global.get $g)))))))
    (local.get $n))
  (func $through (param $n i32) (result i32) (i32.add (call $maybe (local.get $n)) (i32.const 1)))
  (func $try (param $n i32) (result i32)
    (block $h (result i32)
      (block $h2 (result i32 i32)
        (try_table (catch $t $h) (catch $u $h2)
          (global.set $g (i32.add (global.get $g) (i32.const 1)))
          (return (call $through (local.get $n))))
        unreachable)
      (i32.sub)))
  (func $own (param $n i32) (result i32)
    (try_table (result i32) (catch $t 0)
      (if (i32.eq (local.get $n) (i32.const 2)) (then (throw $t (global.get $g))))
      (i32.shl (local.get $n) (i32.const 1))))
  (func $switch (param $n i32) (result i32)
    (block $c (block $b (block $a (br_table $a $b $c (local.get $n)))
      (return (i32.const 10)))
      (global.set $g (i32.add (global.get $g) (local.get $n))))
    (global.get $g))
  (func (export "_start") (local $i i32) (local $sum i32)
    (loop $again
      (i32.store (i32.shl (local.get $i) (i32.const 2))
        (i32.add (local.get $i) (i32.load (i32.shl (local.get $i) (i32.const 1)))))
      (i32.store8 (i32.const 99) (local.get $i))
      (memory.copy (i32.const 96) (i32.shl (local.get $i) (i32.const 2)) (i32.const 6))
      (local.set $sum (i32.add (local.get $sum) (call $try (local.get $i))))
      (local.set $sum (i32.add (local.get $sum) (call $own (local.get $i))))
      (local.set $sum (i32.add (local.get $sum) (call $switch (i32.rem_u (local.get $i) (i32.const 4)))))
      (if (i32.eqz (i32.and (local.get $i) (i32.const 1))) (then
        (drop (call $random (i32.const 100) (i32.and (local.get $sum) (i32.const 3))))
        (memory.fill (i32.const 40) (local.get $i) (i32.const 5))
        (i32.store (i32.const 64) (local.get $sum))
        (i64.store (i32.const 80) (i64.const 0x400000040))
        (local.set $sum (i32.sub (local.get $sum) (call $write (i32.const 9) (i32.const 80) (i32.const 1) (i32.const 120))))
        (local.set $sum (i32.add (local.get $sum) (call $even (local.get $i))))
        (local.set $sum (i32.add (local.get $sum) (memory.grow (i32.const 1))))))
      (local.set $sum (i32.xor (local.get $sum) (select (i32.load (i32.const 97)) (memory.size) (i32.and (local.get $i) (i32.const 1)))))
      (br_if $again (i32.lt_u
        (local.tee $i (i32.add (local.get $i) (i32.const 1)))
        (i32.const 6))))
    (global.set $g (i32.add (local.get $sum) (i32.load (i32.const 97))))
    (drop (i32.div_u (global.get $g) (i32.sub (local.get $sum) (local.get $sum))))))"#;

#[test]
fn what_direct_dependences_lead_to_is_the_slice() {
    let sandbox = Sandbox::new();
    sandbox.wasm("a.wasm", PROGRAM);
    sandbox.run("record --lens full -o run.aft a.wasm");
    let trace = sandbox.ok("trace run.aft --level statement --format json");
    let mut executed: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for line in trace.stdout.lines() {
        let step: serde_json::Value = serde_json::from_str(line).unwrap();
        if let (Some(offset), Some(time)) = (step["offset"].as_u64(), step["t"].as_u64()) {
            executed.entry(offset).or_default().insert(time);
        }
    }
    let all = executed
        .iter()
        .map(|(offset, times)| (1..=times.len()).map(move |k| (*offset, k)));
    let asked = Vec::from_iter(all.flatten());
    // Test only some of the possible executions.
    let every = 3;
    let mut wrong: Vec<String> = Vec::new();
    assert!(asked.len() > 300, "{}", asked.len());
    for (offset, number) in asked.into_iter().step_by(every) {
        for (deps, slice) in [
            ("--data", "--data-only"),
            ("--control", "--control-only"),
            ("", ""),
        ] {
            let at = format!("@{offset:#x}#{number}");
            let told = sandbox.run(&format!(
                "deps run.aft --at {at} --depth 1000 --limit 1000 {deps}"
            ));
            if told.stderr.contains("has no statement") {
                continue;
            }
            assert_eq!(told.code, Some(0), "{told:?}");
            let mut reached = BTreeSet::new();
            for line in told.stdout.lines() {
                let Some((_, from)) = line.split_once(" t=") else {
                    continue;
                };
                let mut words = from.split_whitespace();
                let time = words.next().unwrap().to_owned();
                if let Some(offset) = words.next().and_then(|word| word.strip_prefix("@0x")) {
                    reached.insert((u64::from_str_radix(offset, 16).unwrap(), time));
                }
            }
            let mut closed: BTreeMap<u64, u64> = BTreeMap::new();
            for (offset, _) in reached {
                *closed.entry(offset).or_default() += 1;
            }
            let sliced = sandbox.ok(&format!(
                "slice run.aft --at {at} {slice} --by statement --format csv"
            ));
            let rows = sliced.stdout.lines().skip(1);
            let rows = rows.map(|row| {
                let cells = Vec::from_iter(row.split(','));
                (cells[3].parse().unwrap(), cells[6].parse().unwrap())
            });
            let sliced: BTreeMap<u64, u64> = rows.collect();
            let differ = closed.keys().chain(sliced.keys());
            let differ = differ.filter(|key| closed.get(key) != sliced.get(key));
            let differ =
                differ.map(|key| format!("@{key:#x}: {:?} {:?}", closed.get(key), sliced.get(key)));
            let differ = BTreeSet::from_iter(differ);
            if !differ.is_empty() {
                wrong.push(format!("{at} {deps}: offset, deps, slice: {differ:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
