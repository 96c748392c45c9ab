//! `cargo xtask architecture`: checks that everything ARCHITECTURE.md calls absent is absent, and
//! that everything the documents name exists.

mod citations;
mod dependencies;
mod features;
mod printing;

use crate::corpus::workspace;
use crate::tool;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Checks everything, and lists all violations before failing.
///
/// # Errors
/// Returns an error if Cargo fails or a file cannot be read.
pub fn run() -> Result<ExitCode> {
    let root = workspace();
    let metadata = cargo(&["metadata", "--locked", "--format-version", "1"])?;
    let violations = [
        dependencies::check(&metadata)?,
        features::check(cargo)?,
        printing::check(&root)?,
        citations::check(&root)?,
    ]
    .concat();
    for violation in &violations {
        eprintln!("architecture: {violation}");
    }
    if violations.is_empty() {
        eprintln!(
            "architecture: dependencies, features, printing and cited files are as ARCHITECTURE.md says"
        );
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

/// Runs Cargo in the workspace's root and returns its output.
fn cargo(arguments: &[&str]) -> Result<String> {
    let output = tool::cargo_of_its_own()
        .args(arguments)
        .current_dir(workspace())
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!(
            "cargo {} failed: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    String::from_utf8(output.stdout).context("cargo did not answer in UTF-8")
}

/// Lists all files below `folder` with this extension, sorted. Folders with build products are left
/// out.
pub fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        let entries = std::fs::read_dir(&folder)
            .with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default();
            if path.is_dir() {
                if name != "target" && name != ".git" {
                    waiting.push(path);
                }
            } else if path.extension().is_some_and(|own| own == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
