//! Tests source variables at moments of a run, in programs compiled by rustc and clang, against the
//! expected values.

use afterimage_testkit::tools;
use serde_json::Value;

use crate::common::Sandbox;

const SOURCE: &str = r#"struct Pair {
    sum: u64,
    last: Option<i16>,
}

#[inline(never)]
fn collatz(mut n: u64, pair: &mut Pair) -> u32 {
    let mut steps = 0;
    while n != 1 {
        if n % 2 == 0 {
            n /= 2;
        } else {
            n = 3 * n + 1;
        }
        pair.sum += n;
        steps += 1;
    }
    pair.last = Some(steps as i16);
    steps
}

fn main() {
    let mut pair = Pair { sum: 0, last: None };
    let mut total = 0;
    for start in 1..=9 {
        total += collatz(start, &mut pair);
    }
    println!("{total} {} {:?}", pair.sum, pair.last);
}
"#;

/// Returns the expected values before `steps += 1`, for all numbers up to `last`: the number, the
/// steps so far, and the sum.
fn expected(last: u64) -> Vec<(u64, u64, u64)> {
    let (mut all, mut sum) = (Vec::new(), 0);
    for start in 1..=last {
        let (mut n, mut steps) = (start, 0);
        while n != 1 {
            n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
            sum += n;
            all.push((n, steps, sum));
            steps += 1;
        }
    }
    all
}

fn recorded() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.rust("app", SOURCE);
    sandbox.ok("record -o app.aft app.wasm");
    sandbox
}

fn json(sandbox: &Sandbox, words: &str) -> Value {
    serde_json::from_str(&sandbox.ok(words).stdout).unwrap()
}

/// Returns the values of a variable, or why there is none.
fn values(sandbox: &Sandbox, place: &str, variable: &str) -> Vec<Result<String, String>> {
    let words =
        format!("values app.aft --at {place} --var {variable} --instances 1..100000 --format json");
    let found = json(sandbox, &words);
    assert_eq!(found["more"], 0);
    let rows = found["instances"].as_array().unwrap();
    assert_eq!(found["count"], rows.len());
    let value = |row: &Value| match row["value"].as_str() {
        Some(value) => Ok(value.to_owned()),
        None => Err(row["unavailable"].as_str().unwrap().to_owned()),
    };
    rows.iter().map(value).collect()
}

#[test]
fn variables_in_memory_have_the_values_that_the_program_computes() {
    let sandbox = recorded();
    let expected = expected(9);
    let texts = |of: fn(&(u64, u64, u64)) -> u64| {
        Vec::from_iter(expected.iter().map(|row| Ok(of(row).to_string())))
    };
    assert_eq!(values(&sandbox, "app.rs:16", "n"), texts(|row| row.0));
    assert_eq!(values(&sandbox, "app.rs:16", "steps"), texts(|row| row.1));
    assert_eq!(
        values(&sandbox, "app.rs:16", "pair->sum"),
        texts(|row| row.2)
    );
}

#[test]
fn the_stack_holds_what_the_callers_had() {
    let sandbox = recorded();
    // The sum is 0 before the first call, and each call adds the steps of the previous calls.
    let mut total = 0;
    for call in 1..=9u64 {
        let words = format!("state app.aft --at collatz#{call} --frame 1 --format json");
        let state = json(&sandbox, &words);
        let frame = &state["frames"][0];
        assert_eq!(frame["number"], 1);
        assert_eq!(frame["function"]["name"], "app::main");
        let variables = frame["variables"].as_array().unwrap();
        let value = |name: &str| {
            let found = variables.iter().find(|v| v["name"] == name);
            found.unwrap()["value"].as_str().unwrap().to_owned()
        };
        assert_eq!(value("start"), call.to_string());
        assert_eq!(value("total"), total.to_string());
        let before: u64 = expected(call - 1).last().map_or(0, |row| row.2);
        assert!(
            value("pair").contains(&format!("sum = {before},")),
            "{}",
            value("pair")
        );
        total += expected(call).len() - expected(call - 1).len();
    }
}

