//! Stacks with inlined functions agree with a walk over all blocks of the run.

use std::collections::{BTreeMap, BTreeSet};

use afterimage_ids::{BlockId, EntityRef, FuncId, OrigOffset};
use afterimage_program::{InlinedFrame, Program, SourceMap, demangle, short_function};
use afterimage_testkit::tools;
use serde_json::Value;

use crate::common::Sandbox;
use crate::common::stacks::{callgrind, callgrind_lines, pprof, speedscope};

/// The number of blocks by stack.
type Stacks = BTreeMap<String, u64>;

/// A function on a stack, and whether it is the user's own.
type Named = (String, bool);

/// An executed block: its time, and the functions that contain it.
type Moment = (u64, Vec<Named>);

/// A program, and the data about its blocks.
struct Guest {
    program: Program,
    module: Vec<u8>,
    blocks: BTreeMap<(u32, u32), [Vec<Named>; 2]>,
}

/// Returns the inlined functions of a place, the outermost first.
fn inlined(source: &SourceMap<'_>, frames: Vec<InlinedFrame>) -> Vec<Named> {
    let mut names = Vec::new();
    for frame in frames.into_iter().rev().skip(1) {
        let raw = frame.function.unwrap();
        let path = source.path(frame.declared.unwrap().file);
        names.push((demangle(&raw).unwrap_or(raw), path.ends_with("app.rs")));
    }
    names
}

/// Whether an operator only marks the structure of blocks.
fn is_marker(operator: &impl std::fmt::Debug) -> bool {
    let text = format!("{operator:?}");
    let name = text.split(|c: char| !c.is_alphabetic()).next().unwrap();
    matches!(name, "Block" | "Loop" | "End" | "Else" | "TryTable")
}

impl Guest {
    fn new(module: Vec<u8>) -> Self {
        Self {
            program: Program::parse(&module).unwrap(),
            module,
            blocks: BTreeMap::new(),
        }
    }

    /// Returns the function of a block, and the file and line of its first instruction with a line.
    fn line(
        &self,
        source: &SourceMap<'_>,
        name: &str,
        (function, block): (u32, u32),
    ) -> (String, String, u64) {
        let code = self.program.function(FuncId::from_u32(function)).unwrap();
        let ops = &code.cfg.blocks[BlockId::new(block as usize)].ops;
        let operators = self.program.operators(&self.module, code);
        let here = operators.filter(|(op, _, operator)| ops.contains(op) && !is_marker(operator));
        let here = Vec::from_iter(here.map(|(_, offset, _)| offset));
        let with_line = here.iter().find(|offset| source.locate(**offset).is_some());
        let block = code.cfg.blocks[BlockId::new(block as usize)].offsets.start;
        let offset = *with_line.or(here.first()).unwrap_or(&block);
        let frames = source.inlined_frames(offset);
        // Without a line, take the place of the function's declaration.
        let declared = match frames.len() {
            0 | 1 => source.declared(code.body.start),
            _ => frames[0].declared,
        };
        let at = source.locate(offset).or(declared);
        let file = at.map_or("???", |at| source.path(at.file)).to_owned();
        let inlined = inlined(source, frames).pop();
        let name = inlined.map_or(name.to_owned(), |(name, _)| name);
        (name, file, at.map_or(0, |at| at.line.into()))
    }

    /// Returns the inlined functions that contain a block, and those that contain its last
    /// operator.
    fn inlined(
        &mut self,
        source: &SourceMap<'_>,
        (function, block): (u32, u32),
    ) -> [Vec<Named>; 2] {
        if let Some(known) = self.blocks.get(&(function, block)) {
            return known.clone();
        }
        let code = self.program.function(FuncId::from_u32(function)).unwrap();
        let ops = &code.cfg.blocks[BlockId::new(block as usize)].ops;
        let mut offsets = Vec::new();
        for (op, offset, operator) in self.program.operators(&self.module, code) {
            if ops.contains(&op) && !is_marker(&operator) {
                offsets.push(offset);
            }
        }
        let with_line = offsets
            .iter()
            .find(|offset| source.locate(**offset).is_some());
        let start = code.cfg.blocks[BlockId::new(block as usize)].offsets.start;
        let first = with_line.or(offsets.first()).copied().unwrap_or(start);
        let last = offsets.last().copied().unwrap_or(first);
        let found = [first, last].map(|at| inlined(source, source.inlined_frames(at)));
        self.blocks.insert((function, block), found.clone());
        found
    }
}

