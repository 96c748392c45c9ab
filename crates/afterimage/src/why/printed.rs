//! Explains program output.

use std::fmt;
use std::str::FromStr;

use afterimage_analyses::why::{
    At, Digits, NumberSearch, Printed, PrintedValue, Put, PutBytes, Room, Spot, Stream,
    written_before,
};
use afterimage_present::{WhyInLine, grouped, value_text};
use afterimage_profile::location::number;
use afterimage_program::Program;
use afterimage_replay::state::quoted;
use afterimage_trace::TraceFile;
use anyhow::{Error, Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use super::Budget;
use super::start::{Held, Start};
use crate::explain::Scene;

/// Selects a byte of the output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Byte {
    /// The byte at this offset, from 0.
    Number(u64),
    /// The last number in a line, from 1, or the first byte of the line if it has no number.
    Line(u64),
    /// The byte at a line and a column, both from 1.
    Column(u64, u64),
    /// The last number in the last line, or the first byte of the line if it has no number.
    LastLine,
    /// The byte at a column of the last line, from 1.
    LastColumn(u64),
    /// The number at the end of the first occurrence of this text, or the first byte of the
    /// occurrence if there is no number.
    Text(String),
}

impl FromStr for Byte {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(byte) = number(text) {
            return Ok(Self::Number(byte));
        }
        let Some(line) = text.strip_prefix("line:") else {
            let text = text.strip_prefix("text:").unwrap_or(text);
            return match text {
                "" => Err("the text is empty"),
                text => Ok(Self::Text(text.to_owned())),
            };
        };
        let from_1 = |text| number(text).filter(|number| *number > 0);
        let (line, column) = match line.split_once(':') {
            None => (line, None),
            Some((line, column)) => (line, Some(from_1(column))),
        };
        match (line, from_1(line), column) {
            ("last", _, None) => Ok(Self::LastLine),
            ("last", _, Some(Some(column))) => Ok(Self::LastColumn(column)),
            (_, Some(line), None) => Ok(Self::Line(line)),
            (_, Some(line), Some(Some(column))) => Ok(Self::Column(line, column)),
            _ => Err(
                "give line:N, line:N:COLUMN or line:last, from 1, or text:… for text that begins with line:",
            ),
        }
    }
}

impl fmt::Display for Byte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(byte) => write!(f, "{byte}"),
            Self::Line(line) => write!(f, "line:{line}"),
            Self::Column(line, column) => write!(f, "line:{line}:{column}"),
            Self::LastLine => f.write_str("line:last"),
            Self::LastColumn(column) => write!(f, "line:last:{column}"),
            Self::Text(text) => f.write_str(&quoted(text.as_bytes())),
        }
    }
}

/// The maximum number of bytes of the line to show before and after the byte.
const SHOWN: u64 = 40;

/// Refuses a byte that was not printed, if this is known before anything is built.
pub fn check(file: &TraceFile, program: &Program, stream: &Stream, wanted: &Byte) -> Result<()> {
    let &Byte::Number(byte) = wanted else {
        return Ok(());
    };
    let mut printed = Printed::new(file, &program.imports)?;
    let mut all = 0;
    while let Some(put) = printed.next(stream)? {
        all = put.before.saturating_add(put.bytes);
    }
    if byte < all {
        Ok(())
    } else {
        Err(beyond(stream, byte, all))
    }
}

/// Returns the error for a byte that was not printed.
fn beyond(stream: &Stream, byte: u64, all: u64) -> Error {
    let (option, printed) = (option(stream), counted(stream, all));
    anyhow!(
        "{option} {byte}: {printed}; bytes are counted from 0; {option} text:{byte} searches for text"
    )
}

/// Describes how much output was printed.
fn counted(stream: &Stream, all: u64) -> String {
    match all {
        0 => format!("the program printed nothing to {}", name(stream)),
        _ => format!(
            "the program printed {} bytes to {}",
            grouped(all),
            name(stream)
        ),
    }
}

/// Finds a byte of standard output or of standard error.
pub(super) fn find(
    scene: &Scene<'_, '_>,
    stream: &Stream,
    wanted: &Byte,
    whole: Whole,
) -> Result<Start> {
    let (byte, in_line) = number_of(scene, stream, wanted)?;
    let imports = &scene.traced.program().imports;
    let mut printed = Printed::new(scene.traced.file(), imports)?;
    let mut all = 0;
    while let Some(put) = printed.next(stream)? {
        all = put.before.saturating_add(put.bytes);
        if byte < all {
            let start = explained(scene, (stream, &put, byte), whole)?;
            return Ok(Start { in_line, ..start });
        }
    }
    Err(beyond(stream, byte, all))
}

