//! Places that commands print are places that every command takes.

use std::collections::BTreeSet;

use crate::common::Sandbox;

/// Its file has the name of files of the standard library, which has code in the program, too.
const SOURCE: &str = r#"#[inline(always)]
fn double(n: u32) -> u32 {
    let twice = n.wrapping_mul(2);
    twice ^ 1
}

#[inline(never)]
fn sum(numbers: &[u32]) -> u32 {
    let mut sum = 0u32;
    for &n in numbers {
        if n % 3 == 0 {
            continue;
        }
        sum =
            sum.wrapping_add(double(n));
    }
    sum
}

fn main() {
    let mut numbers: Vec<u32> = (0..20).map(|n| n * 7 % 11).collect();
    numbers.sort();
    println!("{}", sum(&numbers));
}
"#;

/// Commands that print places.
const PRINTING: &[&str] = &[
    "profile run.aft --by line --top 400",
    "profile run.aft --by block --top 400",
    "profile run.aft --by instruction --top 400",
    "state run.aft --at 50%",
    "trace run.aft --limit 400",
    "trace run.aft --level path --limit all",
    "trace run.aft --level call",
    "deps run.aft --at sum#1 --forward",
    "slice run.aft --at sum#1 --by statement",
    "slice run.aft --at sum#1 --forward",
    "why run.aft --stdout 1",
    "redundancy run.aft",
    "addresses run.aft --at sum",
    "simulate run.aft --worst",
    "calls run.aft --function sum",
    "dataflow run.aft --fact available:sum",
    "match run.aft run.aft",
    "state run.aft --at sum",
    "state run.aft --at end",
    "trace run.aft --level statement --from sum --limit 40",
    "values run.aft --at sum",
    "deps run.aft --at sum#1",
    "slice run.aft --at sum#1",
    "why run.aft --at sum#1",
    "paths run.aft --hot --top 400",
];

/// Commands that take a place, with what stands before it.
const TAKING: &[&str] = &[
    "state run.aft --at",
    "trace run.aft --limit 3 --from",
    "values run.aft --at",
    "deps run.aft --at",
    "slice run.aft --at",
    "why run.aft --at",
    "why-not run.aft --at",
    "simulate run.aft --at",
    "addresses run.aft --at",
    "memory run.aft --address 0x100000 --at",
];

/// What is said of a text that is no place, or of several.
const REFUSALS: &[&str] = &[
    "no source file",
    "ambiguous",
    "no code comes from",
    "no function",
    "no operator begins",
    "unexpected argument",
];

/// The places in a text: `file.rs:42`, `file.c:42` and `@0x1f3`, with `#3` behind it or not.
fn places(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| c.is_whitespace() || "(),;`\"".contains(c));
    let words = words.map(|word| word.trim_end_matches([':', '.', '…']));
    let is_place = |word: &&str| {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let (word, time) = word.split_once('#').unwrap_or((word, "1"));
        let line = [".rs:", ".c:"]
            .iter()
            .filter_map(|end| word.rsplit_once(end))
            .any(|(_, line)| digits(line));
        digits(time) && line
            || word
                .strip_prefix("@0x")
                .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    words.filter(is_place).map(str::to_owned).collect()
}

fn check(level: u32) {
    let sandbox = Sandbox::new();
    sandbox.write("lib.rs", SOURCE);
    sandbox.rustc("lib", "app", level);
    sandbox.ok("record -o run.aft app.wasm");
    sandbox.ok("simulate run.aft");
    let mut found = BTreeSet::new();
    for command in PRINTING {
        found.extend(places(&sandbox.ok(command).stdout));
    }
    assert!(found.len() > 100, "{found:?}");
    // Each by one of the commands, so that all have many of every kind; those of the program by all.
    let mut wrong = Vec::new();
    for (i, place) in found.iter().enumerate() {
        for (k, command) in TAKING.iter().enumerate() {
            if i % TAKING.len() != k && !place.contains("lib.rs:") {
                continue;
            }
            // Some columns show offsets without what stands before them elsewhere.
            let bare = place.strip_prefix('@').filter(|_| i % 2 == 1);
            let place = bare.unwrap_or(place);
            let ran = sandbox.run(&format!("{command} {place}"));
            // Lines of removed functions are printed with count 0; no code is theirs.
            let removed = ran.stderr.contains("the linker removed");
            let refused = !removed && REFUSALS.iter().any(|refusal| ran.stderr.contains(refusal));
            if refused || ran.stderr.contains("panicked") {
                wrong.push(format!("{command} {place}: {}", ran.stderr));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "-O{level}: {} of {}\n{}",
        wrong.len(),
        found.len(),
        wrong.join("\n")
    );
}

#[test]
fn printed_places_are_taken_back() {
    check(0);
}

#[test]
fn printed_places_of_an_optimised_program_are_taken_back() {
    check(2);
}
