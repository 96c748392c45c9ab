//! `cargo xtask demo`: from a fresh clone to an exact profile of a real program, in one command.

use crate::{corpus, programs::PROGRAMS, toolchain};
use anyhow::{Context, Result, bail};
use std::process::{Command, ExitCode};

/// The program to show: it builds in seconds and its sources are those that Cargo has just downloaded.
const PROGRAM: &str = "pulldown-cmark";

/// The function whose source is shown.
const FUNCTION: &str = "pulldown_cmark_escape::escape_html_scalar";

/// Builds the program, records one run of it, and shows the functions and the source lines that it spent itself on.
///
/// # Errors
/// If the program cannot be built or the tool cannot be run.
pub fn run() -> Result<ExitCode> {
    toolchain::ensure_wasm_target()?;
    let folder = corpus::default_folder();
    let program = PROGRAMS.iter().find(|program| program.name == PROGRAM);
    let entry = corpus::make(
        program.context("the demonstration's program is not in the corpus")?,
        &folder,
    )?;
    let recording = folder.join(PROGRAM).with_extension("aft");

    let mut record = afterimage();
    record.args(["record", "--force", "-o"]).arg(&recording);
    if let Some(file) = &entry.stdin {
        record.arg("--stdin").arg(folder.join(file));
    }
    for [host, guest] in &entry.dirs {
        record
            .arg("--dir")
            .arg(format!("{}::{guest}", folder.join(host).display()));
    }
    show(
        record
            .arg(folder.join(&entry.wasm))
            .arg("--")
            .args(&entry.args),
    )?;
    show(
        afterimage()
            .args(["profile", "--by", "function", "--top", "15"])
            .arg(&recording),
    )?;
    show(
        afterimage()
            .args(["profile", "--annotate", "--function", FUNCTION])
            .arg(&recording),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// The tool, as a developer runs it from the sources.
fn afterimage() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(corpus::workspace())
        .args(["run", "-q", "-p", "afterimage", "--"]);
    cargo
}

/// Prints the command line, so that it can be repeated by hand, and runs it.
fn show(command: &mut Command) -> Result<()> {
    let words = command.get_args().skip_while(|&word| word != "--").skip(1);
    let line = words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ");
    eprintln!("\n$ afterimage {line}");
    let status = command.status().context("cannot run cargo")?;
    if !status.success() {
        bail!("`afterimage {line}` ended with {status}");
    }
    Ok(())
}
