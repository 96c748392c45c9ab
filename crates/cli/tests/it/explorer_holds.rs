//! The explorer's page gets the same answers as the command line, byte for byte: each answer names
//! the command with the same answer, and that command is run.
//!
//! Answers that only the page gets (source with counts, output, executions, the name of a moment)
//! are compared with related answers of other commands.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use afterimage_testkit::modules::SplitMix64;
use afterimage_testkit::tools;
use serde_json::Value;

use crate::common::Sandbox;
use crate::common::generated::seeds;
use crate::common::memory_programs::memory_recording;

/// `afterimage explore`, which ends when this is dropped.
pub struct Page {
    child: Child,
    host: String,
    path: String,
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Encodes a text for an address.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

impl Page {
    pub fn of(sandbox: &Sandbox, file: &str) -> Self {
        let mut command = sandbox.command(["explore", "--no-open", file]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut url).unwrap();
        let rest = url.trim().strip_prefix("http://").unwrap();
        let (host, path) = rest.split_at(rest.find('/').unwrap());
        Self {
            child,
            host: host.to_owned(),
            path: path.to_owned(),
        }
    }

    /// Asks a question. Returns whether there is an answer, the answer, and the equivalent command.
    pub fn ask(&self, question: &str, options: &[(&str, &str)]) -> (bool, String, String) {
        let options = options.iter().map(|(name, value)| match *value {
            "" => (*name).to_owned(),
            value => format!("{name}={}", encoded(value)),
        });
        let options = Vec::from_iter(options).join("&");
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let (path, host) = (&self.path, &self.host);
        let request = format!(
            "GET {path}api/{question}?{options} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let command = head.split("X-Afterimage-Command: ").nth(1);
        let command = command.and_then(|rest| rest.split("\r\n").next());
        let command = command.unwrap_or_default().replace("%25", "%");
        assert!(head.starts_with("HTTP/1.1 200"), "{options}: {head}");
        let well = !body.starts_with(r#"{"error":"#);
        (well, body.to_owned(), command)
    }

    pub fn doc(&self, question: &str, options: &[(&str, &str)]) -> Value {
        let (well, body, _) = self.ask(question, options);
        assert!(well, "{question} {options:?}: {body}");
        serde_json::from_str(body.lines().next().unwrap()).unwrap()
    }

    /// Checks that the command line gives the same answer. Returns whether there was an answer.
    #[track_caller]
    fn agrees(&self, sandbox: &Sandbox, question: &str, options: &[(&str, &str)]) -> bool {
        let (well, body, command) = self.ask(question, options);
        let words = command.strip_prefix("afterimage ").unwrap();
        let format = if question == "export" {
            ""
        } else {
            "--format json"
        };
        // The page asks for a list of this length.
        let limit = match question {
            "trace" if !words.contains("--limit") => "--limit 1000",
            _ => "",
        };
        let ran = sandbox.shell(&format!("\"$AFTERIMAGE\" {words} {format} {limit}"));
        if well {
            assert_eq!(ran.code, Some(0), "{command}: {}", ran.stderr);
            assert!(body == ran.stdout, "{command}:\n{body}\n{}", ran.stdout);
        } else {
            assert_ne!(ran.code, Some(0), "{command}: {body}");
            let told: Value = serde_json::from_str(&body).unwrap();
            let why = told["error"].as_str().unwrap();
            assert!(ran.stderr.contains(why), "{command}: {why}\n{}", ran.stderr);
        }
        well
    }
}

/// The number of random moments of each recording.
const MOMENTS: u64 = 12;

/// Asks all questions of the page, at random moments.
fn compare(sandbox: &Sandbox, file: &str) -> usize {
    let page = Page::of(sandbox, file);
    let mut numbers = SplitMix64(7);
    let mut answered = 0;
    let mut same = |question: &str, options: &[(&str, &str)]| {
        answered += usize::from(page.agrees(sandbox, question, options));
    };
    for (question, options) in [
        ("profile", &[][..]),
        ("profile", &[("by", "line")]),
        (
            "profile",
            &[("by", "edge"), ("sort", "count"), ("limit", "20")],
        ),
        ("profile", &[("sort", "instructions"), ("code", "mine")]),
        ("calls", &[]),
        ("paths", &[]),
        ("export", &[("format", "collapsed"), ("code", "mine")]),
        (
            "export",
            &[
                ("format", "perfetto"),
                ("from", "10%"),
                ("to", "60%"),
                ("min", "2"),
            ],
        ),
        (
            "export",
            &[("format", "perfetto"), ("code", "mine"), ("min", "2")],
        ),
        ("paths", &[("hot", ""), ("code", "mine"), ("limit", "9")]),
        ("output", &[]),
        ("output", &[("limit", "5")]),
        ("state", &[("at", "end")]),
        ("info", &[]),
    ] {
        same(question, options);
    }
    let rows = page.doc("profile", &[("by", "instruction")]);
    let rows = rows["rows"].as_array().unwrap().iter();
    let executed = rows.filter(|row| row["count"].as_u64() > Some(0));
    let executed = Vec::from_iter(executed.map(|row| {
        (
            row["offset"].as_u64().unwrap(),
            row["count"].as_u64().unwrap(),
            row["function"]["index"].as_u64().unwrap(),
        )
    }));
    let length = page.doc("moment", &[("at", "end")])["length"]
        .as_u64()
        .unwrap();
    for _ in 0..seeds(MOMENTS) {
        let time = format!("t={}", 1 + numbers.next() % length);
        same("state", &[("at", &time), ("depth", "24")]);
        same(
            "trace",
            &[("level", "line"), ("from", &time), ("limit", "4")],
        );
        same(
            "trace",
            &[
                ("level", "line"),
                ("from", &time),
                ("reverse", ""),
                ("over", ""),
                ("limit", "4"),
            ],
        );
        same(
            "trace",
            &[("level", "statement"), ("from", &time), ("limit", "4")],
        );
        same("memory", &[("address", "0x400..0x43f"), ("at", &time)]);
        let (offset, count, function) = executed[(numbers.next() % executed.len() as u64) as usize];
        let at = format!("@{offset:#x}#{}", 1 + numbers.next() % count);
        let function = format!("func[{function}]");
        same("why", &[("at", &at), ("steps", "50")]);
        same("deps", &[("at", &at)]);
        same("deps", &[("at", &at), ("forward", ""), ("limit", "5")]);
        same("state", &[("at", &at)]);
        same(
            "values",
            &[("at", &format!("@{offset:#x}")), ("limit", "3")],
        );
        same("cfg", &[("function", &function)]);
        same("paths", &[("function", &function), ("limit", "5")]);
        same("calls", &[("function", &function), ("call", "last")]);
        executions(&page, sandbox, file, (&format!("@{offset:#x}"), count));
        moment(&page, &at);
    }
    lines(&page, &mut numbers);
    answered
}

/// Checks that the executions of a place are those that `trace` reports.
fn executions(page: &Page, sandbox: &Sandbox, file: &str, (place, count): (&str, u64)) {
    let found = page.doc("executions", &[("at", place), ("limit", "5")]);
    assert_eq!(found["count"], count, "{place}");
    let all = found["executions"].as_array().unwrap();
    assert_eq!(all.len() as u64, count.min(5), "{place}");
    for one in all {
        let (number, time) = (&one["number"], one["t"].as_u64().unwrap());
        let ran = sandbox.ok(&format!(
            "trace --from {place}#{number} --limit 1 --format json {file}"
        ));
        let head: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
        assert_eq!(head["first"], time, "{place}#{number}");
        // This is the number of executions up to that time.
        let by = page.doc(
            "executions",
            &[("at", place), ("limit", "1"), ("by", &format!("t={time}"))],
        );
        assert_eq!(&by["by"], number, "{place} by t={time}");
        let to = page.doc(
            "executions",
            &[("at", place), ("to", &format!("t={time}")), ("limit", "1")],
        );
        assert_eq!(&to["within"], number, "{place} to t={time}");
    }
}

/// Checks that the name of a moment leads to the same moment.
fn moment(page: &Page, at: &str) {
    let told = page.doc("moment", &[("at", at)]);
    let name = told["at"].as_str().unwrap();
    let same = |other: &str| {
        let state = |at: &str| page.doc("state", &[("at", at), ("depth", "1")]);
        assert_eq!(state(at), state(other), "{at} is called {other}");
    };
    same(name);
    if told["arrives"] == true {
        same(&format!(
            "{}#{}",
            told["line"].as_str().unwrap(),
            told["arrival"]
        ));
    }
    let (time, offset) = (told["t"].to_string(), told["offset"].to_string());
    let again = page.doc("moment", &[("at", &time), ("offset", &offset)]);
    assert_eq!(again, told);
}

/// Checks that the counts beside source are those of the profile, and that counts of ranges are the
/// arrivals in them.
fn lines(page: &Page, numbers: &mut SplitMix64) {
    let rows = page.doc("profile", &[("by", "line")]);
    let rows = rows["rows"].as_array().unwrap();
    let files = page.doc("files", &[]);
    let length = page.doc("moment", &[("at", "end")])["length"]
        .as_u64()
        .unwrap();
    for file in files["files"].as_array().unwrap().iter().take(4) {
        let path = file["file"].as_str().unwrap();
        let expected = rows.iter().filter(|row| row["source"]["file"] == path);
        let expected = Vec::from_iter(expected.map(|row| {
            (
                row["source"]["line"].clone(),
                row["count"].clone(),
                row["instructions"].clone(),
            )
        }));
        assert_eq!(file["lines"], expected.len(), "{path}");
        let counted = |options: &[(&str, &str)]| {
            let source = page.doc("source", options);
            let lines = source["lines"].as_array().unwrap().iter();
            let lines = lines.filter(|line| !line["count"].is_null());
            Vec::from_iter(lines.map(|line| {
                (
                    line["line"].clone(),
                    line["count"].clone(),
                    line["instructions"].clone(),
                )
            }))
        };
        assert_eq!(counted(&[("file", path)]), expected, "{path}");
        // The counts of two parts of the run must add up to the whole.
        let middle = 1 + numbers.next() % (length.max(2) - 1);
        let (to, from) = (format!("t={middle}"), format!("t={}", middle + 1));
        let (first, second) = (
            counted(&[("file", path), ("to", &to)]),
            counted(&[("file", path), ("from", &from)]),
        );
        for ((one, other), all) in first.iter().zip(&second).zip(&expected) {
            let sum = one.1.as_u64().unwrap() + other.1.as_u64().unwrap();
            assert_eq!(sum, all.1, "{path}:{} at t={middle}", all.0);
        }
    }
}

const RUST: &str = r#"use std::collections::BTreeMap;

fn digits(mut n: u32) -> u32 {
    let mut sum = 0;
    while n > 0 {
        sum += n % 10;
        n /= 10;
    }
    sum
}

fn main() {
    let mut seen = BTreeMap::new();
    for n in 0..60u32 {
        *seen.entry(digits(n * 37)).or_insert(0) += n;
    }
    for (digits, sum) in &seen {
        println!("{digits}: {sum}");
    }
}
"#;

const C: &str = "\
struct pair { int a, b; };
static struct pair all[8];
static int step(struct pair *p, int i) {
    if (i % 3 == 0)
        p->a += i;
    else
        p->b -= p->a;
    return p->a - p->b;
}
int sum(void) {
    int total = 0;
    for (int i = 0; i < 40; i++)
        total += step(&all[i & 7], i);
    return total;
}
";

#[test]
fn the_page_is_told_what_the_command_line_says_of_a_rust_program() {
    let sandbox = Sandbox::new();
    sandbox.rust("digits", RUST);
    sandbox.ok("record -o run.aft digits.wasm");
    assert!(compare(&sandbox, "run.aft") > 100);
}

#[test]
fn the_page_is_told_what_the_command_line_says_of_a_c_program() {
    let Some(clang) = tools::clang() else { return };
    let sandbox = Sandbox::new();
    let source = sandbox.write("pairs.c", C);
    let out = sandbox.path("pairs.wasm");
    clang.module(
        &["-g", "-O0"],
        &[&source],
        &["-Wl,--no-entry", "-Wl,--export=sum"],
        &out,
    );
    sandbox.ok("record --invoke sum -o run.aft pairs.wasm");
    assert!(compare(&sandbox, "run.aft") > 100);
}

#[test]
fn the_page_is_told_what_the_command_line_says_without_debug_information() {
    assert!(compare(&memory_recording(5), "run.aft") > 80);
}

#[test]
fn output_is_what_was_printed_and_each_byte_of_it_has_its_moment() {
    let sandbox = Sandbox::new();
    sandbox.rust("digits", RUST);
    let printed = sandbox.ok("record -o run.aft digits.wasm").stdout;
    let page = Page::of(&sandbox, "run.aft");
    let told = page.doc("output", &[]);
    let mut bytes = Vec::new();
    for write in told["writes"].as_array().unwrap() {
        assert_eq!(write["stream"], "stdout");
        assert_eq!(write["first"], bytes.len());
        let hex = write["bytes"].as_str().unwrap();
        let digits = (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
        bytes.extend(digits);
        // The block at that time ends with the host call.
        let last = format!(
            "trace --from t={} --limit 1 --format json run.aft",
            write["t"]
        );
        let row = sandbox.ok(&last).stdout.lines().nth(1).unwrap().to_owned();
        assert!(row.contains("fd_write"), "{row}");
    }
    assert_eq!(String::from_utf8(bytes).unwrap(), printed);
    assert_eq!(told["totals"]["stdout"], printed.len());
    assert_eq!(told["complete"], true);
    // The answer did not need values. With values, it is the same.
    let lenses = |sandbox: &Sandbox| {
        let info = sandbox.ok("info run.aft --format json").stdout;
        serde_json::from_str::<Value>(&info).unwrap()["lenses"].to_string()
    };
    assert!(!lenses(&sandbox).contains("full"), "{}", lenses(&sandbox));
    sandbox.ok("build --lens full run.aft");
    assert!(lenses(&sandbox).contains("full"), "{}", lenses(&sandbox));
    let page = Page::of(&sandbox, "run.aft");
    assert_eq!(page.doc("output", &[]), told);
}

#[test]
fn a_report_is_one_page_with_all_that_was_asked_for() {
    let sandbox = Sandbox::new();
    sandbox.rust("digits", RUST);
    sandbox.ok("record -o run.aft digits.wasm");
    sandbox.write("run.aft.notes.md", "## <b>Mine</b>\nat: `t=5`\n\nA & B.\n");
    sandbox.ok("slice --at digits.rs:6#9 --save why run.aft");
    sandbox.ok("report run.aft -o page.html --why stdout:0 --why digits.rs:6#9 --slice why");
    let page = String::from_utf8(sandbox.read("page.html")).unwrap();
    for part in [
        "default-src 'none'",
        "The run returned",
        "Why stdout:0",
        "Why digits.rs:6#9",
        "Slice why",
        "Flame graph",
        "With library code",
        "&lt;b&gt;Mine&lt;/b&gt;",
        "A &amp; B.",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(
        !page.contains("<script") && !page.contains("http:") && !page.contains("src="),
        "something is loaded or run"
    );
    assert!(
        !page.contains("\\n</td>"),
        "a line of source ends with its newline"
    );
    sandbox.refused(
        "report run.aft --why trap",
        125,
        &["explain its output instead, such as --why stdout:0"],
    );
    // Each line of the user's own file has the count of the profile.
    let told = sandbox.ok("profile --by line --format json run.aft").stdout;
    let told: Value = serde_json::from_str(&told).unwrap();
    let rows = told["rows"].as_array().unwrap().iter();
    let own = rows.filter(|row| {
        row["source"]["file"]
            .as_str()
            .unwrap()
            .ends_with("digits.rs")
    });
    let mut compared = 0;
    for row in own {
        let (count, line) = (row["count"].as_u64().unwrap(), &row["source"]["line"]);
        // The coverage page has the same cells.
        let count = afterimage_present::page::count(count);
        let cells = format!("<td class=\"n\">{line}</td><td class=\"n c\">{count}</td>");
        assert!(page.contains(&cells), "{cells}");
        compared += 1;
    }
    assert!(compared > 8, "{compared}");
    sandbox.refused(
        "report run.aft --why digits.rs:6#999",
        125,
        &["digits.rs:6"],
    );
}

#[test]
fn a_moment_to_begin_with_is_in_the_address() {
    let sandbox = memory_recording(5);
    let nowhere = "explore --no-open --at nope.c:1 run.aft";
    sandbox.refused(nowhere, 125, &["run.aft: --at nope.c:1: ", "nope.c"]);
    let mut command = sandbox.command(["explore", "--no-open", "--at", "f0#2", "run.aft"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut url).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(url.trim().ends_with("/#at=f0%232"), "{url}");
}
