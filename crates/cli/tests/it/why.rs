//! `why` and `why-not` for a program whose answers are known by construction.

use afterimage_testkit::tools;
use serde_json::Value;

use crate::common::{Sandbox, ran_with_input};

const SOURCE: &str = r#"use std::io::Read;

fn digit(byte: u8) -> u32 {
    if !byte.is_ascii_digit() {
        std::process::exit(3);
    }
    u32::from(byte - b'0')
}

fn main() {
    let mut all = Vec::new();
    std::io::stdin().read_to_end(&mut all).unwrap();
    let mut file = Vec::new();
    if let Some(name) = std::env::args().nth(1) {
        let mut opened = std::fs::File::open(name).unwrap();
        std::io::Seek::seek(&mut opened, std::io::SeekFrom::Start(100)).unwrap();
        opened.read_to_end(&mut file).unwrap();
    }
    let seen = digit(all[17]);
    let mut total = seen;
    for byte in &file {
        total += u32::from(*byte);
    }
    let text = [b'<', b'n', b'=', b'0' + total as u8, b'>', b'\n'];
    std::io::Write::write_all(&mut std::io::stdout(), &text).unwrap();
}
"#;

/// A program that sets two bytes of a number separately, and prints a record that begins with a
/// constant byte.
const PARTS: &str = r#"use std::hint::black_box;
use std::io::Read;

#[repr(C)]
struct Pair {
    kind: u8,
    count: u32,
}

fn main() {
    let mut all = [0; 2];
    std::io::stdin().read_exact(&mut all).unwrap();
    let mut number = 0_u32;
    let bytes = (&raw mut number).cast::<u8>();
    unsafe {
        bytes.add(3).write(all[0]);
        bytes.add(2).write(all[1]);
    }
    let pair = Pair { kind: 7, count: u32::from(all[1]) };
    black_box((&number, &pair));
    println!("{} {} {}", number, pair.kind, pair.count);
}
"#;

#[test]
fn of_a_variable_the_part_is_explained_that_tells_something() {
    let sandbox = Sandbox::new();
    sandbox.rust("app", PARTS);
    let words = "record --lens full -o app.aft app.wasm";
    let ran = ran_with_input(&mut sandbox.command(words.split_whitespace()), b"AB");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let number = sandbox.ok("why app.aft --at app.rs:20 --var number").stdout;
    let value = (b'A' as u32) << 24 | (b'B' as u32) << 16;
    assert!(
        number.starts_with(&format!("number is {value} ")),
        "{number}"
    );
    assert!(
        number.contains("a part of which\ncomes from byte 1 of standard input, 'B'"),
        "{number}"
    );
    let pair = sandbox.ok("why app.aft --at app.rs:20 --var pair").stdout;
    assert!(
        pair.contains("the first byte of which\ncomes from the constant 7"),
        "{pair}"
    );
    let count = sandbox
        .ok("why app.aft --at app.rs:20 --var pair.count")
        .stdout;
    assert!(
        count.contains("which\ncomes from byte 1 of standard input"),
        "{count}"
    );
}

/// The line with `let seen`.
const SEEN: &str = "app.rs:19";

fn recorded(input: &[u8], words: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.rust("app", SOURCE);
    let mut data = vec![0; 103];
    data[102] = 2;
    std::fs::create_dir(sandbox.path("data")).unwrap();
    sandbox.write("data/file", data);
    let words = format!("record --lens full -o app.aft {words}");
    let ran = ran_with_input(&mut sandbox.command(words.split_whitespace()), input);
    assert!(sandbox.path("app.aft").exists(), "{ran:?}");
    sandbox
}

