//! Decides whose code it is: the user's own, or a library's.

use std::fmt;
use std::str::FromStr;

use afterimage_ids::OrigOffset;
use afterimage_program::{FileId, InlinedFrame, Location, NoDebug};
use glob::{MatchOptions, Pattern, PatternError};
use serde::{Deserialize, Serialize};

use crate::{Line, Source};

/// The code to show. Other code is shown as the line that called it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeFilter {
    /// The user's own code: everything except libraries ([`is_library`]).
    #[default]
    Mine,
    /// All code with lines.
    All,
    /// Files that match a glob such as `src/**/*.c`: with their whole path or, for files that do
    /// not belong to a library, with a suffix of the path.
    Files(String),
}

impl CodeFilter {
    /// Whether the code of a file is shown.
    pub fn shows(&self, path: &str) -> bool {
        match self {
            Self::Mine => !is_library(path),
            Self::All => true,
            Self::Files(glob) => Pattern::new(glob).is_ok_and(|glob| {
                // A pattern selects a library only if it contains the whole path.
                glob.matches_with(path, OPTIONS) || !is_library(path) && matches(&glob, path)
            }),
        }
    }
}

impl FromStr for CodeFilter {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        Ok(match text {
            "mine" => Self::Mine,
            "all" => Self::All,
            glob => {
                Pattern::new(glob)?;
                Self::Files(glob.to_owned())
            }
        })
    }
}

impl fmt::Display for CodeFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mine => "mine",
            Self::All => "all",
            Self::Files(glob) => glob,
        })
    }
}

/// Whether a source file belongs to a library, by its path: Rust's or C's standard library, a
/// compiler's runtime, or a package from a registry.
pub fn is_library(path: &str) -> bool {
    const PARTS: [&str; 18] = [
        "/rustc/",
        "/rustlib/src/",
        "/rust/deps/",
        "/.cargo/registry/",
        "/.cargo/git/",
        "/registry/src/",
        "wasi-libc",
        "wasi-sysroot",
        "sysroot/include/",
        "libc-top-half",
        "libc-bottom-half",
        "dlmalloc/src/",
        "compiler-rt/",
        "/include/c++/",
        "/libcxx/",
        "/libcxxabi/",
        "/usr/include/",
        "/usr/lib/",
    ];
    PARTS.iter().any(|part| path.contains(part))
}

/// Whether a function without lines belongs to a library, by its name: C reserves names with two
/// underscores for the implementation, and the linker makes `_start.command_export`.
pub fn is_library_name(name: &str) -> bool {
    // Constructors with priorities up to 100 also belong to the implementation.
    const BEGINNINGS: [&str; 5] = ["__", "_GLOBAL__I_000", "std::", "core::", "alloc::"];
    let of_library = |name: &str| BEGINNINGS.iter().any(|begin| name.starts_with(begin));
    if name.ends_with(".command_export") {
        return true;
    }
    let name = name.trim_start_matches('<');
    match name.split_once(" as ") {
        // Traits of the language's own types, such as `&str`, come from libraries.
        Some((of, path)) if !of.contains("::") => of_library(path),
        _ => of_library(name),
    }
}

/// One star matches within a name; two stars match any folders.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// Whether a path, or the part after one of its separators, matches.
fn matches(glob: &Pattern, path: &str) -> bool {
    let ends = path.match_indices(['/', '\\']).map(|(at, _)| at + 1);
    let mut ends = [0].into_iter().chain(ends);
    ends.any(|from| glob.matches_with(&path[from..], OPTIONS))
}

/// A source map that hides code that is not shown. Inlined code takes the line of the shown code
/// that called it; other hidden code has no line.
pub struct Folded<'s> {
    source: &'s dyn Source,
    shown: Vec<bool>,
    is_all: bool,
}

impl<'s> Folded<'s> {
    /// Folds the code that a filter leaves out.
    pub fn new(source: &'s dyn Source, filter: &CodeFilter) -> Self {
        let shown = source.files().iter().map(|path| filter.shows(path));
        let shown = shown.collect();
        let is_all = *filter == CodeFilter::All;
        Self {
            source,
            shown,
            is_all,
        }
    }

    /// Whether the code of a file is shown.
    pub fn shows(&self, file: FileId) -> bool {
        self.shown.get(file.0 as usize).copied().unwrap_or(false)
    }

