//! Tests outputs that cannot be written, or that nobody reads. Existing files stay, and a reader
//! that leaves causes no failure.

use std::fs;
use std::process::Stdio;

use afterimage_testkit::modules::{SplitMix64, WANDERER};

use crate::common::{CHATTY, HELLO, Ran, Sandbox, eventually, text};

/// Requests random bytes forever, so that its recording grows as fast as possible.
const RANDOM: &str = r#"(module
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (loop $again (br_if $again (i32.eqz (call $random_get (i32.const 0) (i32.const 4096)))))))"#;

/// All reports on a recording and a program.
const REPORTS: [&str; 20] = [
    "profile hello.aft",
    "profile hello.aft --by line",
    "profile hello.aft --by block",
    "profile hello.aft --by edge",
    "profile hello.aft --by instruction",
    "profile hello.aft --annotate",
    "profile hello.aft --format html",
    "profile hello.aft --format json",
    "profile hello.aft --format csv",
    "profile hello.aft --format callgrind",
    "profile hello.aft --format dot",
    "profile hello.aft --format dot --function main",
    "info hello.aft",
    "info hello.aft --sizes",
    "info hello.aft --format json",
    "verify hello.aft",
    "verify hello.aft --format json",
    "cfg hello.wat --function main",
    "cfg hello.wat --function main --format dot",
    "cfg hello.wat --function main --format json",
];

fn with_recording() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("hello.wat", HELLO);
    let ran = sandbox.run("record hello.wat");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    sandbox
}

#[test]
fn places_where_nothing_can_be_written() {
    let sandbox = with_recording();
    fs::create_dir(sandbox.path("folder")).unwrap();
    let before = sandbox.names();
    for (out, part) in [
        ("nowhere/out", "No such file"),
        ("folder", "folder"),
        ("hello.wat/out", ""),
    ] {
        sandbox.refused(&format!("record -o {out} hello.wat"), 125, &[out, part]);
        sandbox.refused(
            &format!("record --force -o {out} hello.wat"),
            125,
            &[out, part],
        );
        sandbox.refused(&format!("instrument hello.wat -o {out}"), 125, &[out, part]);
        sandbox.refused(&format!("profile hello.aft -o {out}"), 125, &[out, part]);
    }
    sandbox.refused("record -o /dev/null hello.wat", 125, &["/dev/null", "-o"]);
    sandbox.refused(
        "record --force -o hello.wat hello.wat",
        125,
        &["hello.wat is the program itself"],
    );
    sandbox.refused(
        "instrument hello.wat -o ./hello.wat",
        125,
        &["hello.wat is the program itself"],
    );
    assert_eq!(sandbox.names(), before);
    assert_eq!(sandbox.read("hello.wat"), HELLO.as_bytes());
}

#[test]
fn no_report_replaces_a_program_in_text_form() {
    let sandbox = with_recording();
    let commented = format!(";; a line\n(; a (; nested ;) block;) ;; (\n{HELLO}");
    let programs = [
        ("hello.wat", HELLO),
        ("commented.wat", &commented),
        ("field.wat", "( func (export \"_start\"))"),
        ("binary.wasm", "\0asm\u{1}\0\0\0"),
    ];
    for (name, text) in programs {
        sandbox.write(name, text);
        let part = format!("{name} is a module, which no report may replace");
        for format in ["text", "pprof"] {
            let words = format!("profile hello.aft --format {format} -o {name}");
            sandbox.refused(&words, 125, &[&part]);
        }
        assert_eq!(sandbox.read(name), text.as_bytes());
    }
    for (name, text) in [("a.txt", "(modules)"), ("b.txt", "(; open"), ("c.txt", "(")] {
        sandbox.write(name, text);
        sandbox.ok(&format!("profile hello.aft -o {name}"));
    }
}

#[test]
fn an_existing_recording_is_kept_unless_force() {
    let sandbox = with_recording();
    let before = sandbox.read("hello.aft");
    sandbox.refused(
        "record hello.wat",
        125,
        &["hello.aft already exists", "--force", "-o"],
    );
    sandbox.write("precious.txt", "not a recording");
    sandbox.refused(
        "record -o precious.txt hello.wat",
        125,
        &["precious.txt already exists"],
    );
    assert_eq!(sandbox.read("hello.aft"), before);
    assert_eq!(sandbox.read("precious.txt"), b"not a recording");
}

