//! Tests the places where source files are searched for, and the messages about missing files.

mod embedded;

use std::fs;
use std::path::Path;

use crate::common::{Ran, Sandbox, ran};

/// A program that counts, and traps in its last line.
const TEXT: &str = "\
(module
  (memory (export \"memory\") 1)
  (func $count (export \"count\") (param $n i32) (result i32)
    (local $sum i32)
    (loop $again
      (local.set $sum (i32.add (local.get $sum) (local.get $n)))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (if (i32.eqz (local.get $sum))
      (then (i32.store (i32.const 0) (local.get $n))))
    (i32.div_u (local.get $sum) (local.get $n))))
";

/// The beginning of a line that all reports except one show, cut to the width of the narrowest
/// report.
const LINE: &str = "(br_if $again (local.tee $n";

/// Records the program, whose debug information says that its text is at `path`.
fn record(sandbox: &Sandbox, path: &str, out: &str) {
    let mut parser = wat::Parser::new();
    parser.generate_dwarf(wat::GenerateDwarf::Full);
    let module = parser.parse_str(Some(Path::new(path)), TEXT).unwrap();
    sandbox.write("count.wasm", module);
    let ran = sandbox.run(&format!(
        "record --lens full --invoke count -o {out} count.wasm 3"
    ));
    assert_eq!(ran.code, Some(134), "{ran:?}");
}

const MISSING: &str = "afterimage: sources not found: /build/app/src/count.wat; say where they are with --source-path OLD=NEW\n";

#[test]
fn sources_that_were_moved_are_found_by_every_command_that_shows_them() {
    let sandbox = Sandbox::new();
    record(&sandbox, "/build/app/src/count.wat", "a.aft");
    fs::create_dir_all(sandbox.path("here/src")).unwrap();
    sandbox.write("here/src/count.wat", TEXT);
    for words in [
        "profile a.aft --by line",
        "why a.aft --trap",
        "why-not a.aft --at count.wat:9",
        "trace a.aft --level line",
        "slice a.aft --trap --annotate",
        "slice a.aft --trap --format html",
        "diff --pass a.aft --fail b.aft",
    ] {
        if words.starts_with("diff") {
            fs::copy(sandbox.path("a.aft"), sandbox.path("b.aft")).unwrap();
        }
        let without = sandbox.ok(words);
        let line = match words.starts_with("why-not") {
            true => "(if (i32.eqz (local.get $sum))",
            false => LINE,
        };
        assert!(!without.stdout.contains(line), "{words}: {without:?}");
        assert_eq!(without.stderr, MISSING, "{words}");
        let with = sandbox.ok(&format!("{words} --source-path /build/app=here"));
        let text = with.stdout.replace("&#36;", "$");
        assert!(text.contains(line), "{words}: {with:?}");
        assert_eq!(with.stderr, "", "{words}");
    }
    // The report lists the missing files itself.
    let annotated = sandbox.ok("profile a.aft --annotate");
    let listed = "\nSources not found; say where they are with --source-path OLD=NEW:\n";
    assert!(annotated.stdout.contains(listed), "{annotated:?}");
    assert_eq!(annotated.stderr, "");
    let moved = sandbox.ok("profile a.aft --annotate --source-path /build/app/src/=here/src/");
    assert!(moved.stdout.contains(LINE), "{moved:?}");
}

#[test]
fn the_first_place_that_has_a_source_is_taken() {
    let sandbox = Sandbox::new();
    record(&sandbox, "/build/app/count.wat", "a.aft");
    for folder in ["empty", "one", "two", "set"] {
        fs::create_dir(sandbox.path(folder)).unwrap();
    }
    let other = |folder: &str, mark: &str| {
        let text = TEXT.replace("(br_if", &format!("(;{mark};) (br_if"));
        sandbox.write(&format!("{folder}/count.wat"), text);
    };
    other("one", "1");
    other("two", "2");
    other("set", "3");
    let rules = ["empty", "one", "two"].map(|to| format!("--source-path /build/app={to}"));
    let told = sandbox
        .ok(&format!("why a.aft --trap {}", rules.join(" ")))
        .stdout;
    assert!(told.contains("(;1;)"), "{told}");
    // Settings apply to a project, in whichever of its folders a command runs. A path given by a
    // command takes precedence.
    sandbox.write(".afterimage.toml", "source-path = [\"/build/app=set\"]\n");
    let told = sandbox.ok("why a.aft --trap").stdout;
    assert!(told.contains("(;3;)"), "{told}");
    let mut inside = sandbox.command(["why", "../a.aft", "--trap"]);
    let told = ran(inside.current_dir(sandbox.path("empty"))).stdout;
    assert!(told.contains("(;3;)"), "{told}");
    let told = sandbox
        .ok("why a.aft --trap --source-path /build/app=two")
        .stdout;
    assert!(told.contains("(;2;)"), "{told}");
    // A part of a name is not the beginning of a path.
    let told = sandbox
        .ok("why a.aft --trap --source-path /build/a=one")
        .stdout;
    assert!(told.contains("(;3;)"), "{told}");
}

#[test]
fn relative_paths_are_looked_for_here_and_beside_the_recording() {
    let sandbox = Sandbox::new();
    record(&sandbox, "src/count.wat", "a.aft");
    fs::create_dir_all(sandbox.path("far/src")).unwrap();
    fs::create_dir_all(sandbox.path("src")).unwrap();
    fs::rename(sandbox.path("a.aft"), sandbox.path("far/a.aft")).unwrap();
    let missing = sandbox.ok("why far/a.aft --trap").stderr;
    assert!(missing.contains("not found: src/count.wat;"), "{missing}");
    sandbox.write("far/src/count.wat", TEXT);
    let found = sandbox.ok("why far/a.aft --trap");
    assert!(found.stdout.contains(LINE), "{found:?}");
    assert_eq!(found.stderr, "");
    sandbox.write("src/count.wat", TEXT.replace("(br_if", "(;here;) (br_if"));
    let found = sandbox.ok("why far/a.aft --trap").stdout;
    assert!(found.contains("(;here;)"), "{found}");
    fs::remove_dir_all(sandbox.path("src")).unwrap();
    fs::rename(sandbox.path("count.wasm"), sandbox.path("far/count.wasm")).unwrap();
    let found = sandbox.ok("profile --by line --invoke count far/count.wasm 3");
    assert!(found.stdout.contains(LINE), "{found:?}");
}

const COMMIT: &str = "59807616e1fa2540724bfbac14d7976d7e4a3860";

#[test]
fn the_standard_library_is_taken_only_of_the_same_commit() {
    let sandbox = Sandbox::new();
    let path = format!("/rustc/{COMMIT}/library/core/src/count.wat");
    record(&sandbox, &path, "a.aft");
    let library = "rustup/toolchains/one/lib/rustlib";
    let folder = format!("{library}/src/rust/library/core/src");
    fs::create_dir_all(sandbox.path(&folder)).unwrap();
    sandbox.write(&format!("{folder}/count.wat"), TEXT);
    let ask = || {
        let mut command = sandbox.command(["profile", "--by", "line", "--code", "all", "a.aft"]);
        ran(command.env("RUSTUP_HOME", sandbox.path("rustup")))
    };
    let is_missing = |ran: &Ran| {
        assert_eq!(ran.code, Some(0), "{ran:?}");
        !ran.stdout.contains(LINE) && ran.stderr.contains("sources not found: /rustc/")
    };
    assert!(is_missing(&ask()), "a commit that is not known");
    let manifest = |commit: &str| {
        let text = format!(
            "[pkg.cargo]\nversion = \"1 ({COMMIT} x)\"\n[pkg.rust-src]\nversion = \"1.95.0 ({commit} 2026-04-14)\"\n"
        );
        sandbox.write(&format!("{library}/multirust-channel-manifest.toml"), text);
    };
    manifest("59807616f");
    assert!(is_missing(&ask()), "another commit");
    manifest("59807616e");
    let found = ask();
    assert!(found.stdout.contains(LINE), "{found:?}");
    assert_eq!(found.stderr, "");
    manifest("");
    assert!(is_missing(&ask()), "no commit");
    let given = format!("/rustc/{COMMIT}={library}/src/rust");
    let found = sandbox.ok(&format!("profile --by line a.aft --source-path {given}"));
    assert!(found.stdout.contains(LINE), "{found:?}");
}

#[test]
fn what_is_no_place_of_sources_is_refused() {
    let sandbox = Sandbox::new();
    record(&sandbox, "/build/count.wat", "a.aft");
    for (rule, why) in [
        ("/build", "write OLD=NEW"),
        ("=here", "OLD is empty"),
        ("/build=", "NEW is empty"),
    ] {
        let ran = sandbox.run(&format!("why a.aft --trap --source-path {rule}"));
        assert_eq!(ran.code, Some(125), "{ran:?}");
        assert!(ran.stderr.contains(why), "{ran:?}");
    }
    let parts = ["--source-path: nowhere: No such file"];
    sandbox.refused("why a.aft --trap --source-path /build=nowhere", 125, &parts);
    for (settings, why) in [
        ("source-path = [\"/build\"]", "write OLD=NEW"),
        ("source-path = [\"=x\"]", "OLD is empty"),
        ("source-path = \"/build=x\"", "expected a sequence"),
        ("source-paths = []", "unknown field `source-paths`"),
    ] {
        sandbox.write(".afterimage.toml", settings);
        sandbox.refused("why a.aft --trap", 125, &[".afterimage.toml:1: ", why]);
    }
    // A place set for a project may be missing on this machine.
    sandbox.write(".afterimage.toml", "source-path = [\"/build=nowhere\"]");
    let missing = sandbox.ok("why a.aft --trap").stderr;
    assert!(
        missing.contains("not found: /build/count.wat;"),
        "{missing}"
    );
}

#[test]
fn a_name_that_is_not_at_hand_drives_no_terminal() {
    let sandbox = Sandbox::new();
    record(&sandbox, "/build/\u{1b}[2J\u{202e}a\nb.wat", "a.aft");
    let missing = sandbox.ok("why a.aft --trap").stderr;
    let said = "sources not found: /build/\\u{1b}[2J\\u{202e}a b.wat;";
    assert!(missing.contains(said), "{missing}");
    assert_eq!(missing.lines().count(), 1);
}
