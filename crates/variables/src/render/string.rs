//! Reads and formats strings in memory and in arrays.

use crate::Unavailable;
use crate::place::{Machine, Piece, read};
use crate::types::{Encoding, Type, TypeKind};

/// The number of bytes read at once.
const CHUNK: usize = 64;

/// The minimum number of equal bytes in a run that is shown with a count.
pub(super) const COUNTED: usize = 8;

/// Whether values of this type are one-byte characters, which form strings.
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

/// Returns the string at an address, up to a zero byte, with at most `most` bytes.
pub(super) fn terminated(address: u64, most: usize, machine: &dyn Machine) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < most {
        let mut chunk = [0; CHUNK];
        let at = address.saturating_add(bytes.len() as u64);
        // Near the end of memory, the string may exist without the rest of the chunk.
        let size = if machine.memory(at, &mut chunk) {
            CHUNK
        } else if machine.memory(at, &mut chunk[..1]) {
            1
        } else {
            return if bytes.is_empty() {
                "<outside memory>".to_owned()
            } else {
                format!("{}<outside memory>", quoted(&bytes))
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

/// Returns the string of `length` bytes at an address, of which at most `most` are shown.
pub(super) fn counted(address: u64, length: u64, most: usize, machine: &dyn Machine) -> String {
    let shown = usize::try_from(length).unwrap_or(usize::MAX).min(most);
    let mut bytes = vec![0; shown];
    if shown > 0 && !machine.memory(address, &mut bytes) {
        return "<outside memory>".into();
    }
    let more = if (shown as u64) < length { "…" } else { "" };
    format!("{}{more}", quoted(&bytes))
}

/// Returns text in quotation marks from code units of two or four bytes, which are UTF-16 or
/// UTF-32. Invalid units are written as escapes.
pub(super) fn wide(units: &[u32], bytes: u64) -> String {
    let decoded: Vec<Result<char, u32>> = match bytes {
        2 => char::decode_utf16(units.iter().map(|unit| *unit as u16))
            .map(|found| found.map_err(|lone| lone.unpaired_surrogate().into()))
            .collect(),
        _ => {
            let found = units.iter().map(|unit| char::from_u32(*unit).ok_or(*unit));
            found.collect()
        }
    };
    let mut text = String::from("\"");
    for run in decoded.chunk_by(|a, b| a.is_ok() && b.is_ok()) {
        match run {
            [Err(code @ ..=0xffff)] => text.push_str(&format!("\\u{code:04x}")),
            [Err(code)] => text.push_str(&format!("\\U{code:08x}")),
            run => {
                let part: String = run.iter().filter_map(|found| found.ok()).collect();
                let part = quoted(part.as_bytes());
                text.push_str(&part[1..part.len() - 1]);
            }
        }
    }
    text.push('"');
    text
}

/// Returns the code units at an address, or `None` if they do not all exist.
pub(super) fn units(
    address: u64,
    count: usize,
    bytes: u64,
    machine: &dyn Machine,
) -> Option<Vec<u32>> {
    let mut held = vec![0; count.checked_mul(usize::try_from(bytes).ok()?)?];
    let found = held.is_empty() || machine.memory(address, &mut held);
    found.then(|| of_bytes(&held, bytes))
}

/// Returns the code units in these bytes.
pub(super) fn of_bytes(held: &[u8], bytes: u64) -> Vec<u32> {
    let units = held.chunks_exact(usize::try_from(bytes).unwrap_or(1).max(1));
    let unit = |unit: &[u8]| {
        unit.iter()
            .rev()
            .fold(0, |all, byte| all << 8 | u32::from(*byte))
    };
    units.map(unit).collect()
}

/// Returns the string of code units at an address, up to a zero unit, with at most `most` units.
pub(super) fn wide_terminated(
    address: u64,
    bytes: u64,
    most: usize,
    machine: &dyn Machine,
) -> String {
    let mut found = Vec::new();
    while found.len() < most {
        let at = address.saturating_add(found.len() as u64 * bytes);
        match units(at, 1, bytes, machine).as_deref() {
            Some([0]) => return wide(&found, bytes),
            Some([unit]) => found.push(*unit),
            _ if found.is_empty() => return "<outside memory>".to_owned(),
            _ => return format!("{}<outside memory>", wide(&found, bytes)),
        }
    }
    format!("{}…", wide(&found, bytes))
}

/// Returns an array of code units as text, without trailing zeros, or `None` if the array does not
/// begin with text. `more` means that the array has more units.
pub(super) fn wide_array(units: &[u32], bytes: u64, more: bool) -> Option<String> {
    let end = units.iter().rposition(|unit| *unit != 0);
    let all = &units[..end.map_or(0, |last| last + 1)];
    let first = all.split(|unit| *unit == 0).next().unwrap_or_default();
    let is_visible = |unit: &u32| match char::from_u32(*unit) {
        Some(c) => !c.is_control() || matches!(c, '\x07'..='\r' | '\x1b'),
        None => bytes == 2 && (0xd800..0xe000).contains(unit),
    };
    let is_text = first.iter().all(is_visible) && (all.is_empty() || !first.is_empty());
    let more = if more { "…" } else { "" };
    is_text.then(|| format!("{}{more}", wide(all, bytes)))
}

/// The contents of a character array.
pub(super) struct Characters {
    bytes: Vec<u8>,
    /// Whether the array has more characters.
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
    /// Returns the string, without trailing NUL bytes. Returns `None` if the array does not begin
    /// with text, because its bytes then merely have a character type. Any bytes may follow the end
    /// of the text, because buffers are reused.
    pub(super) fn text(&self) -> Option<String> {
        let end = self.bytes.iter().rposition(|byte| *byte != 0);
        let all = &self.bytes[..end.map_or(0, |last| last + 1)];
        let length = all.iter().position(|byte| *byte == 0);
        let first = &all[..length.unwrap_or(all.len())];
        let visible = |c: char| !c.is_control() || matches!(c, '\x07'..='\r' | '\x1b');
        let is_text = match std::str::from_utf8(first) {
            Ok(text) => text.chars().all(visible),
            // The last character may continue after the bytes read.
            Err(error) => length.is_none() && self.more && error.error_len().is_none(),
        };
        if !is_text || (first.is_empty() && !all.is_empty()) {
            return None;
        }
        let more = if self.more { "…" } else { "" };
        Some(format!("{}{more}", quoted(all)))
    }

    /// Returns the runs of equal bytes, each with its byte and its length.
    pub(super) fn runs(&self) -> impl Iterator<Item = (u8, usize)> {
        let runs = self.bytes.chunk_by(|a, b| a == b);
        runs.map(|run| (run[0], run.len()))
    }
}

/// Returns text in quotation marks. Bytes that are not UTF-8, and invisible characters, are escaped
/// as in C, so that a C compiler reads them back as the same bytes.
pub fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    let mut questions = 0;
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            // Two question marks and one of these characters form a trigraph.
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

/// Writes an octal escape with three digits. C reads up to three digits in an octal escape, but
/// unlimited digits after `\x`.
fn octal(byte: u8, text: &mut String) {
    text.push_str(&format!("\\{byte:03o}"));
}

/// Returns a character in quotation marks.
pub(super) fn quoted_character(c: char) -> String {
    let mut text = String::from("'");
    escape(c, '\'', &mut text);
    text.push('\'');
    text
}

/// Writes a character as in C between quotation marks of this kind.
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
        // C has no other escape for these characters.
        None if code < 0xa0 && c.is_control() && quotation == '\'' => octal(code as u8, text),
        None if code < 0xa0 && c.is_control() => {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                octal(byte, text);
            }
        }
        // Quotation marks of the other kind need no escape.
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
    fn wide_characters_are_text() {
        assert_eq!(wide(&[0x61, 0xe9, 0xd83d, 0xde00], 2), "\"aé😀\"");
        assert_eq!(wide(&[0xd83d, 0x61, 0xdc00], 2), "\"\\ud83da\\udc00\"");
        assert_eq!(
            wide(&[0x1f600, 0x11_0000, 0x22], 4),
            "\"😀\\U00110000\\\"\""
        );
        assert_eq!(of_bytes(&[1, 2, 3, 4, 5], 2), [0x201, 0x403]);
        let array = |units| wide_array(units, 4, false);
        assert_eq!(array(&[0x61, 0, 0]).as_deref(), Some("\"a\""));
        assert_eq!(array(&[0, 0]).as_deref(), Some("\"\""));
        for units in [&[0, 0x61][..], &[1], &[0x11_0000]] {
            assert_eq!(array(units), None, "{units:?}");
        }
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
        // This text is truncated in the middle of a character, or broken.
        assert_eq!(text(b"a\xc3", true).as_deref(), Some(r#""a\303"…"#));
        // This buffer held a longer text before.
        assert_eq!(text(b"a\0\xff\0", false).as_deref(), Some(r#""a\000\377""#));
        for bytes in [&b"a\xc3"[..], b"a\xff", b"\0b", b"\x7fELF", b"\x01"] {
            assert_eq!(text(bytes, false), None, "{bytes:?}");
        }
    }
}
