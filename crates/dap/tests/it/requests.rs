//! Tests the requests that clients send.

use serde_json::{Value, json};

use crate::client::Client;
use crate::programs::{SOURCE, line_of, program, recording};

fn lines(client: &mut Client, breakpoints: Value) -> Value {
    let arguments = json!({ "source": { "path": SOURCE }, "breakpoints": breakpoints });
    client.done("setBreakpoints", arguments)["breakpoints"].clone()
}

#[test]
fn breakpoints_stop_forward_and_backward_and_say_which_execution_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::initialized();
    client.done(
        "launch",
        json!({ "recording": recording(&folder, "0", &["20"]) }),
    );
    client.event("initialized");
    let push = line_of("account.entries.push");
    let set = lines(&mut client, json!([{ "line": push }]));
    assert_eq!(
        (&set[0]["verified"], &set[0]["line"]),
        (&json!(true), &json!(push))
    );
    assert_eq!(set[0]["message"], "executed 20 times");
    client.done("configurationDone", json!({}));
    let stopped = client.stopped();
    assert_eq!(stopped["reason"], "breakpoint");
    assert_eq!(stopped["description"], format!("line {push}: 1 of 20"));
    assert_eq!(stopped["hitBreakpointIds"], json!([set[0]["id"]]));
    assert_eq!(client.here().0, push);
    for number in 2..=20 {
        let stopped = client.go("continue");
        assert_eq!(
            stopped["description"],
            format!("line {push}: {number} of 20")
        );
    }
    let end = client.go("continue");
    assert_eq!(
        end["description"],
        "The recording ends here: the program returned"
    );
    for number in (1..=20).rev() {
        let stopped = client.go("reverseContinue");
        assert_eq!(
            stopped["description"],
            format!("line {push}: {number} of 20")
        );
    }
    assert_eq!(client.go("reverseContinue")["reason"], "entry");
}

#[test]
fn conditions_hit_counts_and_log_points() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::at(&recording(&folder, "0", &["20"]));
    let push = line_of("account.entries.push");
    lines(
        &mut client,
        json!([{ "line": push, "condition": "round == 13 && amount >= 0" }]),
    );
    let stopped = client.go("continue");
    assert_eq!(stopped["description"], format!("line {push}: 14 of 20"));
    assert_eq!(client.console("round"), "13");
    assert_eq!(client.console("round + 1"), "14");
    lines(
        &mut client,
        json!([{ "line": push, "hitCondition": "% 6" }]),
    );
    assert_eq!(
        client.go("reverseContinue")["description"],
        format!("line {push}: 12 of 20")
    );
    lines(
        &mut client,
        json!([{ "line": push, "condition": "round > 1000" }]),
    );
    client.events.clear();
    client.go("continue");
    let said = client.said();
    assert!(
        said.contains("no condition holds: tested 8 executions"),
        "{said}"
    );
    lines(
        &mut client,
        json!([{ "line": push, "logMessage": "round {round}, {nothing} left" }]),
    );
    client.events.clear();
    client.go("reverseContinue");
    let said = client.said();
    assert_eq!(said.matches("round ").count(), 20, "{said}");
    assert!(
        said.starts_with("round 19, <there is no variable nothing"),
        "{said}"
    );
    let set = lines(
        &mut client,
        json!([
            { "line": push, "condition": "round ==" },
            { "line": push, "condition": "nothing > 3" },
            { "line": push, "hitCondition": "often" },
            { "line": push, "logMessage": "{round" },
            { "line": 1_000_000 },
            { "line": -5 },
            { "line": i64::MAX },
        ]),
    );
    for refused in set.as_array().unwrap() {
        assert_eq!(refused["verified"], false, "{refused}");
        assert!(
            refused["message"]
                .as_str()
                .is_some_and(|why| !why.is_empty())
        );
    }
    let unknown = set[1]["message"].as_str().unwrap();
    assert!(
        unknown.starts_with("there is no variable nothing"),
        "{unknown}"
    );
}

