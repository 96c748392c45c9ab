//! Reports the contents of memory at a moment.

use std::io::Write;

use schemars::JsonSchema;
use serde::Serialize;

use crate::document::objects::{Function, digits};
use crate::document::{Document, NoRows, begin};
use crate::name::short_type;
use crate::number::{counted, grouped};
use crate::plain::plain;
use crate::render::Render;
use crate::state::WrittenSince;
use crate::table::{Paint, wrapped};
use crate::{PresentError, StepRow, Style};

/// The number of bytes on a line of a dump.
const LINE: usize = 16;

/// The contents of memory.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MemoryReport {
    /// The memory.
    pub memory: u32,
    /// The address of the first byte.
    pub address: u64,
    /// The size of the memory in bytes.
    pub size: u64,
    /// The time of the block that is about to begin, or is being executed; `null` for the end of
    /// the run.
    pub t: Option<u64>,
    /// The offset of the next operator in the original module, if the question named a place within
    /// a block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<u32>,
    /// The bytes, in hexadecimal.
    #[serde(serialize_with = "as_digits")]
    #[schemars(with = "String")]
    pub contents: Vec<u8>,
    /// Adjacent bytes with the same history.
    pub parts: Vec<MemoryPart>,
    /// The variable at this address, with `--var`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variable: Option<VariableThere>,
    /// The path of the recording, for commands.
    #[serde(skip)]
    pub file: String,
    /// The number of memories. If there is only one, the text form omits the memory's number.
    #[serde(skip)]
    pub memories: u32,
}

impl Document for MemoryReport {
    const NAME: &'static str = "memory";
    const COMMAND: &'static str = "memory";
    type Row = NoRows;
}

/// Adjacent bytes with the same history.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MemoryPart {
    /// The address of the first byte.
    pub address: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// The last write before the moment; `null` if there is none, absent if the search ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<Option<StepRow>>,
    /// The time before which the last write must have happened, if there was one. Present only if
    /// the search ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_before: Option<u64>,
    /// The next read after the moment; `null` if there is none, absent if the search ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_read: Option<Option<StepRow>>,
    /// The time after which the next read must happen, if there is one. Present only if the search
    /// ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_read_after: Option<u64>,
    /// The next write after the moment; `null` if there is none, absent if the search ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_written: Option<Option<StepRow>>,
    /// The time after which the next write must happen, if there is one. Present only if the search
    /// ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_written_after: Option<u64>,
}

/// A source variable in memory.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VariableThere {
    /// Its expression.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its value in C notation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Why it has no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// The last write to the variable's place since the call began. This write may have stored
    /// something other than the variable's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<WrittenSince>,
    /// The call during which the variable exists. Earlier and later accesses belong to other
    /// variables. Absent if the variable exists for the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallThere>,
}

/// The call during which a variable exists.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CallThere {
    /// The function.
    pub function: Function,
    /// The time of its first block.
    pub first_t: u64,
    /// The time of its last block.
    pub last_t: u64,
}

fn as_digits<S: serde::Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    digits(bytes).serialize(to)
}

impl VariableThere {
    /// Writes the name, place and value.
    ///
    /// # Errors
    /// Returns an error if `out` fails.
    pub fn head(&self, out: &mut dyn Write) -> std::io::Result<()> {
        write!(
            out,
            "{} ({})",
            plain(&self.name),
            plain(&short_type(&self.type_name))
        )?;
        match (&self.value, &self.unavailable) {
            (Some(value), _) => write!(out, " = {}", plain(value))?,
            (None, Some(why)) => write!(out, ": {}", plain(why))?,
            (None, None) => {}
        }
        if let Some(written) = &self.written {
            write!(out, "{}", written.text())?;
        }
        if let Some(CallThere {
            function,
            first_t,
            last_t,
        }) = &self.call
        {
            write!(
                out,
                ", in the call to {} from t={} to t={}",
                plain(&function.name),
                grouped(*first_t),
                grouped(*last_t)
            )?;
        }
        writeln!(out)
    }
}