/// Returns the objects that a command writes.
fn lines(sandbox: &Sandbox, words: &str) -> Vec<Value> {
    let ran = sandbox.ok(words);
    let lines = ran.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Returns the last entry, which says where the value came from.
fn end(told: &[Value]) -> (&str, Option<&str>, Option<u64>) {
    let end = told.last().expect("an end");
    let kind = end["kind"].as_str().expect("an end");
    (kind, end["file"].as_str(), end["offset"].as_u64())
}

#[test]
fn a_printed_byte_comes_from_a_byte_of_the_input() {
    let sandbox = recorded(b"abcdefghijklmnopq7xyz\n", "app.wasm");
    let told = sandbox.ok("why app.aft --stdout 3").stdout;
    let begin = "7, printed as \"7\" in \"<n=7>\" (byte 3 of standard output),\ncomes from byte 17 of standard input, '7'";
    assert!(told.starts_with(begin), "{told}");
    let digit = sandbox.ok("why app.aft --stdout 3 --digit").stdout;
    let begin =
        "byte 3 of standard output, '7' in \"<n=7>\"\ncomes from byte 17 of standard input, '7'";
    assert!(digit.starts_with(begin), "{digit}");
    assert!(told.contains("| u32::from(byte - b'0')"), "{told}");
    let input = ("input", Some("standard input"), Some(17));
    for words in [
        "why app.aft --stdout 3 --format json".to_owned(),
        format!("why app.aft --at {SEEN} --format json"),
        "why app.aft --at app.rs:20 --var seen --format json".to_owned(),
    ] {
        let told = lines(&sandbox, &words);
        assert_eq!(end(&told), input, "{words}: {told:#?}");
        assert_eq!(told[0]["schema"], "afterimage/why/2");
    }
    // A line stands for its number.
    let told = sandbox.ok("why app.aft --stdout line:1").stdout;
    assert_eq!(told, sandbox.ok("why app.aft --stdout 3").stdout);
    // The first byte of the line is a constant of the program.
    let told = lines(&sandbox, "why app.aft --stdout line:1:1 --format json");
    assert!(matches!(end(&told).0, "constant" | "data"), "{told:#?}");
    sandbox.refused("why app.aft --stdout 6", 125, &["--stdout 6", "6 bytes"]);
    sandbox.refused("why app.aft --stdout line:2", 125, &["line:2", "1 line"]);
    sandbox.refused("why app.aft --trap", 125, &["the run returned"]);
    sandbox.refused(
        &format!("why-not app.aft --at {SEEN}"),
        125,
        // The line was reached once, but the code after its calls was executed later.
        &["was reached once, at t=", ", and executed up to t="],
    );
}

#[test]
fn files_are_named_and_seeking_counts() {
    let words = "--dir data::/data app.wasm /data/file";
    let sandbox = recorded(b"abcdefghijklmnopq0xyz\n", words);
    let told = lines(&sandbox, "why app.aft --stdout 3 --format json");
    let file = ("input", Some("/data/file"), Some(102));
    assert_eq!(end(&told), file, "{told:#?}");
}

const PANICS: &str = r#"fn main() {
    let given = std::env::args().count();
    let all: Vec<u32> = (1..4).collect();
    println!("{}", all[all.len() - given]);
    println!("{}", all[given + 9]);
}
"#;

