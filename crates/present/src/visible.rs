//! Filters every report, so that no hidden character in a program's names reaches a terminal, a
//! file or another program.
//!
//! Takes text in pieces, and writes the same text with each hidden character as an escape. JSON
//! gets JSON escapes, which do not change its meaning. Line ends, tabs and our own colours stay.

use std::io::{self, Write};
use std::str::from_utf8;

use crate::{COLORS, is_hidden};

/// Writes text without hidden characters.
pub struct Visible<W> {
    to: W,
    /// Whether our own colours stay.
    colored: bool,
    form: Form,
    /// The beginning of an incomplete sequence.
    begun: Vec<u8>,
}

/// The kind of a report's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Any bytes.
    Binary,
    /// Text, in which hidden characters are replaced by visible escapes.
    Text,
    /// Text with colours, whose control sequences stay.
    ColoredText,
}

/// The form of escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The form is unknown before the first byte.
    Unknown,
    /// Escapes of Rust: `\u{202e}`.
    Text,
    /// Escapes of JSON: `\u202e`.
    Json,
    /// No escapes, because the content is not text.
    Binary,
}

impl<W: Write> Visible<W> {
    /// Creates a filter that writes to `to`. Binary content stays unchanged.
    pub fn new(to: W, content: Content) -> Self {
        Self {
            to,
            colored: content == Content::ColoredText,
            form: match content {
                Content::Text | Content::ColoredText => Form::Unknown,
                Content::Binary => Form::Binary,
            },
            begun: Vec::new(),
        }
    }

    /// Writes the rest of a sequence that the input left incomplete.
    ///
    /// # Errors
    /// Returns an error if the receiver fails.
    pub fn finish(&mut self) -> io::Result<()> {
        let begun = std::mem::take(&mut self.begun);
        for c in String::from_utf8_lossy(&begun).chars() {
            self.hidden(c)?;
        }
        Ok(())
    }

    /// Returns the receiver.
    pub fn into_inner(self) -> W {
        self.to
    }

    /// Writes the part of these bytes that is complete text, and returns the incomplete rest.
    fn put<'b>(&mut self, mut bytes: &'b [u8]) -> io::Result<&'b [u8]> {
        loop {
            let (text, rest) = match from_utf8(bytes) {
                Ok(text) => (text, None),
                Err(error) => {
                    let (text, rest) = bytes.split_at(error.valid_up_to());
                    let text = from_utf8(text).unwrap_or_default();
                    (text, Some((rest, error.error_len())))
                }
            };
            let left = self.text(text, rest.is_none())?;
            match rest {
                None => return Ok(&bytes[bytes.len() - left..]),
                Some((rest, None)) => return Ok(rest),
                Some((rest, Some(length))) => {
                    self.hidden(char::REPLACEMENT_CHARACTER)?;
                    bytes = &rest[length..];
                }
            }
        }
    }

    /// Writes text, and returns the number of bytes at its end that may begin a sequence. `last`
    /// says that this text ends the available input.
    fn text(&mut self, text: &str, last: bool) -> io::Result<usize> {
        let mut at = 0;
        while let Some(next) = text[at..].find(|c| is_hidden(c) && !matches!(c, '\n' | '\t')) {
            self.to.write_all(&text.as_bytes()[at..at + next])?;
            at += next;
            let rest = &text[at..];
            let colors = COLORS.iter().filter(|_| self.colored);
            let mut passing = colors.chain(["\r\n"].iter());
            if let Some(whole) = passing.clone().find(|whole| rest.starts_with(**whole)) {
                self.to.write_all(whole.as_bytes())?;
                at += whole.len();
            } else if last && passing.any(|whole| whole.starts_with(rest)) {
                return Ok(rest.len());
            } else if let Some(c) = rest.chars().next() {
                self.hidden(c)?;
                at += c.len_utf8();
            }
        }
        self.to.write_all(&text.as_bytes()[at..])?;
        Ok(0)
    }

    fn hidden(&mut self, c: char) -> io::Result<()> {
        match self.form {
            _ if !is_hidden(c) => write!(self.to, "{c}"),
            Form::Json => write!(self.to, "\\u{:04x}", u32::from(c)),
            _ => write!(self.to, "{}", c.escape_default()),
        }
    }
}

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.form == Form::Unknown
            && let Some(first) = bytes.first()
        {
            // Text that begins like a JSON document gets JSON escapes.
            self.form = match first {
                b'{' | b'[' => Form::Json,
                _ => Form::Text,
            };
        }
        if self.form == Form::Binary || (self.begun.is_empty() && !bytes.iter().any(may_be_hidden))
        {
            return self.to.write(bytes);
        }
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        self.begun = self.put(&all)?.to_vec();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Whether a byte may belong to a hidden character. This is true of few bytes in most text.
fn may_be_hidden(&byte: &u8) -> bool {
    match byte {
        b'\n' | b'\t' => false,
        // Control characters, the first bytes of U+0080, U+0600 and U+2000, and bytes that are not
        // text.
        0..0x20 | 0x7f | 0xc2 | 0xd8 | 0xe2 | 0xf5.. => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result for text that is written in pieces of this length.
    fn written(bytes: &[u8], length: usize, content: Content) -> String {
        let mut out = Visible::new(Vec::new(), content);
        for piece in bytes.chunks(length) {
            out.write_all(piece).unwrap();
        }
        out.finish().unwrap();
        String::from_utf8(out.into_inner()).unwrap()
    }

    const TEXT: &str =
        "a\x1b[31mb\x1b[1;31mc\x1b[0m…\u{202e}\u{2028}é\u{85}\r\nd\r\te\u{7f}\u{61c}\0";

    #[test]
    fn only_lines_tabs_and_our_colors_pass() {
        for length in 1..TEXT.len() {
            assert_eq!(
                written(TEXT.as_bytes(), length, Content::Text),
                "a\\u{1b}[31mb\\u{1b}[1;31mc\\u{1b}[0m…\\u{202e}\\u{2028}é\\u{85}\r\nd\\r\te\\u{7f}\\u{61c}\\u{0}"
            );
            assert_eq!(
                written(TEXT.as_bytes(), length, Content::ColoredText),
                "a\\u{1b}[31mb\x1b[1;31mc\x1b[0m…\\u{202e}\\u{2028}é\\u{85}\r\nd\\r\te\\u{7f}\\u{61c}\\u{0}"
            );
            let cut = written(b"x\xe2\x80", length, Content::Text);
            assert_eq!(cut, "x\u{fffd}");
            assert_eq!(written(b"x\r", length, Content::Text), "x\\r");
            assert_eq!(
                written(b"x\xffy\xf5z", length, Content::Text),
                "x\u{fffd}y\u{fffd}z"
            );
        }
    }

    #[test]
    fn json_means_the_same() {
        let json = serde_json::to_string(&[TEXT]).unwrap();
        for length in 1..json.len() {
            let written = written(json.as_bytes(), length, Content::ColoredText);
            assert!(!written.contains(is_hidden), "{written}");
            let read: Vec<String> = serde_json::from_str(&written).unwrap();
            assert_eq!(read, [TEXT]);
        }
    }

    #[test]
    fn what_is_no_text_stays() {
        let mut out = Visible::new(Vec::new(), Content::Binary);
        out.write_all(b"\0asm\xe2\x80").unwrap();
        out.finish().unwrap();
        assert_eq!(out.into_inner(), b"\0asm\xe2\x80");
    }
}
