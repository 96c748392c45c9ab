//! Builds one guest of the `corpus` workspace with Cargo.

use crate::toolchain::{self, TARGET};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the guest of program `name` in release mode and returns the path of its module. `cache` is Cargo's target
/// folder.
///
/// # Errors
/// If Cargo cannot be run or fails; it has then said why on standard error.
pub fn guest(corpus: &Path, cache: &Path, name: &str, c: bool) -> Result<PathBuf> {
    let package = format!("guest-{name}");
    let mut cargo = cargo(corpus);
    cargo.args([
        "build",
        "--release",
        "--locked",
        "--target",
        TARGET,
        "--package",
        &package,
    ]);
    cargo.env("CARGO_TARGET_DIR", cache);
    // A user's own flags would give another program than the one that the figures are about.
    for flags in [
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS",
        "CFLAGS",
    ] {
        cargo.env_remove(flags);
    }
    if c {
        toolchain::set_c_compiler(&mut cargo);
    }
    if name == "lua" {
        cargo.env(
            "LUA_SOURCE",
            package_folder(corpus, "lua-src")?.join("lua-5.4.9"),
        );
    }
    let status = cargo.status().context("cannot run cargo")?;
    if !status.success() {
        bail!("cargo could not build {package}");
    }
    Ok(cache
        .join(TARGET)
        .join("release")
        .join(package)
        .with_extension("wasm"))
}

/// The versions of `packages` in the guests' lock file, as `name 1.2.3, other 4.5.6`.
///
/// # Errors
/// If the lock file cannot be read or one of the packages is not in it.
pub fn locked_versions(corpus: &Path, packages: &[&str]) -> Result<String> {
    let path = corpus.join("Cargo.lock");
    let lock = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let versions = packages.iter().map(|package| {
        let version = locked_version(&lock, package)
            .with_context(|| format!("{package} is not in the guests' Cargo.lock"))?;
        Ok(format!("{package} {version}"))
    });
    Ok(versions.collect::<Result<Vec<_>>>()?.join(", "))
}

/// The version line that follows the name line of `package`: Cargo writes them in this order.
fn locked_version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let after = lock.lines().skip_while(|&line| line != name).nth(1)?;
    after.strip_prefix("version = \"")?.strip_suffix('"')
}

/// Where Cargo keeps the sources of `package`.
fn package_folder(corpus: &Path, package: &str) -> Result<PathBuf> {
    let output = cargo(corpus)
        .args(["metadata", "--locked", "--format-version", "1"])
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!(
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let metadata: Value =
        serde_json::from_slice(&output.stdout).context("cannot read what cargo metadata says")?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let manifest = packages
        .filter(|entry| entry["name"] == package)
        .find_map(|entry| entry["manifest_path"].as_str());
    let folder = manifest.and_then(|path| Path::new(path).parent());
    folder
        .map(Path::to_owned)
        .with_context(|| format!("cargo metadata does not name {package}"))
}

/// Cargo, in the guests' workspace.
fn cargo(corpus: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(corpus);
    cargo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_whole_name() {
        let lock = "[[package]]\nname = \"syn-mid\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"syn\"\nversion = \"3.0.9\"\n";
        assert_eq!(locked_version(lock, "syn"), Some("3.0.9"));
        assert_eq!(locked_version(lock, "quote"), None);
    }

    #[test]
    fn every_guest_names_a_locked_package() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
        for program in crate::programs::PROGRAMS {
            if let crate::programs::Source::Guest { packages, .. } = program.source {
                locked_versions(&corpus, packages).unwrap();
                assert!(corpus.join(program.name).join("Cargo.toml").exists());
            }
        }
    }
}
