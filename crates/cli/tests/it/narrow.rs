//! Text fits into a terminal of 80 columns.

use afterimage_testkit::tools;

use crate::common::Sandbox;

const SOURCE: &str = "\
use std::collections::BTreeMap;

#[inline(never)]
fn a_function_with_quite_a_long_name(counts: &mut BTreeMap<String, u64>, word: &str) -> u64 {
    let count = counts.entry(word.to_owned()).or_default();
    *count += word.len() as u64;
    *count
}

fn main() {
    let mut counts = BTreeMap::new();
    let mut sum = 0;
    for word in std::env::args().skip(1) {
        sum += a_function_with_quite_a_long_name(&mut counts, &word);
    }
    println!(\"{sum} in {counts:?}\");
}
";

const COLUMNS: usize = 80;

/// The longest text without a space in a line, which cannot be broken.
fn longest_word(line: &str) -> usize {
    let words = line.split_whitespace().map(|word| word.chars().count());
    words.max().unwrap_or(0)
}

/// Runs a command on a terminal of 80 columns.
fn on_terminal(sandbox: &Sandbox, words: &str) -> String {
    let command = format!("stty rows 50 cols {COLUMNS}; $AFTERIMAGE {words}");
    let shell = format!("TERM=dumb NO_COLOR=1 script -qec '{command}' /dev/null < /dev/null");
    sandbox.shell(&shell).stdout
}

/// A trace shows source text, not the numbers of blocks.
#[test]
fn a_narrow_trace_keeps_the_source() {
    if !tools::installed("script") || !tools::installed("stty") {
        tools::skipped("a trace at 80 columns");
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.rust("app", SOURCE);
    sandbox.ok("record -o app.aft app.wasm one two one three");
    let told = on_terminal(&sandbox, "trace app.aft --limit 40");
    let head = told.lines().find(|line| line.contains("function"));
    let head = head.expect("a head");
    assert!(!head.contains("block"), "{head}");
    assert!(told.contains("*count += word.len"), "{told}");
    let wide = sandbox.ok("trace app.aft --limit 40").stdout;
    assert!(wide.contains("  block  "), "{wide}");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    if !tools::installed("script") || !tools::installed("stty") {
        tools::skipped("text at 80 columns");
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.rust("app", SOURCE);
    sandbox.ok("record -o app.aft app.wasm one two one three");
    sandbox.ok("record -o other.aft app.wasm one two four");
    sandbox.ok("build --lens full app.aft");
    let line = "app.rs:6";
    let commands = [
        "profile app.aft".to_owned(),
        "profile app.aft --by line".to_owned(),
        "profile app.aft --by block --limit 3".to_owned(),
        "calls app.aft".to_owned(),
        "calls app.aft --function app::main".to_owned(),
        "calls app.aft --function app::main --call 1".to_owned(),
        "paths app.aft".to_owned(),
        "paths app.aft --hot".to_owned(),
        "paths app.aft --function app::main".to_owned(),
        "trace app.aft --limit 20".to_owned(),
        "trace app.aft --level path --limit 20".to_owned(),
        "trace app.aft --level call --limit 20 --code all".to_owned(),
        "trace app.aft --level line --limit 20".to_owned(),
        "trace app.aft --level statement --limit 20".to_owned(),
        format!("state app.aft --at {line}"),
        format!("values app.aft --at {line}"),
        format!("values app.aft --at {line} --stats"),
        "values app.aft --loads".to_owned(),
        "redundancy app.aft".to_owned(),
        "redundancy app.aft --expressions".to_owned(),
        "memory app.aft --address 0x100400".to_owned(),
        format!("deps app.aft --at {line}#1 --depth 3"),
        format!("slice app.aft --at {line}#1"),
        "why app.aft --stdout 0".to_owned(),
        "why-not app.aft --at app.rs:6 --after end".to_owned(),
        "match app.aft other.aft".to_owned(),
        "diff app.aft other.aft".to_owned(),
        "simulate app.aft".to_owned(),
        "addresses app.aft --all --limit 10".to_owned(),
        "info app.aft".to_owned(),
        "info app.aft --sizes".to_owned(),
        "verify app.aft".to_owned(),
    ];
    let mut lines = 0;
    for words in commands {
        let told = on_terminal(&sandbox, &words);
        for line in told.lines().map(str::trim_end) {
            // The remains of a progress bar are overwritten.
            let line = line.rsplit('\r').next().unwrap_or(line);
            let width = line.chars().count();
            // Names and paths are never broken.
            let is_unbroken = longest_word(line) + 12 > COLUMNS;
            assert!(width <= COLUMNS || is_unbroken, "{words}\n{width}: {line}");
            lines += 1;
        }
    }
    assert!(lines > 300, "few lines: {lines}");
}
