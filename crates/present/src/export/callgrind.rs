//! Costs in the format of Callgrind, for `callgrind_annotate` and KCachegrind.
//!
//! The only event is `Instr`, executed WebAssembly instructions. The format also
//! has calls with the cost of what they call, included: counts of edges do not
//! determine that cost (Ponder and Fateman 1988 on gprof's guess), so calls are left out.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use afterimage_profile::{Profile, ProfileError, Scope};
use afterimage_program::FileId;

use crate::PresentError;
use crate::plain::escaped;

/// Writes the executed instructions by function, file and line.
///
/// # Errors
/// If `out` or the profile fails.
pub fn callgrind(
    out: &mut dyn Write,
    profile: &Profile<'_>,
    scope: &Scope,
) -> Result<(), PresentError> {
    let rows = profile.function_rows(scope)?;
    let sum = rows.iter().map(|row| row.instructions).sum::<u64>();
    writeln!(out, "# callgrind format\nversion: 1\ncreator: afterimage")?;
    writeln!(
        out,
        "# Calls are left out: counts of edges do not determine what a call costs in all."
    )?;
    writeln!(
        out,
        "positions: line\nevent: Instr : executed WebAssembly instructions"
    )?;
    writeln!(out, "events: Instr\nsummary: {sum}")?;
    let mut files = Ids::default();
    let mut functions = Ids::default();
    let mut operators = Vec::new();
    for row in rows.iter().filter(|row| row.instructions > 0) {
        let Some((function, _, counts)) = profile.function(row.function) else {
            continue;
        };
        profile.operators(function, counts, &mut operators)?;
        let mut costs = BTreeMap::<(Option<FileId>, u32), u64>::new();
        for operator in operators.iter().filter(|operator| operator.instruction) {
            let key = operator
                .position
                .map_or((None, 0), |at| (Some(at.file), at.line));
            let cost = costs.entry(key).or_default();
            *cost = cost
                .checked_add(operator.count)
                .ok_or(ProfileError::Overflow {
                    function: row.function,
                })?;
        }
        let path = |file: Option<FileId>| file.map_or("???", |file| profile.file(file));
        let home = row.position.map(|position| position.file);
        writeln!(out, "\nfl={}", files.of(path(home)))?;
        writeln!(
            out,
            "fn={}",
            functions.of(profile.names().function(row.function))
        )?;
        let mut current = home;
        for ((file, line), cost) in costs.into_iter().filter(|(_, cost)| *cost > 0) {
            if file != current {
                // `fi` leaves the function's own file, `fe` comes back.
                let key = if file == home { "fe" } else { "fi" };
                writeln!(out, "{key}={}", files.of(path(file)))?;
                current = file;
            }
            writeln!(out, "{line} {cost}")?;
        }
    }
    writeln!(out, "\ntotals: {sum}")?;
    Ok(())
}

/// The format's name compression: `(1) name` the first time, then `(1)`.
#[derive(Default)]
struct Ids(HashMap<String, usize>);

impl Ids {
    fn of(&mut self, name: &str) -> String {
        let name = escaped(name).into_owned();
        let next = self.0.len() + 1;
        match self.0.get(&name) {
            Some(id) => format!("({id})"),
            None => {
                let text = format!("({next}) {name}");
                self.0.insert(name, next);
                text
            }
        }
    }
}
