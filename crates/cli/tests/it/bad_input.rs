//! Invalid files and arguments lead to one clear sentence and the documented exit code, and nothing
//! is lost.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use afterimage_testkit::tools;

use crate::common::{HELLO, Sandbox};

/// Every command that takes a program.
const OF_PROGRAMS: [&str; 4] = [
    "record -o out.aft --force FILE",
    "profile FILE",
    "cfg FILE --function 0",
    "instrument FILE -o out.wasm",
];
/// Every command that takes a recording.
const OF_RECORDINGS: [&str; 6] = [
    "profile FILE",
    "trace FILE",
    "calls FILE",
    "info FILE",
    "verify FILE",
    "cfg FILE --function 0",
];

fn all_refuse(sandbox: &Sandbox, commands: &[&str], file: &str, code: i32, parts: &[&str]) {
    for command in commands {
        let parts: Vec<&str> = parts.iter().copied().chain([file]).collect();
        sandbox.refused(&command.replace("FILE", file), code, &parts);
    }
    assert!(!sandbox.path("out.aft").exists());
    assert!(!sandbox.path("out.wasm").exists());
}

#[test]
fn programs_that_are_none() {
    let sandbox = Sandbox::new();
    let module = wat::parse_str(HELLO).unwrap();
    sandbox.write("empty.wasm", "");
    sandbox.write("text.wasm", "hello");
    sandbox.write("random.wasm", [0x9c, 0x11, 0xfe, 0x07].repeat(64));
    sandbox.write("cut.wasm", &module[..module.len() - 5]);
    sandbox.write("header.wasm", &module[..8]);
    sandbox.write("component.wasm", b"\0asm\x0d\0\x01\0");
    sandbox.write("broken.wat", "(module (func $f (i32.add)\n");
    sandbox.write("latin.wat", b"(module) ;; \xe9");
    sandbox.write(
        "type.wat",
        "(module (func (export \"_start\") (i32.const 1)))",
    );
    for (file, parts) in [
        ("empty.wasm", &["empty"][..]),
        ("text.wasm", &["not a WebAssembly module"]),
        ("random.wasm", &["not a WebAssembly module"]),
        ("cut.wasm", &["at offset 0x"]),
        ("component.wasm", &["component", "only core modules"]),
        ("broken.wat", &["(at 2:1)"]),
        ("latin.wat", &["UTF-8"]),
        ("type.wat", &["0x"]),
    ] {
        all_refuse(&sandbox, &OF_PROGRAMS, file, 126, parts);
    }
    sandbox.refused(
        "record header.wasm",
        126,
        &["header.wasm", "exports no function"],
    );
    // A module that is cut anywhere is refused, or is a different valid module. The command never
    // panics.
    for length in 0..module.len() {
        sandbox.write("prefix.wasm", &module[..length]);
        let ran = sandbox.run("instrument prefix.wasm -o out.wasm");
        assert!(matches!(ran.code, Some(0 | 126)), "{length}: {ran:?}");
        assert!(!ran.stderr.contains("panicked"), "{length}: {ran:?}");
    }
}

#[test]
fn proposals_that_are_not_supported_are_named() {
    let sandbox = Sandbox::new();
    sandbox.wasm("gc.wasm", "(module (type (struct (field i32))) (func (export \"_start\") (drop (struct.new_default 0))))");
    sandbox.wasm(
        "threads.wasm",
        "(module (memory 1 1 shared) (func (export \"_start\")))",
    );
    sandbox.wasm(
        "legacy.wasm",
        "(module (func (export \"_start\") try nop catch_all end))",
    );
    all_refuse(
        &sandbox,
        &OF_PROGRAMS,
        "gc.wasm",
        126,
        &["garbage collection", "0x"],
    );
    all_refuse(
        &sandbox,
        &OF_PROGRAMS,
        "threads.wasm",
        126,
        &["threads", "0x"],
    );
    all_refuse(
        &sandbox,
        &OF_PROGRAMS,
        "legacy.wasm",
        126,
        &["the legacy encoding of exception handling", "0x"],
    );
}

