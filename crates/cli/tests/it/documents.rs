//! The commands' JSON conforms to the schemas in `docs/json`, as judged by another program,
//! Python's `jsonschema`.

use std::path::Path;

use afterimage_testkit::tools;
use serde_json::Value;

use crate::common::Sandbox;
use crate::explorer_holds::Page;

const PROGRAM: &str = r#"(module
  (memory (export "memory") 1)
  (func $add (param i32 i32) (result i32)
    (i32.add (local.get 0) (local.get 1)))
  (func $main (export "_start") (local $i i32)
    (loop $again
      (i32.store (i32.mul (local.get $i) (i32.const 4))
        (call $add (i32.load (i32.const 0)) (local.get $i)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 20))))))"#;

/// Checks each line: a head by its own schema, and the following lines by the schema of the rows.
/// No line has a field that its schema does not name.
const JUDGE: &str = r#"
import json, sys
from pathlib import Path
from jsonschema import Draft202012Validator

folder, seen = Path(sys.argv[1]), set()

def judge(name):
    path = folder / (name + ".schema.json")
    return Draft202012Validator(json.loads(path.read_text())) if path.exists() else None

def names(root, part):
    if "$ref" in part:
        part = {**part, **root["$defs"][part["$ref"].split("/")[-1]]}
    parts = [one for key in ("oneOf", "anyOf", "allOf") for one in part.get(key, [])]
    return set(part.get("properties", {})).union(*(names(root, one) for one in parts))

for path in sys.argv[2:]:
    head = rows = None
    for line in Path(path).read_text().splitlines():
        row = json.loads(line)
        if "schema" in row:
            name = row["schema"].split("/")[1]
            seen.add(name)
            head, rows = judge(name), judge(name + ".rows")
        by = head if "schema" in row else rows
        if by is None:
            sys.exit(f"{path}: no schema for {line[:300]}")
        for error in by.iter_errors(row):
            sys.exit(f"{path}: {line[:300]}: {error.message} at {list(error.absolute_path)}")
        if unknown := set(row) - names(by.schema, by.schema):
            sys.exit(f"{path}: {line[:300]}: not in the schema: {sorted(unknown)}")
print(*sorted(seen))
"#;

