//! Tests summaries of source variables, and the writers and readers of variables in memory.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::Sandbox;

const SOURCE: &str = r#"#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Odd,
    Even = 5,
}

struct Pair {
    low: i32,
    high: f64,
}

static mut CALLS: u32 = 0;

#[inline(never)]
fn halve(n: i32, pair: &mut Pair) -> i32 {
    let half = n / 2 - 3;
    let kind = if n % 2 == 0 { Kind::Even } else { Kind::Odd };
    unsafe { CALLS += 1 };
    pair.low = half;
    pair.high = f64::from(half) / 4.0;
    if kind == Kind::Even { half } else { -half }
}

fn main() {
    let mut pair = Pair { low: 0, high: 0.0 };
    let mut total = 0;
    for n in 0..12 {
        total += halve(n, &mut pair);
    }
    println!("{total} {} {}", pair.low, pair.high);
}
"#;

/// The line with `pair.low = half`.
const LINE: &str = "app.rs:19";
const ROUNDS: i32 = 12;

fn recorded() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.rust("app", SOURCE);
    sandbox.ok("record -o app.aft app.wasm");
    sandbox
}

fn json(sandbox: &Sandbox, words: &str) -> Value {
    serde_json::from_str(&sandbox.ok(words).stdout).unwrap()
}

/// Returns the number of occurrences of each value.
fn counted(found: &Value) -> BTreeMap<String, u64> {
    let counts = found["counts"].as_array().unwrap().iter();
    let count = |count: &Value| {
        let value = count["value"].as_str().unwrap().to_owned();
        (value, count["times"].as_u64().unwrap())
    };
    counts.map(count).collect()
}

fn expected(values: impl Iterator<Item = String>) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for value in values {
        *all.entry(value).or_insert(0) += 1;
    }
    all
}

#[test]
fn numbers_are_summed_up() {
    let sandbox = recorded();
    let summed = |variable: &str| {
        let words =
            format!("values app.aft --at {LINE} --var {variable} --stats --limit 99 --format json");
        json(&sandbox, &words)
    };
    let half = summed("half");
    assert_eq!(half["count"], ROUNDS);
    let halves = expected((0..ROUNDS).map(|n| (n / 2 - 3).to_string()));
    assert_eq!(counted(&half), halves);
    let stats = &half["stats"][0];
    assert_eq!(
        (&stats["type"], &stats["different"]),
        (&"i32".into(), &6.into())
    );
    assert_eq!(
        (&stats["smallest"], &stats["largest"]),
        (&"-3".into(), &"2".into())
    );
    // An enumeration is shown by its names, in the order of its values.
    let kind = summed("kind");
    let kinds = expected((0..ROUNDS).map(|n| ["Even", "Odd"][n as usize % 2].to_owned()));
    assert_eq!(counted(&kind), kinds);
    assert_eq!(kind["stats"][0]["smallest"], "Odd");
    // This is the value that the previous iteration left there.
    let high = summed("pair->high");
    let before = (0..ROUNDS - 1).map(|n| f64::from(n / 2 - 3) / 4.0);
    let highs = [0.0].into_iter().chain(before);
    assert_eq!(
        counted(&high),
        expected(highs.map(|high| format!("{high:?}")))
    );
    assert_eq!(high["stats"][0]["smallest"], "-0.75");
    let pointer = summed("pair");
    assert_eq!(pointer["stats"][0]["different"], 1);
    let text = sandbox.ok(&format!("values app.aft --at {LINE} --var half --stats"));
    let line = "6 different values, from -3 (first #1) to 2 (first #11); most often -3 (2 times)";
    assert!(text.stdout.contains(line), "{text:?}");
    let part = "values app.aft --at app.rs:19 --var half --histogram --instances 1..3";
    let text = sandbox.ok(part).stdout;
    let rows: Vec<&str> = text.lines().skip(1).map(str::trim).collect();
    assert_eq!(rows, ["2 times  -3", "once  -2"]);
}

#[test]
fn what_is_no_number_or_nothing_is_refused_once() {
    let sandbox = recorded();
    sandbox.ok("build --lens full app.aft");
    let refused = |words: &str, parts: &[&str]| {
        sandbox.refused(&format!("values app.aft --at {LINE} {words}"), 125, parts);
    };
    refused(
        "--var *pair --stats",
        &["Pair is not a single number; name a part of it: .low, .high"],
    );
    refused("--var *pair --histogram", &["not a single number"]);
    refused("--var pair->lo", &["has no member lo; there is low"]);
    refused("--var pair->lo --stats", &["has no member lo"]);
    refused("--var half.x", &["half.x"]);
    refused("--instances t=99999999 --var half", &["was not arrived at"]);
    refused(
        "--instances 13..14 --var half",
        &["12 times", "no execution 13"],
    );
    refused("--instances t=99999999", &["was not executed"]);
    refused("--instances 13..14", &["12 times", "no execution 13"]);
}

