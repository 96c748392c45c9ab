//! Checks that input that is not a message gets one error in the protocol's own form, and that the
//! next message is answered.

use serde_json::{Value, json};

use crate::{INITIALIZE, after_initialize, answers, folder, text};

/// Checks that a line gets exactly one error, with this code.
#[track_caller]
fn refused(line: &[u8], code: i64, id: &Value) {
    let folder = folder();
    let mut input = format!("{INITIALIZE}\n").into_bytes();
    input.extend(line);
    input.extend(b"\n{\"jsonrpc\":\"2.0\",\"id\":99,\"method\":\"ping\"}\n");
    let all = answers(folder.path(), &input);
    let shown = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
    assert_eq!(all.len(), 3, "{shown}: {all:?}");
    assert_eq!(all[1]["error"]["code"], code, "{shown}: {}", all[1]);
    assert_eq!(all[1]["id"], *id, "{shown}");
    let why = all[1]["error"]["message"].as_str().unwrap();
    assert!(!why.is_empty() && !why.contains('\n'), "{why}");
    assert_eq!(all[2], json!({ "jsonrpc": "2.0", "id": 99, "result": {} }));
}

#[test]
fn garbage_and_half_messages() {
    let nested = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    for line in [
        "nonsense",
        "{",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} {}",
        "\u{feff}{}",
        &nested,
    ] {
        refused(line.as_bytes(), -32700, &Value::Null);
    }
    refused(b"\xff\xfe{}", -32700, &Value::Null);
    refused(b"\0\0\0\0", -32700, &Value::Null);
}

#[test]
fn json_that_is_no_request() {
    for (line, id) in [
        ("1", Value::Null),
        ("[]", Value::Null),
        (
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
            Value::Null,
        ),
        ("{}", Value::Null),
        (
            "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
            json!(1),
        ),
        ("{\"jsonrpc\":\"2.0\",\"id\":2}", json!(2)),
        ("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":4}", json!(3)),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\",\"params\":[]}",
            json!(4),
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
            Value::Null,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}",
            Value::Null,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":123456789012345678901234567890,\"method\":\"ping\"}",
            Value::Null,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
            Value::Null,
        ),
    ] {
        refused(line.as_bytes(), -32600, &id);
    }
    let again = INITIALIZE.as_bytes();
    refused(again, -32600, &json!("first"));
}

#[test]
fn unknown_methods_and_parameters_that_do_not_fit() {
    for (method, parameters, code) in [
        ("resources/list", json!({}), -32601),
        ("", json!({}), -32601),
        ("tools/call", json!({}), -32602),
        ("tools/call", json!({ "name": "rm" }), -32602),
        (
            "tools/call",
            json!({ "name": "why", "arguments": [] }),
            -32602,
        ),
    ] {
        let line = json!({ "jsonrpc": "2.0", "id": 5, "method": method, "params": parameters });
        refused(line.to_string().as_bytes(), code, &json!(5));
    }
}

#[test]
fn a_message_without_an_end_takes_no_memory() {
    let mut line = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"".to_vec();
    line.extend(std::iter::repeat_n(b'x', 9 << 20));
    refused(&line, -32600, &Value::Null);
}

#[test]
fn input_that_ends_within_a_message() {
    let folder = folder();
    let all = answers(folder.path(), b"{\"jsonrpc\":\"2.0\",\"id\":1,");
    assert_eq!(all.len(), 1);
    assert_eq!(all[0]["error"]["code"], -32700);
    let why = all[0]["error"]["message"].as_str().unwrap();
    assert!(why.contains("incomplete message"), "{why}");
    assert!(answers(folder.path(), b"").is_empty());
    assert!(answers(folder.path(), b"\n \n\n").is_empty());
}

#[test]
fn notifications_and_responses_get_no_answer() {
    let folder = folder();
    let lines = [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"nobody/knows"}"#,
        r#"{"jsonrpc":"2.0","id":8,"result":{}}"#,
    ];
    assert!(after_initialize(folder.path(), &lines).is_empty());
}

#[test]
fn arguments_that_do_not_fit_are_refused_with_those_that_do() {
    let folder = folder();
    for (tool, arguments) in [
        ("why", json!({})),
        ("why", json!({ "recording": 7 })),
        ("why", json!({ "recording": "forever.aft" })),
        (
            "why",
            json!({ "recording": "forever.aft", "at": "@0x6e#1", "trap": true }),
        ),
        ("why", json!({ "recording": "forever.aft", "stdout": -1 })),
        (
            "why",
            json!({ "recording": "forever.aft", "at": "@0x6e#1", "offset": 1e30 }),
        ),
        (
            "why",
            json!({ "recording": "forever.aft", "at": "@0x6e#1", "unknown": 1 }),
        ),
        ("call", json!({ "recording": "forever.aft", "at": null })),
        (
            "slice",
            json!({ "recording": "forever.aft", "at": "@0x6e#1", "depth": 0 }),
        ),
        (
            "slice",
            json!({ "recording": "forever.aft", "at": "@0x6e#1", "depth": 254 }),
        ),
        (
            "history",
            json!({ "recording": "forever.aft", "at": "@0x6e", "instances": "9..1" }),
        ),
        (
            "history",
            json!({ "recording": "forever.aft", "address": "0x" }),
        ),
        (
            "find",
            json!({ "recording": "forever.aft", "where": "x < 1" }),
        ),
        (
            "state",
            json!({ "recording": "forever.aft", "frame": "first" }),
        ),
    ] {
        let parameters = json!({ "name": tool, "arguments": arguments });
        let line =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": parameters });
        let all = after_initialize(folder.path(), &[&line.to_string()]);
        let result = &all[0]["result"];
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
        let said = text(result);
        assert!(
            said.contains("its arguments are: "),
            "{tool} {arguments}: {said}"
        );
    }
}

#[test]
fn numbers_of_any_size_are_positions_or_refused() {
    let folder = folder();
    for at in [
        "@0xffffffffffffffffffff#1",
        "@0x6e#99999999999999999999999",
        "t=99999999999999999999999999",
        "step#18446744073709551615",
        "-1",
        "#",
        "",
        "1e400%",
        "\u{202e}\0",
    ] {
        for tool in ["why", "call", "state", "history", "slice", "why_not"] {
            let parameters =
                json!({ "name": tool, "arguments": { "recording": "forever.aft", "at": at } });
            let line =
                json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": parameters });
            let all = after_initialize(folder.path(), &[&line.to_string()]);
            let result = &all[0]["result"];
            let said = text(result);
            assert!(!said.contains("an internal error"), "{tool} {at}: {said}");
            assert!(!said.contains('\u{202e}'), "{tool} {at}: {said}");
        }
    }
}