#[test]
fn a_panic_is_explained_by_the_check_that_failed() {
    let sandbox = Sandbox::new();
    sandbox.rust("app", PANICS);
    let ran = sandbox.run("record --lens full -o app.aft app.wasm");
    assert_eq!(ran.code, Some(134), "{ran:?}");
    let told = lines(&sandbox, "why app.aft --trap --format json");
    let frames = told[1]["frames"].as_array().unwrap();
    // Functions that cannot return come first, and have branches, too.
    let branches = frames.iter().filter(|frame| !frame["branch"].is_null());
    let followed = |frame: &&Value| frame["branch"]["followed"] == true;
    let position = branches.clone().position(|frame| followed(&frame));
    assert!(position.is_some_and(|position| position > 0), "{told:#?}");
    let function = branches.clone().find(followed).unwrap()["place"]["function"]["name"].as_str();
    assert!(function.unwrap().contains("index"), "{function:?}");
    // The chain follows the comparison of index and length, and not the overflow check of the line
    // above.
    let compared = told.iter().any(|step| {
        let value = |i: usize| step["operands"][i]["value"].as_str();
        (value(0), value(1)) == (Some("10"), Some("3"))
    });
    assert!(compared, "{told:#?}");
    // The text begins with the program's message and its place in the program's own code, and then
    // the check. Other library code is folded.
    let text = sandbox.ok("why app.aft --trap").stdout;
    let said = "panicked: index out of bounds: the len is 3 but the index is 10, at app.rs:5 in app::main\n";
    assert!(text.starts_with(said), "{text}");
    assert!(
        text.contains("= 10 < 3 ") && text.contains("\n  ended in library code ("),
        "{text}"
    );
    assert_eq!(told[0]["death"]["what"], "panicked");
    let text = sandbox.ok("why app.aft --trap --code all").stdout;
    assert!(
        !text.starts_with("panicked") && !text.contains("library code"),
        "{text}"
    );
    let listed = text.matches("led there by").count();
    assert!(listed >= position.unwrap() + 2, "{text}");
    // A project's settings apply to all commands; options take precedence.
    sandbox.write(".afterimage.toml", "code = \"all\"\n");
    assert_eq!(sandbox.ok("why app.aft --trap").stdout, text);
    let mine = sandbox.ok("why app.aft --trap --code mine").stdout;
    assert!(mine.starts_with(said), "{mine}");
    let none = ["no source file matches other/*.rs; your own are", "app.rs"];
    sandbox.refused("why app.aft --trap --code other/*.rs", 125, &none);
    for (settings, why) in [
        ("code = \"[\"", "code"),
        ("cod = \"all\"", "unknown field `cod`"),
        ("code all", ".afterimage.toml"),
    ] {
        sandbox.write(".afterimage.toml", settings);
        sandbox.refused("why app.aft --trap", 125, &[".afterimage.toml", why]);
    }
}

/// Panics in several ways, with a hook that prints nothing, or other text.
const SILENT: &str = r#"
#[inline(never)]
fn pick(v: &[u32], at: usize) -> u32 { v[at] }
fn main() {
    let n = std::env::args().count();
    let which = std::env::args().nth(1).unwrap_or_default();
    let talks = which == "talks";
    std::panic::set_hook(Box::new(move |_| if talks { eprintln!("sorry\na bug") }));
    let none: Option<u32> = None;
    match which.as_str() {
        "assert" => assert!(n == 1),
        "text" => assert!(n == 1, "too many: naïve"),
        "literal" => panic!("gone {{wrong}}"),
        "bounds" => println!("{}", pick(&[1, 2, 3], n + 5)),
        "unwrap" => println!("{}", none.unwrap()),
        "add" => println!("{}", pick(&[1], n + usize::MAX)),
        _ => panic!("{n} words"),
    }
}
"#;

#[test]
fn a_panic_that_prints_nothing_has_the_text_that_it_was_given() {
    let sandbox = Sandbox::new();
    sandbox.write("app.rs", SILENT);
    for level in [0, 2] {
        sandbox.rustc_with(&["-C", "debug-assertions"], "app", "app", level);
        for (which, said) in [
            ("assert", "panicked: assertion failed: n == 1, at app.rs:11"),
            ("text", "panicked: too many: naïve, at app.rs:12"),
            ("literal", "panicked: gone {wrong}, at app.rs:13"),
            (
                "bounds",
                "panicked: index out of bounds: the len is 3 but the index is 7, at app.rs:3",
            ),
            (
                "unwrap",
                "panicked: called `Option::unwrap()` on a `None` value, at app.rs:15",
            ),
            (
                "add",
                "panicked: attempt to add with overflow, at app.rs:16",
            ),
            // Nothing formatted this message, so it is nowhere in memory.
            ("other", "panicked without printing a message, at app.rs:17"),
            ("talks", "panicked after printing: a bug, at app.rs:17"),
        ] {
            sandbox.run(&format!("record --force -o app.aft app.wasm {which}"));
            let text = sandbox.ok("why app.aft --trap").stdout;
            assert!(text.starts_with(said), "{level}: {text}");
        }
    }
}

