//! Finds the text of source files.
//!
//! Returns the text of a source file, or some of its lines. All reports use this module. The debug
//! information names the file by a path. The module searches for this path
//!
//! 1. among the sources embedded in the recording ([`Embedding`]),
//! 2. at each place that the user gave for such paths ([`Moved`]), in order,
//! 3. at the path itself: if it is relative, in the current folder, then beside the recording or
//!    the program,
//! 4. in the sources of Rust's standard library that rustup installed, if they are of the same
//!    commit (`rust`).
//!
//! If a source file is not found, the result is `None`, and [`SourcePaths`] keeps the path so that
//! a command can report it once. Wrong lines are worse than none, so no file is chosen by its name
//! alone.

mod embed;
mod lines;
mod moved;
mod rust;

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use afterimage_present::{Sources, grouped};
use afterimage_profile::CodeFilter;
use afterimage_trace::{EmbeddedSources, TraceError, TraceFile};
use md5::{Digest, Md5};

pub use embed::Embedding;
pub use lines::SourceLines;
pub use moved::{Moved, MovedError};
use rust::RustSources;

/// The size limit of source text, in bytes. Larger files are not read.
pub const LARGEST_SOURCE: u64 = afterimage_trace::MAX_SOURCE;

/// The places to search for sources, as the user specified, and the problems found with requested
/// sources: missing, changed or damaged. Clones share all of this.
#[derive(Clone, Debug, Default)]
pub struct SourcePaths(Arc<Paths>);

#[derive(Debug, Default)]
struct Paths {
    moved: Vec<Moved>,
    /// The folders from which files that the debug information names may be read. `None` allows all
    /// folders.
    roots: Option<Vec<PathBuf>>,
    /// Requested paths that were not found.
    missing: Mutex<BTreeSet<String>>,
    /// Paths whose text differs from the text that was compiled.
    changed: Mutex<BTreeSet<String>>,
    /// The reasons why embedded sources cannot be read, as sentences.
    damaged: Mutex<BTreeSet<String>>,
    rust: RustSources,
}

impl SourcePaths {
    /// Creates source paths. `moved` lists the places that the user gave, in the order in which to
    /// try them.
    pub fn new(moved: Vec<Moved>) -> Self {
        Self(Arc::new(Paths {
            moved,
            ..Paths::default()
        }))
    }

    /// Limits access to the files that the debug information names: only files under these folders
    /// are read. Files to which a rule given to [`new`](Self::new) leads, and files of Rust's
    /// standard library, are always read.
    #[must_use]
    pub fn within(self, roots: impl IntoIterator<Item = PathBuf>) -> Self {
        let roots = roots
            .into_iter()
            .filter_map(|root| root.canonicalize().ok());
        Self(Arc::new(Paths {
            moved: self.0.moved.clone(),
            roots: Some(roots.collect()),
            ..Paths::default()
        }))
    }

    /// Returns the remarks on sources for the end of a command: a sentence for each recording with
    /// damaged embedded sources, and one each about missing and changed sources.
    pub fn remarks(&self, code: &CodeFilter) -> Vec<String> {
        let damaged = lock(&self.0.damaged).clone();
        let said = damaged.into_iter().chain(self.not_at_hand(code));
        said.chain(self.changed(code)).collect()
    }

    /// Returns a sentence about the sources that differ from the compiled ones. Returns `None` if
    /// there are none in code that `code` shows.
    fn changed(&self, code: &CodeFilter) -> Option<String> {
        let (first, more) = shown(&lock(&self.0.changed), code)?;
        Some(format!(
            "changed since the program was compiled: {first}{more}; lines may be shown with the wrong text"
        ))
    }

    /// Returns a sentence about the sources that were not found, with the remedy. Returns `None` if
    /// none of them is in code that `code` shows.
    pub fn not_at_hand(&self, code: &CodeFilter) -> Option<String> {
        let (first, more) = shown(&lock(&self.0.missing), code)?;
        Some(format!(
            "sources not found: {first}{more}; say where they are with --source-path OLD=NEW"
        ))
    }
}

/// Returns the first of these paths that `code` shows, and the number of further paths in words.
fn shown(paths: &BTreeSet<String>, code: &CodeFilter) -> Option<(String, String)> {
    let mut shown = paths.iter().filter(|path| code.shows(path));
    let first = shown.next()?.clone();
    let more = match shown.count() {
        0 => String::new(),
        more => format!(" and {} more", grouped(more as u64)),
    };
    Some((first, more))
}

impl Paths {
    /// Whether a file that the debug information names may be read.
    fn allows(&self, place: &Path) -> bool {
        let Some(roots) = &self.roots else {
            return true;
        };
        let real = place.canonicalize();
        real.is_ok_and(|real| roots.iter().any(|root| real.starts_with(root)))
    }
}

