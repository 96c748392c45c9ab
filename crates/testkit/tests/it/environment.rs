//! Tests that compiler output does not depend on the user's environment.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use afterimage_testkit::tools;
use tempfile::tempdir;
use wasmparser::{Parser, Payload};

/// The variable that names the output folder for [`guests_for_another_process`].
const OUT: &str = "AFTERIMAGE_GUESTS";

const C: &str = "__attribute__((export_name(\"twice\"))) int twice(int n) { return n + n; }\n";
const RUST: &str = "fn main() { println!(\"{}\", std::env::args().count()); }\n";

/// Compiles a guest in Rust and, if there is a compiler, one in C, into `folder`.
fn guests(folder: &Path) {
    if let Some(clang) = tools::clang() {
        let out = folder.join("c.wasm");
        let source = folder.with_file_name("c.c");
        clang.module(&["-g", "-O2"], &[source], &["-Wl,--no-entry"], &out);
    }
    let mut rustc = tools::rustc();
    rustc.args(["-g", "-C", "opt-level=2", "--crate-name", "guest", "-o"]);
    rustc.arg(folder.join("rust.wasm")).arg("guest.rs");
    // A relative source path keeps the folders in the debug information equal.
    let made = rustc.current_dir(folder.join("..")).output().unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
}

/// Does nothing on its own. It is a part of the test below.
#[test]
fn guests_for_another_process() {
    if let Some(folder) = env::var_os(OUT) {
        guests(folder.as_ref());
    }
}

/// Returns the names of a module's custom sections.
fn custom_sections(module: &[u8]) -> Vec<String> {
    let sections = Parser::new(0).parse_all(module);
    let names = sections.filter_map(|payload| match payload.unwrap() {
        Payload::CustomSection(section) => Some(section.name().to_owned()),
        _ => None,
    });
    names.collect()
}

#[test]
fn guests_are_the_same_whatever_the_environment_says() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("c.c"), C).unwrap();
    fs::write(at("guest.rs"), RUST).unwrap();
    for name in ["ours", "other", "bin", "home"] {
        fs::create_dir(at(name)).unwrap();
    }
    guests(&at("ours"));

    // This script is found like the `wasm-opt` of Debian's binaryen. It records the call and fails.
    let called = at("called");
    let script = format!("#!/bin/sh\necho called >'{}'\nexit 1\n", called.display());
    fs::write(at("bin/wasm-opt"), script).unwrap();
    fs::set_permissions(at("bin/wasm-opt"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(at("home/.lcovrc"), "no such setting\n").unwrap();
    let path = env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", at("bin").display());

    for home in [None, Some(at("home"))] {
        let mut other = tools::command(env::current_exe().unwrap());
        other.args(["--exact", "environment::guests_for_another_process"]);
        for (name, value) in [
            ("RUSTFLAGS", "--no-such-flag"),
            ("CARGO_ENCODED_RUSTFLAGS", "-Cstrip=symbols"),
            ("CARGO_BUILD_TARGET", "nowhere"),
            ("CARGO_PROFILE_RELEASE_STRIP", "symbols"),
            ("CFLAGS", "-no-such-flag"),
            ("CPATH", "/nowhere"),
            ("CCC_OVERRIDE_OPTIONS", "# x-g +-g0"),
            ("RUSTC_LOG", "nonsense=trace"),
            ("LC_ALL", "tr_TR.UTF-8"),
            ("TZ", "Pacific/Kiritimati"),
            ("NO_COLOR", "1"),
            ("CLICOLOR_FORCE", "1"),
            ("TERM", "dumb"),
            ("COLUMNS", "3"),
        ] {
            other.env(name, value);
        }
        for name in ["RUSTC", "RUSTUP_HOME", "CARGO_HOME", "RUSTUP_TOOLCHAIN"] {
            if let Some(value) = env::var_os(name) {
                other.env(name, value);
            }
        }
        other.envs(home.map(|home| ("HOME", home)));
        let ran = other.env("PATH", &path).env(OUT, at("other")).output();
        let ran = ran.unwrap();
        assert!(
            ran.status.success(),
            "{}",
            String::from_utf8_lossy(&ran.stdout)
        );
        assert!(!called.exists(), "wasm-opt was run");
        for name in ["c.wasm", "rust.wasm"] {
            let Ok(ours) = fs::read(at("ours").join(name)) else {
                continue;
            };
            let other = fs::read(at("other").join(name)).unwrap();
            assert!(ours == other, "{name} is another one");
            let sections = custom_sections(&ours);
            for wanted in ["name", ".debug_line"] {
                assert!(sections.iter().any(|name| name == wanted), "{sections:?}");
            }
        }
    }

    // Shows the reason for this test. In a single step, clang does call `wasm-opt`.
    let mut clang = tools::command("clang-19");
    clang.args(["--target=wasm32-wasi", "-nostdlib", "-O2", "-Wl,--no-entry"]);
    clang.arg("-o").arg(at("one.wasm")).arg(at("c.c"));
    match clang.env("PATH", &path).output() {
        Ok(_) if called.exists() => {}
        _ => tools::skipped("that clang runs wasm-opt in one step, because there is no clang-19"),
    }
}