#[test]
fn files_that_are_not_there_or_cannot_be_read() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("folder")).unwrap();
    all_refuse(
        &sandbox,
        &OF_PROGRAMS,
        "nowhere.wasm",
        127,
        &["No such file"],
    );
    all_refuse(
        &sandbox,
        &OF_RECORDINGS,
        "nowhere.aft",
        127,
        &["No such file"],
    );
    all_refuse(&sandbox, &OF_PROGRAMS, "folder", 125, &["is a folder"]);
    all_refuse(&sandbox, &OF_RECORDINGS, "folder", 125, &["is a folder"]);
    sandbox.wasm("hello.wasm", HELLO);
    sandbox.refused(
        "record --dir nowhere hello.wasm",
        125,
        &["--dir nowhere", "No such file"],
    );
    sandbox.refused(
        "record --dir hello.wasm hello.wasm",
        125,
        &["--dir hello.wasm", "not a folder"],
    );
    sandbox.refused(
        "record --stdin nowhere hello.wasm",
        125,
        &["--stdin nowhere", "No such file"],
    );
    sandbox.refused(
        "record --stdin folder hello.wasm",
        125,
        &["--stdin folder", "folder"],
    );
    assert!(!sandbox.path("hello.aft").exists());
    if rustix::process::geteuid().is_root() {
        tools::skipped("unreadable files, because root reads everything");
        return;
    }
    fs::set_permissions(
        sandbox.path("hello.wasm"),
        fs::Permissions::from_mode(0o000),
    )
    .unwrap();
    all_refuse(
        &sandbox,
        &OF_PROGRAMS,
        "hello.wasm",
        125,
        &["Permission denied"],
    );
}

#[test]
fn imports_that_are_not_wasi() {
    let sandbox = Sandbox::new();
    for (import, parts) in [
        (
            r#"(import "env" "emscripten_notify" (func))"#,
            &["\"env\"", "\"emscripten_notify\"", "WASI preview 1"][..],
        ),
        (
            r#"(import "wasi_snapshot_preview1" "fd_wriet" (func))"#,
            &["\"fd_wriet\"", "WASI preview 1"],
        ),
        (
            r#"(import "wasi_unstable" "fd_write" (func (param i32 i32 i32 i32) (result i32)))"#,
            &["\"wasi_unstable\""],
        ),
        (
            r#"(import "wasi_snapshot_preview1" "fd_write" (func (param i64) (result i32)))"#,
            &["\"fd_write\"", "i64", "i32 i32 i32 i32"],
        ),
        (
            r#"(import "env" "memory" (memory 1))"#,
            &["\"env\"", "\"memory\""],
        ),
        (r#"(import "env" "g" (global i32))"#, &["\"env\"", "\"g\""]),
    ] {
        sandbox.write(
            "imports.wat",
            format!("(module {import} (func (export \"_start\")))"),
        );
        sandbox.refused(
            "record imports.wat",
            126,
            &[&["imports.wat"], parts].concat(),
        );
        sandbox.refused(
            "profile imports.wat",
            126,
            &[&["imports.wat"], parts].concat(),
        );
        assert_eq!(sandbox.names(), ["imports.wat"], "nothing is left behind");
    }
    sandbox.write(
        "memory.wat",
        r#"(module (import "wasi_snapshot_preview1" "sched_yield" (func (result i32))) (func (export "_start")))"#,
    );
    sandbox.refused(
        "record memory.wat",
        126,
        &["memory.wat", "exports no memory"],
    );
}

#[test]
fn what_is_to_be_called_is_not_there() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "library.wat",
        r#"(module (func (export "add") (param i32 i64) (result i64) (local.get 1)))"#,
    );
    sandbox.refused(
        "record library.wat",
        126,
        &["library.wat", "\"_start\"", "--invoke", "add"],
    );
    sandbox.refused("record --invoke sub library.wat", 126, &["\"sub\"", "add"]);
    sandbox.refused(
        "record --invoke add library.wat 1",
        125,
        &["add takes i32 i64", "1 given"],
    );
    sandbox.refused(
        "record --invoke add library.wat 1 x",
        125,
        &["\"x\" is not of type i64"],
    );
    sandbox.refused(
        "record --invoke add library.wat 4294967296 1",
        125,
        &["\"4294967296\" is not of type i32"],
    );
    sandbox.refused(
        "record --invoke add library.wat 1.5 1",
        125,
        &["\"1.5\" is not of type i32"],
    );
    assert_eq!(sandbox.names(), ["library.wat"]);
    let ran = sandbox.run("record --invoke add library.wat -1 -0x10");
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "-16\n"),
        "{ran:?}"
    );
}

