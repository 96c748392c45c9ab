//! The command line under development, and what it is told to run.

use crate::corpus;
use crate::manifest::Entry;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the command line beside this program, in the same profile, with Cargo's own words about it: the first time takes
/// minutes. Returns where it is.
///
/// # Errors
/// If Cargo cannot be run, or fails.
pub fn build() -> Result<PathBuf> {
    eprintln!(
        "Building afterimage: the first time this takes about ten minutes on two processors, for the WebAssembly engine"
    );
    let status = cargo()
        .args(["build", "--locked", "-p", "afterimage"])
        .status()
        .context("cannot run cargo")?;
    if !status.success() {
        bail!("cargo could not build afterimage");
    }
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    Ok(own.with_file_name(format!("afterimage{}", std::env::consts::EXE_SUFFIX)))
}

/// Cargo, in the workspace's root.
pub fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(corpus::workspace());
    command
}

/// How a program of the corpus in `folder` is run, as the last arguments of `afterimage record`.
pub fn command(entry: &Entry, folder: &Path) -> Vec<String> {
    let at = |path: &str| folder.join(path).display().to_string();
    let mut words = Vec::new();
    if let Some(file) = &entry.stdin {
        words.extend(["--stdin".to_owned(), at(file)]);
    }
    for [host, guest] in &entry.dirs {
        words.extend(["--dir".to_owned(), format!("{}::{guest}", at(host))]);
    }
    words.extend([at(&entry.wasm), "--".to_owned()]);
    words.extend(entry.args.iter().cloned());
    words
}
