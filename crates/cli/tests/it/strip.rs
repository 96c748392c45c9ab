//! Tests the parts that `strip` drops from a recording. The remaining answers are unchanged.

use afterimage_trace::{Kind, TraceFile};

use crate::common::{HELLO, Sandbox};

fn kinds(sandbox: &Sandbox, name: &str) -> Vec<Kind> {
    let file = TraceFile::open(&sandbox.path(name)).unwrap();
    let sections = file.sections().unwrap();
    sections.iter().map(|section| section.kind).collect()
}

#[test]
fn what_can_be_made_again_is_dropped() {
    let sandbox = Sandbox::new();
    sandbox.write("hello.wat", HELLO);
    sandbox.run("record hello.wat");
    let bare = kinds(&sandbox, "hello.aft");
    let bytes = sandbox.read("hello.aft").len();
    let questions = [
        "profile hello.aft --by edge --format csv",
        "trace hello.aft --level statement --format json",
        "simulate hello.aft --branch-predictor bimodal --format json",
        "why hello.aft --stdout 1",
    ];
    let answers = questions.map(|words| sandbox.ok(words).stdout);
    sandbox.ok("build --lens full hello.aft");
    assert!(sandbox.read("hello.aft").len() > bytes);
    let ran = sandbox.ok("strip hello.aft");
    assert!(ran.stderr.contains("hello.aft: "), "{ran:?}");
    assert_eq!(kinds(&sandbox, "hello.aft"), bare);
    sandbox.ok("verify hello.aft");
    let again = questions.map(|words| sandbox.ok(words).stdout);
    assert_eq!(answers, again);

    // Nothing can be rebuilt for a recording that was cut off.
    let mut cut = sandbox.read("hello.aft");
    cut.truncate(bytes / 2);
    sandbox.write("cut.aft", &cut);
    let words = "strip cut.aft";
    let refused = sandbox.run(words);
    refused.is_refusal(words, 125, &["cut.aft"]);
    assert_eq!(sandbox.read("cut.aft"), cut);
    sandbox
        .run("strip none.aft")
        .is_refusal("strip none.aft", 127, &["none.aft"]);
}

#[test]
fn with_an_output_the_recording_stays() {
    let sandbox = Sandbox::new();
    sandbox.write("hello.wat", HELLO);
    sandbox.run("record hello.wat");
    sandbox.ok("build --lens paths hello.aft");
    let whole = sandbox.read("hello.aft");
    let (bare, shared) = (
        "strip hello.aft -o bare.aft",
        "strip --inputs hello.aft -o shared.aft",
    );
    for (words, name) in [(bare, "bare.aft"), (shared, "shared.aft")] {
        let ran = sandbox.ok(words);
        assert!(ran.stderr.contains(name), "{ran:?}");
        assert_eq!(sandbox.read("hello.aft"), whole);
        sandbox.ok(&format!("info {name}"));
        // A second copy would overwrite the first.
        sandbox.run(words).is_refusal(words, 125, &[name, "-o"]);
    }
    assert!(!kinds(&sandbox, "bare.aft").contains(&Kind::PATHS));
    assert!(kinds(&sandbox, "shared.aft").contains(&Kind::PATHS));
    // The run was counted before its input was removed.
    assert!(!kinds(&sandbox, "hello.aft").contains(&Kind::COUNTS));
    let counted = |name| {
        sandbox
            .ok(&format!("profile {name} --by edge --format csv"))
            .stdout
    };
    assert_eq!(counted("shared.aft"), counted("hello.aft"));
    // A recording that cannot be stripped leaves no copy.
    sandbox.run("record -o new.aft hello.wat");
    let words = "strip --inputs new.aft -o none.aft";
    sandbox
        .run(words)
        .is_refusal(words, 125, &["afterimage profile new.aft"]);
    assert!(!sandbox.path("none.aft").exists());
}

#[test]
fn damage_is_found_before_anything_is_dropped() {
    let sandbox = Sandbox::new();
    sandbox.write("hello.wat", HELLO);
    sandbox.run("record hello.wat");
    let bare = sandbox.read("hello.aft");
    sandbox.ok("profile hello.aft");
    let whole = sandbox.read("hello.aft");
    sandbox.ok("strip hello.aft");
    let stripped = sandbox.read("hello.aft");
    assert!(stripped.len() < whole.len());
    let again = sandbox.ok("strip hello.aft");
    assert!(again.stderr.contains("nothing to remove"), "{again:?}");
    let (mut refused, mut dropped) = (0, 0);
    for at in (0..whole.len()).step_by(7) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        sandbox.write("damaged.aft", &damaged);
        let ran = sandbox.run("strip damaged.aft");
        let left = sandbox.read("damaged.aft");
        match ran.code {
            // The damaged part was dropped, or did not belong to the recording.
            Some(0) if left == stripped || left == bare => dropped += 1,
            Some(125) if left == damaged => refused += 1,
            _ => panic!("byte {at}: {ran:?}"),
        }
    }
    assert!(refused > 20 && dropped > 0, "{refused}, {dropped}");
}

#[cfg(unix)]
#[test]
fn permissions_stay() {
    use std::fs::{Permissions, metadata, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    let sandbox = Sandbox::new();
    sandbox.write("hello.wat", HELLO);
    sandbox.run("record hello.wat");
    sandbox.ok("profile hello.aft");
    let at = sandbox.path("hello.aft");
    set_permissions(&at, Permissions::from_mode(0o600)).unwrap();
    sandbox.ok("strip hello.aft");
    assert_eq!(metadata(&at).unwrap().permissions().mode() & 0o777, 0o600);
}