#[test]
fn a_stack_in_memory_that_overflows_is_called_so() {
    let sandbox = Sandbox::new();
    let Some(clang) = tools::clang() else {
        return;
    };
    let text = "static int deep(int n)\n{\n    volatile char room[1000];\n    room[0] = n;\n    return deep(n + 1) + room[0];\n}\nint run(void) { return deep(1); }\n";
    let source = sandbox.write("deep.c", text);
    let link = ["-Wl,--no-entry", "-Wl,--export=run", "-Wl,--stack-first"];
    clang.module(&["-g", "-O0"], &[source], &link, &sandbox.path("deep.wasm"));
    sandbox.run("record --invoke run -o deep.aft deep.wasm");
    let told = sandbox.ok("why deep.aft --trap").stdout;
    let said = "stack overflow, at deep.c:2 in deep, called from deep.c:5\n";
    assert!(told.starts_with(said), "{told}");
    assert!(told.contains("deep at deep.c:5 called itself, "), "{told}");
}

#[test]
fn what_was_not_reached_says_whom_to_ask() {
    let sandbox = Sandbox::new();
    sandbox.rust("app", PANICS);
    sandbox.run("record --lens full -o app.aft app.wasm one two three");
    let hint = "see: afterimage why-not app.aft --at app.rs:5";
    for words in [
        "why app.aft --at app.rs:5#2",
        "why app.aft --at app.rs:5 --var all",
        "slice app.aft --at app.rs:5",
    ] {
        sandbox.refused(words, 125, &[hint]);
    }
    // The message names the place that was not reached.
    sandbox.refused("slice app.aft --at app.rs:4 --chop app.rs:5", 125, &[hint]);
    let told = sandbox.ok("why-not app.aft --at app.rs:5").stdout;
    assert!(told.contains("app.rs:4"), "{told}");
}

#[test]
fn an_exit_is_explained_by_the_branch_that_led_there() {
    let sandbox = recorded(b"abcdefghijklmnopqrstuvwxyz\n", "app.wasm");
    let told = lines(&sandbox, "why app.aft --trap --format json");
    assert_eq!(
        (told[0]["value"].as_str(), end(&told).0),
        (Some("3"), "constant")
    );
    let frames = told[1]["frames"].as_array().unwrap().iter();
    let own = frames.filter(|frame| frame["own"] == true);
    let branches = own.filter_map(|frame| frame["branch"]["place"]["source"]["line"].as_u64());
    assert_eq!(Vec::from_iter(branches).first(), Some(&4), "{told:#?}");
    // The answer explains why the next line was not executed, down to the byte that is not a digit.
    let told = sandbox
        .ok("why-not app.aft --at app.rs:7 --format json")
        .stdout;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["cause"]["place"]["source"]["line"], 4, "{told:#}");
    assert_eq!(told["cause"]["kind"], "branch");
    let why = told["why"].as_array().unwrap();
    assert_eq!(
        end(why),
        ("input", Some("standard input"), Some(17)),
        "{told:#}"
    );
}

#[test]
fn without_a_start_a_failure_is_explained() {
    let sandbox = recorded(b"abcdefghijklmnopqrstuvwxyz\n", "app.wasm");
    let failed = sandbox.ok("why app.aft --trap").stdout;
    assert_eq!(sandbox.ok("why app.aft").stdout, failed);
    sandbox.wasm(
        "traps.wasm",
        "(module (func (export \"_start\") unreachable))",
    );
    sandbox.run("record -o traps.aft traps.wasm");
    let failed = sandbox.ok("why traps.aft --trap").stdout;
    assert_eq!(sandbox.ok("why traps.aft").stdout, failed);

    // For a run that succeeded, the refusal suggests another question.
    let sandbox = recorded(b"01234567890123456789\n", "app.wasm");
    let question = "afterimage why app.aft --stdout line:last";
    let parts = ["the run returned", "nothing failed", question];
    sandbox.refused("why app.aft", 125, &parts);
    let told = sandbox.ok(&question["afterimage ".len()..]).stdout;
    assert!(told.starts_with("7, printed as \"7\""), "{told}");
    sandbox.wasm(
        "exits.wasm",
        r#"(module
          (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
          (memory (export "memory") 1)
          (func (export "_start") (call $exit (i32.const 0))))"#,
    );
    sandbox.run("record -o exits.aft exits.wasm");
    let parts = ["exited with code 0", "nothing was printed", "--at"];
    sandbox.refused("why exits.aft", 125, &parts);
    let ran = sandbox.run("why app.aft --digit");
    assert_eq!(ran.code, Some(125), "{ran:?}");
    assert!(ran.stderr.contains("--stdout"), "{ran:?}");
}