#[test]
fn unknown_names_are_refused_with_the_nearest() {
    let sandbox = recorded();
    let refused = |words: &str| {
        let ran = sandbox.run(words);
        assert_eq!(ran.code, Some(125), "{words}: {ran:?}");
        ran.stderr
    };
    let said = refused("values app.aft --at app.rs:16 --var stesp");
    assert!(said.contains("no variable stesp; there is steps"), "{said}");
    let said = refused("values app.aft --at app.rs:16 --var a[");
    assert!(said.contains("expected an integer"), "{said}");
    let said = refused("values app.aft --at app.rs:16#9999 --var n");
    assert!(said.contains("there is no execution 9,999"), "{said}");
    let said = refused("values app.aft --at app.rs:16:9 --var n");
    assert!(said.contains("names a column"), "{said}");
}

const OPTIMISED: &str = r#"__attribute__((export_name("mix"), noinline)) int mix(int n) {
  int total = 0;
  for (int i = 1; i <= n; i++) {
    total = total * 5 + i;
    if (total % 3 == 0)
      total ^= i << 4;
  }
  return total;
}
__attribute__((export_name("tree"), noinline)) int tree(int n) {
  if (n < 2)
    return n;
  int left = tree(n - 1);
  int right = tree(n - 2);
  return 3 * left - right;
}
"#;

/// Compiles a C program, if there is a suitable compiler.
fn clang(sandbox: &Sandbox, level: &str) -> bool {
    let Some(clang) = tools::clang() else {
        return false;
    };
    let source = sandbox.write("mix.c", OPTIMISED);
    let out = sandbox.path("mix.wasm");
    clang.module(&["-g", level], &[source], &["-Wl,--no-entry"], &out);
    true
}

#[test]
fn what_optimised_code_says_of_a_variable_is_right_or_optimised_out() {
    for level in ["-O0", "-O1", "-O2"] {
        let sandbox = Sandbox::new();
        if !clang(&sandbox, level) {
            return;
        }
        sandbox.ok("record --invoke mix -o app.aft mix.wasm 40");
        let (mut total, mut expected) = (0i32, Vec::new());
        for i in 1..=40 {
            total = total.wrapping_mul(5).wrapping_add(i);
            expected.push(total.to_string());
            if total % 3 == 0 {
                total ^= i << 4;
            }
        }
        let found = values(&sandbox, "mix.c:5", "total");
        if level == "-O0" {
            let found: Vec<String> = found.into_iter().map(Result::unwrap).collect();
            assert_eq!(found, expected);
            continue;
        }
        // The compiler may have generated several instructions for the line, so an arrival belongs
        // to one of the rounds.
        for value in found {
            match value {
                Ok(value) => assert!(expected.contains(&value), "{level}: {value}"),
                Err(why) => assert!(why.contains("optimised out"), "{level}: {why}"),
            }
        }
    }
}

/// Collects the arguments of all calls to `tree`, in order.
fn arguments(n: i32, all: &mut Vec<Result<String, String>>) {
    all.push(Ok(n.to_string()));
    if n >= 2 {
        arguments(n - 1, all);
        arguments(n - 2, all);
    }
}

#[test]
fn arguments_in_locals_have_the_values_that_the_program_passes() {
    // In unoptimised code, the arguments are in the frame, which the prologue sets up.
    for level in ["-O0", "-O1", "-O2"] {
        let sandbox = Sandbox::new();
        if !clang(&sandbox, level) {
            return;
        }
        sandbox.ok("record --invoke tree -o app.aft mix.wasm 9");
        let mut expected = Vec::new();
        arguments(9, &mut expected);
        // The host's own argument comes first.
        assert_eq!(values(&sandbox, "tree", "n"), expected, "{level}");
    }
}

/// Returns the innermost frame at a moment.
fn innermost(sandbox: &Sandbox, moment: &str) -> Value {
    let state = json(
        sandbox,
        &format!("state app.aft --at {moment} --depth 1 --format json"),
    );
    state["frames"][0].clone()
}

/// Returns the value of a variable of a frame.
fn held(frame: &Value, name: &str) -> Option<String> {
    let variables = frame["variables"].as_array().unwrap();
    let found = variables.iter().find(|v| v["name"] == name).unwrap();
    found["value"].as_str().map(str::to_owned)
}

