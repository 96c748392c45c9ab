//! `afterimage mcp` answers with the documents that the command line writes.

use std::io::Write;
use std::process::Stdio;

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
            // The rows of a document are in one list, without library steps, of which this program
            // has none.
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
            "diff" => {
                // Both name the recording by the path with which it was opened.
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
fn why_first_byte(clang: &Clang, (name, source): (&str, &str)) -> Value {
    let sandbox = Sandbox::new();
    let file = sandbox.write(&format!("{name}.c"), source);
    let module = sandbox.path(&format!("{name}.wasm"));
    clang.module(&["-g", "-O0"], &[&file], &[], &module);
    sandbox.ok(&format!("record -o run.aft {name}.wasm"));
    let calls = [("why", json!({ "stdout": 0, "digit": true }))];
    let answers = answers(&sandbox, &calls);
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
    let shown = format!("sum.c:{},{}", expected[0], expected[1]);
    let (_, after) = text.split_once("always went the same way:").unwrap();
    assert!(after.contains(&shown), "{text}");
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
    let (_, shown) = text.split_once("because of these branches").unwrap();
    assert!(shown.contains("in twice, on 0  | if (limit > 3)"), "{text}");
    let asked = document["next"].as_array().unwrap().iter();
    let asked = asked.filter(|next| next["tool"] == "why");
    let asked = Vec::from_iter(asked.map(|next| next["arguments"]["at"].clone()));
    for one in decisions {
        assert!(asked.contains(&one["place"]["at"]), "{text}");
    }
}
