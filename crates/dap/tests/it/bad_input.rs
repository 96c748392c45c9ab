//! Tests messages that no client should send, and invalid recordings. The server answers each with
//! one sentence.

use std::fs;

use serde_json::json;

use crate::client::Client;
use crate::programs::{SOURCE, recording};

/// Checks that the server ends without a panic. Returns its output.
fn ends(mut client: Client) -> String {
    client.leave();
    while let Some(message) = client.read() {
        client.events.push(message);
    }
    let server = client.server.take().unwrap();
    server.join().expect("no panic").unwrap();
    client.said()
}

#[test]
fn garbage_ends_the_session_with_one_sentence() {
    for (garbage, said) in [
        (
            &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
            "must begin with Content-Length:",
        ),
        (
            b"Content-Length: many\r\n\r\n{}",
            "is not a number of bytes",
        ),
        (
            b"Content-Length: 99999999999999999999\r\n\r\n{}",
            "is not a number of bytes",
        ),
        (
            b"Content-Length: 999999999\r\n\r\n{}",
            "is not a number of bytes",
        ),
        (b"\r\n\r\n", "without Content-Length"),
        (
            b"Content-Length: 100\r\n\r\n{\"seq\":",
            "ends in the middle of a message",
        ),
        (b"Content-Le", "ends in the middle of a message"),
        (b"", ""),
    ] {
        let mut client = Client::new();
        client.raw(garbage);
        let heard = ends(client);
        assert!(heard.contains(said), "{heard}");
        assert_eq!(
            heard.lines().count(),
            usize::from(!said.is_empty()),
            "{heard}"
        );
    }
    let mut client = Client::new();
    client.raw(&[b'x'; 10_000]);
    assert!(ends(client).contains("too long"));
}

