//! What memory held at a time.

use std::io::Write;

use afterimage_query::steps::{At, MemoryAnswer, Step};
use serde_json::{Value as Json, json};

use crate::PresentError;
use crate::number::{counted, grouped};
use crate::steps::{StepScene, entry, step_text};
use crate::table::Paint;

/// Bytes on a line of a dump.
const LINE: usize = 16;

/// Writes what bytes held, from `address` of a memory on, and who wrote and reads them.
///
/// # Errors
/// If `out` fails or the module is not that of the program.
pub fn memory_text(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    (memory, address): (u32, u64),
    at: At,
    answer: &MemoryAnswer,
) -> Result<(), PresentError> {
    let when = match at {
        At::Before(time) => format!("when t={} begins", grouped(time)),
        At::End => "at the end of the run".to_owned(),
    };
    let head = format!(
        "memory {memory} {when}: {} in all",
        counted(answer.size, "byte")
    );
    writeln!(out, "{}", scene.style.paint(Paint::Bold, &head))?;
    for (line, bytes) in (0u64..).zip(answer.bytes.chunks(LINE)) {
        let hex = bytes.iter().map(|byte| format!(" {byte:02x}"));
        let hex: String = hex.collect();
        let columns = 3 * LINE;
        let at = address + line * LINE as u64;
        writeln!(out, "{at:#010x} {hex:columns$}  {}", text_of(bytes))?;
    }
    for (name, value) in readings(&answer.bytes) {
        writeln!(out, "  as {name}: {value}")?;
    }
    let step = |step: Option<&Step>, never: &str| match step {
        None => Ok(never.to_owned()),
        Some(step) => {
            let text = step_text(scene, step, 0)?;
            Ok::<_, PresentError>(format!("t={}  {text}", grouped(step.time)))
        }
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
    (memory, address): (u32, u64),
    at: At,
    answer: &MemoryAnswer,
) -> Result<(), PresentError> {
    let step = |step: Option<&Step>| -> Result<Json, PresentError> {
        step.map_or(Ok(Json::Null), |step| entry(scene, step))
    };
    let mut parts = Vec::new();
    for part in &answer.parts {
        parts.push(json!({
            "address": part.range.address,
            "bytes": part.range.length,
            "written": step(part.written.as_deref())?,
            "next_read": step(part.read_next.as_deref())?,
            "next_written": step(part.written_next.as_deref())?,
        }));
    }
    let hex = answer.bytes.iter().map(|byte| format!("{byte:02x}"));
    let report = json!({
        "schema": "afterimage/memory/1",
        "memory": memory,
        "address": address,
        "size": answer.size,
        "at": match at {
            At::Before(time) => Some(time),
            At::End => None,
        },
        "contents": hex.collect::<String>(),
        "parts": parts,
    });
    writeln!(out, "{report}")?;
    Ok(())
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
