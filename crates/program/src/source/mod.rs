//! The source map of a module, which links operators to source lines according to DWARF debug
//! information.
//!
//! The map reads only the original module, so addresses count from the start of the Code section's
//! payload. The line tables are decoded once, when the map is built. The entries about functions
//! are decoded only when inlining or names are requested. Unreadable parts are omitted and listed
//! as warnings.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use afterimage_ids::OrigOffset;
use gimli::{AbbreviationsCacheStrategy, EndianSlice, LittleEndian};

use crate::sections::Sections;
use crate::{Fit, NoDebug};

mod entries;
mod files;
mod lines;
mod lookup;
mod subprograms;

use files::FileTable;
pub use lookup::LineError;
pub use subprograms::{InlinedFrame, InlinedFunction};

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// A source file, as its position in [`SourceMap::files`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// A place in a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// The file that contains the place.
    pub file: FileId,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, or 0 if it is not known.
    pub column: u32,
}

/// A stretch of code that comes from one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The stretch of code, in the original module.
    pub range: Range<OrigOffset>,
    /// The source location of the code.
    pub location: Location,
    /// Whether the compiler recommends the start of the code for a breakpoint on the line.
    pub is_statement: bool,
    /// Whether the compiler recommends the start of the code for a breakpoint on the function,
    /// because the function's frame is set up there.
    pub prologue_end: bool,
}

/// The source map of a module.
pub struct SourceMap<'a> {
    sections: Sections<'a>,
    dwarf: gimli::Dwarf<Slice<'a>>,
    /// The units, ascending by their offset in `.debug_info`.
    units: Vec<Unit<'a>>,
    files: FileTable,
    /// The stretches of code with a known source, ascending, without overlaps.
    rows: Vec<Row>,
    /// The places whose rows belong to other code, ascending.
    refused: Vec<Location>,
    fit: Fit,
    /// The number of sequences that cover only a part of a body, but were accepted because an entry
    /// fits the body exactly.
    accepted: usize,
    tables: Vec<lines::Table<'a>>,
    warnings: Vec<String>,
    /// Chooses among several files with the same name.
    prefer: Option<Box<Prefer>>,
    /// For each file, the position at which its short path starts within its full path.
    short_paths: OnceLock<Vec<usize>>,
    by_line: OnceLock<Vec<(Location, u32)>>,
    subprograms: OnceLock<subprograms::Subprograms>,
    removed_lines: OnceLock<Vec<(FileId, u32)>>,
    /// The descriptions of functions that have been read.
    described: Mutex<HashMap<entries::EntryId, Arc<entries::Description>>>,
}

/// Whether a file with this path is available.
type Prefer = dyn Fn(&str) -> bool + Send + Sync;

/// A compilation unit with its files.
struct Unit<'a> {
    /// The unit and its entries. Naming the offset type makes the map usable where a shorter borrow
    /// is expected.
    dwarf: gimli::Unit<Slice<'a>, usize>,
    /// The files, by the index that the unit's line table gives them.
    files: Vec<Option<FileId>>,
}

impl<'a> SourceMap<'a> {
    /// Reads the line tables of a module. Never fails, because a module without DWARF yields an
    /// empty map, and broken DWARF yields its readable parts and [`warnings`](Self::warnings).
    ///
    /// Takes O(size of the debug sections · log), even for hostile input.
    pub fn build(bytes: &'a [u8]) -> Self {
        let sections = Sections::read(bytes);
        let section = |id: gimli::SectionId| {
            let data = sections.custom(id.name()).map_or(&[][..], |(data, _)| data);
            Ok::<_, std::convert::Infallible>(EndianSlice::new(data, LittleEndian))
        };
        let Ok(mut dwarf) = gimli::Dwarf::load(section);
        dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);

