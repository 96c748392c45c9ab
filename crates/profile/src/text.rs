//! Writes operators in the WebAssembly text format.

use std::io;

use afterimage_ids::OrigOffset;
use afterimage_program::demangle;
use wasmprinter::{Config, Print};

use crate::{InstructionRow, ProfileError};

/// Sets the text of each row. O(size of the module + rows × log rows).
pub(crate) fn fill(module: &[u8], rows: &mut [InstructionRow]) -> Result<(), ProfileError> {
    let mut by_offset: Vec<usize> = (0..rows.len()).collect();
    by_offset.sort_unstable_by_key(|&i| rows[i].offset);
    let wanted: Vec<_> = by_offset.iter().map(|&i| rows[i].offset).collect();
    each_text(module, &wanted, |i, text| {
        rows[by_offset[i]].text = text.trim_start().into();
    })?;
    match rows.iter().find(|row| row.text.is_empty()) {
        Some(row) => Err(ProfileError::Text(format!(
            "there is no operator at {}",
            row.offset
        ))),
        None => Ok(()),
    }
}

/// Returns the lines of a module's text for the operators at these ascending offsets, with their
/// indentation. A line is empty if there is no operator. O(size of the module).
///
/// # Errors
/// Returns an error if the module cannot be written as text.
pub fn texts(module: &[u8], wanted: &[OrigOffset]) -> Result<Vec<String>, ProfileError> {
    let mut texts = vec![String::new(); wanted.len()];
    each_text(module, wanted, |i, text| texts[i] = text.to_owned())?;
    Ok(texts)
}

/// Makes a mangled name in an operator's text readable. For example, `call $_ZN3foo3barE` becomes
/// `call foo::bar`.
pub fn readable(text: &str) -> String {
    let Some((before, rest)) = text.split_once('$') else {
        return text.to_owned();
    };
    let (name, after) = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
        None => {
            let end = rest.find([' ', ')']).unwrap_or(rest.len());
            rest.split_at(end)
        }
    };
    // If several functions share a name, wasmprinter writes #func7<name>.
    let inner = name.strip_prefix('#').and_then(|name| {
        let (_, name) = name.split_once('<')?;
        name.strip_suffix('>')
    });
    match demangle(inner.unwrap_or(name)) {
        Some(shown) => format!("{before}{shown}{after}"),
        None => text.to_owned(),
    }
}

/// Passes the line of the module's text for each of these ascending offsets to `each`, with the
/// offset's position in the list. Writes the module as text once, up to the last offset, and
/// discards other lines at once.
fn each_text(
    module: &[u8],
    wanted: &[OrigOffset],
    each: impl FnMut(usize, &str),
) -> Result<(), ProfileError> {
    if wanted.is_empty() {
        return Ok(());
    }
    let mut lines = Lines {
        wanted,
        each,
        current: None,
        text: String::new(),
        is_over: false,
    };
    match Config::new().print(module, &mut lines) {
        Err(error) if !lines.is_over => return Err(ProfileError::Text(format!("{error:#}"))),
        _ => lines.finish_line(),
    }
    Ok(())
}

/// A writer that receives the module's text line by line.
struct Lines<'w, F> {
    wanted: &'w [OrigOffset],
    each: F,
    /// The index of the offset to which the current line belongs.
    current: Option<usize>,
    text: String,
    /// Whether the writer has passed the last offset.
    is_over: bool,
}

impl<F: FnMut(usize, &str)> Lines<'_, F> {
    fn finish_line(&mut self) {
        if let Some(current) = self.current.take() {
            (self.each)(current, &self.text);
            self.text.clear();
        }
    }

    /// Stops the writer after the last wanted line.
    fn go_on(&self) -> io::Result<()> {
        if self.is_over {
            Err(io::Error::other("the rest is not wanted"))
        } else {
            Ok(())
        }
    }
}

impl<F: FnMut(usize, &str)> Print for Lines<'_, F> {
    fn write_str(&mut self, s: &str) -> io::Result<()> {
        if self.current.is_some() {
            self.text.push_str(s);
        }
        self.go_on()
    }

    fn newline(&mut self) -> io::Result<()> {
        self.finish_line();
        self.go_on()
    }

    fn start_line(&mut self, offset: Option<usize>) {
        let offset = offset.and_then(|offset| u32::try_from(offset).ok());
        self.current =
            offset.and_then(|offset| self.wanted.binary_search(&OrigOffset(offset)).ok());
        let last = self.wanted.last();
        self.is_over |= offset.is_some_and(|offset| last.is_some_and(|last| offset > last.0));
    }
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn mangled_names_are_made_readable() {
        for (text, shown) in [
            ("call $_ZN3foo3barE", "call foo::bar"),
            ("call $#func7<_ZN3foo3barE>", "call foo::bar"),
            ("call $\"_ZN3foo3barE\"", "call foo::bar"),
            (
                "call_indirect (type $_ZN3foo3barE)",
                "call_indirect (type foo::bar)",
            ),
            ("call $sum", "call $sum"),
            ("i32.load offset=4", "i32.load offset=4"),
            ("call $\"odd", "call $\"odd"),
        ] {
            assert_eq!(readable(text), shown);
        }
    }
}