/// The sources of one program.
#[derive(Debug)]
pub struct SourceFiles {
    paths: SourcePaths,
    /// The path of the recording or the program.
    at: PathBuf,
    /// The recording, whose embedded sources are read on demand.
    file: Option<TraceFile>,
    embedded: OnceLock<Option<EmbeddedSources>>,
    /// The MD5 digests of the compiled files, by path. A file is compared when it is first read.
    digests: Mutex<HashMap<String, [u8; 16]>>,
    /// The places where paths were found.
    found: Mutex<HashMap<String, Option<PathBuf>>>,
}

impl SourceFiles {
    /// Creates the sources of a recording or program at `at`.
    pub fn new(at: &Path, paths: SourcePaths) -> Self {
        Self {
            paths,
            at: at.to_owned(),
            file: None,
            embedded: OnceLock::new(),
            digests: Mutex::default(),
            found: Mutex::default(),
        }
    }

    /// Adds the sources that are embedded in the recording.
    #[must_use]
    pub fn embedded_in(self, file: TraceFile) -> Self {
        let file = Some(file);
        Self { file, ..self }
    }

    /// Returns the places that the user gave for sources.
    pub fn paths(&self) -> &SourcePaths {
        &self.paths
    }

    /// Records the digests of the compiled files, from the debug information.
    pub fn expect<'p>(&self, digests: impl Iterator<Item = (&'p str, [u8; 16])>) {
        let digests = digests.map(|(path, digest)| (path.to_owned(), digest));
        *lock(&self.digests) = digests.collect();
    }

    /// Compares a file's text with the compiled text, when the file is first read. Records a
    /// difference.
    fn compare(&self, path: &str, text: &[u8]) {
        let expected = lock(&self.digests).remove(path);
        if expected.is_some_and(|expected| expected[..] != Md5::digest(text)[..]) {
            lock(&self.paths.0.changed).insert(path.to_owned());
        }
    }

    /// Returns a sentence about the files that lcov output leaves out because they were not found.
    /// Programs that read lcov open every file named in it. If no file was found, none is left out.
    pub fn left_out(&self, files: &[&str]) -> Option<String> {
        let missing = files.iter().filter(|path| !self.has(path));
        let missing: BTreeSet<_> = missing.map(|&path| path.to_owned()).collect();
        let (first, more) = shown(&missing, &CodeFilter::All)?;
        let said = if missing.len() < files.len() {
            "left out, because their source was not found"
        } else {
            "none of the source files was found"
        };
        Some(format!(
            "{said}: {first}{more}; say where they are with --source-path OLD=NEW"
        ))
    }

    /// Whether the text of a file can be read. Does not record a missing file as missing.
    pub fn has(&self, path: &str) -> bool {
        self.embedded().is_some_and(|own| own.has(path)) || self.locate(path).is_some()
    }

    /// Returns the reason why the text of a file was not found, with the remedy.
    pub fn why_missing(&self, path: &str) -> String {
        let is_file = may_be_source(Path::new(path)).is_some();
        if is_file && !self.paths.0.allows(Path::new(path)) {
            let folder = Path::new(path).parent().unwrap_or(Path::new(""));
            let folder = folder.display();
            format!(
                "{path} is outside the current folder and the recording's; to show it, add \
                     --source-path {folder}={folder}"
            )
        } else {
            format!(
                "{path} was not found; say where it is with --source-path OLD=NEW, or record \
                 with --sources"
            )
        }
    }

    fn embedded(&self) -> Option<&EmbeddedSources> {
        let read = || self.undamaged(self.file.as_ref()?.sources()).flatten();
        self.embedded.get_or_init(read).as_ref()
    }

    /// Returns the text of an embedded file.
    fn embedded_text(&self, path: &str) -> Option<Vec<u8>> {
        self.undamaged(self.embedded()?.read(path)).flatten()
    }

    fn undamaged<T>(&self, found: Result<T, TraceError>) -> Option<T> {
        let damaged = |error| {
            let said = format!("{}: its sources cannot be read: {error}", self.at.display());
            lock(&self.paths.0.damaged).insert(said);
        };
        found.map_err(damaged).ok()
    }

    /// Finds the place on disk of a file that may be source text. Ignores embedded sources.
    pub fn locate(&self, path: &str) -> Option<PathBuf> {
        let mut found = lock(&self.found);
        if let Some(known) = found.get(path) {
            return known.clone();
        }
        let place = self.looked_for(path);
        found.insert(path.to_owned(), place.clone());
        place
    }

    fn looked_for(&self, path: &str) -> Option<PathBuf> {
        if path.is_empty() {
            return None;
        }
        let Paths { moved, rust, .. } = &*self.paths.0;
        let moved = moved.iter().filter_map(|moved| moved.apply(path));
        let beside = self.at.parent().unwrap_or(Path::new(""));
        let own = [PathBuf::from(path), beside.join(path)];
        let own = own.into_iter().filter(|place| self.paths.0.allows(place));
        let places = moved.chain(own);
        // Toolchains are searched only if all other places lack the file.
        let mut places = places.chain(std::iter::once_with(|| rust.locate(path)).flatten());
        places.find(|place| may_be_source(place).is_some())
    }

    /// Returns the lines of a file, for a report that needs only a few of them.
    pub fn lines(&self, path: &str) -> Option<SourceLines> {
        let lines = match self.embedded_text(path) {
            Some(text) => {
                self.compare(path, &text);
                Some(SourceLines::of(text))
            }
            None => self.locate(path).and_then(|at| {
                let is_expected = lock(&self.digests).contains_key(path);
                if let Some(text) = is_expected.then(|| fs::read(&at).ok()).flatten() {
                    self.compare(path, &text);
                }
                SourceLines::open(&at)
            }),
        };
        self.noted(path, lines)
    }

    /// Returns `found` unchanged. If it is `None`, records the file as missing.
    fn noted<T>(&self, path: &str, found: Option<T>) -> Option<T> {
        if found.is_none() && !path.is_empty() {
            lock(&self.paths.0.missing).insert(path.to_owned());
        }
        found
    }
}