/// Returns every block of the run, with the functions that contain it. Follows the call stack by
/// its depths.
fn moments(sandbox: &Sandbox) -> Vec<Moment> {
    let module = sandbox.read("app.wasm");
    let source = SourceMap::build(&module);
    let mut guest = Guest::new(module.clone());
    let told = sandbox.ok("trace app.aft --level block --format json --limit all");
    let mut moments = Vec::new();
    // The open functions, each with the functions inlined at the place of its call.
    let mut open: Vec<(Named, Vec<Named>)> = Vec::new();
    for line in told.stdout.lines().skip(1) {
        let row: Value = serde_json::from_str(line).unwrap();
        let Some(block) = row["block"].as_u64() else {
            continue;
        };
        let function = row["function"]["index"].as_u64().unwrap() as u32;
        let name = row["function"]["name"].as_str().unwrap().to_owned();
        let depth = row["depth"].as_u64().unwrap() as usize;
        let code = guest.program.function(FuncId::from_u32(function)).unwrap();
        let declared = source.declared(code.body.start);
        let own = declared.is_some_and(|at| source.path(at.file).ends_with("app.rs"));
        let [here, call] = guest.inlined(&source, (function, block as u32));
        open.truncate(depth);
        assert_eq!(open.len(), depth, "{line}");
        open.push(((name, own), here));
        let stack = open.iter().flat_map(|(function, inlined)| {
            let function = [function].into_iter();
            function.chain(inlined).cloned()
        });
        let t = row["t"].as_u64().unwrap();
        moments.push((t, stack.collect()));
        open[depth].1 = call;
    }
    moments
}

/// Returns the number of blocks of the run by function, file and line.
fn lines(sandbox: &Sandbox) -> BTreeMap<(String, String, u64), u64> {
    let module = sandbox.read("app.wasm");
    let source = SourceMap::build(&module);
    let guest = Guest::new(module.clone());
    let told = sandbox.ok("trace app.aft --level block --format json --limit all");
    let mut executed: BTreeMap<_, u64> = BTreeMap::new();
    for line in told.stdout.lines().skip(1) {
        let row: Value = serde_json::from_str(line).unwrap();
        let Some(block) = row["block"].as_u64() else {
            continue;
        };
        let function = row["function"]["index"].as_u64().unwrap() as u32;
        let name = row["function"]["name"].as_str().unwrap().to_owned();
        *executed
            .entry((name, (function, block as u32)))
            .or_default() += 1;
    }
    let mut lines = BTreeMap::new();
    for ((name, block), times) in executed {
        *lines.entry(guest.line(&source, &name, block)).or_default() += times;
    }
    lines
}

fn sums<'m>(moments: impl Iterator<Item = &'m Moment>, own: bool) -> Stacks {
    let mut stacks = Stacks::new();
    for (_, stack) in moments {
        let frames = stack.iter().enumerate();
        // The outermost function represents code outside the user's own code.
        let shown = frames.filter(|(at, (_, is_own))| *at == 0 || *is_own || !own);
        let names = shown.map(|(_, (name, _))| name.replace(';', ":"));
        *stacks.entry(Vec::from_iter(names).join(";")).or_default() += 1;
    }
    stacks
}

fn collapsed(sandbox: &Sandbox, options: &str) -> Stacks {
    let code = if options.contains("--code") {
        ""
    } else {
        "--code all"
    };
    let words = format!("export app.aft --format collapsed --min 0 --depth 10000 {code} {options}");
    let mut stacks = Stacks::new();
    for line in sandbox.ok(&words).stdout.lines() {
        let (stack, blocks) = line.rsplit_once(' ').unwrap();
        *stacks.entry(stack.to_owned()).or_default() += blocks.parse::<u64>().unwrap();
    }
    stacks
}