#[test]
fn force_keeps_the_old_recording_until_there_is_a_new_one() {
    let sandbox = with_recording();
    let before = sandbox.read("hello.aft");
    sandbox.write(
        "broken.wat",
        "(module (import \"env\" \"f\" (func)) (func (export \"_start\")))",
    );
    for words in [
        "record --force -o hello.aft broken.wat",
        "record --force --invoke none hello.wat",
        "record --force --dir nowhere hello.wat",
        "record --force --stdin nowhere hello.wat",
        "record --force --env NOT_SET_HERE hello.wat",
    ] {
        let ran = sandbox.run(words);
        assert!(matches!(ran.code, Some(125 | 126)), "{words}: {ran:?}");
        assert_eq!(sandbox.read("hello.aft"), before, "{words}");
        assert_eq!(
            sandbox.names(),
            ["broken.wat", "hello.aft", "hello.wat"],
            "{words} leaves nothing"
        );
    }
    sandbox.write(
        "trap.wat",
        "(module (func (export \"_start\") unreachable))",
    );
    let ran = sandbox.run("record --force -o hello.aft trap.wat");
    assert_eq!(ran.code, Some(134), "a guest that traps has run: {ran:?}");
    assert!(sandbox.ok("info hello.aft").stdout.contains("trapped"));
}

#[test]
fn a_full_disk_keeps_what_was_recorded_and_what_was_there_before() {
    let sandbox = Sandbox::new();
    sandbox.write("random.wat", RANDOM);
    let ran = sandbox.shell("ulimit -f 256; exec $AFTERIMAGE record random.wat");
    ran.is_refusal(
        "record random.wat",
        125,
        &["random.aft", "File too large", "afterimage info random.aft"],
    );
    let info = sandbox.ok("info random.aft");
    assert!(
        info.stdout.contains("the recording was cut off"),
        "{info:?}"
    );
    let verify = sandbox.ok("verify random.aft");
    assert!(verify.stdout.contains("cut off"), "{verify:?}");
    sandbox.refused(
        "profile random.aft",
        125,
        &["random.aft", "cut off", "record the program again"],
    );

    let sandbox = with_recording();
    let before = sandbox.read("hello.aft");
    sandbox.write("random.wat", RANDOM);
    let ran =
        sandbox.shell("ulimit -f 256; exec $AFTERIMAGE record --force -o hello.aft random.wat");
    ran.is_refusal("record --force", 125, &["hello.aft", "File too large"]);
    assert_eq!(sandbox.read("hello.aft"), before);
    // Even the program may not fit, because its random data cannot be compressed.
    let mut random = SplitMix64(1);
    let text = String::from_iter((0..2000).map(|_| format!("{:016x}", random.next())));
    let long =
        format!("(module (memory 1) (data (i32.const 0) \"{text}\") (func (export \"_start\")))");
    sandbox.write("long.wat", long);
    let ran = sandbox.shell("ulimit -f 8; exec $AFTERIMAGE record long.wat");
    ran.is_refusal("record long.wat", 125, &["long.aft", "File too large"]);
    for words in ["info long.aft", "trace long.aft", "verify long.aft"] {
        let ran = sandbox.run(words);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("cut off"), "{words}: {ran:?}");
    }
    sandbox.refused(
        "info long.aft",
        125,
        &[
            "long.aft",
            "cut off",
            "record the program again",
            "make room",
        ],
    );
    // Not even the header fits, so no file is left that a later recording would need `--force` to
    // replace.
    let ran = sandbox.shell("ulimit -f 0; exec $AFTERIMAGE record -o new.aft hello.wat");
    ran.is_refusal("record -o new.aft", 125, &["new.aft", "File too large"]);
    assert!(!sandbox.path("new.aft").exists());
}

#[test]
fn a_full_disk_keeps_older_reports() {
    let sandbox = with_recording();
    // The engine also keeps memories in files, so no program may run from now on.
    sandbox.ok("profile hello.aft");
    for (line, file) in [
        (
            "profile hello.aft --format csv --by instruction -o old",
            "old",
        ),
        ("instrument hello.wat -o old", "old"),
    ] {
        sandbox.write("old", "old");
        let before = sandbox.names();
        let ran = sandbox.shell(&format!("ulimit -f 0; exec $AFTERIMAGE {line}"));
        assert_eq!(ran.code, Some(125), "{line}: {ran:?}");
        assert!(
            ran.stderr.contains("cannot write old: File too large"),
            "{line}: {ran:?}"
        );
        assert_eq!(sandbox.read(file), b"old", "{line}");
        assert_eq!(sandbox.names(), before, "{line}");
    }
}

