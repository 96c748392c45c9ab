//! `cargo xtask book`: builds the manual as a book, if mdbook is installed.

use crate::{corpus::workspace, tool};
use anyhow::{Context, Result, bail};
use std::fs;
use std::process::{ExitCode, Stdio};

/// Checks that the summary lists each page, and builds the book into `target/book`.
///
/// # Errors
/// Returns an error if a page is not in the summary or mdbook fails.
pub fn run() -> Result<ExitCode> {
    let root = workspace();
    let summary = root.join("docs/SUMMARY.md");
    let summary = fs::read_to_string(&summary)
        .with_context(|| format!("cannot read {}", summary.display()))?;
    let docs = root.join("docs");
    let mut missing = Vec::new();
    for page in crate::architecture::files(&docs, "md")? {
        let page = page.strip_prefix(&docs)?.display().to_string();
        if page != "SUMMARY.md" && !summary.contains(&format!("({page})")) {
            missing.push(page);
        }
    }
    if !missing.is_empty() {
        bail!("docs/SUMMARY.md does not list {}", missing.join(", "));
    }
    let there = tool::start("mdbook")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if there.is_err() {
        println!(
            "SKIPPED: the book is not built, because mdbook is not installed (cargo install mdbook)"
        );
        return Ok(ExitCode::SUCCESS);
    }
    let status = tool::start("mdbook")
        .arg("build")
        .current_dir(&root)
        .status()
        .context("cannot run mdbook")?;
    if !status.success() {
        bail!("mdbook could not build the book");
    }
    println!("{}", root.join("target/book/index.html").display());
    Ok(ExitCode::SUCCESS)
}
