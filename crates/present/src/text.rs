//! Writes profiles for a terminal.

use std::collections::HashSet;
use std::io::Write;

use afterimage_ids::FuncId;
use afterimage_profile::{LeftOut, Line, LineRow, Profile, Report, Rows, Totals};
use afterimage_program::Location;

use crate::inlined::callers;
use crate::name::{ShortNames, short_function};
use crate::number::{counted, grouped, percent};
use crate::table::{Align::Left, Align::Right, Paint, Table, plain};
use crate::{PresentError, Sources, Style};

/// Writes a report: a sentence about the totals, then the rows as a table. Source lines are shown
/// with their text if `sources` has it.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn text(
    out: &mut dyn Write,
    profile: &Profile<'_>,
    report: &Report,
    sources: &dyn Sources,
    style: Style,
) -> Result<(), PresentError> {
    summary(out, report.totals)?;
    writeln!(out)?;
    let shown = Shown {
        profile,
        names: ShortNames::new(profile.names(), functions(report)),
        total: report.totals.instructions,
    };
    let (table, shares) = match &report.rows {
        Rows::Functions(rows) => shown.functions(rows),
        Rows::Lines(rows) => shown.lines(rows, sources)?,
        Rows::Blocks(rows) => shown.blocks(rows),
        Rows::Edges(rows) => shown.edges(rows),
        Rows::Instructions(rows) => shown.instructions(rows),
    };
    if matches!(&report.rows, Rows::Lines(rows) if rows.is_empty() && report.available == 0) {
        writeln!(
            out,
            "no source line is known: {}",
            profile.source().missing()
        )?;
        return Ok(());
    }
    let total = report.totals.instructions;
    table.write(out, style, |row| Paint::of_share(shares[row], total))?;
    let left = report.available - report.rows.len();
    let noun = match &report.rows {
        Rows::Functions(_) => "function",
        Rows::Lines(_) => "line",
        Rows::Blocks(_) => "block",
        Rows::Edges(_) => "edge",
        Rows::Instructions(_) => "instruction",
    };
    if left > 0 {
        writeln!(
            out,
            "… and {}",
            counted(left as u64, noun).replacen(' ', " more ", 1)
        )?;
    }
    let LeftOut {
        rows,
        instructions,
        elsewhere,
        is_mixed,
    } = report.left_out;
    if rows > 0 {
        let counted_rows = counted(rows as u64, noun);
        let share = match &report.rows {
            Rows::Edges(_) => String::new(),
            _ => format!(" with {} of the instructions", percent(instructions, total)),
        };
        let what = if is_mixed {
            "other code"
        } else {
            "library code"
        };
        writeln!(out, "{what}: {counted_rows}{share}; --code all shows them")?;
    }
    if let Some(instructions) = elsewhere.filter(|&instructions| instructions > 0) {
        let share = percent(instructions, total);
        // If only library code is left out, most of these instructions start up or shut down the
        // program.
        let mostly = if is_mixed {
            ""
        } else {
            ", mostly before and after main"
        };
        writeln!(
            out,
            "called from none of these lines: {share} of the instructions{mostly}"
        )?;
    }
    shown.inlined(out, report, style)
}

/// Writes the sentence about the totals.
pub(crate) fn summary(out: &mut dyn Write, totals: Totals) -> std::io::Result<()> {
    write!(
        out,
        "ran {} in {}{}{}; {} of {} executed",
        counted(totals.instructions, "instruction"),
        counted(totals.blocks, "block"),
        between(totals),
        over(totals),
        grouped(totals.executed_functions),
        counted(totals.functions, "function"),
    )?;
    if totals.open > 0 {
        let runs = if totals.runs > 1 { "runs" } else { "run" };
        let calls = counted(totals.open, "call");
        write!(out, "; the {runs} ended inside {calls}")?;
    }
    writeln!(out)
}

/// Formats the range that was counted, in words.
fn between(totals: Totals) -> String {
    match totals.range {
        Some((first, last)) => format!(" from t={} to t={}", grouped(first), grouped(last)),
        None => String::new(),
    }
}

/// Formats the number of runs whose counts were added up, in words.
fn over(totals: Totals) -> String {
    match totals.runs {
        0 | 1 => String::new(),
        runs => format!(" over {}", counted(runs, "run")),
    }
}

/// The cells of the rows, with the number that determines the colour of each row.
struct Shown<'p> {
    profile: &'p Profile<'p>,
    names: ShortNames,
    total: u64,
}

/// Returns the functions that a report names.
fn functions(report: &Report) -> Vec<FuncId> {
    let rows: Vec<FuncId> = match &report.rows {
        Rows::Functions(rows) => rows.iter().map(|row| row.function).collect(),
        Rows::Lines(_) => Vec::new(),
        Rows::Blocks(rows) => rows.iter().map(|row| row.function).collect(),
        Rows::Edges(rows) => rows.iter().map(|row| row.function).collect(),
        Rows::Instructions(rows) => rows.iter().map(|row| row.function).collect(),
    };
    let into = report.inlined.iter().filter_map(|row| row.into.first());
    rows.into_iter().chain(into.copied()).collect()
}