/// Compares the exports of `app.aft`, which ran `app.wasm`, with the walk.
fn assert_holds(sandbox: &Sandbox) -> Stacks {
    let moments = moments(sandbox);
    let length = moments.len() as u64;
    let all = collapsed(sandbox, "");
    assert_eq!(all, sums(moments.iter(), false));
    assert_eq!(all.values().sum::<u64>(), length);
    for n in 0..12 {
        let (from, to) = (1 + length * n / 13, 1 + length * (n + 2) / 14);
        let (from, to) = (from.min(to), from.max(to).min(length));
        let window = format!("--from t={from} --to t={to}");
        let inside = moments.iter().filter(|(t, _)| (from..=to).contains(t));
        assert_eq!(collapsed(sandbox, &window), sums(inside, false), "{window}");
    }

    // Compare the same stacks in other formats.
    let export = |format: &str| {
        let limits = "--min 0 --depth 10000";
        sandbox.ok(&format!(
            "export app.aft --format {format} --code all {limits}"
        ))
    };
    assert_eq!(speedscope(&export("speedscope").stdout), all);
    export("pprof -o run.pb.gz");
    assert_eq!(pprof(sandbox), all);
    let written = export("callgrind").stdout;
    let (own, calls) = callgrind(&written);
    assert_eq!(own, length);
    let (written, walked) = (callgrind_lines(&written), lines(sandbox));
    type Lines = BTreeMap<(String, String, u64), u64>;
    let differ = |one: &Lines, other: &Lines| {
        let only = one
            .iter()
            .filter(|(place, sum)| other.get(*place) != Some(*sum));
        Vec::from_iter(only.map(|(place, sum)| format!("{place:?}: {sum}")))
    };
    assert_eq!(differ(&written, &walked), differ(&walked, &written));
    assert_eq!(written, walked);
    // Callgrind's reader attributes the cost of 0 calls to the caller itself.
    assert!(calls.values().all(|(calls, _)| *calls > 0));

    // Without inlined functions, the functions must execute the blocks that `calls` reports.
    let mut own = BTreeMap::<String, u64>::new();
    for (stack, blocks) in collapsed(sandbox, "--no-inlined") {
        let innermost = stack.rsplit(';').next().unwrap().to_owned();
        *own.entry(innermost).or_default() += blocks;
    }
    let calls = sandbox.ok("calls app.aft --format json").stdout;
    let calls: Value = serde_json::from_str(&calls).unwrap();
    let mut counted = BTreeMap::<String, u64>::new();
    for row in calls["functions"].as_array().unwrap() {
        let name = row["function"]["name"].as_str().unwrap().replace(';', ":");
        *counted.entry(name).or_default() += row["own"].as_u64().unwrap();
    }
    own.retain(|_, blocks| *blocks > 0);
    counted.retain(|_, blocks| *blocks > 0);
    assert_eq!(own, counted);

    // Blocks of a library count for its callers, inlined or not.
    assert_eq!(
        collapsed(sandbox, "--code mine"),
        sums(moments.iter(), true)
    );
    all
}

const RUST: &str = r#"
use std::collections::BTreeMap;
struct Reader<'a> { text: &'a [u8], at: usize }
impl Reader<'_> {
    #[inline(always)]
    fn peek(&self) -> u8 { if self.at < self.text.len() { self.text[self.at] } else { 0 } }
    #[inline(always)]
    fn number(&mut self) -> u32 {
        let mut n = 0;
        while self.peek().is_ascii_digit() { n = n * 10 + digit(self.peek()); self.at += 1; }
        n
    }
    #[inline(never)]
    fn sum(&mut self) -> u32 {
        let mut sum = self.product();
        while self.peek() == b'+' { self.at += 1; sum = add(sum, self.product()); }
        sum
    }
    #[inline(always)]
    fn product(&mut self) -> u32 {
        let mut product = self.factor();
        while self.peek() == b'*' { self.at += 1; product *= self.factor(); }
        product
    }
    #[inline(always)]
    fn factor(&mut self) -> u32 {
        if self.peek() != b'(' { return self.number(); }
        self.at += 1;
        let inside = self.sum();
        self.at += 1;
        inside
    }
}
#[inline(never)]
fn digit(c: u8) -> u32 { (c - b'0') as u32 }
#[inline(never)]
fn add(a: u32, b: u32) -> u32 { if a > 1000 { b } else { a + b } }
fn main() {
    let mut all = BTreeMap::new();
    for n in 0..4 {
        let text = format!("{n}*3+(12+{n}*(2+5))*7+1");
        let mut reader = Reader { text: text.as_bytes(), at: 0 };
        *all.entry(reader.sum() % 3).or_insert(0) += n;
    }
    println!("{all:?}");
}
"#;

