//! Tests currency: compares the optimised run's value of a variable with the value implied by the
//! source, where this is known by construction or from the runs.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::Sandbox;

/// Statements as functions, so that they keep their lines wherever they are called.
const STATEMENTS: &str = r#"#[inline(always)]
fn first(x: &mut u32, i: u32) {
    *x = i * 7 + 1;
}
#[inline(always)]
fn second(x: &mut u32, i: u32) {
    *x = i * i + 2;
}
#[inline(always)]
fn here(i: u32) {
    std::hint::black_box(i);
}
#[inline(never)]
fn work(n: u32) -> u32 {
    let mut x = 100;
    for i in 0..n {
        ORDER
    }
    x
}
fn main() {
    println!("{}", work(3) + work(5));
}
"#;

/// The statements in the order of the source.
const PLAIN: &str = "first(&mut x, i); here(i); second(&mut x, i);";
/// The line with `black_box`.
const HERE: &str = "app.rs:11";
/// The value of `i` at each arrival there.
const ROUNDS: [u32; 8] = [0, 1, 2, 0, 1, 2, 3, 4];

fn json(sandbox: &Sandbox, words: &str) -> Value {
    serde_json::from_str(&sandbox.ok(words).stdout).unwrap()
}

/// Records the current `app.rs`, compiled at this level of optimisation.
fn recorded(sandbox: &Sandbox, name: &str, level: u32) {
    sandbox.rustc("app", name, level);
    sandbox.ok(&format!("record --force -o {name}.aft {name}.wasm"));
    sandbox.ok(&format!("build --lens full {name}.aft"));
}

/// Computes, from `i`, the value that is assigned last before the optimised program reaches `here`,
/// according to the order of its statements.
type Shown = fn(u32) -> u32;

fn before(i: u32) -> u32 {
    match i {
        0 => 100,
        _ => (i - 1) * (i - 1) + 2,
    }
}

#[test]
fn assignments_that_were_moved_by_construction_are_found() {
    let cases: [(&str, Shown, &str); 6] = [
        // The second assignment is executed too early.
        (
            "first(&mut x, i); second(&mut x, i); here(i);",
            |i| i * i + 2,
            "hoisted",
        ),
        (
            "here(i); first(&mut x, i); second(&mut x, i);",
            before,
            "delayed",
        ),
        ("here(i); second(&mut x, i);", before, "removed"),
        (
            "if i > 90 { first(&mut x, i); } here(i); second(&mut x, i);",
            before,
            "not executed",
        ),
        // The assignment is moved on one path only, as in partial dead code elimination (2001,
        // Figure 12).
        (
            "if i % 2 == 0 { first(&mut x, i); here(i); } else { here(i); first(&mut x, i); } second(&mut x, i);",
            |i| if i % 2 == 0 { i * 7 + 1 } else { before(i) },
            "delayed",
        ),
        // Other code is changed, so the variable stays current.
        (
            "first(&mut x, i); std::hint::black_box(n); here(i); second(&mut x, i);",
            |i| i * 7 + 1,
            "",
        ),
    ];
    let sandbox = Sandbox::new();
    sandbox.write("app.rs", STATEMENTS.replace("ORDER", PLAIN));
    recorded(&sandbox, "plain", 0);
    for (order, shown, cause) in cases {
        sandbox.write("app.rs", STATEMENTS.replace("ORDER", order));
        recorded(&sandbox, "moved", 0);
        let words = format!("moved.aft --unoptimised plain.aft --at {HERE} --var x");
        let found = json(&sandbox, &format!("currency {words} --format json"));
        // The line table of an unoptimised program may return to a line; these stops are not
        // reported.
        let stops: Vec<&Value> = found["stops"].as_array().unwrap().iter().collect();
        let told: Vec<&&Value> = stops
            .iter()
            .filter(|stop| stop["verdict"] != "not told")
            .collect();
        assert_eq!(told.len(), ROUNDS.len(), "{order}: {found}");
        for ((number, &i), stop) in (1..).zip(&ROUNDS).zip(told) {
            let (shown, expected) = (shown(i), i * 7 + 1);
            assert_eq!(stop["unoptimised"]["number"], number, "{order}: {stop}");
            assert_eq!(stop["shown"]["value"], shown.to_string(), "{order}: {stop}");
            assert_eq!(
                stop["expected"]["value"],
                expected.to_string(),
                "{order}: {stop}"
            );
            let verdict = if shown == expected {
                "current"
            } else {
                "not current"
            };
            assert_eq!(stop["verdict"], verdict, "{order}: {stop}");
        }
        match cause {
            "" => assert_eq!(found["explained"], Value::Null, "{order}"),
            cause => {
                let explained = &found["explained"];
                assert_eq!(explained["cause"], cause, "{order}: {explained}");
                assert_eq!(
                    explained["expected"]["source"]["line"], 3,
                    "{order}: {explained}"
                );
            }
        }
        // A question about a single stop gets the same answer.
        let last = stops.last().unwrap();
        let one = json(
            &sandbox,
            &format!("currency {words} --at {HERE}#last --format json").replacen(
                &format!("--at {HERE} "),
                "",
                1,
            ),
        );
        assert_eq!(&one["stops"][0], *last, "{order}");
        // Matched statements may give more results, but never different results.
        let matched = json(&sandbox, &format!("currency {words} --match --format json"));
        for (with, without) in matched["stops"].as_array().unwrap().iter().zip(stops) {
            let untold = without["verdict"] == "not told";
            assert!(untold || with == without, "{order}: {with} {without}");
        }
    }
    let text = sandbox.ok(&format!(
        "currency moved.aft --unoptimised plain.aft --at {HERE}"
    ));
    sandbox.refused(
        &format!("currency moved.aft --unoptimised plain.aft --at {HERE}#2 --var x --limit 1"),
        125,
        &["one stop", "leave out --limit"],
    );
    let first = json(
        &sandbox,
        &format!(
            "currency moved.aft --unoptimised plain.aft --at {HERE} --var x --limit 1 --format json"
        ),
    );
    assert_eq!(first["stops"].as_array().unwrap().len(), 1, "{first}");
    let head = text.stdout.lines().next().unwrap();
    assert!(
        head.contains("no variable was found that is not current"),
        "{head}"
    );
    for name in ["x (u32)", "n (u32)", "i (u32)"] {
        assert!(text.stdout.contains(name), "{name}: {}", text.stdout);
    }
}

