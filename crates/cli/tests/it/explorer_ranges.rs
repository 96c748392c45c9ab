//! Counts of a stretch of the run, and what a byte of input influenced, on the explorer's page.
//!
//! Counts are compared with a naive trace: each executed block, one after the other.

use std::collections::HashMap;

use afterimage_testkit::modules::SplitMix64;
use serde_json::Value;

use crate::common::Sandbox;
use crate::common::generated::seeds;
use crate::explorer_holds::Page;

const SORTS: &str = r#"
fn sort(all: &mut [i32], depth: u32) -> u32 {
    if all.len() < 2 || depth > 20 {
        return depth;
    }
    let pivot = all[0];
    let mut at = 0;
    for i in 1..all.len() {
        if all[i] < pivot {
            at += 1;
            all.swap(at, i);
        }
    }
    all.swap(0, at);
    let (low, high) = all.split_at_mut(at);
    match sort(low, depth + 1).max(sort(&mut high[1..], depth + 1)) {
        5 => 7,
        6 => 5,
        deepest => deepest,
    }
}

fn main() {
    let mut all: Vec<i32> = (0..60).map(|n| n * 37 % 61).collect();
    let deepest = sort(&mut all, 0);
    println!("{all:?} {deepest}");
}
"#;

/// A block of a function.
type Block = (u64, u64);

