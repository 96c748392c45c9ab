//! The costs of lines including library code equal the costs that a walk over all blocks finds.

use std::collections::BTreeMap;

use afterimage_ids::{FuncId, OrigOffset};
use afterimage_program::{Program, SourceMap};
use serde_json::Value;

use crate::common::Sandbox;

/// A line of `app.rs`; 0 if no line is charged.
type Line = u64;

/// The effect of a block.
#[derive(Default)]
struct Block {
    /// For each instruction, whether every execution of the block reached it, and its line. The
    /// block's last execution may have ended early, with the run. The line `None` is the line that
    /// called the function.
    instructions: Vec<(bool, Option<Line>)>,
}

/// Returns the blocks of `app.wasm` by function and number.
fn blocks(sandbox: &Sandbox) -> BTreeMap<(u64, u64), Block> {
    let module = sandbox.read("app.wasm");
    let source = SourceMap::build(&module);
    let program = Program::parse(&module).unwrap();
    let is_own = |path: &str| path.ends_with("app.rs");
    let told = sandbox.ok("profile app.aft --by instruction --format json");
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    let mut blocks = BTreeMap::<_, Block>::new();
    let mut whole = BTreeMap::new();
    let rows = told["rows"].as_array().unwrap();
    // The file of each function's first instruction with a line.
    let mut files = BTreeMap::new();
    for row in rows {
        if let Some(file) = row["source"]["file"].as_str() {
            let function = row["function"]["index"].as_u64().unwrap();
            files.entry(function).or_insert(file);
        }
    }
    for row in rows {
        let Some(block) = row["block"].as_u64() else {
            continue;
        };
        let is_marker = ["block", "loop", "end", "else"];
        if is_marker.contains(&row["text"].as_str().unwrap().split(' ').next().unwrap()) {
            continue;
        }
        let index = row["function"]["index"].as_u64().unwrap();
        let function = program.function(FuncId::from_u32(index as u32)).unwrap();
        let declared = source.declared(function.body.start);
        let declared = declared.map(|at| source.path(at.file));
        let in_own = match declared.or(files.get(&index).copied()) {
            Some(file) => is_own(file),
            None => !row["function"]["name"].as_str().unwrap().starts_with("__"),
        };
        let at = &row["source"];
        let written = at["line"]
            .as_u64()
            .filter(|_| is_own(at["file"].as_str().unwrap()));
        let offset = OrigOffset(row["offset"].as_u64().unwrap() as u32);
        let frames = source.inlined_frames(offset).into_iter();
        let mut places = frames.filter_map(|frame| frame.location);
        let called = places.find(|at| is_own(source.path(at.file)));
        let line = written.or(called.map(|at| u64::from(at.line)));
        let count = row["count"].as_u64().unwrap();
        let most = *whole.entry((index, block)).or_insert(count);
        let instructions = &mut blocks.entry((index, block)).or_default().instructions;
        instructions.push((count == most, line.or(in_own.then_some(0))));
    }
    blocks
}

/// Counts the instructions of each line by walking over all blocks of the run.
fn walked(sandbox: &Sandbox) -> BTreeMap<Line, u64> {
    let blocks = blocks(sandbox);
    let told = sandbox.ok("trace app.aft --level block --format json --limit all");
    let rows = told.stdout.lines().skip(1);
    let rows = rows.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let rows = Vec::from_iter(rows.filter(|row| row["block"].is_u64()));
    let mut sums = BTreeMap::new();
    // For each open call, the line to which it is charged, and the line to which the calls that it
    // makes are charged.
    let mut open: Vec<(Line, Line)> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let depth = row["depth"].as_u64().unwrap() as usize;
        let function = row["function"]["index"].as_u64().unwrap();
        let block = blocks.get(&(function, row["block"].as_u64().unwrap()));
        let was_open = depth < open.len();
        open.truncate(depth + 1);
        if !was_open {
            let payer = open.last().map_or(0, |open| open.1);
            open.push((payer, payer));
        }
        let payer = open[depth].0;
        // A block without instructions calls nothing.
        let Some(block) = block else { continue };
        for &(is_reached, line) in &block.instructions {
            if is_reached || at + 1 < rows.len() {
                *sums.entry(line.unwrap_or(payer)).or_default() += 1;
            }
        }
        open[depth].1 = block.instructions.last().unwrap().1.unwrap_or(payer);
    }
    sums
}