#[test]
fn what_is_no_request_is_answered_and_the_next_one_is_served() {
    let mut client = Client::initialized();
    let mut send = |text: &str| {
        let whole = format!("Content-Length: {}\r\n\r\n{text}", text.len());
        client.raw(whole.as_bytes());
        loop {
            let message = client.read().unwrap();
            match (message["event"].as_str(), message["type"].as_str()) {
                (Some("output"), _) => {
                    return message["body"]["output"].as_str().unwrap().to_owned();
                }
                (_, Some("response")) => return message["message"].as_str().unwrap().to_owned(),
                _ => {}
            }
        }
    };
    assert!(send("{").contains("is not JSON"));
    assert!(send("[]").contains("not a request"));
    assert!(send(r#"{"seq":1,"type":"event","command":"x"}"#).contains("not a request"));
    assert!(send(r#"{"seq":-1,"type":"request","command":"x"}"#).contains("not a request"));
    assert!(send(r#"{"seq":1,"type":"request"}"#).contains("not a request"));
    let deep = "[".repeat(100_000);
    assert!(send(&deep).contains("is not JSON"));
    let refused = client.refused("threads", json!({}));
    assert!(
        refused.contains("nothing is being debugged yet"),
        "{refused}"
    );
}

#[test]
fn requests_at_the_wrong_time_and_unknown_ones() {
    let mut client = Client::new();
    assert!(
        client
            .refused("threads", json!({}))
            .contains("before initialize")
    );
    assert!(
        client
            .refused("launch", json!({}))
            .contains("send initialize first")
    );
    client.done("initialize", json!({ "adapterID": "x" }));
    assert!(client.refused("initialize", json!({})).contains("already"));
    assert!(
        client
            .refused("stackTrace", json!({}))
            .contains("nothing is being debugged yet")
    );
    assert!(
        client
            .refused("launch", json!({}))
            .contains("names nothing to debug")
    );
    assert!(
        client
            .refused("launch", json!({ "recording": 5 }))
            .contains("invalid arguments of launch")
    );
    let both = json!({ "recording": "a", "program": "b" });
    assert!(client.refused("launch", both).contains("not both"));
    assert!(
        client
            .refused("attach", json!({ "program": "b" }))
            .contains("use launch")
    );
    let none = client.refused("attach", json!({ "recording": "/nowhere/a.aft" }));
    assert!(none.contains("/nowhere/a.aft"), "{none}");
    let folder = tempfile::tempdir().unwrap();
    let recording = recording(&folder, "0", &["3"]);
    let bad = json!({ "recording": recording, "code": "[" });
    assert!(client.refused("attach", bad).contains("code"));
    let bad = json!({ "recording": recording, "goto": "nobody#3" });
    assert!(client.refused("attach", bad).contains("goto"));
    client.done("attach", json!({ "recording": recording }));
    assert!(
        client
            .refused("fly", json!({}))
            .contains("fly is not supported")
    );
    assert!(
        client
            .refused("setVariable", json!({}))
            .contains("cannot be changed")
    );
    assert!(
        client
            .refused("stackTrace", json!({ "levels": "all" }))
            .contains("invalid arguments of stackTrace")
    );
}

#[test]
fn huge_numbers_are_refused_or_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::at(&recording(&folder, "0", &["3"]));
    for huge in [
        json!(u64::MAX),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(1e300),
        json!(-1),
    ] {
        for (command, arguments) in [
            ("variables", json!({ "variablesReference": huge })),
            (
                "variables",
                json!({ "variablesReference": 1, "start": huge, "count": huge }),
            ),
            ("scopes", json!({ "frameId": huge })),
            ("stackTrace", json!({ "startFrame": huge, "levels": huge })),
            (
                "readMemory",
                json!({ "memoryReference": "0x10", "offset": huge, "count": huge }),
            ),
            (
                "readMemory",
                json!({ "memoryReference": "0xffffffffffffffff", "count": 100 }),
            ),
            (
                "disassemble",
                json!({ "memoryReference": "0x200", "instructionOffset": huge, "instructionCount": 9 }),
            ),
            (
                "disassemble",
                json!({ "memoryReference": "0x200", "instructionOffset": 0, "instructionCount": huge }),
            ),
            (
                "gotoTargets",
                json!({ "source": { "path": SOURCE }, "line": huge }),
            ),
            ("goto", json!({ "targetId": huge })),
            (
                "dataBreakpointInfo",
                json!({ "name": "0x10", "asAddress": true, "bytes": huge }),
            ),
            (
                "breakpointLocations",
                json!({ "source": { "path": SOURCE }, "line": 1, "endLine": huge }),
            ),
            (
                "evaluate",
                json!({ "expression": format!("goto t={huge}"), "context": "repl" }),
            ),
        ] {
            client.ask(command, arguments);
        }
    }
    assert_eq!(client.done("threads", json!({}))["threads"][0]["id"], 1);
    assert!(!ends(client).contains("panic"));
}

#[test]
fn a_client_that_vanishes_ends_the_session() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::at(&recording(&folder, "0", &["3"]));
    client.send("continue", json!({ "threadId": 1 }));
    ends(client);
}

#[test]
fn recordings_that_are_cut_replaced_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let at = recording(&folder, "0", &["3"]);
    let whole = fs::read(&at).unwrap();
    let mut client = Client::initialized();
    for length in [0, 5, 100, whole.len() / 2, whole.len() - 1] {
        let cut = folder.path().join("cut.aft");
        fs::write(&cut, &whole[..length]).unwrap();
        let response = client.ask("attach", json!({ "recording": cut }));
        if response["success"] == true {
            client.done("disconnect", json!({}));
            client = Client::initialized();
        } else {
            let why = response["message"].as_str().unwrap();
            assert!(why.contains("cut.aft") && !why.contains('\n'), "{why}");
        }
    }
    // The open recording stays open.
    let mut client = Client::at(&at);
    let other = folder.path().join("other");
    fs::write(&other, b"something else").unwrap();
    fs::rename(&other, &at).unwrap();
    client.go("stepIn");
    client.frames();
    client.done("disconnect", json!({}));
}

#[test]
fn a_recording_that_is_cut_while_it_is_debugged_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = recording(&folder, "0", &["3"]);
    let mut client = Client::at(&at);
    client.frames();
    let whole = fs::read(&at).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&at).unwrap();
    file.set_len(whole.len() as u64 / 2).unwrap();
    for command in ["stackTrace", "next", "evaluate"] {
        let why = client.refused(command, json!({ "threadId": 1, "expression": "why round" }));
        assert!(why.contains("was cut from"), "{why}");
    }
    fs::write(&at, &whole).unwrap();
    client.frames();
    client.done("disconnect", json!({}));
}

#[test]
fn what_is_done_is_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::at(&recording(&folder, "0", &["3"]));
    // No operation is running, so the request is answered and has no other effect.
    client.done("pause", json!({ "threadId": 1 }));
    client.done("cancel", json!({}));
    assert_eq!(client.go("stepIn")["reason"], "step");
}
