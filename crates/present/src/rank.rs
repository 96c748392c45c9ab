//! Reports lines and values that separate failing executions from passing executions.

use std::collections::BTreeSet;
use std::io::Write;

use afterimage_analyses::diff::{Number, Predicate, RankedLine, RankedValue};
use afterimage_profile::{CodeFilter, Folded, Source};
use afterimage_program::Names;
use afterimage_replay::steps::Operators;
use schemars::JsonSchema;
use serde::Serialize;

use crate::csv::Csv;
use crate::document::objects::{Function, Position};
use crate::document::{Document, NoRows, begin};
use crate::number::{counted, grouped};
use crate::render::Render;
use crate::sources::Cache;
use crate::table::{Align::Left, Align::Right, Paint, Style, Table, plain};
use crate::{PresentError, Sources};

/// Ranked lines, and values.
#[derive(Clone, Copy)]
pub struct RankView<'r> {
    /// The number of passing executions.
    pub passing: usize,
    /// The number of failing executions.
    pub failing: usize,
    /// The lines, the most suspicious first.
    pub rows: &'r [RankedLine],
    /// The maximum number of rows to show in each list.
    pub most: usize,
    /// The code whose rows the text form shows.
    pub code: &'r CodeFilter,
    /// The source files.
    pub source: &'r dyn Source,
    /// Source text.
    pub sources: &'r dyn Sources,
    /// The values, if they were ranked.
    pub values: Option<RankedValues<'r>>,
}

/// Ranked values.
#[derive(Clone, Copy)]
pub struct RankedValues<'r> {
    /// The ranked values, the most suspicious first.
    pub rows: &'r [RankedValue],
    /// The names of the functions.
    pub names: &'r Names,
    /// The operators of the functions.
    pub operators: &'r Operators<'r>,
}

/// A ranked value, prepared for display.
struct ToldValue {
    function: String,
    operator: String,
    offset: u32,
    file: Option<String>,
    /// The displayed end of its path.
    shown: String,
    line: u32,
    /// Whether the text form shows the value.
    is_own: bool,
}

impl RankedValues<'_> {
    fn tell(&self, row: &RankedValue, folded: &Folded<'_>) -> Result<ToldValue, PresentError> {
        let found = self.operators.get(row.place.function, row.place.op)?;
        let found = found.ok_or(PresentError::NoGraph(row.place.function.as_u32()))?;
        let position = found.position;
        let files = folded.files();
        let file = position.and_then(|position| files.get(position.file.0 as usize));
        Ok(ToldValue {
            function: self.names.function(row.place.function).to_owned(),
            operator: found.name.to_string(),
            offset: found.offset.0,
            file: file.cloned(),
            shown: position
                .map_or("", |at| folded.short_path(at.file))
                .to_owned(),
            line: position.map_or(0, |position| position.line),
            is_own: position.map_or(folded.shows_all(), |at| folded.shows(at.file)),
        })
    }
}

/// Formats the predicate in words.
fn predicate(row: &RankedValue) -> String {
    match (row.predicate, row.is_truth) {
        (Predicate::Zero, true) => "does not hold".to_owned(),
        (Predicate::Positive, true) => "holds".to_owned(),
        (Predicate::Negative, _) => "< 0".to_owned(),
        (Predicate::Zero, false) => "= 0".to_owned(),
        (Predicate::Positive, false) => "> 0".to_owned(),
        (Predicate::Above(than), _) => format!("> {}", number(than)),
        (Predicate::Below(than), _) => format!("< {}", number(than)),
    }
}

fn number(number: Number) -> String {
    match number {
        Number::Integer(value) => value.to_string(),
        Number::Float(value) => value.to_string(),
        Number::Truth(value) => value.to_string(),
    }
}

/// Writes the most suspicious value of each line.
fn values_text(
    out: &mut dyn Write,
    report: &RankView<'_>,
    values: &RankedValues<'_>,
    cache: &mut Cache<'_>,
    style: Style,
) -> Result<(), PresentError> {
    let telling = values.rows.iter();
    let telling = telling.filter(|row| row.failing == report.failing && row.passing == 0);
    writeln!(out)?;
    let head = format!(
        "{} gave a value in every failing execution that it never gave in a passing one",
        counted(telling.count() as u64, "statement")
    );
    writeln!(out, "{}", style.paint(Paint::Bold, &head))?;
    if values.rows.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&[
        ("score", Right),
        ("failing", Right),
        ("passing", Right),
        ("some value", Left),
        ("statement", Left),
        ("line", Left),
        ("text", Left),
    ]);
    let mut lines = BTreeSet::new();
    let mut library = 0;
    let folded = report.folded();
    for row in values.rows {
        let told = values.tell(row, &folded)?;
        if !told.is_own {
            library += 1;
            continue;
        }
        if lines.len() == report.most
            || !lines.insert((
                told.file.clone(),
                told.line,
                told.file.is_none().then_some(told.offset),
            ))
        {
            continue;
        }
        let text = told
            .file
            .as_deref()
            .and_then(|file| cache.line(file, told.line));
        let text = text.map(|text| plain(text.trim())).unwrap_or_default();
        table.row([
            format!("{:.3}", row.score),
            format!("{}/{}", row.failing, row.executed[0]),
            format!("{}/{}", row.passing, row.executed[1]),
            predicate(row),
            format!("@{:#x} {}", told.offset, told.operator),
            match &told.file {
                Some(_) => plain(&format!("{}:{}", told.shown, told.line)),
                None => plain(&told.function),
            },
            text,
        ]);
    }
    table.write(out, style, |_| Paint::Plain)?;
    let (shown, all) = (lines.len(), values.rows.len());
    if shown < all {
        writeln!(
            out,
            "shown: {} of {} ranked, only the first of each line; --format json has all",
            grouped(shown as u64),
            counted(all as u64, "statement")
        )?;
    }
    in_libraries(out, library, "statement")
}

