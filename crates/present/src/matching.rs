//! Reports which statements of two versions of a program correspond.

mod document;

use std::io::Write;

use afterimage_analyses::matching::{
    Accuracy, Class, Divergence, Evidence, Matching, Origin, Sketched, StatementSite, Values,
};
use afterimage_ids::OrigOffset;
use afterimage_profile::Source;
use afterimage_program::Names;
use afterimage_replay::steps::Operators;
use schemars::JsonSchema;
use serde::Serialize;

use crate::PresentError;
use crate::diff::DiffEnding;
use crate::document::begin;
use crate::document::objects::{Function, Position};
use crate::name::without_parameters;
use crate::number::{counted, grouped, percent};
use crate::render::Render;
use crate::table::{Align::Left, Align::Right, Paint, Style, Table, plain};
pub use document::MatchDocument;
use document::{match_csv, match_document};

/// A version.
#[derive(Clone, Copy)]
pub struct MatchSide<'a> {
    /// The name of its recording.
    pub name: &'a str,
    /// The names of its functions.
    pub names: &'a Names,
    /// Its operators.
    pub operators: &'a Operators<'a>,
    /// Its source files.
    pub source: &'a dyn Source,
    /// Its executed statements.
    pub sketched: &'a Sketched,
}

/// A matching to report.
#[derive(Clone, Copy)]
pub struct MatchView<'a> {
    /// The first version.
    pub a: MatchSide<'a>,
    /// The second version. Its statements are matched with statements of the first.
    pub b: MatchSide<'a>,
    /// The matching.
    pub matching: &'a Matching,
    /// Corresponding statements that behave differently.
    pub divergences: &'a [Divergence],
    /// The endings of the runs, if they differ.
    pub endings: Option<&'a [DiffEnding; 2]>,
    /// The accuracy of the matching according to the line tables, if requested.
    pub accuracy: Option<Accuracy>,
    /// Whether names of functions were used.
    pub names_used: bool,
    /// The maximum number of rows in a list of the text form, if it is not the default.
    pub top: Option<usize>,
    /// Whether the text form shows all statements, not only those that differ.
    pub all: bool,
}

/// A statement, prepared for display.
pub(crate) struct StatementLabel {
    pub(crate) operator: String,
    pub(crate) offset: OrigOffset,
    position: Option<Position>,
    /// The displayed end of the file's path.
    shown: String,
    function: Function,
}

impl MatchSide<'_> {
    pub(crate) fn tell(&self, statement: u32) -> Result<StatementLabel, PresentError> {
        let StatementSite { function, op } = self.sketched.places[statement as usize];
        let found = self.operators.get(function, op)?;
        let found = found.ok_or(PresentError::NoGraph(function.as_u32()))?;
        let position = found.position;
        let files = self.source.files();
        let file = position.and_then(|position| files.get(position.file.0 as usize));
        Ok(StatementLabel {
            operator: found.name.to_string(),
            offset: found.offset,
            position: file.zip(position).map(|(file, at)| Position::new(file, at)),
            shown: position
                .map_or("", |at| self.source.short_path(at.file))
                .to_owned(),
            function: Function::new(self.names, function),
        })
    }

    fn count(&self, statement: u32) -> u64 {
        let statement = &self.sketched.version.statements[statement as usize];
        // All arguments of a call are values.
        match statement.class {
            Class::Call => 0,
            _ => statement.values.count,
        }
    }
}

impl StatementLabel {
    pub(crate) fn source(&self) -> String {
        match &self.position {
            Some(at) => plain(&format!("{}:{}", self.shown, at.line)),
            None => "-".to_owned(),
        }
    }

    pub(crate) fn place(&self) -> String {
        format!("@{} {}", self.offset, self.operator)
    }

    pub(crate) fn function(&self) -> String {
        plain(without_parameters(&self.function.name))
    }

    /// Formats the statement: `main.c:12 in score, @0x1f3 i32.add`.
    fn text(&self) -> String {
        match &self.position {
            Some(_) => format!("{} in {}, {}", self.source(), self.function(), self.place()),
            None => format!("{} in {}", self.place(), self.function()),
        }
    }

