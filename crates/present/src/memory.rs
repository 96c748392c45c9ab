//! What memory held at a time.

use std::io::Write;

use afterimage_ids::OrigOffset;
use afterimage_replay::paths::Window;
use afterimage_replay::state::Written;
use afterimage_replay::steps::{At, MemoryAnswer, Step};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Style;
use crate::document::objects::{Function, digits};
use crate::document::{Document, NoRows, begin};
use crate::number::{counted, grouped};
use crate::render::Render;
use crate::state::{WrittenSince, written_text};
use crate::steps::{StepScene, entry, step_text};
use crate::table::Paint;
use crate::{PresentError, StepRow};

/// Bytes on a line of a dump.
const LINE: usize = 16;

/// Which bytes are asked about, and when.
#[derive(Clone, Debug)]
pub struct MemoryPlace {
    /// Of which memory.
    pub memory: u32,
    /// From where on.
    pub address: u64,
    /// When.
    pub at: At,
    /// The operator that was about to be executed, if it is a moment within a block.
    pub before: Option<OrigOffset>,
    /// The variable of the source that is there.
    pub variable: Option<MemoryVariable>,
}

/// A variable of the source that is in memory.
#[derive(Clone, Debug)]
pub struct MemoryVariable {
    /// The expression for it.
    pub name: String,
    /// Its type.
    pub type_name: String,
    /// What it holds, as C would write it; or why that cannot be told. Nothing where there is no moment.
    pub value: Option<Result<String, String>>,
    /// Its place may hold something else: why.
    pub written: Option<Written>,
    /// The call that it lives in; nothing if it lives as long as the run.
    pub call: Option<VariableCall>,
}

/// The call that a variable lives in. Before and after it the bytes belong to others.
#[derive(Clone, Debug)]
pub struct VariableCall {
    /// Of which function.
    pub function: Function,
    /// Its first block and its last one.
    pub window: Window,
}

impl MemoryVariable {
    /// Writes what it is, where, and what it holds.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn head(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let harmless = crate::table::plain;
        write!(
            out,
            "{} ({})",
            harmless(&self.name),
            harmless(&self.type_name)
        )?;
        match &self.value {
            None => {}
            Some(Ok(value)) => write!(out, " = {}", harmless(value))?,
            Some(Err(why)) => write!(out, ": {}", harmless(why))?,
        }
        write!(out, "{}", written_text(self.written))?;
        if let Some(VariableCall { function, window }) = &self.call {
            let (first, last) = (grouped(window.first), grouped(window.last));
            write!(
                out,
                ", of the call of {} from t={first} to t={last}",
                harmless(&function.name)
            )?;
        }
        writeln!(out)
    }

    fn document(&self) -> VariableThere {
        let value = self.value.as_ref();
        let call = self.call.as_ref();
        VariableThere {
            name: self.name.clone(),
            type_name: self.type_name.clone(),
            value: value.and_then(|value| value.as_ref().ok().cloned()),
            unavailable: value.and_then(|value| value.as_ref().err().cloned()),
            written: self.written.map(WrittenSince::from),
            call: call.map(|call| CallThere {
                function: call.function.clone(),
                first_t: call.window.first,
                last_t: call.window.last,
            }),
        }
    }
}

/// What memory held.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MemoryDocument {
    /// Which memory.
    pub memory: u32,
    /// From where on.
    pub address: u64,
    /// How many bytes the memory had.
    pub size: u64,
    /// The time of the block that was about to begin, or is executed at the moment; `null` for the end of the run.
    pub t: Option<u64>,
    /// Where the operator is that was about to be executed, if a place within a block was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<u32>,
    /// The bytes, as hexadecimal digits.
    pub contents: String,
    /// Bytes next to each other of which the same is known.
    pub parts: Vec<MemoryPart>,
    /// With `--var`, what is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variable: Option<VariableThere>,
}

impl Document for MemoryDocument {
    const NAME: &'static str = "memory";
    const COMMAND: &'static str = "memory";
    type Row = NoRows;
}

/// Bytes next to each other of which the same is known.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MemoryPart {
    /// The first.
    pub address: u64,
    /// How many.
    pub bytes: u64,
    /// The last write before.
    pub written: Option<StepRow>,
    /// The next read.
    pub next_read: Option<StepRow>,
    /// The next write.
    pub next_written: Option<StepRow>,
}

/// A variable of the source that is in memory.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VariableThere {
    /// The expression for it.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// What it holds, as C would write it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Why that cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// What wrote to its place since the call began: it may be something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<WrittenSince>,
    /// The call that it lives in: what is read and written before and after that belongs to others. It is absent where it lives as long as the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallThere>,
}

/// The call that a variable lives in.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CallThere {
    /// Of which function.
    pub function: Function,
    /// The time of its first block.
    pub first_t: u64,
    /// The time of its last block.
    pub last_t: u64,
}