impl Shown<'_> {
    fn name(&self, function: FuncId) -> String {
        self.names.of(function).to_owned()
    }

    /// Writes the inlined functions.
    fn inlined(
        &self,
        out: &mut dyn Write,
        report: &Report,
        style: Style,
    ) -> Result<(), PresentError> {
        if report.inlined.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\ninlined functions (their instructions also count for the function that contains them):"
        )?;
        let mut table = Table::new(&[
            ("share", Right),
            ("instructions", Right),
            ("source", Left),
            ("inlined into", Left),
            ("function", Left),
        ]);
        for row in &report.inlined {
            let more = match row.into.len() {
                0 | 1 => String::new(),
                into => format!(" and {} more", grouped(into as u64 - 1)),
            };
            let into = row.into.first().map(|&into| self.name(into));
            table.row([
                self.share(row.instructions),
                grouped(row.instructions),
                self.place(row.position),
                into.unwrap_or_default() + &more,
                plain(&short_function(&row.name)),
            ]);
        }
        let cost = |row: usize| report.inlined[row].instructions;
        table.write(out, style, |row| Paint::of_share(cost(row), self.total))?;
        let left = report.inlined_available - report.inlined.len();
        if left > 0 {
            let left = counted(left as u64, "function");
            writeln!(out, "… and {}", left.replacen(' ', " more ", 1))?;
        }
        Ok(())
    }

    /// Formats a position as its file and line, or as `-` if there is none.
    fn place(&self, position: Option<Location>) -> String {
        let Some(position) = position else {
            return "-".into();
        };
        let path = self.profile.source().short_path(position.file);
        plain(&format!("{path}:{}", position.line))
    }

    fn share(&self, instructions: u64) -> String {
        percent(instructions, self.total)
    }

    fn functions(&self, rows: &[afterimage_profile::FunctionRow]) -> (Table, Vec<u64>) {
        let mut table = Table::new(&[
            ("share", Right),
            ("instructions", Right),
            ("blocks", Right),
            ("calls", Right),
            ("source", Left),
            ("function", Left),
        ]);
        for row in rows {
            table.row([
                self.share(row.instructions),
                grouped(row.instructions),
                grouped(row.blocks),
                grouped(row.entries),
                self.place(row.position),
                self.name(row.function),
            ]);
        }
        (table, rows.iter().map(|row| row.instructions).collect())
    }

    fn lines(
        &self,
        rows: &[LineRow],
        sources: &dyn Sources,
    ) -> Result<(Table, Vec<u64>), PresentError> {
        let whole = rows.iter().any(|row| row.with_library.is_some());
        let costs: &[_] = if whole {
            &[("with library", Right), ("self", Right)]
        } else {
            &[("instructions", Right)]
        };
        let rest = [("count", Right), ("line", Left), ("text", Left)];
        let mut table = Table::new(&[&[("share", Right)], costs, &rest].concat());
        let mut cache = crate::sources::Cache::new(sources);
        let text = |line: Line, cache: &mut crate::sources::Cache<'_>| {
            let text = cache.line(self.profile.file(line.file), line.number);
            text.map(|text| plain(text.trim()))
        };
        let without = rows.iter().map(|row| row.line);
        let without = without.filter(|&line| text(line, &mut cache).is_none());
        let without = HashSet::from_iter(without);
        let callers = callers(self.profile, &without, &mut cache)?;
        for row in rows {
            let inlined = callers.get(&row.line).map(|&(caller, others)| {
                let at = self.profile.source().short_path(caller.file);
                let others = match others {
                    0 => String::new(),
                    others => format!(
                        " and {}",
                        counted(others as u64, "line").replacen(' ', " more ", 1)
                    ),
                };
                plain(&format!("inlined at {at}:{}{others}", caller.number))
            });
            let text = text(row.line, &mut cache).or(inlined);
            let name = self.profile.source().short_path(row.line.file);
            let whole = row.with_library.map(grouped);
            let cells = [
                grouped(row.instructions),
                grouped(row.count),
                plain(&format!("{name}:{}", row.line.number)),
                text.unwrap_or_default(),
            ];
            let cells = whole.into_iter().chain(cells);
            table.row([self.share(row.cost())].into_iter().chain(cells));
        }
        let costs = rows.iter().map(LineRow::cost);
        Ok((table, costs.collect()))
    }

    fn blocks(&self, rows: &[afterimage_profile::BlockRow]) -> (Table, Vec<u64>) {
        let mut table = Table::new(&[
            ("share", Right),
            ("instructions", Right),
            ("count", Right),
            ("offset", Right),
            ("block", Left),
            ("end", Left),
            ("source", Left),
            ("function", Left),
        ]);
        for row in rows {
            table.row([
                self.share(row.instructions),
                grouped(row.instructions),
                grouped(row.count),
                row.offset.to_string(),
                row.block.to_string(),
                row.end.to_string(),
                self.place(row.position),
                self.name(row.function),
            ]);
        }
        (table, rows.iter().map(|row| row.instructions).collect())
    }

    fn edges(&self, rows: &[afterimage_profile::EdgeRow]) -> (Table, Vec<u64>) {
        let mut table = Table::new(&[
            ("count", Right),
            ("offset", Right),
            ("edge", Left),
            ("from", Left),
            ("to", Left),
            ("kind", Left),
            ("source", Left),
            ("function", Left),
        ]);
        for row in rows {
            table.row([
                grouped(row.count),
                row.offset.map_or("-".into(), |offset| offset.to_string()),
                row.edge.to_string(),
                row.from.to_string(),
                row.to.to_string(),
                format!("{}{}", row.kind, if row.back { ", back" } else { "" }),
                self.place(row.position),
                self.name(row.function),
            ]);
        }
        // An edge executes nothing, so it has no share of the instructions.
        (table, vec![0; rows.len()])
    }

    fn instructions(&self, rows: &[afterimage_profile::InstructionRow]) -> (Table, Vec<u64>) {
        let mut table = Table::new(&[
            ("share", Right),
            ("count", Right),
            ("offset", Right),
            ("instruction", Left),
            ("source", Left),
            ("function", Left),
        ]);
        for row in rows {
            table.row([
                self.share(row.count),
                grouped(row.count),
                row.offset.to_string(),
                plain(&row.text),
                self.place(row.position),
                self.name(row.function),
            ]);
        }
        (table, rows.iter().map(|row| row.count).collect())
    }
}
