//! Reads each abbreviation table once.
//!
//! Units name their table by its offset (DWARF 5, section 7.5.3). The tables that compilers write
//! do not overlap. But hostile units could name many places in one long table, which would take
//! quadratic time and memory to read. So a budget limits the number of bytes read.

use std::collections::HashMap;
use std::sync::Arc;

use gimli::{Abbreviations, DebugAbbrev, DebugAbbrevOffset, EndianSlice, LittleEndian, Reader};

/// The maximum number of attributes of an entry. No compiler's output reaches it. Attributes may
/// take no bytes, so without a limit a small section could describe any number of them.
const ATTRIBUTES: usize = 256;

/// The tables read so far, and the number of bytes that may still be read.
pub(crate) struct Budget<'a> {
    section: &'a [u8],
    left: usize,
    tables: HashMap<usize, Arc<Abbreviations>>,
}

impl<'a> Budget<'a> {
    pub(crate) fn new(section: &'a [u8]) -> Self {
        Self {
            section,
            left: section.len().saturating_mul(2),
            tables: HashMap::new(),
        }
    }

    /// Returns the table at an offset.
    pub(crate) fn table(&mut self, at: DebugAbbrevOffset) -> Result<Arc<Abbreviations>, String> {
        if let Some(table) = self.tables.get(&at.0) {
            return Ok(table.clone());
        }
        let bytes = self.section.get(at.0..).unwrap_or_default();
        let mut rest = EndianSlice::new(&bytes[..bytes.len().min(self.left)], LittleEndian);
        let ends = skim(&mut rest).is_some();
        // Failed reads also count against the budget.
        let cut = rest.is_empty() && bytes.len() > self.left;
        self.left -= bytes.len().min(self.left) - rest.len();
        if !ends {
            let overlap = "its abbreviations overlap with too many others";
            return Err(if cut {
                overlap
            } else {
                "its abbreviations are broken"
            }
            .into());
        }
        let table = DebugAbbrev::from(EndianSlice::new(self.section, LittleEndian))
            .abbreviations(at)
            .map_err(|error| error.to_string())?;
        let table = Arc::new(table);
        self.tables.insert(at.0, table.clone());
        Ok(table)
    }
}

/// Skips to the end of a table. Returns `None` if the table does not end, or has an entry with too
/// many attributes.
fn skim(rest: &mut EndianSlice<'_, LittleEndian>) -> Option<()> {
    while rest.read_uleb128().ok()? != 0 {
        rest.read_uleb128().ok()?;
        rest.read_u8().ok()?;
        for attributes in 0.. {
            let (name, form) = (rest.read_uleb128().ok()?, rest.read_uleb128().ok()?);
            if (name, form) == (0, 0) {
                break;
            }
            if form == u64::from(gimli::DW_FORM_implicit_const.0) {
                rest.read_sleb128().ok()?;
            }
            if attributes == ATTRIBUTES {
                return None;
            }
        }
    }
    Some(())
}
