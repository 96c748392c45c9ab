//! Writes the table of source or instructions, with counts and branches, for coverage and
//! `afterimage report`.

use std::io::Write;

use afterimage_profile::BranchRow;

use super::{begin_source, escaped};
use crate::PresentError;
use crate::number::grouped;

/// The legend that explains the marks.
pub const LEGEND: &str = "<ul class=\"legend\"><li><i class=\"x\">×</i> never ran</li><li><i class=\"h\">½</i> some branches were never taken</li><li><code>1/2 <span class=\"soft\">7 : 0</span></code> branches taken, and how often each was</li></ul>";

/// The maximum number of a line's branch directions whose counts are shown next to it.
const WAYS: usize = 4;

/// A branch of a line.
#[derive(Clone, Debug)]
pub struct CountedBranch {
    /// The number of times the branch was executed.
    pub count: u64,
    /// Its directions, with the number of times each was taken.
    pub ways: Vec<(String, u64)>,
}

impl From<&BranchRow> for CountedBranch {
    fn from(row: &BranchRow) -> Self {
        let ways = row.ways.iter();
        Self {
            count: row.count,
            ways: ways
                .map(|(kind, taken)| (kind.to_string(), *taken))
                .collect(),
        }
    }
}

/// A row of the table: a line of source, or an instruction.
#[derive(Clone, Debug)]
pub struct CountedLine<'t> {
    /// The name of the row, for links to it.
    pub id: Option<String>,
    /// Its line number, or the offset of the instruction.
    pub number: String,
    /// The number of its executions; `None` if it has no code.
    pub count: Option<u64>,
    /// Its branches.
    pub branches: Vec<CountedBranch>,
    /// Its text.
    pub text: &'t str,
}

/// Begins the table. `first` is the heading of the first column.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn begin_counted(out: &mut dyn Write, first: &str) -> Result<(), PresentError> {
    begin_source(out, &[first, "count", "branches"])
}

/// Formats a count, with a marker if it is zero.
pub fn count(count: u64) -> String {
    match count {
        0 => "<i class=\"x\" title=\"never ran\">×</i> 0".to_owned(),
        count => grouped(count),
    }
}

impl CountedLine<'_> {
    /// Writes the row.
    ///
    /// # Errors
    /// Returns an error if `out` fails.
    pub fn write(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        let ways = self.branches.iter().flat_map(|branch| &branch.ways);
        let (ran, all) = ways.fold((0, 0), |(ran, all), (_, taken)| {
            (ran + usize::from(*taken > 0), all + 1)
        });
        let class = match self.count {
            None => "",
            Some(0) => " class=\"miss\"",
            Some(_) if ran < all => " class=\"part\"",
            Some(_) => " class=\"hit\"",
        };
        let half = match self.count {
            Some(1..) if ran < all => "<i class=\"h\">½</i> ",
            _ => "",
        };
        let id = self.id.as_ref();
        let id = id.map_or(String::new(), |id| format!(" id=\"{}\"", escaped(id)));
        let (told, branches) = match all {
            0 => (String::new(), String::new()),
            _ => (
                format!(" title=\"{}\"", escaped(&self.directions())),
                format!("{half}{ran}/{all} <small>{}</small>", self.shown(all)),
            ),
        };
        writeln!(
            out,
            "<tr{id}{class}><td class=\"n\">{}</td><td class=\"n c\">{}</td><td class=\"n b\"{told}>{branches}</td><td>{}</td></tr>",
            escaped(&self.number),
            self.count.map(count).unwrap_or_default(),
            escaped(self.text)
        )?;
        Ok(())
    }

    /// Formats the number of times each direction was taken, if there are few directions.
    fn shown(&self, all: usize) -> String {
        if all > WAYS {
            return String::new();
        }
        let shown = self.branches.iter().map(|branch| match branch.count {
            0 => "–".to_owned(),
            _ => {
                let taken = branch.ways.iter().map(|(_, taken)| grouped(*taken));
                Vec::from_iter(taken).join(" : ")
            }
        });
        Vec::from_iter(shown).join(" | ")
    }

    /// Formats the number of times each direction was taken, with the names of the directions.
    fn directions(&self) -> String {
        let told = self.branches.iter().map(|branch| match branch.count {
            0 => "never reached".to_owned(),
            _ => {
                let taken = branch.ways.iter();
                let taken = taken.map(|(kind, taken)| format!("{kind} {}", grouped(*taken)));
                Vec::from_iter(taken).join(", ")
            }
        });
        Vec::from_iter(told).join("; ")
    }
}