#[test]
fn stacks_of_optimised_rust_are_those_of_a_walk() {
    let sandbox = Sandbox::new();
    sandbox.write("app.rs", RUST);
    sandbox.rustc("app", "app", 2);
    sandbox.ok("record --lens paths -o app.aft app.wasm");
    let all = assert_holds(&sandbox);
    let reader = "app::Reader";
    let called = format!("{reader}::product;{reader}::factor;{reader}::number;app::digit");
    assert!(all.keys().any(|stack| stack.contains(&called)), "{all:#?}");
    let recursive = format!("{reader}::product;{reader}::factor;{reader}::sum;{reader}::product");
    assert!(
        all.keys().any(|stack| stack.contains(&recursive)),
        "{all:#?}"
    );
}

#[test]
fn stacks_of_optimised_c_are_those_of_a_walk() {
    let Some(clang) = tools::clang() else {
        return;
    };
    let sandbox = Sandbox::new();
    let source = sandbox.write(
        "app.c",
        "static int sink[64];\n\
         __attribute__((noinline)) int leaf(int n) { sink[n & 63] += n; return n > 3 ? n - 1 : n; }\n\
         static inline int inner(int n) { int all = 0; for (int i = 0; i < n; i++) all += leaf(i); return all; }\n\
         static inline int outer(int n) { return n % 3 ? inner(n) : inner(n / 2) + leaf(n); }\n\
         __attribute__((noinline)) int tail(int n) { if (n < 2) return outer(n); return leaf(outer(n)); }\n\
         __attribute__((noinline)) int down(int n) { return n ? outer(n) + down(n - 1) * 2 : 0; }\n\
         __attribute__((export_name(\"run\"))) int run(int n) { int all = 0; for (int i = 0; i < n; i++) all += outer(i) + tail(i) + down(i); return all; }\n",
    );
    for options in [&["-g", "-O2"][..], &["-g", "-O2", "-mtail-call"]] {
        let out = sandbox.path("app.wasm");
        clang.module(options, &[&source], &["-Wl,--no-entry"], &out);
        sandbox.ok("record --force --lens paths --invoke run -o app.aft app.wasm 9");
        let moments = moments(&sandbox);
        assert_eq!(collapsed(&sandbox, ""), sums(moments.iter(), false));
        let length = moments.len() as u64;
        for from in [2, length / 3, length / 2, length - 3] {
            let inside = moments.iter().filter(|(t, _)| *t >= from);
            let window = format!("--from t={from}");
            assert_eq!(
                collapsed(&sandbox, &window),
                sums(inside, false),
                "{window}"
            );
        }
        let all = collapsed(&sandbox, "");
        assert!(all.contains_key("run;outer;inner;leaf"), "{all:#?}");
    }
}

/// `profile` has no stacks, but its locations have the functions that were inlined there.
#[test]
fn locations_of_a_profile_have_a_line_for_each_inlined_function() {
    let sandbox = Sandbox::new();
    sandbox.write("app.rs", RUST);
    sandbox.rustc("app", "app", 2);
    sandbox.ok("record --lens counts -o app.aft app.wasm");
    sandbox.ok("profile app.aft --format pprof -o run.pb.gz");
    let stacks = pprof(&sandbox);
    let reader = "app::Reader";
    let inlined = format!("{reader}::sum;{reader}::product;{reader}::factor;{reader}::number");
    assert!(
        stacks.keys().any(|stack| stack.ends_with(&inlined)),
        "{stacks:#?}"
    );
}