/// A loop, or its iterations unrolled into one block.
const ROUNDS_OF: &str = r#"#[inline(always)]
fn mixed(i: u32) -> u32 {
    let m = GIVEN;
    m
}
static mut SUM: u32 = 100;
#[inline(always)]
fn add(m: u32) {
    unsafe { SUM = SUM ^ m }
}
#[inline(never)]
fn work(n: u32) {
    BODY
}
fn main() {
    work(0);
    work(4);
    println!("{}", unsafe { SUM });
}
"#;

#[test]
fn rounds_that_changed_places_are_told_by_what_they_gave() {
    let looped = "let mut k = 1; while k < 4 { add(mixed(n | k)); k += 1; }";
    let unrolled = "let c = mixed(n | 3);\n let b = mixed(n | 2);\n let a = mixed(n | 1);\n add(a); add(b); add(c);";
    let ordered = "let a = mixed(n | 1);\n let b = mixed(n | 2);\n let c = mixed(n | 3);\n add(a); add(b); add(c);";
    let other = unrolled.replace("n | 3", "n | 8");
    // Each case has the computation, the body of the optimised program, the corresponding rounds of
    // the unoptimised run, and the reason if there are none.
    let cases: [(&str, &str, Option<[u64; 6]>, &str); 4] = [
        ("i ^ 5", unrolled, Some([3, 2, 1, 6, 5, 4]), ""),
        ("i ^ 5", ordered, Some([1, 2, 3, 4, 5, 6]), ""),
        ("i ^ 5", &other, None, "differs"),
        ("i >> 9", unrolled, None, "alike"),
    ];
    let sandbox = Sandbox::new();
    for (given, body, wanted, why) in cases {
        let of = |body: &str| ROUNDS_OF.replace("GIVEN", given).replace("BODY", body);
        sandbox.write("app.rs", of(looped));
        recorded(&sandbox, "plain", 0);
        sandbox.write("app.rs", of(body));
        recorded(&sandbox, "moved", 0);
        let words = "currency moved.aft --unoptimised plain.aft --var SUM --at app.rs:3";
        let found = json(&sandbox, &format!("{words} --format json"));
        let stops = found["stops"].as_array().unwrap();
        assert_eq!(stops.len(), 6, "{given}, {body}: {found}");
        let expected = values(&sandbox, "plain.aft", 3, "SUM");
        for (at, stop) in stops.iter().enumerate() {
            let Some(wanted) = wanted else {
                assert_eq!(stop["verdict"], "not told", "{given}, {body}: {stop}");
                assert_eq!(stop[why]["column"], 13, "{given}, {body}: {stop}");
                continue;
            };
            let number = wanted[at];
            let expected = expected[&number].as_deref();
            assert_eq!(stop["unoptimised"]["number"], number, "{body}: {stop}");
            assert_eq!(
                stop["expected"]["value"].as_str(),
                expected,
                "{body}: {stop}"
            );
            let verdict = if stop["shown"]["value"].as_str() == expected {
                "current"
            } else {
                "not current"
            };
            assert_eq!(stop["verdict"], verdict, "{body}: {stop}");
        }
        let text = sandbox.ok(&format!("{words}#1")).stdout;
        let says = match why {
            "differs" => "a different value than at the arrival with the same number: 13, not 4",
            "alike" => "do not show which is which",
            _ => "SUM is ",
        };
        assert!(text.contains(says), "{given}, {body}: {text}");
    }
}

