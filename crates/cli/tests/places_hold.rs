//! Places that commands print are places that every command takes.

mod common;

use std::collections::BTreeSet;

use common::Sandbox;

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

/// The places in a text: `file.rs:42` and `@0x1f3`.
fn places(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| c.is_whitespace() || "(),;`\"".contains(c));
    let words = words.map(|word| word.trim_end_matches([':', '.', '…']));
    let is_place = |word: &&str| {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let line = word
            .rsplit_once(".rs:")
            .is_some_and(|(_, line)| digits(line));
        line || word
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
        let ran = sandbox.run(command);
        let own = places(&ran.stdout);
        let (offsets, lines): (Vec<_>, Vec<_>) =
            own.into_iter().partition(|place| place.starts_with('@'));
        // All lines of the program, some of the library, some operators.
        let (mine, others): (Vec<_>, Vec<_>) = lines
            .into_iter()
            .partition(|place| place.starts_with("lib.rs"));
        found.extend(mine);
        found.extend(others.into_iter().step_by(9).take(4));
        found.extend(offsets.into_iter().step_by(7).take(2));
    }
    assert!(found.len() > 20, "{found:?}");
    for place in &found {
        for command in TAKING {
            let ran = sandbox.run(&format!("{command} {place}"));
            assert!(
                !ran.stderr.contains("panicked"),
                "{command} {place}\n{ran:?}"
            );
            let refused = REFUSALS.iter().any(|refusal| ran.stderr.contains(refusal));
            assert!(!refused, "-O{level}: {command} {place}\n{}", ran.stderr);
        }
    }
}

#[test]
fn printed_places_are_taken_back() {
    check(0);
}

#[test]
fn printed_places_of_an_optimised_program_are_taken_back() {
    check(2);
}
