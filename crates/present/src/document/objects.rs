//! Defines objects that occur in several documents.

use afterimage_ids::FuncId;
use afterimage_profile::SourceLine;
use afterimage_program::{Location, Names};
use afterimage_replay::steps::{Range, Value};
use afterimage_replay::values::Bits;
use schemars::JsonSchema;
use serde::Serialize;
use wasmparser::ValType;

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
    /// Creates a function with its name.
    pub fn new(names: &Names, function: FuncId) -> Self {
        Self {
            index: function.as_u32(),
            name: names.function(function).to_owned(),
        }
    }
}

/// A position in the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Position {
    /// The path, as in the debug information.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

impl Position {
    /// Creates the position of a line of a file.
    pub fn line(file: &str, line: u32) -> Self {
        Self {
            file: file.to_owned(),
            line,
            column: None,
        }
    }

    /// Creates a position in a file.
    pub fn new(file: &str, at: Location) -> Self {
        Self {
            column: (at.column > 0).then_some(at.column),
            ..Self::line(file, at.line)
        }
    }
}

impl From<&SourceLine> for Position {
    fn from(line: &SourceLine) -> Self {
        Self {
            column: (line.column > 0).then_some(line.column),
            ..Self::line(&line.path, line.line)
        }
    }
}

/// Writes a line as a [`Position`].
pub(crate) fn position<S: serde::Serializer>(
    line: &Option<SourceLine>,
    to: S,
) -> Result<S::Ok, S::Error> {
    line.as_ref().map(Position::from).serialize(to)
}

/// An operator of the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Instruction {
    /// Its function.
    pub function: Function,
    /// Its name in the text format.
    pub operator: String,
    /// Its offset in the original module.
    pub offset: u32,
    /// Its line, if known.
    pub source: Option<Position>,
}

/// A value of WebAssembly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TypedValue {
    /// `i32`, `i64`, `f32`, `f64`, `v128` or `ref`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Its exact bits, in hexadecimal.
    pub bits: String,
    /// The value as a number. Integers are signed. Absent if a double cannot represent the value
    /// exactly: for integers beyond 2^53, infinities, NaN, vectors and references.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_number: Option<Number>,
    /// Its text, for a person.
    pub text: String,
}

/// A number that a double represents exactly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Number {
    /// A value of an integer type.
    Integer(i64),
    /// A value of a floating-point type.
    Float(f64),
}

impl Eq for Number {}

impl Number {
    fn new(ty: ValType, (low, _): Bits) -> Option<Self> {
        let integer =
            |value: i64| (value.unsigned_abs() <= 1 << 53).then_some(Self::Integer(value));
        let float = |value: f64| value.is_finite().then_some(Self::Float(value));
        match ty {
            ValType::I32 => integer(i64::from(low as i32)),
            ValType::I64 => integer(low as i64),
            ValType::F32 => float(f64::from(f32::from_bits(low as u32))),
            ValType::F64 => float(f64::from_bits(low)),
            ValType::V128 | ValType::Ref(_) => None,
        }
    }
}

impl TypedValue {
    /// Creates a value.
    pub fn new(ty: ValType, bits: Bits) -> Self {
        Self {
            kind: type_text(ty),
            bits: bits_text(ty, bits),
            as_number: Number::new(ty, bits),
            text: value_text(ty, bits),
        }
    }
}

impl From<&Value> for TypedValue {
    fn from(value: &Value) -> Self {
        Self::new(value.ty, value.bits)
    }
}

/// Bytes of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MemoryRange {
    /// The memory.
    pub memory: u32,
    /// The address of the first byte.
    pub address: u64,
    /// The number of bytes.
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

impl From<MemoryRange> for Range {
    fn from(range: MemoryRange) -> Self {
        Self {
            memory: range.memory,
            address: range.address,
            length: range.bytes,
        }
    }
}

/// Formats bytes in hexadecimal.
pub(crate) fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
