//! `afterimage mcp` answers with the documents that the command line writes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use afterimage_testkit::tools::{Clang, clang};
use serde_json::{Value, json};

use crate::common::Sandbox;

const SOURCE: &str = r#"
struct piece { const char *text; int length; };
__attribute__((import_module("wasi_snapshot_preview1"), import_name("fd_write")))
int fd_write(int fd, const struct piece *pieces, int count, int *written);
static char line[4];
static int total;
int charge(int amount, int times) {
    int fee = 0;
    for (int i = 0; i < times; i++) {
        if (amount > 10)
            fee += i;
        else
            fee += 1;
    }
    total += fee;
    return fee;
}
int never(void) { return total; }
void _start(void) {
    for (int i = 1; i < 5; i++)
        charge(i * 4, i + 1);
    line[0] = '0' + total / 10;
    line[1] = '0' + total % 10;
    line[2] = '\n';
    struct piece piece = { line, 3 };
    int written;
    fd_write(1, &piece, 1, &written);
    if (total > 1000)
        never();
}
"#;

/// Returns the results of some calls to tools.
fn answers(sandbox: &Sandbox, calls: &[(&str, Value)]) -> Vec<Value> {
    let mut server = sandbox.command(["mcp"]);
    let server = server.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = server.spawn().unwrap();
    let mut to = server.stdin.take().unwrap();
    let first = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": "2025-06-18" } });
    writeln!(to, "{first}").unwrap();
    for (number, (tool, arguments)) in (1..).zip(calls) {
        let mut arguments = arguments.clone();
        arguments["recording"] = json!("run.aft");
        let parameters = json!({ "name": tool, "arguments": arguments });
        let call =
            json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": parameters });
        writeln!(to, "{call}").unwrap();
    }
    drop(to);
    let out = server.wait_with_output().unwrap();
    assert!(out.status.success());
    let text = String::from_utf8(out.stdout).unwrap();
    let all = text.lines().skip(1);
    let all = all.map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.map(|mut answer| answer["result"].take()).collect()
}

#[test]
fn each_tool_has_the_document_of_its_command() {
    let Some(clang) = clang() else { return };
    let sandbox = Sandbox::new();
    let source = sandbox.write("bank.c", SOURCE);
    let module = sandbox.path("bank.wasm");
    clang.module(&["-g", "-O0"], &[&source], &[], &module);
    sandbox.ok("record -o run.aft bank.wasm");
    let calls = [
        ("why", json!({ "stdout": "0" }), "why run.aft --stdout 0"),
        (
            "why",
            json!({ "at": "bank.c:15#3" }),
            "why run.aft --at bank.c:15#3",
        ),
        (
            "why",
            json!({ "at": "bank.c:15#3", "var": "fee" }),
            "why run.aft --at bank.c:15#3 --var fee",
        ),
        (
            "why_not",
            json!({ "at": "never" }),
            "why-not run.aft --at never",
        ),
        (
            "state",
            json!({ "at": "charge#2" }),
            "state run.aft --at charge#2",
        ),
        (
            "history",
            json!({ "at": "bank.c:15", "var": "fee" }),
            "values run.aft --at bank.c:15 --var fee",
        ),
        (
            "history",
            json!({ "at": "bank.c:15" }),
            "values run.aft --at bank.c:15",
        ),
        (
            "find",
            json!({ "at": "bank.c:15", "where": "fee > 3" }),
            "values run.aft --at bank.c:15 --where fee>3",
        ),
        (
            "slice",
            json!({ "at": "bank.c:15#3" }),
            "slice run.aft --at bank.c:15#3",
        ),
        (
            "call",
            json!({ "at": "charge#3" }),
            "calls run.aft --function charge --call 3 --lines",
        ),
        (
            "paths",
            json!({ "function": "charge" }),
            "paths run.aft --function charge",
        ),
        (
            "diff",
            json!({ "other": "run.aft" }),
            "diff run.aft run.aft",
        ),
    ];
    let asked = Vec::from_iter(
        calls
            .iter()
            .map(|(tool, arguments, _)| (*tool, arguments.clone())),
    );
    let results = answers(&sandbox, &asked);
    assert_eq!(results.len(), calls.len());
    for ((tool, _, command), result) in calls.iter().zip(results) {
        assert_eq!(result["isError"], false, "{command}: {result}");
        let mut report = result["structuredContent"]["report"].clone();
        let told = sandbox.ok(&format!("{command} --format json")).stdout;
        let mut lines = told
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut expected = lines.next().unwrap();
        match *tool {
            // The rows of the document are in one list. Library steps would be left out, but this
            // program has none.
            "why" => {
                expected["entries"] = lines.collect();
                report.as_object_mut().unwrap().remove("near").unwrap();
                report.as_object_mut().unwrap().remove("one_way").unwrap();
                report.as_object_mut().unwrap().remove("decisions").unwrap();
            }
            // Lines have a different order, and statements are only counted.
            "slice" => {
                expected["statements"] = json!([]);
                for document in [&mut report, &mut expected] {
                    let all = document["lines"].as_array_mut().unwrap();
                    all.sort_by_key(|line| line["source"]["line"].as_u64());
                }
            }
            // The document has the first blocks of each path trace, not its compacted form.
            "paths" => {
                for compacted in ["sequences", "dictionaries"] {
                    expected["totals"]
                        .as_object_mut()
                        .unwrap()
                        .remove(compacted);
                }
                for row in expected["rows"].as_array_mut().unwrap() {
                    row.as_object_mut().unwrap().remove("steps");
                    row["dictionary"] = json!([]);
                    row["timestamps"] = json!([]);
                }
            }
            "diff" => {
                // Both documents name the recording by the path with which it was opened.
                for document in [&mut report, &mut expected] {
                    document["a"]["file"] = Value::Null;
                    document["b"]["file"] = Value::Null;
                }
            }
            _ => {}
        }
        if *tool == "find" {
            expected["condition"] = report["condition"].clone();
            for one in expected["instances"].as_array_mut().unwrap() {
                assert_eq!(one["values"][0]["name"], "fee");
            }
        }
        assert_eq!(report, expected, "{command}");
    }
}

