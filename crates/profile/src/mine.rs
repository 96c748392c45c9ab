//! Distinguishes the user's own code from library code.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use afterimage_ids::{FuncId, OrigOffset};
use afterimage_program::{FileId, InlinedFrame, Location, Names, NoDebug, Program};
use glob::{MatchOptions, Pattern, PatternError};
use serde::{Deserialize, Serialize};

use crate::{InlinedCode, Line, Source};

/// The code to show. Other code is shown as the line that called it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeFilter {
    /// The user's own code, which is all code except libraries ([`is_library`]).
    #[default]
    Mine,
    /// All code with lines.
    All,
    /// Files that match a glob such as `src/**/*.c`. The glob must match the whole path or, if the
    /// file belongs to no library, a suffix of the path.
    Files(String),
}

impl CodeFilter {
    /// Whether the code of a file is shown.
    pub fn shows(&self, path: &str) -> bool {
        match self {
            Self::Mine => !is_library(path),
            Self::All => true,
            Self::Files(glob) => Pattern::new(glob).is_ok_and(|glob| {
                // A pattern selects a library's file only if it matches the whole path.
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

/// Whether a source file's path belongs to a library. Libraries are the standard libraries of Rust
/// and C, compilers' runtimes, and packages from registries.
pub fn is_library(path: &str) -> bool {
    const PARTS: [&str; 20] = [
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
        "dlmalloc/include/",
        "/lib/clang/",
        "compiler-rt/",
        "/include/c++/",
        "/libcxx/",
        "/libcxxabi/",
        "/usr/include/",
        "/usr/lib/",
    ];
    PARTS.iter().any(|part| path.contains(part))
}

/// Whether a function without lines belongs to a library, judged by its name. C reserves names with
/// two underscores for the implementation, and the linker makes `_start.command_export`.
pub fn is_library_name(name: &str) -> bool {
    // Constructors with priorities up to 100 are also reserved for the implementation.
    const BEGINNINGS: [&str; 7] = [
        "__",
        "_GLOBAL__I_000",
        "std::",
        "core::",
        "alloc::",
        // A user's own operators with these names have lines.
        "operator new",
        "operator delete",
    ];
    let of_library = |name: &str| BEGINNINGS.iter().any(|begin| name.starts_with(begin));
    if name.ends_with(".command_export") {
        return true;
    }
    let name = name.trim_start_matches(['<', '&']);
    let name = name.strip_prefix("mut ").unwrap_or(name);
    match name.split_once(" as ") {
        // Implementations for the language's own types, such as `&str`, come from libraries.
        Some((of, path)) if !of.contains("::") => of_library(path),
        _ => of_library(name),
    }
}

/// One star matches within a name, and two stars match any folders.
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

/// A source map that hides the code that a filter leaves out. Hidden inlined code takes the line of
/// the shown code that called it. Other hidden code has no line.
pub struct Folded<'s> {
    source: &'s dyn Source,
    shown: Vec<bool>,
    is_all: bool,
    is_mixed: bool,
}

impl<'s> Folded<'s> {
    /// Folds the code that a filter leaves out.
    pub fn new(source: &'s dyn Source, filter: &CodeFilter) -> Self {
        let shown = source.files().iter().map(|path| filter.shows(path));
        let shown = shown.collect();
        Self {
            source,
            shown,
            is_all: *filter == CodeFilter::All,
            is_mixed: matches!(filter, CodeFilter::Files(_)),
        }
    }

    /// Like [`new`](Self::new), but shows all code if the filter matches no code.
    pub fn if_any(source: &'s dyn Source, filter: &CodeFilter) -> Self {
        let folded = Self::new(source, filter);
        if folded.shows_any() {
            folded
        } else {
            Self::new(source, &CodeFilter::All)
        }
    }

    /// Whether the code of a file is shown.
    pub fn shows(&self, file: FileId) -> bool {
        self.shown.get(file.0 as usize).copied().unwrap_or(false)
    }

    fn shown_of(&self, mut frames: Vec<InlinedFrame>) -> Vec<InlinedFrame> {
        frames.retain(|frame| frame.location.is_some_and(|at| self.shows(at.file)));
        frames
    }

    /// Whether no code is left out, including functions without lines whose name belongs to a
    /// library.
    pub fn shows_all(&self) -> bool {
        self.is_all
    }

    /// Whether the code of a function is shown, given its name and its declaration or first line.
    /// Code without lines may be the user's own, compiled without debug information.
    pub fn shows_function(&self, name: &str, position: Option<Location>) -> bool {
        match position {
            Some(at) => self.shows(at.file),
            None => self.is_all || !is_library_name(name),
        }
    }

    /// Describes the code that is left out.
    pub fn left_out(&self) -> &'static str {
        if self.is_mixed {
            "other code"
        } else {
            "library code"
        }
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

    fn shows_own_line(&self, offset: OrigOffset) -> Option<bool> {
        let at = self.source.locate(offset)?;
        Some(self.shows(at.file))
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

    fn inlined_calls(&self, offset: OrigOffset) -> Vec<InlinedCode> {
        let mut calls = self.source.inlined_calls(offset);
        calls.retain(|code| self.shows(code.call.file));
        calls
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

/// The functions of shown code. Reports leave out other functions, or show the line that called
/// them.
pub struct OwnFunctions<'a> {
    /// The lines of shown code.
    pub folded: &'a Folded<'a>,
    program: &'a Program,
    names: &'a Names,
    known: RefCell<HashMap<FuncId, bool>>,
}

impl<'a> OwnFunctions<'a> {
    /// Creates an index of the functions of a program that a source map shows.
    pub fn new(folded: &'a Folded<'a>, program: &'a Program, names: &'a Names) -> Self {
        Self {
            folded,
            program,
            names,
            known: RefCell::default(),
        }
    }

    /// Whether a function's code is shown.
    pub fn shows(&self, function: FuncId) -> bool {
        if let Some(&known) = self.known.borrow().get(&function) {
            return known;
        }
        let position = self.program.function(function).and_then(|function| {
            let source = self.folded.source;
            let mut offsets = (function.body.start.0..function.body.end.0).map(OrigOffset);
            let declared = source.declared(function.body.start);
            declared.or_else(|| offsets.find_map(|offset| source.locate(offset)))
        });
        let name = self.names.function(function);
        let shown = self.folded.shows_function(name, position);
        self.known.borrow_mut().insert(function, shown);
        shown
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
            "<&core::num::error::IntErrorKind as core::fmt::Debug>::fmt",
            "<&mut core::fmt::Formatter as core::fmt::Write>::write_str",
            "operator new(unsigned long)",
            "operator delete[](void*)",
        ] {
            assert!(is_library_name(library), "{library}");
        }
        for own in [
            "main",
            "app::main",
            "<app::Row as core::fmt::Debug>::fmt",
            "<&app::Row as core::fmt::Debug>::fmt",
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
            "/rust/deps/dlmalloc-0.2/dlmalloc/include/unistd.h",
            "build/install/lib/clang/21/include/stdarg.h",
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