fn ranked_value(
    row: &RankedValue,
    values: &RankedValues<'_>,
    source: &dyn Source,
) -> Result<RankValue, PresentError> {
    let told = values.tell(row, &Folded::new(source, &CodeFilter::All))?;
    let (predicate, than) = match row.predicate {
        Predicate::Negative => ("negative", None),
        Predicate::Zero => ("zero", None),
        Predicate::Positive => ("positive", None),
        Predicate::Above(than) => ("above", Some(than)),
        Predicate::Below(than) => ("below", Some(than)),
    };
    let than = than.map(|than| match than {
        Number::Integer(value) => RankNumber::Integer(value),
        // JSON has no infinities.
        Number::Float(value) if value.is_finite() => RankNumber::Float(value),
        Number::Float(value) => RankNumber::Infinite(value.to_string()),
        Number::Truth(value) => RankNumber::Truth(value),
    });
    Ok(RankValue {
        function: Function::new(values.names, row.place.function),
        operator: told.operator,
        offset: told.offset,
        source: told
            .file
            .as_ref()
            .map(|file| Position::line(file, told.line)),
        predicate,
        than,
        failing: row.failing,
        passing: row.passing,
        score: row.score,
        failing_executed: row.executed[0],
        passing_executed: row.executed[1],
    })
}

/// Writes the number of ranked rows that the text form leaves out because their code is not the
/// user's.
fn in_libraries(out: &mut dyn Write, library: usize, what: &str) -> Result<(), PresentError> {
    if library > 0 {
        let left_out = counted(library as u64, what);
        writeln!(
            out,
            "outside your own code: {left_out}; --code all shows them"
        )?;
    }
    Ok(())
}

impl<'r> RankView<'r> {
    /// Returns the source of the code that the text form shows: the user's own code or, if there is
    /// none, all code.
    fn folded(&self) -> Folded<'r> {
        Folded::if_any(self.source, self.code)
    }

    fn shown_rows(&self) -> &'r [RankedLine] {
        &self.rows[..self.rows.len().min(self.most)]
    }

    fn file(&self, row: &RankedLine) -> &str {
        let files = self.source.files();
        let path = files.get(row.line.file.0 as usize);
        path.map_or("", String::as_str)
    }
}

/// Writes ranked lines and values for people.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn rank_text(
    out: &mut dyn Write,
    report: &RankView<'_>,
    sources: &dyn Sources,
    style: Style,
) -> Result<(), PresentError> {
    let mut cache = Cache::new(sources);
    if report.source.files().is_empty() {
        writeln!(out, "{}: no lines are known", report.source.missing())?;
    } else {
        lines_text(out, report, &mut cache, style)?;
    }
    match &report.values {
        Some(values) => values_text(out, report, values, &mut cache, style),
        None => Ok(()),
    }
}

fn lines_text(
    out: &mut dyn Write,
    report: &RankView<'_>,
    cache: &mut Cache<'_>,
    style: Style,
) -> Result<(), PresentError> {
    let only = report.rows.iter();
    let telling = only.filter(|row| row.failing == report.failing && row.passing == 0);
    let failing = match report.failing {
        1 => "the failing execution".to_owned(),
        all => format!("all {}", counted(all as u64, "failing execution")),
    };
    let passing = match report.passing {
        1 => "not in the passing one".to_owned(),
        all => format!("in none of {}", counted(all as u64, "passing one")),
    };
    let lines = counted(telling.count() as u64, "line");
    let head = format!("{lines} ran in {failing} and {passing}");
    writeln!(out, "{}", style.paint(Paint::Bold, &head))?;
    let mut table = Table::new(&[
        ("score", Right),
        ("failing", Right),
        ("passing", Right),
        ("line", Left),
        ("text", Left),
    ]);
    let folded = report.folded();
    let own = report.rows.iter();
    let own = Vec::from_iter(own.filter(|row| folded.shows(row.line.file)));
    for row in own.iter().take(report.most) {
        let file = report.file(row);
        let text = cache.line(file, row.line.number).map(str::trim);
        table.row([
            format!("{:.3}", row.score),
            format!("{}/{}", row.failing, report.failing),
            format!("{}/{}", row.passing, report.passing),
            plain(&format!(
                "{}:{}",
                report.source.short_path(row.line.file),
                row.line.number
            )),
            text.map(plain).unwrap_or_default(),
        ]);
    }
    table.write(out, style, |_| Paint::Plain)?;
    let left = own.len().saturating_sub(report.most);
    if left > 0 {
        writeln!(out, "… and {} more", grouped(left as u64))?;
    }
    in_libraries(out, report.rows.len() - own.len(), "line")
}

