//! Compares the answers of `trace` and `calls` with each other, with the profile, and with the
//! whole trace, read line by line.

use std::collections::BTreeMap;

use serde_json::Value;
use wat::{GenerateDwarf, Parser};

use crate::common::Sandbox;

/// A program with calls, recursion, calls through a table, tail calls, loops, and a caught
/// exception. It may end in a trap.
const PROGRAM: &str = r#"(module
  (tag $e (param i32))
  (table funcref (elem $fib $twice))
  (type $t (func (param i32) (result i32)))
  (func $fib (param $n i32) (result i32)
    (if (i32.lt_u (local.get $n) (i32.const 2))
      (then (return (local.get $n))))
    (i32.add
      (call $fib (i32.sub (local.get $n) (i32.const 1)))
      (call $fib (i32.sub (local.get $n) (i32.const 2)))))
  (func $twice (param $n i32) (result i32)
    (return_call $fib (i32.shl (local.get $n) (i32.const 1))))
  (func $spin (param $n i32)
    (loop $again
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (if (i32.and (local.get $n) (i32.const 1))
        (then nop)
        (else (call $throws (local.get $n))))
      (br_if $again (local.get $n))))
  (func $throws (param $n i32)
    (block $caught (result i32)
      (try_table (catch $e $caught)
        (if (i32.and (local.get $n) (i32.const 2))
          (then (throw $e (local.get $n)))))
      (i32.const 0))
    drop)
  (func $main (export "main") (local $i i32)
    (local.set $i (i32.const 4))
    (loop $again
      (drop (call_indirect (type $t) (local.get $i) (i32.and (local.get $i) (i32.const 1))))
      (call $spin (i32.add (local.get $i) (i32.const 5)))
      (br_if $again (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
    END))"#;

fn recorded(sandbox: &Sandbox, end: &str) {
    let text = PROGRAM.replace("END", end);
    let mut parser = Parser::new();
    parser.generate_dwarf(GenerateDwarf::Lines);
    let module = parser.parse_str(Some("program.wat".as_ref()), &text);
    sandbox.write("program.wasm", module.unwrap());
    sandbox.run("record --invoke main -o run.aft program.wasm");
}

/// Returns the lines of a trace without the first line.
fn entries(sandbox: &Sandbox, options: &str) -> Vec<Value> {
    let ran = sandbox.ok(&format!("trace run.aft --format json {options}"));
    let lines = ran.stdout.lines().skip(1);
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn number(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap()
}

#[test]
fn stretches_are_parts_of_the_whole_trace() {
    for end in ["", "unreachable"] {
        let sandbox = Sandbox::new();
        recorded(&sandbox, end);
        let whole = entries(&sandbox, "");
        let length = whole.len();
        assert!(length > 250, "{length}");
        for (at, entry) in whole.iter().enumerate() {
            assert_eq!(number(entry, "t"), at as u64 + 1);
        }
        let reversed: Vec<_> = whole.iter().rev().cloned().collect();
        assert_eq!(entries(&sandbox, "--reverse"), reversed);
        assert_eq!(entries(&sandbox, "--from 17 --to 101"), whole[16..101]);
        assert_eq!(
            entries(&sandbox, "--from 101 --to 17 --reverse"),
            reversed[length - 101..length - 16]
        );
        assert_eq!(
            entries(&sandbox, "--from 101 --reverse"),
            reversed[length - 101..]
        );
        assert_eq!(
            entries(&sandbox, "--to 17 --reverse"),
            reversed[..length - 16]
        );
        for level in ["block", "call", "statement"] {
            sandbox.refused(
                &format!("trace run.aft --level {level} --from 17 --to 101 --reverse"),
                125,
                &["--reverse goes back from --from to --to", "exchange them"],
            );
        }
        assert_eq!(entries(&sandbox, "--last 33"), whole[length - 33..]);
        assert_eq!(
            entries(&sandbox, "--to -3 --last 9"),
            whole[length - 11..length - 2]
        );
        assert_eq!(entries(&sandbox, "--from 50%"), whole[length / 2 - 1..]);
        for function in ["fib", "twice", "spin", "throws", "main"] {
            let own: Vec<_> = whole
                .iter()
                .filter(|entry| entry["function"]["name"] == function)
                .cloned()
                .collect();
            let only = format!("--function {function}");
            assert_eq!(entries(&sandbox, &only), own);
            let last = entries(&sandbox, &format!("{only} --last 5"));
            assert_eq!(last, own[own.len().saturating_sub(5)..]);
            let some = entries(&sandbox, &format!("{only} --limit 3 --reverse"));
            let reversed: Vec<_> = own.iter().rev().take(3).cloned().collect();
            assert_eq!(some, reversed);
        }

        // Every block belongs to a path.
        let mut blocks = Vec::new();
        for path in entries(&sandbox, "--level path") {
            assert_eq!(number(&path, "t"), blocks.len() as u64 + 1);
            for block in path["path"].as_array().unwrap() {
                blocks.push((
                    path["function"].clone(),
                    block.clone(),
                    path["depth"].clone(),
                ));
            }
        }
        let expected = whole.iter().map(|entry| {
            let field = |name: &str| entry[name].clone();
            (field("function"), field("block"), field("depth"))
        });
        assert_eq!(blocks, expected.collect::<Vec<_>>());

        binary(&sandbox, &whole);
        binary_levels(&sandbox);
        calls(&sandbox, &whole);
        profile(&sandbox, &whole);
    }
}

fn binary(sandbox: &Sandbox, whole: &[Value]) {
    sandbox.ok("trace run.aft --format bin --from 7 --to 200 -o trace.bin");
    let bytes = sandbox.read("trace.bin");
    let (head, records) = bytes.split_at(32);
    assert_eq!(&head[..12], b"AFTRACE1\x01\0\0\0");
    assert_eq!(head[12..16], [0xff; 4]);
    assert_eq!(head[16..24], 7u64.to_le_bytes());
    assert_eq!(head[24..32], 200u64.to_le_bytes());
    let word = |bytes: &[u8]| u64::from(u32::from_le_bytes(bytes.try_into().unwrap()));
    assert_eq!(records.len(), 16 * 194);
    for (record, entry) in records.chunks(16).zip(&whole[6..]) {
        assert_eq!(record[..8], number(entry, "t").to_le_bytes());
        assert_eq!(word(&record[8..12]), number(&entry["function"], "index"));
        assert_eq!(word(&record[12..]), number(entry, "block"));
    }
    sandbox.ok("trace run.aft --format bin --reverse --limit 50 -o reverse.bin");
    let reverse = sandbox.read("reverse.bin");
    assert_eq!(reverse.len(), 32 + 16 * 50);
    for (record, entry) in reverse[32..].chunks(16).zip(whole.iter().rev()) {
        assert_eq!(record[..8], number(entry, "t").to_le_bytes());
        assert_eq!(word(&record[12..]), number(entry, "block"));
    }
}

/// Checks that records of paths and calls contain the same data as the lines of JSON.
fn binary_levels(sandbox: &Sandbox) {
    let mut expected = Vec::new();
    let paths = entries(sandbox, "--level path");
    for path in &paths {
        let blocks = path["path"].as_array().unwrap();
        expected.extend(number(path, "t").to_le_bytes());
        expected.extend((number(&path["function"], "index") as u32).to_le_bytes());
        expected.extend((blocks.len() as u32).to_le_bytes());
        for block in blocks {
            expected.extend((block.as_u64().unwrap() as u32).to_le_bytes());
        }
    }
    sandbox.ok("trace run.aft --format bin --level path -o paths.bin");
    let bytes = sandbox.read("paths.bin");
    assert_eq!(bytes[8], 2);
    assert!(bytes[32..] == expected);

    let mut expected = Vec::new();
    for call in entries(sandbox, "--level call --function fib --reverse") {
        expected.extend(number(&call, "t").to_le_bytes());
        expected.extend(call["end_t"].as_u64().unwrap_or(0).to_le_bytes());
        expected.extend((number(&call["function"], "index") as u32).to_le_bytes());
        expected.extend((number(&call, "depth") as u32).to_le_bytes());
    }
    let options = "--level call --function fib --reverse";
    sandbox.ok(&format!(
        "trace run.aft --format bin {options} -o calls.bin"
    ));
    let bytes = sandbox.read("calls.bin");
    assert_eq!(bytes[8..16], [3, 1, 0, 0, 0, 0, 0, 0]);
    assert!(bytes[32..] == expected && !expected.is_empty());
}

/// Checks the activations. A root has no predecessor, so every execution of block 0 begins an
/// activation. The activation lasts until another one begins at the same depth, or a less deep
/// block is executed.
fn calls(sandbox: &Sandbox, whole: &[Value]) {
    let mut expected = Vec::new();
    for (at, entry) in whole.iter().enumerate() {
        if number(entry, "block") > 0 {
            continue;
        }
        let depth = number(entry, "depth");
        let inside = whole[at + 1..].iter().take_while(|later| {
            let (deep, begins) = (number(later, "depth"), number(later, "block") == 0);
            deep > depth || deep == depth && !begins
        });
        expected.push((
            number(entry, "t"),
            number(&entry["function"], "index"),
            depth,
            1 + inside.count() as u64,
        ));
    }
    let found = |options: &str| -> Vec<_> {
        let calls = entries(sandbox, options);
        let fields = calls.iter().map(|call| {
            let field = |name| number(call, name);
            (
                field("t"),
                number(&call["function"], "index"),
                field("depth"),
                field("blocks"),
            )
        });
        fields.collect()
    };
    assert_eq!(found("--level call"), expected);
    let shallow: Vec<_> = expected.iter().copied().filter(|call| call.2 < 2).collect();
    assert_eq!(found("--level call --depth 2"), shallow);
    let fib: Vec<_> = expected
        .iter()
        .copied()
        .filter(|call| call.1 == 0)
        .collect();
    assert_eq!(found("--level call --function fib"), fib);
    assert_eq!(
        found("--level call --function fib --last 4"),
        fib[fib.len() - 4..]
    );
    let from = number(&whole[whole.len() / 3], "t");
    let later: Vec<_> = expected
        .iter()
        .copied()
        .filter(|call| call.0 >= from)
        .collect();
    assert_eq!(found(&format!("--level call --from {from}")), later);

    // Check the k-th call.
    for (at, call) in fib.iter().enumerate().step_by(7) {
        let one = sandbox.ok(&format!(
            "calls run.aft --function fib --call {} --format json",
            at + 1
        ));
        let one: Value = serde_json::from_str(&one.stdout).unwrap();
        let stack = one["stack"].as_array().unwrap();
        assert_eq!(stack.len() as u64, call.2 + 1);
        assert_eq!(
            (number(&stack[0], "t"), number(&stack[0], "blocks")),
            (call.0, call.3)
        );
        let entry = entries(sandbox, &format!("--from fib#{} --limit 1", at + 1));
        assert_eq!(number(&entry[0], "t"), call.0);
    }
}

fn rows(sandbox: &Sandbox, by: &str) -> Vec<Value> {
    let ran = sandbox.ok(&format!("profile run.aft --by {by} --format json"));
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    document["rows"].as_array().unwrap().clone()
}

fn profile(sandbox: &Sandbox, whole: &[Value]) {
    let mut blocks = BTreeMap::<(u64, u64), u64>::new();
    for entry in whole {
        *blocks
            .entry((number(&entry["function"], "index"), number(entry, "block")))
            .or_default() += 1;
    }
    for row in rows(sandbox, "block") {
        let key = (number(&row["function"], "index"), number(&row, "block"));
        assert_eq!(
            blocks.get(&key).copied().unwrap_or(0),
            number(&row, "count")
        );
    }

    let graph = sandbox.ok("calls run.aft --format json");
    let graph: Value = serde_json::from_str(&graph.stdout).unwrap();
    let functions = graph["functions"].as_array().unwrap();
    let mut called = BTreeMap::new();
    for function in functions {
        called.insert(
            number(&function["function"], "index"),
            (number(function, "calls"), number(function, "own")),
        );
    }
    for row in rows(sandbox, "function") {
        let index = number(&row["function"], "index");
        let (calls, own) = called.get(&index).copied().unwrap_or((0, 0));
        assert_eq!(
            (calls, own),
            (number(&row, "entries"), number(&row, "blocks"))
        );
        let edges = graph["edges"].as_array().unwrap().iter();
        let callers = edges.filter(|edge| number(&edge["callee"], "index") == index);
        assert_eq!(
            callers.map(|edge| number(edge, "calls")).sum::<u64>(),
            calls
        );
    }

    // The number of arrivals that can be found at a line equals the profile's count.
    let mut lines = 0;
    for row in rows(sandbox, "line") {
        let (line, count) = (number(&row["source"], "line"), number(&row, "count"));
        let place = format!("program.wat:{line}");
        if count == 0 {
            sandbox.refused(
                &format!("trace run.aft --from {place}"),
                125,
                &["never reached"],
            );
            continue;
        }
        lines += 1;
        let ks = [1, count.div_ceil(2), count];
        let times = ks.map(|k| {
            number(
                &entries(sandbox, &format!("--from {place}#{k} --limit 1"))[0],
                "t",
            )
        });
        assert!(times.is_sorted(), "{place}: {times:?}");
        assert!(count < 3 || times[0] < times[2], "{place}: {times:?}");
        let last = entries(sandbox, &format!("--from {place}#last --limit 1"));
        assert_eq!(number(&last[0], "t"), times[2]);
        let beyond = format!("trace run.aft --from {place}#{}", count + 1);
        sandbox.refused(
            &beyond,
            125,
            &["was reached ", &format!("no #{}", count + 1)],
        );
    }
    assert!(lines > 10, "{lines}");
}

/// Returns a path's entries, except those for parts that a filter left out.
fn kept(sandbox: &Sandbox) -> Vec<u64> {
    let paths = entries(sandbox, "--level path");
    let kept = paths.iter().filter(|entry| entry["left_out"].is_null());
    kept.map(|entry| number(entry, "t")).collect()
}

/// Two functions on one line, like copies that an optimiser made.
const COPIES: &str = r#"(module
  (memory 1)
  (func $a (param i32) (result i32) (i32.store (i32.const 8) (local.get 0)) (i32.mul (local.get 0) (local.get 0))) (func $b (param i32) (result i32) (i32.mul (local.get 0) (local.get 0)))
  (func (export "_start")
    (drop (call $a (i32.const 3)))
    (drop (call $b (i32.const 5)))
    (drop (call $a (i32.const 7)))
    (drop (call $a (i32.const 2)))
    (drop (call $b (i32.const 1)))))"#;

#[test]
fn a_number_behind_a_line_names_one_arrival_for_every_command() {
    let sandbox = Sandbox::new();
    let mut parser = Parser::new();
    parser.generate_dwarf(GenerateDwarf::Lines);
    let module = parser.parse_str(Some("copies.wat".as_ref()), COPIES);
    sandbox.write("copies.wasm", module.unwrap());
    sandbox.ok("record --lens full -o run.aft copies.wasm");
    for (k, (operand, stores)) in (1..).zip([(3, 1), (5, 0), (7, 1), (2, 1), (1, 0)]) {
        let value = operand * operand;
        let at = format!("copies.wat:3#{k}");
        let values = sandbox.ok(&format!("values run.aft --at {at}")).stdout;
        let told = values.lines().filter(|line| line.contains("  t="));
        assert_eq!(told.count(), 1 + stores, "{values}");
        assert!(values.contains(&format!(" {value}\n")), "{values}");
        let why = sandbox.ok(&format!("why run.aft --at {at}")).stdout;
        assert!(why.starts_with(&format!("{value} at ")), "{why}");
        let deps = sandbox.ok(&format!("deps run.aft --at {at} --data")).stdout;
        assert_eq!(deps.matches("i32.mul").count(), 1, "{deps}");
        let slice = sandbox.ok(&format!("slice run.aft --at {at}")).stdout;
        let statements = format!("{at} ({} statements)", 1 + stores);
        assert_eq!(slice.contains(&statements), stores > 0, "{slice}");
        match stores {
            0 => sandbox.refused(
                &format!("addresses run.aft --at {at}"),
                125,
                &["executes no load or store"],
            ),
            _ => {
                let addresses = sandbox.ok(&format!("addresses run.aft --at {at}")).stdout;
                assert_eq!(addresses.matches("0x8").count(), 1, "{addresses}");
            }
        }
    }
    sandbox.refused("why run.aft --at copies.wat:3#6", 125, &["reached 5 times"]);
}

#[test]
fn a_path_begins_and_ends_at_the_arrival_at_a_line() {
    let sandbox = Sandbox::new();
    recorded(&sandbox, "");
    let whole = kept(&sandbox);
    // Find the path that contains a block.
    let path_of = |time: u64| whole[whole.partition_point(|&start| start <= time) - 1];
    let mut marks = Vec::new();
    for row in rows(&sandbox, "line") {
        let (line, count) = (number(&row["source"], "line"), number(&row, "count"));
        for k in [1, count.div_ceil(2), count] {
            let place = format!("program.wat:{line}#{k}");
            if count > 0 {
                let entry = entries(&sandbox, &format!("--from {place} --limit 1"));
                marks.push((place, path_of(number(&entry[0], "t"))));
            }
        }
    }
    let mut refused = 0;
    for (place, path) in &marks {
        let ran = sandbox.run(&format!(
            "build --lens paths --again --start {place} run.aft"
        ));
        if ran.code != Some(0) {
            // The place where an exception is caught.
            assert!(
                ran.stderr.contains("do not determine the arrivals"),
                "{ran:?}"
            );
            refused += 1;
            continue;
        }
        assert_eq!(kept(&sandbox).first(), Some(path), "--start {place}");
        sandbox.ok(&format!(
            "build --lens paths --again --stop {place} run.aft"
        ));
        assert_eq!(kept(&sandbox).last(), Some(path), "--stop {place}");
    }
    assert!(
        marks.len() > 30 && refused < marks.len() / 4,
        "{refused} of {}",
        marks.len()
    );
}

/// Returns the numbers and times of a function's calls.
fn numbered(sandbox: &Sandbox, function: &str) -> BTreeMap<u64, u64> {
    let ran = sandbox.run(&format!(
        "trace run.aft --format json --level call --function {function}"
    ));
    if ran.code != Some(0) {
        return BTreeMap::new();
    }
    let calls = ran.stdout.lines().skip(1).map(|line| {
        let call: Value = serde_json::from_str(line).unwrap();
        (number(&call, "call"), number(&call, "t"))
    });
    calls.collect()
}

#[test]
fn calls_keep_their_numbers_whatever_is_left_out() {
    let sandbox = Sandbox::new();
    recorded(&sandbox, "");
    const FUNCTIONS: [&str; 5] = ["fib", "twice", "spin", "throws", "main"];
    let whole = FUNCTIONS.map(|function| numbered(&sandbox, function));
    let mut left_out = 0;
    for filter in [
        "--include throws",
        "--include twice",
        "--exclude fib",
        "--window 60..150",
        "--start spin#2 --stop throws#7",
        "--include fib --window 100..140",
    ] {
        sandbox.ok(&format!("build --lens paths --again {filter} run.aft"));
        for (function, whole) in FUNCTIONS.iter().zip(&whole) {
            // Nothing is listed for a function without blocks.
            let listed = numbered(&sandbox, function);
            for (number, time) in &listed {
                assert_eq!(
                    whole.get(number),
                    Some(time),
                    "{function}#{number} with {filter}"
                );
            }
            for (number, time) in whole {
                let words =
                    format!("calls run.aft --function {function} --call {number} --format json");
                let ran = sandbox.run(&words);
                if ran.code == Some(0) {
                    let call: Value = serde_json::from_str(&ran.stdout).unwrap();
                    assert_eq!(call["call"], *number, "{words} with {filter}");
                    assert_eq!(call["stack"][0]["t"], *time, "{words} with {filter}");
                } else {
                    assert!(
                        ran.stderr.contains(&format!("call {number} was left out")),
                        "{ran:?}"
                    );
                    assert!(!listed.contains_key(number), "{words} with {filter}");
                    left_out += 1;
                }
            }
            let beyond = whole.len() + 1;
            let words = format!("calls run.aft --function {function} --call {beyond}");
            let ran = sandbox.run(&words);
            let refusal = ran.stderr.contains(&format!("no call {beyond}"));
            assert!(ran.code == Some(125) && refusal, "{ran:?}");
        }
        // Left-out blocks belong to no function's own count.
        let stacks = sandbox
            .ok("export run.aft --format collapsed --min 0")
            .stdout;
        let sum = |of: &dyn Fn(&str) -> bool| -> u64 {
            let lines = stacks.lines().filter(|line| of(line));
            lines
                .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
                .sum()
        };
        let blocks = entries(&sandbox, "");
        let gaps = blocks.iter().filter_map(|entry| entry["left_out"].as_u64());
        assert_eq!(
            sum(&|line| line.contains("[left out]")),
            gaps.sum::<u64>(),
            "{filter}"
        );
        for function in FUNCTIONS {
            let own = blocks.iter().filter(|entry| {
                entry["left_out"].is_null() && entry["function"]["name"] == function
            });
            let innermost = |line: &str| {
                let stack = line.rsplit_once(' ').unwrap().0;
                stack.rsplit(';').next() == Some(function)
            };
            assert_eq!(
                sum(&innermost),
                own.count() as u64,
                "{function} with {filter}"
            );
        }
    }
    assert!(left_out > 50, "{left_out}");
}

/// If the path has no call to a function, the run may still have had one.
#[test]
fn what_was_left_out_is_not_said_to_be_missing() {
    let sandbox = Sandbox::new();
    recorded(&sandbox, "");
    let whole = sandbox.ok("calls run.aft --function fib --format json");
    assert!(!whole.stdout.contains("left_out"), "{whole:?}");
    sandbox.ok("build --lens paths --again --exclude fib run.aft");
    for command in [
        "calls run.aft --function fib",
        "paths run.aft --function fib",
    ] {
        let ran = sandbox.ok(command);
        assert!(ran.stdout.contains("which lacks fib"), "{ran:?}");
        assert!(!ran.stdout.contains("never"), "{ran:?}");
    }
    let ran = sandbox.run("trace run.aft --function fib");
    assert_eq!(ran.code, Some(125), "{ran:?}");
    assert!(
        ran.stderr
            .contains("there is no call to fib in the path, which lacks fib"),
        "{ran:?}"
    );
    for command in ["calls", "paths", "trace"] {
        let ran = sandbox.ok(&format!("{command} run.aft --format json"));
        let head = ran.stdout.lines().next().unwrap();
        let head: Value = serde_json::from_str(head).unwrap();
        assert_eq!(head["left_out"], "fib", "{command}");
    }
}

#[test]
fn a_tree_of_calls_reads_the_same_backwards() {
    for end in ["", "unreachable"] {
        let sandbox = Sandbox::new();
        recorded(&sandbox, end);
        for (window, reverse) in [
            ("", ""),
            ("--from 40 --to 160", "--from 160 --to 40"),
            ("--from fib#3 --to spin#2", "--from spin#2 --to fib#3"),
            ("--depth 2", "--depth 2"),
            ("--depth 1 --from 30", "--depth 1 --to 30"),
        ] {
            let forwards = entries(&sandbox, &format!("--level call {window}"));
            let mut backwards = entries(&sandbox, &format!("--level call --reverse {reverse}"));
            backwards.reverse();
            assert!(!forwards.is_empty());
            assert_eq!(forwards, backwards, "{window}");
            for last in [1, 3, forwards.len() - 1, forwards.len(), forwards.len() + 5] {
                let last = last.max(1);
                let found = entries(&sandbox, &format!("--level call {window} --last {last}"));
                let from = forwards.len().saturating_sub(last);
                assert_eq!(found, forwards[from..], "{window} --last {last}");
            }
        }
    }
}

#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    let sandbox = Sandbox::new();
    recorded(&sandbox, "");
    let ran = sandbox.shell("$AFTERIMAGE trace run.aft --limit all --format json | head -n 2");
    assert_eq!(ran.stdout.lines().count(), 2);
    assert!(
        !ran.stderr.contains("error") && !ran.stderr.contains("panicked"),
        "{}",
        ran.stderr
    );
}

/// The bytes that JSON reports for copies and the host are in records after the entry's.
#[test]
fn bytes_of_copies_are_in_binary_steps() {
    let sandbox = Sandbox::new();
    sandbox.write("steps.wat", include_str!("../cases/steps.wat"));
    let ran = sandbox.run("record -o run.aft steps.wat");
    assert_eq!(ran.code, Some(134), "{ran:?}");
    for level in ["statement", "memory"] {
        let words = format!("trace run.aft --level {level}");
        let json = sandbox.ok(&format!("{words} --format json")).stdout;
        let mut expected = Vec::new();
        for line in json.lines().skip(1) {
            let entry: Value = serde_json::from_str(line).unwrap();
            if let Some(contents) = entry["contents"].as_str() {
                expected.push((entry["t"].as_u64().unwrap(), contents.to_owned()));
            }
        }
        assert!(expected.len() >= 4, "{expected:?}");
        sandbox.ok(&format!("{words} --format bin -o steps.bin"));
        let bytes = sandbox.read("steps.bin");
        let mut found: Vec<(u64, String)> = Vec::new();
        let mut last = 0;
        for record in bytes[32..].chunks(56) {
            let number = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap());
            let part = u32::from_le_bytes(record[20..24].try_into().unwrap());
            let kind = record[16];
            if kind == 20 {
                let held = &record[40..40 + number(32) as usize];
                let text: String = held.iter().map(|byte| format!("{byte:02x}")).collect();
                match part {
                    0 => found.push((number(0), text)),
                    _ => found.last_mut().unwrap().1.push_str(&text),
                }
                assert!([4, 6, 15, 16].contains(&last), "{last}");
            } else if kind != 19 {
                last = kind;
            }
        }
        assert_eq!(found, expected);
    }
}