        let mut reader = lines::LineReader::new(&sections, &dwarf);
        let mut units = Vec::new();
        let mut headers = dwarf.units();
        loop {
            match headers.next() {
                Ok(Some(header)) => units.extend(reader.unit(header)),
                Ok(None) => break,
                Err(error) => {
                    reader.warn(format!(".debug_info: {error}"));
                    break;
                }
            }
        }
        let lines::Lines {
            files,
            rows,
            parts,
            refused,
            fit,
            tables,
            mut warnings,
        } = reader.finish();
        warnings.splice(0..0, sections.warnings.iter().cloned());
        let mut map = Self {
            sections,
            dwarf,
            units,
            files,
            rows,
            refused: Vec::new(),
            fit,
            accepted: 0,
            tables,
            warnings,
            prefer: None,
            short_paths: OnceLock::new(),
            by_line: OnceLock::new(),
            subprograms: OnceLock::new(),
            removed_lines: OnceLock::new(),
            described: Mutex::default(),
        };
        map.settle(parts, refused);
        map
    }

    /// If a name fits several files, prefers files that satisfy `prefer`. For example, the caller
    /// may prefer files that are available.
    pub fn preferring(mut self, prefer: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.prefer = Some(Box::new(prefer));
        self
    }

    /// Returns the number of bytes of debug information in the module.
    pub fn debug_bytes(&self) -> u64 {
        let own = self.sections.custom.iter();
        let own = own.filter(|(name, ..)| name.starts_with(".debug_"));
        own.map(|(_, data, _)| data.len() as u64).sum()
    }

    /// Returns the place of the debug information if the module itself has none.
    pub fn missing(&self) -> NoDebug {
        NoDebug::of(|name| self.sections.custom(name).map_or(&[][..], |(data, _)| data))
    }

    /// Returns the lines of [removed functions](Self::removed_functions), ascending. These are the
    /// lines without code between the declaration of such a function and the next declaration in
    /// the file. The first call runs the line tables again.
    pub fn removed_lines(&self) -> &[(FileId, u32)] {
        self.removed_lines.get_or_init(|| self.find_removed_lines())
    }

    fn find_removed_lines(&self) -> Vec<(FileId, u32)> {
        let mut lines = Vec::new();
        for table in &self.tables {
            let _ = table.removed(self.dwarf.debug_line, |file, line| lines.push((file, line)));
            // Rows of one line are adjacent.
            lines.dedup();
        }
        let there = self
            .rows
            .iter()
            .map(|row| row.location)
            .chain(self.refused.iter().copied());
        let there: HashSet<_> = there.map(|place| (place.file, place.line)).collect();
        let removed = self
            .removed_functions()
            .into_iter()
            .map(|(_, at)| (at, true));
        let others = self.declarations().into_iter().map(|at| (at, false));
        let declared = removed
            .chain(others)
            .map(|(at, is_removed)| (at.file, at.line, is_removed));
        let mut declared = Vec::from_iter(declared);
        declared.sort_unstable();
        let is_of_removed = |&(file, line): &(FileId, u32)| {
            let after = declared.partition_point(|(own, at, _)| (*own, *at) <= (file, line));
            let last = declared[..after].last();
            last.is_some_and(|(own, _, is_removed)| *own == file && *is_removed)
        };
        lines.retain(|line| !there.contains(line) && is_of_removed(line));
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// Accepts the rows of a sequence that is part of a body if an entry fits the body exactly.
    /// Refuses all other rows.
    fn settle(&mut self, parts: Vec<Vec<Row>>, mut refused: Vec<Row>) {
        let mut taken = Vec::new();
        for rows in parts {
            let body = rows.first().map(|row| row.range.start);
            if body.is_some_and(|body| self.subprograms().fit.is_exact(body)) {
                taken.push(rows)
            } else {
                refused.extend(rows)
            }
        }
        if !taken.is_empty() {
            self.accepted = taken.len();
            self.rows.extend(taken.into_iter().flatten());
            self.rows.sort_by_key(|row| row.range.start);
        }
        self.refused = refused.into_iter().map(|row| row.location).collect();
        self.refused.sort_unstable();
        self.refused.dedup();
    }

    /// Returns the bodies of functions whose line tables belong to other code, because a tool
    /// rewrote the module but not its debug information. These bodies have no rows.
    pub fn foreign(&self) -> impl Iterator<Item = &Range<OrigOffset>> {
        let accepted = |body: &Range<OrigOffset>| {
            self.accepted > 0 && self.subprograms().fit.is_exact(body.start)
        };
        self.fit.foreign().filter(move |body| !accepted(body))
    }

    /// Returns the number of functions that the line tables cover.
    pub fn described(&self) -> usize {
        self.fit.claimed()
    }

    /// Returns the stretches of code with a known source, ascending, without overlaps.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Whether any code of a function comes from a line. O(log rows).
    pub fn has_lines(&self, body: &Range<OrigOffset>) -> bool {
        let first = self.rows.partition_point(|row| row.range.end <= body.start);
        self.rows
            .get(first)
            .is_some_and(|row| row.range.start < body.end)
    }

    /// Returns the source location of the code at an offset. Returns `None` if the tables do not
    /// cover the offset, or give no line for it. O(log rows).
    pub fn locate(&self, offset: OrigOffset) -> Option<Location> {
        let after = self.rows.partition_point(|row| row.range.start <= offset);
        let row = self.rows[..after].last()?;
        (offset < row.range.end).then_some(row.location)
    }

    /// Returns the full paths of the files, by [`FileId`].
    pub fn files(&self) -> &[String] {
        self.files.paths()
    }

    /// Returns the files that have an MD5 digest of their text, by full path, with the digest.
    pub fn digests(&self) -> impl Iterator<Item = (&str, [u8; 16])> {
        self.files.digests()
    }

    /// Returns the full path of a file.
    pub fn path(&self, file: FileId) -> &str {
        self.files().get(file.0 as usize).map_or("", String::as_str)
    }

    /// Returns the warnings so far about unreadable parts.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        let later = self
            .subprograms
            .get()
            .into_iter()
            .flat_map(|s| s.warnings());
        self.warnings.iter().chain(later).map(String::as_str)
    }
}

impl std::fmt::Debug for SourceMap<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SourceMap")
            .field("files", &self.files().len())
            .field("rows", &self.rows.len())
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}