/// Returns the number of a line of source, from 1.
fn line_of(source: &str, text: &str) -> u64 {
    let line = source.lines().position(|line| line.trim() == text);
    line.unwrap() as u64 + 1
}

/// Records a C program, and asks why the first byte of its output is what it is.
fn why_first_byte(clang: &Clang, program: (&str, &str)) -> Value {
    why(clang, program, json!({ "stdout": 0, "digit": true }))
}

/// Records a C program, and asks `why`.
fn why(clang: &Clang, (name, source): (&str, &str), arguments: Value) -> Value {
    let sandbox = Sandbox::new();
    let file = sandbox.write(&format!("{name}.c"), source);
    let module = sandbox.path(&format!("{name}.wasm"));
    clang.module(&["-g", "-O0"], &[&file], &[], &module);
    sandbox.run(&format!("record -o run.aft {name}.wasm"));
    let answers = answers(&sandbox, &[("why", arguments)]);
    assert_eq!(answers.len(), 1);
    answers.into_iter().next().unwrap()
}

#[test]
fn branches_that_always_went_the_same_way_are_shown_after_the_nearest_lines() {
    let Some(clang) = clang() else { return };
    let (before, _) = SOURCE.split_once("int charge").unwrap();
    let source = format!(
        "{before}\
int sum(int limit) {{
    int sum = 0;
    if (limit > 100)
        total = 1;
    for (int i = 0; i < limit; i++) {{
        if (i == 2)
            total = 2;
        sum += i;
    }}
    while (total > limit)
        total = 0;
    return sum;
}}
void _start(void) {{
    line[0] = '0' + sum(4);
    struct piece piece = {{ line, 1 }};
    int written;
    fd_write(1, &piece, 1, &written);
}}
"
    );
    let line_of = |text| line_of(&source, text);
    let result = why_first_byte(&clang, ("sum", &source));
    let text = result["content"][0]["text"].as_str().unwrap();
    let one_way = result["structuredContent"]["report"]["one_way"].as_array();
    let lines = one_way
        .unwrap()
        .iter()
        .map(|one| one["line"].as_u64().unwrap());
    // No value depends on these branches. The branch on `i == 2` went both ways, and the value
    // depends on the loop.
    let expected = [
        line_of("if (limit > 100)"),
        line_of("while (total > limit)"),
    ];
    assert_eq!(Vec::from_iter(lines), expected, "{text}");
    // A range contains such a line, and goes on to the lines that the answer names before.
    let (_, after) = text.split_once("always went the same way:").unwrap();
    let (_, ranges) = after.split_once("sum.c:").unwrap();
    let ranges = ranges.lines().next().unwrap().split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        [first, last].map(|line| line.parse::<u64>().unwrap())
    });
    let ranges = Vec::from_iter(ranges);
    assert_eq!(ranges.len(), 2, "{text}");
    for (range, line) in ranges.iter().zip(expected) {
        assert!(range[0] <= line && line <= range[1], "{text}");
    }
}