impl Sources for SourceFiles {
    fn read(&self, path: &str) -> Option<String> {
        let on_disk = || self.locate(path).and_then(|at| fs::read(at).ok());
        let bytes = self.embedded_text(path).or_else(on_disk);
        if let Some(bytes) = &bytes {
            self.compare(path, bytes);
        }
        let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        self.noted(path, text)
    }
}

/// The sources of several recordings of similar programs. A file comes from the first recording
/// that has it.
pub struct FirstOf<'s>(pub Vec<&'s SourceFiles>);

impl Sources for FirstOf<'_> {
    fn read(&self, path: &str) -> Option<String> {
        let has = self.0.iter().find(|sources| sources.has(path));
        has.or(self.0.first())?.read(path)
    }
}

/// Returns a file's metadata, if it may be source text. Checks this before opening, because opening
/// a pipe would wait for a writer.
fn may_be_source(path: &Path) -> Option<fs::Metadata> {
    let data = fs::metadata(path).ok()?;
    (data.is_file() && data.len() <= LARGEST_SOURCE).then_some(data)
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_for_and_is_shown_is_missed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("here.c"), "int x;\n").unwrap();
        let paths = SourcePaths::default();
        let sources = SourceFiles::new(&folder.path().join("a.aft"), paths.clone());
        assert!(!sources.has("/gone/b.c"));
        assert_eq!(paths.not_at_hand(&CodeFilter::All), None);
        assert_eq!(sources.read("here.c").as_deref(), Some("int x;\n"));
        assert!(sources.read("/rustc/0/library/core/src/lib.rs").is_none());
        assert_eq!(paths.not_at_hand(&CodeFilter::Mine), None);
        assert!(sources.read("/gone/b.c").is_none());
        assert!(sources.lines("/gone/a.c").is_none());
        let said = paths.not_at_hand(&CodeFilter::Mine).unwrap();
        assert!(said.contains("/gone/a.c and 1 more;"), "{said}");
        let said = sources.left_out(&["here.c", "/gone/a.c"]).unwrap();
        assert!(
            said.starts_with("left out,") && said.contains(": /gone/a.c;"),
            "{said}"
        );
        let said = sources.left_out(&["/gone/a.c"]).unwrap();
        assert!(said.starts_with("none of the source files"), "{said}");
        assert_eq!(sources.left_out(&["here.c"]), None);
    }

    #[test]
    fn a_text_that_was_not_compiled_is_named_once() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["same.c", "other.c", "lines.c", "unread.c"] {
            fs::write(folder.path().join(name), "int x;\n").unwrap();
        }
        let paths = SourcePaths::default();
        let sources = SourceFiles::new(&folder.path().join("a.aft"), paths.clone());
        let same = Md5::digest("int x;\n").into();
        let digests = [
            ("same.c", same),
            ("other.c", [1; 16]),
            ("lines.c", [2; 16]),
            ("unread.c", [3; 16]),
        ];
        sources.expect(digests.into_iter());
        assert!(sources.read("same.c").is_some() && sources.has("unread.c"));
        assert!(paths.remarks(&CodeFilter::All).is_empty());
        // A changed file is still shown.
        assert_eq!(sources.read("other.c").as_deref(), Some("int x;\n"));
        assert!(sources.lines("lines.c").is_some());
        let said = paths.remarks(&CodeFilter::All);
        let [said] = &said[..] else {
            panic!("{said:?}")
        };
        assert!(said.contains("compiled: lines.c and 1 more;"), "{said}");
    }

    #[test]
    fn a_folder_a_pipe_and_a_path_without_a_name_are_no_sources() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe.c");
        let made = afterimage_testkit::tools::command("mkfifo")
            .arg(&pipe)
            .status();
        assert!(made.unwrap().success());
        let sources = SourceFiles::new(&folder.path().join("a.aft"), SourcePaths::default());
        for path in [folder.path(), &pipe, Path::new("pipe.c"), Path::new("")] {
            assert!(sources.read(path.to_str().unwrap()).is_none());
        }
    }
}
