//! Downloads programs that others compiled to WebAssembly and ship through a package registry.

use crate::tool::start;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The registry of a package. Each package is pinned by version and hash in `corpus/NAME`, in the
/// registry's own form.
#[derive(Clone, Copy)]
pub enum Registry {
    /// A Python wheel, pinned by `requirements.txt`.
    PyPi,
    /// A Node package, pinned by `package.json` and `package-lock.json`.
    Npm,
}

impl Registry {
    /// Returns the package to install if the registry's client is missing on this machine.
    pub fn lacks_client(self) -> Option<&'static str> {
        let (client, version, advice): (_, &[_], _) = match self {
            Registry::PyPi => (
                "python3",
                &["-m", "pip", "--version"],
                "it comes as a Python wheel: apt-get install python3-pip",
            ),
            Registry::Npm => (
                "npm",
                &["--version"],
                "it comes as a Node package: apt-get install npm",
            ),
        };
        let status = start(client)
            .args(version)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        (!status.is_ok_and(|status| status.success())).then_some(advice)
    }

    /// Returns the package pinned in the folder `pins`, as `name version`.
    ///
    /// # Errors
    /// Returns an error if the file that pins the package cannot be read or pins nothing.
    pub fn pinned_version(self, pins: &Path) -> Result<String> {
        let path = pins.join(match self {
            Registry::PyPi => "requirements.txt",
            Registry::Npm => "package.json",
        });
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let pin = match self {
            Registry::PyPi => pinned_by_pip(&text),
            Registry::Npm => pinned_by_npm(&text),
        };
        pin.with_context(|| format!("{} pins no version", path.display()))
    }

    /// Downloads and unpacks the package pinned in `pins`. Returns the folder of its contents,
    /// which later calls find again below `cache`.
    ///
    /// # Errors
    /// Returns an error if the registry's client fails, for example because the hash differs.
    pub fn unpack(self, pins: &Path, cache: &Path) -> Result<PathBuf> {
        let folder = cache.join(self.pinned_version(pins)?.replace(['@', '/', ' '], "-"));
        if folder.exists() {
            return Ok(folder);
        }
        // Unpacks under another name first, so that an interrupted run leaves nothing that looks
        // complete.
        let mut partial = folder.clone().into_os_string();
        partial.push(".part");
        let partial = PathBuf::from(partial);
        if partial.exists() {
            fs::remove_dir_all(&partial)
                .with_context(|| format!("cannot remove {}", partial.display()))?;
        }
        fs::create_dir_all(&partial)
            .with_context(|| format!("cannot make {}", partial.display()))?;
        match self {
            Registry::PyPi => unpack_wheel(pins, &partial)?,
            Registry::Npm => install_node_package(pins, &partial)?,
        }
        fs::rename(&partial, &folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder)
    }
}

/// Converts `name==version …` to `name version`.
fn pinned_by_pip(text: &str) -> Option<String> {
    let (name, version) = text.split_whitespace().next()?.split_once("==")?;
    Some(format!("{name} {version}"))
}

/// Returns the only dependency, as `name version`.
fn pinned_by_npm(text: &str) -> Option<String> {
    let package: Value = serde_json::from_str(text).ok()?;
    let (name, version) = package["dependencies"].as_object()?.iter().next()?;
    Some(format!("{name} {}", version.as_str()?))
}

fn unpack_wheel(pins: &Path, folder: &Path) -> Result<()> {
    run(start("python3")
        .args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
        ])
        .args([
            "--no-deps",
            "--only-binary",
            ":all:",
            "--require-hashes",
            "--requirement",
        ])
        .arg(pins.join("requirements.txt"))
        .arg("--dest")
        .arg(folder))?;
    let wheel = fs::read_dir(folder)?
        .next()
        .context("pip downloaded nothing")??
        .path();
    run(start("python3")
        .args(["-m", "zipfile", "-e"])
        .arg(&wheel)
        .arg(folder))?;
    fs::remove_file(&wheel).with_context(|| format!("cannot remove {}", wheel.display()))
}

fn install_node_package(pins: &Path, folder: &Path) -> Result<()> {
    for file in ["package.json", "package-lock.json"] {
        fs::copy(pins.join(file), folder.join(file))
            .with_context(|| format!("cannot copy {file}"))?;
    }
    // No script of the package is run, because only its files are needed.
    run(start("npm")
        .args([
            "ci",
            "--silent",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
        ])
        .current_dir(folder))
}

fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_owned();
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", name.display()))?;
    if !status.success() {
        bail!("{} ended with {status}", name.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_read_in_both_forms() {
        assert_eq!(
            pinned_by_pip("a-b==1.2.post3 --hash=sha256:00\n").as_deref(),
            Some("a-b 1.2.post3")
        );
        assert_eq!(pinned_by_pip("a-b>=1.2\n"), None);
        assert_eq!(
            pinned_by_npm(r#"{"dependencies": {"@a/b": "1.2.3"}}"#).as_deref(),
            Some("@a/b 1.2.3")
        );
        assert_eq!(pinned_by_npm("{}"), None);
    }
}
