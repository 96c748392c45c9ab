//! Debug information may be copied to code to which it does not belong. Each function must then
//! have its own lines and variables, or none.

use std::collections::BTreeMap;
use std::ops::Range;

use afterimage_testkit::tools;
use serde_json::Value;
use wasmparser::{Operator, Parser, Payload};

use crate::common::Sandbox;

const SOURCE: &str = r#"#[inline(never)]
fn first(n: u32) -> u32 {
    let mut sum = 0;
    for k in 0..n {
        sum += k * k;
    }
    sum
}

#[inline(never)]
fn second(n: u32) -> u32 {
    let mut product = 1u32;
    for k in 1..n {
        product = product.wrapping_mul(k);
    }
    product
}

fn main() {
    let n = std::env::args().count() as u32 + 4;
    println!("{} {}", first(n), second(n));
}
"#;

fn leb(mut n: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let byte = (n & 0x7f) as u8;
        n >>= 7;
        bytes.push(byte | if n > 0 { 0x80 } else { 0 });
        if n == 0 {
            return bytes;
        }
    }
}

/// Inserts a `nop` before the first operator of one function, which moves all later code. The
/// `.debug_*` sections stay unchanged.
fn with_nop(module: &[u8], function: usize) -> Vec<u8> {
    let mut bodies = Vec::new();
    let mut section = 0..0;
    for payload in Parser::new(0).parse_all(module) {
        match payload.unwrap() {
            Payload::CodeSectionStart { range, .. } => section = range,
            Payload::CodeSectionEntry(body) => {
                let start = body.get_operators_reader().unwrap().original_position();
                bodies.push((body.range(), start));
            }
            _ => {}
        }
    }
    let mut code = leb(bodies.len());
    for (i, (range, operators)) in bodies.into_iter().enumerate() {
        let mut body = module[range.clone()].to_vec();
        if i == function {
            body.insert(operators - range.start, 0x01);
        }
        code.extend(leb(body.len()));
        code.extend(body);
    }
    // The number and the length of the section precede it.
    let mut length = section.start - 1;
    while module[length - 1] & 0x80 != 0 {
        length -= 1;
    }
    let mut all = module[..length].to_vec();
    all.extend(leb(code.len()));
    all.extend(code);
    all.extend(&module[section.end..]);
    all
}

fn json(sandbox: &Sandbox, words: &str) -> Value {
    serde_json::from_str(&sandbox.ok(words).stdout).unwrap()
}