#[test]
fn a_moment_is_that_of_the_line_that_is_asked_for() {
    let sandbox = Sandbox::new();
    if !clang(&sandbox, "-O0") {
        return;
    }
    sandbox.ok("record --invoke mix -o app.aft mix.wasm 40");
    let mut total = 0i32;
    for i in 1..=40 {
        // Lines 4 and 5 are in one block, and line 6 is the target of a branch.
        for line in [4, 5] {
            let frame = innermost(&sandbox, &format!("mix.c:{line}#{i}"));
            assert_eq!(frame["source"]["line"], line);
            assert_eq!(held(&frame, "i"), Some(i.to_string()));
            assert_eq!(held(&frame, "total"), Some(total.to_string()), "{line}#{i}");
            total = match line {
                4 => total.wrapping_mul(5).wrapping_add(i),
                _ if total % 3 == 0 => total ^ (i << 4),
                _ => total,
            };
        }
    }
    let last = innermost(&sandbox, "mix.c:8#last");
    assert_eq!(last["source"]["line"], 8);
    assert_eq!(held(&last, "total"), Some(total.to_string()));
    // `values --var` reports the same about the same moments.
    let all = values(&sandbox, "mix.c:5", "total");
    assert_eq!(
        held(&innermost(&sandbox, "mix.c:5#7"), "total"),
        all[6].clone().ok()
    );
}

#[test]
fn a_function_is_shown_behind_its_prologue() {
    let sandbox = Sandbox::new();
    if !clang(&sandbox, "-O0") {
        return;
    }
    sandbox.ok("record --invoke tree -o app.aft mix.wasm 9");
    let mut expected = Vec::new();
    arguments(9, &mut expected);
    for call in [1, 2, 50, expected.len()] {
        let frame = innermost(&sandbox, &format!("tree#{call}"));
        let n = expected[call - 1].clone().ok();
        assert_eq!(held(&frame, "n"), n);
        assert_eq!(frame["source"]["line"], 11);
        // At the first operator, there is no frame yet, but the arguments exist.
        let entry = innermost(&sandbox, &format!("tree+0#{call}"));
        assert_eq!(held(&entry, "n"), n);
        assert_eq!(held(&entry, "left"), None);
        assert!(entry["offset"].as_u64() < frame["offset"].as_u64());
        assert_eq!(entry["entered_t"], frame["entered_t"]);
    }
}

#[test]
fn what_is_not_there_is_said_in_a_sentence() {
    let sandbox = Sandbox::new();
    if !clang(&sandbox, "-O0") {
        return;
    }
    sandbox.ok("record --invoke mix -o app.aft mix.wasm 40");
    let said = sandbox
        .ok("deps app.aft --at mix.c:4 --forward --control")
        .stdout;
    assert_eq!(
        said,
        "mix.c:4: nothing depends on it by control: no statement decides or calls anything there\n"
    );
    let trace = sandbox
        .ok("trace app.aft --level statement --from mix.c:4#2 --limit 1")
        .stdout;
    let place = trace.split_whitespace().find(|word| word.starts_with('@'));
    // The place in a line of the trace can be used to ask about that line.
    let said = sandbox
        .ok(&format!(
            "deps app.aft --at {} --forward --control",
            place.unwrap()
        ))
        .stdout;
    assert!(
        said.ends_with("\n  nothing depends on it by control\n"),
        "{said}"
    );
}

const TYPES: &str = r#"use std::collections::VecDeque;

pub enum Shape {
    Circle(u32),
    Rect { w: u32, h: u32 },
    Named(String, Option<Box<u8>>),
    Nothing,
}

#[repr(i8)]
#[derive(Clone, Copy)]
pub enum Level {
    Low = -3,
    High = 7,
}

pub struct Pair(u64, i16);

