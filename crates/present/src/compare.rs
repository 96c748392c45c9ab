//! Compares two profiles: functions or lines with the counts of A and B, and the ratio B/A.

use std::fmt::Display;
use std::io::Write;

use afterimage_ids::FuncId;
use afterimage_profile::{Comparison, FunctionRow, LeftOut, LineRow, Pair, Pairs, Profile, Sort};
use schemars::JsonSchema;
use serde::Serialize;

use crate::csv::{Csv, known};
use crate::document::objects::Position;
use crate::document::{Document, Lazy, NoRows, begin};
use crate::json::ProfileTotals;
use crate::number::{self, counted, grouped, percent};
use crate::render::Render;
use crate::sources::Cache;
use crate::table::{Align::Left, Align::Right, Paint, Style, Table, plain};
use crate::text::summary;
use crate::{PresentError, Sources};

/// A comparison of two profiles, with the data needed to show it.
pub struct CompareView<'p> {
    /// A and B.
    pub profiles: [&'p Profile<'p>; 2],
    /// Their names.
    pub names: [String; 2],
    /// The comparison.
    pub comparison: &'p Comparison,
    /// Source text.
    pub sources: &'p dyn Sources,
}

/// The execution counts of functions or lines in A and B. Each of the two is a run or a sum of
/// runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CompareDocument<R = Vec<CompareRow>> {
    /// The kind of rows: `function` or `line`.
    pub by: &'static str,
    /// The order of the rows: `ratio`, `instructions`, `count`, `name` or `program`. With `ratio`,
    /// rows that are new in B come first, then the others by descending B/A. `instructions` and
    /// `count` refer to B.
    pub sort: &'static str,
    /// The first profile.
    pub a: CompareSide,
    /// The second profile.
    pub b: CompareSide,
    /// Whether functions are matched by name, because the programs differ. Counts of functions with
    /// the same name are then added up.
    pub by_name: bool,
    /// The number of rows without `--limit`.
    pub available: usize,
    /// Whether `rows` contains all rows that are available without `--limit`.
    pub complete: bool,
    /// The number of functions or lines without a row because they ran in neither profile.
    pub never: usize,
    /// The number of executed functions without a row because they have no name to match.
    pub unnamed: usize,
    /// The rows.
    pub rows: R,
}

impl<R: Serialize> Document for CompareDocument<R> {
    const NAME: &'static str = "compare";
    const COMMAND: &'static str = "profile A.aft --compare B.aft";
    type Row = NoRows;
}

/// One of two profiles.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CompareSide {
    /// Its name.
    pub name: String,
    /// The totals of the whole program.
    pub totals: ProfileTotals,
}

/// A row; its kind depends on `by`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum CompareRow {
    /// A row for `function`.
    Function(CompareFunction),
    /// A row for `line`.
    Line(CompareLine),
}

/// A function.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CompareFunction {
    /// Its name.
    pub name: String,
    /// Its activity in A; `null` if the program of A does not have the function.
    pub a: Option<CompareActivity>,
    /// Its activity in B; `null` if the program of B does not have the function.
    pub b: Option<CompareActivity>,
    /// The number of instructions in B divided by the number in A; `null` if A has none.
    pub ratio: Option<f64>,
    /// Its declaration in B or, if B does not have it, in A.
    pub source: Option<Position>,
}

/// The activity of a function.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct CompareActivity {
    /// The function's index in its program.
    pub index: u32,
    /// The number of the function's activations.
    pub entries: u64,
    /// The number of instructions executed in the function, without callees.
    pub instructions: u64,
}

/// A line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CompareLine {
    /// The arrivals in A.
    pub a: CompareArrivals,
    /// The arrivals in B.
    pub b: CompareArrivals,
    /// The count in B divided by the count in A; `null` if A has none.
    pub ratio: Option<f64>,
    /// The line.
    pub source: Position,
}

/// The activity of a line.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct CompareArrivals {
    /// The number of arrivals at the line.
    pub count: u64,
    /// The number of executed instructions that come from the line.
    pub instructions: u64,
}

/// Returns the ratio B/A, for programs.
fn quotient([a, b]: [u64; 2]) -> Option<f64> {
    (a > 0).then(|| b as f64 / a as f64)
}

/// Formats the ratio B/A, for people.
fn ratio(counts: [u64; 2]) -> String {
    number::ratio(counts).unwrap_or_else(|| match counts {
        [0, 0] => "-".to_owned(),
        [0, _] => "new".to_owned(),
        _ => "gone".to_owned(),
    })
}