    pub(crate) fn document(&self) -> MatchStatement {
        MatchStatement {
            function: self.function.clone(),
            operator: self.operator.clone(),
            offset: self.offset.0,
            source: self.position.clone(),
        }
    }
}

/// A statement of a version.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MatchStatement {
    /// Its function.
    pub function: Function,
    /// The operator's name in the text format.
    pub operator: String,
    /// Its offset in the module.
    pub offset: u32,
    /// Its line, if known.
    pub source: Option<Position>,
}

/// Returns the strongest evidence for a match, in words.
fn ground(evidence: &Evidence) -> &'static str {
    if evidence.same_code {
        return "a function of the same operators, or nearly";
    }
    match evidence.values {
        Values::Same => "the same values",
        Values::Shifted => "the same values, moved",
        Values::Permuted => "the same values in a different order",
        Values::Prefix => "the same values at first",
        Values::Part => "a part of the values",
        Values::Some => "some of the values",
        Values::Unknown | Values::Different => "structure alone",
    }
}

/// All kinds of evidence, the strongest first.
const GROUNDS: [&str; 8] = [
    "a function of the same operators, or nearly",
    "the same values",
    "the same values, moved",
    "the same values in a different order",
    "the same values at first",
    "a part of the values",
    "some of the values",
    "structure alone",
];

/// The minimum share of corresponding statements between versions of one program.
const LIKE: f64 = 0.75;
/// The minimum share of statements that match by more than structure, outside functions with the
/// same operators. This share was 58 to 87 % in five pairs of versions, and 39 to 57 % in four
/// pairs of different programs.
const BY_VALUES: f64 = 0.5;
/// The minimum number and share of statements outside such functions for this check. With fewer
/// statements, the share of matches by value says little.
const OTHERS: (usize, f64) = (200, 0.25);
/// The default number of rows in a list.
pub(crate) const ROWS: usize = 10;

/// Writes the matches, for people. With `all`, writes them statement by statement.
///
/// # Errors
/// Returns an error if `out` fails or a module cannot be read.
pub fn match_text(
    out: &mut dyn Write,
    report: &MatchView<'_>,
    all: bool,
    style: Style,
) -> Result<(), PresentError> {
    let (a, b) = (plain(report.a.name), plain(report.b.name));
    let found = &report.matching.of_b;
    let matched = found.iter().flatten().count() as u64;
    let hint = if report.names_used {
        "function names were a hint"
    } else {
        "function names were not used"
    };
    let head = format!(
        "of {} that {b} executed, {} ({}) correspond to a statement of {a}; {hint}",
        counted(found.len() as u64, "statement"),
        grouped(matched),
        percent(matched, found.len() as u64)
    );
    writeln!(out, "{}", style.paint(Paint::Bold, &head))?;
    unlike(out, report)?;
    for ground_of in GROUNDS {
        let those = found.iter().flatten();
        let count = those.filter(|m| ground(&m.evidence) == ground_of).count();
        if count > 0 {
            writeln!(out, "  {:>10}  by {ground_of}", grouped(count as u64))?;
        }
    }
    how_likely(out, report.matching)?;
    if let Some(accuracy) = report.accuracy {
        accuracy_text(out, &accuracy)?;
    }
    diverging(out, report, style)?;
    alone(out, report, style)?;
    if all {
        writeln!(out)?;
        listed(out, report, style)?;
    }
    Ok(())
}

/// The minimum likelihood of a match that counts as right.
const SURE: f32 = 0.95;

/// Writes the likelihood of the matches.
fn how_likely(out: &mut dyn Write, matching: &Matching) -> Result<(), PresentError> {
    let all = 0..matching.of_b.len() as u32;
    let (mut matched, mut sure, mut several) = (0, 0, 0);
    for b in all {
        let mut matches = matching.matches(b);
        let Some((_, likely)) = matches.next() else {
            continue;
        };
        matched += 1;
        sure += u64::from(likely >= SURE);
        several += u64::from(matches.next().is_some());
    }
    if matched > 0 {
        writeln!(
            out,
            "likely (95% and more): {} of these ({}); chosen from several candidates: {}",
            grouped(sure),
            percent(sure, matched),
            grouped(several),
        )?;
    }
    Ok(())
}