#[test]
fn counts_that_cannot_be_kept_are_reported_all_the_same() {
    let sandbox = Sandbox::new();
    let some = RANDOM.replace("(func (export", "(global $n (mut i32) (i32.const 99)) (func (export").replace(
        "(i32.eqz (call",
        "(global.set $n (i32.sub (global.get $n) (i32.const 1))) (i32.gt_s (global.get $n) (call",
    );
    sandbox.write("some.wat", some);
    sandbox.ok("record some.wat");
    let before = sandbox.read("some.aft");
    let blocks = before.len() / 512;
    let full = sandbox.shell(&format!(
        "ulimit -f {blocks}; exec $AFTERIMAGE profile some.aft --format csv"
    ));
    assert_eq!(full.code, Some(0), "{full:?}");
    assert!(
        full.stderr.contains("cannot keep the counts in some.aft: "),
        "{full:?}"
    );
    assert_eq!(sandbox.read("some.aft"), before);
    assert_eq!(
        full.stdout,
        sandbox.ok("profile some.aft --format csv").stdout
    );
    assert_ne!(sandbox.read("some.aft"), before, "now they are kept");
    sandbox.ok("verify some.aft");
}

#[test]
fn readers_that_leave_end_every_report_quietly() {
    let sandbox = with_recording();
    for words in REPORTS {
        let mut child = sandbox
            .command(words.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let ran = text(child.wait_with_output().unwrap());
        // These formats say that they leave out calls.
        let told = |ran: &Ran| {
            let lines = ran.stderr.lines();
            let mut lines = lines.filter(|line| !line.starts_with("afterimage: without calls, "));
            lines.next().map(str::to_owned)
        };
        assert_eq!((ran.code, told(&ran)), (Some(0), None), "{words}");
        let ran = sandbox.shell(&format!("$AFTERIMAGE {words} >&-"));
        assert_eq!(
            (ran.code, told(&ran)),
            (Some(0), None),
            "{words} with standard output closed"
        );
        let ran = sandbox.shell(&format!("$AFTERIMAGE {words} >/dev/full"));
        ran.is_refusal(
            words,
            125,
            &["cannot write to standard output", "No space left"],
        );
    }
}

#[test]
fn nobody_reads_remarks_and_errors() {
    let sandbox = with_recording();
    for (words, code) in [
        ("record --force hello.wat", 3),
        ("record nowhere.wat", 127),
        ("profile hello.wat", 0),
        ("profile hello.aft --mode slow", 0),
        ("instrument hello.wat -o out.wasm", 0),
    ] {
        for closing in ["2>/dev/full", "2>&-"] {
            let ran = sandbox.shell(&format!("$AFTERIMAGE {words} {closing}"));
            assert_eq!(ran.code, Some(code), "{words} {closing}: {ran:?}");
        }
        let mut child = sandbox
            .command(words.split_whitespace())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stderr.take());
        assert_eq!(
            child.wait().unwrap().code(),
            Some(code),
            "{words} with a broken standard error"
        );
    }
}

