//! Detects modules by the beginning of the file.

/// The number of bytes at the beginning of a file that decide whether the file is a module. A
/// module after longer comments is not detected.
pub const BEGINNING: u64 = 1 << 16;

/// The possible first words of a module in text form. They begin the module itself, or one of its
/// fields.
const FIELDS: [&str; 13] = [
    "module",
    "component",
    "type",
    "rec",
    "import",
    "func",
    "table",
    "memory",
    "global",
    "export",
    "start",
    "elem",
    "data",
];

/// Whether a file with this beginning is a module in binary form or, after white space and
/// comments, in text form.
pub fn is_module(beginning: &[u8]) -> bool {
    if beginning.starts_with(b"\0asm") {
        return true;
    }
    let text = String::from_utf8_lossy(beginning);
    let field = behind_comments(&text)
        .and_then(|rest| rest.strip_prefix('('))
        .and_then(behind_comments);
    field.is_some_and(|field| {
        let end = field.find(|c: char| !c.is_ascii_lowercase());
        FIELDS.contains(&&field[..end.unwrap_or(field.len())])
    })
}

/// Returns the text after white space and comments. Comments may nest. Returns `None` if a comment
/// does not end.
fn behind_comments(mut text: &str) -> Option<&str> {
    loop {
        text = text.trim_start();
        if text.starts_with(";;") {
            text = text.split_once('\n')?.1;
        } else if text.starts_with("(;") {
            let mut depth = 0;
            loop {
                let next = text.find(['(', ';'])?;
                text = &text[next..];
                let (step, length) = match text {
                    open if open.starts_with("(;") => (1, 2),
                    close if close.starts_with(";)") => (-1, 2),
                    _ => (0, 1),
                };
                depth += step;
                text = &text[length..];
                if depth == 0 {
                    break;
                }
            }
        } else {
            return Some(text);
        }
    }
}