#[test]
fn errors_are_said_once_and_commands_alone_show_their_forms() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::at(&recording(&folder, "0", &["3"]));
    let why = client.refused("afterimage/origins", json!({ "expression": "nosuch" }));
    assert_eq!(
        why.matches("there is no variable nosuch").count(),
        1,
        "{why}"
    );
    assert!(!why.contains("--var"), "{why}");
    for (word, forms) in [
        ("why", "write why x or why --trap"),
        ("when", "write when x < 0"),
    ] {
        let arguments = json!({ "expression": word, "context": "repl" });
        let said = client.refused("evaluate", arguments);
        assert_eq!(said, forms);
    }
    let sources = client.done("loadedSources", json!({}))["sources"].clone();
    let sources = sources.as_array().unwrap();
    assert!(!sources.is_empty());
    for source in sources {
        let path = source["path"].as_str().unwrap();
        assert!(!path.contains("-cgu."), "{path}");
    }
}

#[test]
fn functions_and_operators_stop_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::at(&recording(&folder, "0", &["20"]));
    let set = client.done(
        "setFunctionBreakpoints",
        json!({ "breakpoints": [{ "name": "ledger::pay" }, { "name": "nobody" }] }),
    );
    assert_eq!(set["breakpoints"][0]["verified"], true, "{set}");
    assert_eq!(set["breakpoints"][1]["verified"], false);
    assert_eq!(client.go("continue")["reason"], "function breakpoint");
    assert_eq!(client.here().0, line_of("account.balance = charged"));
    let operator = client.frames()[0]["instructionPointerReference"].clone();
    client.done("setFunctionBreakpoints", json!({ "breakpoints": [] }));
    let wanted = json!({ "breakpoints": [{ "instructionReference": operator }] });
    let set = client.done("setInstructionBreakpoints", wanted);
    assert_eq!(
        set["breakpoints"][0]["message"], "executed 20 times",
        "{set}"
    );
    let stopped = client.go("continue");
    assert_eq!(stopped["reason"], "instruction breakpoint");
    assert!(
        stopped["description"]
            .as_str()
            .unwrap()
            .ends_with(": 2 of 20"),
        "{stopped}"
    );
}

#[test]
fn data_breakpoints_stop_after_a_write_and_backward_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::at(&recording(&folder, "0", &["20"]));
    let pay = line_of("account.balance = charged");
    lines(&mut client, json!([{ "line": pay }]));
    client.go("continue");
    lines(&mut client, json!([]));
    let before = client.console("account->balance");
    let info = client.done("dataBreakpointInfo", json!({ "name": "account->balance" }));
    let all = json!(["read", "write", "readWrite"]);
    assert_eq!(info["accessTypes"], all, "{info}");
    let id = info["dataId"].clone();
    let set = client.done(
        "setDataBreakpoints",
        json!({ "breakpoints": [{ "dataId": id }] }),
    );
    assert_eq!(set["breakpoints"][0]["verified"], true, "{set}");
    let stopped = client.go("continue");
    assert_eq!(stopped["reason"], "data breakpoint");
    // The write was the last operator of the line.
    assert_eq!(client.here().0, line_of("let kind = match"));
    let after = client.console("account->balance");
    assert_ne!(before, after);
    assert_eq!(client.go("reverseContinue")["reason"], "data breakpoint");
    assert_eq!(client.console("account->balance"), before);
    let range = json!({ "name": "0x400", "asAddress": true, "bytes": 8 });
    let range = client.done("dataBreakpointInfo", range);
    assert_eq!(range["description"], "0x400 (8 bytes at 0x400)");
    let wanted = json!({ "breakpoints": [
        { "dataId": range["dataId"], "accessType": "sometimes" }, { "dataId": "x" },
    ] });
    let set = client.done("setDataBreakpoints", wanted);
    assert_eq!(set["breakpoints"][0]["verified"], false, "{set}");
    assert_eq!(set["breakpoints"][1]["verified"], false, "{set}");
}

