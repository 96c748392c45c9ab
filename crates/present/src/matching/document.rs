//! Writes matchings in machine-readable form: as a JSON document, and as comma-separated values.

use std::io::Write;

use afterimage_analyses::matching::Match;
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    MatchDivergence, MatchStatement, MatchView, StatementLabel, divergences, ground, likely,
};
use crate::PresentError;
use crate::diff::DiffEndings;
use crate::document::{Document, NoRows};

/// The corresponding statements of two versions of a program, judged by the effects of their
/// executions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MatchDocument {
    /// The recording of the first version.
    pub a: String,
    /// The recording of the second version.
    pub b: String,
    /// Whether names of functions were used as a hint.
    pub names: bool,
    /// The statements that `b` executed, in program order.
    pub statements: Vec<MatchedStatement>,
    /// The number of statements that `--limit` left out.
    pub more_statements: usize,
    /// Corresponding statements with different values. Statements with the origin `computed` come
    /// first, then the others by time.
    pub divergences: Vec<MatchDivergence>,
    /// The number of divergences that `--limit` left out.
    pub more_divergences: usize,
    /// The endings of the executions, if they differ.
    pub endings: Option<DiffEndings>,
    /// The accuracy of the matching, with `--check`.
    pub accuracy: Option<MatchAccuracy>,
}

impl Document for MatchDocument {
    const NAME: &'static str = "match";
    const COMMAND: &'static str = "match";
    type Row = NoRows;
}

/// A statement of the second version.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MatchedStatement {
    /// The statement.
    #[serde(flatten)]
    pub statement: MatchStatement,
    /// Its counterpart; `null` if there is none.
    #[serde(rename = "match")]
    pub matched: Option<MatchFound>,
}

/// The counterpart of a statement.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MatchFound {
    /// The statement of the first version.
    pub a: MatchStatement,
    /// The likelihood that this is the right counterpart, given that there is one. It is a number
    /// from 0 to 1, in the fewest digits that identify the 32-bit number. The text form counts
    /// matches of at least 0.95 as likely. If several copies of inlined code count as one statement
    /// of `a`, the copies of a different statement may have a higher likelihood in total.
    pub likely: f32,
    /// The other candidates that are at least a tenth as likely as the most likely candidate.
    pub others: Vec<MatchOther>,
    /// The strongest evidence for the match, in words. Functions with the same operators may differ
    /// in constants, and in offsets of loads and stores. Functions with nearly the same operators
    /// have the same length and agree in nine of ten operators.
    pub ground: &'static str,
    /// Whether the operators are the same.
    pub same_operator: bool,
    /// The number of operands with a counterpart in the right place, and the total number of
    /// operands.
    pub operands: [u32; 2],
    /// The number of users of the statement's value with a counterpart in the right place, and the
    /// total number of these users.
    pub users: [u32; 2],
    /// The number of the statement's neighbours with a counterpart in the right place, and the
    /// total number of its neighbours.
    pub neighbours: [u32; 2],
    /// Whether the functions have the same name.
    pub same_name: bool,
}

/// Another candidate.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MatchOther {
    /// The statement of the first version.
    pub a: MatchStatement,
    /// The likelihood that this is the right counterpart.
    pub likely: f32,
}

/// The accuracy of a matching: counts of statements in functions that differ.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MatchAccuracy {
    /// The number of statements that the second version executed in functions that differ.
    pub executed: u64,
    /// The number of executed statements with a known line and column.
    pub known: u64,
    /// The number of statements for which the first version executed an equal statement of the same
    /// line and column, in any instance of a generic function.
    pub of_column: u64,
    /// The number of statements counted in `of_column` that are matched with a statement of the
    /// same line and column.
    pub correct_of_column: u64,
    /// The number of statements with a true counterpart: an equal statement from the same position
    /// and instance that the first version executed.
    pub true_counterpart: u64,
    /// The number of statements with a true counterpart that are matched.
    pub matched: u64,
    /// The number of statements with a true counterpart that are matched correctly, by line, column
    /// and instance.
    pub correct: u64,
    /// The number of statements with a true counterpart for which at least one match is correct.
    pub found: u64,
    /// The total number of matches of statements with a true counterpart.
    pub listed: u64,
    /// The number of statements with a true counterpart that are matched with a statement of the
    /// same line.
    pub same_line: u64,
}

