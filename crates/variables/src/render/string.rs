//! Strings in memory and in arrays.

use crate::Unavailable;
use crate::place::{Machine, Piece, read};
use crate::types::{Encoding, Type, TypeKind};

/// So many bytes are read at once.
const CHUNK: usize = 64;

/// So many equal bytes in a row are counted.
pub(super) const COUNTED: usize = 8;

/// Whether strings are made of such values: characters of one byte.
pub(super) fn is_character(described: &Type) -> bool {
    let encoding = match described.kind {
        TypeKind::Base(encoding) => encoding,
        _ => return false,
    };
    described.bytes == Some(1)
        && matches!(
            encoding,
            Encoding::SignedChar | Encoding::UnsignedChar | Encoding::Unicode
        )
}

/// The string at an address, up to a zero byte.
pub(super) fn terminated(address: u64, most: usize, machine: &dyn Machine) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < most {
        let mut chunk = [0; CHUNK];
        let at = address.saturating_add(bytes.len() as u64);
        // Near the end of memory a chunk may not be there, but the string may.
        let size = if machine.memory(at, &mut chunk) {
            CHUNK
        } else if machine.memory(at, &mut chunk[..1]) {
            1
        } else {
            return if bytes.is_empty() {
                "<outside the memory>".to_owned()
            } else {
                format!("{}<outside the memory>", quoted(&bytes))
            };
        };
        match chunk[..size].iter().position(|byte| *byte == 0) {
            Some(end) if bytes.len() + end <= most => {
                bytes.extend_from_slice(&chunk[..end]);
                return quoted(&bytes);
            }
            _ => bytes.extend_from_slice(&chunk[..size]),
        }
    }
    bytes.truncate(most);
    format!("{}…", quoted(&bytes))
}

/// The string of so many bytes at an address.
pub(super) fn counted(address: u64, length: u64, most: usize, machine: &dyn Machine) -> String {
    let shown = usize::try_from(length).unwrap_or(usize::MAX).min(most);
    let mut bytes = vec![0; shown];
    if shown > 0 && !machine.memory(address, &mut bytes) {
        return "<outside the memory>".into();
    }
    let more = if (shown as u64) < length { "…" } else { "" };
    format!("{}{more}", quoted(&bytes))
}

/// The characters of an array of them.
pub(super) struct Characters {
    bytes: Vec<u8>,
    /// There are more.
    more: bool,
}

/// Reads an array of characters.
pub(super) fn array(
    pieces: &[Piece],
    count: u64,
    most: usize,
    machine: &dyn Machine,
) -> Result<Characters, Unavailable> {
    let shown = usize::try_from(count).unwrap_or(usize::MAX).min(most);
    let mut bytes = vec![0; shown];
    read(pieces, &mut bytes, machine)?;
    let more = (shown as u64) < count;
    Ok(Characters { bytes, more })
}

impl Characters {
    /// The string that they are, without the zeros at its end. `None` if no text begins there: bytes then that happen to have a type of
    /// characters. What is behind the text's own end may be anything: buffers are written again and again.
    pub(super) fn text(&self) -> Option<String> {
        let end = self.bytes.iter().rposition(|byte| *byte != 0);
        let all = &self.bytes[..end.map_or(0, |last| last + 1)];
        let length = all.iter().position(|byte| *byte == 0);
        let first = &all[..length.unwrap_or(all.len())];
        let visible = |c: char| !c.is_control() || matches!(c, '\x07'..='\r' | '\x1b');
        let is_text = match std::str::from_utf8(first) {
            Ok(text) => text.chars().all(visible),
            // The last character may go on behind what was read.
            Err(error) => length.is_none() && self.more && error.error_len().is_none(),
        };
        if !is_text || (first.is_empty() && !all.is_empty()) {
            return None;
        }
        let more = if self.more { "…" } else { "" };
        Some(format!("{}{more}", quoted(all)))
    }