#[test]
fn data_breakpoints_stop_at_changes_of_a_variable_that_is_not_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::at(&recording(&folder, "2", &["20"]));
    lines(
        &mut client,
        json!([{ "line": line_of("let amount ="), "hitCondition": "5" }]),
    );
    client.go("continue");
    lines(&mut client, json!([]));
    let before = client.console("seed");
    let info = client.done("dataBreakpointInfo", json!({ "name": "seed" }));
    assert_eq!(info["accessTypes"], json!(["write"]), "{info}");
    assert_eq!(
        info["description"],
        "seed (not in memory; changes during this call)"
    );
    let wanted = json!({ "breakpoints": [
        { "dataId": info["dataId"] }, { "dataId": info["dataId"], "accessType": "read" },
        { "dataId": "9999999999999.1.0 seed" }, { "dataId": "1.99999.0 seed" },
        { "dataId": "1.4294967295.0 seed" }, { "dataId": "1.1.4294967296 seed" }, { "dataId": "1.1 seed" },
    ] });
    let set = client.done("setDataBreakpoints", wanted);
    assert_eq!(set["breakpoints"][0]["verified"], true, "{set}");
    for refused in 1..7 {
        assert_eq!(set["breakpoints"][refused]["verified"], false, "{set}");
    }
    let stopped = client.go("continue");
    assert_eq!(stopped["reason"], "data breakpoint");
    assert_eq!(stopped["description"], "seed was written");
    let seed: u64 = before.parse().unwrap();
    let next = seed
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    assert_eq!(client.console("seed"), next.to_string());
    assert_eq!(client.go("reverseContinue")["reason"], "data breakpoint");
    assert_eq!(client.console("seed"), before);
}

#[test]
fn data_breakpoints_stop_after_a_read_and_backward_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::at(&recording(&folder, "0", &["20"]));
    let pay = line_of("account.balance = charged");
    lines(&mut client, json!([{ "line": pay, "hitCondition": "5" }]));
    client.go("continue");
    lines(&mut client, json!([]));
    let info = client.done("dataBreakpointInfo", json!({ "name": "account->balance" }));
    let set = |client: &mut Client, access: &str| {
        let wanted = json!({ "breakpoints": [{ "dataId": info["dataId"], "accessType": access }] });
        let set = client.done("setDataBreakpoints", wanted);
        assert_eq!(set["breakpoints"][0]["verified"], true, "{set}");
    };
    // The line reads the balance, and then writes it.
    set(&mut client, "read");
    let stopped = client.go("continue");
    assert_eq!(stopped["reason"], "data breakpoint");
    assert_eq!(stopped["description"], "account->balance was read");
    assert_eq!(client.here().0, pay);
    set(&mut client, "readWrite");
    let stopped = client.go("continue");
    assert_eq!(
        stopped["description"],
        "account->balance was read or written"
    );
    assert_eq!(client.here().0, line_of("let kind = match"));
    client.go("reverseContinue");
    client.go("reverseContinue");
    assert_eq!(client.here().0, pay);
    // The account was last accessed by an earlier call.
    set(&mut client, "read");
    assert_eq!(client.go("reverseContinue")["reason"], "data breakpoint");
    assert_eq!(client.here().0, pay);
    let number = client.console("round");
    assert!(number.parse::<u32>().unwrap() < 4, "{number}");
}

