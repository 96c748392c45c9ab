//! Makes program text (names, paths, source, strings) safe, so that no terminal, browser or editor
//! interprets it as a command.
//!
//! Takes any text, and returns one line in which each hidden character is an escape.

use std::borrow::Cow;

/// Whether a character is invisible but has an effect. Such a character controls a terminal,
/// changes the direction of text, or ends a line (Unicode's Bidi_Control, its separators of lines
/// and paragraphs, and all of Cc).
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Returns text on one line without hidden characters. A tab becomes four spaces.
pub fn plain(text: &str) -> String {
    visible(text).replace('\t', "    ")
}

/// Returns text on one line without hidden characters, but keeps tabs.
fn visible(text: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| is_hidden(c) && c != '\t';
    if !text.contains(is_escaped) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_escaped(c) {
            safe.extend(c.escape_default())
        } else {
            safe.push(c)
        }
    }
    safe.into()
}

/// Returns text on one line with each hidden character, including tabs, as an escape, for formats
/// that other programs read.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    match visible(text) {
        text if text.contains('\t') => text.replace('\t', "\\t").into(),
        text => text,
    }
}

#[cfg(test)]
mod tests {
    use super::{escaped, is_hidden, plain};

    #[test]
    fn hidden_characters_are_escapes() {
        assert_eq!(plain("a\x1b[2Jb\r"), "a\\u{1b}[2Jb\\r");
        assert_eq!(
            plain("a\u{202e}\u{2028}\u{85}b"),
            "a\\u{202e}\\u{2028}\\u{85}b"
        );
        assert_eq!(plain("a\tb"), "a    b");
        assert_eq!(escaped("a\tb\n"), "a\\tb\\n");
        assert_eq!(plain("plain é"), "plain é");
    }

    /// The ranges are those of Unicode's Bidi_Control, Zl and Zp.
    #[test]
    fn what_turns_text_around_is_hidden() {
        let told = [
            0x61c, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066,
            0x2067, 0x2068, 0x2069,
        ];
        let all = ('\0'..=char::MAX).filter(|&c| is_hidden(c) && !c.is_control());
        assert!(all.eq(told.map(|c| char::from_u32(c).unwrap())));
    }
}
