//! Reports on two versions of a program that ran on the same input.

use std::io::Write;

use afterimage_analyses::diff::{OutputDifference, Outputs};
use afterimage_analyses::matching::Suspect;
use schemars::JsonSchema;
use serde::Serialize;

use super::json::DiffEndings;
use super::text::put_out;
use super::{NextQuestion, ask, asked_of_output, ended, slice_of, why_command};
use crate::PresentError;
use crate::document::{Document, NoRows, at_most, begin};
use crate::matching::{
    MatchDivergence, MatchStatement, MatchView, ROWS, StatementLabel, divergences, diverging, more,
    unlike,
};
use crate::number::{counted, grouped};
use crate::render::Render;
use crate::table::{Align::Left, Align::Right, Paint, Style, Table, plain};

/// Writes the differences between two versions, for people.
///
/// # Errors
/// Returns an error if `out` fails or a module cannot be read.
pub fn versions_text(
    out: &mut dyn Write,
    report: &MatchView<'_>,
    suspects: &[Suspect],
    Outputs {
        differences: outputs,
        any,
    }: &Outputs,
    style: Style,
) -> Result<(), PresentError> {
    let [a, b] = [report.a.name, report.b.name].map(plain);
    let same = match (&**outputs, any) {
        ([], false) => "they printed nothing",
        ([], true) => "they printed the same",
        _ => "their output differs",
    };
    let found = &report.matching.of_b;
    let matched = found.iter().flatten().count();
    let suspected = match suspects.first() {
        None => String::new(),
        Some(first) => {
            let first = report.b.tell(first.b)?;
            let count = counted(suspects.len() as u64, "suspect");
            let place = format!("{} in {}", first_of(&first), first.function());
            format!("; {count}, first {place}")
        }
    };
    let head = format!(
        "{a} and {b} are recordings of different programs; {same}; {} of {} statements correspond{suspected}",
        grouped(matched as u64),
        grouped(found.len() as u64),
    );
    writeln!(out, "{}", style.paint(Paint::Bold, &head))?;
    ended(out, [report.a.name, report.b.name], report.endings, style)?;
    unlike(out, report)?;
    let width = a.chars().count().max(b.chars().count());
    let sides = [format!("{a:width$}"), format!("{b:width$}")];
    for output in outputs {
        writeln!(out)?;
        put_out(out, style, output, &sides)?;
    }
    // The versions visibly behave the same if they printed the same output and ended in the same
    // way. Without any output, a fault could be invisible.
    let is_same = *any && outputs.is_empty() && report.endings.is_none();
    if is_same && !report.divergences.is_empty() {
        writeln!(
            out,
            "both printed the same and ended alike, so what follows may not be a fault: two \
             correct versions may also differ in their memory layout, and in the values and \
             branches that depend on it"
        )?;
    }
    diverging(out, report, style)?;
    suspicious(out, report, suspects, style)?;
    let questions = versions_questions(report, suspects, outputs)?;
    if !questions.is_empty() {
        let head = style.paint(Paint::Bold, "questions to ask next");
        writeln!(out, "\n{head}")?;
        for question in questions {
            writeln!(out, "  {}", question.command)?;
        }
    }
    Ok(())
}

/// Writes the suspects: statements of the second version that may be to blame for the different
/// behaviour.
fn suspicious(
    out: &mut dyn Write,
    report: &MatchView<'_>,
    suspects: &[Suspect],
    style: Style,
) -> Result<(), PresentError> {
    if suspects.is_empty() {
        return Ok(());
    }
    let other = plain(report.a.name);
    let head = format!(
        "suspects: operators that differ in otherwise equal functions, and statements with \
         equal inputs whose first output differs from that of every similar statement in \
         {other} (correct versions have a few, too)"
    );
    writeln!(out, "\n{}", style.paint(Paint::Bold, &head))?;
    let mut table = Table::new(&[
        ("t", Right),
        ("wrong after", Right),
        ("source", Left),
        ("in B", Left),
        ("function", Left),
        ("in A", Left),
    ]);
    let top = report.top.unwrap_or(ROWS);
    for suspect in suspects.iter().take(top) {
        let b = report.b.tell(suspect.b)?;
        let replaced = match suspect.replaces {
            Some(a) => format!("replaces {}", report.a.tell(a)?.place()),
            None => String::new(),
        };
        table.row([
            grouped(suspect.time),
            grouped(suspect.wrong as u64),
            b.source(),
            first_of(&b),
            b.function(),
            replaced,
        ]);
    }
    table.write(out, style, |_| Paint::Plain)?;
    more(out, suspects.len(), top)
}

