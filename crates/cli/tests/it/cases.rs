//! Text in, text out: `cases/*.wat`.
//!
//! A case is a module, followed by comments with commands and their expected output:
//!
//! ```text
//! ;; $ afterimage record FILE        a command; FILE is the module, and `wat FILE` prints a module as text
//! ;; | a line of its standard output
//! ;; ! a line of its standard error
//! ;; = the exit code, unless 0
//! ```
//!
//! Runs the commands in order, in one folder. `BLESS=1` writes their current output into the cases.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::common::{Ran, Sandbox};

#[test]
fn cases_say_what_they_must() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    for path in paths {
        let case = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let now = answered(name, &case);
        if now == case {
            continue;
        }
        if bless {
            fs::write(&path, now).unwrap();
        } else {
            wrong.push(format!("{name}:\n{}", difference(&case, &now)));
        }
    }
    assert!(
        wrong.is_empty(),
        "BLESS=1 accepts what the cases say now\n{}",
        wrong.join("\n")
    );
}

/// Returns the case with the current output of its commands.
fn answered(name: &str, case: &str) -> String {
    let sandbox = Sandbox::new();
    let end = case.find("\n;; $ ").expect("a case has commands") + 1;
    let (module, commands) = case.split_at(end);
    sandbox.write(name, module);
    let mut out = module.to_owned();
    for line in commands.lines() {
        let answer = |line: &str| {
            [";; | ", ";; ! ", ";; = ", ";; |", ";; !"]
                .iter()
                .any(|mark| line.starts_with(mark))
        };
        if answer(line) {
            continue;
        }
        out.push_str(line);
        out.push('\n');
        let Some(command) = line.strip_prefix(";; $ ") else {
            continue;
        };
        let ran = run(&sandbox, &command.replace("FILE", name));
        assert!(
            !ran.stderr.contains("panicked"),
            "{name}: {command}\n{}",
            ran.stderr
        );
        for (mark, text) in [("|", &ran.stdout), ("!", &ran.stderr)] {
            for line in steady(text).lines() {
                writeln!(out, "{}", format!(";; {mark} {line}").trim_end()).unwrap();
            }
        }
        if ran.code != Some(0) {
            writeln!(
                out,
                ";; = {}",
                ran.code
                    .map_or("killed".to_owned(), |code| code.to_string())
            )
            .unwrap();
        }
    }
    out
}

fn run(sandbox: &Sandbox, command: &str) -> Ran {
    match command.split_once(' ') {
        Some(("afterimage", words)) => {
            let ran = sandbox.run(words);
            let mut words = words.split_whitespace();
            if words.next() == Some("instrument")
                && let Some(from) = words.next()
                && words.next() == Some("-o")
                && let Some(to) = words.next()
                && ran.code == Some(0)
            {
                let binary = wat::parse_file(sandbox.path(from)).unwrap();
                sandbox.write("original.wasm", binary);
                crate::common::valid(sandbox, to, "original.wasm");
            }
            ran
        }
        Some(("wat", file)) => {
            let stdout = wasmprinter::print_file(sandbox.path(file)).unwrap();
            Ran {
                code: Some(0),
                stdout,
                stderr: String::new(),
            }
        }
        _ => panic!("unknown command {command}"),
    }
}

/// Removes the parts that differ from run to run: times, and sizes, which depend on how well a time
/// compresses.
fn steady(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut line = line.to_owned();
        for mark in [
            "\"recorded_unix\":",
            "\"length\":",
            "\"stored_bytes\":",
            "\"bytes\":",
            "size      ",
            "sound: ",
            // The distance between these parts depends on timing.
            "the path of the run, in ",
            ".aft (",
        ] {
            let mut from = 0;
            while let Some(at) = line[from..].find(mark) {
                from += at + mark.len();
                let rest = &line.as_bytes()[from..];
                let is_digit = |at: usize| rest.get(at).is_some_and(u8::is_ascii_digit);
                let is_in = |at: usize| match rest[at] {
                    b',' => is_digit(at + 1),
                    byte => byte == b'.' || byte.is_ascii_digit(),
                };
                let number = (0..rest.len()).find(|&at| !is_in(at));
                let number = number.unwrap_or(rest.len());
                line.replace_range(from..from + number, "N");
            }
        }
        line = line.replace("N bytes", "N").replace("N kB", "N");
        if line.starts_with("recorded  ") {
            line = "recorded  WHEN".to_owned();
        }
        // The number of snapshots depends on the speed of the machine.
        if let Some(at) = line.find(" of the run, with its path, in ") {
            line = format!("afterimage: SNAPSHOTS{}", &line[at..]);
            line.truncate(line.rfind(" in ").unwrap_or(line.len()));
        }
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// Returns the differing lines, with the expected lines.
fn difference(wanted: &str, found: &str) -> String {
    let (wanted, found): (Vec<_>, Vec<_>) = (wanted.lines().collect(), found.lines().collect());
    let same = wanted
        .iter()
        .zip(&found)
        .take_while(|(a, b)| a == b)
        .count();
    let tail = wanted[same..]
        .iter()
        .rev()
        .zip(found[same..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let mut out = String::new();
    for line in &wanted[same..wanted.len() - tail] {
        writeln!(out, "  - {line}").unwrap();
    }
    for line in &found[same..found.len() - tail] {
        writeln!(out, "  + {line}").unwrap();
    }
    out
}