impl CompareView<'_> {
    fn name(&self, side: usize, function: FuncId) -> &str {
        self.profiles[side].names().function(function)
    }

    /// Returns the source position of a function.
    fn position(&self, pair: &Pair<FunctionRow>) -> Option<Position> {
        let (side, row) = pair.newest()?;
        let at = row.position?;
        Some(Position::new(self.profiles[side].file(at.file), at))
    }

    fn function(&self, pair: &Pair<FunctionRow>) -> CompareFunction {
        let activity = |row: &FunctionRow| CompareActivity {
            index: row.function.as_u32(),
            entries: row.entries,
            instructions: row.instructions,
        };
        let [a, b] = &pair.rows;
        let newest = pair.newest();
        CompareFunction {
            name: newest.map_or(String::new(), |(side, row)| {
                self.name(side, row.function).to_owned()
            }),
            a: a.as_ref().map(activity),
            b: b.as_ref().map(activity),
            ratio: quotient(pair.measures()),
            source: self.position(pair),
        }
    }

    fn line(&self, pair: &Pair<LineRow>) -> Option<CompareLine> {
        let (side, row) = pair.newest()?;
        let of = |row: &Option<LineRow>| CompareArrivals {
            count: row.as_ref().map_or(0, |row| row.count),
            instructions: row.as_ref().map_or(0, |row| row.instructions),
        };
        let [a, b] = &pair.rows;
        Some(CompareLine {
            a: of(a),
            b: of(b),
            ratio: quotient(pair.measures()),
            source: Position::line(self.profiles[side].file(row.line.file), row.line.number),
        })
    }

    /// Returns the document with these rows.
    fn with_rows<R>(&self, rows: R) -> CompareDocument<R> {
        let Comparison {
            pairs,
            available,
            never,
            unnamed,
            sort,
            by_name,
            ..
        } = self.comparison;
        let side = |at: usize| CompareSide {
            name: self.names[at].clone(),
            totals: ProfileTotals::of(self.comparison.totals[at]),
        };
        CompareDocument {
            by: match pairs {
                Pairs::Functions(_) => "function",
                Pairs::Lines(_) => "line",
            },
            sort: match sort {
                None => "ratio",
                Some(Sort::Instructions) => "instructions",
                Some(Sort::Count) => "count",
                Some(Sort::Name) => "name",
                Some(Sort::Program) => "program",
            },
            a: side(0),
            b: side(1),
            by_name: *by_name,
            available: *available,
            complete: *available <= pairs.len(),
            never: *never,
            unnamed: *unnamed,
            rows,
        }
    }

    /// Returns the document with all of its rows in memory.
    pub fn document(&self) -> CompareDocument {
        self.with_rows(match &self.comparison.pairs {
            Pairs::Functions(pairs) => {
                let rows = pairs.iter().map(|pair| self.function(pair));
                rows.map(CompareRow::Function).collect()
            }
            Pairs::Lines(pairs) => {
                let rows = pairs.iter().filter_map(|pair| self.line(pair));
                rows.map(CompareRow::Line).collect()
            }
        })
    }

    /// Returns the displayed part of the path, and the line.
    fn place(&self, pair: &Pair<FunctionRow>) -> String {
        let newest = pair
            .newest()
            .and_then(|(side, row)| Some((side, row.position?)));
        newest.map_or("-".to_owned(), |(side, at)| {
            let path = self.profiles[side].source().short_path(at.file);
            plain(&format!("{path}:{}", at.line))
        })
    }

    fn functions(&self, pairs: &[Pair<FunctionRow>]) -> Table {
        let mut table = Table::new(&[
            ("A", Right),
            ("B", Right),
            ("B/A", Right),
            ("share of B", Right),
            ("calls A", Right),
            ("calls B", Right),
            ("source", Left),
            ("function", Left),
        ]);
        let whole = self.comparison.totals[1].instructions;
        for pair in pairs {
            let [a, b] = pair.measures();
            let [calls_a, calls_b] = pair.both(|row| row.entries);
            let newest = pair.newest();
            table.row([
                grouped(a),
                grouped(b),
                ratio([a, b]),
                percent(b, whole),
                grouped(calls_a),
                grouped(calls_b),
                self.place(pair),
                newest.map_or(String::new(), |(side, row)| {
                    plain(self.name(side, row.function))
                }),
            ]);
        }
        table
    }

    fn lines(&self, pairs: &[Pair<LineRow>]) -> Table {
        let mut table = Table::new(&[
            ("A", Right),
            ("B", Right),
            ("B/A", Right),
            ("line", Left),
            ("text", Left),
        ]);
        let mut cache = Cache::new(self.sources);
        for pair in pairs {
            let Some((side, row)) = pair.newest() else {
                continue;
            };
            let profile = self.profiles[side];
            let text = cache.line(profile.file(row.line.file), row.line.number);
            let path = profile.source().short_path(row.line.file);
            let [a, b] = pair.measures();
            table.row([
                grouped(a),
                grouped(b),
                ratio([a, b]),
                plain(&format!("{path}:{}", row.line.number)),
                text.map(|text| plain(text.trim())).unwrap_or_default(),
            ]);
        }
        table
    }

    /// Writes the number of functions or lines without a row, and the reasons.
    fn rest(&self, out: &mut dyn Write, noun: &str) -> Result<(), PresentError> {
        let Comparison {
            pairs,
            available,
            never,
            unnamed,
            left_out: LeftOut {
                rows, instructions, ..
            },
            totals,
            ..
        } = self.comparison;
        let more = available - pairs.len();
        if more > 0 {
            let more = counted(more as u64, noun).replacen(' ', " more ", 1);
            writeln!(out, "… and {more}: --limit N")?;
        }
        if *never > 0 {
            writeln!(out, "{} ran in neither", counted(*never as u64, noun))?;
        }
        if *unnamed > 0 {
            let functions = counted(*unnamed as u64, "function");
            writeln!(
                out,
                "{functions} that ran cannot be matched for lack of a name"
            )?;
        }
        if *rows > 0 {
            let rows = counted(*rows as u64, noun);
            let share = percent(*instructions, totals[1].instructions);
            writeln!(
                out,
                "library code: {rows} with {share} of the instructions of B; --code all shows them"
            )?;
        }
        Ok(())
    }
}

