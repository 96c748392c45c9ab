//! Limits the server to the folders that it may read.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Folders, with all symbolic links resolved.
#[derive(Clone, Debug)]
pub struct Roots(Vec<PathBuf>);

/// The maximum number of recordings to suggest when one is not found.
const NAMED: usize = 8;
/// The maximum number of files and folders to examine when searching for recordings.
const LOOKED_AT: usize = 2000;

impl Roots {
    /// Creates roots from these folders.
    ///
    /// # Errors
    /// Returns an error if a folder does not exist, or a path is not a folder.
    pub fn new(folders: &[PathBuf]) -> Result<Self> {
        let real = |folder: &PathBuf| {
            let real = folder.canonicalize();
            let real = real.with_context(|| format!("--root {}", folder.display()))?;
            if !real.is_dir() {
                bail!("--root {}: not a folder", folder.display());
            }
            Ok(real)
        };
        Ok(Self(folders.iter().map(real).collect::<Result<_>>()?))
    }

    pub(crate) fn folders(&self) -> &[PathBuf] {
        &self.0
    }

    /// Returns the target of a path. A relative path is searched for in each root.
    ///
    /// # Errors
    /// Returns an error if the path leads out of all roots, or does not exist.
    pub(crate) fn resolve(&self, text: &str) -> Result<PathBuf> {
        let path = Path::new(text);
        let places = self.0.iter().map(|root| root.join(path));
        // An absolute path names the same file from every root.
        let found = places.filter_map(|place| place.canonicalize().ok());
        let found = Vec::from_iter(found);
        if let Some(inside) = found.iter().find(|place| self.holds(place)) {
            return Ok(inside.clone());
        }
        if found.is_empty() && !path.is_absolute() {
            let known = match &self.recordings()[..] {
                [] => format!("there is no recording under {}", self.in_words()),
                known => format!("there are: {}", known.join(", ")),
            };
            bail!("{text}: not found; {known}");
        }
        // The message must not reveal whether there is a file.
        bail!(
            "{text}: outside of the roots of this server, {}",
            self.in_words()
        );
    }

    /// Whether a path without symbolic links is under a root.
    fn holds(&self, path: &Path) -> bool {
        self.0.iter().any(|root| path.starts_with(root))
    }

    /// Returns a path relative to the root that contains it.
    pub(crate) fn named(&self, path: &Path) -> String {
        let inner = self.0.iter().find_map(|root| path.strip_prefix(root).ok());
        inner.unwrap_or(path).display().to_string()
    }

    fn in_words(&self) -> String {
        let all = self.0.iter().map(|root| root.display().to_string());
        Vec::from_iter(all).join(", ")
    }

    /// Returns some recordings in the roots.
    fn recordings(&self) -> Vec<String> {
        let mut folders = Vec::from_iter(self.0.iter().cloned());
        let (mut found, mut left) = (Vec::new(), LOOKED_AT);
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            for entry in entries.take(left) {
                left -= 1;
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(path),
                    Ok(kind) if kind.is_file() && path.extension().is_some_and(|e| e == "aft") => {
                        found.push(self.named(&path));
                    }
                    _ => {}
                }
            }
        }
        found.sort();
        found.truncate(NAMED);
        found
    }
}