/// Formats the first execution of a suspect, whose result is wrong: `@0x1f3#1 i32.add`.
fn first_of(told: &StatementLabel) -> String {
    format!("@{}#1 {}", told.offset, told.operator)
}

/// Returns follow-up questions as commands: about the end of one of the runs, the output, the
/// first divergence, and the first suspect.
///
/// # Errors
/// Returns an error if a module cannot be read.
pub fn versions_questions(
    report: &MatchView<'_>,
    suspects: &[Suspect],
    outputs: &[OutputDifference],
) -> Result<Vec<NextQuestion>, PresentError> {
    let names = [report.a.name, report.b.name];
    let mut questions = Vec::new();
    let endings = report.endings.into_iter().flatten();
    for question in endings.filter_map(|ending| ending.question.clone()) {
        ask(&mut questions, NextQuestion::new(question));
    }
    for output in outputs {
        for question in asked_of_output(names, output) {
            ask(&mut questions, NextQuestion::new(question));
        }
    }
    if let Some(first) = report.divergences.first() {
        let sides = [(report.a, first.a), (report.b, first.b)];
        let mut slices = Vec::new();
        for (at, (side, statement)) in sides.into_iter().enumerate() {
            let place = format!("@{}", side.tell(statement)?.offset);
            let why = why_command(side.name, &place, first.numbers[at]);
            // If an argument differs, ask about it instead of the result of the call.
            let why = match first.arguments {
                Some(arguments) => format!("{why} --operand {}", arguments[at]),
                None => why,
            };
            ask(&mut questions, NextQuestion::new(why));
            let slice = slice_of(&place, first.numbers[at]);
            slices.push(NextQuestion::slice(names, at, slice));
        }
        for slice in slices {
            ask(&mut questions, slice);
        }
    }
    if let Some(suspect) = suspects.first() {
        let place = format!("@{}", report.b.tell(suspect.b)?.offset);
        let why = why_command(report.b.name, &place, 1);
        ask(&mut questions, NextQuestion::new(why));
    }
    Ok(questions)
}

/// A comparison of the runs of two versions of a program.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VersionsDocument {
    /// The recording of the first version.
    pub a: String,
    /// The recording of the second version.
    pub b: String,
    /// The number of statements that `b` executed.
    pub statements: usize,
    /// The number of statements executed by `b` that correspond to a statement of `a`.
    pub matched: usize,
    /// The endings of the runs, if they differ.
    pub endings: Option<DiffEndings>,
    /// The file descriptors to which `fd_write` wrote different bytes.
    pub outputs: Vec<VersionsOutput>,
    /// Corresponding statements with different values. Statements with the origin `computed` come
    /// first, then the others by time.
    pub divergences: Vec<MatchDivergence>,
    /// The number of divergences that `--limit` left out.
    pub more_divergences: usize,
    /// Suspicious statements of two kinds. Some are replaced operators in functions that are
    /// otherwise the same. Others are computations whose operands correspond and agree at first,
    /// but whose first result differs from the result of every match. At least three later
    /// statements then differ, too. Replacements come first, then the computations in descending
    /// order of the number of wrong statements that follow.
    pub suspects: Vec<VersionsSuspect>,
    /// The number of suspects that `--limit` left out.
    pub more_suspects: usize,
    /// Commands to continue with.
    pub questions: Vec<String>,
}

impl Document for VersionsDocument {
    const NAME: &'static str = "versions";
    const COMMAND: &'static str = "diff";
    type Row = NoRows;
}

