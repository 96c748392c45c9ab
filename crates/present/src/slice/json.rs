//! Writes slices for programs.

use std::borrow::Cow;
use std::io::Write;

use afterimage_analyses::slices::SliceCounts;
use afterimage_profile::{Line, Source, SourceLine};
use afterimage_program::{Location, Names};
use afterimage_replay::state::Written;
use schemars::JsonSchema;
use serde::Serialize;

use super::without_lines;
use crate::PresentError;
use crate::csv::{Csv, known};
use crate::document::objects::{Function, Position, position};
use crate::document::{Document, NoRows};
use crate::state::WrittenSince;

/// A dynamic slice.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SliceReport {
    /// Its contents, in words.
    pub title: String,
    /// The number of executions of statements in it.
    pub executions: u64,
    /// The number of lines that the run executed, completely or in part.
    pub executed_lines: usize,
    /// The number of bytes of initial memory that it depends on.
    pub initial_bytes: u64,
    /// The last write to the variable's place since the call began. This write may have stored
    /// something other than the variable's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<WrittenSince>,
    /// The lines in it.
    pub lines: Vec<SliceLine>,
    /// The number of further lines, if a limit leaves some out.
    #[serde(default, skip_serializing_if = "crate::document::is_zero")]
    pub more_lines: usize,
    /// The statements in it.
    pub statements: Vec<SliceStatement>,
    /// The number of further statements, if a limit leaves some out.
    #[serde(default, skip_serializing_if = "crate::document::is_zero")]
    pub more_statements: usize,
}

impl Document for SliceReport {
    const NAME: &'static str = "slice";
    const COMMAND: &'static str = "slice";
    type Row = NoRows;
}

/// A line of a slice.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SliceLine {
    /// The line.
    pub source: Position,
    /// The number of its operators in the slice.
    pub statements: usize,
    /// The largest number of executions in the slice among the line's operators. With `--algorithm
    /// edges` and `nodes`, all executions count.
    pub sliced: u64,
    /// The number of all executions of the operator that determines `sliced`.
    pub executed: u64,
    /// Whether the slice begins at this line.
    pub criterion: bool,
}

/// A statement of a slice.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SliceStatement {
    /// Its function.
    pub function: Function,
    /// The operator's number in the body.
    pub op: u32,
    /// Its offset in the original module.
    pub offset: u32,
    /// Its line, if known.
    #[serde(serialize_with = "position")]
    #[schemars(with = "Option<Position>")]
    pub source: Option<SourceLine>,
    /// The number of executions in the slice. With `--algorithm edges` and `nodes`, all executions
    /// count.
    pub sliced: u64,
    /// The number of all executions.
    pub executed: u64,
}

impl SliceReport {
    /// Creates the report on a slice that `title` describes. `criterion` lists the lines where it
    /// begins, ascending.
    pub fn new(
        slice: &SliceCounts,
        title: String,
        criterion: &[Line],
        written: Option<Written>,
        source: &dyn Source,
        names: &Names,
    ) -> Self {
        let located = |line: Line| {
            let (file, line) = (line.file, line.number);
            let column = 0;
            source.line(Location { file, line, column })
        };
        let lines = slice.lines.iter().map(|one| SliceLine {
            source: Position::from(&located(one.line)),
            statements: one.operators,
            sliced: one.sliced,
            executed: one.executed,
            criterion: criterion.binary_search(&one.line).is_ok(),
        });
        let statements = slice.operators.iter().map(|one| SliceStatement {
            function: Function::new(names, one.function),
            op: one.op.as_u32(),
            offset: one.offset.0,
            source: one.line.map(located),
            sliced: one.sliced,
            executed: one.executed,
        });
        Self {
            title,
            executions: slice.executions,
            executed_lines: slice.executed_lines,
            initial_bytes: slice.initial,
            written: written.map(WrittenSince::from),
            lines: lines.collect(),
            more_lines: 0,
            statements: statements.collect(),
            more_statements: 0,
        }
    }

    /// Returns the slice with at most `limit` lines and at most `limit` statements.
    pub(super) fn limited(&self, limit: usize) -> Cow<'_, Self> {
        let (lines, statements) = (self.lines.len(), self.statements.len());
        if lines.max(statements) <= limit {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self {
            title: self.title.clone(),
            lines: self.lines[..lines.min(limit)].to_vec(),
            more_lines: self.more_lines + lines.saturating_sub(limit),
            statements: self.statements[..statements.min(limit)].to_vec(),
            more_statements: self.more_statements + statements.saturating_sub(limit),
            ..*self
        })
    }
}

/// Writes the lines of a slice, or its statements, as comma-separated values. After the lines, each
/// function that has statements without a known line gets a row. Writes at most `limit` rows.
///
/// # Errors
/// Returns an error if `out` fails.
pub(super) fn csv(
    out: &mut dyn Write,
    report: &SliceReport,
    by_line: bool,
    limit: usize,
) -> Result<(), PresentError> {
    if by_line {
        let mut table = Csv::new(out, "file,line,statements,sliced,executed,name")?;
        for one in report.lines.iter().take(limit) {
            table.row(&[
                &one.source.file,
                &one.source.line,
                &one.statements,
                &one.sliced,
                &one.executed,
                &"",
            ])?;
        }
        let left = limit.saturating_sub(report.lines.len());
        for one in without_lines(report).into_iter().take(left) {
            let (sliced, executed) = one.most;
            table.row(&[&"", &"", &one.statements, &sliced, &executed, &one.function])?;
        }
        return table.finish();
    }
    let header = "function,name,op,offset,file,line,sliced,executed";
    let mut table = Csv::new(out, header)?;
    for one in report.statements.iter().take(limit) {
        table.row(&[
            &one.function.index,
            &one.function.name,
            &one.op,
            &one.offset,
            &known(one.source.as_ref().map(|at| &at.path)),
            &known(one.source.as_ref().map(|at| at.line)),
            &one.sliced,
            &one.executed,
        ])?;
    }
    table.finish()
}
