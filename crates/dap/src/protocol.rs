//! Defines the messages of the [Debug Adapter
//! Protocol](https://microsoft.github.io/debug-adapter-protocol), with the fields that this server
//! uses.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A request.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Request {
    pub seq: u64,
    #[serde(rename = "type")]
    pub kind: String,
    pub command: String,
    #[serde(default)]
    pub arguments: Value,
}

impl Request {
    /// Creates a request that represents a message of another kind, so that the message gets an
    /// answer.
    pub(crate) fn answered(seq: u64, command: String) -> Self {
        Self {
            seq,
            kind: "request".to_owned(),
            command,
            arguments: Value::Null,
        }
    }
}

/// The client's configuration of `launch` and `attach`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Launch {
    /// A recording.
    pub recording: Option<String>,
    /// A program to record first.
    pub program: Option<String>,
    /// The program's arguments.
    pub args: Vec<String>,
    /// The folder for relative paths.
    pub cwd: Option<String>,
    /// Folders that the program may read and write: `HOST` or `HOST::GUEST`.
    pub dirs: Vec<String>,
    /// The program's environment variables: `NAME=VALUE`, or `NAME` for the value in the server's
    /// environment.
    pub env: Vec<String>,
    /// A file that the program reads as its standard input; the default is no input.
    pub stdin: Option<String>,
    /// An exported function that is called in place of `_start`.
    pub invoke: Option<String>,
    /// The time in seconds after which the program is ended.
    pub timeout: Option<u64>,
    /// The path for the new recording. Without a path, the recording is removed when the client
    /// leaves.
    pub output: Option<String>,
    /// Whether to overwrite an existing file at `output`.
    pub force: bool,
    /// The code to show: `mine`, `all`, or a glob of files.
    pub code: Option<String>,
    /// The places to search for sources: `OLD=NEW`, or a folder.
    pub source_path: Vec<String>,
    /// Whether to stop at the beginning of the run.
    pub stop_on_entry: bool,
    /// The moment to go to first: `parse#3`, `end`, `50%`.
    pub goto: Option<String>,
    /// Whether to show each library frame separately.
    pub library_frames: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Initialize {
    pub lines_start_at1: Option<bool>,
    pub columns_start_at1: Option<bool>,
    pub path_format: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Source {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_reference: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presentation_hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SetBreakpoints {
    pub source: Source,
    pub breakpoints: Vec<Wanted>,
    pub lines: Option<Vec<i64>>,
}

/// A breakpoint of any kind, as requested.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Wanted {
    pub line: i64,
    pub name: String,
    pub data_id: String,
    pub access_type: Option<String>,
    pub instruction_reference: String,
    pub offset: i64,
    pub condition: Option<String>,
    pub hit_condition: Option<String>,
    pub log_message: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SetOthers {
    pub breakpoints: Vec<Wanted>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SetExceptions {
    pub filters: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Breakpoint {
    pub id: u64,
    pub verified: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction_reference: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Locations {
    pub source: Source,
    pub line: i64,
    pub end_line: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DataInfo {
    pub variables_reference: u64,
    pub frame_id: Option<u64>,
    pub name: String,
    pub bytes: Option<i64>,
    pub as_address: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct StackTrace {
    pub start_frame: Option<i64>,
    pub levels: Option<i64>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Frame {
    pub id: u64,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    pub line: i64,
    pub column: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction_pointer_reference: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presentation_hint: Option<&'static str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct OfFrame {
    pub frame_id: u64,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Scope {
    pub name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presentation_hint: Option<&'static str>,
    pub variables_reference: u64,
    pub expensive: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct OfVariables {
    pub variables_reference: u64,
    pub filter: Option<String>,
    pub start: Option<i64>,
    pub count: Option<i64>,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Variable {
    pub name: String,
    pub value: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluate_name: Option<String>,
    pub variables_reference: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub named_variables: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indexed_variables: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_reference: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presentation_hint: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Evaluate {
    pub expression: String,
    pub frame_id: Option<u64>,
    pub context: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ReadMemory {
    pub memory_reference: String,
    pub offset: i64,
    pub count: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Disassemble {
    pub memory_reference: String,
    pub offset: i64,
    pub instruction_offset: i64,
    pub instruction_count: i64,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Instruction {
    pub address: String,
    pub instruction: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Source>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presentation_hint: Option<&'static str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct GotoTargets {
    pub source: Source,
    pub line: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Goto {
    pub target_id: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Stepping {
    pub granularity: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SourceText {
    pub source_reference: u64,
    pub source: Source,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Origins {
    pub expression: String,
    pub steps: Option<u64>,
}
