//! A path that is written during the run is as small as a path that is built from the recording.

use serde_json::Value;

use crate::common::Sandbox;

/// A program with a loop that takes two paths.
const PROGRAM: &str = r#"(module
  (func (export "_start") (local $i i32)
    (loop $again
      (if (i32.and (local.get $i) (i32.const 64))
        (then (local.set $i (i32.add (local.get $i) (i32.const 3))))
        (else (local.set $i (i32.add (local.get $i) (i32.const 1)))))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 1000000))))))"#;

/// Returns the kinds and names of a recording's sections in use, and its length.
fn sections(sandbox: &Sandbox, file: &str) -> (Vec<(String, String)>, u64) {
    let info = sandbox.ok(&format!("info {file} --format json")).stdout;
    let info: Value = serde_json::from_str(&info).unwrap();
    let all = info["sections"].as_array().unwrap().iter();
    let used = all.filter(|section| section["replaced"] != true);
    let mut found = Vec::from_iter(
        used.map(|section| (section["kind"].to_string(), section["name"].to_string())),
    );
    found.sort();
    (found, info["length"].as_u64().unwrap())
}

#[test]
fn a_path_written_live_keeps_no_words_in_the_finished_file() {
    let sandbox = Sandbox::new();
    sandbox.write("program.wat", PROGRAM);
    sandbox.ok("record --lens paths -o live.aft program.wat");
    sandbox.ok("record -o built.aft program.wat");
    sandbox.ok("build --lens paths built.aft");
    let (live, length) = sections(&sandbox, "live.aft");
    let (built, other) = sections(&sandbox, "built.aft");
    assert_eq!(live, built);
    assert!(
        length <= other + other / 2 + 4096,
        "{length} bytes, built {other}"
    );
}
