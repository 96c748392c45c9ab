//! All addresses that loads and stores accessed, instruction by instruction.

use std::io::Write;

use afterimage_replay::steps::AccessedAddresses;
use serde_json::json;

use crate::PresentError;
use crate::addresses::Shown;
use crate::number::grouped;
use crate::steps::StepScene;

/// The first bytes in binary form.
const MAGIC: &[u8; 8] = b"AFADDRS1";

/// Gives the next addresses of a load or a store; `None` at the end.
pub type NextAccessed<'s> = dyn FnMut() -> Result<Option<AccessedAddresses>, PresentError> + 's;

/// Writes all addresses as text: per line an instruction, and what it accessed one after the other. Whether there are more than may be shown.
///
/// # Errors
/// If `out` fails or the run cannot be followed.
pub fn accessed_text(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    next: &mut NextAccessed<'_>,
    limit: Option<u64>,
) -> Result<bool, PresentError> {
    let mut room = limit.unwrap_or(u64::MAX);
    while let Some(accessed) = next()? {
        if room == 0 {
            return Ok(true);
        }
        room -= 1;
        let shown = Shown::of(scene, accessed.site)?;
        let first = grouped(accessed.first);
        write!(out, "@{} {} #{first}:", shown.offset, shown.name)?;
        for address in &accessed.addresses {
            write!(out, " 0x{address:x}")?;
        }
        writeln!(out)?;
    }
    Ok(false)
}

/// The same as lines of JSON, after a head.
///
/// # Errors
/// If `out` fails or the run cannot be followed.
pub fn accessed_json(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    next: &mut NextAccessed<'_>,
    limit: Option<u64>,
) -> Result<(), PresentError> {
    writeln!(out, "{}", json!({ "schema": "afterimage/accessed/1" }))?;
    let mut room = limit.unwrap_or(u64::MAX);
    while room > 0
        && let Some(accessed) = next()?
    {
        room -= 1;
        let shown = Shown::of(scene, accessed.site)?;
        let entry = json!({
            "function": accessed.site.function.as_u32(),
            "offset": shown.offset.0,
            "memory": accessed.memory,
            "bytes": accessed.bytes,
            "first": accessed.first,
            "addresses": accessed.addresses,
        });
        writeln!(out, "{entry}")?;
    }
    Ok(())
}

/// The same as bytes, which docs/TRACE.md describes.
///
/// # Errors
/// If `out` fails or the run cannot be followed.
pub fn accessed_binary(
    out: &mut dyn Write,
    scene: &StepScene<'_>,
    next: &mut NextAccessed<'_>,
    limit: Option<u64>,
) -> Result<(), PresentError> {
    out.write_all(MAGIC)?;
    let mut room = limit.unwrap_or(u64::MAX);
    while room > 0
        && let Some(accessed) = next()?
    {
        room -= 1;
        let shown = Shown::of(scene, accessed.site)?;
        out.write_all(&shown.offset.0.to_le_bytes())?;
        out.write_all(&(accessed.addresses.len() as u16).to_le_bytes())?;
        // A vector has sixteen.
        out.write_all(&(accessed.bytes as u16).to_le_bytes())?;
        out.write_all(&accessed.memory.to_le_bytes())?;
        out.write_all(&accessed.first.to_le_bytes())?;
        for address in &accessed.addresses {
            out.write_all(&address.to_le_bytes())?;
        }
    }
    Ok(())
}
