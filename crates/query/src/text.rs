//! The text of operators, as the WebAssembly text format writes them.

use std::io;

use afterimage_ids::OrigOffset;
use wasmprinter::{Config, Print};

use crate::{InstructionRow, ProfileError};

/// Sets the texts of rows. O(size of the module + rows × log rows).
pub(crate) fn fill(module: &[u8], rows: &mut [InstructionRow]) -> Result<(), ProfileError> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut by_offset: Vec<usize> = (0..rows.len()).collect();
    by_offset.sort_unstable_by_key(|&i| rows[i].offset);
    let wanted = by_offset.iter().map(|&i| rows[i].offset).collect();
    for (&row, text) in by_offset.iter().zip(texts(module, wanted)?) {
        if text.is_empty() {
            let offset = rows[row].offset;
            return Err(ProfileError::Text(format!(
                "there is no operator at {offset}"
            )));
        }
        rows[row].text = text.trim_start().to_owned();
    }
    Ok(())
}

/// See [`Profile::texts`](crate::Profile::texts). The module is written as text once, and
/// the lines that are not wanted are dropped as they come.
pub(crate) fn texts(module: &[u8], wanted: Vec<OrigOffset>) -> Result<Vec<String>, ProfileError> {
    let texts = vec![String::new(); wanted.len()];
    let mut lines = Lines {
        wanted,
        texts,
        current: None,
    };
    Config::new()
        .print(module, &mut lines)
        .map_err(|error| ProfileError::Text(format!("{error:#}")))?;
    Ok(lines.texts)
}

/// Keeps the lines that are wanted.
struct Lines {
    wanted: Vec<OrigOffset>,
    texts: Vec<String>,
    /// Which text the line being written belongs to.
    current: Option<usize>,
}

impl Print for Lines {
    fn write_str(&mut self, s: &str) -> io::Result<()> {
        if let Some(current) = self.current {
            self.texts[current].push_str(s);
        }
        Ok(())
    }

    fn newline(&mut self) -> io::Result<()> {
        self.current = None;
        Ok(())
    }

    fn start_line(&mut self, offset: Option<usize>) {
        let offset = offset.and_then(|offset| u32::try_from(offset).ok());
        self.current = offset
            .and_then(|offset| self.wanted.binary_search(&OrigOffset(offset)).ok())
            .filter(|&line| self.texts[line].is_empty());
    }
}