const ROUNDS: &str = r#"struct Pair {
    left: u32,
    right: u32,
}

fn both(value: u32) -> bool {
    value > 2 && value != 7
}

fn main() {
    let given = std::env::args().count() as u32;
    let pair = Pair {
        left: 258 * given,
        right: given,
    };
    let never = |x: u32| {
        x * pair.right
    };
    let mut total = 0;
    for i in 0..5 {
        total += if both(i) { i } else { pair.right };
    }
    if total > 1000 {
        total = never(total);
    }
    println!("{total} {}", pair.left);
}
"#;

fn rounds() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.rust("app", ROUNDS);
    sandbox.ok("record --lens full -o app.aft app.wasm");
    sandbox
}

#[test]
fn what_was_reached_is_told_with_a_moment_behind_it() {
    let sandbox = rounds();
    // The number of arrivals at each line, as a profile counts them.
    for (line, reached) in [
        (7, "5 times"),
        (8, "5 times"),
        (11, "once"),
        (21, "5 times"),
    ] {
        let at = format!("why-not app.aft --at app.rs:{line}");
        let refused = sandbox.run(&at);
        assert_eq!(refused.code, Some(125), "{refused:?}");
        let told = &refused.stderr;
        assert!(told.contains(&format!("was reached {reached}, ")), "{told}");
        let (_, after) = told
            .split_once("did not run after that: --after ")
            .expect(told);
        // The moment is after the last of the line's blocks, and the answer has the same count.
        let after = after.trim();
        let again = sandbox.ok(&format!("{at} --after {after}")).stdout;
        let expected = format!("(it was reached {reached} before, the last time at t=");
        assert!(again.contains(&expected), "{again}");
        let (_, last) = again.split_once(&expected).expect("it is there");
        let last = last.split(')').next().unwrap_or_default();
        let up_to = if last == after {
            String::new()
        } else {
            format!(", and executed up to t={after}")
        };
        assert!(
            told.contains(&format!("at t={last}{up_to};")),
            "{told} {again}"
        );
    }
    // A column is only a part of a line, so its arrivals are not counted.
    let told = sandbox.run("why-not app.aft --at app.rs:21:9").stderr;
    assert!(told.contains("app.rs:21:9 was executed 5 times"), "{told}");
    let told = sandbox.ok("why-not app.aft --at app.rs:17").stdout;
    assert!(told.starts_with("app.rs:17 was never executed"), "{told}");
}

#[test]
fn of_a_struct_the_first_byte_is_explained() {
    let sandbox = rounds();
    let told = sandbox.ok("why app.aft --at app.rs:19 --var pair").stdout;
    let (head, rest) = told.split_once('\n').expect("two lines");
    assert!(
        head.starts_with("pair is { left = 258, right = 1 }")
            && head.ends_with("the first byte of which"),
        "{told}"
    );
    assert!(rest.contains("app.rs:13"), "{told}");
    // For a member, the value is explained.
    let told = sandbox
        .ok("why app.aft --at app.rs:19 --var pair.left")
        .stdout;
    assert!(told.starts_with("pair.left is 258"), "{told}");
    assert!(!told.contains("first byte"), "{told}");
}

/// Splits each row of a table without quotes into its fields.
fn rows(table: &str) -> Vec<Vec<&str>> {
    let rows = table.lines().skip(1);
    rows.map(|row| row.split(',').collect()).collect()
}