#[test]
fn decisions_on_the_way_of_a_value_are_shown_and_suggested() {
    let Some(clang) = clang() else { return };
    let (before, _) = SOURCE.split_once("int charge").unwrap();
    let source = format!(
        "{before}\
int twice(int limit) {{
    if (limit > 3)
        return limit * 2;
    return 1;
}}
void _start(void) {{
    total = 2;
    if (total > 1)
        total = 4;
    if (total > 2)
        line[0] = '0' + twice(total);
    struct piece piece = {{ line, 1 }};
    int written;
    fd_write(1, &piece, 1, &written);
}}
"
    );
    let line_of = |text| line_of(&source, text);
    let result = why_first_byte(&clang, ("twice", &source));
    let text = result["content"][0]["text"].as_str().unwrap();
    let document = &result["structuredContent"];
    let decisions = document["report"]["decisions"].as_array().unwrap();
    let lines = decisions
        .iter()
        .map(|one| one["place"]["source"]["line"].as_u64().unwrap());
    // The digit was stored because of the first branch, and computed because of the second. The
    // branch on `total > 1` led to the constant at the end of the chain.
    let expected = [line_of("if (total > 2)"), line_of("if (limit > 3)")];
    assert_eq!(Vec::from_iter(lines), expected, "{text}");
    let (_, shown) = text.split_once("these branches caused it").unwrap();
    assert!(shown.contains("in twice, on 0  | if (limit > 3)"), "{text}");
    let asked = document["next"].as_array().unwrap().iter();
    let asked = asked.filter(|next| next["tool"] == "why");
    let asked = Vec::from_iter(asked.map(|next| next["arguments"]["at"].clone()));
    for one in decisions {
        assert!(asked.contains(&one["place"]["at"]), "{text}");
    }
}

/// Returns the nearest lines, and the text of the answer to `why` about a trap.
fn why_trap(clang: &Clang, program: (&str, &str)) -> (Vec<u64>, String) {
    let result = why(clang, program, json!({ "trap": true }));
    let text = result["content"][0]["text"].as_str().unwrap().to_owned();
    let near = result["structuredContent"]["report"]["near"].as_array();
    let lines = near.unwrap().iter();
    let lines = lines.map(|one| one["source"]["line"].as_u64().unwrap());
    (lines.collect(), text)
}

#[test]
fn a_branch_that_could_not_avoid_the_end_is_not_blamed() {
    let Some(clang) = clang() else { return };
    let source = "\
static int handler, level;
_Noreturn void die(int code) {
    if (handler + code > 1)
        __builtin_trap();
    level = 3;
    __builtin_trap();
}
int check(int size) {
    level = size * 2;
    if (level > 4)
        die(level);
    return level;
}
void _start(void) {
    for (int size = 0; size < 5; size++)
        check(size);
}
";
    let line_of = |text| line_of(source, text);
    let (near, text) = why_trap(&clang, ("die", source));
    // Both ways of the branch in `die` end the run, so the branch in `check` decided.
    let decided = format!("the branch at die.c:{} in check", line_of("if (level > 4)"));
    assert!(text.contains(&decided), "{text}");
    assert!(text.contains("level = size * 2;"), "{text}");
    // The end depends on that branch nevertheless.
    assert!(near.contains(&line_of("if (handler + code > 1)")), "{text}");
}

#[test]
fn the_nearest_lines_of_a_trap_begin_at_the_operator_that_trapped() {
    let Some(clang) = clang() else { return };
    let source = "\
struct list { int *first; int length; };
static int numbers[4];
static struct list lists[2];
static int which;
void set(struct list *list, int length) {
    list->first = numbers;
    list->length = length;
}
void _start(void) {
    set(&lists[0], 4);
    lists[1].first = (int *)-64;
    which = lists[0].length / 4;
    struct list *list = &lists[which];
    if (list->first)
        list->first[0] = 1;
    numbers[0] = 2;
}
";
    let line_of = |text| line_of(source, text);
    let (near, text) = why_trap(&clang, ("list", source));
    // The wild pointer was read from the wrong list. The run ended before its node did.
    for line in [
        "which = lists[0].length / 4;",
        "list->length = length;",
        "struct list *list = &lists[which];",
    ] {
        assert!(near.contains(&line_of(line)), "{line} {text}");
    }
}

