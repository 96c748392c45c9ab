//! Finds the code for a source line.

use std::ops::Range;

use afterimage_ids::OrigOffset;
use thiserror::Error;

use super::files::simplified;
use super::{FileId, Location, SourceMap};
use crate::NoDebug;
use crate::nearest::nearest;

/// The reason why there is no code for a line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LineError {
    /// The module has no line tables.
    #[error(transparent)]
    NoLines(NoDebug),
    /// The linker removed the code of the line, or of the whole file.
    #[error(
        "no code comes from {path}{}: the linker removed {}, to which nothing refers",
        line.map_or_else(String::new, |line| format!(":{line}")),
        if line.is_some() { "its function" } else { "all of its functions" }
    )]
    Removed {
        /// The path of the file.
        path: String,
        /// The requested line, or `None` if the whole file was requested.
        line: Option<u32>,
    },
    /// The line tables belong to other code.
    #[error(
        "{path}{} comes from functions whose debug information does not match their code: a \
         tool rewrote the module and kept the old addresses; record the module as it was linked",
        line.map_or_else(String::new, |line| format!(":{line}"))
    )]
    Foreign {
        /// The path of the file.
        path: String,
        /// The requested line, or `None` if the whole file was requested.
        line: Option<u32>,
    },
    /// No file has this name.
    #[error(
        "no source file ends in \"{query}\"{}{}",
        suggestion(nearest),
        match elsewhere {
            NoDebug::Nowhere if nearest.is_empty() => "; if the program has it, compile it with -g".to_owned(),
            NoDebug::Nowhere => String::new(),
            elsewhere => elsewhere.hint(),
        }
    )]
    UnknownFile {
        /// The name as the user wrote it.
        query: String,
        /// Files with a similar last path component, best first.
        nearest: Vec<String>,
        /// Other places of debug information, according to the module.
        elsewhere: NoDebug,
    },
    /// Several files have this name.
    #[error("\"{query}\" is ambiguous: {}", candidates.join(", "))]
    AmbiguousFile {
        /// The name as the user wrote it.
        query: String,
        /// The paths that end with the text.
        candidates: Vec<String>,
    },
    /// No code comes from that line of the file.
    #[error("no code comes from {path}:{line}{}", nearest_line(*nearest))]
    NoCode {
        /// The path of the file.
        path: String,
        /// The requested line.
        line: u32,
        /// The nearest line with code, or the later of two equally near lines.
        nearest: Option<u32>,
    },
    /// Code comes from that line, but not from that column.
    #[error(
        "no code comes from column {column} of {path}:{line}; there is code from {}",
        columns(found)
    )]
    NoColumn {
        /// The path of the file.
        path: String,
        /// The requested line.
        line: u32,
        /// The requested column.
        column: u32,
        /// The columns from which code comes, ascending.
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

const SEPARATORS: [char; 2] = ['/', '\\'];

/// Returns the position at which a path's last part starts.
fn base(path: &str) -> usize {
    path.rfind(SEPARATORS).map_or(0, |slash| slash + 1)
}

/// Extends a suffix of a path by a preceding folder `src`. Many packages have a file `lib.rs`, so
/// the file's name alone would not identify the package.
fn with_src(path: &str, start: usize) -> usize {
    let before = path.get(..start.saturating_sub(1)).unwrap_or_default();
    match &before[base(before)..] {
        "src" => base(before),
        _ => start,
    }
}

/// Finds the shortest suffix of each file's path that identifies the file among these files.
/// Returns the files that share their last component with another file.
fn shorten(paths: &[String], files: &[FileId], starts: &mut [usize]) -> Vec<FileId> {
    let parts = |file: FileId| paths[file.0 as usize].rsplit(SEPARATORS);
    let mut sorted = files.to_vec();
    sorted.sort_by(|a, b| parts(*a).cmp(parts(*b)));
    let common = |pair: &[FileId]| {
        let both = parts(pair[0]).zip(parts(pair[1]));
        both.take_while(|(a, b)| a == b).count()
    };
    let after = Vec::from_iter(sorted.windows(2).map(common));
    let mut alike = Vec::new();
    for (i, &file) in sorted.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|i| after.get(i));
        let common = before.max(after.get(i)).copied().unwrap_or(0);
        if common > 0 {
            alike.push(file);
        }
        let path = &paths[file.0 as usize];
        let separators = path.rmatch_indices(SEPARATORS);
        let last = separators.map(|(at, _)| at + 1).nth(common);
        starts[file.0 as usize] = last.unwrap_or(0);
    }
    alike
}

