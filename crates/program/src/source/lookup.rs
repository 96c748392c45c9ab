//! From a source line to the code that comes from it.

use std::ops::Range;

use afterimage_ids::OrigOffset;
use thiserror::Error;

use super::{FileId, Location, SourceMap};
use crate::nearest::nearest;

/// Why there is no code for a line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LineError {
    /// The module has no line tables.
    #[error("the module has no debug information about source lines")]
    NoLines,
    /// No file is called so.
    #[error("no source file ends in \"{query}\"{}", suggestion(nearest))]
    UnknownFile {
        /// What was asked for.
        query: String,
        /// Files whose last part is spelled similarly, best first.
        nearest: Vec<String>,
    },
    /// Several files are called so.
    #[error("\"{query}\" is ambiguous: {}", candidates.join(", "))]
    AmbiguousFile {
        /// What was asked for.
        query: String,
        /// The paths that end in it.
        candidates: Vec<String>,
    },
    /// No code comes from that line of the file.
    #[error("no code comes from {path}:{line}{}", nearest_line(*nearest))]
    NoCode {
        /// The file's path.
        path: String,
        /// The line asked for.
        line: u32,
        /// The line with code that is nearest to it; the later one of two.
        nearest: Option<u32>,
    },
    /// Code comes from that line, but not from that column.
    #[error(
        "no code comes from column {column} of {path}:{line}; there is some from {}",
        columns(found)
    )]
    NoColumn {
        /// The file's path.
        path: String,
        /// The line asked for.
        line: u32,
        /// The column asked for.
        column: u32,
        /// The columns that code comes from, ascending.
        found: Vec<u32>,
    },
}

fn suggestion(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(", ")),
    }
}

fn nearest_line(line: Option<u32>) -> String {
    line.map_or_else(String::new, |line| {
        format!("; the nearest line with code is {line}")
    })
}

fn columns(found: &[u32]) -> String {
    let list: Vec<_> = found.iter().map(u32::to_string).collect();
    let noun = if found.len() == 1 {
        "column"
    } else {
        "columns"
    };
    format!("{noun} {}", list.join(", "))
}

impl SourceMap<'_> {
    /// The file that a path, or the last parts of one, names, among those that code comes from.
    ///
    /// # Errors
    /// If none or more than one does.
    pub fn find_file(&self, query: &str) -> Result<FileId, LineError> {
        let by_line = self.by_line();
        if by_line.is_empty() {
            return Err(LineError::NoLines);
        }
        let mut files: Vec<FileId> = by_line.iter().map(|(location, _)| location.file).collect();
        files.dedup();
        let matches = |file: &FileId| {
            let head = self.path(*file).strip_suffix(query);
            head.is_some_and(|head| head.is_empty() || head.ends_with(['/', '\\']))
        };
        let exact = files.iter().find(|file| self.path(**file) == query);
        if let Some(exact) = exact {
            return Ok(*exact);
        }
        let found: Vec<FileId> = files.iter().copied().filter(matches).collect();
        let query = query.to_string();
        match found[..] {
            [file] => Ok(file),
            [] => {
                let base = |path: &'_ str| path.rfind(['/', '\\']).map_or(0, |slash| slash + 1);
                let names = files
                    .iter()
                    .map(|file| &self.path(*file)[base(self.path(*file))..]);
                let nearest = nearest(&query[base(&query)..], names);
                let nearest = nearest.into_iter().map(str::to_string).collect();
                Err(LineError::UnknownFile { query, nearest })
            }
            _ => {
                let candidates = found
                    .iter()
                    .map(|file| self.path(*file).to_string())
                    .collect();
                Err(LineError::AmbiguousFile { query, candidates })
            }
        }
    }

    /// The code that comes from a line, or from a column of it, ascending.
    ///
    /// The first call sorts the rows by line; a later one takes O(log rows + answer).
    ///
    /// # Errors
    /// If none does.
    pub fn code_of_line(
        &self,
        file: FileId,
        line: u32,
        column: Option<u32>,
    ) -> Result<Vec<Range<OrigOffset>>, LineError> {
        let by_line = self.by_line();
        let key = |location: &Location| (location.file, location.line);
        let start = by_line.partition_point(|(location, _)| key(location) < (file, line));
        let count = by_line[start..].partition_point(|(location, _)| key(location) == (file, line));
        let path = || self.path(file).to_string();
        if count == 0 {
            let near = |entry: Option<&(Location, u32)>| {
                entry
                    .filter(|(location, _)| location.file == file)
                    .map(|(location, _)| location.line)
            };
            let before = near(start.checked_sub(1).and_then(|i| by_line.get(i)));
            let after = near(by_line.get(start));
            let candidates = [after, before].into_iter().flatten();
            let nearest = candidates.min_by_key(|candidate| candidate.abs_diff(line));
            return Err(LineError::NoCode {
                path: path(),
                line,
                nearest,
            });
        }
        let on_line = &by_line[start..start + count];
        let wanted = |location: &Location| column.is_none_or(|column| location.column == column);
        let mut rows: Vec<u32> = on_line
            .iter()
            .filter(|(location, _)| wanted(location))
            .map(|&(_, row)| row)
            .collect();
        if let (true, Some(column)) = (rows.is_empty(), column) {
            let mut found: Vec<u32> = on_line
                .iter()
                .map(|(location, _)| location.column)
                .collect();
            found.dedup();
            return Err(LineError::NoColumn {
                path: path(),
                line,
                column,
                found,
            });
        }
        rows.sort_unstable();
        Ok(rows
            .into_iter()
            .map(|row| self.rows[row as usize].range.clone())
            .collect())
    }

    /// The lines of a file that the line tables have rows for, ascending.
    pub fn lines_of(&self, file: FileId) -> Vec<u32> {
        let by_line = self.by_line();
        let start = by_line.partition_point(|(location, _)| location.file < file);
        let own = by_line[start..].iter().map(|(location, _)| location);
        let own = own.take_while(|location| location.file == file);
        let mut lines = Vec::from_iter(own.map(|location| location.line));
        lines.dedup();
        lines
    }

    /// The places that code comes from, ascending, with the positions of their rows.
    fn by_line(&self) -> &[(Location, u32)] {
        self.by_line.get_or_init(|| {
            // Every row takes a byte of the module or more.
            let numbered = self.rows.iter().zip(0..);
            let mut by_line: Vec<_> = numbered.map(|(row, i)| (row.location, i)).collect();
            by_line.sort_unstable();
            by_line
        })
    }
}
