//! Coverage in the tracefile format of lcov, for `genhtml` and editors.
//!
//! Functions that the linker removed because nobody called them count as not executed, with their lines, if the debug information still has them.
//! What an optimiser inlined and folded away leaves no trace of its calls, and counts like that, too.
//!
//! The format is the one that geninfo(1) describes. Functions and branches belong to the file that they come from;
//! those of unknown origin have no place in it and are left out, as the format has no files without a name.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use afterimage_profile::{BranchRow, CodeFilter, Folded, FunctionRow, LineRow, Profile, Scope};
use afterimage_program::demangle;

use crate::PresentError;
use crate::plain::escaped;

/// Writes the counts of lines, functions and branches of a profile, of all files or of those that a filter shows.
///
/// # Errors
/// [`PresentError::NoSource`] if no line is known, [`PresentError::NoCode`] if the filter leaves out all of them; otherwise if `out` or the profile fails.
pub fn lcov(
    out: &mut dyn Write,
    profile: &Profile<'_>,
    scope: &Scope,
    code: Option<&CodeFilter>,
) -> Result<(), PresentError> {
    let shown = code.map(|code| Folded::new(profile.source(), code));
    let is_shown = |file| shown.as_ref().is_none_or(|shown| shown.shows(file));
    let mut files = BTreeMap::<&str, File>::new();
    let lines = profile.line_rows(scope)?;
    if lines.is_empty() {
        return Err(PresentError::NoSource(profile.source().missing()));
    }
    for row in lines.into_iter().filter(|row| is_shown(row.line.file)) {
        files
            .entry(profile.file(row.line.file))
            .or_default()
            .lines
            .push(row);
    }
    for row in profile.function_rows(scope)? {
        if let Some(position) = row.position.filter(|at| is_shown(at.file)) {
            let file = files.entry(profile.file(position.file)).or_default();
            file.functions.push((position.line, row));
        }
    }
    for row in profile.branch_rows(scope)? {
        if let Some(position) = row.position.filter(|at| is_shown(at.file)) {
            let file = files.entry(profile.file(position.file)).or_default();
            file.branches.push((position.line, row));
        }
    }
    if *scope == Scope::All {
        let source = profile.source();
        let removed = source.removed_functions().into_iter();
        for (name, position) in removed.filter(|(_, at)| is_shown(at.file)) {
            let file = files.entry(profile.file(position.file)).or_default();
            let name = demangle(&name).unwrap_or(name);
            file.removed.push((position.line, name));
        }
    }
    if files.is_empty() {
        return Err(PresentError::NoCode);
    }
    writeln!(out, "TN:")?;
    for (path, file) in files {
        file.write(out, profile, path)?;
    }
    Ok(())
}

/// What belongs to one source file.
#[derive(Default)]
struct File {
    lines: Vec<LineRow>,
    functions: Vec<(u32, FunctionRow)>,
    /// Functions that the linker removed.
    removed: Vec<(u32, String)>,
    branches: Vec<(u32, BranchRow)>,
}

impl File {
    fn write(
        mut self,
        out: &mut dyn Write,
        profile: &Profile<'_>,
        path: &str,
    ) -> Result<(), PresentError> {
        writeln!(out, "SF:{}", escaped(path))?;
        // Stable: the functions of one line stay in the order of the program.
        self.functions.sort_by_key(|function| function.0);
        let mut seen = HashMap::<String, u32>::new();
        let mut calls = Vec::new();
        for (line, row) in &self.functions {
            let mut name = escaped(profile.names().function(row.function)).into_owned();
            let copies = seen.entry(name.clone()).or_default();
            *copies += 1;
            if *copies > 1 {
                // Two generic copies may look alike, but lcov knows functions by name.
                name += &format!(" [func {}]", row.function.as_u32());
            }
            writeln!(out, "FN:{line},{name}")?;
            calls.push((row.entries, name));
        }
        for (line, name) in &self.removed {
            let name = escaped(name).into_owned();
            if seen.insert(name.clone(), 1).is_none() {
                writeln!(out, "FN:{line},{name}")?;
                calls.push((0, name));
            }
        }
        for (entries, name) in &calls {
            writeln!(out, "FNDA:{entries},{name}")?;
        }
        let hit = calls.iter().filter(|call| call.0 > 0).count();
        writeln!(out, "FNF:{}\nFNH:{hit}", calls.len())?;

        self.branches.sort_by_key(|branch| branch.0);
        let (mut found, mut hit) = (0, 0);
        let (mut last_line, mut on_line) = (0, 0);
        for (line, row) in &self.branches {
            on_line = if *line == last_line { on_line + 1 } else { 0 };
            last_line = *line;
            for (way, (_, taken)) in row.ways.iter().enumerate() {
                found += 1;
                hit += u64::from(*taken > 0);
                if row.count == 0 {
                    writeln!(out, "BRDA:{line},{on_line},{way},-")?;
                } else {
                    writeln!(out, "BRDA:{line},{on_line},{way},{taken}")?;
                }
            }
        }
        writeln!(out, "BRF:{found}\nBRH:{hit}")?;

        self.lines.sort_by_key(|row| row.line);
        for row in &self.lines {
            writeln!(out, "DA:{},{}", row.line.number, row.count)?;
        }
        let hit = self.lines.iter().filter(|row| row.count > 0).count();
        writeln!(out, "LF:{}\nLH:{hit}\nend_of_record", self.lines.len())?;
        Ok(())
    }
}