/// Returns the counts of the lines of some functions.
fn lines(sandbox: &Sandbox, recording: &str, functions: &[u64]) -> BTreeMap<String, u64> {
    let mut words = format!("profile {recording} --by line --format json");
    for function in functions {
        words += &format!(" --function {function}");
    }
    let report = json(sandbox, &words);
    let row = |row: &Value| (row["source"].to_string(), row["count"].as_u64().unwrap());
    report["rows"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn functions_behind_an_inserted_byte_have_no_lines_and_no_variables() {
    let sandbox = Sandbox::new();
    sandbox.rust("app", SOURCE);
    sandbox.ok("record -o app.aft app.wasm");
    let report = json(&sandbox, "profile app.aft --format json");
    let mut all = Vec::from_iter(report["rows"].as_array().unwrap());
    all.sort_by_key(|row| row["function"]["index"].as_u64());
    let index = |name: &str| {
        let named = |row: &&&Value| row["function"]["name"].as_str().unwrap().ends_with(name);
        let row = all.iter().find(named).unwrap();
        row["function"]["index"].as_u64().unwrap()
    };
    let imported = all[0]["function"]["index"].as_u64().unwrap();
    // The compiler may place either function first.
    let (kept, moved) = if index("::first") < index("::second") {
        ("first", "second")
    } else {
        ("second", "first")
    };
    let changed = index(&format!("::{moved}"));
    let module = with_nop(&sandbox.read("app.wasm"), (changed - imported) as usize);
    sandbox.write("two.wasm", module);
    sandbox.ok("record -o two.aft two.wasm");
    let told = sandbox.ok("profile two.aft").stderr;
    assert!(told.contains("does not match their code"), "{told}");
    let last = all.last().unwrap()["function"]["index"].as_u64().unwrap();
    let before = Vec::from_iter(imported..changed);
    let behind = Vec::from_iter(changed..=last);
    assert_eq!(lines(&sandbox, "two.aft", &behind), BTreeMap::new());
    let found = lines(&sandbox, "two.aft", &before);
    assert_eq!(found, lines(&sandbox, "app.aft", &before));
    // Unless functions are named, the report also includes lines of functions that the linker
    // removed.
    let mut whole = lines(&sandbox, "two.aft", &[]);
    whole.retain(|line, count| *count > 0 || found.contains_key(line));
    assert_eq!(found, whole);
    let place = |name: &str| {
        let text = format!("fn {name}(");
        let line = SOURCE.lines().position(|line| line.starts_with(&text));
        format!("app.rs:{}", line.unwrap() + 3)
    };
    let values = |recording: &str, place: &str| {
        let words = format!("values {recording} --at {place} --var n --format json");
        json(&sandbox, &words)["instances"].clone()
    };
    assert_eq!(
        values("two.aft", &place(kept)),
        values("app.aft", &place(kept))
    );
    for (command, at) in [
        ("state", place(moved)),
        ("trace", place(moved)),
        ("why-not", place(moved)),
        ("slice", place(moved)),
    ] {
        let option = if command == "trace" { "--from" } else { "--at" };
        let ran = sandbox.run(&format!("{command} two.aft {option} {at}"));
        assert_ne!(ran.code, Some(0), "{command}");
        let why = "does not match their code";
        let said = ran.stderr.lines().last().unwrap_or_default();
        assert!(
            said.contains("app.rs") && said.contains(why),
            "{command}: {said}"
        );
    }
    let ran = sandbox.run(&format!("values two.aft --at app::{moved} --var n"));
    assert_ne!(ran.code, Some(0), "{ran:?}");
    let said = ran.stderr.lines().last().unwrap_or_default();
    let why = format!("does not match the code of app::{moved}:");
    assert!(said.contains(&why), "{said}");
}

/// npm's `wasm-opt` re-encodes the code, but copies `.debug_*` unchanged. Debian's rewrites them.
/// Whichever `wasm-opt` is on the path, a line has its earlier count, or none.
#[test]
fn lines_behind_a_real_rewriter_are_right_or_refused() {
    if !tools::installed("wasm-opt") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.rust("app", SOURCE);
    let mut rewriter = tools::command("wasm-opt");
    rewriter.args(["-g", "app.wasm", "-o", "new.wasm"]);
    let made = rewriter.current_dir(sandbox.path(".")).output().unwrap();
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{said}");
    let known: BTreeMap<_, _> = ["app", "new"]
        .map(|name| {
            sandbox.ok(&format!("record -o {name}.aft {name}.wasm"));
            (name, lines(&sandbox, &format!("{name}.aft"), &[]))
        })
        .into();
    let own = |name: &str| {
        let all = known[name].clone().into_iter();
        Vec::from_iter(all.filter(|(source, _)| source.contains("app.rs")))
    };
    for (source, count) in own("new") {
        assert_eq!(known["app"].get(&source), Some(&count), "{source}");
    }
    let told = sandbox.ok("profile new.aft").stderr;
    let refused = told.contains("does not match their code");
    assert!(refused || own("new") == own("app"), "{told}");
}

const C: &str = "int sum;
static int work(int n, int k)
{
    int square = n * n;
    for (int i = 0; i < k; i++) {
        int next = square + i;
        sum += next;
    }
    return sum;
}
int run(void)
{
    int first = work(3, 4);
    int second = work(first, 2);
    return first ^ second;
}
";

/// A function that renumbers a local, given the group of locals with the same type.
type Renumber = fn(u32, &Range<u32>) -> u32;

/// Returns the next local of the group, or the first for the last.
fn next(local: u32, group: &Range<u32>) -> u32 {
    let next = local + 1;
    if next == group.end { group.start } else { next }
}

/// Exchanges the third local, which holds the frame in unoptimised code, with the last local, which
/// is written late.
fn last_for_frame(local: u32, group: &Range<u32>) -> u32 {
    let (frame, last) = (group.start + 2, group.end - 1);
    match local {
        _ if frame >= last => local,
        _ if local == frame => last,
        _ if local == last => frame,
        _ => local,
    }
}

/// Renumbers the locals of each function, except its parameters. The `.debug_*` sections stay
/// unchanged.
fn with_locals_renumbered(module: &[u8], renumber: Renumber) -> Vec<u8> {
    let mut found = module.to_vec();
    let (mut types, mut functions, mut at) = (Vec::new(), Vec::new(), 0);
    for payload in Parser::new(0).parse_all(module) {
        match payload.unwrap() {
            Payload::TypeSection(all) => {
                let all = all.into_iter_err_on_gc_types();
                types.extend(all.map(|ty| ty.unwrap().params().len() as u32));
            }
            Payload::FunctionSection(all) => functions.extend(all.into_iter().map(Result::unwrap)),
            Payload::CodeSectionEntry(body) => {
                let mut first = types[functions[at] as usize];
                at += 1;
                let mut groups = Vec::new();
                for group in body.get_locals_reader().unwrap() {
                    let (count, _) = group.unwrap();
                    groups.push(first..first + count);
                    first += count;
                }
                for operator in body
                    .get_operators_reader()
                    .unwrap()
                    .into_iter_with_offsets()
                {
                    let (operator, offset) = operator.unwrap();
                    if let Operator::LocalGet { local_index }
                    | Operator::LocalSet { local_index }
                    | Operator::LocalTee { local_index } = operator
                        && let Some(group) =
                            groups.iter().find(|group| group.contains(&local_index))
                    {
                        assert!(group.end < 128, "one byte each");
                        found[offset + 1] = renumber(local_index, group) as u8;
                    }
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns the value of a variable at each execution of a place, or an empty list if the question
/// is refused.
fn values(sandbox: &Sandbox, recording: &str, at: &str, variable: &str) -> Vec<Option<String>> {
    let words = format!("values {recording} --at {at} --var {variable} --format json");
    let found = json(sandbox, &words);
    let all = found["instances"].as_array().unwrap().iter();
    all.map(|one| one["value"].as_str().map(str::to_owned))
        .collect()
}

#[test]
fn variables_in_locals_that_were_renumbered_are_right_or_refused() {
    let Some(clang) = tools::clang() else {
        return;
    };
    let asked = [
        ("app.c:5", "square"),
        ("app.c:5", "n"),
        ("app.c:7", "next"),
        ("app.c:7", "i"),
        ("app.c:7", "k"),
        ("app.c:9", "sum"),
        ("app.c:14", "first"),
    ];
    let mut refused = 0;
    let sandbox = Sandbox::new();
    let source = sandbox.write("app.c", C);
    let link = ["-Wl,--no-entry", "-Wl,--export=run"];
    let options = ["-g", "-O0"];
    clang.module(&options, &[source], &link, &sandbox.path("app.wasm"));
    sandbox.ok("record -q --invoke run -o app.aft app.wasm");
    let renumbered = [next as Renumber, last_for_frame];
    let mut others = renumbered
        .map(|by| with_locals_renumbered(&sandbox.read("app.wasm"), by))
        .to_vec();
    if tools::installed("wasm-opt") {
        for optimise in ["-O1", "-O2", "-O3"] {
            let mut rewriter = tools::command("wasm-opt");
            rewriter
                .args(["-g", optimise, "-o"])
                .arg(sandbox.path("other.wasm"));
            assert!(
                rewriter
                    .arg(sandbox.path("app.wasm"))
                    .status()
                    .unwrap()
                    .success()
            );
            others.push(sandbox.read("other.wasm"));
        }
    }
    for (number, other) in others.iter().enumerate() {
        sandbox.write("other.wasm", other);
        sandbox.ok("record -q --force --invoke run -o other.aft other.wasm");
        for (at, variable) in asked {
            let places = ["app.aft", "other.aft"].map(|recording| {
                let words = format!("values {recording} --at {at} --var {variable}");
                sandbox.run(&words).code == Some(0)
            });
            if places != [true, true] {
                continue;
            }
            let right = values(&sandbox, "app.aft", at, variable);
            let shown = values(&sandbox, "other.aft", at, variable);
            // A rewriter may move lines.
            if right.len() != shown.len() {
                continue;
            }
            for (right, shown) in right.iter().zip(&shown) {
                let is_right = shown.is_none() || right.is_none() || shown == right;
                assert!(
                    is_right,
                    "{number} {at} {variable}: {shown:?}, not {right:?}"
                );
                refused += u32::from(shown.is_none() && right.is_some());
            }
        }
        if number < renumbered.len() {
            let state = sandbox.ok("state other.aft --at app.c:7").stdout;
            assert!(
                state.contains("which uses its locals for other values"),
                "{state}"
            );
            let of_global = values(&sandbox, "other.aft", "app.c:9", "sum");
            assert_eq!(of_global, values(&sandbox, "app.aft", "app.c:9", "sum"));
        }
    }
    assert!(refused > 10, "{refused}");
}