/// A program that the optimiser changes. `mark` is called with the number of its calls, so both
/// runs show how far they are.
const OPTIMISABLE: &str = r#"use std::hint::black_box;
static mut COUNT: u32 = 0;
static mut LAST: u32 = 0;
static mut TABLE: [u32; 9] = [3, 1, 4, 1, 5, 9, 2, 6, 8];

#[inline(never)]
fn mark(id: u32) {
    black_box(id);
}

#[inline(always)]
fn moment() {
    unsafe {
        static mut ID: u32 = 0;
        ID += 1;
        mark(ID)
    }
}

/// The counter is kept in a register while the loop runs, and written behind it.
#[inline(never)]
fn sum(values: &[u32]) -> u32 {
    let mut total = 0;
    for &value in values {
        if value == 4 {
            unsafe { LAST = value }
        }
        total = (total ^ value).rotate_left(3);
        unsafe { COUNT = COUNT.wrapping_add(1) }
    }
    total
}

/// The first assignment is never read.
#[inline(never)]
fn twice(a: u32) -> u32 {
    unsafe {
        LAST = 1;
        let b = a.wrapping_mul(a).wrapping_add(3);
        LAST = b;
    }
    moment();
    a + 1
}

fn inlined(k: u32) -> u32 {
    let mut local = k.wrapping_mul(5);
    moment();
    local = local.wrapping_add(k);
    moment();
    local
}

#[inline(never)]
fn pair(k: u32) -> u32 {
    let a = inlined(k);
    let unused = a.wrapping_mul(3);
    let b = inlined(a & 15);
    if b & 1 == 0 {
        moment();
        return unused;
    }
    a ^ b
}

fn main() {
    let mut all = 0u32;
    for round in 0..12 {
        all = all.wrapping_add(sum(unsafe { &*(&raw const TABLE) }));
        all = all.wrapping_add(twice(all & 255));
        all ^= pair(round);
    }
    println!("{all} {} {}", unsafe { COUNT }, unsafe { LAST });
}
"#;

/// Returns another command's answer about a variable at a line: the value or nothing, by number.
fn values(
    sandbox: &Sandbox,
    file: &str,
    line: u32,
    variable: &str,
) -> BTreeMap<u64, Option<String>> {
    let words =
        format!("values {file} --at app.rs:{line} --var {variable} --limit 100000 --format json");
    let found = json(sandbox, &words);
    let instances = found["instances"].as_array().unwrap().iter();
    instances
        .map(|one| {
            let value = one["value"].as_str().map(str::to_owned);
            (one["number"].as_u64().unwrap(), value)
        })
        .collect()
}

/// Returns the times at which `mark` was called, ascending.
fn marks(sandbox: &Sandbox, file: &str) -> Vec<u64> {
    let words = format!("values {file} --at mark --var id --limit 100000 --format json");
    let found = json(sandbox, &words);
    let instances = found["instances"].as_array().unwrap().iter();
    let times = instances.map(|one| one["t"].as_u64().unwrap());
    times.collect()
}

