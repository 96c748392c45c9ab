//! Damaged and hostile recordings: a refusal, or the same answer as before the damage. Never another answer, never a panic.

mod common;

use common::{HELLO, Ran, Sandbox};

const COMMANDS: [&str; 3] = [
    "info FILE",
    "verify FILE",
    "profile FILE --by edge --format csv",
];

fn recorded() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("hello.wat", HELLO);
    assert_eq!(sandbox.run("record hello.wat").code, Some(3));
    sandbox.ok("profile hello.aft");
    sandbox
}

fn asked(sandbox: &Sandbox, command: &str) -> Ran {
    let mut ran = sandbox.run(&command.replace("FILE", "damaged.aft"));
    assert!(matches!(ran.code, Some(0 | 1 | 125)), "{command}: {ran:?}");
    assert!(!ran.stderr.contains("panicked"), "{command}: {ran:?}");
    if ran.code == Some(125) {
        // What is not damaged is told before what is.
        if command.starts_with("info") {
            ran.stdout.clear();
        }
        ran.is_refusal(command, 125, &["damaged.aft"]);
    }
    ran
}

#[test]
fn a_bit_that_flipped_is_found_and_changes_no_answer() {
    let sandbox = recorded();
    let bytes = sandbox.read("hello.aft");
    let right = sandbox
        .ok("profile hello.aft --by edge --format csv")
        .stdout;
    for at in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        sandbox.write("damaged.aft", &damaged);
        let verify = asked(&sandbox, COMMANDS[1]);
        assert_ne!(verify.code, Some(0), "byte {at}: {verify:?}");
        asked(&sandbox, COMMANDS[0]);
        let profile = asked(&sandbox, COMMANDS[2]);
        assert!(
            profile.code != Some(0) || profile.stdout == right,
            "byte {at}: {profile:?}"
        );
    }
}

#[test]
fn a_recording_cut_anywhere_is_what_it_was_before_or_is_refused() {
    let sandbox = recorded();
    let bytes = sandbox.read("hello.aft");
    let right = sandbox
        .ok("profile hello.aft --by edge --format csv")
        .stdout;
    let mut complete = 0;
    for length in (0..bytes.len()).step_by(11) {
        sandbox.write("damaged.aft", &bytes[..length]);
        asked(&sandbox, COMMANDS[0]);
        asked(&sandbox, COMMANDS[1]);
        let profile = asked(&sandbox, COMMANDS[2]);
        if profile.code == Some(0) {
            complete += 1;
            assert_eq!(profile.stdout, right, "cut at {length}");
            sandbox.ok("verify damaged.aft");
        }
    }
    assert!(
        complete > 0,
        "cut in what was appended, the recording is there"
    );
}

#[test]
fn a_path_that_is_damaged_is_built_again() {
    let sandbox = recorded();
    let bare = sandbox.read("hello.aft").len();
    let right = sandbox.ok("trace hello.aft").stdout;
    let bytes = sandbox.read("hello.aft");
    let mut refused = 0;
    for at in (bare..bytes.len()).step_by(19) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        sandbox.write("damaged.aft", &damaged);
        let ran = asked(&sandbox, "trace FILE");
        if ran.code == Some(0) {
            assert_eq!(ran.stdout, right, "byte {at}");
            continue;
        }
        assert!(ran.stderr.contains("--again"), "byte {at}: {ran:?}");
        refused += 1;
        sandbox.ok("build --lens paths --again damaged.aft");
        assert_eq!(sandbox.ok("trace damaged.aft").stdout, right, "byte {at}");
    }
    assert!(refused > 3, "{refused} of {} bytes", bytes.len() - bare);
}

#[test]
fn files_that_only_look_like_recordings() {
    let sandbox = Sandbox::new();
    sandbox.write("empty.aft", "");
    sandbox.write("random.aft", [0x9c, 0x11, 0xfe, 0x07].repeat(64));
    sandbox.write("label.aft", b"\x89AFT");
    sandbox.write("zeros.aft", [b"\x89AFT".as_slice(), &[0; 500]].concat());
    sandbox.write("ones.aft", [b"\x89AFT".as_slice(), &[0xff; 500]].concat());
    for (file, part) in [
        ("empty.aft", "empty"),
        ("random.aft", "not a recording"),
        ("label.aft", ""),
        ("zeros.aft", ""),
        ("ones.aft", ""),
    ] {
        for command in COMMANDS {
            sandbox.refused(&command.replace("FILE", file), 125, &[file, part]);
        }
    }
}

#[test]
fn counts_are_made_again_when_only_they_are_lost() {
    let sandbox = recorded();
    let with = sandbox.read("hello.aft");
    sandbox.run("record -o bare.aft hello.wat");
    let bare = sandbox.read("bare.aft");
    sandbox.write("damaged.aft", &with[..bare.len().min(with.len()) + 20]);
    let info = sandbox.ok("info damaged.aft");
    assert!(
        info.stdout.contains("lenses    none yet") && info.stdout.contains("ignored"),
        "{info:?}"
    );
    sandbox.ok("profile damaged.aft");
    sandbox.ok("verify damaged.aft");
    assert!(
        sandbox
            .ok("info damaged.aft")
            .stdout
            .contains("lenses    counts")
    );
}

#[test]
fn a_recording_that_cannot_be_written_is_still_profiled() {
    let sandbox = recorded();
    sandbox.run("record -o bare.aft hello.wat");
    let right = sandbox.ok("profile hello.aft --format csv").stdout;
    let ran = sandbox.shell("$AFTERIMAGE profile /dev/fd/3 --format csv 3<bare.aft");
    assert!(
        ran.code == Some(0) && ran.stdout == right || ran.code == Some(125),
        "{ran:?}"
    );
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
}
