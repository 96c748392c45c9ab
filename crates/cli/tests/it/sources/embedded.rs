//! Tests sources embedded in a recording, and files that must not be embedded.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use afterimage_trace::{Kind, TraceFile};

use super::{LINE, TEXT};
use crate::common::Sandbox;

/// Writes a program whose debug information says that its source is at `path`.
fn program(sandbox: &Sandbox, path: &str, name: &str) {
    let mut parser = wat::Parser::new();
    parser.generate_dwarf(wat::GenerateDwarf::Full);
    let module = parser.parse_str(Some(path.as_ref()), TEXT).unwrap();
    sandbox.write(name, module);
}

/// Writes a folder with a source file, and a program made from it.
fn with_source(sandbox: &Sandbox) {
    fs::create_dir(sandbox.path("src")).unwrap();
    sandbox.write("src/count.wat", TEXT);
    program(sandbox, "src/count.wat", "count.wasm");
}

const RECORD: &str = "record --force --invoke count";

#[test]
fn embedded_sources_are_shown_where_the_files_are_not() {
    let sandbox = Sandbox::new();
    with_source(&sandbox);
    let ran = sandbox.run(&format!("{RECORD} --sources src count.wasm 3"));
    assert_eq!(ran.code, Some(134), "{ran:?}");
    let listed = format!(
        "afterimage: embedding 1 source file, {} bytes, in count.aft:\nafterimage:   src/count.wat, {0} bytes\n",
        TEXT.len()
    );
    assert!(ran.stderr.starts_with(&listed), "{ran:?}");
    // The files on disk have changed. Sources in the recording are preferred.
    sandbox.write("src/count.wat", TEXT.replace("(br_if", "(;other;) (br_if"));
    fs::create_dir(sandbox.path("new")).unwrap();
    sandbox.write("new/count.wat", TEXT.replace("(br_if", "(;moved;) (br_if"));
    for words in [
        "profile count.aft --annotate",
        "why count.aft --trap",
        "why count.aft --trap --source-path src=new",
        "trace count.aft --level line",
        "slice count.aft --trap --annotate",
    ] {
        let ran = sandbox.ok(words);
        assert!(ran.stdout.contains(LINE), "{words}: {ran:?}");
        assert!(!ran.stdout.contains(";) (br_if"), "{words}: {ran:?}");
    }
    let info = sandbox.ok("info --sources count.aft").stdout;
    let said = format!(
        "\n  1 source file, {} bytes\n    src/count.wat, {0} bytes\n",
        TEXT.len()
    );
    assert!(info.contains(&said), "{info}");
    let json = sandbox.ok("info --format json count.aft").stdout;
    assert!(json.contains("\"sources\":{\"files\":1,"), "{json}");
    sandbox.ok("verify count.aft");
    // Embedded sources cannot be made again.
    sandbox.ok("strip count.aft");
    assert!(sandbox.ok("why count.aft --trap").stdout.contains(LINE));
    let bare = sandbox.run(&format!("{RECORD} -o bare.aft count.wasm 3"));
    assert!(!bare.stderr.contains("embedding"), "{bare:?}");
    // If only one of two recordings has the sources, both use them.
    sandbox.ok("build --lens full bare.aft");
    let told = sandbox.ok("diff --pass bare.aft --fail count.aft");
    assert_eq!(told.stderr, "");
    let quiet = sandbox.run(&format!("{RECORD} -q --sources src count.wasm 3"));
    assert!(!quiet.stderr.contains("embedding"), "{quiet:?}");
}

