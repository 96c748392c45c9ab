//! `cargo xtask test`: all tests of the workspace, with what they need and with a word about what sleeps.

use crate::{planted, tool, toolchain};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::process::{Command, ExitCode, Stdio};

/// Other people's tools that check our output where they are installed: the tool, its Debian package, and what it reads.
const OPTIONAL: &[(&str, &str, &str)] = &[
    ("genhtml", "lcov", "lcov reports"),
    ("callgrind_annotate", "valgrind", "callgrind reports"),
    ("dot", "graphviz", "graphs"),
];

/// Adds the guests' target, builds the programs of the manual's sessions, says which optional checks cannot run here, and runs the
/// tests. `arguments` go to `cargo test`.
///
/// # Errors
/// If the target is absent and cannot be added, a program cannot be built, or Cargo cannot be run.
pub fn run(arguments: &[OsString]) -> Result<ExitCode> {
    toolchain::ensure_wasm_target()?;
    planted::run()?;
    for (tool, package, what) in OPTIONAL {
        if !installed(tool) {
            eprintln!(
                "SKIPPED: the check that {tool} accepts our {what}, because it is not installed (apt-get install {package})"
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

/// Whether a tool can be started; not all know `--version`.
fn installed(tool: &str) -> bool {
    let status = Command::new(tool)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok()
}