/// A row of a tree of calls: its time if it is an activation, its indentation, and its function.
struct TreeRow {
    t: Option<u64>,
    indentation: usize,
    name: String,
}

/// Reads the rows of `trace --level call`.
fn tree(told: &str) -> Vec<TreeRow> {
    let (head, rows) = told.split_once('\n').unwrap();
    let time = head.find('t').unwrap() + 1;
    let place = head.find("called at").unwrap();
    let rows = rows.lines().filter_map(|line| {
        let line = Vec::from_iter(line.chars());
        let text = |from: usize, to: usize| String::from_iter(line.get(from..to)?).into();
        let t: Option<String> = text(0, time);
        let t = t?.trim().replace(',', "");
        // A place has no two blanks in a row, and is at least 22 characters wide.
        let rest: String = line.get(place..)?.iter().collect();
        let width = rest.find("  ").map_or(0, |end| rest[..end].chars().count());
        let function: String = rest.chars().skip(width.max(22) + 2).collect();
        let name = function.trim_start();
        let name = name.split(", called by ").next().unwrap();
        Some(TreeRow {
            t: t.parse().ok(),
            indentation: function.len() - function.trim_start().len(),
            name: name.trim_end_matches(", inlined").to_owned(),
        })
    });
    rows.collect()
}

/// Compares the stacks of a tree of calls with the walk. Returns the number of calls.
fn tree_holds(sandbox: &Sandbox, moments: &[Moment], options: &str) -> usize {
    let told = sandbox.ok(&format!("trace app.aft --level call --limit all {options}"));
    let mut open: Vec<TreeRow> = Vec::new();
    let mut calls = 0;
    for row in tree(&told.stdout) {
        open.retain(|outer| outer.indentation < row.indentation);
        let t = row.t;
        open.push(row);
        let Some(t) = t else { continue };
        calls += 1;
        let stack = Vec::from_iter(open.iter().map(|frame| short_function(&frame.name)));
        let (_, all) = &moments[t as usize - 1];
        let own = all
            .iter()
            .filter(|(_, is_own)| *is_own || options.contains("--code all"));
        let walked = Vec::from_iter(own.map(|(name, _)| short_function(name)));
        // Deeper than twenty levels, rows have the same indentation. The functions that are inlined
        // at the call's first block follow its own.
        let is_deep = open.last().unwrap().indentation >= 40;
        let ends = (1..=walked.len()).any(|length| walked[..length].ends_with(&stack));
        assert!(
            is_deep || ends,
            "t={t}: {stack:?}, walked {walked:?}\n{}",
            told.stdout
        );
        // Without a window, the stack begins at its outermost function.
        let is_whole = !options.contains("--from");
        assert!(
            is_deep || !is_whole || walked.starts_with(&stack),
            "{stack:?}, walked {walked:?}"
        );
    }
    calls
}

#[test]
fn trees_of_calls_have_inlined_frames() {
    let sandbox = Sandbox::new();
    sandbox.write("app.rs", RUST);
    sandbox.rustc("app", "app", 2);
    sandbox.ok("record --lens paths -o app.aft app.wasm");
    let moments = moments(&sandbox);
    for options in ["--code mine", "--code all"] {
        assert!(tree_holds(&sandbox, &moments, options) > 30, "{options}");
    }
    let told = sandbox.ok("trace app.aft --level call --limit all").stdout;
    let rows = |name: &str| told.matches(name).count();
    // Consecutive calls from one place share the frames.
    let products = rows("app::Reader::product, inlined\n");
    assert!((1..rows("  app::digit\n")).contains(&products), "{told}");
    // Backward, the inlined caller is beside the call.
    let told = sandbox.ok("trace app.aft --level call --limit all --reverse");
    assert!(
        told.stdout
            .contains("app::digit, called by app::Reader::number (inlined)")
    );

    // The stack of one call has the same frames.
    let told = sandbox
        .ok("calls app.aft --function app::digit --call 1")
        .stdout;
    let row = |part: &str| told.lines().position(|line| line.contains(part));
    let inlined =
        ["number", "factor", "product"].map(|name| format!("app::Reader::{name}, inlined"));
    let rows = [
        "  app::digit",
        &inlined[0],
        &inlined[1],
        &inlined[2],
        "  app::Reader::sum",
    ];
    let rows = rows.map(|part| row(part).unwrap_or_else(|| panic!("{part}\n{told}")));
    assert!(rows.is_sorted_by(|a, b| a + 1 == *b), "{told}");
}