#[test]
fn nothing_outside_the_roots_is_embedded() {
    let sandbox = Sandbox::new();
    let secret = sandbox.write("secret.wat", "do not share");
    for folder in ["src", "src/inner", "far", "srcs"] {
        fs::create_dir(sandbox.path(folder)).unwrap();
    }
    let embeds = |path: &str| {
        program(&sandbox, path, "count.wasm");
        let words = format!("{RECORD} --sources src count.wasm 3");
        let ran = sandbox.run(&words);
        let bytes = match ran.code {
            Some(134) => sandbox.read("count.aft"),
            _ => Vec::new(),
        };
        let file = TraceFile::from_bytes(bytes).ok();
        let sources = file.and_then(|file| file.sources().unwrap());
        let text = sources.and_then(|sources| sources.read(path).unwrap());
        (text.map(|text| String::from_utf8(text).unwrap()), ran)
    };
    // A file beside the root, one reached by a path that leads up, one by an absolute path, and one
    // in a folder whose name begins like the root's.
    sandbox.write("srcs/a.wat", "do not share");
    let absolute = secret.to_str().unwrap();
    for path in ["secret.wat", "src/../secret.wat", absolute, "srcs/a.wat"] {
        let (text, ran) = embeds(path);
        assert_eq!(text, None, "{path}");
        assert_eq!(ran.code, Some(125), "{path}: {ran:?}");
        let said = "--sources: no source file of the program is in the given folders; 1 is in other folders, and 0 were not found";
        assert!(ran.stderr.contains(said), "{path}: {ran:?}");
    }
    // These links to a file and a folder lead out of the root.
    symlink(&secret, sandbox.path("src/link.wat")).unwrap();
    symlink(sandbox.path(""), sandbox.path("src/up")).unwrap();
    for path in ["src/link.wat", "src/up/secret.wat"] {
        let (text, ran) = embeds(path);
        assert_eq!(text, None, "{path}");
        let said = format!("{path} leads out of the folders of --sources, to ");
        assert!(ran.stderr.contains(&said), "{path}: {ran:?}");
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    }
    // Links that stay inside are followed, and so is a root that is a link.
    sandbox.write("src/inner/own.wat", TEXT);
    symlink("inner/own.wat", sandbox.path("src/own.wat")).unwrap();
    assert_eq!(embeds("src/own.wat").0.as_deref(), Some(TEXT));
    symlink(sandbox.path("src"), sandbox.path("root")).unwrap();
    program(&sandbox, "src/inner/own.wat", "count.wasm");
    let ran = sandbox.run(&format!("{RECORD} --sources root count.wasm 3"));
    assert!(ran.stderr.contains("embedding 1 source file"), "{ran:?}");
    // A moved path is searched for at its new place, and must also be in the root.
    program(&sandbox, "/build/app/own.wat", "count.wasm");
    let moved = format!("{RECORD} --source-path /build/app=src/inner --sources");
    let ran = sandbox.run(&format!("{moved} src count.wasm 3"));
    assert!(
        ran.stderr
            .contains("  /build/app/own.wat from src/inner/own.wat, "),
        "{ran:?}"
    );
    let ran = sandbox.run(&format!("{moved} far count.wasm 3"));
    assert_eq!(ran.code, Some(125), "{ran:?}");
}

#[test]
fn what_cannot_be_embedded_is_named() {
    let sandbox = Sandbox::new();
    with_source(&sandbox);
    sandbox.write("file", "");
    let parts = ["--sources nowhere", "No such file"];
    sandbox.refused(
        &format!("{RECORD} --sources nowhere count.wasm 3"),
        125,
        &parts,
    );
    let parts = ["--sources file: not a folder"];
    sandbox.refused(
        &format!("{RECORD} --sources file count.wasm 3"),
        125,
        &parts,
    );
    let parts = ["--source-path", "--sources"];
    sandbox.refused(
        &format!("{RECORD} --source-path src=src count.wasm 3"),
        125,
        &parts,
    );
    sandbox.wasm("plain.wasm", TEXT);
    let parts = ["--sources: no source file is known"];
    sandbox.refused(&format!("{RECORD} --sources src plain.wasm 3"), 125, &parts);
    assert!(!sandbox.path("plain.aft").exists(), "nothing was recorded");
    // This file exists, but cannot be read.
    fs::set_permissions(
        sandbox.path("src/count.wat"),
        fs::Permissions::from_mode(0o000),
    )
    .unwrap();
    if fs::read(sandbox.path("src/count.wat")).is_err() {
        let ran = sandbox.run(&format!("{RECORD} --sources src count.wasm 3"));
        assert!(
            ran.stderr.contains("src/count.wat: Permission denied"),
            "{ran:?}"
        );
        assert_eq!(ran.code, Some(134));
    }
    fs::remove_file(sandbox.path("src/count.wat")).unwrap();
    let parts = [
        "no source file of the program is in the given folders",
        "1 was not found",
    ];
    sandbox.refused(&format!("{RECORD} --sources src count.wasm 3"), 125, &parts);
    let large = fs::File::create(sandbox.path("src/count.wat")).unwrap();
    large.set_len((64 << 20) + 1).unwrap();
    sandbox.refused(&format!("{RECORD} --sources src count.wasm 3"), 125, &parts);
}

