//! What the explorer's page asks besides the reports of commands: source with counts, what was printed and when, the executions of a place, the name of a moment.

use afterimage_profile::SourceLine;
use schemars::JsonSchema;
use serde::Serialize;

use crate::document::objects::{Function, Position, position};
use crate::document::{Document, NoRows};
use crate::slice::SliceLine;

/// The source files that the program's code comes from.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FilesDocument {
    /// The files, those with most executed instructions first.
    pub files: Vec<FilesEntry>,
}

impl Document for FilesDocument {
    const NAME: &'static str = "files";
    const COMMAND: &'static str = "GET files";
    type Row = NoRows;
}

/// A source file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FilesEntry {
    /// The path, as the debug information has it.
    pub file: String,
    /// As much of it as commands take.
    pub name: String,
    /// Whether it is a library's.
    pub library: bool,
    /// How many of its lines have code.
    pub lines: u64,
    /// How many of these were executed.
    pub executed: u64,
    /// Instructions executed that come from it.
    pub instructions: u64,
}

/// A source file, line by line, with counts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SourceDocument {
    /// The path, as the debug information has it.
    pub file: String,
    /// As much of it as commands take.
    pub name: String,
    /// Whether it is a library's.
    pub library: bool,
    /// Why there is no text; `null` if there is.
    pub missing: Option<String>,
    /// The functions that begin in it.
    pub functions: Vec<SourceFunction>,
    /// Its lines: all of them if the text is at hand, otherwise those with code.
    pub lines: Vec<SourceRow>,
    /// The stretch of the run that the counts are of; `null` for the whole run.
    pub range: Option<SourceRange>,
}

impl Document for SourceDocument {
    const NAME: &'static str = "source";
    const COMMAND: &'static str = "GET source";
    type Row = NoRows;
}

/// A stretch of a run.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct SourceRange {
    /// The time of its first block.
    pub first_t: u64,
    /// The time of its last block.
    pub last_t: u64,
}

/// A function that begins in a file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SourceFunction {
    /// The function.
    pub function: Function,
    /// The line.
    pub line: u32,
    /// How often it was called in the whole run.
    pub calls: u64,
}

/// A line of a file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SourceRow {
    /// Its number, from 1.
    pub line: u32,
    /// Its text.
    pub text: String,
    /// How often it was arrived at; `null` if it has no code.
    pub count: Option<u64>,
    /// Instructions executed that come from it.
    pub instructions: u64,
    /// Its branches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<SourceBranch>,
    /// Whether it was executed, but not in the stretch that was asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub elsewhere: bool,
}

/// A branch of a line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SourceBranch {
    /// Where it is in the original module.
    pub offset: u32,
    /// How often it was executed.
    pub count: u64,
    /// Its ways.
    pub ways: Vec<SourceWay>,
}

/// A way of a branch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SourceWay {
    /// Which one: `taken`, `not taken`, `then`, `else`, `table 3`. In a stretch, ways to the same place are one: `table 1, table 3`.
    pub kind: String,
    /// How often.
    pub count: u64,
}

/// What a program printed, and when.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputDocument {
    /// The calls that put something out to standard output or standard error, in order.
    pub writes: Vec<OutputWrite>,
    /// How many bytes were put out to each in the whole run.
    pub totals: OutputTotals,
    /// Whether all of it is told. If not, it is told up to the limit, or, of a run whose values are not built, as far as can be told soon.
    pub complete: bool,
}

impl Document for OutputDocument {
    const NAME: &'static str = "output";
    const COMMAND: &'static str = "GET output";
    type Row = NoRows;
}

/// How many bytes were printed.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct OutputTotals {
    /// To standard output.
    pub stdout: u64,
    /// To standard error.
    pub stderr: u64,
}

/// A call that put something out.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputWrite {
    /// `stdout` or `stderr`.
    pub stream: &'static str,
    /// Which call of the host, from 1.
    pub call: u64,
    /// The time of the block that ends with the call.
    pub t: u64,
    /// The number of its first byte, from 0, as `why --stdout` takes it.
    pub first: u64,
    /// The bytes, as hexadecimal digits.
    pub bytes: String,
}

/// What a byte of input influenced.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfluenceDocument {
    /// The byte, in words.
    pub about: String,
    /// Its value.
    pub value: u8,
    /// Where in memory 0 it was put.
    pub address: u64,
    /// The time of the block that ends with the call that read it.
    pub t: u64,
    /// Which call of the host, from 1.
    pub call: u64,
    /// The bytes of output that depend on it, in the order in which they were put out.
    pub outputs: Vec<InfluencedOutput>,
    /// How many statements depend on it.
    pub statements: u64,
    /// How many executions of these.
    pub executions: u64,
    /// The lines with such statements.
    pub lines: Vec<SliceLine>,
}

impl Document for InfluenceDocument {
    const NAME: &'static str = "influence";
    const COMMAND: &'static str = "GET influence";
    type Row = NoRows;
}

/// Bytes of output, one after the other.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfluencedOutput {
    /// `stdout` or `stderr`.
    pub stream: &'static str,
    /// Which call of the host, from 1.
    pub call: u64,
    /// The time of the block that ends with the call.
    pub t: u64,
    /// The number of the first byte, from 0, as `why --stdout` takes it.
    pub first: u64,
    /// How many they are.
    pub bytes: u64,
}

/// When a place was executed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExecutionsDocument {
    /// The place, as it was named.
    pub at: String,
    /// How often in the whole run.
    pub count: u64,
    /// The number of the first execution in the stretch that was asked for.
    pub first: u64,
    /// How many there are in it.
    pub within: u64,
    /// Executions in it: all, or as many as the limit allows, evenly spread by number.
    pub executions: Vec<ExecutionTime>,
    /// How many there were up to the moment that was asked for, its block included.
    pub by: Option<u64>,
}

impl Document for ExecutionsDocument {
    const NAME: &'static str = "executions";
    const COMMAND: &'static str = "GET executions";
    type Row = NoRows;
}

/// An execution.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ExecutionTime {
    /// Which, from 1.
    pub number: u64,
    /// Its time.
    pub t: u64,
}

/// A moment, and what it is called.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MomentDocument {
    /// As commands take it: the execution of an operator where that is known, otherwise the time.
    pub at: String,
    /// The time of its block.
    pub t: u64,
    /// How many blocks the run has.
    pub length: u64,
    /// The function that is executed.
    pub function: Function,
    /// The operator that is about to be executed, if it is within a block: where it is in the original module.
    pub offset: Option<u32>,
    /// Its line, if that is known.
    #[serde(serialize_with = "position")]
    #[schemars(with = "Option<Position>")]
    pub source: Option<SourceLine>,
    /// The line, as commands take it: `bank.c:42`.
    pub line: Option<String>,
    /// Which arrival at the line it is, or is after.
    pub arrival: Option<u64>,
    /// How many arrivals the line has.
    pub arrivals: Option<u64>,
    /// Whether it is right before the first operator of this arrival, so that `line#arrival` names the same moment.
    pub arrives: bool,
}

impl Document for MomentDocument {
    const NAME: &'static str = "moment";
    const COMMAND: &'static str = "GET moment";
    type Row = NoRows;
}