#[test]
fn options_with_values_that_mean_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("hello.wat", HELLO);
    sandbox.refused(
        "record --timeout -1 hello.wat",
        125,
        &["--timeout -1", "positive"],
    );
    sandbox.refused(
        "record --timeout 0 hello.wat",
        125,
        &["--timeout 0", "positive"],
    );
    sandbox.refused(
        "record --timeout inf hello.wat",
        125,
        &["--timeout inf", "positive"],
    );
    sandbox.refused(
        "record --timeout nan hello.wat",
        125,
        &["--timeout", "positive"],
    );
    sandbox.refused(
        "record --env =VALUE hello.wat",
        125,
        &["--env =VALUE", "the name is missing"],
    );
    sandbox.refused(
        "record --env NOT_SET_HERE hello.wat",
        125,
        &["--env NOT_SET_HERE", "is not set here", "=VALUE"],
    );
    sandbox.refused("record --stack 1 hello.wat", 125, &["--stack 1", "16"]);
    assert_eq!(sandbox.names(), ["hello.wat"]);
    for words in [
        "record --timeout soon hello.wat",
        "record --timeout 1 --no-clock hello.wat",
        "record --unknown hello.wat",
        "record",
        "profile --by nothing hello.wat",
        "profile --annotate --by block hello.wat",
        "unknown",
    ] {
        let ran = sandbox.run(words);
        assert_eq!(ran.code, Some(125), "{words}: {ran:?}");
        assert!(
            ran.stderr.starts_with("error: ") && ran.stdout.is_empty(),
            "{words}: {ran:?}"
        );
    }
    // Everything after the program belongs to the guest, with and without the dashes.
    for words in [
        "record --force hello.wat --unknown",
        "record --force hello.wat -- --unknown",
    ] {
        assert_eq!(sandbox.run(words).code, Some(3), "{words}");
    }
}

#[test]
fn words_of_the_command_line_that_are_not_utf8() {
    let sandbox = Sandbox::new();
    let word = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    let program = word(b"na\xffme.wat");
    fs::write(sandbox.path("x").with_file_name(&program), HELLO).unwrap();
    let ran =
        crate::common::ran(&mut sandbox.command(["record".into(), "-q".into(), program.clone()]));
    assert_eq!(ran.code, Some(3), "a path may be anything: {ran:?}");
    let words = ["record".into(), "--force".into(), program, word(b"\xff")];
    let ran = crate::common::ran(&mut sandbox.command(words));
    ran.is_refusal("record with a broken argument", 125, &["\\xFF", "UTF-8"]);
}

