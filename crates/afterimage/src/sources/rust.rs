//! Finds the sources of Rust's standard library, which debug information calls
//! `/rustc/COMMIT/library/…`.
//!
//! The component rust-src of rustup installs these sources into a toolchain. The toolchain's
//! manifest, which is beside them, names the commit by at least nine digits. Sources of a different
//! or unknown commit have different lines and are not used.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The toolchains that have the sources. They are searched for on first use.
#[derive(Debug, Default)]
pub(super) struct RustSources(OnceLock<Vec<Toolchain>>);

#[derive(Debug)]
struct Toolchain {
    /// The first digits of the commit.
    commit: String,
    /// The folder that contains `library`.
    folder: PathBuf,
}

impl RustSources {
    /// Returns the place of a standard library path, if its sources are available.
    pub(super) fn locate(&self, path: &str) -> Option<PathBuf> {
        let (commit, inner) = path.strip_prefix("/rustc/")?.split_once('/')?;
        if !inner.starts_with("library/") || inner.split('/').any(|part| part == "..") {
            return None;
        }
        let toolchains = self.0.get_or_init(|| toolchains().unwrap_or_default());
        let own = toolchains
            .iter()
            .find(|toolchain| commit.starts_with(&toolchain.commit))?;
        Some(own.folder.join(inner))
    }
}

fn toolchains() -> Option<Vec<Toolchain>> {
    let named = |name| env::var_os(name).filter(|value| !value.is_empty());
    let home = match named("RUSTUP_HOME") {
        Some(home) => PathBuf::from(home),
        None => PathBuf::from(named("HOME")?).join(".rustup"),
    };
    let folders = fs::read_dir(home.join("toolchains")).ok()?;
    let found = folders.flatten().filter_map(|entry| {
        let lib = entry.path().join("lib/rustlib");
        let folder = lib.join("src/rust");
        if !folder.join("library").is_dir() {
            return None;
        }
        let commit = commit(&lib.join("multirust-channel-manifest.toml"))?;
        Some(Toolchain { commit, folder })
    });
    Some(found.collect())
}

/// The minimum number of digits that identify a commit.
const DIGITS: usize = 9;

/// Returns the commit of rust-src according to a manifest: `version = "1.95.0 (59807616e
/// 2026-04-14)"`.
fn commit(manifest: &Path) -> Option<String> {
    let lines = BufReader::new(File::open(manifest).ok()?).lines();
    let mut own = lines
        .map_while(Result::ok)
        .skip_while(|line| line != "[pkg.rust-src]")
        .skip(1)
        .take_while(|line| !line.starts_with('['));
    let version = own.find_map(|line| line.strip_prefix("version = ").map(str::to_owned))?;
    let (_, inner) = version.split_once('(')?;
    let commit = inner.split(' ').next()?;
    let is_commit = commit.len() >= DIGITS && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then(|| commit.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_says_the_commit_of_the_component() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |text: &str| {
            fs::write(file.path(), text).unwrap();
            commit(file.path())
        };
        let other = "[pkg.cargo]\nversion = \"0.96.0 (f2d3ce0bd 2026-03-21)\"\n\n";
        let own = "[pkg.rust-src]\nversion = \"1.95.0 (59807616e 2026-04-14)\"\n";
        assert_eq!(read(&format!("{other}{own}")).as_deref(), Some("59807616e"));
        assert_eq!(read(other), None);
        assert_eq!(
            read("[pkg.rust-src]\n[pkg.x]\nversion = \"1 (59807616e x)\"\n"),
            None
        );
        assert_eq!(
            read("[pkg.rust-src]\nversion = \"1.95.0 (5980 2026)\"\n"),
            None
        );
        assert_eq!(read("[pkg.rust-src]\nversion = \"1.95.0-dev\"\n"), None);
        assert_eq!(read(""), None);
    }
}