#[test]
fn instances_from_a_time_on_are_those_of_statements_and_of_variables() {
    let sandbox = recorded();
    let all = json(
        &sandbox,
        &format!("values app.aft --at {LINE} --var half --format json"),
    );
    let time = &all["instances"][4]["t"];
    let words = format!("values app.aft --at {LINE} --instances t={time} --limit 3 --format json");
    let numbers = |rows: &Value| {
        let rows = rows.as_array().unwrap().iter();
        Vec::from_iter(rows.map(|row| row["number"].as_u64().unwrap()))
    };
    for statement in json(&sandbox, &words)["statements"].as_array().unwrap() {
        assert_eq!(numbers(&statement["instances"]), [5, 6, 7]);
    }
    let variable = json(&sandbox, &format!("{words} --var half"));
    assert_eq!(numbers(&variable["instances"]), [5, 6, 7]);
    // A summary covers all the instances.
    for words in [
        format!("values app.aft --at {LINE} --instances t={time} --stats --var half --format json"),
        format!("values app.aft --at {LINE} --instances t={time} --stats --format json"),
    ] {
        let found = json(&sandbox, &words);
        let counts = found
            .get("counts")
            .unwrap_or(&found["statements"][0]["counts"]);
        let times = counts.as_array().unwrap().iter();
        let times: u64 = times.map(|count| count["times"].as_u64().unwrap()).sum();
        assert_eq!(times, 8, "{words}");
    }
}

#[test]
fn a_global_variable_has_writers_and_readers() {
    let sandbox = recorded();
    let found = json(&sandbox, "memory app.aft --var CALLS --format json");
    let variable = &found["variable"];
    assert_eq!(
        (&variable["type"], &variable["value"]),
        (&"u32".into(), &"12".into())
    );
    assert_eq!(variable["call"], Value::Null);
    assert_eq!(found["contents"], "0c000000");
    let written = &found["parts"][0]["written"];
    assert_eq!(written["function"]["name"], "app::halve", "{written}");
    let all = sandbox.ok("memory app.aft --var CALLS --all").stdout;
    // Each iteration reads and writes the variable once.
    assert_eq!(all.matches("i32.store").count(), 12, "{all}");
    assert_eq!(all.matches("i32.load").count(), 12, "{all}");
    let at = json(
        &sandbox,
        "memory app.aft --var CALLS --at halve#4 --format json",
    );
    assert_eq!(at["variable"]["value"], "3");
}

#[test]
fn a_variable_on_the_stack_is_that_of_one_call() {
    let sandbox = recorded();
    let at = format!("{LINE}#5");
    let found = json(
        &sandbox,
        &format!("memory app.aft --var half --at {at} --format json"),
    );
    let variable = &found["variable"];
    assert_eq!(
        (&variable["type"], &variable["call"]["function"]["name"]),
        (&"i32".into(), &"app::halve".into())
    );
    let (first, last) = (&variable["call"]["first_t"], &variable["call"]["last_t"]);
    let (first, last) = (first.as_u64().unwrap(), last.as_u64().unwrap());
    let time = found["t"].as_u64().unwrap();
    assert!((first..=last).contains(&time), "{found}");
    let all = format!("memory app.aft --var half --at {at} --all");
    let all = sandbox.ok(&all).stdout;
    // The variable is written once in this call.
    assert_eq!(all.matches("i32.store").count(), 1, "{all}");
    // In another call, it is a different variable, even in the same place.
    let next = format!("memory app.aft --var half --at {LINE}#6 --format json");
    assert!(
        json(&sandbox, &next)["variable"]["call"]["first_t"]
            .as_u64()
            .unwrap()
            > last
    );
    let pointee = format!("memory app.aft --var pair->low --at {at} --format json");
    assert_eq!(
        json(&sandbox, &pointee)["variable"]["call"]["function"]["name"],
        Value::Null
    );
    // Without a place, the answer is about the last moment at which the variable was in scope.
    let last = json(&sandbox, "memory app.aft --var half --format json");
    let call = &last["variable"]["call"];
    assert_eq!(call["function"]["name"], "app::halve");
    let written = last["parts"][0]["written"]["t"].as_u64().unwrap();
    let [first_t, last_t] = ["first_t", "last_t"].map(|t| call[t].as_u64().unwrap());
    assert!((first_t..=last_t).contains(&written), "{last}");
    let t = last["t"].as_u64().unwrap();
    assert!((written..=last_t).contains(&t), "{last}");
    // Bytes with the same answers are one part of the text, whatever reads them after the call.
    let told = sandbox.ok("memory app.aft --var half").stdout;
    let parts = told.lines().filter(|line| line.contains("..0x"));
    assert_eq!(parts.count(), 1, "{told}");
    sandbox.refused(
        "memory app.aft --var half --at end",
        125,
        &["half is a variable of app::halve, so it does not exist at the end"],
    );
    sandbox.refused("memory app.aft --var nobody", 125, &["no variable nobody"]);
    let both = sandbox.run("memory app.aft --var half --address 0");
    assert!(both.stderr.contains("cannot be used with"), "{both:?}");
}

