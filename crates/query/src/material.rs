//! What a profile is made from, besides counts: names and source positions.

use std::borrow::Cow;

use afterimage_ids::{FuncId, OrigOffset};

/// A source file: its ordinal in the list of files of a [`Source`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// A position in a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// The file.
    pub file: FileId,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1; 0 if it is not known.
    pub column: u32,
}

/// A line of a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Line {
    /// The file.
    pub file: FileId,
    /// The line, from 1.
    pub number: u32,
}

impl Position {
    /// The line that it is on.
    pub fn on(self) -> Line {
        Line { file: self.file, number: self.line }
    }
}

/// Where operators come from.
pub trait Source {
    /// The position of the operator at this offset, or `None` where the
    /// debug information has no row, or one with line 0 (code of no line).
    fn position(&self, offset: OrigOffset) -> Option<Position>;

    /// The paths of the files, by [`FileId`].
    fn files(&self) -> &[String];

    /// Where a function is declared, if the debug information says so.
    fn declared(&self, _function: FuncId) -> Option<Position> {
        None
    }
}

/// What functions are called.
pub trait Names {
    /// The name as the module holds it, mangled if the compiler mangles.
    fn raw(&self, function: FuncId) -> Option<&str>;

    /// The name for people.
    fn demangled(&self, function: FuncId) -> Option<&str>;

    /// The name to show: demangled, or as it is, or `func[12]`.
    fn shown(&self, function: FuncId) -> Cow<'_, str> {
        match self.demangled(function).or_else(|| self.raw(function)) {
            Some(name) => name.into(),
            None => format!("func[{}]", function.as_u32()).into(),
        }
    }
}

/// No debug information at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSource;

impl Source for NoSource {
    fn position(&self, _: OrigOffset) -> Option<Position> {
        None
    }

    fn files(&self) -> &[String] {
        &[]
    }
}

/// Source positions as a sorted table.
#[derive(Clone, Debug, Default)]
pub struct LineTable {
    files: Vec<String>,
    rows: Vec<(OrigOffset, Option<Position>)>,
}

impl LineTable {
    /// A table in which each row holds from its offset to the next row's.
    /// Of two rows at the same offset the later one counts.
    pub fn new(files: Vec<String>, mut rows: Vec<(OrigOffset, Option<Position>)>) -> Self {
        rows.sort_by_key(|row| row.0);
        Self { files, rows }
    }
}

impl Source for LineTable {
    fn position(&self, offset: OrigOffset) -> Option<Position> {
        let after = self.rows.partition_point(|row| row.0 <= offset);
        self.rows[..after].last()?.1.filter(|position| position.line != 0)
    }

    fn files(&self) -> &[String] {
        &self.files
    }
}