#[test]
fn hidden_characters_of_embedded_names_stay_hidden() {
    let sandbox = Sandbox::new();
    let name = "src/\u{1b}[2J\u{202e}a\nb.wat";
    fs::create_dir(sandbox.path("src")).unwrap();
    sandbox.write(name, TEXT);
    program(&sandbox, name, "count.wasm");
    let ran = sandbox.run(&format!("{RECORD} --sources src count.wasm 3"));
    let info = sandbox.ok("info --sources count.aft");
    for text in [&ran.stderr, &info.stdout] {
        assert!(text.contains("src/\\u{1b}[2J\\u{202e}a"), "{text}");
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
    }
}

#[test]
fn damaged_sources_are_unsound_and_the_answers_stay() {
    let sandbox = Sandbox::new();
    with_source(&sandbox);
    sandbox.run(&format!("{RECORD} --sources src --lens full count.wasm 3"));
    fs::remove_dir_all(sandbox.path("src")).unwrap();
    let sound = sandbox.read("count.aft");
    let file = TraceFile::from_bytes(sound.clone()).unwrap();
    let first = file.sections().unwrap();
    assert_eq!(first[0].kind, Kind::SOURCES);
    // The first chunk is the file, and the second is the list.
    let list = 16 + 40 + u32::from_le_bytes(sound[16 + 24..16 + 28].try_into().unwrap()) as usize;
    for at in [16 + 40, list + 40] {
        let mut damaged = sound.clone();
        damaged[at] ^= 1;
        sandbox.write("damaged.aft", damaged);
        let verified = sandbox.run("verify damaged.aft");
        assert_eq!(verified.code, Some(1), "{verified:?}");
        assert!(verified.stdout.contains("SOURCES"), "{verified:?}");
        let told = sandbox.ok("why damaged.aft --trap");
        assert!(told.stdout.contains("integer division by zero"), "{told:?}");
        let said = "damaged.aft: its sources cannot be read: chunk ";
        assert_eq!(told.stderr.matches(said).count(), 1, "{told:?}");
        let copied = sandbox.run("verify --repair damaged.aft -o copy.aft");
        assert_eq!(copied.code, Some(0), "{copied:?}");
        assert!(
            copied.stderr.contains("section SOURCES is left out"),
            "{copied:?}"
        );
        fs::remove_file(sandbox.path("copy.aft")).unwrap();
    }
    // `info` also reports damage to the list.
    let info = sandbox.run("info damaged.aft");
    assert_eq!(info.code, Some(125), "{info:?}");
}

/// A program that prints its arguments, a variable and its input.
const GIVEN: &str = r#"(module
  (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_get" (func $env (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\00\10\00\00\00\10\00\00")
  (data (i32.const 32) "file.txt")
  (func (export "_start")
    (drop (call $args (i32.const 1024) (i32.const 1280)))
    (drop (call $env (i32.const 1536) (i32.const 1792)))
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 16)))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 20)))
    (if (i32.eqz (call $open (i32.const 3) (i32.const 0) (i32.const 32) (i32.const 8) (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 24)))
      (then (drop (call $read (i32.load (i32.const 24)) (i32.const 0) (i32.const 1) (i32.const 16)))))))