/// Lines and values that separate failing executions from passing executions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RankDocument {
    /// The number of failing executions.
    pub failing: usize,
    /// The number of passing executions.
    pub passing: usize,
    /// The number of lines that ran in a failing run.
    pub available: usize,
    /// The lines, the most suspicious first.
    pub lines: Vec<RankLine>,
    /// Statements whose values separate the executions better than the fact that the statement was
    /// executed; `null` with `--no-values`.
    pub values: Option<Vec<RankValue>>,
}

impl Document for RankDocument {
    const NAME: &'static str = "rank";
    const COMMAND: &'static str = "diff --pass … --fail …";
    type Row = NoRows;
}

/// A line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RankLine {
    /// The line.
    pub source: Position,
    /// The number of failing executions in which it ran.
    pub failing: usize,
    /// The number of passing executions in which it ran.
    pub passing: usize,
    /// Ochiai's coefficient.
    pub score: f64,
    /// The number of arrivals at it in all failing executions.
    pub failing_arrivals: u64,
    /// The number of arrivals at it in all passing executions.
    pub passing_arrivals: u64,
}

/// A statement, with a predicate on some of its values.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RankValue {
    /// Its function.
    pub function: Function,
    /// The operator's name in the text format.
    pub operator: String,
    /// Its offset in the original module.
    pub offset: u32,
    /// Its line, if known.
    pub source: Option<Position>,
    /// `negative`, `zero` (for tests and branches: false, or not taken), `positive`, or `above` or
    /// `below` the number `than`.
    pub predicate: &'static str,
    /// The number that `above` or `below` compares with.
    pub than: Option<RankNumber>,
    /// The number of failing executions in which the predicate holds for some value.
    pub failing: usize,
    /// The number of passing executions in which the predicate holds for some value.
    pub passing: usize,
    /// Ochiai's coefficient.
    pub score: f64,
    /// The number of failing executions in which the statement was executed.
    pub failing_executed: usize,
    /// The number of passing executions in which the statement was executed.
    pub passing_executed: usize,
}

/// A number with which a predicate compares values.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum RankNumber {
    /// A whole number.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
    /// An infinite floating-point number, as text.
    Infinite(String),
    /// A truth value.
    Truth(bool),
}

/// Writes the ranked lines as CSV (RFC 4180).
///
/// # Errors
/// Returns an error if `out` fails.
pub fn rank_csv(out: &mut dyn Write, report: &RankView<'_>) -> Result<(), PresentError> {
    let header = "file,line,failing,passing,score,failing_arrivals,passing_arrivals";
    let mut table = Csv::new(out, header)?;
    for row in report.shown_rows() {
        let [of_failing, of_passing] = row.arrivals;
        table.row(&[
            &report.file(row),
            &row.line.number,
            &row.failing,
            &row.passing,
            &row.score,
            &of_failing,
            &of_passing,
        ])?;
    }
    table.finish()
}

impl RankView<'_> {
    /// Returns the document for programs.
    ///
    /// # Errors
    /// Returns an error if a module cannot be read.
    pub fn document(&self) -> Result<RankDocument, PresentError> {
        let lines = self.shown_rows().iter().map(|row| RankLine {
            source: Position::line(self.file(row), row.line.number),
            failing: row.failing,
            passing: row.passing,
            score: row.score,
            failing_arrivals: row.arrivals[0],
            passing_arrivals: row.arrivals[1],
        });
        let values = self.values.as_ref().map(|values| {
            let shown = values.rows.iter().take(self.most);
            let shown = shown.map(|row| ranked_value(row, values, self.source));
            shown.collect::<Result<Vec<_>, _>>()
        });
        Ok(RankDocument {
            failing: self.failing,
            passing: self.passing,
            available: self.rows.len(),
            lines: lines.collect(),
            values: values.transpose()?,
        })
    }
}

impl Render for RankView<'_> {
    const NAME: &'static str = "a ranking";

    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError> {
        rank_text(out, self, self.sources, style)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        begin(out, &self.document()?)
    }

    fn csv(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        rank_csv(out, self)
    }
}