/// Writes a warning if the two programs are unlikely to be versions of one program.
pub(crate) fn unlike(out: &mut dyn Write, report: &MatchView<'_>) -> Result<(), PresentError> {
    let all = report.matching.of_b.len();
    let found = report.matching.of_b.iter().flatten();
    let corresponding = found.clone().count();
    let same_code = found.clone().filter(|m| m.evidence.same_code).count();
    let known = found.filter(|m| !m.evidence.same_code && m.evidence.values >= Values::Some);
    let by_values = known.count();
    let others = all - same_code;
    let are_many = others >= OTHERS.0 && others as f64 >= OTHERS.1 * all as f64;
    let what = if (corresponding as f64) < LIKE * all as f64 {
        "few statements correspond"
    } else if are_many && (by_values as f64) < BY_VALUES * others as f64 {
        "most statements outside functions with equal operators correspond by structure alone, \
         or not at all"
    } else {
        return Ok(());
    };
    writeln!(
        out,
        "{what}: these are probably not two versions of one program on one input"
    )?;
    Ok(())
}

fn accuracy_text(out: &mut dyn Write, accuracy: &Accuracy) -> Result<(), PresentError> {
    writeln!(
        out,
        "by the line tables: of {} with a true counterpart (same file, line, column, function \
         and operator, a value in common), {} ({}) are matched with it, {} ({}) with a \
         statement of its line",
        counted(accuracy.true_counterpart, "statement"),
        grouped(accuracy.correct),
        percent(accuracy.correct, accuracy.true_counterpart),
        grouped(accuracy.same_line),
        percent(accuracy.same_line, accuracy.true_counterpart),
    )?;
    writeln!(
        out,
        "for {} ({}) it is among the matches; a statement has {:.2} matches on average",
        grouped(accuracy.found),
        percent(accuracy.found, accuracy.true_counterpart),
        accuracy.listed as f64 / accuracy.true_counterpart.max(1) as f64,
    )?;
    writeln!(
        out,
        "(of {} in functions that differ, {} come from a known column; library code that is the same in both is not counted)",
        grouped(accuracy.executed),
        grouped(accuracy.known)
    )?;
    Ok(())
}

pub(crate) fn diverging(
    out: &mut dyn Write,
    report: &MatchView<'_>,
    style: Style,
) -> Result<(), PresentError> {
    let Some(first) = report.divergences.first() else {
        writeln!(out, "\nno corresponding statements behave differently")?;
        return Ok(());
    };
    writeln!(out)?;
    let sentence = divergence_sentence(report, first)?;
    writeln!(out, "{}", style.paint(Paint::Bold, &sentence))?;
    let mut table = Table::new(&[
        ("t", Right),
        ("how", Left),
        ("likely", Right),
        ("execution", Right),
        ("A", Right),
        ("B", Right),
        ("source", Left),
        ("in B", Left),
        ("in A", Left),
    ]);
    let top = report.top.unwrap_or(ROWS);
    for found in report.divergences.iter().take(top) {
        let (a, b) = (report.a.tell(found.a)?, report.b.tell(found.b)?);
        let [of_a, of_b] = gave(found);
        table.row([
            grouped(found.times[1]),
            origin(found.origin).to_owned(),
            likelihood(likely(report.matching, found.b)),
            numbers(found),
            of_a,
            of_b,
            b.source(),
            b.place(),
            a.place(),
        ]);
    }
    table.write(out, style, |_| Paint::Plain)?;
    more(out, report.divergences.len(), top)
}