impl SourceMap<'_> {
    /// Finds the file that a path, or the end of a path, names. The file must have code or a
    /// declaration of a function. Among several such files, chooses the
    /// [preferred](Self::preferring) file.
    ///
    /// # Errors
    /// Returns an error if no file or more than one file fits.
    pub fn find_file(&self, query: &str) -> Result<FileId, LineError> {
        let by_line = self.by_line();
        let mut files: Vec<FileId> = by_line.iter().map(|(location, _)| location.file).collect();
        files.dedup();
        let simple = simplified(query);
        let mut query = simple.as_str();
        while let Some(rest) = query.strip_prefix("../") {
            query = rest;
        }
        let matches = |file: &FileId| {
            let head = self.path(*file).strip_suffix(query);
            head.is_some_and(|head| head.is_empty() || head.ends_with(SEPARATORS))
        };
        if !files.iter().any(matches) {
            let refused = self.refused.iter().map(|location| location.file);
            if let Some(file) = refused.into_iter().find(matches) {
                let path = self.path(file).to_string();
                return Err(LineError::Foreign { path, line: None });
            }
        }
        if by_line.is_empty() {
            return Err(LineError::NoLines(self.missing()));
        }
        let exact = files.iter().find(|file| self.path(**file) == query);
        if let Some(exact) = exact {
            return Ok(*exact);
        }
        let found: Vec<FileId> = files.iter().copied().filter(matches).collect();
        let query = query.to_string();
        match found[..] {
            [file] => Ok(file),
            [] => {
                // A file may contain only declarations.
                let mut declared = self.declarations().into_iter().map(|at| at.file);
                if let Some(file) = declared.find(matches) {
                    return Ok(file);
                }
                let removed = self.removed_lines().iter().map(|(file, _)| *file);
                if let Some(file) = removed.into_iter().find(matches) {
                    let path = self.path(file).to_string();
                    return Err(LineError::Removed { path, line: None });
                }
                let names = files
                    .iter()
                    .map(|file| &self.path(*file)[base(self.path(*file))..]);
                let nearest = nearest(&query[base(&query)..], names);
                let nearest = nearest.into_iter().map(str::to_string).collect();
                Err(LineError::UnknownFile {
                    query,
                    nearest,
                    elsewhere: self.missing(),
                })
            }
            _ if found
                .iter()
                .filter(|file| self.is_preferred(**file))
                .count()
                == 1 =>
            {
                let preferred = found.into_iter().find(|file| self.is_preferred(*file));
                preferred.ok_or_else(|| LineError::NoLines(self.missing()))
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

    fn is_preferred(&self, file: FileId) -> bool {
        self.prefer
            .as_ref()
            .is_some_and(|prefer| prefer(self.path(file)))
    }

    /// Returns the shortest end of a file's path by which [`find_file`](Self::find_file) finds the
    /// file. O(files · log) at the first call.
    pub fn short_path(&self, file: FileId) -> &str {
        let starts = self.short_paths.get_or_init(|| {
            let paths = self.files();
            let mut starts: Vec<usize> = paths.iter().map(|path| base(path)).collect();
            let mut used = vec![false; paths.len()];
            for row in &self.rows {
                used[row.location.file.0 as usize] = true;
            }
            let files = (0..).map(FileId).zip(used).filter(|(_, used)| *used);
            let files = Vec::from_iter(files.map(|(file, _)| file));
            let alike = shorten(paths, &files, &mut starts);
            let preferred = alike.into_iter().filter(|file| self.is_preferred(*file));
            let preferred = Vec::from_iter(preferred);
            shorten(paths, &preferred, &mut starts);
            for file in preferred {
                let (path, start) = (&paths[file.0 as usize], &mut starts[file.0 as usize]);
                *start = with_src(path, *start);
            }
            starts
        });
        let start = starts.get(file.0 as usize).copied().unwrap_or_default();
        &self.path(file)[start..]
    }

    /// Returns the code that comes from a line or from one of its columns, ascending.
    ///
    /// The first call sorts the rows by line. Later calls take O(log rows + answer).
    ///
    /// # Errors
    /// Returns an error if no code comes from that place.
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
        if count == 0 && self.is_refused(file, line) {
            return Err(LineError::Foreign {
                path: path(),
                line: Some(line),
            });
        }
        if count == 0 && self.removed_lines().binary_search(&(file, line)).is_ok() {
            return Err(LineError::Removed {
                path: path(),
                line: Some(line),
            });
        }
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

    /// Whether the rows of a line belong to other code.
    fn is_refused(&self, file: FileId, line: u32) -> bool {
        let key = |location: &Location| (location.file, location.line);
        let at = self
            .refused
            .partition_point(|location| key(location) < (file, line));
        self.refused
            .get(at)
            .is_some_and(|location| key(location) == (file, line))
    }

    /// Returns the lines of a file for which the line tables have rows, ascending.
    pub fn lines_of(&self, file: FileId) -> Vec<u32> {
        let by_line = self.by_line();
        let start = by_line.partition_point(|(location, _)| location.file < file);
        let own = by_line[start..].iter().map(|(location, _)| location);
        let own = own.take_while(|location| location.file == file);
        let mut lines = Vec::from_iter(own.map(|location| location.line));
        lines.dedup();
        lines
    }

    /// Returns the places from which code comes, ascending, with the positions of their rows.
    fn by_line(&self) -> &[(Location, u32)] {
        self.by_line.get_or_init(|| {
            // Every row takes at least one byte of the module.
            let numbered = self.rows.iter().zip(0..);
            let mut by_line: Vec<_> = numbered.map(|(row, i)| (row.location, i)).collect();
            by_line.sort_unstable();
            by_line
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_library_shares_has_its_folder() {
        let path = "/home/a/src/lib.rs";
        assert_eq!(&path[with_src(path, base(path))..], "src/lib.rs");
        for path in ["/home/a/lib.rs", "lib.rs", "/lib.rs"] {
            assert_eq!(with_src(path, base(path)), base(path));
        }
    }

    #[test]
    fn short_paths_are_as_short_as_they_can_be() {
        let paths = [
            "/a/main.rs",
            "/a/domain.rs",
            "/a/src/lib.rs",
            "/rustc/1/core/src/lib.rs",
            "lib.rs",
        ];
        let paths = paths.map(str::to_owned);
        let files = Vec::from_iter((0..5).map(FileId));
        let mut starts = vec![0; 5];
        assert_eq!(shorten(&paths, &files, &mut starts).len(), 3);
        let short = Vec::from_iter(
            paths
                .iter()
                .zip(&starts)
                .map(|(path, start)| &path[*start..]),
        );
        assert_eq!(
            short,
            [
                "main.rs",
                "domain.rs",
                "a/src/lib.rs",
                "core/src/lib.rs",
                "lib.rs"
            ]
        );
    }
}
