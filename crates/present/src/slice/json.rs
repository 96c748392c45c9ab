//! Slices for programs.

use std::io::Write;

use afterimage_analyses::slices::SliceReport;
use schemars::JsonSchema;
use serde::Serialize;

use super::{SliceScene, without_lines};
use crate::PresentError;
use crate::csv::{Csv, known};
use crate::document::objects::{Function, Position};
use crate::document::{Document, NoRows, begin};
use crate::state::WrittenSince;

/// A dynamic slice.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SliceDocument {
    /// What is in it, in words.
    pub title: String,
    /// How many executions of statements are in it.
    pub executions: u64,
    /// Of how many lines the run executed something.
    pub executed_lines: usize,
    /// How many bytes of memory it depends on that were there before the run.
    pub initial_bytes: u64,
    /// If it is of a variable: what wrote to its place since the call began. It may be something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<WrittenSince>,
    /// The lines that are in it.
    pub lines: Vec<SliceLine>,
    /// The statements that are in it.
    pub statements: Vec<SliceStatement>,
}

impl Document for SliceDocument {
    const NAME: &'static str = "slice";
    const COMMAND: &'static str = "slice";
    type Row = NoRows;
}

/// A line of a slice.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SliceLine {
    /// Which.
    pub source: Position,
    /// How many of its operators are in the slice.
    pub statements: usize,
    /// The most executions that one of them has in the slice; with `--algorithm edges` and `nodes` all count.
    pub sliced: u64,
    /// How often that one was executed.
    pub executed: u64,
    /// The slice begins there.
    pub criterion: bool,
}

/// A statement of a slice.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SliceStatement {
    /// Where it is.
    pub function: Function,
    /// The operator's number in the body.
    pub op: u32,
    /// Where it is in the original module.
    pub offset: u32,
    /// Its line, if that is known.
    pub source: Option<Position>,
    /// How many executions are in the slice; with `--algorithm edges` and `nodes` all count.
    pub sliced: u64,
    /// How often it was executed.
    pub executed: u64,
}

impl SliceDocument {
    fn new(report: &SliceReport, scene: &SliceScene<'_>) -> Self {
        let lines = report.lines.iter().map(|one| SliceLine {
            source: Position::line(scene.file(one.line), one.line.number),
            statements: one.operators,
            sliced: one.sliced,
            executed: one.executed,
            criterion: scene.begins(one.line),
        });
        let statements = report.operators.iter().map(|one| SliceStatement {
            function: Function::new(scene.names, one.function),
            op: one.op.as_u32(),
            offset: one.offset.0,
            source: one
                .line
                .map(|line| Position::line(scene.file(line), line.number)),
            sliced: one.sliced,
            executed: one.executed,
        });
        Self {
            title: scene.title.to_owned(),
            executions: report.executions,
            executed_lines: report.executed_lines,
            initial_bytes: report.initial,
            written: scene.written.map(WrittenSince::from),
            lines: lines.collect(),
            statements: statements.collect(),
        }
    }
}

/// Writes a slice as one JSON document.
///
/// # Errors
/// If `out` fails.
pub fn slice_json(
    out: &mut dyn Write,
    report: &SliceReport,
    scene: &SliceScene<'_>,
) -> Result<(), PresentError> {
    begin(out, &SliceDocument::new(report, scene))
}

/// Writes the lines of a slice, or its statements, as comma-separated values. Behind the lines each function with statements of no known line has a row.
///
/// # Errors
/// If `out` fails.
pub fn slice_csv(
    out: &mut dyn Write,
    report: &SliceReport,
    scene: &SliceScene<'_>,
    by_line: bool,
) -> Result<(), PresentError> {
    if by_line {
        let mut table = Csv::new(out, "file,line,statements,sliced,executed,name")?;
        for one in &report.lines {
            let (file, line) = (scene.file(one.line), one.line.number);
            table.row(&[
                &file,
                &line,
                &one.operators,
                &one.sliced,
                &one.executed,
                &"",
            ])?;
        }
        for one in without_lines(report) {
            let (sliced, executed) = one.most;
            let name = scene.names.function(one.function);
            table.row(&[&"", &"", &one.statements, &sliced, &executed, &name])?;
        }
        return table.finish();
    }
    let header = "function,name,op,offset,file,line,sliced,executed";
    let mut table = Csv::new(out, header)?;
    for one in &report.operators {
        table.row(&[
            &one.function.as_u32(),
            &scene.names.function(one.function),
            &one.op.as_u32(),
            &one.offset.0,
            &known(one.line.map(|line| scene.file(line))),
            &known(one.line.map(|line| line.number)),
            &one.sliced,
            &one.executed,
        ])?;
    }
    table.finish()
}