/// Returns the position of the last number in a line, or 0 if there is none, and the numbers of the
/// line if there are several.
fn last_number(line: &[u8], stream: &Stream, wanted: &Byte) -> (u64, Option<WhyInLine>) {
    let numbers = Digits::all(line);
    let Some(last) = numbers.last() else {
        return (0, None);
    };
    let before = numbers.iter().rev().nth(1).map(|before| WhyInLine {
        numbers: numbers.len() as u64,
        before: String::from_utf8_lossy(&line[before.clone()]).into_owned(),
        option: option(stream).to_owned(),
        at: format!("{wanted}:{}", before.start + 1),
    });
    (last.start as u64, before)
}

/// Finds the offset of a byte, from 0, and the numbers of its line if `wanted` names only the line.
/// O(bytes printed before it), unless `wanted` is an offset.
fn number_of(
    scene: &Scene<'_, '_>,
    stream: &Stream,
    wanted: &Byte,
) -> Result<(u64, Option<WhyInLine>)> {
    let (line, column, text) = match wanted {
        &Byte::Number(byte) => return Ok((byte, None)),
        &Byte::Line(line) => (Some(line), None, None),
        &Byte::Column(line, column) => (Some(line), Some(column), None),
        Byte::LastLine => (None, None, None),
        &Byte::LastColumn(column) => (None, Some(column), None),
        Byte::Text(text) => (None, None, Some(text.as_bytes())),
    };
    let imports = &scene.traced.program().imports;
    let mut printed = Printed::new(scene.traced.file(), imports)?;
    let option = option(stream);
    let short = |bytes: u64| {
        let bytes = match bytes {
            1 => "1 byte".to_owned(),
            bytes => format!("{} bytes", grouped(bytes)),
        };
        anyhow!("{option} {wanted}: the line has {bytes}, including its end")
    };
    let (mut number, mut all) = (1, 0);
    // The start of the current line, and the last line that contains bytes.
    let (mut begins, mut last) = (0, 0..0);
    // The bytes of this last line, if its numbers are wanted.
    let mut held_line: Vec<u8> = Vec::new();
    let in_line = |begins: u64, line: &[u8]| {
        let (at, others) = last_number(line, stream, wanted);
        (begins + at, others)
    };
    // The latest bytes of the output, in which the text may begin.
    let mut tail: Vec<u8> = Vec::new();
    while let Some(put) = printed.next(stream)? {
        let held = put.open(&scene.host)?;
        let held = put.bytes(&held, &scene.host, put.before, put.bytes)?;
        if held.len() as u64 != put.bytes {
            let missing = put.before.saturating_add(held.len() as u64);
            bail!(
                "{option} {wanted}: the recording does not show what was printed from byte {} on",
                grouped(missing)
            );
        }
        all = put.before.saturating_add(put.bytes);
        if let Some(text) = text {
            tail.extend(held);
            if let Some(at) = tail.windows(text.len()).position(|part| part == text) {
                let begins = all - (tail.len() - at) as u64;
                return Ok((begins + number_at_end(text), None));
            }
            tail.drain(..tail.len().saturating_sub(text.len() - 1));
            continue;
        }
        for (at, byte) in (put.before..).zip(held) {
            if at == begins {
                held_line.clear();
            }
            last = begins..at + 1;
            if line == Some(number) && column == Some(at - begins + 1) {
                return Ok((at, None));
            }
            if column.is_none() && line.is_none_or(|line| line == number) {
                held_line.push(byte);
            }
            if byte == b'\n' {
                if line == Some(number) {
                    return match column {
                        None => Ok(in_line(begins, &held_line)),
                        Some(_) => Err(short(at + 1 - begins)),
                    };
                }
                number += 1;
                begins = at + 1;
            }
        }
    }
    let bytes = last.end - last.start;
    if line.is_none() && text.is_none() && bytes > 0 {
        return match column {
            None => Ok(in_line(last.start, &held_line)),
            Some(column) if column <= bytes => Ok((last.start + column - 1, None)),
            Some(_) => Err(short(bytes)),
        };
    }
    if line == Some(number) && begins < all {
        return match column {
            None => Ok(in_line(begins, &held_line)),
            Some(_) => Err(short(all - begins)),
        };
    }
    let printed = counted(stream, all);
    if text.is_some() {
        bail!("{option} {wanted}: {printed}, but not this text");
    }
    let lines = match number - 1 + u64::from(begins < all) {
        0 => String::new(),
        1 => ", in 1 line".to_owned(),
        lines => format!(", in {} lines", grouped(lines)),
    };
    bail!("{option} {wanted}: {printed}{lines}")
}

/// Returns the position of the number at the end of a string, or 0 if there is none.
fn number_at_end(text: &[u8]) -> u64 {
    let last = text.len().saturating_sub(1);
    let number = Digits::around(text, last).filter(|number| number.at.end == text.len());
    number.map_or(0, |number| number.at.start as u64)
}