/// Returns a sentence about the first difference of a pair of statements.
pub(crate) fn divergence_sentence(
    report: &MatchView<'_>,
    first: &Divergence,
) -> Result<String, PresentError> {
    let (a, b) = (report.a.tell(first.a)?, report.b.tell(first.b)?);
    let what = match first.origin {
        Origin::Computed => "equal operands first give a different result",
        Origin::Read | Origin::Passed => "corresponding statements first behave differently",
    };
    let (time, text) = (grouped(first.times[1]), b.text());
    let [number_a, number] = first.numbers.map(grouped);
    let other = plain(report.a.name);
    let [of_a, of_b] = first.values.map(value);
    let place = a.place();
    let likely = match likely(report.matching, first.b) {
        likely if likely < SURE => format!(
            "; these two correspond with a likelihood of {}",
            likelihood(likely)
        ),
        _ => String::new(),
    };
    Ok(match (first.arguments, first.decided) {
        (Some([in_a, in_b]), _) => format!(
            "{what} at t={time}: {text}: argument {in_b} of execution {number} was {of_b}, and in {other} argument {in_a} of execution {number_a} of {place} was {of_a}{likely}"
        ),
        (None, Some(decided)) => {
            let [of_a, of_b] = decided.map(|other| {
                if other {
                    "differently from execution 1"
                } else {
                    "the same way as execution 1"
                }
            });
            format!(
                "{what} at t={time}: {text}: execution {number} went {of_b}, and in {other} execution {number_a} of {place} went {of_a}{likely}"
            )
        }
        (None, None) => {
            format!(
                "{what} at t={time}: {text}: execution {number} gave {of_b}, and in {other} execution {number_a} of {place} gave {of_a}{likely}"
            )
        }
    })
}

/// Formats the number of the execution in the second version, and in the first version if the
/// number differs there.
fn numbers(found: &Divergence) -> String {
    match found.numbers {
        [a, b] if a == b => grouped(b),
        [a, b] => format!("{} (A: {})", grouped(b), grouped(a)),
    }
}

/// Describes the results of the two statements of a pair, each in one or two words.
fn gave(found: &Divergence) -> [String; 2] {
    match (found.arguments, found.decided) {
        (Some(arguments), _) => [0, 1].map(|side| {
            let (argument, value) = (arguments[side], value(found.values[side]));
            format!("argument {argument}: {value}")
        }),
        (None, Some(decided)) => decided.map(|other| {
            if other {
                "differs from #1".to_owned()
            } else {
                "same as #1".to_owned()
            }
        }),
        (None, None) => found.values.map(value),
    }
}

/// Corresponding statements that gave different values.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MatchDivergence {
    /// The statement of the first version.
    pub a: MatchStatement,
    /// The statement of the second version.
    pub b: MatchStatement,
    /// `computed`, `read` or `passed on`. `computed` means that the operator or a constant differs,
    /// while the other operands were the same. No producer of the operands differed earlier, and
    /// some user of the value behaves differently. `read` means that no producer differed earlier,
    /// but the statement takes different operands, or all users of its value behave the same.
    pub origin: &'static str,
    /// The likelihood that the two statements correspond.
    pub likely: f32,
    /// The number of the first differing execution, in each version.
    pub numbers: [u64; 2],
    /// The bits of the differing value or argument in each version, in hexadecimal.
    pub bits: [String; 2],
    /// The numbers of the differing arguments, from 1, if the statements are calls.
    pub arguments: Option<[u32; 2]>,
    /// Whether the outcome in each version differs from the outcome of the statement's first
    /// execution, for tests and branches.
    pub decided_otherwise: Option<[bool; 2]>,
    /// The time of the first differing execution, in each version.
    pub t: [u64; 2],
}

/// Returns the corresponding statements that behave differently, as objects, and the number of
/// statements not listed.
pub(crate) fn divergences(
    report: &MatchView<'_>,
) -> Result<(Vec<MatchDivergence>, usize), PresentError> {
    let one = |found: &Divergence| {
        Ok::<_, PresentError>(MatchDivergence {
            a: report.a.tell(found.a)?.document(),
            b: report.b.tell(found.b)?.document(),
            origin: origin(found.origin),
            likely: likely(report.matching, found.b),
            numbers: found.numbers,
            bits: found.values.map(|bits| format!("0x{bits:x}")),
            arguments: found.arguments,
            decided_otherwise: found.decided,
            t: found.times,
        })
    };
    let most = report.top.unwrap_or(usize::MAX);
    let shown = report.divergences.iter().take(most).map(one);
    let shown = shown.collect::<Result<Vec<_>, _>>()?;
    let more = report.divergences.len() - shown.len();
    Ok((shown, more))
}

