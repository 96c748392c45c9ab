//! Writes reports of counts as JSON.

use std::io::Write;

use afterimage_ids::FuncId;
use afterimage_profile::{
    BlockRow, EdgeRow, FunctionRow, InlinedRow, InstructionRow, LineRow, Profile, Report, Rows,
    Sort, Totals,
};
use afterimage_program::Location;
use schemars::JsonSchema;
use serde::Serialize;

use crate::PresentError;
use crate::document::objects::{Function, Position};
use crate::document::{Document, Lazy, NoRows, begin};
use crate::explore::SourceRange;

/// Exact counts. Without `--limit`, all rows are included, even rows of code that never ran.
///
/// The execution of an instruction of line L is an *arrival* at L in three cases. First, the
/// previous instruction of the same activation belongs to a different line or to no line, or does
/// not exist. Second, control went around a loop that can iterate without leaving L. Third, control
/// came through a vertex that executes nothing. A taken edge counts as an arrival even if the run
/// stopped right before the next instruction.
///
/// A jump on a line with other code in the function is an instruction of the line, but not an
/// arrival. If a line has only jumps (`break;`, `goto end;`), executing one is an arrival. However,
/// a jump back to code of a later line belongs to the code before the jump, as at the end of a loop
/// without a condition (`while (1) {`). A line with only such jumps has no code.
///
/// Some instructions, such as those that a compiler merged or invented, have no debug information.
/// Such an instruction belongs to the line of the last earlier instruction with a line, if every
/// path to it agrees on that line. Otherwise it belongs to no line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProfileDocument<R = Vec<ProfileRow>> {
    /// The kind of rows: `function`, `line`, `block`, `edge` or `instruction`.
    pub by: &'static str,
    /// The order of the rows: `instructions`, `count`, `name` or `program`. Ties are in program
    /// order.
    pub sort: &'static str,
    /// The totals of the whole program, even if the rows cover only a part.
    pub totals: ProfileTotals,
    /// The number of rows without `--limit`.
    pub available: usize,
    /// Whether `rows` and `inlined` contain all rows that are available without `--limit`.
    pub complete: bool,
    /// The reason why the counts are not exact. Absent if they are exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The rows.
    pub rows: R,
    /// The functions that the compiler inlined and whose code was executed. Present only for
    /// `function`. The functions with the most instructions come first, unless `sort` is `name`.
    /// `--limit` also applies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inlined: Vec<ProfileInlined>,
}

/// A function that the compiler inlined. Its inlined calls cannot be counted, because the optimiser
/// merges and moves their instructions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProfileInlined {
    /// The name.
    pub name: String,
    /// The number of instructions executed in its inlined code, excluding callees. These
    /// instructions also count for the function that contains them, and for the inlined functions
    /// that enclose them.
    pub instructions: u64,
    /// The functions that contain its inlined code.
    pub into: Vec<Function>,
    /// The line of its declaration or, if unknown, a line of its code.
    pub source: Option<Position>,
}

impl<R: Serialize> Document for ProfileDocument<R> {
    const NAME: &'static str = "profile";
    const COMMAND: &'static str = "profile";
    type Row = NoRows;
}

/// The totals of the whole program.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProfileTotals {
    /// The range that was counted. Absent if the whole run was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<SourceRange>,
    /// The number of runs that were added up. Absent for a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<u64>,
    /// The number of executed instructions: operators without the markers `block`, `loop`,
    /// `try_table`, `else`, `end`.
    pub instructions: u64,
    /// The number of executed basic blocks. The empty root of a function that begins with a loop
    /// counts as a block.
    pub blocks: u64,
    /// The number of activations of functions that the module defines.
    pub entries: u64,
    /// The number of functions that the module defines.
    pub functions: u64,
    /// The number of functions of the module that were entered or executed a block.
    pub executed_functions: u64,
    /// The number of activations that were open when the run ended.
    pub open: u64,
}

/// A row; its kind depends on `by`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ProfileRow {
    /// A row for `block`. The program order is by function and block.
    Block(ProfileBlock),
    /// A row for `edge`. The program order is by function and edge.
    Edge(ProfileEdge),
    /// A row for `instruction`. The program order is by function and operator.
    Instruction(ProfileInstruction),
    /// A row for `function`. The program order is the order of the module.
    Function(ProfileFunction),
    /// A row for `line`. The program order is by file and line.
    Line(ProfileLine),
}

