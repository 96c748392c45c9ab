//! `info --sizes`: rows add up, the papers' original form is shown, sections are distinguished, and
//! a partly damaged recording works.

use afterimage_trace::{Kind, TraceFile};
use serde_json::{Value, json};

use crate::common::Sandbox;

/// Ten rounds of three statements: an addition and a comparison, each with one operand that is not
/// constant, and a branch.
const COUNTS: &str = r#"(module
  (memory 1)
  (func (export "main") (local $i i32)
    (loop $again
      (br_if $again
        (i32.lt_u
          (local.tee $i (i32.add (local.get $i) (i32.const 1)))
          (i32.const 10))))))"#;

fn recorded() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("app.wat", COUNTS);
    sandbox.ok("record --invoke main --lens full -o app.aft app.wat");
    sandbox
}

fn json(sandbox: &Sandbox, words: &str) -> Value {
    serde_json::from_str(&sandbox.ok(words).stdout).unwrap()
}

fn sum(rows: &Value, field: &str) -> i64 {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| row[field].as_i64().unwrap()).sum()
}

#[test]
fn the_original_form_is_as_the_paper_counts() {
    let streams = &json(&recorded(), "info app.aft --sizes --format json")["streams"];
    assert_eq!(streams["statements"], 30);
    let original = |class: usize| streams["classes"][class]["original_bytes"].as_u64();
    assert_eq!(original(0), Some(4 * 30), "a time per statement");
    assert_eq!(original(1), Some(4 * 20), "two values a round");
    assert_eq!(original(2), Some(8 * (30 + 30)), "on data and on control");
    assert_eq!(streams["original"]["bytes"], 4 * 30 + 4 * 20 + 8 * 60);
    let factor = streams["original"]["factor"].as_f64().unwrap();
    let stored = streams["stored_bytes"].as_f64().unwrap();
    assert!((factor * stored - 680.0).abs() < 1e-6, "{streams}");
}

