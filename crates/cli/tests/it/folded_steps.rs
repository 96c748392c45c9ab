//! Steps of library code are counted, not listed, and none is lost.

use serde_json::Value;

use crate::common::Sandbox;

const SOURCE: &str = "\
#[inline(never)]
fn weigh(words: &[String], weights: &mut Vec<u64>) -> u64 {
    for word in words {
        weights.push(word.len() as u64);
    }
    weights.iter().sum()
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut weights = Vec::new();
    let sum = weigh(&words, &mut weights);
    println!(\"{sum} in {weights:?}\");
}
";

/// The number of steps that a row stands for. `None` for other lines.
fn steps(row: &str) -> Option<u64> {
    let (time, rest) = row.trim_start().split_once("  ")?;
    time.replace(',', "").parse::<u64>().ok()?;
    let Some((_, folded)) = rest.split_once("… ") else {
        return Some(1);
    };
    assert!(folded.contains(" of library code"), "{row}");
    let count = folded.split(' ').next()?;
    count.replace(',', "").parse().ok()
}

fn rows(text: &str) -> Vec<&str> {
    text.lines().filter(|line| steps(line).is_some()).collect()
}

fn sum(text: &str) -> u64 {
    text.lines().filter_map(steps).sum()
}

fn recorded(level: u32) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("app.rs", SOURCE);
    sandbox.rustc("app", "app", level);
    sandbox.ok("record --lens full -o app.aft app.wasm one three twenty");
    sandbox
}

#[test]
fn a_trace_counts_the_steps_of_library_code() {
    for level in [0, 2] {
        let sandbox = recorded(level);
        for kind in ["statement", "memory"] {
            let trace = format!("trace app.aft --level {kind} --limit all");
            let all = sandbox.ok(&format!("{trace} --code all")).stdout;
            let mine = sandbox.ok(&trace).stdout;
            let listed = rows(&all).len() as u64;
            assert_eq!(sum(&mine), listed, "{kind}");
            assert!((rows(&mine).len() as u64) < listed / 4, "{kind}");
            assert!(!mine.contains("/rustc/"), "{mine}");
            let json = sandbox.ok(&format!("{trace} --format json")).stdout;
            assert_eq!(json.lines().count() as u64, listed + 1, "{kind}");

            let back = sandbox.ok(&format!("{trace} --reverse")).stdout;
            assert_eq!(sum(&back), listed, "{kind}");
            let expected = rows(&mine);
            for count in [1, 2, 3, 12, 40, expected.len() + 1] {
                let last = sandbox.ok(&format!("{trace} --last {count}")).stdout;
                let expected = &expected[expected.len().saturating_sub(count)..];
                assert_eq!(rows(&last), expected, "{kind}, {count}");
            }
        }
    }
}

/// A trace continues where its first part ended.
#[test]
fn a_folded_trace_continues() {
    let sandbox = recorded(2);
    let whole = sandbox
        .ok("trace app.aft --level statement --limit all")
        .stdout;
    let mut from = "start".to_owned();
    let mut found = 0;
    for _ in 0..200 {
        let part = format!("trace app.aft --level statement --limit 40 --from {from}");
        let part = sandbox.ok(&part).stdout;
        found += sum(&part);
        let Some((_, next)) = part.split_once("continue with --from ") else {
            assert_eq!(found, sum(&whole));
            return;
        };
        next.split(',').next().unwrap().clone_into(&mut from);
    }
    panic!("no end");
}

#[test]
fn accesses_by_library_code_have_the_line_of_the_caller() {
    let sandbox = recorded(0);
    // Bytes that library code wrote.
    let told = sandbox.ok("trace app.aft --level memory --format json");
    let steps = told.stdout.lines().skip(1);
    let mut steps = steps.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let is_library = |row: &Value| {
        let file = row["source"]["file"].as_str().unwrap_or_default();
        row["kind"] == "store" && file.starts_with("/rustc/") && row["t"].as_u64() > Some(700)
    };
    let row = steps.find(is_library).unwrap();
    let address = row["access"]["address"].as_u64().unwrap();
    let memory = format!("memory app.aft --all --limit 10000 --address {address}");
    let all = sandbox.ok(&format!("{memory} --code all")).stdout;
    let mine = sandbox.ok(&memory).stdout;
    let library = |text: &str| text.matches("library code").count();
    assert_eq!(library(&all), 0, "{all}");
    assert!(library(&mine) > 0, "{mine}");
    assert_eq!(sum(&mine), rows(&all).len() as u64, "{mine}\n{all}");
    for row in rows(&mine)
        .iter()
        .filter(|row| row.contains("library code"))
    {
        assert!(row.contains(" app.rs:") || row.contains("… "), "{row}");
    }
}