#[test]
fn a_slice_by_line_has_all_its_statements() {
    let sandbox = rounds();
    let slice = "slice app.aft --at app.rs:26 --format csv";
    let by_line = sandbox.ok(slice).stdout;
    let by_line = rows(&by_line);
    let by_statement = sandbox.ok(&format!("{slice} --by statement")).stdout;
    // Names of generic functions contain commas, so compare only the number of rows.
    let all = by_statement.lines().count() - 1;
    let mut counted = 0;
    let mut kinds = [0, 0];
    for row in &by_line {
        let [file, line, statements, _, _, function] = row[..] else {
            panic!("six fields: {row:?}");
        };
        assert_eq!(file.is_empty(), line.is_empty(), "{row:?}");
        assert_ne!(file.is_empty(), function.is_empty(), "{row:?}");
        kinds[usize::from(file.is_empty())] += 1;
        counted += statements.parse::<usize>().unwrap();
    }
    assert!(kinds[0] > 0 && kinds[1] > 0, "{by_line:?}");
    assert_eq!(counted, all);
    let refused = sandbox.run("slice app.aft --at app.rs:26 --annotate --limit 3");
    assert_eq!(refused.code, Some(125), "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("'--annotate' cannot be used with '--limit"),
        "{refused:?}"
    );
}

#[test]
fn a_line_stands_for_its_last_number() {
    let sandbox = Sandbox::new();
    let source = r#"
fn main() {
    let got = std::env::args().count() as u32;
    let (price, cents) = (got * 20, got * 12_507);
    println!("no number in u32");
    println!("Ben u32 has {} of -{price}\nthe end", price + 4);
    println!("at {:08.3}, due {}.{:02}", f64::from(got) * 4.958, cents / 100, cents % 100);
}
"#;
    sandbox.rust("app", source);
    sandbox.ok("record app.wasm");
    let told = |at: &str| sandbox.ok(&format!("why app.aft --stdout {at}")).stdout;
    let begins = |at: &str, begin: &str| {
        let told = told(at);
        assert!(told.starts_with(begin), "{at}: {told}");
        told
    };
    let first = told("line:1");
    assert!(
        first.starts_with("byte 0 of standard output, 'n'"),
        "{first}"
    );
    let several = begins(
        "line:2",
        "20, printed as \"-20\" in \"Ben u32 has 24 of -20\"",
    );
    let another = "the last of the line's 2 numbers; for 24:\n        afterimage why app.aft --stdout line:2:13\n";
    let one_line = another.replace(":\n        ", ": ");
    assert!(
        several.contains(another) || several.contains(&one_line),
        "{several}"
    );
    let before = begins("line:2:13", "24, printed as \"24\"");
    assert!(!before.contains("numbers"), "{before}");
    // A line and its first column differ.
    begins("line:last", "12507 (0x30db), printed as \"125.07\"");
    begins("line:last:1", "byte ");
    begins("line:last:4", "4.958, printed as \"0004.958\"");
    let json = sandbox.ok("why app.aft --stdout line:last --format json");
    let head: Value = serde_json::from_str(json.stdout.lines().next().unwrap()).unwrap();
    let in_line = serde_json::json!({
        "numbers": 2, "before": "0004.958", "option": "--stdout", "at": "line:last:4"
    });
    assert_eq!(head["in_line"], in_line);
}