impl Render for MemoryReport {
    const NAME: &'static str = "a report on memory";

    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError> {
        let when = match (self.t, self.before) {
            (Some(t), Some(offset)) => {
                format!("before @0x{offset:x}, in the block at t={}", grouped(t))
            }
            (Some(t), None) => format!("when t={} begins", grouped(t)),
            (None, _) => "at the end of the run".to_owned(),
        };
        if let Some(variable) = &self.variable {
            variable.head(out)?;
        }
        let size = counted(self.size, "byte");
        let head = format!("memory {} {when}: {size} in all", self.memory);
        writeln!(out, "{}", style.paint(Paint::Bold, &head))?;
        for (line, bytes) in (0u64..).zip(self.contents.chunks(LINE)) {
            let hex = bytes.iter().map(|byte| format!(" {byte:02x}"));
            let hex: String = hex.collect();
            let columns = 3 * LINE;
            let at = self.address + line * LINE as u64;
            writeln!(out, "{at:#010x} {hex:columns$}  {}", text_of(bytes))?;
        }
        // Show interpretations only without a variable, because its type gives the meaning of the
        // bytes.
        if self.variable.is_none() {
            for (name, value) in readings(&self.contents) {
                writeln!(out, "  as {name}: {value}")?;
            }
        }
        // Join adjacent parts with the same history, such as accesses outside the variable's call.
        let parts = self.parts.iter().map(|part| (part, self.history(part)));
        let parts = Vec::from_iter(parts);
        for alike in parts.chunk_by(|(_, one), (_, next)| one == next) {
            let (Some((first, history)), Some((end, _))) = (alike.first(), alike.last()) else {
                continue;
            };
            let last = end.address + (end.bytes - 1);
            let bytes = counted(last - first.address + 1, "byte");
            writeln!(out, "0x{:x}..0x{last:x}, {bytes}", first.address)?;
            for (name, step) in ["written", "next read", "next written"].iter().zip(history) {
                let line = format!("  {name:<12}  {step}");
                writeln!(out, "{}", wrapped(&line, style.width, 18))?;
            }
        }
        if self.is_cut() {
            let file = &self.file;
            writeln!(
                out,
                "to search the whole run, first build all values: afterimage build --lens full {file}"
            )?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        begin(out, self)
    }
}

impl MemoryReport {
    /// Whether a search did not cover the whole run.
    fn is_cut(&self) -> bool {
        let is_cut = |part: &MemoryPart| {
            [&part.written, &part.next_read, &part.next_written]
                .iter()
                .any(|step| step.is_none())
        };
        self.parts.iter().any(is_cut)
    }

    /// Describes the last write to some bytes, the next read and the next write.
    fn history(&self, part: &MemoryPart) -> [String; 3] {
        let unknown = |side: &str, time: Option<u64>| {
            let time = grouped(time.unwrap_or_default());
            format!("unknown: the run {side} t={time} was not searched")
        };
        let next = |step: &Option<Option<StepRow>>, after| match step {
            Some(step) => self.step(step.as_ref(), "never"),
            None => unknown("after", after),
        };
        let written = match &part.written {
            Some(step) => self.step(
                step.as_ref(),
                "never: it is the module's initial value, or zero",
            ),
            None => unknown("before", part.written_before),
        };
        [
            written,
            next(&part.next_read, part.next_read_after),
            next(&part.next_written, part.next_written_after),
        ]
    }

    /// Describes the effect of a step on the bytes, and whether the bytes belonged to the variable
    /// at that time.
    fn step(&self, step: Option<&StepRow>, never: &str) -> String {
        let call = self.variable.as_ref().and_then(|v| v.call.as_ref());
        let Some(step) = step else {
            return match call {
                None => never.to_owned(),
                Some(_) => "never".to_owned(),
            };
        };
        let text = format!("t={}  {}", grouped(step.t), step.sentence(self.memories));
        match call {
            Some(call) if step.t < call.first_t => {
                format!("not yet in this call; before the call: {text}")
            }
            Some(call) if step.t > call.last_t => "not again in this call".to_owned(),
            _ => text,
        }
    }
}

/// Returns the first bytes as numbers of different types, for each type with enough bytes.
fn readings(bytes: &[u8]) -> Vec<(&'static str, String)> {
    let mut readings = Vec::new();
    if let Some(four) = bytes.first_chunk::<4>() {
        let number = i32::from_le_bytes(*four);
        readings.push(("i32", format!("{number} (0x{number:x})")));
        readings.push(("f32", format!("{:?}", f32::from_le_bytes(*four))));
    }
    if let Some(eight) = bytes.first_chunk::<8>() {
        let number = i64::from_le_bytes(*eight);
        readings.push(("i64", format!("{number} (0x{number:x})")));
        readings.push(("f64", format!("{:?}", f64::from_le_bytes(*eight))));
    }
    readings
}

/// Formats bytes as text, with a dot for each unprintable byte.
fn text_of(bytes: &[u8]) -> String {
    let shown = |&byte: &u8| match byte {
        b' '..=b'~' => char::from(byte),
        _ => '.',
    };
    bytes.iter().map(shown).collect()
}
