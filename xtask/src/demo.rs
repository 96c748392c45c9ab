//! `cargo xtask demo`: makes an exact profile of a real program from a fresh clone, in one command.

use crate::tool::start;
use crate::{corpus, programs::PROGRAMS, tool, toolchain};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The program to profile. It builds in seconds, needs no C compiler, and its sources have just
/// been downloaded by Cargo.
const PROGRAM: &str = "pulldown-cmark";

/// The function whose source is shown.
const FUNCTION: &str = "pulldown_cmark_escape::escape_html_scalar";
/// The call at which the path in the demonstration begins.
const CALL: &str = "pulldown_cmark::parse::Parser::new_ext#7";

/// Builds the tool and the program, records one run of the program, and shows the functions and
/// source lines that were executed most. Every command is printed as it can be typed in the
/// workspace's root.
///
/// # Errors
/// Returns an error if something cannot be built or the tool fails.
pub fn run() -> Result<ExitCode> {
    toolchain::ensure_wasm_target()?;
    let tool = tool::build()?;
    let program = PROGRAMS.iter().find(|program| program.name == PROGRAM);
    let program = program.context("the demonstration's program is not in the corpus")?;
    eprintln!(
        "\nBuilding {PROGRAM}, which turns Markdown into HTML, to WebAssembly, and an input for it"
    );
    let folder = corpus::default_folder();
    let entry = corpus::make(program, corpus::Version::Measured, &folder)?;
    let folder = short(&folder);
    let recording = text(&folder.join(PROGRAM).with_extension("aft"));

    let mut record: Vec<String> = ["record", "--force", "-o", &recording]
        .map(Into::into)
        .into();
    record.extend(tool::command(&entry, &folder));

    eprintln!(
        "\nRecording one run: everything that crosses the boundary between the program and its host."
    );
    show(&tool, &record)?;
    eprintln!(
        "\nThe recording is executed again, this time with counters. Exact counts of functions:"
    );
    // The profiled code comes from a registry, so it counts as library code.
    show(
        &tool,
        &["profile", "--limit", "10", "--code", "all", &recording],
    )?;
    eprintln!("\n… and of source lines. The counts are in the file now, so this executes nothing:");
    show(
        &tool,
        &["profile", "--annotate", "--function", FUNCTION, &recording],
    )?;
    show(
        &tool,
        &[
            "trace", "--level", "call", "--depth", "3", "--from", CALL, "--limit", "10", &recording,
        ],
    )?;
    let tool = short(&tool);
    let tool = tool.display();
    eprintln!(
        "\nGo on from here:\n  \
         {tool} profile --by line --limit 20 --code all {recording}\n  \
         {tool} trace --last 30 {recording}\n  \
         {tool} profile --format callgrind -o callgrind.out {recording}\n  \
         {tool} verify {recording}\n  \
         {tool} --help"
    );
    Ok(ExitCode::SUCCESS)
}

/// Shortens a path to the form typed in the workspace's root.
fn short(path: &Path) -> PathBuf {
    path.strip_prefix(corpus::workspace())
        .unwrap_or(path)
        .to_owned()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Prints the command line, so that it can be repeated by hand, and runs it in the workspace's
/// root.
fn show(tool: &Path, arguments: &[impl AsRef<str>]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    let line = format!("{} {}", short(tool).display(), words.join(" "));
    eprintln!("\n$ {line}");
    let status = start(tool)
        .args(words)
        .current_dir(corpus::workspace())
        .status()
        .with_context(|| format!("cannot run {}", tool.display()))?;
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(())
}
