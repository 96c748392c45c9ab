//! Defines the explorer's documents that no command writes: source with counts, the executions of a
//! place, and the name of a moment.

use std::collections::BTreeMap;

use afterimage_profile::SourceLine;
use schemars::JsonSchema;
use serde::Serialize;

use crate::document::objects::{Function, Position, position};
use crate::document::{Document, NoRows};
use crate::name::short_function;
use crate::slice::SliceLine;

/// The source files that the program's code comes from.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FilesDocument {
    /// The files, the most executed instructions first.
    pub files: Vec<FilesEntry>,
    /// The range of time that the counts cover. It is null for the whole run.
    pub range: Option<SourceRange>,
}

impl Document for FilesDocument {
    const NAME: &'static str = "files";
    const COMMAND: &'static str = "GET files";
    type Row = NoRows;
}

/// A source file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FilesEntry {
    /// The path, as in the debug information.
    pub file: String,
    /// The part of the path that commands accept.
    pub name: String,
    /// Whether it belongs to a library.
    pub library: bool,
    /// The number of its lines with code.
    pub lines: u64,
    /// The number of its executed lines.
    pub executed: u64,
    /// The number of executed instructions that come from it.
    pub instructions: u64,
}

/// The short forms of function names, and the places that call the host.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NamesDocument {
    /// Maps each name that has a short form to this form. A short form omits the types of
    /// parameters, versions of libraries and default arguments of templates. Inlined functions are
    /// included.
    pub names: BTreeMap<String, String>,
    /// The imported functions that the program calls directly.
    pub imports: Vec<ImportCalls>,
}

/// An imported function, and the places that call it directly.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ImportCalls {
    /// The name of the imported module.
    pub module: String,
    /// The name of the function in it.
    pub name: String,
    /// The offsets of the calls in the original module.
    pub calls: Vec<u32>,
}

impl NamesDocument {
    /// Creates the document from the names of functions.
    pub fn new(names: impl IntoIterator<Item = String>, imports: Vec<ImportCalls>) -> Self {
        let short = names.into_iter().map(|name| {
            let short = short_function(&name);
            (name, short)
        });
        Self {
            names: short.filter(|(name, short)| name != short).collect(),
            imports,
        }
    }
}

impl Document for NamesDocument {
    const NAME: &'static str = "names";
    const COMMAND: &'static str = "GET names";
    type Row = NoRows;
}

/// A source file, line by line, with counts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SourceDocument {
    /// The path, as in the debug information.
    pub file: String,
    /// The part of the path that commands accept.
    pub name: String,
    /// Whether it belongs to a library.
    pub library: bool,
    /// Why there is no text; `null` if the text is available.
    pub missing: Option<String>,
    /// The functions that begin in this file.
    pub functions: Vec<SourceFunction>,
    /// Its lines: all lines if the text is available, otherwise the lines with code.
    pub lines: Vec<SourceRow>,
    /// The stretch of the run that the counts cover; `null` for the whole run.
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
    /// The number of calls in the whole run.
    pub calls: u64,
}

/// A line of a file.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SourceRow {
    /// Its number, from 1.
    pub line: u32,
    /// Its text.
    pub text: String,
    /// The number of arrivals; `null` if the line has no code.
    pub count: Option<u64>,
    /// The number of executed instructions that come from it.
    pub instructions: u64,
    /// Its branches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<SourceBranch>,
    /// Whether the line was executed, but not in the requested stretch.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub elsewhere: bool,
}

/// A branch of a line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SourceBranch {
    /// Its offset in the original module.
    pub offset: u32,
    /// The number of executions.
    pub count: u64,
    /// Its directions.
    pub ways: Vec<SourceWay>,
}

/// A direction of a branch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SourceWay {
    /// Its name: `taken`, `not taken`, `then`, `else`, `table 3`. In a stretch, directions to the
    /// same place are combined: `table 1, table 3`.
    pub kind: String,
    /// The number of executions that took this direction.
    pub count: u64,
}

/// A function's control flow in a stretch of the run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FlowDocument {
    /// The function.
    pub function: Function,
    /// The stretch.
    pub range: SourceRange,
    /// The function's blocks.
    pub blocks: Vec<FlowBlock>,
    /// The function's edges, as `cfg` lists them.
    pub edges: Vec<FlowEdge>,
    /// The number of calls that begin in the stretch.
    pub calls: u64,
    /// The paths of the calls that begin in the stretch, from beginning to end, the most frequent
    /// first; `null` if there are too many calls to examine.
    pub traces: Option<Vec<FlowTrace>>,
    /// The maximum number of calls for which paths are listed.
    pub most: u64,
}

impl Document for FlowDocument {
    const NAME: &'static str = "flow";
    const COMMAND: &'static str = "GET flow";
    type Row = NoRows;
}

