//! Objects that are in several documents.

use afterimage_ids::FuncId;
use afterimage_program::{Location, Names};
use afterimage_replay::steps::{Range, Value};
use schemars::JsonSchema;
use serde::Serialize;

use crate::value::{bits_text, type_text, value_text};

/// A function of the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Function {
    /// Its index, imports first.
    pub index: u32,
    /// Its name, demangled, or `func[12]` if it has none.
    pub name: String,
}

impl Function {
    /// A function with its name.
    pub fn new(names: &Names, function: FuncId) -> Self {
        Self {
            index: function.as_u32(),
            name: names.function(function).to_owned(),
        }
    }
}

/// The function that an object is about, as two of the object's fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InFunction {
    /// The function's index, imports first.
    pub function: u32,
    /// The function's name, demangled, or `func[12]` if it has none.
    pub name: String,
}

impl InFunction {
    /// A function with its name.
    pub fn new(names: &Names, function: FuncId) -> Self {
        let Function { index, name } = Function::new(names, function);
        Self {
            function: index,
            name,
        }
    }
}

/// A position in the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Position {
    /// The path, as the debug information has it.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// From 1, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

impl Position {
    /// A line of a file.
    pub fn line(file: &str, line: u32) -> Self {
        Self {
            file: file.to_owned(),
            line,
            column: None,
        }
    }

    /// A place in a file.
    pub fn new(file: &str, at: Location) -> Self {
        Self {
            column: (at.column > 0).then_some(at.column),
            ..Self::line(file, at.line)
        }
    }
}

/// An operator of the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Instruction {
    /// Where it is.
    #[serde(flatten)]
    pub function: InFunction,
    /// Its name in the text format.
    pub operator: String,
    /// Where it is in the original module.
    pub offset: u32,
    /// Its line, if that is known.
    pub source: Option<Position>,
}

/// A value of WebAssembly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TypedValue {
    /// `i32`, `i64`, `f32`, `f64`, `v128` or `ref`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Its bits, as hexadecimal digits.
    pub bits: String,
    /// What it is, for a person.
    pub text: String,
}

impl From<&Value> for TypedValue {
    fn from(&Value { ty, bits }: &Value) -> Self {
        Self {
            kind: type_text(ty),
            bits: bits_text(ty, bits),
            text: value_text(ty, bits),
        }
    }
}

/// Bytes of a memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MemoryRange {
    /// Of which memory.
    pub memory: u32,
    /// From where on.
    pub address: u64,
    /// How many.
    pub bytes: u64,
}

impl From<Range> for MemoryRange {
    fn from(range: Range) -> Self {
        Self {
            memory: range.memory,
            address: range.address,
            bytes: range.length,
        }
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