fn name(stream: &Stream) -> &'static str {
    match stream {
        Stream::Error => "standard error",
        _ => "standard output",
    }
}

fn option(stream: &Stream) -> &'static str {
    match stream {
        Stream::Error => "--stderr",
        _ => "--stdout",
    }
}

/// The part of a printed number to explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whole {
    /// The whole number.
    Number,
    /// The digit alone.
    Digit,
}

fn explained(
    scene: &Scene<'_, '_>,
    (stream, put, byte): (&Stream, &Put, u64),
    whole: Whole,
) -> Result<Start> {
    let held = put.open(&scene.host)?;
    let Some(range) = put.range(byte, 1) else {
        let option = option(stream);
        bail!("{option} {byte}: the recording does not show where it was printed from");
    };
    let first = byte.saturating_sub(SHOWN).max(put.before);
    let around = put.bytes(&held, &scene.host, first, byte - first + SHOWN)?;
    let at = (byte - first) as usize;
    if around.len() <= at {
        let option = option(stream);
        bail!("{option} {byte}: the recording does not show what was printed there");
    }
    let begin = around[..at].iter().rposition(|byte| *byte == b'\n');
    let begin = begin.map_or(0, |newline| newline + 1);
    let end = around[at..].iter().position(|byte| *byte == b'\n');
    let end = end.map_or(around.len(), |newline| at + newline);
    let line = &around[begin..end];
    let value = around[at];
    let shown = match value {
        b' '..=b'~' | b'\n' | b'\r' | b'\t' => format!("{:?}", char::from(value)),
        other => format!("0x{other:02x}"),
    };
    let what = format!("byte {} of {}, {shown}", grouped(byte), name(stream));
    let what = if line.trim_ascii().is_empty() {
        what
    } else {
        format!("{what} in {}", quoted(line))
    };
    // If only a part of the number is known, do not search for it.
    let begins = first + begin as u64;
    let is_cut = |number: &Digits| {
        let ends = begins + number.at.end as u64;
        let at_begin = number.at.start == 0 && begins > put.before && begin == 0;
        at_begin
            || end == around.len() && number.at.end == line.len() && ends < put.before + put.bytes
    };
    // First try the digits with separators between them as one number, and last the digits on one
    // side of a point.
    let place = at - begin;
    let output = (begins, &held);
    for (mut readings, is_whole) in [
        (Vec::from_iter(Digits::grouped_around(line, place)), true),
        (Digits::readings(line, place), true),
        (Vec::from_iter(Digits::part_around(line, place)), false),
    ] {
        readings.retain(|number| whole == Whole::Number && !is_cut(number));
        let found = value_of(scene, put, output, (&readings, is_whole))?;
        if let Some((reading, found)) = found {
            let number = &readings[reading];
            let value = match found.is_wide {
                true => format!(
                    "{} (128 bits, of which the low half is followed)",
                    number.text
                ),
                false => value_text(found.ty, found.bits),
            };
            return Ok(Start {
                from: Some(Held::At(At::Register(found.instance, found.register))),
                ty: Some(found.ty),
                what: format!(
                    "{value}, printed as {:?} in {} (byte {} of {}),",
                    number.text,
                    quoted(line),
                    grouped(byte),
                    name(stream)
                ),
                value,
                place: Some(found.spot),
                ..Start::default()
            });
        }
    }
    Ok(Start {
        from: Some(Held::Put { put: held, range }),
        value: value.to_string(),
        what,
        ..Start::default()
    })
}

/// Finds the value that was printed as a number in a line. Also returns the index of the reading
/// that the value matches. The line begins at byte `begins` of the stream.
fn value_of(
    scene: &Scene<'_, '_>,
    put: &Put,
    (begins, held): (u64, &PutBytes),
    (readings, is_whole): (&[Digits], bool),
) -> Result<Option<(usize, PrintedValue)>> {
    let ranges = readings.iter().map(|number| number.at.clone());
    let Some(longest) = ranges.max_by_key(ExactSizeIterator::len) else {
        return Ok(None);
    };
    let mut written = Vec::new();
    for position in longest {
        if let Some(range) = put.range(begins + position as u64, 1) {
            let caller = held.caller(&scene.host)?;
            written.push(written_before(&scene.walk(), &scene.host, caller, range)?);
        }
    }
    let traced = scene.traced;
    let budget = Budget::new(traced.epochs()?, traced.path()?.segments());
    let room = || budget.as_ref().map_or(Room::Looking, Budget::room);
    let is_library = |at: Spot| Ok(scene.is_library(at.function, at.op)?);
    let mut search = NumberSearch::new((scene.walk(), &scene.types), readings, &is_library, &room);
    Ok(match search.made_from(&written)? {
        None if is_whole => search.around()?,
        found => found,
    })
}