/// A file descriptor to which different bytes were written.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VersionsOutput {
    /// The descriptor.
    pub descriptor: u32,
    /// The offset of the first differing byte, from 0.
    pub offset: u64,
    /// The number of the line of output that contains the first differing byte, from 1.
    pub output_line: u64,
    /// The bytes that precede the difference in its line of output.
    pub before: Vec<u8>,
    /// The output of the first version; `null` if its output ends earlier.
    pub a: Option<VersionsWritten>,
    /// The output of the second version; `null` if its output ends earlier.
    pub b: Option<VersionsWritten>,
}

/// The differing output of one version.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VersionsWritten {
    /// The bytes, up to the end of the line or of the write.
    pub bytes: Vec<u8>,
    /// The time of the call's block.
    pub t: u64,
}

/// A statement that may be to blame.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VersionsSuspect {
    /// The statement.
    pub b: MatchStatement,
    /// The time of its first execution.
    pub t: u64,
    /// The statement of `a` that it replaces, if the function is otherwise the same.
    pub replaces: Option<MatchStatement>,
    /// The number of wrong statements among the 256 nearest statements after it. A wrong statement
    /// certainly corresponds to a statement of `a`, and its values differ from the first execution
    /// on.
    pub wrong: usize,
}

/// Returns the document.
///
/// # Errors
/// Returns an error if a module cannot be read.
pub(crate) fn versions_document(
    report: &MatchView<'_>,
    suspects: &[Suspect],
    outputs: &[OutputDifference],
) -> Result<VersionsDocument, PresentError> {
    let questions = versions_questions(report, suspects, outputs)?;
    let written = |written: &Option<afterimage_analyses::diff::Written>| {
        let written = written.as_ref();
        written.map(|written| VersionsWritten {
            bytes: written.bytes.clone(),
            t: written.time,
        })
    };
    let outputs = outputs.iter().map(|output| VersionsOutput {
        descriptor: output.descriptor,
        offset: output.offset,
        output_line: output.line,
        before: output.before.clone(),
        a: written(&output.a),
        b: written(&output.b),
    });
    let suspects = suspects.iter().map(|suspect| {
        let replaces = suspect.replaces.map(|a| report.a.tell(a)).transpose()?;
        Ok(VersionsSuspect {
            b: report.b.tell(suspect.b)?.document(),
            t: suspect.time,
            replaces: replaces.map(|a| a.document()),
            wrong: suspect.wrong,
        })
    });
    let found = &report.matching.of_b;
    let suspects = suspects.collect::<Result<Vec<_>, PresentError>>()?;
    let (suspects, more_suspects) = at_most(suspects, report.top);
    let (divergences, more_divergences) = divergences(report)?;
    Ok(VersionsDocument {
        a: report.a.name.to_owned(),
        b: report.b.name.to_owned(),
        statements: found.len(),
        matched: found.iter().flatten().count(),
        endings: DiffEndings::new(report.endings),
        outputs: outputs.collect(),
        divergences,
        more_divergences,
        suspects,
        more_suspects,
        questions: questions.into_iter().map(|it| it.command).collect(),
    })
}

/// A comparison of two versions of a program.
pub struct VersionsView<'r> {
    /// The matching.
    pub report: MatchView<'r>,
    /// The possible causes.
    pub suspects: Vec<Suspect>,
    /// The output of the two versions.
    pub outputs: Outputs,
}

impl VersionsView<'_> {
    /// Returns follow-up questions.
    ///
    /// # Errors
    /// Returns an error if a module cannot be read.
    pub fn questions(&self) -> Result<Vec<NextQuestion>, PresentError> {
        versions_questions(&self.report, &self.suspects, &self.outputs.differences)
    }

    /// Returns the document for programs.
    ///
    /// # Errors
    /// Returns an error if a module cannot be read.
    pub fn document(&self) -> Result<VersionsDocument, PresentError> {
        let outputs = &self.outputs.differences;
        versions_document(&self.report, &self.suspects, outputs)
    }
}

impl Render for VersionsView<'_> {
    const NAME: &'static str = "a comparison of two recordings";

    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError> {
        versions_text(out, &self.report, &self.suspects, &self.outputs, style)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        begin(out, &self.document()?)
    }
}