#[test]
fn rows_add_up_to_the_sections_and_these_to_the_file() {
    let sandbox = recorded();
    // Build again, to replace a section, and then build windows.
    sandbox.ok("build --lens full --again app.aft");
    sandbox.ok("build --lens full --again --window 2..5 app.aft");
    sandbox.ok("build --lens full --window 6..9 app.aft");
    let info = json(&sandbox, "info app.aft --sizes --format json");
    let streams = &info["streams"];
    let classes = streams["classes"].as_array().unwrap();
    let parts: i64 = classes
        .iter()
        .map(|class| sum(&class["parts"], "stored_bytes"))
        .sum();
    assert_eq!(streams["stored_bytes"], parts);
    let sections = info["sections"].as_array().unwrap();
    let used = |section: &&Value| {
        let kinds = [
            "PATHS",
            "PATH-INDEX",
            "PATH-GRAMMARS",
            "LOG",
            "VALUES",
            "VALUES-INDEX",
            "CHECKPOINTS",
            "PRINTED",
        ];
        kinds.iter().any(|kind| section["kind"] == *kind) && section["replaced"] == false
    };
    let used = sections.iter().filter(used);
    let used: i64 = used
        .map(|section| section["stored_bytes"].as_i64().unwrap())
        .sum();
    assert_eq!(used, parts);
    // The sizes cover the windows' blocks, and the corresponding share of the data about the whole
    // run.
    let statements = streams["statements"].as_u64().unwrap();
    assert_eq!(classes[0]["original_bytes"], 4 * statements);
    let blocks = info["path"]["blocks"].as_f64().unwrap();
    let part = streams["of_part"].as_f64().unwrap();
    assert!((part * blocks - 8.0).abs() < 1e-6, "{streams}");
    let is_whole = |class: &&Value| {
        ["timestamps", "the opened path", "what was printed"]
            .contains(&class["name"].as_str().unwrap())
    };
    let (whole, own): (Vec<&Value>, Vec<&Value>) = classes.iter().partition(is_whole);
    let stored = |classes: &[&Value]| -> i64 {
        classes
            .iter()
            .map(|class| sum(&class["parts"], "stored_bytes"))
            .sum()
    };
    let log = classes[1]["parts"][1]["stored_bytes"].as_i64().unwrap();
    let counted = (stored(&own) - log) as f64 + part * (stored(&whole) + log) as f64;
    let original = &streams["original"];
    let factor = original["bytes"].as_f64().unwrap() / counted;
    assert!(
        (original["factor"].as_f64().unwrap() / factor - 1.0).abs() < 0.01,
        "{streams}"
    );
    let windows = sections
        .iter()
        .filter(|section| section["kind"] == "VALUES");
    let windows = Vec::from_iter(windows.map(|section| section["window"].clone()));
    let (first, second) = (
        json!({"first": 2, "last": 5}),
        json!({"first": 6, "last": 9}),
    );
    assert_eq!(windows, [Value::Null, Value::Null, first, second]);
    let text = sandbox.ok("info app.aft --sizes").stdout;
    let number = |line: &str, column: usize| {
        let column = line.get(column..)?.split_whitespace().next()?;
        column.replace(',', "").parse::<u64>().ok()
    };
    let table: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("section"))
        .collect();
    let column = table[0].find("bytes").unwrap() + "bytes".len() - 16;
    let rows = table[1..].iter().map_while(|line| number(line, column));
    let mut rows = Vec::from_iter(rows);
    let file = rows.pop().unwrap();
    assert_eq!(rows.iter().sum::<u64>(), file, "{text}");
    assert_eq!(info["length"], file);
    for name in ["VALUES t=2..5", "VALUES t=6..9", "VALUES (replaced)"] {
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn what_is_damaged_is_said_after_everything_else() {
    let sandbox = recorded();
    let file = TraceFile::open(&sandbox.path("app.aft")).unwrap();
    let index = file
        .last_whole(Kind::VALUES_INDEX, 1 << 20)
        .unwrap()
        .unwrap();
    drop(file);
    let mut bytes = sandbox.read("app.aft");
    let mut places = bytes.windows(index.len());
    let at = places.rposition(|place| place == index).unwrap();
    bytes[at] ^= 0x40;
    sandbox.write("app.aft", bytes);
    for words in [
        "info app.aft",
        "info app.aft --sizes",
        "info app.aft --format json",
    ] {
        let ran = sandbox.run(words);
        assert_eq!(ran.code, Some(125), "{ran:?}");
        assert!(ran.stderr.starts_with("afterimage: app.aft: "), "{ran:?}");
        assert!(ran.stdout.contains("app.wat"), "{ran:?}");
        assert!(ran.stdout.contains("10"), "the path's blocks: {ran:?}");
    }
    let text = sandbox.run("info app.aft --sizes").stdout;
    assert!(
        text.contains("executed blocks") && text.contains("the file"),
        "{text}"
    );
    assert!(text.contains("Before you share this file"), "{text}");
}

/// Changes a bit in the payload of each chunk of a kind. Finds chunks as docs/FORMAT.md describes
/// them. Returns their number.
fn damage(sandbox: &Sandbox, file: &str, kind: Kind) -> usize {
    let mut bytes = sandbox.read(file);
    let number = |bytes: &[u8], at: usize| {
        let word = bytes[at..at + 4].try_into().unwrap();
        u32::from_le_bytes(word) as usize
    };
    let (mut at, mut changed) = (16, 0);
    while bytes[at..].starts_with(b"AFTC") || bytes[at..].starts_with(b"AFTEND\r\n") {
        if bytes[at..].starts_with(b"AFTEND\r\n") {
            at += 32;
        } else {
            let of = u16::from_le_bytes(bytes[at + 4..at + 6].try_into().unwrap());
            let length = number(&bytes, at + 24);
            if of == kind.0 && length > 0 {
                bytes[at + 40] ^= 4;
                changed += 1;
            }
            at += 40 + length;
        }
        if at == bytes.len() {
            break;
        }
    }
    assert_eq!(at, bytes.len());
    sandbox.write(file, bytes);
    changed
}

/// Two calls, each of which writes a word, so that some data at the end depends on a checkpoint.
const STORES: &str = r#"(module
  (memory 1)
  (func $store (param i32) (i32.store (local.get 0) (i32.add (local.get 0) (i32.const 7))))
  (func (export "main") (call $store (i32.const 16)) (call $store (i32.const 32))))"#;

#[test]
fn what_was_built_again_replaces_what_is_damaged() {
    for kind in [Kind::CHECKPOINTS, Kind::PATH_GRAMMARS, Kind::VALUES] {
        let sandbox = Sandbox::new();
        sandbox.write("app.wat", STORES);
        sandbox.ok("record --invoke main --lens full -o app.aft app.wat");
        let questions = [
            "memory app.aft --address 16..36 --at end",
            "values app.aft --at store",
            "why app.aft --at store#2",
        ];
        let asked = || questions.map(|words| sandbox.run(words));
        let before = asked().map(|ran| (ran.code, ran.stdout));
        assert!(
            before.iter().all(|(code, _)| *code == Some(0)),
            "{before:?}"
        );
        assert!(damage(&sandbox, "app.aft", kind) > 0, "{kind}");
        let refused = asked();
        let refused = refused.iter().filter(|ran| ran.code != Some(0));
        let refused = Vec::from_iter(refused.map(|ran| ran.stderr.as_str()));
        let remedy = "afterimage build --lens full --again";
        assert!(!refused.is_empty(), "{kind}");
        assert!(
            refused.iter().all(|said| said.contains(remedy)),
            "{refused:?}"
        );
        sandbox.ok("build --lens full --again app.aft");
        let after = asked().map(|ran| (ran.code, ran.stdout));
        assert_eq!(before, after, "{kind}");
        let sections = sandbox.ok("info app.aft --sizes").stdout;
        let replaced = sections.lines().filter(|line| line.contains("(replaced)"));
        let replaced = replaced.filter(|line| line.starts_with(&kind.to_string()));
        assert_eq!(
            replaced.count(),
            1 + usize::from(kind == Kind::VALUES),
            "{sections}"
        );
    }
}