#[test]
fn standard_input_that_cannot_be_read_is_the_guests_affair() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "read.wat",
        r#"(module
          (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
          (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
          (memory (export "memory") 1)
          (data (i32.const 0) "\10\00\00\00\06\00\00\00")
          (func $read (result i32) (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
          (func (export "_start") (call $proc_exit (i32.ne (call $read) (i32.const 0)))))"#,
    );
    fs::create_dir(sandbox.path("folder")).unwrap();
    for (line, codes) in [("<folder", [1, 1]), ("<&-", [0, 1]), ("</dev/null", [0, 0])] {
        let ran = sandbox.shell(&format!("$AFTERIMAGE record --force read.wat {line}"));
        assert!(codes.map(Some).contains(&ran.code), "{line}: {ran:?}");
        assert!(!ran.stderr.contains("panicked"), "{line}: {ran:?}");
        sandbox.ok("verify read.aft");
    }
}

#[test]
fn options_that_would_have_no_effect() {
    let sandbox = Sandbox::new();
    sandbox.write("hello.wat", HELLO);
    sandbox.run("record hello.wat");
    let before = sandbox.read("hello.aft");
    sandbox.refused(
        "profile hello.aft --timeout 3",
        125,
        &["hello.aft", "recording", "--timeout"],
    );
    sandbox.refused(
        "profile hello.aft --env A=B",
        125,
        &["hello.aft", "recording", "--env"],
    );
    sandbox.refused(
        "profile hello.aft input.txt",
        125,
        &["hello.aft", "recording", "\"input.txt\""],
    );
    sandbox.refused(
        "profile hello.aft --annotate --format json",
        125,
        &["--annotate", "--format"],
    );
    sandbox.refused("profile hello.aft --by line --format lcov", 125, &["--by"]);
    sandbox.refused(
        "profile hello.aft --limit 3 --format callgrind",
        125,
        &["--limit"],
    );
    sandbox.refused(
        "profile hello.aft --mode feedback",
        125,
        &["--mode feedback", "--weights FILE.aft"],
    );
    sandbox.refused(
        "profile --counters nowhere hello.aft",
        125,
        &["--counters", "program"],
    );
    sandbox.refused(
        "instrument hello.wat -o out.wasm --mode slow --standalone",
        125,
        &["--standalone", "--mode quick"],
    );
    assert_eq!(sandbox.read("hello.aft"), before);
}

#[test]
fn one_kind_of_file_where_another_is_wanted() {
    let sandbox = Sandbox::new();
    sandbox.write("hello.wat", HELLO);
    sandbox.run("record hello.wat");
    sandbox.refused(
        "record -o other.aft hello.aft",
        126,
        &["hello.aft", "recording", "program"],
    );
    sandbox.refused(
        "instrument hello.aft -o out.wasm",
        126,
        &["hello.aft", "recording"],
    );
    sandbox.refused(
        "info hello.wat",
        125,
        &["hello.wat", "not a recording", "afterimage record"],
    );
    sandbox.refused("verify hello.wat", 125, &["hello.wat", "not a recording"]);
    sandbox.write("other.wat", "(module (func (export \"_start\")))");
    sandbox.ok("record other.wat");
    sandbox.refused(
        "profile hello.aft --weights other.aft",
        125,
        &["--weights other.aft", "another program"],
    );
    sandbox.ok("profile hello.aft");
    sandbox.run("record -o again.aft hello.wat");
    sandbox.refused(
        "profile hello.aft --weights again.aft",
        125,
        &["again.aft", "no counts yet", "afterimage profile again.aft"],
    );
    sandbox.refused(
        "profile hello.aft --weights nowhere.aft",
        127,
        &["nowhere.aft"],
    );
    sandbox.refused(
        "profile hello.aft --function fd_write",
        125,
        &["hello.aft", "fd_write is imported"],
    );
    sandbox.refused(
        "profile hello.aft --function nothing",
        125,
        &["hello.aft", "\"nothing\""],
    );
}

#[test]
fn names_and_messages_of_guests_cannot_drive_the_terminal() {
    let sandbox = Sandbox::new();
    let name = r"\1b[31mred\1b]0;title\07";
    sandbox.write(
        "escape.wat",
        format!("(module (func $a (export \"_start\")) (func (export \"{name}\")))"),
    );
    for words in [
        "record --invoke none escape.wat",
        "record escape.wat",
        "info escape.aft",
        "profile escape.aft",
    ] {
        let ran = sandbox.run(words);
        assert!(
            !ran.stderr.contains('\x1b') && !ran.stdout.contains('\x1b'),
            "{words}: {ran:?}"
        );
    }
}

#[test]
fn a_path_is_not_replaced_by_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("hello.wat", HELLO);
    sandbox.run("record hello.wat");
    let before = sandbox.ok("trace hello.aft --limit all").stdout;
    sandbox.refused(
        "build --lens paths --again --window 900_000..1_000_000 hello.aft",
        125,
        &["hello.aft", "would keep no part of the path", "the run has"],
    );
    assert_eq!(sandbox.ok("trace hello.aft --limit all").stdout, before);
    assert!(sandbox.ok("verify hello.aft").stdout.contains("sound"));
}