const LONG: &str = r#"
struct piece { const char *text; int length; };
__attribute__((import_module("wasi_snapshot_preview1"), import_name("fd_write")))
int fd_write(int fd, const struct piece *pieces, int count, int *written);
static int total;
static unsigned seed = 7;
static char line[4];
int charge(int amount) {
    int fee = amount / 10;
    if (amount % 3 == 0)
        fee += 2;
    if (amount % 5 == 0)
        fee = fee * amount / (fee + 1);
    total += fee;
    return fee;
}
unsigned mix(unsigned from) {
    seed = (seed ^ from) * 1103515245u + (seed >> 3);
    return seed;
}
int work(int times) {
    int sum = 0;
    for (int i = 0; i < times; i++) {
        sum += i;
    }
    return sum;
}
void _start(void) {
    for (int i = 0; i < 130; i++) {
        charge(i);
        mix(i);
    }
    line[0] = '0' + work(30000) % 10;
    line[1] = '0' + seed % 10;
    line[2] = '0' + total % 10;
    struct piece piece = { line, 3 };
    int written;
    fd_write(1, &piece, 1, &written);
}
"#;

/// A server to which each call is sent after the answer to the previous one.
struct Server {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    id: u64,
}

impl Server {
    fn new(sandbox: &Sandbox) -> Self {
        let mut server = sandbox.command(["mcp"]);
        let server = server.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = server.spawn().unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        let id = 0;
        let mut server = Self {
            child,
            to,
            from,
            id,
        };
        server.send("initialize", &json!({ "protocolVersion": "2025-06-18" }));
        server
    }

    fn send(&mut self, method: &str, parameters: &Value) -> Value {
        self.id += 1;
        let message =
            json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": parameters });
        writeln!(self.to, "{message}").unwrap();
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        let mut answer: Value = serde_json::from_str(&line).unwrap();
        answer["result"].take()
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.send(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        )
    }

    /// Returns all parts of an answer, found by following `more`.
    fn parts(&mut self, tool: &str, arguments: &Value) -> Vec<Value> {
        let mut asked = vec![arguments.clone()];
        let mut parts = Vec::new();
        loop {
            let last = asked.last().unwrap();
            let result = self.call(tool, last);
            assert_eq!(result["isError"], false, "{tool} {last}: {result}");
            let part = result["structuredContent"].clone();
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(!text.contains("more lines of this report"), "{text}");
            let more = part["more"].clone();
            parts.push(part);
            if more.is_null() {
                return parts;
            }
            let arguments = more["arguments"].clone();
            assert!(!asked.contains(&arguments), "{tool} repeats {arguments}");
            asked.push(arguments);
            assert!(asked.len() < 200, "{tool} {asked:?} does not end");
        }
    }

