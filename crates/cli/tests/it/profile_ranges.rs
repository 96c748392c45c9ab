//! Tests the counts of a range of a run: `profile --from --to`.
//!
//! The counts of ranges that cover a run without overlap add up to the counts of the run. The
//! counts of one range are compared with a trace, which lists each executed block.

use std::collections::BTreeMap;

use afterimage_testkit::modules::SplitMix64;
use serde_json::Value;

use crate::common::Sandbox;
use crate::common::generated::seeds;

/// A program with inlined code, recursion, and a panic at the end.
const PROGRAM: &str = r#"
fn fold(all: &[u32], depth: u32) -> u32 {
    if all.len() < 2 {
        return all.iter().sum::<u32>() + depth;
    }
    let (low, high) = all.split_at(all.len() / 2);
    fold(low, depth + 1).wrapping_mul(3) ^ fold(high, depth + 2)
}

fn main() {
    let mut all: Vec<u32> = (0..40).map(|n| n * 37 % 61).collect();
    all.sort_unstable_by_key(|n| n % 7);
    let folded = fold(&all, 0);
    assert_eq!(folded, 0, "{all:?}");
}
"#;

/// The counts of each row that has any. The key of a row identifies its function, block,
/// instruction or line.
type Rows = BTreeMap<String, Vec<u64>>;

fn profile(sandbox: &Sandbox, options: &str) -> (Value, Rows) {
    let ran = sandbox.ok(&format!("profile run.aft --format json {options}"));
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap().iter();
    let row = |row: &Value| {
        let key = ["function", "block", "op", "source"].map(|part| match part {
            "function" => row[part]["index"].to_string(),
            "source" if row["function"].is_null() => row[part].to_string(),
            "source" => String::new(),
            _ => row[part].to_string(),
        });
        let counts = ["entries", "blocks", "count", "instructions"];
        let counts = counts.map(|count| row[count].as_u64().unwrap_or(0));
        (key.join(" "), counts.to_vec())
    };
    let rows = rows
        .map(row)
        .filter(|(_, counts)| counts.iter().any(|count| *count > 0));
    (document["totals"].clone(), rows.collect())
}

fn add(sum: &mut Rows, rows: Rows) {
    for (key, counts) in rows {
        let sum = sum.entry(key).or_insert_with(|| vec![0; counts.len()]);
        sum.iter_mut()
            .zip(counts)
            .for_each(|(sum, count)| *sum += count);
    }
}

#[test]
fn counts_of_ranges_add_up_to_those_of_the_run() {
    let sandbox = Sandbox::new();
    sandbox.rust("program", PROGRAM);
    let ran = sandbox.run("record -o run.aft program.wasm");
    assert_ne!(ran.code, Some(0), "the program panics");
    let (whole, _) = profile(&sandbox, "--by function");
    let length = whole["blocks"].as_u64().unwrap();
    let mut numbers = SplitMix64(17);
    for by in ["function", "block", "instruction", "line --code all"] {
        for _ in 0..seeds(3) {
            let mut cuts = vec![0, length];
            cuts.extend((0..6).map(|_| 1 + numbers.next() % (length - 1)));
            // A range of a single block.
            cuts.push(cuts[2] - 1);
            cuts.sort_unstable();
            cuts.dedup();
            let mut sum = Rows::new();
            for cut in cuts.windows(2) {
                let (from, to) = (cut[0] + 1, cut[1]);
                let options = format!("--by {by} --from t={from} --to t={to}");
                let (totals, rows) = profile(&sandbox, &options);
                assert_eq!(totals["range"]["first_t"], from);
                assert_eq!(totals["range"]["last_t"], to);
                assert_eq!(totals["blocks"], to - from + 1, "{options}");
                let last = to == length;
                assert_eq!(totals["open"] == whole["open"], last, "{options}");
                add(&mut sum, rows);
            }
            let (_, rows) = profile(&sandbox, &format!("--by {by}"));
            assert!(rows.len() > 5, "{by}");
            assert_eq!(sum, rows, "{by}, cut at {cuts:?}");
        }
    }
}

#[test]
fn counts_of_a_range_are_those_of_a_trace() {
    let sandbox = Sandbox::new();
    sandbox.rust("program", PROGRAM);
    sandbox.run("record -o run.aft program.wasm");
    let (whole, _) = profile(&sandbox, "--by function");
    let length = whole["blocks"].as_u64().unwrap();
    let mut numbers = SplitMix64(5);
    for _ in 0..seeds(6) {
        let [one, other] = [(); 2].map(|()| 1 + numbers.next() % length);
        let bounds = format!("--from t={} --to t={}", one.min(other), one.max(other));
        let (_, counted) = profile(&sandbox, &format!("--by block {bounds}"));
        let traced = sandbox.ok(&format!(
            "trace run.aft --level block --format json --limit all {bounds}"
        ));
        let mut expected = BTreeMap::<(u64, u64), u64>::new();
        for row in traced.stdout.lines().skip(1) {
            let row: Value = serde_json::from_str(row).unwrap();
            let [function, block] = [&row["function"]["index"], &row["block"]];
            let block = (function.as_u64().unwrap(), block.as_u64().unwrap());
            *expected.entry(block).or_default() += 1;
        }
        let counted = counted.iter().map(|(key, counts)| {
            let mut words = key.split(' ').map(|word| word.parse::<u64>().unwrap());
            let block = (words.next().unwrap(), words.next().unwrap());
            (block, counts[2])
        });
        assert_eq!(counted.collect::<BTreeMap<_, _>>(), expected, "{bounds}");
    }
}

#[test]
fn what_a_range_does_not_have_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.rust("program", PROGRAM);
    sandbox.run("record -o run.aft program.wasm");
    sandbox.run("record -o other.aft program.wasm");
    // This builds the path.
    sandbox.ok("profile run.aft --from 50%");
    for (options, why) in [
        ("run.aft --by edge --from 50%", "cannot count edges"),
        (
            "run.aft --format lcov --to 50%",
            "needs the counts of edges",
        ),
        ("run.aft --format pprof --to 50%", "afterimage export"),
        ("run.aft other.aft --from 50%", "name only one recording"),
        (
            "run.aft --compare other.aft --from 50%",
            "compares whole runs",
        ),
        ("run.aft --from t=9 --to t=3", "t=9"),
        ("run.aft --from nowhere#1", "nowhere"),
    ] {
        sandbox.refused(&format!("profile {options}"), 125, &[why]);
    }
    let annotated =
        sandbox.ok("profile run.aft --annotate --from program::fold#2 --to program::fold#9");
    assert!(
        annotated.stdout.contains(" from t="),
        "{}",
        annotated.stdout
    );
    assert!(annotated.stdout.contains("fold("), "{}", annotated.stdout);
}
