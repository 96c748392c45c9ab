//! Prepares text for one line of a message.

use std::path::Path;

use afterimage_present::{is_hidden, shell_name};

/// Formats the name of a file for pasting into a command.
pub fn pasted(path: &Path) -> String {
    shell_name(&path.display().to_string())
}

/// Converts text that may come from a guest or a hostile file to one line that cannot control a
/// terminal.
pub fn harmless(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => safe.push(' '),
            c if is_hidden(c) => safe.extend(c.escape_default()),
            c => safe.push(c),
        }
    }
    safe
}

/// Formats an error and its causes on one line, outermost first, without repetition.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.contains(&cause) {
            continue;
        }
        if cause.starts_with(&text) {
            text.clear();
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&cause);
    }
    text
}
