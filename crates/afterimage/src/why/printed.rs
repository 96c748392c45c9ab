//! What the program printed.

use afterimage_analyses::why::{Printed, Put, Stream};
use afterimage_present::grouped;
use afterimage_profile::location::number;
use afterimage_program::Program;
use afterimage_replay::state::quoted;
use afterimage_trace::TraceFile;
use anyhow::{Error, Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use super::start::{Held, Start};
use crate::explain::Scene;

/// Which byte of what was put out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Byte {
    /// This one, from 0.
    Number(u64),
    /// The first one of a line, from 1.
    Line(u64),
}

impl std::str::FromStr for Byte {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let line = text.strip_prefix("line:");
        match (line, number(line.unwrap_or(text))) {
            (None, Some(byte)) => Ok(Self::Number(byte)),
            (Some(_), Some(line)) if line > 0 => Ok(Self::Line(line)),
            _ => Err("give the number of a byte, from 0, or line:N, from 1"),
        }
    }
}

/// So much of a line is shown, before the byte and behind it.
const SHOWN: u64 = 40;

/// Refuses a byte that was not printed, if that can be said before anything is built.
pub fn check(file: &TraceFile, program: &Program, stream: &Stream, wanted: Byte) -> Result<()> {
    let Byte::Number(byte) = wanted else {
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

/// That a byte was not printed.
fn beyond(stream: &Stream, byte: u64, all: u64) -> Error {
    let (option, printed) = (option(stream), counted(stream, all));
    anyhow!("{option} {byte}: {printed}; bytes are counted from 0")
}

/// How much was printed, in words.
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

/// A byte of standard output, or of standard error.
pub fn find(scene: &Scene<'_, '_>, stream: &Stream, wanted: Byte) -> Result<Start> {
    let imports = &scene.traced.program().imports;
    let mut printed = Printed::new(scene.traced.file(), imports)?;
    let (mut all, mut line) = (0, 1);
    let mut begins = matches!(wanted, Byte::Line(1));
    while let Some(put) = printed.next(stream)? {
        all = put.before.saturating_add(put.bytes);
        match wanted {
            Byte::Number(byte) if byte < all => return told(scene, stream, &put, byte),
            Byte::Number(_) => continue,
            Byte::Line(_) if begins => return told(scene, stream, &put, put.before),
            Byte::Line(number) => {
                let held = put.open(&scene.host)?;
                let held = put.bytes(&held, &scene.host, put.before, put.bytes)?;
                for (at, byte) in (put.before..).zip(held) {
                    if begins {
                        return told(scene, stream, &put, at);
                    }
                    line += u64::from(byte == b'\n');
                    begins = byte == b'\n' && line == number;
                }
            }
        }
    }
    match wanted {
        Byte::Number(byte) => Err(beyond(stream, byte, all)),
        Byte::Line(number) => {
            let (option, printed) = (option(stream), counted(stream, all));
            let open = all > 0 && !ends_line(scene, stream, all)?;
            let lines = match line - 1 + u64::from(open) {
                0 => String::new(),
                1 => ", in 1 line".to_owned(),
                lines => format!(", in {} lines", grouped(lines)),
            };
            bail!("{option} line:{number}: {printed}{lines}")
        }
    }
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

/// Whether what was printed ends with the end of a line.
fn ends_line(scene: &Scene<'_, '_>, stream: &Stream, all: u64) -> Result<bool> {
    let imports = &scene.traced.program().imports;
    let mut printed = Printed::new(scene.traced.file(), imports)?;
    while let Some(put) = printed.next(stream)? {
        if put.before.saturating_add(put.bytes) == all {
            let held = put.open(&scene.host)?;
            return Ok(put.bytes(&held, &scene.host, all - 1, 1)? == b"\n");
        }
    }
    Ok(false)
}

fn told(scene: &Scene<'_, '_>, stream: &Stream, put: &Put, byte: u64) -> Result<Start> {
    let held = put.open(&scene.host)?;
    let Some(range) = put.range(byte, 1) else {
        let option = option(stream);
        bail!("{option} {byte}: the recording does not tell from where it was put out");
    };
    let first = byte.saturating_sub(SHOWN).max(put.before);
    let around = put.bytes(&held, &scene.host, first, byte - first + SHOWN)?;
    let at = (byte - first) as usize;
    if around.len() <= at {
        let option = option(stream);
        bail!("{option} {byte}: the recording does not tell what was put out there");
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
    Ok(Start {
        from: Some(Held::Put { put: held, range }),
        ty: None,
        value: value.to_string(),
        what,
        place: None,
        spot: None,
        prelude: Vec::new(),
        written: None,
    })
}