#[test]
fn a_branch_is_explained_by_the_sources_condition() {
    let sandbox = Sandbox::new();
    let source = "\
fn free(mugs: u32, percent: u32) -> bool {
    if percent == 0 && mugs >= 10 {
        return true;
    }
    false
}
fn main() {
    let n = std::env::args().count() as u32;
    let wide = n as u64 + 4;
    println!(\"{} {wide}\", free(n + 11, n + 19));
}
";
    sandbox.rust("app", source);
    sandbox.ok("record app.wasm");
    let told = sandbox.ok("why-not app.aft --at app.rs:3").stdout;
    let parts = [
        "\n      | if percent == 0 && mugs >= 10 {\n",
        "  the last time, with percent = 20, mugs = 12, it went to app.rs:",
        "only 0 leads towards app.rs:3)",
    ];
    for part in parts {
        assert!(told.contains(part), "{part}: {told}");
    }
    let json = sandbox.ok("why-not app.aft --at app.rs:3 --format json");
    let report: Value = serde_json::from_str(&json.stdout).unwrap();
    let variables = serde_json::json!([
        { "name": "percent", "value": "20" },
        { "name": "mugs", "value": "12" },
    ]);
    assert_eq!(report["cause"]["variables"], variables);
    // A conversion that does not change the value is in JSON only.
    let text = sandbox.ok("why app.aft --stdout line:1").stdout;
    assert!(text.contains("  5 = 1 + 4 "), "{text}");
    assert!(!text.contains("extend"), "{text}");
    let json = sandbox
        .ok("why app.aft --stdout line:1 --format json")
        .stdout;
    assert!(json.contains("i64.extend_i32_u"), "{json}");
}

#[test]
fn what_was_printed_as_an_error_has_bytes_of_its_own() {
    let sandbox = Sandbox::new();
    sandbox.rust(
        "app",
        "fn main() {\n    println!(\"out\");\n    eprintln!(\"err {}\", std::env::args().count());\n}\n",
    );
    sandbox.ok("record app.wasm");
    let told = sandbox.ok("why app.aft --stderr line:1:1").stdout;
    assert!(
        told.starts_with("byte 0 of standard error, 'e' in \"err "),
        "{told}"
    );
    let told = sandbox.ok("why app.aft --stdout 0").stdout;
    assert!(
        told.starts_with("byte 0 of standard output, 'o' in \"out\""),
        "{told}"
    );
    sandbox.refused(
        "why app.aft --stderr 6",
        125,
        &["--stderr 6: the program printed 6 bytes to standard error; bytes are counted from 0"],
    );
    sandbox.refused(
        "why app.aft --stderr line:2",
        125,
        &["--stderr line:2: the program printed 6 bytes to standard error, in 1 line"],
    );
}

/// The engine limits the depth by the stack that each function takes.
#[test]
fn of_an_exhausted_stack_the_calls_that_repeat_are_told() {
    let sandbox = Sandbox::new();
    let module = r#"(module
      (func $even (param $n i32) (result i32)
        (i32.add (call $odd (i32.add (local.get $n) (i32.const 1))) (i32.const 1)))
      (func $odd (param $n i32) (result i32)
        (i32.mul (call $even (i32.add (local.get $n) (i32.const 1))) (i32.const 3)))
      (func (export "_start") (drop (call $even (i32.const 1)))))"#;
    sandbox.wasm("a.wasm", module);
    sandbox.run("record --lens full --stack 64 -o run.aft a.wasm");
    let told = sandbox.ok("why run.aft --trap").stdout;
    let number = |before: &str, behind: &str| -> u64 {
        let (said, _) = told.split_once(behind).unwrap_or_else(|| panic!("{told}"));
        let (_, number) = said.rsplit_once(before).unwrap_or_else(|| panic!("{told}"));
        number.replace(',', "").parse().expect("a number")
    };
    let open = number(" with ", " activations on it: ");
    let times = number(", ", " times");
    assert!(open > 100, "{told}");
    // _start calls even, and then the two functions call each other.
    assert!((open / 2 - 1..=open / 2).contains(&times), "{told}");
    assert!(
        told.starts_with("the run exhausted its stack at @"),
        "{told}"
    );
    // Either of them may be the last.
    let (first, second) = ("called even, even at @", "called odd, odd at @");
    assert!(told.contains(first) || told.contains(second), "{told}");
    // Repeated calls are shown once.
    assert!(told.lines().count() < 8, "{told}");
}

