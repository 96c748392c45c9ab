//! Writes traces for other programs, in the binary form that docs/TRACE.md describes.

use std::io::{self, Write};

use afterimage_replay::whole_path::Visits;
use afterimage_wpp::{Segments, WholePath};

use super::{CallSource, Stretch, TraceLevel, unreadable};
use crate::PresentError;

/// The first bytes of the output.
const MAGIC: &[u8; 8] = b"AFTRACE1";
/// The number for a missing function or block.
const NONE: u32 = u32::MAX;
/// The number of bytes to collect before writing them.
const FULL: usize = 1 << 16;

/// Writes a stretch of a run, block by block or path by path.
///
/// # Errors
/// Returns an error if `out` fails or the path cannot be read.
pub fn trace_binary<S: Segments>(
    out: &mut dyn Write,
    path: &WholePath<S>,
    visits: &mut Visits<'_, S>,
    level: TraceLevel,
    stretch: &Stretch,
    limit: Option<u64>,
) -> Result<(), PresentError>
where
    S::Error: Send + Sync,
{
    let number = match level {
        TraceLevel::Block => 1,
        TraceLevel::Path => 2,
    };
    let mut bytes = Bytes::new(number, stretch);
    let mut room = limit.unwrap_or(u64::MAX);
    while let Some(visit) = visits.next_visit().map_err(unreadable)? {
        if room == 0 {
            break;
        }
        let node = &path.nodes()[visit.node];
        let function = node.function.as_u32();
        match level {
            TraceLevel::Path => {
                bytes.long(visit.start);
                bytes.word(function);
                bytes.word(node.blocks.len() as u32);
                for block in &node.blocks {
                    bytes.word(block.as_u32());
                }
                room -= 1;
            }
            TraceLevel::Block => {
                let mut part = visits.window().part(visit);
                if node.left_out > 0 {
                    bytes.block(visit.start + part.start, function, NONE);
                    room -= 1;
                    continue;
                }
                let length = (part.end - part.start).min(room);
                room -= length;
                if stretch.reverse {
                    part.start = part.end - length;
                } else {
                    part.end = part.start + length;
                }
                let first = visit.start + part.start;
                let blocks = &node.blocks[part.start as usize..part.end as usize];
                if stretch.reverse {
                    for (at, block) in blocks.iter().enumerate().rev() {
                        bytes.block(first + at as u64, function, block.as_u32());
                    }
                } else {
                    for (time, block) in (first..).zip(blocks) {
                        bytes.block(time, function, block.as_u32());
                    }
                }
            }
        }
        bytes.hand_on(out)?;
    }
    out.write_all(&bytes.0)?;
    Ok(())
}

/// Writes the activations of a stretch.
///
/// # Errors
/// Returns an error if `out` fails or the path cannot be read.
pub fn calls_binary<S: Segments>(
    out: &mut dyn Write,
    calls: &mut CallSource<'_, S>,
    stretch: &Stretch,
    limit: Option<u64>,
) -> Result<(), PresentError>
where
    S::Error: Send + Sync,
{
    let mut bytes = Bytes::new(3, stretch);
    let mut room = limit.unwrap_or(u64::MAX);
    while room > 0
        && let Some((_, call)) = calls.next_call()?
    {
        bytes.long(call.entered);
        bytes.long(call.left.unwrap_or(0));
        bytes.word(call.function.as_u32());
        bytes.word(u32::try_from(call.depth).unwrap_or(NONE));
        room -= 1;
        bytes.hand_on(out)?;
    }
    out.write_all(&bytes.0)?;
    Ok(())
}

/// Bytes that have not been written yet.
struct Bytes(Vec<u8>);

impl Bytes {
    /// Creates the head of the output.
    fn new(level: u8, stretch: &Stretch) -> Self {
        let mut bytes = Self(Vec::with_capacity(FULL + (1 << 12)));
        bytes.0.extend_from_slice(MAGIC);
        let flags = u8::from(stretch.reverse);
        bytes.0.extend_from_slice(&[level, flags, 0, 0]);
        let function = stretch.function.map_or(NONE, |function| function.as_u32());
        bytes.word(function);
        bytes.long(stretch.window.first);
        bytes.long(stretch.window.last);
        bytes
    }

    fn long(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn word(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    #[inline]
    fn block(&mut self, time: u64, function: u32, block: u32) {
        let mut record = [0; 16];
        record[..8].copy_from_slice(&time.to_le_bytes());
        record[8..12].copy_from_slice(&function.to_le_bytes());
        record[12..].copy_from_slice(&block.to_le_bytes());
        self.0.extend_from_slice(&record);
    }

    fn hand_on(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.0.len() >= FULL {
            out.write_all(&self.0)?;
            self.0.clear();
        }
        Ok(())
    }
}
