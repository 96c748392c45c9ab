//! Reports source files with exact counts.

use std::collections::{BTreeMap, HashMap};

use afterimage_present::document::objects::Function;
use afterimage_present::{
    FilesDocument, FilesEntry, SourceBranch, SourceDocument, SourceFunction, SourceRow, SourceWay,
    Sources,
};
use afterimage_profile::{LineRow, Profile, Scope};
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::range;
use crate::Session;
use crate::trace::Bounds;

/// Asks for the text of a source file, and for the number of executions of each line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceQuery {
    /// The path of the file in the debug information.
    pub file: String,
    /// The stretch of the run in which lines are counted.
    pub bounds: Bounds,
}

/// Asks for the source files from which the program's code comes, with the number of their lines
/// whose code was executed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesQuery {
    /// The stretch of the run in which lines are counted.
    pub bounds: Bounds,
}

impl FilesQuery {
    pub(crate) fn answer(&self, session: &Session) -> Result<FilesDocument> {
        let is_bound = self.bounds != Bounds::default();
        if is_bound {
            session.ensure_whole_path()?;
        }
        let document = session.profile(|profile| {
            let mut document = files_of(session, profile)?;
            if is_bound {
                range::files_in(session, profile, &self.bounds, &mut document)?;
            }
            Ok(document)
        })?;
        Ok(document)
    }
}

/// Lists the source files from which the program's code comes, with the counts of the whole run.
fn files_of(session: &Session, profile: &Profile<'_>) -> Result<FilesDocument> {
    let mut files: HashMap<&str, FilesEntry> = HashMap::new();
    for row in profile.line_rows(&Scope::All)? {
        let path = profile.file(row.line.file);
        let entry = files.entry(path).or_insert_with(|| FilesEntry {
            file: path.to_owned(),
            name: profile.source().short_path(row.line.file).to_owned(),
            library: !session.code().shows(path),
            lines: 0,
            executed: 0,
            instructions: 0,
        });
        entry.lines += 1;
        entry.executed += u64::from(row.count > 0);
        entry.instructions += row.instructions;
    }
    let mut files = Vec::from_iter(files.into_values());
    files.sort_unstable_by(|a, b| (b.instructions, &a.file).cmp(&(a.instructions, &b.file)));
    Ok(FilesDocument { files, range: None })
}

impl SourceQuery {
    pub(crate) fn answer(&self, session: &Session) -> Result<SourceDocument> {
        let is_bound = self.bounds != Bounds::default();
        if is_bound {
            session.ensure_whole_path()?;
        }
        let document = session.profile(|profile| {
            let mut document = self.counted(session, profile)?;
            if is_bound {
                range::bound(session, profile, &self.bounds, &mut document)?;
            }
            Ok(document)
        })?;
        Ok(document)
    }

    fn counted(&self, session: &Session, profile: &Profile<'_>) -> Result<SourceDocument> {
        let is_here = |file| profile.file(file) == self.file;
        let rows = profile.line_rows(&Scope::All)?;
        let mut rows: BTreeMap<u32, LineRow> = rows
            .into_iter()
            .filter(|row| is_here(row.line.file))
            .map(|row| (row.line.number, row))
            .collect();
        let name = profile
            .source()
            .files()
            .iter()
            .position(|path| *path == self.file);
        let Some(name) = name.filter(|_| !rows.is_empty()) else {
            bail!("no code of the program comes from {}", self.file);
        };
        let name = profile
            .source()
            .short_path(afterimage_program::FileId(name as u32));
        let mut branches: HashMap<u32, Vec<SourceBranch>> = HashMap::new();
        for row in profile.branch_rows(&Scope::All)? {
            let Some(at) = row.position.filter(|at| is_here(at.file)) else {
                continue;
            };
            let ways = row.ways.iter().map(|(kind, count)| SourceWay {
                kind: kind.to_string(),
                count: *count,
            });
            branches.entry(at.line).or_default().push(SourceBranch {
                offset: row.offset.0,
                count: row.count,
                ways: ways.collect(),
            });
        }
        let functions = profile.function_rows(&Scope::All)?.into_iter();
        let functions = functions.filter_map(|row| {
            let at = row.position.filter(|at| is_here(at.file))?;
            Some(SourceFunction {
                function: Function::new(profile.names(), row.function),
                line: at.line,
                calls: row.entries,
            })
        });
        let functions = functions.collect();
        let text = session.sources().read(&self.file);
        let mut texts = text.as_deref().unwrap_or_default().lines();
        let last = rows.keys().next_back().copied().unwrap_or(0);
        let known = text
            .as_deref()
            .map_or(0, |text| text.lines().count() as u32);
        let mut lines = Vec::new();
        for line in 1..=last.max(known) {
            let row = rows.remove(&line);
            let has_text = texts.next();
            if has_text.is_none() && row.is_none() {
                continue;
            }
            lines.push(SourceRow {
                line,
                text: has_text.unwrap_or_default().to_owned(),
                count: row.as_ref().map(|row| row.count),
                instructions: row.map_or(0, |row| row.instructions),
                branches: branches.remove(&line).unwrap_or_default(),
                elsewhere: false,
            });
        }
        Ok(SourceDocument {
            file: self.file.clone(),
            name: name.to_owned(),
            library: !session.code().shows(&self.file),
            missing: match text {
                Some(_) => None,
                None => Some(session.sources().why_missing(&self.file)),
            },
            functions,
            lines,
            range: None,
        })
    }
}