impl Render for CompareView<'_> {
    const NAME: &'static str = "a comparison of profiles";

    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError> {
        let [a, b] = self.comparison.totals;
        for (side, (letter, totals)) in [("A", a), ("B", b)].into_iter().enumerate() {
            write!(out, "{letter}  {}: ", plain(&self.names[side]))?;
            summary(out, totals)?;
        }
        let instructions = [a.instructions, b.instructions];
        if let Some(ratio) = number::ratio(instructions) {
            writeln!(out, "B executed {ratio} times the instructions of A")?;
        }
        if self.comparison.by_name {
            writeln!(out, "the programs differ, so functions are matched by name")?;
        }
        writeln!(out)?;
        let (table, noun) = match &self.comparison.pairs {
            Pairs::Functions(pairs) => (self.functions(pairs), "function"),
            Pairs::Lines(pairs) if pairs.is_empty() && self.comparison.never == 0 => {
                let missing = self.profiles[1].source().missing();
                writeln!(out, "no source line is known: {missing}")?;
                return Ok(());
            }
            Pairs::Lines(pairs) => (self.lines(pairs), "line"),
        };
        table.write(out, style, |_| Paint::Plain)?;
        self.rest(out, noun)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        match &self.comparison.pairs {
            Pairs::Functions(pairs) => {
                let rows = pairs.iter().map(|pair| self.function(pair));
                begin(out, &self.with_rows(Lazy(rows)))
            }
            Pairs::Lines(pairs) => {
                let rows = pairs.iter().filter_map(|pair| self.line(pair));
                begin(out, &self.with_rows(Lazy(rows)))
            }
        }
    }

    fn csv(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        let header = match &self.comparison.pairs {
            Pairs::Functions(_) => {
                "name,instructions_a,instructions_b,ratio,entries_a,entries_b,function_a,function_b,file,line,column"
            }
            Pairs::Lines(_) => "file,line,count_a,count_b,ratio,instructions_a,instructions_b",
        };
        let mut table = Csv::new(out, header)?;
        match &self.comparison.pairs {
            Pairs::Functions(pairs) => {
                for pair in pairs {
                    let row = self.function(pair);
                    let [a, b] = pair.measures();
                    let [entries_a, entries_b] = pair.both(|row| row.entries);
                    let index = |side: Option<CompareActivity>| known(side.map(|side| side.index));
                    let file = known(row.source.as_ref().map(|at| &at.file));
                    let line = known(row.source.as_ref().map(|at| at.line));
                    let column = row.source.as_ref().and_then(|at| at.column);
                    let fields: [&dyn Display; 11] = [
                        &row.name,
                        &a,
                        &b,
                        &known(row.ratio),
                        &entries_a,
                        &entries_b,
                        &index(row.a),
                        &index(row.b),
                        &file,
                        &line,
                        &known(column),
                    ];
                    table.row(&fields)?;
                }
            }
            Pairs::Lines(pairs) => {
                for row in pairs.iter().filter_map(|pair| self.line(pair)) {
                    table.row(&[
                        &row.source.file,
                        &row.source.line,
                        &row.a.count,
                        &row.b.count,
                        &known(row.ratio),
                        &row.a.instructions,
                        &row.b.instructions,
                    ])?;
                }
            }
        }
        table.finish()
    }
}
