//! Tests every command and format on a program with names that control terminals, reverse text and
//! begin formulas.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{Ran, Sandbox, ran};

/// The name of everything in the program. A file may have this name.
const HOSTILE: &str = "=\x1b[2J\u{9b}31m\u{202e}\u{2066}\u{200f}\u{61c}\u{2028}\u{2029}\u{85}\x07\r\nSPOOF\t,\";<b>&'\\\u{7f}";

/// Whether a character must not be written. The list comes from Unicode, independently of the list
/// in `afterimage`.
fn is_hidden(c: char) -> bool {
    let c = u32::from(c);
    let control = c < 0x20 || (0x7f..0xa0).contains(&c);
    let bidirectional = [0x61c, 0x200e, 0x200f].contains(&c)
        || (0x202a..=0x202e).contains(&c)
        || (0x2066..=0x2069).contains(&c);
    control || bidirectional || c == 0x2028 || c == 0x2029
}

/// Writes a name for the text format.
fn wat(name: &str) -> String {
    name.bytes().map(|byte| format!("\\{byte:02x}")).collect()
}

/// Writes the program and its source, which has the same name as everything in it. The program
/// opens a file, writes, calls itself through a table, and traps.
fn program(sandbox: &Sandbox) {
    let name = wat(HOSTILE);
    let length = HOSTILE.len();
    let comment = "\u{1b}[2J\u{9b}31m";
    let text = format!(
        r#"(module $"m{name}"
  (import "wasi_snapshot_preview1" "fd_write" (func $"w{name}" (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open" (func $"o{name}" (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (global $"g{name}" (mut i32) (i32.const 0))
  (table 1 funcref) (elem (i32.const 0) $"{name}")
  (type $t (func (param i32) (result i32)))
  (data (i32.const 0) "\10\00\00\00") (data (i32.const 4) "\{length:02x}\00\00\00")
  (data (i32.const 16) "{name}")
  (func $"{name}" (export "e{name}") (type $t) (local $"l{name}" i32)
    (local.set $"l{name}" (i32.load8_u offset=16 (local.get 0))) (; {comment} ;)
    (i32.store8 offset=512 (local.get 0) (local.get $"l{name}"))
    (global.set $"g{name}" (i32.add (global.get $"g{name}") (i32.load8_u offset=512 (local.get 0))))
    (if (result i32) (i32.lt_u (local.get 0) (i32.const 5))
      (then (call_indirect (type $t) (i32.add (local.get 0) (i32.const 1)) (i32.const 0)))
      (else (global.get $"g{name}"))))
  (func (export "_start")
    (drop (call $"{name}" (i32.const 0)))
    (drop (call $"o{name}" (i32.const 3) (i32.const 0) (i32.const 16) (i32.const {length}) (i32.const 1) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 1024)))
    (drop (call $"w{name}" (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
    (if (i32.gt_u (global.get $"g{name}") (i32.const 1)) (then unreachable))))"#
    );
    let source = sandbox.write(&format!("{HOSTILE}.wat"), &text);
    let mut parser = wat::Parser::new();
    parser.generate_dwarf(wat::GenerateDwarf::Full);
    let module = parser.parse_str(Some(&source), &text).unwrap();
    sandbox.write(&format!("{HOSTILE}.wasm"), module);
}

/// Runs the command with these words. FILE stands for the recording, AT for a place, and NAME for
/// the name.
fn ask(sandbox: &Sandbox, words: &str, place: &str) -> Ran {
    let words = words.split_whitespace().map(|word| match word {
        "FILE" => format!("{HOSTILE}.aft"),
        "OTHER" => format!("{HOSTILE}.other.aft"),
        "WASM" => format!("{HOSTILE}.wasm"),
        "AT" => place.to_owned(),
        "NAME" => HOSTILE.to_owned(),
        word => word.to_owned(),
    });
    ran(&mut sandbox.command(words))
}

/// All questions with all their text formats; `FORMATS` stands for each of the formats.
const QUESTIONS: &[(&str, &[&str])] = &[
    ("info FILE", &["text", "json"]),
    ("info --sizes FILE", &["text", "json"]),
    ("verify FILE", &["text", "json"]),
    ("profile FILE --by function", &["text", "json", "csv"]),
    ("profile FILE --by line", &["text", "json", "csv"]),
    ("profile FILE --by block", &["text", "json", "csv"]),
    ("profile FILE --by edge", &["text", "json", "csv"]),
    ("profile FILE --by instruction", &["text", "json", "csv"]),
    ("profile FILE --annotate", &["text"]),
    ("profile FILE", &["lcov", "callgrind", "dot", "html"]),
    ("profile FILE FILE --compare FILE", &["text", "json", "csv"]),
    (
        "profile FILE --compare FILE --by line",
        &["text", "json", "csv"],
    ),
    ("trace FILE", &["text", "json"]),
    ("trace FILE --level path", &["text", "json"]),
    ("trace FILE --level call", &["text", "json"]),
    ("trace FILE --level statement", &["text", "json"]),
    ("trace FILE --level memory", &["text", "json"]),
    ("paths FILE", &["text", "json"]),
    ("paths FILE --function NAME", &["text", "json"]),
    ("calls FILE", &["text", "json", "csv"]),
    ("calls FILE --function NAME", &["text", "json", "csv"]),
    ("calls FILE --function NAME --call 2", &["text", "json"]),
    ("values FILE --at AT", &["text", "json"]),
    ("values FILE --loads", &["text", "json"]),
    ("values FILE --loads --each", &["text", "json"]),
    ("deps FILE --at AT#2", &["text", "json"]),
    ("deps FILE --at AT#2 --depth 9", &["text", "json"]),
    ("deps FILE --at AT#2 --forward", &["text", "json"]),
    (
        "slice FILE --at AT#2",
        &["text", "json", "csv", "html", "dot"],
    ),
    (
        "slice FILE --at AT#2 --by statement",
        &["text", "json", "csv", "dot"],
    ),
    ("slice FILE --at AT#2 --forward", &["text", "json"]),
    ("slice FILE --at AT#2 --annotate", &["text"]),
    ("why FILE --at AT#2", &["text", "json", "dot"]),
    ("why FILE --trap", &["text", "json", "dot"]),
    ("why FILE --stdout 0", &["text", "json", "dot"]),
    ("why-not FILE --at AT --after 12", &["text", "json"]),
    ("state FILE --at AT#2 --globals", &["text", "json"]),
    ("state FILE --at end", &["text", "json"]),
    ("memory FILE --address 512..520", &["text", "json"]),
    ("memory FILE --address 512..520 --all", &["text", "json"]),
    ("addresses FILE --all", &["text", "json"]),
    ("addresses FILE --at AT", &["text", "json"]),
    ("addresses FILE --at AT --stats", &["text", "json"]),
    (
        "simulate FILE --cache 1k,2,64 --branch-predictor gshare --by line",
        &["text", "json", "csv"],
    ),
    ("simulate FILE --by function", &["text", "json", "csv"]),
    ("simulate FILE --by instruction", &["text", "json", "csv"]),
    ("simulate FILE --at AT", &["text", "json", "csv"]),
    ("simulate FILE --worst", &["text", "json"]),
    ("redundancy FILE", &["text", "json", "csv"]),
    ("redundancy FILE --expressions", &["text", "json", "csv"]),
    (
        "dataflow FILE --fact available:AT",
        &["text", "json", "csv"],
    ),
    ("match FILE FILE", &["text", "json", "csv"]),
    ("diff FILE FILE", &["text", "json"]),
    ("diff --pass FILE --fail OTHER", &["text", "json", "csv"]),
    (
        "export FILE",
        &[
            "perfetto",
            "firefox",
            "collapsed",
            "speedscope",
            "callgrind",
            "dot",
        ],
    ),
    ("cfg FILE --function NAME", &["text", "json", "dot"]),
    ("cfg WASM --function NAME", &["text", "json", "dot"]),
];

/// Collects the names of functions, files and programs in a document.
fn names(value: &Value, found: &mut Vec<String>) {
    const KEYS: [&str; 6] = ["name", "raw_name", "file", "function", "program", "path"];
    match value {
        Value::Array(all) => all.iter().for_each(|one| names(one, found)),
        Value::Object(all) => all.iter().for_each(|(key, one)| match one {
            Value::String(name) if KEYS.contains(&key.as_str()) => found.push(name.clone()),
            one => names(one, found),
        }),
        _ => {}
    }
}

/// Parses the cells of comma-separated values (RFC 4180).
fn cells(csv: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut quoted) = (vec![], vec![], String::new(), false);
    let mut characters = csv.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\r' if !quoted => {}
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    rows
}

/// Returns the fault in an answer, if there is one.
fn complaint(format: &str, ran: &Ran) -> Option<String> {
    if ran.code != Some(0) || ran.stderr.contains("panicked") {
        return Some(format!("{ran:?}"));
    }
    let rows = ran.stdout.replace("\r\n", "\n");
    let rows = if format == "csv" { &rows } else { &ran.stdout };
    for text in [rows, &ran.stderr] {
        let hidden = |c: &char| is_hidden(*c) && !matches!(c, '\n' | '\t');
        if let Some(c) = text.chars().find(hidden) {
            return Some(format!("{c:?} in {text}"));
        }
        if let Some(line) = text
            .lines()
            .find(|line| line.trim_start().starts_with("SPOOF"))
        {
            return Some(format!("the line {line}"));
        }
    }
    if ["json", "perfetto", "firefox"].contains(&format) {
        let documents = match serde_json::from_str(&ran.stdout) {
            Ok(document) => vec![document],
            Err(_) => {
                let lines = ran.stdout.lines().map(serde_json::from_str::<Value>);
                match lines.collect() {
                    Ok(documents) => documents,
                    Err(error) => return Some(format!("{error}: {}", ran.stdout)),
                }
            }
        };
        let mut found = Vec::new();
        documents.iter().for_each(|one| names(one, &mut found));
        let mut named = found.iter().filter(|text| text.contains("SPOOF"));
        return named
            .find(|text| !text.contains(HOSTILE))
            .map(|text| format!("not as it is called: {text:?}"));
    }
    if format == "csv" {
        let rows = cells(&ran.stdout);
        let columns = rows.first().map_or(0, Vec::len);
        for row in &rows {
            if row.len() != columns {
                return Some(format!("{} cells, not {columns}: {row:?}", row.len()));
            }
            let formula = |cell: &&String| {
                cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err()
            };
            if let Some(cell) = row.iter().find(formula) {
                return Some(format!("a formula: {cell}"));
            }
        }
    }
    None
}

#[test]
fn no_hidden_character_leaves_in_any_format() {
    let sandbox = Sandbox::new();
    program(&sandbox);
    let mut record = sandbox.command(["record", "--dir", &format!(".::{HOSTILE}")]);
    record.args([
        "--env",
        &format!("K={HOSTILE}"),
        "-o",
        &format!("{HOSTILE}.aft"),
    ]);
    record.args([&format!("{HOSTILE}.wasm"), HOSTILE]);
    let recorded = ran(&mut record);
    assert_eq!(recorded.code, Some(134), "{recorded:?}");
    assert!(
        recorded.stdout.contains("SPOOF"),
        "the guest's own output is its own"
    );
    let quiet = |c: char| is_hidden(c) && c != '\n';
    assert!(!recorded.stderr.contains(quiet), "{recorded:?}");
    let built = ask(&sandbox, "build --lens full FILE", "");
    assert_eq!(built.code, Some(0), "{built:?}");
    assert!(!built.stderr.contains(quiet), "{built:?}");

    // Find the load in the function with this name, and check the names in JSON.
    let profile = ask(&sandbox, "profile FILE --by instruction --format json", "").stdout;
    let profile: Value = serde_json::from_str(&profile).unwrap();
    let rows = profile["rows"].as_array().unwrap();
    let load = rows.iter().find(|row| {
        row["text"]
            .as_str()
            .is_some_and(|text| text.starts_with("i32.load8_u"))
    });
    let load = load.unwrap();
    assert_eq!(load["function"]["name"], HOSTILE);
    let file = load["source"]["file"].as_str().unwrap();
    assert_eq!(
        Path::new(file).file_name().unwrap().to_str(),
        Some(&*format!("{HOSTILE}.wat"))
    );
    let place = format!("@{:#x}", load["offset"].as_u64().unwrap());

    let [file, other] = [".aft", ".other.aft"].map(|end| sandbox.path(&format!("{HOSTILE}{end}")));
    fs::copy(file, other).unwrap();

    let (mut wrong, mut named) = (Vec::new(), BTreeSet::new());
    for (question, formats) in QUESTIONS {
        for format in *formats {
            let question = question
                .replace(":AT", &format!(":{place}"))
                .replace("AT#", &format!("{place}#"));
            let mut words = format!("{question} --format {format}");
            if question.starts_with("profile FILE --annotate")
                || question.contains("slice FILE --at") && question.contains("--annotate")
            {
                words = question.clone();
            }
            let answer = ask(&sandbox, &words, &place);
            let what = complaint(format, &answer);
            if let Some(what) = what {
                wrong.push(format!("{words}\n  {what}"));
            }
            if answer.stdout.contains("SPOOF") {
                named.insert(*format);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Otherwise, nothing was tested.
    for format in [
        "text",
        "json",
        "csv",
        "lcov",
        "callgrind",
        "dot",
        "html",
        "collapsed",
    ] {
        assert!(
            named.contains(format),
            "no {format} names anything: {named:?}"
        );
    }
    // With color, only our own control sequences are present.
    for words in [
        "profile FILE --color always",
        "state FILE --at end --color always",
    ] {
        let mut answer = ask(&sandbox, words, "");
        for color in ["\x1b[0m", "\x1b[1m", "\x1b[1;31m", "\x1b[33m", "\x1b[2m"] {
            answer.stdout = answer.stdout.replace(color, "");
        }
        assert_eq!(complaint("text", &answer), None, "{words}");
    }
    // Refusals also contain no hidden characters.
    for words in [
        "info NAME",
        "cfg WASM --function NAME#",
        "trace FILE --from NAME#99",
        "values FILE --at NAME:7",
        "record NAME",
    ] {
        let mut refused = ask(&sandbox, words, "");
        assert!(!matches!(refused.code, Some(0) | None), "{refused:?}");
        refused.code = Some(0);
        assert_eq!(complaint("text", &refused), None, "{words}");
    }
    assert!(fs::exists(sandbox.path(&format!("{HOSTILE}.aft"))).unwrap());
}
