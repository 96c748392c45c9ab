//! Strings in memory and in arrays.

use crate::Unavailable;
use crate::place::{Machine, Piece, read};
use crate::types::{Encoding, Type, TypeKind};

/// So many bytes are read at once.
const CHUNK: usize = 64;

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
            return format!("{}<outside the memory>", quoted(&bytes));
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

/// An array of characters: up to the zeros at its end.
pub(super) fn array(
    pieces: &[Piece],
    count: u64,
    most: usize,
    machine: &dyn Machine,
) -> Result<String, Unavailable> {
    let shown = usize::try_from(count).unwrap_or(usize::MAX).min(most);
    let mut bytes = vec![0; shown];
    read(pieces, &mut bytes, machine)?;
    if (shown as u64) < count {
        return Ok(format!("{}…", quoted(&bytes)));
    }
    let end = bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    Ok(quoted(&bytes[..end]))
}

/// Text in quotation marks; what is not UTF-8 and what cannot be seen is escaped.
fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\'' => text.push(c),
                '\0' => text.push_str("\\0"),
                c => text.extend(c.escape_debug()),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text.push('"');
    text
}

/// A character in quotation marks.
pub(super) fn quoted_character(c: char) -> String {
    match c {
        '"' => "'\"'".into(),
        c => format!("'{}'", c.escape_debug()),
    }
}