#[inline(never)]
fn look(
    text: &str, owned: String, numbers: Vec<i32>, slice: &[u16], shapes: Vec<Shape>, some: Option<u8>, none: Option<&str>,
    nested: Option<Option<bool>>, failed: Result<u32, String>, tuple: (u8, char, bool), unit: (), pair: &Pair, ring: VecDeque<u16>,
    level: Level, words: Vec<Vec<String>>, wide: i128, boxed: Box<[u8]>,
) -> usize {
    text.len() // here
        + owned.len() + numbers.len() + slice.len() + shapes.len() + usize::from(some.is_some()) + usize::from(none.is_some())
        + usize::from(nested.is_some()) + usize::from(failed.is_ok()) + usize::from(tuple.2) + usize::from(pair.1 < 0)
        + ring.len() + usize::from((level as i8) < 0) + words.len() + usize::from(wide < 0) + boxed.len() + size_of_val(&unit)
}

fn main() {
    let mut ring = VecDeque::with_capacity(4);
    ring.push_back(2);
    ring.push_back(3);
    ring.push_front(1);
    let shapes = vec![
        Shape::Circle(3),
        Shape::Rect { w: 6, h: 7 },
        Shape::Named("héllo".to_string(), None),
        Shape::Nothing,
    ];
    let words = vec![vec!["x".to_string(), "y".to_string()], vec![]];
    let sum = look(
        "tab\t\u{1}", "owned".to_string(), vec![1, -2, 3], &[7, 8], shapes, Some(200), None, Some(None), Err("bad".to_string()), (7, 'é', true), (),
        &Pair(1 << 40, -5), ring, Level::Low, words, -(1 << 100), vec![1, 2].into_boxed_slice(),
    );
    std::process::exit((sum == 1 && Level::High as u8 == 1) as i32);
}
"#;

