//! Tests the counts of a stretch of the run, and the influence of an input byte, on the explorer's
//! page.
//!
//! Counts are compared with a naive trace, which lists each executed block.

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

/// The counts of a naive trace: blocks, and pairs of successive blocks in one activation.
#[derive(Default)]
struct Traced {
    blocks: HashMap<Block, u64>,
    pairs: HashMap<(Block, u64), u64>,
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn traced(page: &Page, from: u64, to: u64) -> Traced {
    // An edge belongs to the block that it leaves, so read one more block.
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
        let by_line = doc(
            "profile",
            &[("by", "line"), ("from", &first), ("to", &last)],
        );
        let by_line = by_line["rows"].as_array().unwrap();
        let mut executed = 0;
        for line in told["lines"].as_array().unwrap() {
            let row = by_line
                .iter()
                .find(|row| row["source"]["file"] == file && row["source"]["line"] == line["line"]);
            let count = row.map_or(Value::Null, |row| row["count"].clone());
            assert_eq!(line["count"], count, "{line} from {from} to {to}");
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
            executed += u64::from(expected > 0);
            for branch in line["branches"].as_array().into_iter().flatten() {
                ways += compare(branch, &edges, &naive);
            }
        }
        let files = doc("files", &[("from", &first), ("to", &last)]);
        let mut files = files["files"].as_array().unwrap().iter();
        let own = files.find(|own| own["file"] == file).unwrap();
        assert_eq!(own["executed"], executed, "from {from} to {to}");
        lines += executed;
    }
    assert!(lines > 20 && ways > 20, "{lines} lines, {ways} ways");
}

/// Compares the directions of a branch with the successors of its block. Returns the number of
/// directions taken.
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
        // If control leaves the function, a block of its caller follows.
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