"#;

/// Words that only the program's inputs have.
const SECRETS: [&str; 5] = [
    "argsecret",
    "envsecret",
    "dirsecret",
    "stdinsecret",
    "filesecret",
];

/// Returns the secrets found anywhere in a recording, compressed or not.
fn secrets(sandbox: &Sandbox, name: &str) -> Vec<&'static str> {
    let file = TraceFile::open(&sandbox.path(name)).unwrap();
    let mut all = sandbox.read(name);
    for position in 0..file.sections().unwrap().len() {
        let mut section = file.section(position).unwrap();
        while section.advance().unwrap() {
            all.extend(section.bytes());
        }
    }
    let has = |word: &&str| {
        all.windows(word.len())
            .any(|bytes| bytes == word.as_bytes())
    };
    SECRETS.into_iter().filter(has).collect()
}

fn given(sandbox: &Sandbox) {
    sandbox.write("given.wat", GIVEN);
    fs::create_dir(sandbox.path("data")).unwrap();
    sandbox.write("data/file.txt", "filesecret");
    sandbox.write("input", "stdinsecret");
    let words =
        "record --dir data::/dirsecret --env NAME=envsecret --stdin input given.wat -- argsecret";
    assert_eq!(sandbox.ok(words).stdout.len(), 4096);
}

#[test]
fn info_says_what_a_recording_tells() {
    let sandbox = Sandbox::new();
    given(&sandbox);
    let info = sandbox.ok("info given.aft").stdout;
    for said in [
        "\nBefore you share this file, note that everyone who receives it learns\n",
        "\n  1 argument\n",
        "\n  1 variable with its value\n",
        "\n  1 name of a folder\n",
        "\n  11 bytes read from standard input\n",
        "\n  10 bytes read from a file (`afterimage build --lens full` finds its path)\n",
        "\n  4,096 bytes written to standard output\n",
        ", without debug information\n",
    ] {
        assert!(info.contains(said), "lacks {said:?}: {info}");
    }
    sandbox.ok("build --lens full given.aft");
    let info = sandbox.ok("info given.aft").stdout;
    let said = "\n  10 bytes read from /dirsecret/file.txt\n";
    assert!(info.contains(said), "{info}");
    let json = sandbox.ok("info --format json given.aft").stdout;
    let said = "{\"stream\":\"file\",\"path\":\"/dirsecret/file.txt\",\"read_bytes\":10,\"written_bytes\":0}";
    assert!(json.contains(said), "{json}");
}

#[test]
fn without_inputs_counts_and_path_stay_and_no_secret() {
    let sandbox = Sandbox::new();
    given(&sandbox);
    assert_eq!(secrets(&sandbox, "given.aft"), SECRETS);
    // The recording would be useless without its inputs.
    let parts = ["neither counts nor a path", "afterimage profile given.aft"];
    sandbox.refused("strip --inputs given.aft", 125, &parts);
    sandbox.ok("build --lens full given.aft");
    let questions = [
        "profile given.aft --by edge --format csv",
        "trace given.aft --level block --format json",
        "trace given.aft --level call",
        "paths given.aft",
        "calls given.aft",
        "export given.aft --format collapsed",
    ];
    let answers = questions.map(|words| sandbox.ok(words).stdout);
    let ran = sandbox.ok("strip --inputs given.aft");
    assert!(
        ran.stderr.contains("the counts, the path and the program"),
        "{ran:?}"
    );
    assert_eq!(secrets(&sandbox, "given.aft"), [] as [&str; 0]);
    assert_eq!(questions.map(|words| sandbox.ok(words).stdout), answers);
    let verified = sandbox.ok("verify given.aft").stdout;
    assert!(
        verified.contains("not re-executed: `afterimage strip --inputs`"),
        "{verified}"
    );
    let info = sandbox.ok("info given.aft").stdout;
    assert!(
        info.contains("it was stripped, and the run cannot be repeated"),
        "{info}"
    );
    for words in [
        "why given.aft --at 4",
        "why given.aft --stdout 1",
        "why-not given.aft --at 5",
        "values given.aft --at 5",
        "state given.aft",
        "slice given.aft --at 5",
        "deps given.aft --at 5",
        "trace given.aft --level statement",
        "memory given.aft --address 0 --at end",
        "addresses given.aft --all",
        "simulate given.aft --branch-predictor bimodal",
        "redundancy given.aft",
        "build --lens full given.aft",
        "build --lens paths --again given.aft",
        "profile given.aft --mode quick",
        "match given.aft given.aft",
        "diff given.aft given.aft",
    ] {
        let said = [
            "given.aft: `afterimage strip --inputs` removed the program's input, so its run cannot be executed or followed again",
        ];
        sandbox.refused(words, 125, &said);
    }
    let said = ["the program's input was stripped"];
    sandbox.refused("strip given.aft", 125, &said);
    // Removed parts stay removed.
    sandbox.ok("strip --inputs given.aft");
}