    /// How many of them in a row are equal, from each first one on.
    pub(super) fn runs(&self) -> impl Iterator<Item = (u8, usize)> {
        let runs = self.bytes.chunk_by(|a, b| a == b);
        runs.map(|run| (run[0], run.len()))
    }
}

/// Text in quotation marks; what is not UTF-8 and what cannot be seen is escaped as in C, which reads it back as these bytes.
pub fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    let mut questions = 0;
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            // Two question marks and one of these are another character.
            if questions > 1 && "=/'()!<>-".contains(c) {
                text.insert(text.len() - 1, '\\');
            }
            questions = if c == '?' { questions + 1 } else { 0 };
            escape(c, '"', &mut text);
        }
        for byte in chunk.invalid() {
            octal(*byte, &mut text);
            questions = 0;
        }
    }
    text.push('"');
    text
}

/// Always with three digits: C takes up to three, and for `\x` all that follow.
fn octal(byte: u8, text: &mut String) {
    text.push_str(&format!("\\{byte:03o}"));
}

/// A character in quotation marks.
pub(super) fn quoted_character(c: char) -> String {
    let mut text = String::from("'");
    escape(c, '\'', &mut text);
    text.push('\'');
    text
}

/// Writes a character as in C between these quotation marks.
fn escape(c: char, quotation: char, text: &mut String) {
    let known = match c {
        '\x07' => Some("\\a"),
        '\x08' => Some("\\b"),
        '\t' => Some("\\t"),
        '\n' => Some("\\n"),
        '\x0b' => Some("\\v"),
        '\x0c' => Some("\\f"),
        '\r' => Some("\\r"),
        '\\' => Some("\\\\"),
        _ => None,
    };
    let code = u32::from(c);
    match known {
        Some(known) => text.push_str(known),
        None if c == quotation => text.extend(['\\', c]),
        // C gives these no other name.
        None if code < 0xa0 && c.is_control() && quotation == '\'' => octal(code as u8, text),
        None if code < 0xa0 && c.is_control() => {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                octal(byte, text);
            }
        }
        // Quotation marks of the other kind are themselves.
        None if c.is_ascii() || c.escape_debug().eq([c]) => text.push(c),
        None if code <= 0xffff => text.push_str(&format!("\\u{code:04x}")),
        None => text.push_str(&format!("\\U{code:08x}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_escaped_as_in_c() {
        assert_eq!(quoted(b"a'\"\\\n\x01\x7f\0"), r#""a'\"\\\n\001\177\000""#);
        assert_eq!(
            quoted("é\u{301}\u{e0001}\u{200b}😀".as_bytes()),
            r#""é\u0301\U000e0001\u200b😀""#
        );
        assert_eq!(quoted(b"\xff\xc3"), r#""\377\303""#);
        let all = ['\'', '"', '\x04', '\x1b', '\x07', 'é'];
        let all = Vec::from_iter(all.map(quoted_character));
        assert_eq!(all, [r"'\''", "'\"'", r"'\004'", r"'\033'", r"'\a'", "'é'"]);
    }

    #[test]
    fn bytes_are_not_text() {
        let text = |bytes: &[u8], more| {
            Characters {
                bytes: bytes.to_vec(),
                more,
            }
            .text()
        };
        assert_eq!(text(b"ab\n\0\0", false).as_deref(), Some(r#""ab\n""#));
        assert_eq!(text(b"\0\0", false).as_deref(), Some(r#""""#));
        assert_eq!(text(b"ab", true).as_deref(), Some(r#""ab"…"#));
        assert_eq!(text("é".as_bytes(), false).as_deref(), Some(r#""é""#));
        // Cut in the middle of a character, or broken.
        assert_eq!(text(b"a\xc3", true).as_deref(), Some(r#""a\303"…"#));
        // A buffer that held something longer before.
        assert_eq!(text(b"a\0\xff\0", false).as_deref(), Some(r#""a\000\377""#));
        for bytes in [&b"a\xc3"[..], b"a\xff", b"\0b", b"\x7fELF", b"\x01"] {
            assert_eq!(text(bytes, false), None, "{bytes:?}");
        }
    }
}