/// Returns the document.
///
/// # Errors
/// Returns an error if a module cannot be read.
pub(super) fn match_document(report: &MatchView<'_>) -> Result<MatchDocument, PresentError> {
    let mut statements = Vec::new();
    let most = report.top.unwrap_or(usize::MAX);
    for (at, found) in (0..).zip(&report.matching.of_b).take(most) {
        let matched = found.as_ref().map(|Match { a, evidence, .. }| {
            let others = report.matching.matches(at).skip(1).map(|(a, likely)| {
                let a = report.a.tell(a)?.document();
                Ok(MatchOther { a, likely })
            });
            Ok::<_, PresentError>(MatchFound {
                a: report.a.tell(*a)?.document(),
                likely: likely(report.matching, at),
                others: others.collect::<Result<_, PresentError>>()?,
                ground: ground(evidence),
                same_operator: evidence.operator,
                operands: evidence.operands.into(),
                users: evidence.users.into(),
                neighbours: evidence.neighbours.into(),
                same_name: evidence.name,
            })
        });
        statements.push(MatchedStatement {
            statement: report.b.tell(at)?.document(),
            matched: matched.transpose()?,
        });
    }
    let (divergences, more_divergences) = divergences(report)?;
    Ok(MatchDocument {
        a: report.a.name.to_owned(),
        b: report.b.name.to_owned(),
        names: report.names_used,
        more_statements: report.matching.of_b.len() - statements.len(),
        statements,
        divergences,
        more_divergences,
        endings: DiffEndings::new(report.endings),
        accuracy: report.accuracy.map(|found| MatchAccuracy {
            executed: found.executed,
            known: found.known,
            of_column: found.of_column,
            correct_of_column: found.correct_of_column,
            true_counterpart: found.true_counterpart,
            matched: found.matched,
            correct: found.correct,
            found: found.found,
            listed: found.listed,
            same_line: found.same_line,
        }),
    })
}

/// Writes comma-separated values (RFC 4180): a row for each statement of the second version that
/// the report shows.
///
/// # Errors
/// Returns an error if `out` fails or a module cannot be read.
pub(super) fn match_csv(out: &mut dyn Write, report: &MatchView<'_>) -> Result<(), PresentError> {
    let header = "b_name,b_offset,b_operator,b_file,b_line,a_name,a_offset,a_operator,a_file,a_line,ground,likely,others";
    let mut table = crate::csv::Csv::new(out, header)?;
    let cells = |told: &StatementLabel| -> [String; 5] {
        let at = told.position.as_ref();
        [
            told.function.name.clone(),
            told.offset.0.to_string(),
            told.operator.clone(),
            at.map_or(String::new(), |at| at.file.clone()),
            at.map_or(String::new(), |at| at.line.to_string()),
        ]
    };
    let most = report.top.unwrap_or(usize::MAX);
    for (at, found) in (0..).zip(&report.matching.of_b).take(most) {
        let mut row = cells(&report.b.tell(at)?).to_vec();
        match found {
            Some(found) => {
                row.extend(cells(&report.a.tell(found.a)?));
                row.push(ground(&found.evidence).to_owned());
                let mut matches = report.matching.matches(at);
                let likely = matches.next().map_or(0.0, |(_, likely)| likely);
                row.push(likely.to_string());
                let others = matches.map(|(a, likely)| {
                    let offset = report.a.tell(a)?.offset.0;
                    Ok(format!("{offset}:{likely}"))
                });
                let others = others.collect::<Result<Vec<String>, PresentError>>()?;
                row.push(others.join(" "));
            }
            None => row.extend(std::iter::repeat_n(String::new(), 8)),
        }
        table.row(&Vec::from_iter(row.iter().map(|cell| cell as _)))?;
    }
    table.finish()
}