/// Nothing can be added to a write-protected file, and the message names the remedy.
#[test]
fn recordings_that_cannot_be_written() {
    let sandbox = Sandbox::new();
    sandbox.write("hello.wat", HELLO);
    sandbox.run("record hello.wat");
    let read_only = fs::Permissions::from_mode(0o444);
    fs::set_permissions(sandbox.path("hello.aft"), read_only).unwrap();
    if rustix::process::geteuid().is_root() {
        tools::skipped("recordings that cannot be written, because root writes everything");
        return;
    }
    let remedy = "copy the recording to a folder where it can be written, and ask about the copy";
    for verb in ["trace", "build --lens full"] {
        let parts = ["hello.aft", "Permission denied", remedy];
        sandbox.refused(&format!("{verb} hello.aft"), 125, &parts);
    }
}

/// One message says that lines may be missing, and the other parts of the report are unaffected.
#[test]
fn debug_information_that_cannot_be_read() {
    let sandbox = Sandbox::new();
    let mut module = wat::parse_str(HELLO).unwrap();
    for (name, content) in [
        (".debug_abbrev", &[1, 0x11, 0, 0, 0, 0][..]),
        // The header of a unit of 64 bytes, which are missing.
        (".debug_info", &[64, 0, 0, 0, 5, 0][..]),
    ] {
        let name = [&[name.len() as u8], name.as_bytes()].concat();
        module.extend([0, (name.len() + content.len()) as u8]);
        module.extend(name);
        module.extend(content);
    }
    sandbox.write("hello.wasm", module);
    sandbox.run("record hello.wasm");
    for verb in ["profile", "calls"] {
        let ran = sandbox.run(&format!("{verb} hello.aft"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let said = "hello.aft: part of the program's debug information cannot be read";
        assert_eq!(ran.stderr.matches(said).count(), 1, "{ran:?}");
        assert!(!ran.stdout.is_empty(), "{ran:?}");
    }
}

/// A pipe, a device or a folder in place of a file is refused at once, without waiting for it.
#[test]
fn what_is_no_file_is_refused_and_not_waited_for() {
    let sandbox = Sandbox::new();
    sandbox.write("hello.wat", HELLO);
    sandbox.run("record hello.wat");
    sandbox.ok("build --lens full hello.aft");
    fs::create_dir(sandbox.path("folder")).unwrap();
    let made = sandbox.shell("mkfifo pipe && ln -s pipe link && ln -s /dev/zero zero");
    assert_eq!(made.code, Some(0), "{made:?}");
    for file in ["pipe", "link", "zero", "folder"] {
        for words in [
            "info FILE",
            "verify FILE",
            "profile FILE",
            "profile hello.aft --mode feedback --weights FILE",
            "profile hello.wat --counters FILE",
            "trace FILE",
            "state FILE --at end",
            "slice FILE --at main",
            "why FILE --trap",
            "diff hello.aft FILE",
            "match FILE hello.aft",
            "build --lens full FILE",
            "export FILE --format collapsed",
            "cfg FILE --function main",
            "instrument FILE -o out.wasm",
            "record FILE",
            "record -o FILE hello.wat",
            "record --force -o FILE hello.wat",
        ] {
            let words = words.replace("FILE", file);
            let ran = sandbox.shell(&format!("exec timeout 60 $AFTERIMAGE {words}"));
            ran.is_refusal(&words, 125, &[file]);
        }
    }
    // A report may go to a pipe that has no reader yet.
    for words in ["profile hello.aft -o pipe", "instrument hello.wat -o pipe"] {
        let ran = sandbox.shell(&format!("exec timeout 60 $AFTERIMAGE {words}"));
        ran.is_refusal(words, 125, &["pipe", "nobody reads"]);
        let ran = sandbox.shell(&format!(
            "cat pipe >read & for try in 1 2 3 4 5 6 7 8 9; do $AFTERIMAGE {words}; code=$?; \
             [ $code = 0 ] && break; sleep 0.2; done; [ $code = 0 ] || kill $!; wait; exit $code"
        ));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(sandbox.read("read").len() > 50);
    }
    // A guest that reads from a pipe waits for a writer; a signal or the time limit ends the wait.
    let ran = sandbox.shell("echo x >pipe & $AFTERIMAGE record --force --stdin pipe hello.wat; code=$?; wait; exit $code");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let ran =
        sandbox.shell("timeout 1 $AFTERIMAGE record -o waits.aft --stdin pipe hello.wat; echo $?");
    assert_eq!(ran.stdout, "124\n", "{ran:?}");
    let ran = sandbox.shell(
        "exec timeout 60 $AFTERIMAGE record -o waits.aft --timeout 0.1 --stdin pipe hello.wat",
    );
    ran.is_refusal("record --stdin pipe", 124, &["interrupted"]);
    assert!(!sandbox.path("waits.aft").exists());
}

#[test]
fn options_that_the_guest_gets_are_said() {
    let sandbox = Sandbox::new();
    sandbox.write("hello.wat", HELLO);
    for (words, said) in [
        (
            "record --force hello.wat -o y.aft",
            Some("-o comes after the program"),
        ),
        (
            "record --force hello.wat x -q",
            Some("-q comes after the program"),
        ),
        (
            "record --force hello.wat --output=y.aft",
            Some("--output=y.aft comes after the program"),
        ),
        (
            "record --force hello.wat --lens paths",
            Some("--lens comes after the program"),
        ),
        ("record --force hello.wat -x --oh -", None),
        ("record --force hello.wat -- -o y.aft", None),
        ("record --force hello.wat x -- -o y.aft", None),
    ] {
        let ran = sandbox.run(words);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        let found = ran.stderr.lines().find(|line| line.contains("comes after"));
        assert_eq!(found.is_some(), said.is_some(), "{words}: {ran:?}");
        assert!(
            ran.stderr.contains(said.unwrap_or_default()),
            "{words}: {ran:?}"
        );
        assert!(!sandbox.path("y.aft").exists(), "the guest got it");
    }
}

/// Even with `--quiet`, failures are reported.
#[test]
fn a_quiet_recording_that_fails_says_why() {
    let sandbox = Sandbox::new();
    sandbox.write("hello.wat", HELLO);
    let ran = sandbox.run("record -q hello.wat");
    assert_eq!((ran.code, &*ran.stderr), (Some(3), ""));
    let traps =
        "(module (func (export \"_start\") unreachable) (func (export \"spin\") (loop (br 0))))";
    sandbox.write("traps.wat", traps);
    for (words, code, said) in [
        ("record -q --force traps.wat", 134, "traps.wat trapped"),
        (
            "record -q --force --lens full traps.wat",
            134,
            "traps.wat trapped",
        ),
        (
            "record -q --force --invoke spin --timeout 0.05 traps.wat",
            124,
            "time limit",
        ),
    ] {
        let ran = sandbox.run(words);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(ran.stderr.contains(said), "{ran:?}");
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    }
    sandbox.refused("record -q traps.wat", 125, &["traps.aft already exists"]);
    sandbox.refused("record -q nowhere.wat", 127, &["nowhere.wat"]);
}