    /// Whether a function is shown: by the file of its place, or by its name if it has none. Code
    /// without lines may be the user's own, compiled without debug information.
    pub fn shows_function(&self, place: Option<Location>, name: &str) -> bool {
        match place {
            Some(at) => self.shows(at.file),
            None => self.is_all || !is_library_name(name),
        }
    }

    fn shown_of(&self, mut frames: Vec<InlinedFrame>) -> Vec<InlinedFrame> {
        frames.retain(|frame| frame.location.is_some_and(|at| self.shows(at.file)));
        frames
    }

    /// Whether no code is left out, not even functions without lines that belong to a library by
    /// their name.
    pub fn shows_all(&self) -> bool {
        self.is_all
    }

    /// Whether the code of any file is shown.
    pub fn shows_any(&self) -> bool {
        self.shown.contains(&true)
    }
}

impl Source for Folded<'_> {
    fn locate(&self, offset: OrigOffset) -> Option<Location> {
        let at = self.source.locate(offset)?;
        if self.shows(at.file) {
            return Some(at);
        }
        let around = self.source.around(offset);
        around.into_iter().find(|at| self.shows(at.file))
    }

    fn files(&self) -> &[String] {
        self.source.files()
    }

    fn short_path(&self, file: FileId) -> &str {
        self.source.short_path(file)
    }

    fn declared(&self, offset: OrigOffset) -> Option<Location> {
        self.source.declared(offset)
    }

    fn missing(&self) -> NoDebug {
        self.source.missing()
    }

    fn removed_lines(&self) -> Vec<Line> {
        self.source.removed_lines()
    }

    fn removed_functions(&self) -> Vec<(String, Location)> {
        self.source.removed_functions()
    }

    fn around(&self, offset: OrigOffset) -> Vec<Location> {
        let around = self.source.around(offset).into_iter();
        around.filter(|at| self.shows(at.file)).collect()
    }

    fn inlined_frames(&self, offset: OrigOffset) -> Vec<InlinedFrame> {
        let mut frames = self.source.inlined_frames(offset);
        let whole = frames.pop();
        let mut frames = self.shown_of(frames);
        frames.extend(whole);
        frames
    }

    fn written_frames(&self, offset: OrigOffset) -> Vec<InlinedFrame> {
        self.shown_of(self.source.written_frames(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_without_lines_are_known_by_their_names() {
        for library in [
            "__main_void",
            "_start.command_export",
            "core::fmt::write",
            "<alloc::string::String as core::fmt::Write>::write_str",
            "<&str as core::fmt::Debug>::fmt",
        ] {
            assert!(is_library_name(library), "{library}");
        }
        for own in [
            "main",
            "app::main",
            "<app::Row as core::fmt::Debug>::fmt",
            "<&app::Row as app::Show>::show",
            "<u32 as app::Show>::show",
        ] {
            assert!(!is_library_name(own), "{own}");
        }
    }

    #[test]
    fn libraries_are_known_by_their_paths() {
        for library in [
            "/rustc/254b/library/core/src/slice/index.rs",
            "/home/a/.cargo/registry/src/index-1/memchr-2.7/src/lib.rs",
            "/build/wasi-libc-0.0~git/libc-top-half/musl/src/stdio/printf.c",
            "/usr/lib/llvm-19/include/c++/v1/vector",
            "sysroot/include/ctype.h",
        ] {
            assert!(is_library(library), "{library}");
        }
        for own in ["src/main.rs", "/home/a/library/src/lib.rs", "bank.c"] {
            assert!(!is_library(own), "{own}");
        }
        assert!(is_library_name("__main_void"));
        assert!(is_library_name(
            "<core::fmt::Error as core::fmt::Debug>::fmt"
        ));
        assert!(!is_library_name("main") && !is_library_name("_start"));
    }

    #[test]
    fn globs_match_the_end_of_a_path() {
        let shows = |glob: &str, path: &str| matches(&Pattern::new(glob).unwrap(), path);
        assert!(shows("src/**/*.c", "/home/a/src/b/c.c"));
        assert!(shows("src/*.c", "src/c.c"));
        assert!(shows("*.c", "/x/c.c"));
        assert!(!shows("src/*.c", "/home/a/src/b/c.c"));
        assert!(!shows("c.c", "/x/abc.c"));
        assert!("[".parse::<CodeFilter>().is_err());
    }
}