/// Functions that are called by inlined functions, and end with tail calls.
const TAIL_CALLS: &str = r#"static int sink[64];
__attribute__((noinline)) int leaf(int n) { sink[n & 63] += n; return n > 3 ? n - 1 : n; }
static inline int inner(int n) { int all = 0; for (int i = 0; i < n; i++) all += leaf(i); return all; }
static inline int outer(int n) { return n % 3 ? inner(n) : inner(n / 2) + leaf(n); }
__attribute__((noinline)) int tail(int n) { if (n < 2) return outer(n); return leaf(outer(n)); }
static inline int around_tail(int n) { return tail(n) + 1; }
static inline int last(int n) { return leaf(n + 2); }
__attribute__((noinline)) int hop(int n) { sink[3] += n; return last(n); }
static inline int around_hop(int n) { return hop(n) + 1; }
__attribute__((export_name("run"))) int run(int n) {
    int all = 0;
    for (int i = 0; i < n; i++) all += around_tail(i) + around_hop(i);
    return all;
}
"#;

/// After a tail call, the inlined functions that are open are those of the activation around it.
#[test]
fn trees_of_tail_calls_have_the_inlined_frames_around_them() {
    let Some(clang) = tools::clang() else {
        return;
    };
    let sandbox = Sandbox::new();
    let source = sandbox.write("app.c", TAIL_CALLS);
    let out = sandbox.path("app.wasm");
    for options in [&["-g", "-O2"][..], &["-g", "-O2", "-mtail-call"]] {
        clang.module(options, &[&source], &["-Wl,--no-entry"], &out);
        sandbox.ok("record --force --lens paths --invoke run -o app.aft app.wasm 9");
        let moments = moments(&sandbox);
        let calls = tree_holds(&sandbox, &moments, "--code all");
        assert!(calls > 50, "{calls}");
        let length = moments.len();
        for from in (2..length).step_by(length / 80 + 1) {
            tree_holds(&sandbox, &moments, &format!("--code all --from t={from}"));
        }
    }
}

/// JSON lists activations; the place of a call names what was inlined there.
#[test]
fn places_of_calls_name_the_inlined_functions() {
    let sandbox = Sandbox::new();
    sandbox.write("app.rs", RUST);
    sandbox.rustc("app", "app", 2);
    sandbox.ok("record --lens paths -o app.aft app.wasm");
    let told = sandbox.ok("trace app.aft --level call --function app::digit --format json");
    let call: Value = serde_json::from_str(told.stdout.lines().nth(1).unwrap()).unwrap();
    assert_eq!(call["from"]["function"]["name"], "app::Reader::sum");
    let reader = "app::Reader";
    let inlined = [
        format!("{reader}::number"),
        format!("{reader}::factor"),
        format!("{reader}::product"),
    ];
    assert_eq!(
        call["from"]["inlined"],
        serde_json::json!(inlined),
        "{call}"
    );
}

#[test]
fn frames_of_a_trap_name_the_inlined_functions() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "app.rs",
        "#[inline(always)]\nfn pick(v: &[u32], at: usize) -> u32 { v[at] }\n\
         #[inline(never)]\nfn sum(v: &[u32], at: usize) -> u32 { pick(v, at) + 1 }\n\
         fn main() {\n    let v: Vec<u32> = std::env::args().map(|_| 1).collect();\n    println!(\"{}\", sum(&v, v.len() + 7));\n}\n",
    );
    sandbox.rustc("app", "app", 2);
    sandbox.run("record app.wasm");
    let told = sandbox.ok("why app.aft --trap --format json").stdout;
    assert!(told.contains("\"inlined\":[\"app::pick\"]"), "{told}");
}