/// A block. A block that trapped counts as executed, but its instructions after the trap do not.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProfileBlock {
    /// Its function.
    pub function: Function,
    /// Its number.
    pub block: u32,
    /// The kind of its end: `fall`, `jump`, `branch`, `table`, `call func7`, `tail call func7`,
    /// `call table0 type3`, `return`, `throw` or `unreachable`.
    pub end: String,
    /// Its first operator.
    pub op: u32,
    /// Its offset in the original module.
    pub offset: u32,
    /// The number of executions.
    pub count: u64,
    /// The number of instructions executed in it.
    pub instructions: u64,
    /// Its line, if known.
    pub source: Option<Position>,
}

/// An edge.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProfileEdge {
    /// Its function.
    pub function: Function,
    /// Its number.
    pub edge: u32,
    /// The source block.
    pub from: u32,
    /// The target block.
    pub to: u32,
    /// `fall`, `jump`, `taken`, `not taken`, `then`, `else`, `table 2` (by label depth), `call
    /// return`, `call throw`, `throw`, `catch 0` (by clause), `unwind` or `return`.
    pub kind: String,
    /// Whether it is a branch back to a loop's header.
    pub back: bool,
    /// The offset of the operator that transfers control.
    pub offset: Option<u32>,
    /// The number of times it was taken.
    pub count: u64,
    /// The line of that operator.
    pub source: Option<Position>,
}

/// An instruction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProfileInstruction {
    /// Its function.
    pub function: Function,
    /// Its block; `null` in unreachable code.
    pub block: Option<u32>,
    /// Its position in the body.
    pub op: u32,
    /// Its offset in the original module.
    pub offset: u32,
    /// Its text in the WebAssembly text format.
    pub text: String,
    /// The number of executions.
    pub count: u64,
    /// Its line, if known.
    pub source: Option<Position>,
}

/// A function.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProfileFunction {
    /// The function.
    pub function: NamedFunction,
    /// The offset of its body in the original module.
    pub offset: u32,
    /// The number of its activations.
    pub entries: u64,
    /// The number of blocks executed in it, without callees.
    pub blocks: u64,
    /// The number of instructions executed in it.
    pub instructions: u64,
    /// The position of its declaration or, if this is unknown, of its first instruction with a
    /// position.
    pub source: Option<Position>,
}

/// A function of the module, with its name in the module.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NamedFunction {
    /// The function.
    #[serde(flatten)]
    pub function: Function,
    /// Its name as stored in the module.
    pub raw_name: Option<String>,
}

/// A line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProfileLine {
    /// The number of arrivals at the line, summed over all copies of its code.
    pub count: u64,
    /// The number of executed instructions that come from it.
    pub instructions: u64,
    /// The number in `instructions`, plus executed instructions of library code that was inlined
    /// into the line or called from it. Present only if `--code` or `--path` selects part of the
    /// code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with_library: Option<u64>,
    /// The line.
    pub source: Position,
}

/// Writes a report as one JSON document, a row at a time. `note` warns the reader of counts that
/// are not exact.
///
/// # Errors
/// Returns an error if `out` fails.
pub fn json(
    out: &mut dyn Write,
    profile: &Profile<'_>,
    report: &Report,
    note: Option<&str>,
) -> Result<(), PresentError> {
    let make = RowBuilder(profile);
    let Report { rows, .. } = report;
    match rows {
        Rows::Functions(rows) => {
            let rows = rows.iter().map(|row| make.function(row));
            make.write(out, report, note, "function", rows)
        }
        Rows::Lines(rows) => make.write(
            out,
            report,
            note,
            "line",
            rows.iter().map(|row| make.line(row)),
        ),
        Rows::Blocks(rows) => {
            let rows = rows.iter().map(|row| make.block(row));
            make.write(out, report, note, "block", rows)
        }
        Rows::Edges(rows) => make.write(
            out,
            report,
            note,
            "edge",
            rows.iter().map(|row| make.edge(row)),
        ),
        Rows::Instructions(rows) => {
            let rows = rows.iter().map(|row| make.instruction(row));
            make.write(out, report, note, "instruction", rows)
        }
    }
}

/// Returns the same document with all its rows in memory.
pub fn profile_document(
    profile: &Profile<'_>,
    report: &Report,
    note: Option<&str>,
) -> ProfileDocument {
    let make = RowBuilder(profile);
    match &report.rows {
        Rows::Functions(rows) => {
            let rows = rows.iter().map(|row| make.function(row));
            make.document(report, note, "function", rows.collect())
        }
        Rows::Lines(rows) => {
            let rows = rows.iter().map(|row| make.line(row));
            make.document(report, note, "line", rows.collect())
        }
        Rows::Blocks(rows) => {
            let rows = rows.iter().map(|row| make.block(row));
            make.document(report, note, "block", rows.collect())
        }
        Rows::Edges(rows) => {
            let rows = rows.iter().map(|row| make.edge(row));
            make.document(report, note, "edge", rows.collect())
        }
        Rows::Instructions(rows) => {
            let rows = rows.iter().map(|row| make.instruction(row));
            make.document(report, note, "instruction", rows.collect())
        }
    }
}