#[test]
fn steps_go_in_over_and_out_in_both_directions() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::at(&recording(&folder, "0", &["20"]));
    let call = line_of("pay(account, amount, round)");
    lines(&mut client, json!([{ "line": call }]));
    client.go("continue");
    lines(&mut client, json!([]));
    let pay = line_of("account.balance = charged");
    assert_eq!(client.go("stepIn")["reason"], "step");
    assert_eq!(client.here().0, pay);
    client.go("next");
    assert_eq!(client.here().0, line_of("match round % 3"));
    client.go("stepBack");
    assert_eq!(client.here().0, pay);
    client.go("stepOut");
    let (line, name) = client.here();
    assert!(name.ends_with("main"), "{name}");
    assert!([call, call + 1].contains(&line), "{line}");
    client.go("afterimage/reverseStepIn");
    assert!(client.here().1.ends_with("pay"));
    client.go("afterimage/reverseStepOut");
    assert_eq!(client.here().0, call);
    let by_operator = json!({ "threadId": 1, "granularity": "instruction" });
    let before = client.frames()[0]["instructionPointerReference"].clone();
    client.done("next", by_operator.clone());
    client.stopped();
    assert_ne!(client.frames()[0]["instructionPointerReference"], before);
    client.done("stepBack", by_operator);
    client.stopped();
    assert_eq!(client.frames()[0]["instructionPointerReference"], before);
}

#[test]
fn variables_are_opened_part_by_part() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::at(&recording(&folder, "0", &["20"]));
    let clear = line_of("if account.entries.len() > 8");
    lines(
        &mut client,
        json!([{ "line": clear, "hitCondition": "10" }]),
    );
    client.go("continue");
    let named = |all: &[Value], name: &str| {
        let found = all.iter().find(|one| one["name"] == name);
        found
            .unwrap_or_else(|| panic!("no {name} in {all:?}"))
            .clone()
    };
    let locals = client.locals(1);
    let account = named(&locals, "account");
    let reference = |one: &Value| one["variablesReference"].as_u64().unwrap();
    let pointee = client.variables(reference(&account));
    let members = client.variables(reference(&pointee[0]));
    assert_eq!(members.len(), 3, "{members:?}");
    let balance = named(&members, "balance");
    assert_eq!(
        (&balance["type"], &balance["variablesReference"]),
        (&json!("i64"), &json!(0))
    );
    assert_eq!(balance["evaluateName"], "(*account).balance");
    assert_eq!(
        client.console("(*account).balance"),
        balance["value"].as_str().unwrap()
    );
    let entries = named(&members, "entries");
    let count = entries["indexedVariables"].as_u64().unwrap();
    assert!(count > 0, "{entries}");
    let wanted = json!({ "variablesReference": reference(&entries), "filter": "indexed", "start": count - 1, "count": 1 });
    let last = client.done("variables", wanted)["variables"].clone();
    assert_eq!(last[0]["name"], format!("[{}]", count - 1));
    let first = client.variables(reference(&entries)).remove(0);
    let parts = client.variables(reference(&first));
    assert_eq!(named(&parts, "amount")["type"], "i64");
    assert!(
        client
            .refused("evaluate", json!({ "expression": "nobody" }))
            .contains("nobody")
    );
    client.go("next");
    let gone = client.refused("variables", json!({ "variablesReference": 77 }));
    assert!(gone.contains("moved since"), "{gone}");
}

#[test]
fn a_trap_is_an_exception_and_the_console_explains_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::at(&recording(&folder, "0", &["20", "trap"]));
    let none = client.refused("exceptionInfo", json!({ "threadId": 1 }));
    assert!(none.contains("is not where it trapped"), "{none}");
    client.done("setExceptionBreakpoints", json!({ "filters": ["trap"] }));
    let stopped = client.go("continue");
    assert_eq!(stopped["reason"], "exception", "{stopped}");
    let info = client.done("exceptionInfo", json!({ "threadId": 1 }));
    assert_eq!(info["description"], stopped["description"]);
    assert!(client.console("why --trap").contains("ffff0000"));
}