/// Two calls are inlined into a function that is not itself inlined.
const INLINED: &str = r#"#[inline(always)]
fn inner(x: i32) -> i32 {
    println!("{x}");
    x * 2
}

#[inline(always)]
fn middle(y: i32) -> i32 {
    inner(y + 1) + y
}

#[inline(never)]
fn outer(z: i32) -> i32 {
    middle(z * 10)
}

fn main() {
    outer(4);
}
"#;

#[test]
fn inlined_calls_are_frames_with_lines_and_variables() {
    let sandbox = Sandbox::new();
    sandbox.rust("app", INLINED);
    sandbox.ok("record -o app.aft app.wasm");
    let told = sandbox.ok("state app.aft --at app.rs:3").stdout;
    let own = told.lines().filter(|line| !line.starts_with("before"));
    let own = own.map(|line| line.split("  @").next().unwrap().trim_end());
    let own = Vec::from_iter(own.take(8).filter(|line| !line.contains("args")));
    let expected = [
        "#0.2 app::inner(x=41) at app.rs:3, inlined",
        "    x = 41  (i32)",
        "#0.1 app::middle(y=40) at app.rs:9, inlined",
        "    y = 40  (i32)",
        "#0 app::outer(z=4) at app.rs:14",
        "    z = 4  (i32)",
        "#1 app::main() at app.rs:18",
    ];
    assert_eq!(own[..expected.len()], expected, "{told}");
    let state = json(&sandbox, "state app.aft --at app.rs:3 --format json");
    let frame = &state["frames"][0];
    let lines = frame["inlined"].as_array().unwrap().iter();
    let lines = lines.map(|call| call["source"]["line"].as_u64().unwrap());
    assert_eq!(Vec::from_iter(lines), [3, 9]);
    assert_eq!(frame["own_source"]["line"], 14);
}

const REFERENCES: &str = r#"struct Word {
    count: u32,
}

#[inline(never)]
fn is_heavy(word: &&Word) -> bool {
    let limit = 1;
    word.count > limit
}

fn main() {
    let words = [Word { count: 1 }, Word { count: 2 }];
    println!("{}", words.iter().filter(is_heavy).count());
}
"#;

#[test]
fn a_member_is_found_behind_several_references() {
    let sandbox = Sandbox::new();
    sandbox.rust("app", REFERENCES);
    sandbox.ok("record -o app.aft app.wasm");
    let words = "values app.aft --at app.rs:8 --format json --var";
    let counts = json(&sandbox, &format!("{words} word.count"));
    let instances = counts["instances"].as_array().unwrap().iter();
    let counts = Vec::from_iter(instances.map(|one| one["value"].as_str().unwrap()));
    assert_eq!(counts, ["1", "2"]);
    let parts = ["Word has no member size"];
    sandbox.refused(&format!("{words} word.size"), 125, &parts);
}

const NAMED: &str = r#"trait Show {
    fn show(&self) -> usize;
}

impl Show for String {
    #[inline(never)]
    fn show(&self) -> usize {
        self.len()
    }
}

fn main() {
    let names: Vec<String> = vec!["a".into()];
    println!("{}", names[0].show());
}
"#;

#[test]
fn messages_shorten_the_names_of_types_and_functions() {
    let sandbox = Sandbox::new();
    sandbox.rust("app", NAMED);
    sandbox.ok("record --lens full -o app.aft app.wasm");
    let refused = |words: &str, start: &str| {
        sandbox.refused(words, 125, &[start]);
        let said = sandbox.run(words).stderr;
        assert!(!said.contains("alloc::string"), "{said}");
    };
    let words = "values app.aft --at app.rs:14 --var";
    refused(
        &format!("{words} names.weight"),
        ": Vec<String> has no member weight",
    );
    let words = "trace app.aft --to t=3 --function";
    refused(
        &format!("{words} show"),
        ": <String as app::Show>::show executes nothing from t=1 to t=3",
    );
}
