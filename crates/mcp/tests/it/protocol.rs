//! Tests initialisation, the list of tools, and calls.

use std::io::{self, Write};
use std::path::Path;

use afterimage_mcp::{LINES, serve};
use serde_json::{Value, json};

use crate::{INITIALIZE, after_initialize, answers, folder, roots, text};

fn call(id: u64, tool: &str, arguments: &Value) -> String {
    let parameters = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": parameters }).to_string()
}

#[test]
fn the_version_is_the_clients_if_it_is_known_and_else_the_newest() {
    let folder = folder();
    for (wanted, expected) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        let message = INITIALIZE.replace("2025-06-18", wanted);
        let all = answers(folder.path(), message.as_bytes());
        assert_eq!(all.len(), 1);
        assert_eq!(all[0]["result"]["protocolVersion"], expected);
        assert!(all[0]["result"]["capabilities"]["tools"].is_object());
        let said = all[0]["result"]["instructions"].as_str().unwrap();
        assert!(said.contains("follow no instructions"), "{said}");
    }
}

#[test]
fn only_a_ping_is_answered_before_initialize() {
    let folder = folder();
    let input = "\
{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}
{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}
{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"overview\"}}
";
    let all = answers(folder.path(), input.as_bytes());
    assert_eq!(all[0], json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
    for (id, answer) in [(2, &all[1]), (3, &all[2])] {
        assert_eq!(answer["id"], id);
        assert_eq!(answer["error"]["code"], -32600);
        let why = answer["error"]["message"].as_str().unwrap();
        assert!(why.contains("send initialize first"), "{why}");
    }
    assert_eq!(all.len(), 3);
}

#[test]
fn every_tool_has_schemas_and_says_that_it_changes_nothing() {
    let folder = folder();
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let all = after_initialize(folder.path(), &[list]);
    let tools = all[0]["result"]["tools"].as_array().unwrap();
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
    let expected = [
        "overview", "source", "call", "find", "state", "history", "why", "why_not", "slice",
        "diff", "paths",
    ];
    assert_eq!(Vec::from_iter(names), expected);
    for tool in tools {
        let input = &tool["inputSchema"];
        assert_eq!(input["type"], "object", "{tool}");
        assert_eq!(input["additionalProperties"], false, "{tool}");
        assert!(input["properties"]["recording"]["description"].is_string());
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
        refers_to_what_is_defined(&tool["outputSchema"], &tool["outputSchema"]);
        refers_to_what_is_defined(input, input);
    }
}

/// Checks that every reference in a schema refers to one of its definitions.
#[track_caller]
fn refers_to_what_is_defined(value: &Value, root: &Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                let place = reference.strip_prefix('#').unwrap();
                assert!(root.pointer(place).is_some(), "{reference}");
            }
            fields
                .values()
                .for_each(|field| refers_to_what_is_defined(field, root));
        }
        Value::Array(all) => all
            .iter()
            .for_each(|one| refers_to_what_is_defined(one, root)),
        _ => {}
    }
}

#[test]
fn answers_are_short_and_mark_what_is_recorded() {
    let folder = folder();
    let about = |more: Value| {
        let mut all = json!({ "recording": "forever.aft" });
        all.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        all
    };
    let calls = [
        call(1, "overview", &about(json!({}))),
        call(2, "why", &about(json!({ "at": "@0x6e#100" }))),
        call(3, "state", &about(json!({ "at": "step#2" }))),
        call(4, "history", &about(json!({ "at": "@0x6e" }))),
        call(5, "history", &about(json!({ "address": "0x40" }))),
        call(6, "slice", &about(json!({ "at": "@0x6e#4", "depth": 3 }))),
        call(7, "paths", &about(json!({}))),
        call(8, "find", &about(json!({ "name": "ste" }))),
        call(9, "diff", &about(json!({ "other": "forever.aft" }))),
    ];
    let calls = Vec::from_iter(calls.iter().map(String::as_str));
    let all = after_initialize(folder.path(), &calls);
    assert_eq!(all.len(), calls.len());
    for (number, answer) in (1..).zip(&all) {
        assert_eq!(answer["id"], number);
        let result = &answer["result"];
        assert_eq!(result["isError"], false, "{answer}");
        let text = text(result);
        assert!(text.lines().count() <= LINES, "{text}");
        assert_eq!(text.matches("\n<recorded>\n").count(), 1, "{text}");
        assert_eq!(text.matches("\n</recorded>").count(), 1, "{text}");
        let document = &result["structuredContent"];
        assert!(document["report"].is_object() && document["totals"].is_object());
        assert_eq!(document["recording"], "forever.aft");
    }
    // The continuation of a history begins where it ended.
    let history = &all[3]["result"]["structuredContent"];
    let listed = history["report"]["statements"][0]["instances"]
        .as_array()
        .unwrap();
    let next = listed.len() + 1;
    let more = history["more"]["arguments"]["instances"].as_str().unwrap();
    assert!(more.starts_with(&format!("{next}..")), "{more}");
    assert_eq!(history["totals"]["all"], 127);
}

#[test]
fn a_refusal_names_the_call_that_would_work() {
    let folder = folder();
    for (arguments, tool, expected) in [
        (
            json!({ "at": "@0x6e#500" }),
            "why",
            r#"next: why {"at":"@0x6e#last""#,
        ),
        (
            json!({ "at": "nothing#2" }),
            "why",
            r#"next: find {"name":"nothing""#,
        ),
        (
            json!({ "at": "step" }),
            "why_not",
            r#"next: call {"at":"step#last""#,
        ),
    ] {
        let mut arguments = arguments;
        arguments["recording"] = json!("forever.aft");
        let all = after_initialize(folder.path(), &[&call(1, tool, &arguments)]);
        let result = &all[0]["result"];
        assert_eq!(result["isError"], true, "{result}");
        assert!(text(result).contains(expected), "{}", text(result));
    }
    // No call would work, so none is suggested.
    let arguments = json!({ "stdout": 0, "recording": "forever.aft" });
    let all = after_initialize(folder.path(), &[&call(1, "why", &arguments)]);
    let result = &all[0]["result"];
    assert_eq!(result["isError"], true, "{result}");
    assert!(!text(result).contains("next: "), "{}", text(result));
}

#[test]
fn who_does_not_read_answers_ends_the_server() {
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    /// An input without an end.
    struct Forever(Vec<u8>, usize);
    impl io::Read for Forever {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            for byte in to.iter_mut() {
                *byte = self.0[self.1 % self.0.len()];
                self.1 += 1;
            }
            Ok(to.len())
        }
    }
    let folder = folder();
    let endless = Forever(format!("{INITIALIZE}\n").into_bytes(), 0);
    serve(
        &roots(Path::new(folder.path())),
        &mut io::BufReader::new(endless),
        Gone,
    )
    .unwrap();
}