/// Returns the reason for a different value, in one or two words.
pub(crate) fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Computed => "computed",
        Origin::Read => "read",
        Origin::Passed => "passed on",
    }
}

/// Formats a value of unknown type, as a signed 32-bit number if it fits.
fn value(bits: u64) -> String {
    match u32::try_from(bits) {
        Ok(low) => (low as i32).to_string(),
        Err(_) => (bits as i64).to_string(),
    }
}

pub(crate) fn more(out: &mut dyn Write, count: usize, top: usize) -> Result<(), PresentError> {
    if count > top {
        let more = grouped((count - top) as u64);
        writeln!(out, "… and {more} more: --limit N")?;
    }
    Ok(())
}

/// Writes the most executed statements without a counterpart.
fn alone(out: &mut dyn Write, report: &MatchView<'_>, style: Style) -> Result<(), PresentError> {
    let unmatched = (0..).zip(&report.matching.of_b);
    let unmatched = unmatched.filter(|(_, found)| found.is_none());
    let mut alone: Vec<u32> = unmatched.map(|(at, _)| at).collect();
    alone.sort_by_key(|&at| std::cmp::Reverse(report.b.count(at)));
    if alone.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let verb = match alone.len() {
        1 => "corresponds",
        _ => "correspond",
    };
    let head = format!(
        "{} {verb} to nothing; executed most often:",
        counted(alone.len() as u64, "statement")
    );
    writeln!(out, "{}", style.paint(Paint::Bold, &head))?;
    let mut table = Table::new(&[
        ("executions", Right),
        ("source", Left),
        ("statement", Left),
        ("function", Left),
    ]);
    let top = report.top.unwrap_or(ROWS);
    for &at in alone.iter().take(top) {
        let told = report.b.tell(at)?;
        table.row([
            grouped(report.b.count(at)),
            told.source(),
            told.place(),
            told.function(),
        ]);
    }
    table.write(out, style, |_| Paint::Plain)?;
    more(out, alone.len(), top)
}

fn listed(out: &mut dyn Write, report: &MatchView<'_>, style: Style) -> Result<(), PresentError> {
    let mut table = Table::new(&[
        ("source", Left),
        ("in B", Left),
        ("source", Left),
        ("in A", Left),
        ("likely", Right),
        ("ground", Left),
    ]);
    for (at, found) in (0..).zip(&report.matching.of_b) {
        let b = report.b.tell(at)?;
        let [source, place] = [b.source(), b.place()];
        let Some(found) = found else {
            let nothing = || "-".to_owned();
            table.row([
                source,
                place,
                nothing(),
                nothing(),
                String::new(),
                String::new(),
            ]);
            continue;
        };
        let mut by = ground(&found.evidence);
        let mut of_b = [source, place];
        for (a, likely) in report.matching.matches(at) {
            let a = report.a.tell(a)?;
            let likely = likelihood(likely);
            let [source, place] = std::mem::take(&mut of_b);
            table.row([source, place, a.source(), a.place(), likely, by.to_owned()]);
            by = "or this one";
        }
    }
    table.write(out, style, |_| Paint::Plain)?;
    Ok(())
}

/// Returns the likelihood of the match for a statement of the second version.
fn likely(matching: &Matching, b: u32) -> f32 {
    let first = matching.matches(b).next();
    first.map_or(0.0, |(_, likely)| likely)
}

/// Formats a likelihood for people. An uncertain match is never shown as certain.
fn likelihood(likely: f32) -> String {
    match (100.0 * likely).round() as u32 {
        0 => "<1%".to_owned(),
        100.. if likely < 1.0 => ">99%".to_owned(),
        share => format!("{share}%"),
    }
}

impl MatchView<'_> {
    /// Returns the document for programs.
    ///
    /// # Errors
    /// Returns an error if a module cannot be read.
    pub fn document(&self) -> Result<MatchDocument, PresentError> {
        match_document(self)
    }
}

impl Render for MatchView<'_> {
    const NAME: &'static str = "a matching";

    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError> {
        match_text(out, self, self.all, style)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        begin(out, &self.document()?)
    }

    fn csv(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        match_csv(out, self)
    }
}
