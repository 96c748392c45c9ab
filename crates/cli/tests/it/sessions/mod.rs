//! Tests the sessions of the manual, `docs/sessions/*.md`: the pages must show the output of the
//! commands.
//!
//! `sh` runs the blocks of a page marked `console`, in order, in a separate folder. `> ` begins a
//! line that continues the command. A command must print the lines after it, to standard output and
//! standard error. In these lines, `…` within a line means any text, and a line of only `…` means
//! any number of lines. Times, sizes and places in the code (`@0x1f3`) depend on the compiler, so
//! they are not compared. Places in commands are replaced by the printed places that correspond to
//! the page's places.
//!
//! `BLESS=1` writes the current output into the pages where they differ.
//!
//! The programs have bugs that `cargo xtask planted` plants; without them, the tests report that
//! they were skipped.

mod page;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use afterimage_testkit::tools;
use page::{Page, matches};

use crate::common::Sandbox;

#[test]
fn a_checksum_that_is_wrong_long_before_it_is_noticed() {
    session("bzip2", "compress.c:607");
}

#[test]
fn a_constant_that_a_compiler_takes_for_a_smaller_one() {
    session("lua", "lcode.c:1470");
}

#[test]
fn a_branch_that_was_not_taken() {
    session("markdown", "firstpass.rs:2119");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the session of a page, which must lead to the guilty line.
fn session(name: &str, guilty: &str) {
    let planted = root().join("target/planted");
    for version in ["old", "new"] {
        let module = planted.join(version).join(name).with_extension("wasm");
        if !module.exists() {
            tools::skipped(&format!(
                "the session {name}: `cargo xtask planted` builds its program, or says what it lacks"
            ));
            return;
        }
    }
    let sandbox = Sandbox::new();
    for version in ["old", "new"] {
        std::os::unix::fs::symlink(planted.join(version), sandbox.path(version)).unwrap();
    }
    fs::create_dir(sandbox.path("bin")).unwrap();
    std::os::unix::fs::symlink(crate::common::afterimage(), sandbox.path("bin/afterimage"))
        .unwrap();

    let path = root().join("docs/sessions").join(name).with_extension("md");
    let text = fs::read_to_string(&path).unwrap();
    let mut page = Page::parse(&text);
    let mut places = HashMap::new();
    let mut wrong = Vec::new();
    for exchange in page.exchanges_mut() {
        let command = page::translated(&exchange.command, &places);
        let printed = run(&sandbox, &planted, &command);
        if matches(&exchange.answer, &printed, &mut places) {
            continue;
        }
        wrong.push(format!(
            "$ {command}\n-- the page:\n{}\n-- now:\n{}\n",
            exchange.answer.join("\n"),
            printed.join("\n")
        ));
        exchange.answer = printed;
    }
    let commands = page.exchanges().map(|exchange| &*exchange.command);
    let commands = Vec::from_iter(commands).join("\n");
    for asked in ["record", "why", "slice", "diff"] {
        let asked = format!("afterimage {asked}");
        assert!(commands.contains(&asked), "{name} never asks {asked}");
    }
    let last = page.exchanges().last().expect("a session has commands");
    assert!(
        last.answer.iter().any(|line| line.contains(guilty)),
        "{name} does not end at {guilty}"
    );
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, page.to_string()).unwrap();
        return;
    }
    assert!(
        wrong.is_empty(),
        "{}: BLESS=1 accepts what is printed now\n{}",
        path.display(),
        wrong.join("\n")
    );
}

/// Returns a command's output on standard output and standard error, line by line.
fn run(sandbox: &Sandbox, planted: &Path, command: &str) -> Vec<String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let bin = sandbox.path("bin");
    let ran = crate::common::ran(
        sandbox
            .any("sh")
            .args(["-c", &format!("exec 2>&1\n{command}")])
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("AFTERIMAGE_CACHE", planted.join("cache")),
    );
    assert!(
        !ran.stdout.contains("panicked"),
        "{command}\n{}",
        ran.stdout
    );
    ran.stdout
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}