/// A stop from outside is known before anything is built.
#[test]
fn a_run_that_was_stopped_is_refused_at_once() {
    let sandbox = Sandbox::new();
    sandbox.wasm(
        "a.wasm",
        r#"(module (func (export "_start") (loop $again (br $again))))"#,
    );
    sandbox.run("record --timeout 0.05 -o run.aft a.wasm");
    let before = sandbox.read("run.aft");
    for words in ["why run.aft --trap", "slice run.aft --trap", "why run.aft"] {
        let parts = ["time limit", "afterimage state --at end run.aft"];
        sandbox.refused(words, 125, &parts);
    }
    assert_eq!(sandbox.read("run.aft"), before);
}

#[test]
fn what_main_returns_and_what_tables_hold_is_named() {
    let sandbox = Sandbox::new();
    sandbox.rust(
        "app",
        r#"#[derive(Debug)]
enum Bad { Length(usize) }
fn parse(text: &str) -> Result<i32, Bad> {
    if text.len() > 2 { Err(Bad::Length(text.len())) } else { Ok(1) }
}
fn main() -> Result<(), Bad> {
    let found = parse(&std::env::args().nth(1).unwrap())?;
    println!("{found}");
    Ok(())
}
"#,
    );
    let said = |words: &str, module: &str| {
        let record = format!("record --force --lens full -o app.aft {module} {words}");
        sandbox.run(&record);
        let told = sandbox.ok("why --trap app.aft").stdout;
        told.lines().next().unwrap().to_owned()
    };
    let begin = "main returned an error: Length(5), at app.rs:10 in app::main";
    assert_eq!(said("hello", "app.wasm"), begin);
    sandbox.rust(
        "table",
        r#"use std::hint::black_box;
fn double(x: f64) -> f64 { x * 2.0 }
fn call(f: fn(i32) -> i32) -> i32 { f(black_box(3)) }
fn main() {
    let f: fn(f64) -> f64 = black_box(double);
    println!("{}", call(unsafe { std::mem::transmute(f) }));
}
"#,
    );
    let said = said("", "table.wasm");
    let begin = "indirect call to a function of another type: entry ";
    let end = " of the table is table::double, which is (f64) -> f64; the call wants (i32) -> i32, at table.rs:3 in table::call, called from table.rs:6";
    assert!(said.starts_with(begin) && said.ends_with(end), "{said}");
    sandbox.rust("code", "fn main() -> std::process::ExitCode {\n    let all = std::env::args().count();\n    std::process::ExitCode::from(all as u8)\n}\n");
    sandbox.run("record --force --lens full -o code.aft code.wasm a b");
    let told = sandbox.ok("why --trap code.aft").stdout;
    assert!(told.starts_with("main returned 3, at code.rs:"), "{told}");
}

const WITHOUT_NAMES: &str = r#"(module
    (memory (export "memory") 1)
    (func $down (param i32) (local i32)
        (local.set 1 (i32.mul (local.get 0) (i32.const 3)))
        (if (local.get 0) (then (call $down (i32.sub (local.get 0) (i32.const 1))))))
    (func (export "_start") (call $down (i32.const 4))))"#;

#[test]
fn a_local_without_a_name_is_named_by_its_index() {
    let sandbox = Sandbox::new();
    sandbox.wasm("app.wasm", WITHOUT_NAMES);
    sandbox.ok("record --lens full -o app.aft app.wasm");
    // The decision is the block's last operator, after the assignment.
    let words = "why app.aft --at down#2 --var $0 --format json";
    let [argument, ..] = &lines(&sandbox, words)[..] else {
        panic!("there is no answer")
    };
    let about = argument["about"].as_str().unwrap();
    assert!(about.starts_with("$0 is 3 before "), "{about}");
    let words = "values app.aft --at down --var $0 --format json";
    let values = lines(&sandbox, words).remove(0)["instances"].take();
    let values = values.as_array().unwrap().iter();
    let values = Vec::from_iter(values.map(|one| one["value"].as_str().unwrap().to_owned()));
    assert_eq!(values, ["4", "3", "2", "1", "0"]);
    sandbox.refused(
        "why app.aft --at down#2 --var $2",
        125,
        &["$2 is local 2, which does not exist"],
    );
}