impl RowBuilder<'_> {
    fn write(
        &self,
        out: &mut dyn Write,
        report: &Report,
        note: Option<&str>,
        by: &'static str,
        rows: impl Iterator<Item = ProfileRow> + Clone,
    ) -> Result<(), PresentError> {
        begin(out, &self.document(report, note, by, Lazy(rows)))
    }

    fn document<R>(
        &self,
        report: &Report,
        note: Option<&str>,
        by: &'static str,
        rows: R,
    ) -> ProfileDocument<R> {
        let all = report.available + report.inlined_available;
        ProfileDocument {
            by,
            sort: match report.sort {
                Sort::Instructions => "instructions",
                Sort::Count => "count",
                Sort::Name => "name",
                Sort::Program => "program",
            },
            totals: ProfileTotals::of(report.totals),
            available: report.available,
            complete: all <= report.rows.len() + report.inlined.len(),
            note: note.map(str::to_owned),
            rows,
            inlined: report.inlined.iter().map(|row| self.inlined(row)).collect(),
        }
    }

    fn inlined(&self, row: &InlinedRow) -> ProfileInlined {
        ProfileInlined {
            name: row.name.clone(),
            instructions: row.instructions,
            into: row.into.iter().map(|&into| self.named(into)).collect(),
            source: self.source(row.position),
        }
    }
}

impl ProfileTotals {
    pub(crate) fn of(totals: Totals) -> Self {
        Self {
            range: totals
                .range
                .map(|(first_t, last_t)| SourceRange { first_t, last_t }),
            runs: Some(totals.runs).filter(|&runs| runs > 1),
            instructions: totals.instructions,
            blocks: totals.blocks,
            entries: totals.entries,
            functions: totals.functions,
            executed_functions: totals.executed_functions,
            open: totals.open,
        }
    }
}

/// Makes the rows of the document.
struct RowBuilder<'p>(&'p Profile<'p>);

impl RowBuilder<'_> {
    fn function(&self, row: &FunctionRow) -> ProfileRow {
        let raw_name = self.0.names().raw(row.function);
        ProfileRow::Function(ProfileFunction {
            function: NamedFunction {
                function: self.named(row.function),
                raw_name: raw_name.map(str::to_owned),
            },
            offset: row.offset.0,
            entries: row.entries,
            blocks: row.blocks,
            instructions: row.instructions,
            source: self.source(row.position),
        })
    }

    fn line(&self, row: &LineRow) -> ProfileRow {
        ProfileRow::Line(ProfileLine {
            source: Position::line(self.0.file(row.line.file), row.line.number),
            count: row.count,
            instructions: row.instructions,
            with_library: row.with_library,
        })
    }

    fn block(&self, row: &BlockRow) -> ProfileRow {
        ProfileRow::Block(ProfileBlock {
            function: self.named(row.function),
            block: row.block.as_u32(),
            end: row.end.to_string(),
            op: row.op.as_u32(),
            offset: row.offset.0,
            count: row.count,
            instructions: row.instructions,
            source: self.source(row.position),
        })
    }

    fn edge(&self, row: &EdgeRow) -> ProfileRow {
        ProfileRow::Edge(ProfileEdge {
            function: self.named(row.function),
            edge: row.edge.as_u32(),
            from: row.from.as_u32(),
            to: row.to.as_u32(),
            kind: row.kind.to_string(),
            back: row.back,
            offset: row.offset.map(|offset| offset.0),
            count: row.count,
            source: self.source(row.position),
        })
    }

    fn instruction(&self, row: &InstructionRow) -> ProfileRow {
        ProfileRow::Instruction(ProfileInstruction {
            function: self.named(row.function),
            block: row.block.map(|block| block.as_u32()),
            op: row.op.as_u32(),
            offset: row.offset.0,
            text: row.text.to_string(),
            count: row.count,
            source: self.source(row.position),
        })
    }

    fn named(&self, function: FuncId) -> Function {
        Function::new(self.0.names(), function)
    }

    fn source(&self, position: Option<Location>) -> Option<Position> {
        position.map(|at| Position::new(self.0.file(at.file), at))
    }
}