/// Writes what bytes held, and who wrote and reads them.
///
/// # Errors
/// If `out` fails or the module is not that of the program.
pub fn memory_text(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    place: &MemoryPlace,
    answer: &MemoryAnswer,
) -> Result<(), PresentError> {
    let when = match place.at {
        At::Before(moment) => match place.before {
            Some(offset) => format!(
                "before @{offset}, in the block at t={}",
                grouped(moment.time)
            ),
            None => format!("when t={} begins", grouped(moment.time)),
        },
        At::End => "at the end of the run".to_owned(),
    };
    if let Some(variable) = &place.variable {
        variable.head(out)?;
    }
    let head = format!(
        "memory {} {when}: {} in all",
        place.memory,
        counted(answer.size, "byte")
    );
    writeln!(out, "{}", scene.style.paint(Paint::Bold, &head))?;
    for (line, bytes) in (0u64..).zip(answer.bytes.chunks(LINE)) {
        let hex = bytes.iter().map(|byte| format!(" {byte:02x}"));
        let hex: String = hex.collect();
        let columns = 3 * LINE;
        let at = place.address + line * LINE as u64;
        writeln!(out, "{at:#010x} {hex:columns$}  {}", text_of(bytes))?;
    }
    // Of a variable it is known what its bytes are.
    let readings = match place.variable {
        None => readings(&answer.bytes),
        Some(_) => Vec::new(),
    };
    for (name, value) in readings {
        writeln!(out, "  as {name}: {value}")?;
    }
    let call = place.variable.as_ref().and_then(|v| v.call.as_ref());
    let step = |step: Option<&Step>, never: &str| {
        let Some(step) = step else {
            return Ok(match call {
                None => never.to_owned(),
                Some(_) => "never".to_owned(),
            });
        };
        let text = step_text(scene, step, 0)?;
        let text = format!("t={}  {text}", grouped(step.time));
        Ok::<_, PresentError>(match call.map(|call| call.window) {
            Some(window) if step.time < window.first => {
                format!("not yet in this call; before it {text}")
            }
            Some(window) if step.time > window.last => {
                format!("no more in this call; after it {text}")
            }
            _ => text,
        })
    };
    for part in &answer.parts {
        let (first, length) = (part.range.address, part.range.length);
        let last = first + (length - 1);
        writeln!(out, "0x{first:x}..0x{last:x}, {}", counted(length, "byte"))?;
        let written = step(
            part.written.as_deref(),
            "never: as the module has it, or zero",
        )?;
        writeln!(out, "  written       {written}")?;
        let read = step(part.read_next.as_deref(), "never")?;
        writeln!(out, "  next read     {read}")?;
        let next = step(part.written_next.as_deref(), "never")?;
        writeln!(out, "  next written  {next}")?;
    }
    Ok(())
}

/// The same as JSON.
///
/// # Errors
/// If `out` fails or the module is not that of the program.
pub fn memory_json(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    place: &MemoryPlace,
    answer: &MemoryAnswer,
) -> Result<(), PresentError> {
    let step = |step: Option<&Step>| step.map(|step| entry(scene, step)).transpose();
    let mut parts = Vec::new();
    for part in &answer.parts {
        parts.push(MemoryPart {
            address: part.range.address,
            bytes: part.range.length,
            written: step(part.written.as_deref())?,
            next_read: step(part.read_next.as_deref())?,
            next_written: step(part.written_next.as_deref())?,
        });
    }
    let document = MemoryDocument {
        memory: place.memory,
        address: place.address,
        size: answer.size,
        t: match place.at {
            At::Before(moment) => Some(moment.time),
            At::End => None,
        },
        before: place.before.map(|offset| offset.0),
        contents: digits(&answer.bytes),
        parts,
        variable: place.variable.as_ref().map(MemoryVariable::document),
    };
    begin(out, &document)
}

/// What the first bytes are as numbers of different types, as far as there are enough.
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

/// Bytes as text; what does not print is a dot.
fn text_of(bytes: &[u8]) -> String {
    let shown = |&byte: &u8| match byte {
        b' '..=b'~' => char::from(byte),
        _ => '.',
    };
    bytes.iter().map(shown).collect()
}

/// What memory held, and the program.
pub struct MemoryView<'r> {
    /// The program.
    pub scene: StepScene<'r>,
    /// Which bytes, and when.
    pub place: MemoryPlace,
    /// What they held.
    pub answer: MemoryAnswer,
}

impl Render for MemoryView<'_> {
    const NAME: &'static str = "what memory held";

    fn text(&self, out: &mut dyn Write, _: Style) -> Result<(), PresentError> {
        memory_text(out, &self.scene, &self.place, &self.answer)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        memory_json(out, &self.scene, &self.place, &self.answer)
    }
}