#[test]
fn the_console_has_our_own_commands() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::at(&recording(&folder, "0", &["20"]));
    let push = line_of("account.entries.push");
    client.console(&format!("goto ledger.rs:{push}#3"));
    assert_eq!(client.stopped()["reason"], "goto");
    assert_eq!(client.console("round"), "2");
    let why = client.console("why amount");
    assert!(why.contains("seed"), "{why}");
    let slice = client.console("slice amount");
    assert!(slice.starts_with("what amount = "), "{slice}");
    assert!(slice.contains(SOURCE), "{slice}");
    let when = client.console("when round == 9");
    assert!(when.contains("tested 7 executions"), "{when}");
    client.stopped();
    assert_eq!(client.console("round"), "9");
    client.console("when-before round == 4");
    client.stopped();
    assert_eq!(client.console("round"), "4");
    let never = json!({ "expression": "when round == 99", "context": "repl" });
    let never = client.refused("evaluate", never);
    assert!(never.contains("tested 15 executions"), "{never}");
    assert!(client.console("help").contains("goto MOMENT"));
    let origins = client.done("afterimage/origins", json!({ "expression": "amount" }));
    assert!(!origins["entries"].as_array().unwrap().is_empty());
}

#[test]
fn code_memory_and_targets() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::at(&recording(&folder, "0", &["20"]));
    let push = line_of("account.entries.push");
    let wanted = json!({ "source": { "path": SOURCE }, "line": push });
    let targets = client.done("gotoTargets", wanted)["targets"].clone();
    assert_eq!(targets[0]["label"], "#1 of 20 (next)", "{targets}");
    let last = targets.as_array().unwrap().last().unwrap()["id"].clone();
    client.done("goto", json!({ "threadId": 1, "targetId": last }));
    client.stopped();
    assert_eq!(
        (client.here().0, client.console("round")),
        (push, "19".to_owned())
    );
    let gone = client.refused("goto", json!({ "threadId": 1, "targetId": 99 }));
    assert!(gone.contains("no such target"), "{gone}");
    let pointer = client.frames()[0]["instructionPointerReference"].clone();
    let wanted =
        json!({ "memoryReference": pointer, "instructionOffset": -3, "instructionCount": 7 });
    let code = client.done("disassemble", wanted)["instructions"].clone();
    assert_eq!(code.as_array().unwrap().len(), 7);
    assert_eq!(code[3]["address"], pointer);
    let balance = client.ask("evaluate", json!({ "expression": "(*account).balance" }));
    let at = balance["body"]["memoryReference"].clone();
    let read = client.done("readMemory", json!({ "memoryReference": at, "count": 8 }));
    assert_eq!(read["data"].as_str().unwrap().len(), 12, "{read}");
    let beyond = json!({ "memoryReference": "0xfffffff0", "count": 64 });
    assert_eq!(client.done("readMemory", beyond)["unreadableBytes"], 64);
    let wanted = json!({ "source": { "path": SOURCE }, "line": 1, "endLine": 40 });
    let locations = client.done("breakpointLocations", wanted)["breakpoints"].clone();
    assert!(
        locations
            .as_array()
            .unwrap()
            .contains(&json!({ "line": line_of("return 1;") }))
    );
    let sources = client.done("loadedSources", json!({}))["sources"].clone();
    assert!(
        sources
            .as_array()
            .unwrap()
            .iter()
            .any(|one| one["path"] == SOURCE),
        "{sources}"
    );
}

#[test]
fn a_program_is_recorded_first_and_gets_only_what_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = Client::initialized();
    let to = folder.path().join("made.aft");
    let wanted =
        json!({ "program": program("0"), "args": ["6"], "output": to, "stopOnEntry": true });
    client.done("launch", wanted.clone());
    client.done("configurationDone", json!({}));
    client.stopped();
    let recording = afterimage::Recording::open(&to).unwrap();
    let meta = recording.file().meta().unwrap();
    assert_eq!((meta.args, meta.env), (vec!["6".to_owned()], vec![]));
    assert!(meta.dirs.is_empty());
    let again = client.refused("launch", wanted.clone());
    assert!(again.contains("disconnect first"), "{again}");
    client.done("disconnect", json!({}));
    let mut other = Client::initialized();
    let exists = other.refused("launch", wanted);
    assert!(exists.contains("already exists; set \"force\""), "{exists}");
}
