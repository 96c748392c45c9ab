//! Applies rules of the form `OLD=NEW`, which give the new places of sources that have moved.

use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A rule by which paths that begin with `old` are found at `new`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The beginning of the paths. It consists of whole path components, and has no trailing
    /// separator.
    old: String,
    new: PathBuf,
}

/// The reason why a string does not have the form `OLD=NEW`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MovedError {
    /// The text has no `=`.
    #[error("write OLD=NEW: the beginning of paths in the program, and where those files are")]
    NoEquals,
    /// Nothing precedes the `=`.
    #[error("OLD is empty; write the beginning of the paths in the program")]
    NoOld,
    /// Nothing follows the `=`.
    #[error("NEW is empty; write a folder or a file, or . for the current folder")]
    NoNew,
}

/// The separators of path components.
const SEPARATORS: [char; 2] = ['/', '\\'];

impl FromStr for Moved {
    type Err = MovedError;

    fn from_str(text: &str) -> Result<Self, MovedError> {
        let (old, new) = text.split_once('=').ok_or(MovedError::NoEquals)?;
        if old.is_empty() {
            return Err(MovedError::NoOld);
        }
        if new.is_empty() {
            return Err(MovedError::NoNew);
        }
        Ok(Self {
            old: old.trim_end_matches(SEPARATORS).to_owned(),
            new: PathBuf::from(new),
        })
    }
}

impl Moved {
    /// Returns the new place.
    pub fn new_place(&self) -> &Path {
        &self.new
    }

    /// Resolves a relative new place from `folder`.
    #[must_use]
    pub fn relative_to(self, folder: &Path) -> Self {
        let new = folder.join(self.new);
        Self { new, ..self }
    }

    /// Returns the new place of a path, if it begins with `old`.
    pub(super) fn apply(&self, path: &str) -> Option<PathBuf> {
        let rest = path.strip_prefix(&self.old)?;
        if rest.is_empty() {
            return Some(self.new.clone());
        }
        let inner = rest.strip_prefix(SEPARATORS)?;
        // A compiler on Windows writes backslashes.
        let is_foreign = rest.starts_with('\\');
        Some(if is_foreign {
            self.new.join(inner.replace('\\', "/"))
        } else {
            self.new.join(inner.trim_start_matches('/'))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(rule: &str, path: &str) -> Option<String> {
        let moved = rule.parse::<Moved>().unwrap().apply(path);
        moved.map(|at| at.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_beginning_ends_where_a_part_of_a_path_does() {
        let all = [
            (
                "/build/app=/home/me",
                "/build/app/src/a.c",
                "/home/me/src/a.c",
            ),
            (
                "/build/app/=/home/me/",
                "/build/app/src/a.c",
                "/home/me/src/a.c",
            ),
            ("/=/all", "/build/a.c", "/all/build/a.c"),
            ("src=lib=1", "src/a.c", "lib=1/a.c"),
            ("C:\\x=/y", "C:\\x\\b\\a.c", "/y/b/a.c"),
            ("/a.c=/b.c", "/a.c", "/b.c"),
        ];
        for (rule, path, at) in all {
            assert_eq!(applied(rule, path).as_deref(), Some(at), "{rule} {path}");
        }
        assert_eq!(applied("/build/app=/x", "/build/apple/a.c"), None);
        assert_eq!(applied("/build=/x", "build/a.c"), None);
    }

    #[test]
    fn what_is_no_rule_says_why() {
        let read = |text: &str| text.parse::<Moved>().unwrap_err();
        assert_eq!(read("/build/app"), MovedError::NoEquals);
        assert_eq!(read(""), MovedError::NoEquals);
        assert_eq!(read("=/home"), MovedError::NoOld);
        assert_eq!(read("/build="), MovedError::NoNew);
    }
}
