//! `cargo xtask test`: runs all tests of the workspace with everything they need, and reports
//! skipped checks.

use crate::{build, corpus, planted, tool, toolchain};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::path::Path;
use std::process::{ExitCode, Stdio};

/// Third-party tools, which the tests use if they are installed.
const OPTIONAL: &str = include_str!("../../.ci/tools");

/// Returns the lines of [`OPTIONAL`], each as a program or file, its Debian package, and its
/// purpose.
fn optional() -> impl Iterator<Item = (&'static str, &'static str, String)> {
    let lines = OPTIONAL.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let mut words = line.split_whitespace();
        let (tool, package) = (words.next()?, words.next()?);
        Some((tool, package, Vec::from_iter(words).join(" ")))
    })
}

/// Adds the guests' target, builds the programs of the manual's sessions, reports which optional
/// checks cannot run here, and runs the tests. `arguments` go to `cargo test`.
///
/// # Errors
/// Returns an error if the target is absent and cannot be added, a program cannot be built, or
/// Cargo cannot be run.
pub fn run(arguments: &[OsString]) -> Result<ExitCode> {
    toolchain::ensure_wasm_target()?;
    if build::fetched(&corpus::workspace().join("corpus"))? {
        planted::run()?;
    } else {
        eprintln!(
            "SKIPPED: the sessions in docs/sessions, because Cargo cannot download the dependencies of their programs"
        );
    }
    for (tool, package, what) in optional() {
        if !installed(tool) {
            eprintln!(
                "SKIPPED: checks of {what}, because {tool} is not installed (apt-get install {package})"
            );
        }
    }
    let status = tool::cargo()
        .args(["test", "--workspace", "--locked", "--no-fail-fast"])
        .args(arguments)
        .stdin(Stdio::null())
        .status()
        .context("cannot run cargo")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Whether a file exists, or a tool can be started. Not all tools know `--version`.
fn installed(tool: &str) -> bool {
    if tool.starts_with('/') {
        return Path::new(tool).exists();
    }
    let status = tool::start(tool)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_a_package_and_a_purpose() {
        assert!(optional().count() > 10);
        for (tool, package, what) in optional() {
            assert!(!what.is_empty(), "{tool} {package}");
        }
    }
}
