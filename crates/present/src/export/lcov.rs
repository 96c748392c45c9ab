//! Writes coverage in the tracefile format of lcov, for `genhtml` and editors.
//!
//! Functions that the linker removed, because nothing called them, count as not executed if the
//! debug information still has their lines. The same holds for functions that an optimiser inlined
//! and folded away, because they leave no trace of their calls.
//!
//! The format follows geninfo(1). Functions and branches belong to the file that they come from.
//! Functions and branches of unknown origin are left out, because every file in the format has a
//! name.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use afterimage_profile::{CodeFilter, Profile, Scope};

use crate::coverage::{Coverage, CoveredFile, Ran};
use crate::plain::escaped;
use crate::{PresentError, Sources};

/// Writes the counts of lines, functions and branches of a profile, for all files or for the files
/// that a filter shows. Leaves out files whose source is not available, because `genhtml` stops at
/// them. If no source is available, writes all files.
///
/// # Errors
/// [`PresentError::NoSource`] if no line is known, [`PresentError::NoCode`] if the filter leaves
/// out all lines. Other errors if `out` fails or the profile cannot be evaluated.
pub fn lcov(
    out: &mut dyn Write,
    profile: &Profile<'_>,
    scope: &Scope,
    code: Option<&CodeFilter>,
    sources: &dyn Sources,
) -> Result<(), PresentError> {
    let coverage = Coverage::of(profile, scope, code)?;
    if !coverage.has_lines {
        return Err(PresentError::NoSource(profile.source().missing()));
    }
    if coverage.files.is_empty() {
        return Err(PresentError::NoCode);
    }
    writeln!(out, "TN:")?;
    let paths = coverage.files.keys();
    let found = paths.filter(|path| sources.read(path).is_some());
    let found: HashSet<&str> = found.copied().collect();
    let files = coverage.files.iter();
    for (path, file) in files.filter(|(path, _)| found.is_empty() || found.contains(*path)) {
        write(out, profile, path, file)?;
    }
    Ok(())
}

fn write(
    out: &mut dyn Write,
    profile: &Profile<'_>,
    path: &str,
    file: &CoveredFile,
) -> Result<(), PresentError> {
    writeln!(out, "SF:{}", escaped(path))?;
    let mut seen = HashMap::<String, u32>::new();
    let mut calls = Vec::new();
    for (line, row) in &file.functions {
        let mut name = escaped(profile.names().function(row.function)).into_owned();
        let copies = seen.entry(name.clone()).or_default();
        *copies += 1;
        if *copies > 1 {
            // Two instances of a generic function may have the same name, but lcov identifies
            // functions by name.
            name += &format!(" [func {}]", row.function.as_u32());
        }
        writeln!(out, "FN:{line},{name}")?;
        calls.push((row.entries, name));
    }
    for (line, name) in &file.removed {
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

    // Branches of one line are numbered in program order. A branch that was never reached has no
    // counts.
    let (mut last_line, mut on_line) = (0, 0);
    for (line, row) in &file.branches {
        on_line = if *line == last_line { on_line + 1 } else { 0 };
        last_line = *line;
        for (way, (_, taken)) in row.ways.iter().enumerate() {
            if row.count == 0 {
                writeln!(out, "BRDA:{line},{on_line},{way},-")?;
            } else {
                writeln!(out, "BRDA:{line},{on_line},{way},{taken}")?;
            }
        }
    }
    let Ran { ran, all } = file.branches_ran();
    writeln!(out, "BRF:{all}\nBRH:{ran}")?;

    for row in &file.lines {
        writeln!(out, "DA:{},{}", row.line.number, row.count)?;
    }
    let Ran { ran, all } = file.lines_ran();
    writeln!(out, "LF:{all}\nLH:{ran}\nend_of_record")?;
    Ok(())
}