#[test]
fn the_control_flow_of_a_range_is_that_of_a_naive_trace() {
    let sandbox = Sandbox::new();
    sandbox.rust("sorts", SORTS);
    sandbox.ok("record -o run.aft sorts.wasm");
    let page = Page::of(&sandbox, "run.aft");
    let length = number(&page.doc("moment", &[("at", "end")])["length"]);
    let last = format!("t={length}");
    let options = [("level", "block"), ("to", &*last), ("limit", "100000")];
    let (is_well, body, _) = page.ask("trace", &options);
    assert!(is_well, "{body}");
    let rows = body.lines().skip(1);
    let rows = Vec::from_iter(rows.map(|row| serde_json::from_str::<Value>(row).unwrap()));
    assert_eq!(
        rows.len() as u64,
        length,
        "the naive trace has the whole run"
    );
    let functions = page.doc("profile", &[("limit", "12")]);
    let functions = Vec::from_iter(
        functions["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| number(&row["function"]["index"])),
    );
    let mut numbers = SplitMix64(29);
    let (mut edges, mut returns, mut ways) = (0, 0, 0);
    for _ in 0..seeds(3) {
        let one = 1 + numbers.next() % length;
        let other = 1 + numbers.next() % length;
        let (from, to) = (one.min(other), one.max(other));
        for &function in &functions {
            let naive = Naive::of(&rows, function, (from, to));
            let (name, first, last) = (
                format!("func[{function}]"),
                format!("t={from}"),
                format!("t={to}"),
            );
            let told = page.doc(
                "flow",
                &[("function", &name), ("from", &first), ("to", &last)],
            );
            let what = format!("{name} from {from} to {to}");
            for block in told["blocks"].as_array().unwrap() {
                let expected = naive.blocks.get(&number(&block["block"]));
                let expected = expected.copied().unwrap_or(0);
                assert_eq!(block["count"], expected, "{block} of {what}");
            }
            let shape = page.doc("cfg", &[("function", &name)]);
            let kind = |block: &Value| {
                let mut all = shape["blocks"].as_array().unwrap().iter();
                all.find(|one| one["block"] == *block).unwrap().clone()
            };
            for edge in told["edges"].as_array().unwrap() {
                let pair = (number(&edge["from"]), number(&edge["to"]));
                let end = kind(&edge["from"])["end"].clone();
                let is_call = end.as_str().unwrap().starts_with("call");
                let expected = match (kind(&edge["to"])["kind"] == "exit", is_call) {
                    (true, _) => naive.left.get(&pair.0),
                    (false, true) => naive.returned.get(&pair),
                    (false, false) => naive.pairs.get(&pair),
                };
                let expected = expected.copied().unwrap_or(0);
                assert_eq!(edge["count"], expected, "{edge} of {what}");
                edges += u64::from(expected > 0);
                returns += u64::from(expected > 0 && is_call);
            }
            assert_eq!(told["calls"], naive.calls.len(), "{what}");
            let mut all = HashMap::new();
            for call in &naive.calls {
                *all.entry(call.clone()).or_insert(0u64) += 1;
            }
            let traces = told["traces"].as_array().unwrap();
            for trace in traces {
                let beginning = trace["beginning"].as_array().unwrap().iter().map(number);
                let beginning = Vec::from_iter(beginning);
                let length = number(&trace["length"]) as usize;
                let alike = all
                    .iter()
                    .filter(|(way, _)| way.len() == length && way.starts_with(&beginning));
                let counts = Vec::from_iter(alike.map(|(_, count)| *count));
                assert!(
                    counts.contains(&number(&trace["calls"])),
                    "{trace} of {what}: {counts:?}"
                );
            }
            assert_eq!(traces.len(), all.len(), "{what}");
            ways += traces.len();
        }
    }
    assert!(
        edges > 50 && returns > 10 && ways > 10,
        "{edges} {returns} {ways}"
    );
}

#[test]
fn all_calls_of_the_host_are_found() {
    let sandbox = Sandbox::new();
    sandbox.rust("sorts", SORTS);
    sandbox.ok("record -o run.aft sorts.wasm");
    let page = Page::of(&sandbox, "run.aft");
    let names = page.doc("names", &[]);
    let imports = names["imports"].as_array().unwrap();
    let count = |import: &Value| -> u64 {
        let calls = import["calls"].as_array().unwrap().iter();
        let count = |call| {
            let at = format!("@{:#x}", number(call));
            number(&page.doc("executions", &[("at", &at), ("limit", "8")])["count"])
        };
        calls.map(count).sum()
    };
    let writes = imports.iter().find(|import| import["name"] == "fd_write");
    assert_eq!(count(writes.unwrap()), 1, "the program prints one line");
    let info: Value =
        serde_json::from_str(&sandbox.ok("info run.aft --format json").stdout).unwrap();
    let all: u64 = imports.iter().map(count).sum();
    assert_eq!(all, number(&info["host_calls"]), "{names}");
}

#[test]
fn a_moment_in_inlined_library_code_names_the_line_that_called_it() {
    let sandbox = Sandbox::new();
    sandbox.rust("sorts", SORTS);
    sandbox.ok("record -o run.aft sorts.wasm");
    let page = Page::of(&sandbox, "run.aft");
    let length = number(&page.doc("moment", &[("at", "end")])["length"]);
    let mut numbers = SplitMix64(3);
    let mut called = 0;
    for _ in 0..seeds(40) {
        let at = format!("t={}", 1 + numbers.next() % length);
        let named = page.doc("moment", &[("at", &at)]);
        let Some(place) = named["around"].as_object() else {
            continue;
        };
        assert!(
            place["file"].as_str().unwrap().ends_with("sorts.rs"),
            "{named}"
        );
        assert_ne!(named["around"], named["source"], "{named}");
        // The state at the same place has the same line.
        let state = page.doc("state", &[("at", named["at"].as_str().unwrap())]);
        assert_eq!(named["around"], state["frames"][0]["around"], "{at}");
        called += 1;
    }
    assert!(called > 0, "no moment is in inlined library code");
}

/// A program whose last line drops values, with inlined code that has no line of its own.
const DROPS: &str = r#"
use std::collections::BTreeMap;

fn work(n: usize) -> usize {
    let map: BTreeMap<String, usize> = (0..n).map(|i| (format!("item{i}"), i)).collect();
    let count: Box<dyn Fn(usize) -> usize> = Box::new(move |more| more + map.len());
    count(n)
}

fn main() {
    println!("{}", work(3));
}
"#;

#[test]
fn code_that_drops_values_has_the_line_of_the_user() {
    let sandbox = Sandbox::new();
    sandbox.write("drops.rs", DROPS);
    sandbox.rustc("drops", "drops", 2);
    sandbox.ok("record -o run.aft drops.wasm");
    let page = Page::of(&sandbox, "run.aft");
    let length = number(&page.doc("moment", &[("at", "end")])["length"]);
    for time in (1..=length).step_by(5) {
        let at = format!("t={time}");
        let state = page.doc("state", &[("at", &at), ("depth", "1")]);
        let frame = &state["frames"][0];
        let is_inlined = frame["library"] != true
            && frame["source"]["file"]
                .as_str()
                .is_some_and(|file| !file.ends_with("drops.rs"));
        assert_eq!(frame["around"].is_object(), is_inlined, "{at}: {frame}");
        let named = page.doc("moment", &[("at", &at)]);
        assert_eq!(named["around"], frame["around"], "{at}");
    }
}

/// The counts of a function in a stretch, according to a naive trace.
#[derive(Default)]
struct Naive {
    blocks: HashMap<u64, u64>,
    /// A block of the stretch, and the block after it in the same activation.
    pairs: HashMap<(u64, u64), u64>,
    /// The pairs whose blocks are both in the stretch.
    returned: HashMap<(u64, u64), u64>,
    /// The last blocks of activations, and the blocks from which control left the function.
    left: HashMap<u64, u64>,
    /// The blocks of the calls that begin in the stretch.
    calls: Vec<Vec<u64>>,
}

impl Naive {
    fn of(rows: &[Value], function: u64, (from, to): (u64, u64)) -> Self {
        let mut found = Self::default();
        // For each open activation, its function and its blocks, with their times.
        let mut open: Vec<(u64, Vec<(u64, u64)>)> = Vec::new();
        let within = |t: u64| from <= t && t <= to;
        let mut end = |activation: (u64, Vec<(u64, u64)>), has_returned: bool| {
            let (of, blocks) = activation;
            if of != function {
                return;
            }
            for two in blocks.windows(2) {
                let pair = (two[0].0, two[1].0);
                let (left, entered) = (within(two[0].1), within(two[1].1));
                *found.pairs.entry(pair).or_default() += u64::from(left);
                *found.returned.entry(pair).or_default() += u64::from(left && entered);
            }
            for (block, t) in &blocks {
                *found.blocks.entry(*block).or_default() += u64::from(within(*t));
            }
            let (last, t) = *blocks.last().unwrap();
            *found.left.entry(last).or_default() += u64::from(has_returned && within(t));
            if within(blocks[0].1) {
                found
                    .calls
                    .push(blocks.iter().map(|(block, _)| *block).collect());
            }
        };
        let base = number(&rows[0]["depth"]);
        for row in rows {
            let depth = (number(&row["depth"]) - base) as usize;
            while open.len() > depth + 1 {
                end(open.pop().unwrap(), true);
            }
            let of = number(&row["function"]["index"]);
            if open.len() == depth {
                open.push((of, Vec::new()));
            }
            assert_eq!(open[depth].0, of, "{row}");
            open[depth]
                .1
                .push((number(&row["block"]), number(&row["t"])));
        }
        while let Some(activation) = open.pop() {
            end(activation, false);
        }
        found
    }
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
        // The command that the answer names reports the same slice.
        let words = command.strip_prefix("afterimage ").unwrap();
        let ran = sandbox.shell(&format!("\"$AFTERIMAGE\" {words} --format json"));
        let slice: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(slice["executions"], told["executions"], "{command}");
        assert_eq!(slice["lines"], told["lines"], "{command}");
        // With only values, the result is smaller, and still equals the result of the command.
        let options = [("byte", &*byte.to_string()), ("thin", "")];
        let (is_well, body, command) = page.ask("influence", &options);
        assert!(is_well && command.contains("--thin"), "{command}: {body}");
        let thin: Value = serde_json::from_str(&body).unwrap();
        let words = command.strip_prefix("afterimage ").unwrap();
        let ran = sandbox.shell(&format!("\"$AFTERIMAGE\" {words} --format json"));
        let slice: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(slice["executions"], thin["executions"], "{command}");
        assert_eq!(slice["lines"], thin["lines"], "{command}");
        assert_eq!(thin["outputs"], told["outputs"], "{command}");
        assert!(
            number(&thin["executions"]) < number(&told["executions"]),
            "{body}"
        );
    }
    let (is_well, body, _) = page.ask("influence", &[("byte", "6")]);
    assert!(!is_well && body.contains("did not read it"), "{body}");
}