/// `profile` counts the instructions of an inlined function as the sum over the instructions that
/// name it, wherever they are.
#[test]
fn a_profile_lists_inlined_functions_with_their_instructions() {
    let sandbox = Sandbox::new();
    sandbox.write("app.rs", RUST);
    sandbox.rustc("app", "app", 2);
    sandbox.ok("record -o app.aft app.wasm");
    let document = |words: &str| -> Value {
        let told = sandbox.ok(&format!("profile app.aft --format json {words}"));
        serde_json::from_str(&told.stdout).unwrap()
    };
    let module = sandbox.read("app.wasm");
    let source = SourceMap::build(&module);
    let mut expected: BTreeMap<(String, u64), (u64, BTreeSet<u64>)> = BTreeMap::new();
    for row in document("--by instruction")["rows"].as_array().unwrap() {
        let number = |value: &Value| value.as_u64().unwrap();
        let count = number(&row["count"]);
        let offset = OrigOffset(number(&row["offset"]) as u32);
        let mut frames = source.inlined_frames(offset);
        frames.pop();
        let named = frames
            .into_iter()
            .map(|frame| (frame.function.unwrap(), frame.declared.unwrap()));
        // A function that was inlined into itself counts the instruction once.
        for (raw, declared) in BTreeSet::from_iter(named) {
            let key = (demangle(&raw).unwrap_or(raw), u64::from(declared.line));
            if count > 0 {
                let (sum, into) = expected.entry(key).or_default();
                *sum += count;
                into.insert(number(&row["function"]["index"]));
            }
        }
    }
    let mut found = BTreeMap::new();
    for row in document("")["inlined"].as_array().unwrap() {
        let into = row["into"].as_array().unwrap().iter();
        let into = into.map(|into| into["index"].as_u64().unwrap());
        let name = row["name"].as_str().unwrap().to_owned();
        let line = row["source"]["line"].as_u64().unwrap();
        let sum = row["instructions"].as_u64().unwrap();
        // Functions of several files may have the same name and line.
        let known: &mut (u64, BTreeSet<u64>) = found.entry((name, line)).or_default();
        known.0 += sum;
        known.1.extend(into);
    }
    assert_eq!(found, expected);
    assert!(found.len() > 10, "{found:#?}");

    let text = sandbox.ok("profile app.aft").stdout;
    let (functions, inlined) = text.split_once("\ninlined functions").unwrap();
    for name in ["peek", "number", "product", "factor"] {
        let name = format!("app::Reader::{name}\n");
        assert!(
            !functions.contains(&name) && inlined.contains(&name),
            "{text}"
        );
    }
    // By default, only the user's own functions are listed.
    assert!(!inlined.contains("core::"), "{text}");
    assert!(
        sandbox
            .ok("profile app.aft --code all")
            .stdout
            .contains("core::")
    );
}

/// A function without calls of its own is refused by name, with commands that answer instead.
#[test]
fn calls_of_an_inlined_function_are_refused_with_what_answers() {
    let sandbox = Sandbox::new();
    sandbox.write("app.rs", RUST);
    sandbox.rustc("app", "app", 2);
    sandbox.ok("record --lens full -o app.aft app.wasm");
    for command in ["calls app.aft", "trace app.aft --level call"] {
        let words = format!("{command} --function app::Reader::product");
        let part = [
            "has no code of its own: its calls were inlined into app::Reader::sum;",
            "its executions: afterimage values app.aft --at app.rs:",
            "its instructions: afterimage profile app.aft",
        ];
        sandbox.refused(&words, 125, &part);
        let said = sandbox.run(&words).stderr;
        let (_, command) = said.split_once("executions: afterimage ").unwrap();
        let (command, _) = command.split_once(';').unwrap();
        let command = command.split_whitespace();
        sandbox.ok(&Vec::from_iter(command).join(" "));
    }
    let all = sandbox.ok("calls app.aft").stdout;
    assert!(
        all.contains("calls that the compiler inlined are not listed"),
        "{all}"
    );
}