/// The counts of a naive trace: blocks, and blocks right after each other in one activation.
#[derive(Default)]
struct Traced {
    blocks: HashMap<Block, u64>,
    pairs: HashMap<(Block, u64), u64>,
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn traced(page: &Page, from: u64, to: u64) -> Traced {
    // An edge belongs to the block that it leaves, so one block more is looked at.
    let (from, last) = (format!("t={from}"), format!("t={}", to + 1));
    let options = [
        ("level", "block"),
        ("from", &*from),
        ("to", &*last),
        ("limit", "100000"),
    ];
    let (is_well, body, _) = page.ask("trace", &options);
    assert!(is_well, "{body}");
    let rows = body.lines().skip(1);
    let rows = rows.map(|row| serde_json::from_str::<Value>(row).unwrap());
    let rows = Vec::from_iter(rows);
    let mut found = Traced::default();
    let block = |row: &Value| (number(&row["function"]["index"]), number(&row["block"]));
    for (at, row) in rows.iter().enumerate() {
        if number(&row["t"]) > to {
            break;
        }
        *found.blocks.entry(block(row)).or_default() += 1;
        let Some(next) = rows.get(at + 1) else {
            continue;
        };
        let (one, other) = (block(row), block(next));
        if one.0 == other.0 && row["depth"] == next["depth"] {
            *found.pairs.entry((one, other.1)).or_default() += 1;
        }
    }
    found
}

#[test]
fn counts_of_a_range_are_those_of_a_naive_trace() {
    let sandbox = Sandbox::new();
    sandbox.rust("sorts", SORTS);
    sandbox.ok("record -o run.aft sorts.wasm");
    let page = Page::of(&sandbox, "run.aft");
    let doc = |question: &str, options: &[(&str, &str)]| page.doc(question, options);
    let rows = |by: &str| {
        doc("profile", &[("by", by)])["rows"]
            .as_array()
            .unwrap()
            .clone()
    };
    let (instructions, edges) = (rows("instruction"), rows("edge"));
    let file = doc("files", &[])["files"]
        .as_array()
        .unwrap()
        .iter()
        .find(|file| file["file"].as_str().unwrap().ends_with("sorts.rs"))
        .unwrap()["file"]
        .clone();
    let path = file.as_str().unwrap();
    let length = number(&doc("moment", &[("at", "end")])["length"]);
    let mut numbers = SplitMix64(11);
    let (mut lines, mut ways) = (0, 0);
    for _ in 0..seeds(12) {
        let one = 1 + numbers.next() % (length - 2);
        let other = 1 + numbers.next() % (length - 2);
        let (from, to) = (one.min(other), one.max(other));
        let naive = traced(&page, from, to);
        let (first, last) = (format!("t={from}"), format!("t={to}"));
        let told = doc("source", &[("file", path), ("from", &first), ("to", &last)]);
        for line in told["lines"].as_array().unwrap() {
            let own = instructions.iter().filter(|row| {
                row["source"]["file"] == file && row["source"]["line"] == line["line"]
            });
            let count = |row: &Value| {
                let block = (number(&row["function"]["index"]), number(&row["block"]));
                naive.blocks.get(&block).copied().unwrap_or(0)
            };
            let expected: u64 = own.map(count).sum();
            assert_eq!(
                line["instructions"], expected,
                "line {} from {from} to {to}",
                line["line"]
            );
            lines += u64::from(expected > 0);
            for branch in line["branches"].as_array().into_iter().flatten() {
                ways += compare(branch, &edges, &naive);
            }
        }
    }
    assert!(lines > 20 && ways > 20, "{lines} lines, {ways} ways");
}

/// Compares the ways of a branch with what followed its block. How many were taken.
fn compare(branch: &Value, edges: &[Value], naive: &Traced) -> u64 {
    let own = edges
        .iter()
        .filter(|edge| edge["offset"] == branch["offset"]);
    let own = Vec::from_iter(own);
    let mut taken = 0;
    for way in branch["ways"].as_array().unwrap() {
        let kind = way["kind"].as_str().unwrap();
        let edge = own
            .iter()
            .find(|edge| kind.split(", ").any(|one| edge["kind"] == one))
            .unwrap();
        let from = (number(&edge["function"]["index"]), number(&edge["from"]));
        let pair = (from, number(&edge["to"]));
        let count = number(&way["count"]);
        // What leaves the function is followed by a block of its caller.
        if let Some(&expected) = naive.pairs.get(&pair) {
            assert_eq!(count, expected, "{kind} of {branch}");
            taken += u64::from(expected > 0);
        }
    }
    let sum: u64 = branch["ways"]
        .as_array()
        .unwrap()
        .iter()
        .map(|way| number(&way["count"]))
        .sum();
    assert_eq!(branch["count"], sum, "{branch}");
    taken
}

const ADDS: &str = r#"
use std::io::{Read, Write};

fn main() {
    let mut given = [0u8; 6];
    std::io::stdin().lock().read_exact(&mut given).unwrap();
    // Standard output would look for the ends of lines, and each byte would decide how the others
    // are written.
    let mut out = std::io::stderr();
    let more: Vec<u8> = given.iter().map(|byte| byte.wrapping_add(1)).collect();
    out.write_all(&more).unwrap();
    out.write_all(b"!").unwrap();
}
"#;

#[test]
fn a_byte_of_input_influences_the_output_that_is_computed_from_it_and_no_other() {
    let sandbox = Sandbox::new();
    sandbox.rust("adds", ADDS);
    sandbox.write("given.txt", "abcdef");
    let ran = sandbox.ok("record --stdin given.txt -o run.aft adds.wasm");
    assert!(ran.stderr.starts_with("bcdefg!"), "{}", ran.stderr);
    let page = Page::of(&sandbox, "run.aft");
    for byte in 0..6u64 {
        let (is_well, body, command) = page.ask("influence", &[("byte", &byte.to_string())]);
        assert!(is_well, "{body}");
        let told: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(told["value"], u64::from(b'a') + byte);
        let outputs = told["outputs"].as_array().unwrap();
        let bytes = outputs.iter().flat_map(|output| {
            assert_eq!(output["stream"], "stderr");
            let first = number(&output["first"]);
            first..first + number(&output["bytes"])
        });
        assert_eq!(Vec::from_iter(bytes), [byte], "byte {byte}: {body}");
        // The command that it names has the same statements.
        let words = command.strip_prefix("afterimage ").unwrap();
        let ran = sandbox.shell(&format!("\"$AFTERIMAGE\" {words} --format json"));
        let slice: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(slice["executions"], told["executions"], "{command}");
        assert_eq!(slice["lines"], told["lines"], "{command}");
    }
    let (is_well, body, _) = page.ask("influence", &[("byte", "6")]);
    assert!(!is_well && body.contains("did not read it"), "{body}");
}