    fn end(mut self) {
        drop(self.to);
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn the_parts_of_an_answer_are_the_whole_answer() {
    let Some(clang) = clang() else { return };
    let sandbox = Sandbox::new();
    let source = sandbox.write("long.c", LONG);
    let module = sandbox.path("long.wasm");
    clang.module(&["-g", "-O0"], &[&source], &[], &module);
    sandbox.ok("record -o run.aft long.wasm");
    let at = |text| format!("long.c:{}", line_of(LONG, text));
    let (added, mixed) = (
        at("total += fee;"),
        at("seed = (seed ^ from) * 1103515245u + (seed >> 3);"),
    );
    let mut server = Server::new(&sandbox);
    let fixed = format!("{added}#7");
    for (tool, arguments) in [
        ("overview", json!({})),
        ("source", json!({ "file": "long.c", "from": 1 })),
        ("source", json!({})),
        ("find", json!({ "name": "" })),
        ("find", json!({ "at": added, "where": "fee > 4" })),
        (
            "find",
            json!({ "at": added, "where": "fee > 4", "instances": "20..99" }),
        ),
        (
            "find",
            json!({ "at": added, "where": "fee > 4", "which": "first" }),
        ),
        (
            "find",
            json!({ "at": added, "where": "fee > 4", "which": "count" }),
        ),
        ("history", json!({ "at": added, "var": "fee" })),
        (
            "history",
            json!({ "at": added, "var": "fee", "instances": "t=1000" }),
        ),
        ("history", json!({ "at": fixed, "var": "fee" })),
        ("history", json!({ "at": added, "instances": "100..130" })),
        ("history", json!({ "at": mixed, "instances": "t=1000" })),
        ("history", json!({ "at": fixed })),
        ("why", json!({ "stdout": 0 })),
        ("why", json!({ "stdout": 1 })),
        ("slice", json!({ "at": "long.c:12#20" })),
        ("paths", json!({})),
        ("paths", json!({ "function": "charge" })),
        ("paths", json!({ "hot": true })),
        ("paths", json!({ "hot": true, "limit": 3 })),
        ("call", json!({ "at": "_start" })),
        ("state", json!({ "at": added })),
    ] {
        let mut arguments = arguments;
        arguments["recording"] = json!("run.aft");
        let parts = server.parts(tool, &arguments);
        let shown = parts
            .iter()
            .map(|part| part["totals"]["shown"].as_u64().unwrap());
        let shown: u64 = shown.sum();
        // The steps of a chain are counted only when its end is known.
        let totals = parts.iter().map(|part| part["totals"]["all"].as_u64());
        let all = totals.flatten().next();
        match (tool, arguments["which"].as_str()) {
            ("find", Some(_)) => assert_eq!(parts.len(), 1),
            ("history", _) if arguments["at"] == fixed => assert_eq!(parts.len(), 1),
            _ if arguments["instances"]
                .as_str()
                .is_some_and(|one| one.contains("..")) => {}
            _ => assert_eq!(Some(shown), all, "{tool} {arguments}"),
        }
        // No row is in two parts.
        let lists = parts.iter().map(|part| &part["report"]["instances"]);
        let numbers = lists.filter_map(Value::as_array).flatten();
        let numbers = Vec::from_iter(numbers.map(|one| one["number"].as_u64().unwrap()));
        assert!(
            numbers.is_sorted_by(|one, next| one < next),
            "{tool} {arguments}: {numbers:?}"
        );
    }
    // The long call is reported in several parts, which together contain each arrival once.
    let arguments = json!({ "recording": "run.aft", "at": "work#1" });
    let parts = server.parts("call", &arguments);
    let report = |part: &Value| part["report"].clone();
    let reports = Vec::from_iter(parts.iter().map(report));
    assert!(reports.len() > 1);
    for report in &reports {
        assert_eq!(
            report["returned"][0]["text"]
                .as_str()
                .unwrap()
                .split(' ')
                .next(),
            Some("449985000"),
            "{report}"
        );
        assert_eq!(report["arguments"][0]["value"], "30000");
    }
    let line = line_of(LONG, "sum += i;");
    let lines = reports
        .iter()
        .flat_map(|report| report["lines"].as_array().unwrap());
    let times = lines
        .filter(|one| one["source"]["line"] == line)
        .map(|one| one["times"].as_u64().unwrap());
    assert_eq!(times.sum::<u64>(), 30_000);
    server.end();
}

#[test]
fn a_state_ends_if_one_function_fills_the_answer() {
    let Some(clang) = clang() else { return };
    let sandbox = Sandbox::new();
    let variables = 0..60;
    let variables = variables.map(|number| format!("    volatile int a{number} = {number};\n"));
    // Below the user's function are two functions of a library.
    let source = format!(
        "#line 1 \"/rustc/0123/library/core/src/most.c\"\n\
         static int inner(volatile int *of) {{ return *of + 1; }}\n\
         static int outer(volatile int *of) {{ return inner(of) + 1; }}\n\
         #line 1 \"many.c\"\n\
         void _start(void) {{\n{}    a0 = outer(&a1);\n}}\n",
        String::from_iter(variables)
    );
    let source = sandbox.write("many.c", &source);
    let module = sandbox.path("many.wasm");
    clang.module(&["-g", "-O0"], &[&source], &[], &module);
    sandbox.ok("record -o run.aft many.wasm");
    let [state] = &answers(&sandbox, &[("state", json!({ "at": "inner" }))])[..] else {
        panic!("one call has one answer");
    };
    let text = state["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("more lines of this report"), "{text}");
    let frames = state["structuredContent"]["report"]["frames"].as_array();
    assert_eq!(frames.unwrap().len(), 3, "{text}");
}