/// Compares the profile of `app.aft`, which ran `app.wasm`, with the walk.
fn assert_holds(sandbox: &Sandbox) -> BTreeMap<Line, u64> {
    let mut walked = walked(sandbox);
    let told = sandbox.ok("profile app.aft --by line --code mine --format json");
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    let mut lines = BTreeMap::new();
    for row in told["rows"].as_array().unwrap() {
        let [whole, own] = ["with_library", "instructions"].map(|of| row[of].as_u64().unwrap());
        assert!(own <= whole, "{row}");
        if whole > 0 {
            lines.insert(row["source"]["line"].as_u64().unwrap(), whole);
        }
    }
    let sum = lines.values().sum::<u64>() + walked.get(&0).unwrap_or(&0);
    assert_eq!(sum, told["totals"]["instructions"].as_u64().unwrap());
    walked.remove(&0);
    assert_eq!(lines, walked);
    lines
}

const RUST: &str = "\
use std::collections::BTreeMap;
#[inline(never)]
fn sorted(mut names: Vec<String>) -> String {
    names.sort_by(|a, b| b.len().cmp(&a.len()));
    names.join(\", \")
}
fn main() {
    let mut all = BTreeMap::new();
    for n in 0..20u32 {
        all.entry(n % 7).or_insert_with(Vec::new).push(format!(\"{n:>2}\"));
    }
    for (_, names) in all {
        println!(\"{}\", sorted(names));
    }
    let zero: usize = std::env::args().count().saturating_sub(1);
    println!(\"{}\", \"abc\".chars().nth(0).unwrap() as usize / zero);
}
";

#[test]
fn lines_of_rust_cost_what_a_walk_finds() {
    let sandbox = Sandbox::new();
    sandbox.write("app.rs", RUST);
    for level in [0, 2] {
        sandbox.rustc("app", "app", level);
        for arguments in ["app.wasm", "app.wasm 1"] {
            sandbox.run(&format!("record --force -o app.aft {arguments}"));
            let lines = assert_holds(&sandbox);
            // The library sorts on behalf of this line.
            let own = sandbox
                .ok("profile app.aft --by line --code all --format csv")
                .stdout;
            let own = own.lines().find(|row| row.starts_with("app.rs,4,"));
            let own = own.map_or(0, |row| row.split(',').nth(3).unwrap().parse().unwrap());
            assert!(lines[&4] > own, "{lines:?}");
        }
    }
}

/// A trap ends its block, and the later instructions of the block were not executed.
#[test]
fn library_code_that_traps_costs_what_it_executed() {
    let sandbox = Sandbox::new();
    let text = "\
        #![allow(internal_features)]\n\
        fn main() {\n    let n = std::env::args().count();\n    let v: Vec<u8> = Vec::new();\n    \
        unsafe { println!(\"{}\", std::ptr::read_volatile(v.as_ptr().wrapping_add(0x7fff_fff0 * n)).wrapping_add(1)); }\n}\n";
    sandbox.write("app.rs", text);
    for level in [0, 2] {
        sandbox.rustc("app", "app", level);
        sandbox.run("record --force -o app.aft app.wasm");
        assert_holds(&sandbox);
    }
}

/// The text has the counts in two columns, the hottest line first.
#[test]
fn text_shows_library_code_beside_the_line_itself() {
    let sandbox = Sandbox::new();
    sandbox.write("app.rs", RUST);
    sandbox.rustc("app", "app", 0);
    sandbox.ok("record -o app.aft app.wasm 1");
    let told = sandbox.ok("profile app.aft --by line --limit 3").stdout;
    let header = told.lines().nth(2).unwrap();
    let words = Vec::from_iter(header.split_whitespace());
    assert_eq!(
        words[..5],
        ["share", "with", "library", "self", "count"],
        "{told}"
    );
    assert!(told.contains("called from none of these lines: "), "{told}");
}