#[test]
fn verdicts_on_an_optimised_program_are_what_comparing_says() {
    let sandbox = Sandbox::new();
    sandbox.write("app.rs", OPTIMISABLE);
    recorded(&sandbox, "o0", 0);
    recorded(&sandbox, "o2", 2);
    let marked = [marks(&sandbox, "o0.aft"), marks(&sandbox, "o2.aft")];
    assert!(marked[0].len() > 60, "{}", marked[0].len());
    assert_eq!(marked[0].len(), marked[1].len());
    let passed = |run: usize, time: u64| marked[run].partition_point(|mark| *mark <= time);
    let mut verdicts: BTreeMap<String, u64> = BTreeMap::new();
    let mut causes: BTreeMap<String, u64> = BTreeMap::new();
    // The line of `mark(ID)` is inlined everywhere. Each of the other lines belongs to one
    // function.
    for (line, variables) in [
        (16, &["local", "a", "b", "k", "unused", "COUNT", "LAST"][..]),
        (15, &["local", "a", "COUNT"]),
        (26, &["COUNT", "LAST", "value", "total"]),
        (29, &["COUNT", "value", "total"]),
        (40, &["LAST", "a", "b"]),
        (43, &["LAST", "a"]),
        (70, &["all", "round"]),
        (71, &["all", "COUNT", "LAST"]),
    ] {
        for variable in variables {
            let words = format!(
                "currency o2.aft --unoptimised o0.aft --at app.rs:{line} --var {variable} --format json"
            );
            let found = json(&sandbox, &words);
            let stops = found["stops"].as_array().unwrap();
            let of_a = values(&sandbox, "o0.aft", line, variable);
            let of_b = values(&sandbox, "o2.aft", line, variable);
            assert_eq!(stops.len(), of_b.len(), "{words}");
            let mut counts: BTreeMap<String, u64> = BTreeMap::new();
            for stop in stops {
                let shown = &of_b[&stop["number"].as_u64().unwrap()];
                assert_eq!(
                    stop["shown"]["value"].as_str(),
                    shown.as_deref(),
                    "{words}: {stop}"
                );
                let verdict = stop["verdict"].as_str().unwrap();
                *counts.entry(verdict.replace(' ', "_")).or_default() += 1;
                let Some(number) = stop["unoptimised"]["number"].as_u64() else {
                    let word = if shown.is_some() {
                        "not told"
                    } else {
                        "not available"
                    };
                    assert_eq!(verdict, word, "{words}: {stop}");
                    continue;
                };
                let expected = &of_a[&number];
                assert_eq!(
                    stop["expected"]["value"].as_str(),
                    expected.as_deref(),
                    "{words}: {stop}"
                );
                match (shown, expected) {
                    (None, _) => assert_eq!(verdict, "not available", "{words}: {stop}"),
                    (Some(_), None) => assert_eq!(verdict, "not comparable", "{words}: {stop}"),
                    (Some(x), Some(y)) if x == y => {
                        assert_eq!(verdict, "current", "{words}: {stop}")
                    }
                    _ => assert!(
                        ["not current", "not set"].contains(&verdict),
                        "{words}: {stop}"
                    ),
                }
                // Both runs have passed the same number of marks. Two lines are exceptions: an
                // addition on line 71 is delayed past the additions of the next round, and an
                // addition on line 43 is hoisted.
                let times = [&stop["unoptimised"], stop].map(|at| at["t"].as_u64().unwrap());
                if line != 43 && line != 71 {
                    assert_eq!(passed(0, times[0]), passed(1, times[1]), "{words}: {stop}");
                }
            }
            for (verdict, count) in counts {
                assert_eq!(found[&verdict], count, "{words}");
                *verdicts.entry(verdict).or_default() += count;
            }
            if let Some(cause) = found["explained"]["cause"].as_str() {
                *causes.entry(cause.to_owned()).or_default() += 1;
            }
        }
    }
    for (verdict, least) in [("current", 300), ("not_current", 24), ("not_available", 50)] {
        let count = verdicts.get(verdict).copied().unwrap_or(0);
        assert!(count >= least, "{verdict}: {verdicts:?} {causes:?}");
    }
    // These are the causes for the dead assignment and for the counter that is written after the
    // loop.
    for cause in ["removed", "delayed"] {
        assert!(causes.contains_key(cause), "{cause}: {causes:?}");
    }
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("app.rs", STATEMENTS.replace("ORDER", PLAIN));
    recorded(&sandbox, "plain", 0);
    sandbox.write(
        "app.rs",
        STATEMENTS.replace("ORDER", "here(i); second(&mut x, i);"),
    );
    recorded(&sandbox, "moved", 0);
    let refused = |words: &str, parts: &[&str]| {
        sandbox.refused(&format!("currency moved.aft {words}"), 125, parts);
    };
    let plain = "--unoptimised plain.aft";
    refused(
        "--unoptimised moved.aft --at app.rs:11 --var x",
        &["same program"],
    );
    refused(
        &format!("{plain} --at app.rs:3 --var x"),
        &["in the optimised program", "app.rs:3"],
    );
    refused(
        &format!("{plain} --at app.rs:11:5 --var x"),
        &["leave out the column"],
    );
    refused(
        &format!("{plain} --at work --var x"),
        &["not a source line"],
    );
    refused(
        &format!("{plain} --at app.rs:11#99 --var x"),
        &["in the optimised run", "8 times"],
    );
    refused(
        &format!("{plain} --at app.rs:11 --var y.z"),
        &["--var y.z", "no variable y"],
    );
    refused(&format!("{plain} --at app.rs:11 --var x.z"), &["--var x.z"]);
    refused(&format!("{plain} --at app.rs:11 --var x+"), &["--var x+"]);
    refused(&format!("{plain} --at app.rs:11 --all"), &["--var"]);
    // With a different input, the program makes different host calls.
    sandbox.write(
        "app.rs",
        STATEMENTS
            .replace("ORDER", PLAIN)
            .replace("work(5));", "work(5)); println!();"),
    );
    recorded(&sandbox, "other", 0);
    sandbox.refused(
        "currency other.aft --unoptimised plain.aft --at app.rs:11 --var x",
        125,
        &["the two runs differ", "same input"],
    );
}