#[test]
fn results_of_an_invoked_function_with_nobody_to_read_them() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "one.wat",
        "(module (func (export \"one\") (result i32) (i32.const 1)))",
    );
    let mut child = sandbox
        .command(["record", "--invoke", "one", "one.wat"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ran = text(child.wait_with_output().unwrap());
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
    sandbox.ok("verify one.aft");
}

#[test]
fn a_guest_learns_that_its_reader_left_and_its_recording_is_whole() {
    let sandbox = Sandbox::new();
    sandbox.write("chatty.wat", CHATTY);
    let mut child = sandbox
        .command(["record", "chatty.wat"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually(|| fs::metadata(sandbox.path("chatty.aft")).is_ok_and(|data| data.len() > 0));
    drop(child.stdout.take());
    let ran = text(child.wait_with_output().unwrap());
    assert_eq!(
        ran.code,
        Some(0),
        "the guest returns when it cannot write: {ran:?}"
    );
    sandbox.ok("verify chatty.aft");
    sandbox.ok("profile chatty.aft --mode slow");
}

#[test]
fn reports_to_files_are_those_on_standard_output() {
    let sandbox = with_recording();
    for (words, old) in [
        ("--format csv", true),
        ("--format json --by edge", false),
        ("--format pprof", true),
    ] {
        if old {
            sandbox.write(
                "report",
                "old and much longer than a report of nothing could ever be",
            );
        }
        let to_file = sandbox.ok(&format!("profile hello.aft {words} -o report"));
        assert_eq!(to_file.stdout, "");
        let to_stdout = sandbox
            .command(format!("profile hello.aft {words}").split(' '))
            .output()
            .unwrap();
        assert_eq!(sandbox.read("report"), to_stdout.stdout, "{words}");
        fs::remove_file(sandbox.path("report")).unwrap();
    }
    let ran = sandbox.shell("$AFTERIMAGE profile hello.aft --format csv -o /dev/stdout | head -1");
    assert!(
        ran.stdout.starts_with("function,"),
        "a pipe by its name: {ran:?}"
    );
    let ran = sandbox.shell("ln -s target link; echo old >target; $AFTERIMAGE profile hello.aft --format csv -o link; test -L link && head -1 target");
    assert!(
        ran.stdout.starts_with("function,"),
        "a link stays a link: {ran:?}"
    );
}

#[test]
fn every_json_document_names_its_schema_and_is_one_line() {
    let sandbox = with_recording();
    sandbox.write("other.wat", "(module (func (export \"_start\")))");
    for (words, schema) in [
        ("profile hello.aft --format json", "profile"),
        ("profile hello.aft --by line --format json", "profile"),
        ("profile hello.aft --by block --format json", "profile"),
        (
            "profile hello.aft --by instruction --format json",
            "profile",
        ),
        ("info hello.aft --format json", "info"),
        ("verify hello.aft --format json", "verify"),
        ("cfg hello.wat --function main --format json", "cfg"),
        (
            "instrument hello.wat -o out.wasm --format json",
            "instrument",
        ),
    ] {
        let out = sandbox.ok(words).stdout;
        assert_eq!(out.lines().count(), 1, "{words}: {out}");
        let document: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(
            document["schema"],
            format!("afterimage/{schema}/2"),
            "{words}"
        );
        let described = include_str!("../../../../docs/JSON.md");
        for field in document.as_object().unwrap().keys() {
            assert!(
                described.contains(&format!("`{field}`")),
                "docs/JSON.md lacks {field} of {schema}"
            );
        }
    }
}

/// No engine runs, so the limit applies only to the recording. Wherever the disk becomes full, the
/// earlier contents of the file stay.
#[test]
fn a_trace_for_which_there_is_no_room_leaves_the_recording_as_it_was() {
    let sandbox = Sandbox::new();
    sandbox.write("wanders.wat", WANDERER);
    sandbox.ok("record --invoke wander wanders.wat 200000");
    sandbox.ok("build --lens paths wanders.aft");
    let before = sandbox.read("wanders.aft");
    sandbox.ok("build --lens full wanders.aft");
    let after = sandbox.read("wanders.aft");
    let enough = after.len().div_ceil(512);
    let mut refused = 0;
    for blocks in (before.len() / 512..=enough).step_by(3).chain([enough]) {
        sandbox.write("some.aft", &before);
        let words = "build --lens full some.aft";
        let ran = sandbox.shell(&format!("ulimit -f {blocks}; exec $AFTERIMAGE {words}"));
        if blocks >= enough {
            assert_eq!(ran.code, Some(0), "{ran:?}");
            continue;
        }
        ran.is_refusal(words, 125, &["some.aft", "File too large"]);
        assert_eq!(sandbox.read("some.aft"), before);
        refused += 1;
    }
    assert!(refused > 3, "the trace is too small for this test");
    sandbox.ok("build --lens full some.aft");
    sandbox.ok("verify some.aft");
}

/// The consumer of the path fails while the guest runs.
#[test]
fn a_path_for_which_there_is_no_room_is_kept_as_far_as_it_goes() {
    let sandbox = Sandbox::new();
    sandbox.write("wanders.wat", WANDERER);
    let ran = sandbox.shell(
        "ulimit -f 6000; exec $AFTERIMAGE record --lens paths --invoke wander wanders.wat 60000000",
    );
    ran.is_refusal("record", 125, &["wanders.aft", "is kept", "large"]);
    let last = sandbox.ok("trace wanders.aft --last 1 --format json");
    let head: serde_json::Value =
        serde_json::from_str(last.stdout.lines().next().unwrap()).unwrap();
    let length = head["length"].as_u64().unwrap();
    assert!((1_000_000..170_000_000).contains(&length), "{head}");
    sandbox.ok("verify wanders.aft");
}
