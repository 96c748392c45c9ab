//! Reports all addresses that loads and stores accessed, instruction by instruction.

use std::io::Write;

use afterimage_replay::steps::AccessedAddresses;
use schemars::JsonSchema;
use serde::Serialize;

use crate::PresentError;
use crate::addresses::Shown;
use crate::document::objects::Function;
use crate::document::{Document, TakeRows};
use crate::number::grouped;
use crate::steps::StepScene;

/// The magic bytes at the start of the binary form.
const MAGIC: &[u8; 8] = b"AFADDRS1";

/// Returns the next addresses of a load or store, or `None` at the end.
pub type NextAccessed<'s> = dyn FnMut() -> Result<Option<AccessedAddresses>, PresentError> + 's;

/// Writes all addresses as text: each line has an instruction and consecutive addresses. Returns
/// whether `limit` left out any lines.
///
/// # Errors
/// Returns an error if `out` fails or the run cannot be followed.
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

/// All addresses that loads and stores accessed. The addresses of each instruction are in the order
/// of its executions, without gaps. Accesses that trapped are not included.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AccessedHead {}

impl Document for AccessedHead {
    const NAME: &'static str = "accessed";
    const COMMAND: &'static str = "addresses --all --each";
    type Row = AccessedRow;
}

/// The addresses of consecutive executions of a load or store.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AccessedRow {
    /// The function of the load or store.
    pub function: Function,
    /// Its offset in the original module.
    pub offset: u32,
    /// The memory that it accesses.
    pub memory: u32,
    /// The number of bytes per access.
    pub bytes: u64,
    /// The number of the execution that accessed the first of `addresses`, from 1.
    pub first: u64,
    /// The addresses, at most 256.
    pub addresses: Vec<u64>,
}

/// Writes the rows for programs.
///
/// # Errors
/// Returns an error if `to` fails or the run cannot be followed.
pub fn accessed_rows(
    to: &mut dyn TakeRows<AccessedHead>,
    scene: &StepScene<'_>,
    next: &mut NextAccessed<'_>,
    limit: Option<u64>,
) -> Result<(), PresentError> {
    to.head(AccessedHead {})?;
    let mut room = limit.unwrap_or(u64::MAX);
    while room > 0
        && let Some(accessed) = next()?
    {
        room -= 1;
        let shown = Shown::of(scene, accessed.site)?;
        let entry = AccessedRow {
            function: Function::new(scene.names, accessed.site.function),
            offset: shown.offset.0,
            memory: accessed.memory,
            bytes: accessed.bytes,
            first: accessed.first,
            addresses: accessed.addresses,
        };
        to.row(entry)?;
    }
    Ok(())
}

/// Writes the rows in the binary form that docs/TRACE.md describes.
///
/// # Errors
/// Returns an error if `out` fails or the run cannot be followed.
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
        // The largest access is a vector of sixteen bytes.
        out.write_all(&(accessed.bytes as u16).to_le_bytes())?;
        out.write_all(&accessed.memory.to_le_bytes())?;
        out.write_all(&accessed.first.to_le_bytes())?;
        for address in &accessed.addresses {
            out.write_all(&address.to_le_bytes())?;
        }
    }
    Ok(())
}