#[test]
fn documents_are_what_their_schemas_say() {
    let has = tools::command("python3")
        .args(["-c", "import jsonschema"])
        .output();
    if !has.is_ok_and(|ran| ran.status.success()) {
        tools::skipped("Python's jsonschema is not installed");
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("a.wat", PROGRAM);
    sandbox.write("b.wat", PROGRAM.replace("const 20", "const 21"));
    sandbox.ok("record --lens full a.wat");
    sandbox.ok("record --lens full b.wat");
    sandbox.ok("record -o c.aft a.wat");
    let instructions = sandbox.ok("profile --by instruction --format json a.aft");
    let instructions: Value = serde_json::from_str(&instructions.stdout).unwrap();
    let at = |text: &str| {
        let mut rows = instructions["rows"].as_array().unwrap().iter();
        let row = rows.find(|row| row["text"].as_str().unwrap().starts_with(text));
        format!("@{:#x}", row.unwrap()["offset"].as_u64().unwrap())
    };
    let (add, load) = (at("i32.add"), at("i32.load"));
    let mut files = Vec::new();
    for words in [
        "profile --by function a.aft".to_owned(),
        "profile --by line a.aft".to_owned(),
        "profile --by block a.aft".to_owned(),
        "profile --by edge a.aft".to_owned(),
        "profile --by instruction a.aft".to_owned(),
        "profile a.aft c.aft".to_owned(),
        "profile a.aft --compare b.aft".to_owned(),
        "profile --by line a.aft --compare c.aft".to_owned(),
        "trace --level block a.aft".to_owned(),
        "trace --level path a.aft".to_owned(),
        "trace --level call a.aft".to_owned(),
        "trace --level statement a.aft".to_owned(),
        "trace --level memory --reverse a.aft".to_owned(),
        "paths a.aft".to_owned(),
        "paths --hot a.aft".to_owned(),
        "paths --function main a.aft".to_owned(),
        "calls a.aft".to_owned(),
        "calls --function add --call 2 a.aft".to_owned(),
        "cfg --function main --counters quick a.wat".to_owned(),
        "cfg --function main --dynamic --call 1 a.aft".to_owned(),
        "memory --address 16 --at 50% a.aft".to_owned(),
        "memory --address 16 --all a.aft".to_owned(),
        "addresses --all a.aft".to_owned(),
        "addresses --all --each a.aft".to_owned(),
        format!("addresses --at {load} a.aft"),
        format!("addresses --at {load} --stats a.aft"),
        format!("values --at {add} a.aft"),
        format!("values --at {load} --histogram a.aft"),
        "values --loads a.aft".to_owned(),
        "values --loads --each a.aft".to_owned(),
        "state --at add#3 --globals a.aft".to_owned(),
        "state --at end a.aft".to_owned(),
        format!("slice --at {add}#last a.aft"),
        format!("why --at {add}#last a.aft"),
        format!("deps --at {add}#last --depth 3 a.aft"),
        format!("deps --at {load}#2 --forward --depth 3 a.aft"),
        "why-not --at add --after add#last a.aft".to_owned(),
        format!("dataflow --fact available:{load} a.aft"),
        "redundancy --paths 2 a.aft".to_owned(),
        "redundancy --expressions a.aft".to_owned(),
        "simulate --cache 1k,2,32 --cache2 4k,4,32 a.aft".to_owned(),
        "simulate --branch-predictor gshare --by instruction a.aft".to_owned(),
        "simulate --branch-predictor gshare --by function a.aft".to_owned(),
        format!("simulate --cache 1k,2,32 --at {load} a.aft"),
        "simulate --worst --cache 1k,2,32 a.aft".to_owned(),
        "diff a.aft b.aft".to_owned(),
        "diff a.aft a.aft".to_owned(),
        "match a.aft b.aft".to_owned(),
        "diff --pass a.aft --fail c.aft".to_owned(),
        "instrument a.wat -o c.wasm".to_owned(),
        "info --sizes a.aft".to_owned(),
        "verify a.aft".to_owned(),
    ] {
        let name = format!("{}.json", files.len());
        let (command, rest) = words.split_once(' ').unwrap();
        let ran = sandbox.ok(&format!("{command} --format json {rest}"));
        files.push(sandbox.write(&name, ran.stdout));
    }
    let page = Page::of(&sandbox, "a.aft");
    for (question, options) in [
        ("files", &[][..]),
        ("output", &[]),
        ("names", &[]),
        ("executions", &[("at", "add")]),
        ("moment", &[("at", "add#3")]),
        ("step", &[("at", "add#3"), ("step", "out")]),
        ("flow", &[("function", "add"), ("from", "t=2")]),
    ] {
        let (well, answer, _) = page.ask(question, options);
        assert!(well, "{question}: {answer}");
        files.push(sandbox.write(&format!("{question}.json"), answer));
    }
    let schemas = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json");
    let judged = tools::command("python3")
        .args(["-c", JUDGE])
        .arg(&schemas)
        .args(&files)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&judged.stderr);
    assert!(judged.status.success(), "{said}");
    // Each document is written by one of the commands, except those that need lines or two
    // versions.
    let seen = String::from_utf8_lossy(&judged.stdout);
    let seen: Vec<&str> = seen.split_whitespace().collect();
    for schema in schemas.read_dir().unwrap() {
        let name = schema.unwrap().file_name().into_string().unwrap();
        let name = name.split_once('.').unwrap().0;
        let other = [
            "activation",
            "currency",
            "currencies",
            "variable",
            "condition",
            "source",
            // This document needs input.
            "influence",
            "versions",
        ]
        .contains(&name);
        assert!(other || seen.contains(&name), "nothing wrote {name}");
    }
}
