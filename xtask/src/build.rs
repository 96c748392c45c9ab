//! Builds one guest of the `corpus` workspace with Cargo.

use crate::tool;
use crate::toolchain::{self, TARGET};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The code to optimise, and the level of optimisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optimised {
    /// A guest without C code. Rust is compiled as set in the workspace.
    Release,
    /// A guest without C code. Rust is compiled at this level, with the standard library as
    /// shipped.
    Rust(u8),
    /// A guest with C code. C is compiled at this level, and Rust as set in the workspace.
    C(u8),
}

/// Builds the guest of program `name` in release mode and returns the path of its module. `cache`
/// is Cargo's target folder.
///
/// # Errors
/// Returns an error if Cargo cannot be run or fails. Cargo has then printed the reason on standard
/// error.
pub fn guest(corpus: &Path, cache: &Path, name: &str, optimised: Optimised) -> Result<PathBuf> {
    let binary = format!("guest-{name}");
    let mut cargo = command(corpus, cache, name, &binary, optimised)?;
    if !cargo.status().context("cannot run cargo")?.success() {
        bail!("cargo could not build {binary}");
    }
    Ok(module(cache, &binary))
}

/// Builds one binary of the guest of program `name`, like [`guest`], but prints nothing unless it
/// fails.
///
/// # Errors
/// Returns an error if Cargo cannot be run or fails. The error contains Cargo's output.
pub fn quietly(corpus: &Path, cache: &Path, name: &str, binary: &str, c: bool) -> Result<PathBuf> {
    let optimised = if c {
        Optimised::C(2)
    } else {
        Optimised::Release
    };
    quietly_at(corpus, cache, name, binary, optimised)
}

/// Like [`quietly`], at a given level of optimisation.
///
/// # Errors
/// Returns the errors of [`quietly`].
pub fn quietly_at(
    corpus: &Path,
    cache: &Path,
    name: &str,
    binary: &str,
    optimised: Optimised,
) -> Result<PathBuf> {
    let output = command(corpus, cache, name, binary, optimised)?
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!(
            "cargo could not build {binary}:\n{}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(module(cache, binary))
}

/// Returns the path where Cargo puts the module of a binary.
fn module(cache: &Path, binary: &str) -> PathBuf {
    let folder = cache.join(TARGET).join("release");
    folder.join(binary).with_extension("wasm")
}

/// Returns the command that builds one binary of the guest of program `name`.
fn command(
    corpus: &Path,
    cache: &Path,
    name: &str,
    binary: &str,
    optimised: Optimised,
) -> Result<Command> {
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
        "--bin",
        binary,
    ]);
    cargo.env("CARGO_TARGET_DIR", cache);
    // With a user's configuration of Cargo, the program would differ from the measured program.
    cargo.env("CARGO_ENCODED_RUSTFLAGS", "");
    let mut level = 3;
    match optimised {
        Optimised::Release => {}
        Optimised::Rust(wanted) => level = wanted,
        Optimised::C(level) => toolchain::set_c_compiler(&mut cargo, level),
    }
    for (option, value) in [
        ("OPT_LEVEL", &*level.to_string()),
        ("DEBUG", "full"),
        ("STRIP", "none"),
        ("LTO", "false"),
        ("CODEGEN_UNITS", "1"),
    ] {
        cargo.env(format!("CARGO_PROFILE_RELEASE_{option}"), value);
    }
    if name == "lua" {
        cargo.env(
            "LUA_SOURCE",
            package_folder(corpus, "lua-src")?.join("lua-5.4.9"),
        );
    }
    Ok(cargo)
}

/// Returns the locked versions of `packages` for the guest of program `name`, as `one 1.2.3, other
/// 4.5.6`.
///
/// # Errors
/// Returns an error if the lock file cannot be read, or the guest does not depend on one of the
/// packages.
pub fn locked_versions(corpus: &Path, name: &str, packages: &[&str]) -> Result<String> {
    let path = corpus.join("Cargo.lock");
    let lock = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let guest = format!("guest-{name}");
    let versions = packages.iter().map(|package| {
        let version = locked_version(&lock, &guest, package).with_context(|| {
            format!("{guest} does not depend on {package} in {}", path.display())
        })?;
        Ok(format!("{package} {version}"))
    });
    Ok(versions.collect::<Result<Vec<_>>>()?.join(", "))
}

/// Returns the locked version of `package` for `dependent`. Cargo writes a dependency as `"name"`,
/// or as `"name version"` if the lock file has several versions of it.
fn locked_version<'a>(lock: &'a str, dependent: &str, package: &str) -> Option<&'a str> {
    let entry = |name: &str| {
        let line = format!("name = \"{name}\"");
        lock.split("[[package]]")
            .find(|entry| entry.lines().any(|other| other == line))
    };
    let dependency = entry(dependent)?
        .lines()
        .filter_map(|line| line.strip_prefix(" \"")?.strip_suffix("\","))
        .find(|&dependency| dependency.split(' ').next() == Some(package))?;
    dependency.split(' ').nth(1).or_else(|| {
        let version = entry(package)?
            .lines()
            .find_map(|line| line.strip_prefix("version = \""))?;
        version.strip_suffix('"')
    })
}

/// Whether Cargo has, or can download, all dependencies of the guests. If not, Cargo has printed
/// the reason on standard error.
///
/// # Errors
/// Returns an error if Cargo cannot be run.
pub fn fetched(corpus: &Path) -> Result<bool> {
    let status = cargo(corpus).args(["fetch", "--locked"]).status();
    Ok(status.context("cannot run cargo")?.success())
}

/// Returns the folder where Cargo keeps the sources of `package`.
///
/// # Errors
/// Returns an error if Cargo fails, or the guests do not depend on the package.
pub fn package_folder(corpus: &Path, package: &str) -> Result<PathBuf> {
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
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .context("cannot read the output of cargo metadata")?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let manifest = packages
        .filter(|entry| entry["name"] == package)
        .find_map(|entry| entry["manifest_path"].as_str());
    let folder = manifest.and_then(|path| Path::new(path).parent());
    folder
        .map(Path::to_owned)
        .with_context(|| format!("cargo metadata does not name {package}"))
}

/// Returns a Cargo command in the guests' workspace.
fn cargo(corpus: &Path) -> Command {
    let mut cargo = tool::cargo_of_its_own();
    cargo.current_dir(corpus);
    cargo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_that_the_dependent_uses() {
        let lock = "\
[[package]]\nname = \"syn-mid\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"syn\"\nversion = \"2.0.0\"\n
[[package]]\nname = \"syn\"\nversion = \"3.0.9\"\n\n[[package]]\nname = \"log\"\nversion = \"0.4.1\"\n
[[package]]\nname = \"guest\"\nversion = \"1.0.0\"\ndependencies = [\n \"log\",\n \"syn 3.0.9\",\n]\n";
        assert_eq!(locked_version(lock, "guest", "syn"), Some("3.0.9"));
        assert_eq!(locked_version(lock, "guest", "log"), Some("0.4.1"));
        assert_eq!(locked_version(lock, "guest", "syn-mid"), None);
        assert_eq!(locked_version(lock, "nobody", "syn"), None);
    }

    #[test]
    fn every_guest_names_packages_that_it_is_locked_to() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
        for program in crate::programs::PROGRAMS {
            if let crate::programs::Source::Guest { packages, .. } = program.source {
                locked_versions(&corpus, program.name, packages).unwrap();
            }
        }
    }
}
