//! Collects the coverage of lines, functions and branches by source file, for lcov and the HTML
//! page.
//!
//! A line, function or branch direction *ran* if its count is not zero.

mod html;
mod overview;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use afterimage_profile::{
    BranchRow, CodeFilter, Folded, FunctionRow, LineRow, Profile, Scope, is_library_name,
};
use afterimage_program::demangle;

use crate::PresentError;
pub(crate) use html::html;

/// The counts by source file.
#[derive(Default)]
pub(crate) struct Coverage<'p> {
    pub(crate) files: BTreeMap<&'p str, CoveredFile>,
    /// Functions without a known line.
    pub(crate) unplaced: Vec<FunctionRow>,
    /// The branch directions of these functions.
    pub(crate) unplaced_branches: Ran,
    /// The parts that the filter left out.
    pub(crate) left_out: LeftOut<'p>,
    /// Whether any line is known, even if it is not shown.
    pub(crate) has_lines: bool,
}

/// The parts that a filter left out.
#[derive(Default)]
pub(crate) struct LeftOut<'p> {
    pub(crate) files: BTreeSet<&'p str>,
    pub(crate) lines: Ran,
    pub(crate) functions: Ran,
}

/// The counts of one source file.
#[derive(Default)]
pub(crate) struct CoveredFile {
    /// The lines, ascending.
    pub(crate) lines: Vec<LineRow>,
    /// The functions with their lines, ascending. Functions on the same line are in program order.
    pub(crate) functions: Vec<(u32, FunctionRow)>,
    /// Functions that the linker removed because nothing calls them.
    pub(crate) removed: Vec<(u32, String)>,
    /// The branches with their lines, ascending.
    pub(crate) branches: Vec<(u32, BranchRow)>,
}

/// The number of items that ran, and the total number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) ran: u64,
    pub(crate) all: u64,
}

impl Ran {
    /// Summarises counts, one per item.
    fn of(counts: impl Iterator<Item = u64>) -> Self {
        let mut sum = Self::default();
        counts.for_each(|count| sum.add_one(count > 0));
        sum
    }

    fn add_one(&mut self, has_run: bool) {
        self.all += 1;
        self.ran += u64::from(has_run);
    }
}

impl std::ops::Add for Ran {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            ran: self.ran + other.ran,
            all: self.all + other.all,
        }
    }
}

impl CoveredFile {
    pub(crate) fn lines_ran(&self) -> Ran {
        Ran::of(self.lines.iter().map(|row| row.count))
    }

    pub(crate) fn functions_ran(&self) -> Ran {
        let removed = self.removed.iter().map(|_| 0);
        let kept = self.functions.iter().map(|(_, row)| row.entries);
        Ran::of(kept.chain(removed))
    }

    /// Counts the directions of all branches, and the directions that were taken.
    pub(crate) fn branches_ran(&self) -> Ran {
        let ways = self.branches.iter().flat_map(|(_, row)| &row.ways);
        Ran::of(ways.map(|(_, taken)| *taken))
    }
}

impl<'p> Coverage<'p> {
    /// Collects the counts of all files, or of the files that a filter shows.
    ///
    /// # Errors
    /// Returns an error if the profile cannot be evaluated.
    pub(crate) fn of(
        profile: &'p Profile<'_>,
        scope: &Scope,
        code: Option<&CodeFilter>,
    ) -> Result<Self, PresentError> {
        let folded = code.map(|code| Folded::new(profile.source(), code));
        let is_shown = |file| folded.as_ref().is_none_or(|folded| folded.shows(file));
        let mut all = Self::default();
        for row in profile.line_rows(scope)? {
            all.has_lines = true;
            let path = profile.file(row.line.file);
            if is_shown(row.line.file) {
                all.files.entry(path).or_default().lines.push(row);
            } else {
                all.left_out.files.insert(path);
                all.left_out.lines.add_one(row.count > 0);
            }
        }
        let name = |row: &FunctionRow| profile.names().function(row.function);
        for row in profile.function_rows(scope)? {
            match row.position {
                Some(at) if is_shown(at.file) => {
                    let file = all.files.entry(profile.file(at.file)).or_default();
                    file.functions.push((at.line, row));
                }
                // Code without a line may be the user's own code, compiled without line tables.
                None if folded.is_none() || !is_library_name(name(&row)) => all.unplaced.push(row),
                _ => all.left_out.functions.add_one(row.entries > 0),
            }
        }
        let unplaced = HashSet::<_>::from_iter(all.unplaced.iter().map(|row| row.function));
        for row in profile.branch_rows(scope)? {
            match row.position {
                Some(at) if is_shown(at.file) => {
                    let file = all.files.entry(profile.file(at.file)).or_default();
                    file.branches.push((at.line, row));
                }
                None if unplaced.contains(&row.function) => {
                    let ways = Ran::of(row.ways.iter().map(|(_, taken)| *taken));
                    all.unplaced_branches = all.unplaced_branches + ways;
                }
                _ => {}
            }
        }
        if *scope == Scope::All {
            let removed = profile.source().removed_functions().into_iter();
            for (name, at) in removed.filter(|(_, at)| is_shown(at.file)) {
                let file = all.files.entry(profile.file(at.file)).or_default();
                let name = demangle(&name).unwrap_or(name);
                file.removed.push((at.line, name));
            }
        }
        for file in all.files.values_mut() {
            file.lines.sort_by_key(|row| row.line);
            file.functions.sort_by_key(|function| function.0);
            file.branches.sort_by_key(|branch| branch.0);
        }
        Ok(all)
    }
}