#[test]
fn types_of_rust_look_like_what_they_are() {
    let sandbox = Sandbox::new();
    sandbox.rust("app", TYPES);
    sandbox.ok("record -o app.aft app.wasm");
    let line = TYPES.lines().position(|line| line.ends_with("// here"));
    let frame = innermost(&sandbox, &format!("app.rs:{}", line.unwrap() + 1));
    for (name, value) in [
        ("text", r#""tab\t\001""#),
        ("owned", r#""owned""#),
        ("numbers", "{ 1, -2, 3 }"),
        ("slice", "{ 7, 8 }"),
        (
            "shapes",
            r#"{ Circle(3), Rect { w = 6, h = 7 }, Named("héllo", None), Nothing }"#,
        ),
        ("some", "Some(200)"),
        ("none", "None"),
        ("nested", "Some(None)"),
        ("failed", r#"Err("bad")"#),
        ("tuple", "(7, 'é', true)"),
        ("unit", "()"),
        ("ring", "{ 1, 2, 3 }"),
        ("level", "Low"),
        ("words", r#"{ { "x", "y" }, {} }"#),
        ("wide", "-1267650600228229401496703205376"),
        ("boxed", "{ 1, 2 }"),
    ] {
        assert_eq!(held(&frame, name).as_deref(), Some(value), "{name}");
    }
    let pair = held(&frame, "pair").unwrap();
    assert!(pair.ends_with(" -> (1099511627776, -5)"), "{pair}");
    let of = |path: &str| values(&sandbox, "look", path).remove(0);
    assert_eq!(of("numbers[1]"), Ok("-2".to_owned()));
    assert_eq!(of("ring[2]"), Ok("3".to_owned()));
    assert_eq!(of("words[0][1]"), Ok("\"y\"".to_owned()));
    assert_eq!(of("shapes[1].Rect.h"), Ok("7".to_owned()));
}

/// Three files: two have a static variable with the same name, and one has no debug information.
const FILES: [(&str, &str, bool); 3] = [
    (
        "one.c",
        "struct node { int key; struct node *next; };
static int count;
static struct node last = { 5, 0 };
static struct node first = { 4, &last };
struct node *head;
int both(int n);
int step(int n) { count += n; return both(n); }
int run(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum += step(i);
  head = &first;
  return sum;
}
int end(int n) { *(volatile int *)0xfffff0 = n; return 0; }
int ends(int n) { run(n); return end(n); }
",
        true,
    ),
    (
        "two.c",
        "static int count;
int plain(int n);
int both(int n) { count += 2; return plain(n) + count; }
",
        true,
    ),
    ("three.c", "int plain(int n) { return n + 1; }\n", false),
];

fn clang_files(sandbox: &Sandbox) -> bool {
    let Some(clang) = tools::clang() else {
        return false;
    };
    let objects = FILES.map(|(name, text, debug)| {
        let source = sandbox.write(name, text);
        let object = sandbox.path(&format!("{name}.o"));
        let options = ["-O0", if debug { "-g" } else { "-g0" }];
        clang.object(&options, &source, &object).unwrap();
        object
    });
    let link = ["-Wl,--no-entry", "-Wl,--export-all"];
    clang
        .link(&objects, &link, &sandbox.path("app.wasm"))
        .unwrap();
    true
}

#[test]
fn a_global_variable_is_known_whatever_is_executed() {
    let sandbox = Sandbox::new();
    if !clang_files(&sandbox) {
        return;
    }
    sandbox.ok("record --invoke run -o app.aft app.wasm 4");
    // In the code of a file, the name means that file's variable. Elsewhere, it may mean either.
    let held = |words: &str| {
        let words = format!("memory app.aft {words} --format json");
        json(&sandbox, &words)["variable"]["value"].clone()
    };
    assert_eq!(held("--var count --at both#3"), "4");
    assert_eq!(held("--var count --at step#4"), "3");
    for at in ["plain#2", "end"] {
        let words = format!("memory app.aft --var count --at {at}");
        sandbox.refused(
            &words,
            125,
            &["count may be any of", "one.c", "two.c", "--at file.c:LINE"],
        );
    }
    // The executed function has no debug information.
    assert_eq!(held("--var head --at plain#2"), "0x0");
    sandbox.refused(
        "memory app.aft --var nobody --at plain#2",
        125,
        &["no debug information"],
    );
    let text = sandbox.ok("values app.aft --at plain --var head").stdout;
    assert!(text.contains("0x0"), "{text}");
    // At the end of the run, the expression uses the final contents of memory.
    assert_eq!(held("--var head->next->key"), "5");
    assert_eq!(held("--var head->key --at end"), "4");
    sandbox.refused("memory app.aft --var head->key --at run", 125, &["null"]);
}

#[test]
fn the_end_is_where_the_run_stood() {
    let sandbox = Sandbox::new();
    if !clang_files(&sandbox) {
        return;
    }
    sandbox.run("record --invoke ends -o app.aft app.wasm 4");
    let state = json(&sandbox, "state app.aft --at end --format json");
    assert_eq!(state["before"], "operator");
    let text = sandbox.ok("values app.aft --at one.c:14#last").stdout;
    assert!(
        text.contains("trapped (memory access out of bounds): value 4 to 0xfffff0, 4 bytes"),
        "{text}"
    );
}

/// Snapshots contain memory, but not its writers, which may precede all snapshots.
#[test]
fn memory_tells_of_the_same_writers_when_there_are_snapshots() {
    const PROGRAM: &str = r#"(module (memory (export "memory") 2)
      (func (export "run") (local $n i32)
        (i32.store (i32.const 66000) (i32.const 12345))
        (loop $l
          (i32.store (i32.and (local.get $n) (i32.const 1020)) (local.get $n))
          (br_if $l (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 4000000))))))"#;
    let sandbox = Sandbox::new();
    sandbox.wasm("early.wasm", PROGRAM);
    sandbox.ok("record --invoke run -o bare.aft early.wasm");
    std::fs::copy(sandbox.path("bare.aft"), sandbox.path("early.aft")).unwrap();
    sandbox.ok("state early.aft --at 50%");
    let sections = sandbox.ok("info early.aft --sizes").stdout;
    assert!(sections.contains("SNAPSHOTS"), "{sections}");
    for moment in ["60%", "end"] {
        for address in [66000, 512] {
            let asked = |file| {
                let words =
                    format!("memory {file} --at {moment} --address {address} --format json");
                json(&sandbox, &words)
            };
            let (bare, early) = (asked("bare.aft"), asked("early.aft"));
            assert_eq!(early["parts"], bare["parts"], "{moment} {address}");
            assert!(bare["parts"][0]["written"].is_object(), "{bare}");
        }
    }
}

/// The contents of memory at a moment equal the variables' values at that moment. A slice of memory
/// at the end begins after the whole run.
#[test]
fn memory_at_a_place_is_as_it_is_right_before_it() {
    const SOURCE: &str = "int total; int run(int n); int (*how)(int) = run;
int run(int n) {
  int own[2] = {n, 0};
  for (int i = 0; i < n; i++) {
    total += i;
    own[1] = total * 2; total ^= own[1];
    own[0] -= total;
  }
  own[0] += how ? 7 : 0;
  total = own[0] * 3;
  return total;
}
";
    let sandbox = Sandbox::new();
    let Some(clang) = tools::clang() else {
        return;
    };
    let source = sandbox.write("at.c", SOURCE);
    let link = ["-Wl,--no-entry", "-Wl,--export=run"];
    clang.module(&["-g", "-O0"], &[source], &link, &sandbox.path("at.wasm"));
    sandbox.ok("record --invoke run -o app.aft at.wasm 5");
    let mut differ = 0;
    for line in [5, 6, 7, 9, 10, 11] {
        for name in ["total", "own", "how"] {
            let at = format!("at.c:{line}");
            let held = values(&sandbox, &at, name);
            for (number, held) in (1..).zip(held) {
                let words = format!("memory app.aft --var {name} --at {at}#{number} --format json");
                let memory = json(&sandbox, &words);
                assert_eq!(memory["variable"]["value"], held.unwrap(), "{words}");
                let block = format!("--at t={}", memory["t"]);
                let words = words.replace(&format!("--at {at}#{number}"), &block);
                let block = json(&sandbox, &words);
                differ += u64::from(block["contents"] != memory["contents"]);
            }
        }
    }
    assert!(differ > 10, "most lines begin within a block");
    let how = json(&sandbox, "memory app.aft --var how --format json");
    assert_eq!(how["variable"]["value"], "0x1 <run>");
    let memory = json(&sandbox, "memory app.aft --var total --format json");
    let address = memory["address"].as_u64().unwrap();
    let statements = |what: &str| {
        let words = format!("slice app.aft --at end {what} --by statement --format json");
        let slice = json(&sandbox, &words);
        assert!(
            slice["title"]
                .as_str()
                .is_none_or(|title| !title.contains("before"))
        );
        slice["statements"].clone()
    };
    let by_name = statements("--var total");
    assert_eq!(
        by_name,
        statements(&format!("--address {address}..{}", address + 3))
    );
    let lines = sandbox.ok("slice app.aft --at end --var total").stdout;
    assert!(lines.contains("total = own[0] * 3;"), "{lines}");
    let why = sandbox.ok("why app.aft --at end --var total").stdout;
    assert!(why.contains("stored at at.c:10 in run"), "{why}");
    sandbox.refused(
        "slice app.aft --at end --var own",
        125,
        &["own", "at the end of the run"],
    );
}

/// A parameter passed by reference, after a local that optimised code reuses.
#[test]
fn parameters_behind_a_local_that_was_written_are_marked() {
    const SOURCE: &str = r#"#[derive(Debug, Clone, PartialEq)]
pub enum Shape { Dot, Circle { r: f64 }, Rect(f32, f32), Named(String) }
pub struct Acc { n: usize, sum: f64, last: Option<Box<Shape>>, words: Vec<&'static str> }
#[inline(never)]
fn area(shape: &Shape) -> f64 {
    match shape {
        Shape::Dot => 0.0,
        Shape::Circle { r } => 3.0 * r * r,
        Shape::Rect(a, b) => (*a * *b) as f64,
        Shape::Named(name) => name.len() as f64,
    }
}
#[inline(never)]
fn feed(acc: &mut Acc, shape: Shape) {
    let a = area(&shape);
    acc.n += 1;
    acc.sum += a;
    acc.last = Some(Box::new(shape));
    acc.words.push(if a > 5.0 { "big" } else { "small" });
} // here
fn main() {
    let mut acc = Acc { n: 0, sum: 0.0, last: None, words: vec![] };
    let named = Shape::Named("hello".to_string());
    for s in [Shape::Dot, Shape::Circle { r: 2.0 }, Shape::Rect(1.5, 2.0), named] {
        feed(&mut acc, s);
    }
    println!("{} {} {:?} {:?}", acc.n, acc.sum, acc.last, acc.words);
}
"#;
    let line = SOURCE.lines().position(|line| line.ends_with("// here"));
    let at = format!("app.rs:{}", line.unwrap() + 1);
    let fed = [
        "Dot",
        "Circle { r = 2.0 }",
        "Rect(1.5, 2.0)",
        "Named(\"hello\")",
    ];
    let sandbox = Sandbox::new();
    sandbox.write("app.rs", SOURCE);
    for level in [0, 1, 2, 3] {
        sandbox.rustc("app", "app", level);
        sandbox.ok("record --force -o app.aft app.wasm");
        let words = format!("values app.aft --at {at} --var shape --format json");
        let found = json(&sandbox, &words);
        let rows = found["instances"].as_array().unwrap();
        for row in rows {
            let number = row["number"].as_u64().unwrap() as usize;
            let right = row["value"]
                .as_str()
                .is_none_or(|value| value == fed[number - 1]);
            assert!(right || row["written"].is_object(), "{level}: {row}");
        }
        eprintln!("{level}: {} rows", rows.len());
    }
}

/// At -O1 and above, clang describes `n` of `kept` as always in its local, but stores another value
/// there before the end.
const REUSED: &str = "__attribute__((noinline)) int f(int a, int b) {
  int x = a * 3 + b;
  for (int i = 0; i < b; i++) x = x * 31 + (i ^ x);
  return x;
}
__attribute__((noinline)) int g(int a, int b) {
  if (b > 3) { b = b * a; a = f(b, 2); }
  return f(a, b & 3) + b;
}
__attribute__((noinline)) int h(int *p, int b) {
  int s = *p;
  for (int *q = p + b; p < q;) s += *p++;
  return s + b;
}
int kept(int n) { int a[4] = {1, 2, 3, n}; return f(n, 3) + g(n, 5) + h(a, 4); }
";

/// A parameter that the source never assigns has the call's argument or is marked, even if it is
/// requested by name.
#[test]
fn parameters_that_were_written_are_marked() {
    for level in ["-O0", "-O1", "-O2", "-Os"] {
        let sandbox = Sandbox::new();
        let Some(clang) = tools::clang() else {
            return;
        };
        let source = sandbox.write("reused.c", REUSED);
        let link = ["-Wl,--no-entry", "-Wl,--export-all"];
        clang.module(&["-g", level], &[source], &link, &sandbox.path("app.wasm"));
        sandbox.ok("record --invoke kept -o app.aft app.wasm 9");
        let start = json(&sandbox, "state app.aft --at start --format json");
        let mut marked = 0;
        for time in 1..=start["length"].as_u64().unwrap() {
            let words = format!("state app.aft --at t={time} --format json");
            let state = json(&sandbox, &words);
            let frames = state["frames"].as_array().unwrap();
            let kept = frames
                .iter()
                .filter(|frame| frame["function"]["name"] == "kept");
            let variables = kept.flat_map(|frame| frame["variables"].as_array().unwrap());
            for n in variables.filter(|variable| variable["name"] == "n") {
                let right = n["value"].as_str().is_none_or(|value| value == "9");
                let early = level == "-O0" && time == 1;
                assert!(right || early || n["written"].is_object(), "{level} {n}");
                assert!(level != "-O0" || n["written"].is_null(), "{n}");
                marked += u64::from(n["written"].is_object());
            }
        }
        let words = "values app.aft --at reused.c:15 --var n --limit 100 --format json";
        let found = json(&sandbox, words);
        for row in found["instances"].as_array().unwrap() {
            let right = row["value"].as_str().is_none_or(|value| value == "9");
            assert!(
                right || row["written"].is_object() || level == "-O0",
                "{level} {row}"
            );
        }
        eprintln!("{level}: {marked} marked");
    }
}