#[test]
fn without_inputs_a_run_that_failed_is_refused_for_that_reason() {
    let sandbox = Sandbox::new();
    let fails = "(module (func (export \"_start\") (local i32) (loop (local.set 0 (i32.add (local.get 0) (i32.const 1))) (br_if 0 (i32.lt_u (local.get 0) (i32.const 9)))) unreachable))";
    sandbox.write("fails.wat", fails);
    let ran = sandbox.run("record --lens paths fails.wat");
    assert_eq!(ran.code, Some(134), "{ran:?}");
    sandbox.ok("profile fails.aft");
    sandbox.ok("strip --inputs fails.aft");
    let said = ["fails.aft: `afterimage strip --inputs` removed the program's input"];
    sandbox.refused("state fails.aft", 125, &said);
    sandbox.refused("state fails.aft --at 5", 125, &said);
    // A report has the counts, and says why it lacks the output.
    let page = sandbox.ok("report fails.aft").stdout;
    let said = "<h2>Output</h2><p class=\"soft\">Not known: `afterimage strip --inputs` removed";
    assert!(page.contains(said), "{page}");
    assert!(page.contains("The run trapped"), "{page}");
}

#[test]
fn without_inputs_an_invoked_function_has_no_results() {
    let sandbox = Sandbox::new();
    let adds = "(module (func (export \"add\") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))";
    sandbox.write("add.wat", adds);
    sandbox.ok("record --invoke add --lens paths add.wat 123456789 1");
    assert!(
        sandbox
            .ok("info add.aft")
            .stdout
            .contains("\nresult    123456790 ")
    );
    sandbox.ok("strip --inputs add.aft");
    for words in [
        "info add.aft",
        "trace add.aft",
        "trace add.aft --level call",
    ] {
        let told = sandbox.ok(words).stdout;
        assert!(told.contains("add"), "{words}: {told}");
        assert!(!told.contains("1234567"), "{words}: {told}");
    }
}

#[test]
fn a_recording_that_cannot_be_written_stays() {
    let sandbox = Sandbox::new();
    given(&sandbox);
    sandbox.ok("profile given.aft");
    let whole = sandbox.read("given.aft");
    let mut cut = whole.clone();
    cut.truncate(whole.len() / 3);
    sandbox.write("cut.aft", &cut);
    sandbox.refused("strip --inputs cut.aft", 125, &["cut.aft", "cut off"]);
    assert_eq!(sandbox.read("cut.aft"), cut);
    let path = sandbox.path("given.aft");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    if fs::File::options().append(true).open(&path).is_err() {
        sandbox.refused("strip --inputs given.aft", 125, &["given.aft"]);
        assert_eq!(sandbox.read("given.aft"), whole);
    }
    // A recording that is not writable still answers about its sources.
    sandbox.ok("info --sources given.aft");
}