/// A block of a function.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct FlowBlock {
    /// Its number in the function.
    pub block: u32,
    /// The number of executions.
    pub count: u64,
}

/// The edges from one block to another.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FlowEdge {
    /// The numbers of the edges. Edges with the same two ends are counted together.
    pub edges: Vec<u32>,
    /// The block that the edges leave.
    pub from: u32,
    /// The block that the edges enter.
    pub to: u32,
    /// The number of executions of `from` in the stretch after which control took one of these
    /// edges. An edge that leaves a call counts only if the call also returned in the stretch.
    pub count: u64,
}

/// A path through a function.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FlowTrace {
    /// Its number in the answer of `paths`.
    pub trace: u64,
    /// The number of calls in the stretch that took the path.
    pub calls: u64,
    /// The number of calls in the stretch that took the path and never returned.
    pub unfinished: u64,
    /// The number of its blocks.
    pub length: u64,
    /// Its first blocks, at most 64.
    pub beginning: Vec<u32>,
}

/// The influence of an input byte.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfluenceDocument {
    /// The byte, in words.
    pub about: String,
    /// Whether only values were followed, without control dependences or the computation of
    /// addresses.
    pub thin: bool,
    /// The byte's value.
    pub value: u8,
    /// The byte's address in memory 0.
    pub address: u64,
    /// The time of the block that ends with the call that read the byte.
    pub t: u64,
    /// The number of the host call, from 1.
    pub call: u64,
    /// The bytes of output that depend on the byte, in order of output.
    pub outputs: Vec<InfluencedOutput>,
    /// The number of statements that depend on the byte.
    pub statements: u64,
    /// The number of executions of statements that depend on the byte.
    pub executions: u64,
    /// The lines with statements that depend on the byte.
    pub lines: Vec<SliceLine>,
}

impl Document for InfluenceDocument {
    const NAME: &'static str = "influence";
    const COMMAND: &'static str = "GET influence";
    type Row = NoRows;
}

/// Consecutive bytes of output.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfluencedOutput {
    /// `stdout` or `stderr`.
    pub stream: &'static str,
    /// The number of the host call, from 1.
    pub call: u64,
    /// The time of the block that ends with the call.
    pub t: u64,
    /// The number of the first byte, from 0, in the form that `why --stdout` takes.
    pub first: u64,
    /// The number of bytes.
    pub bytes: u64,
}

/// The executions of a place.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExecutionsDocument {
    /// The place, as the question named it.
    pub at: String,
    /// The number of executions in the whole run.
    pub count: u64,
    /// The number of the first execution in the requested stretch.
    pub first: u64,
    /// The number of executions in the stretch.
    pub within: u64,
    /// Executions in the stretch: all, or a selection up to the limit, evenly spread by number.
    pub executions: Vec<ExecutionTime>,
    /// The number of executions up to the requested moment, including the moment's block.
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
    /// Its number, from 1.
    pub number: u64,
    /// Its time.
    pub t: u64,
}

/// A moment and its name.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MomentDocument {
    /// The moment's name for commands: the execution of an operator if known, otherwise the time.
    pub at: String,
    /// The time of its block.
    pub t: u64,
    /// The number of blocks in the run.
    pub length: u64,
    /// The function that is executed.
    pub function: Function,
    /// The offset in the original module of the operator about to be executed, for a moment within
    /// a block.
    pub offset: Option<u32>,
    /// Its line, if known.
    #[serde(serialize_with = "position")]
    #[schemars(with = "Option<Position>")]
    pub source: Option<SourceLine>,
    /// For a moment in inlined library code, the line of the user's own code that called this code.
    #[serde(serialize_with = "position")]
    #[schemars(with = "Option<Position>")]
    pub around: Option<SourceLine>,
    /// The line, as commands take it: `bank.c:42`.
    pub line: Option<String>,
    /// The number of the latest arrival at the line, up to the moment.
    pub arrival: Option<u64>,
    /// The number of arrivals at the line.
    pub arrivals: Option<u64>,
    /// Whether the moment is right before the first operator of the latest arrival, so that
    /// `line#arrival` names the same moment.
    pub arrives: bool,
}

impl Document for MomentDocument {
    const NAME: &'static str = "moment";
    const COMMAND: &'static str = "GET moment";
    type Row = NoRows;
}

/// The moment to which a move leads, by lines or by writes to a variable.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StepDocument {
    /// The moment. It is null if the move would leave the run, or if the variable is not written.
    pub moment: Option<MomentDocument>,
}

impl Document for StepDocument {
    const NAME: &'static str = "step";
    const COMMAND: &'static str = "GET step";
    type Row = NoRows;
}
