//! Rewrites commands in text as calls to tools: `afterimage why app.aft --at @0x1f3#7` becomes `why
//! {"at":"@0x1f3#7"}`.

use serde_json::{Map, Value};

/// Commands, and the tools that answer the same questions.
const TOOLS: [(&str, &str); 8] = [
    ("why", "why"),
    ("why-not", "why_not"),
    ("state", "state"),
    ("slice", "slice"),
    ("diff", "diff"),
    ("paths", "paths"),
    ("values", "history"),
    ("memory", "history"),
];

/// Command-line options in reports, and the corresponding arguments of tools.
const OPTIONS: [(&str, &str); 8] = [
    ("--instances A..B, or --limit N", "`instances`: A..B"),
    ("--code all, or --frame N", "`frame`: N"),
    ("more: --depth N", "more: `depth`: N"),
    ("its --steps N goes further", "`offset` goes further"),
    (
        "of its operands with --operand",
        "of its operands with `operand`",
    ),
    ("ask with --at or --stdout", "ask with `at` or `stdout`"),
    ("--stdout text:", "`stdout`: text:"),
    ("; --code all shows them", ""),
];

/// Rewrites each command in a string as a call to the corresponding tool, if there is one.
pub(crate) fn commands_as_calls(text: &str) -> String {
    let mut text = text.to_owned();
    for (option, argument) in OPTIONS {
        text = text.replace(option, argument);
    }
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut rest = line;
        while let Some(at) = rest.find("afterimage ") {
            let (before, command) = rest.split_at(at);
            out.push_str(before);
            match call(&command["afterimage ".len()..]) {
                Some((call, used)) => {
                    out.push_str(&call);
                    rest = &command["afterimage ".len() + used..];
                }
                None => {
                    out.push_str("afterimage ");
                    rest = &command["afterimage ".len()..];
                }
            }
        }
        out.push_str(rest);
    }
    out
}

/// Returns the call for a command's words, and the number of bytes of these words.
fn call(text: &str) -> Option<(String, usize)> {
    let (name, mut used) = word(text)?;
    let (_, tool) = TOOLS.iter().find(|(command, _)| *command == name)?;
    let mut arguments = Map::new();
    let mut option: Option<String> = None;
    let mut is_first = true;
    while let Some((word, length)) = word(&text[used..]) {
        match (word.strip_prefix("--"), option.take()) {
            (Some(name), before) => {
                if let Some(before) = before {
                    arguments.insert(before, Value::Bool(true));
                }
                option = Some(name.replace('-', "_"));
            }
            (None, Some(name)) => {
                arguments.insert(name, Value::String(word));
            }
            // The first word without an option is the recording. Later such words are prose.
            (None, None) if is_first => is_first = false,
            (None, None) => break,
        }
        used += length;
    }
    if let Some(option) = option {
        arguments.insert(option, Value::Bool(true));
    }
    Some((format!("{tool} {}", Value::Object(arguments)), used))
}

/// Returns the first word of a command line, without its quotes, and its length in bytes, including
/// the space before it.
fn word(text: &str) -> Option<(String, usize)> {
    let start = text.len() - text.trim_start_matches(' ').len();
    let rest = &text[start..];
    let (mut word, mut quoted) = (String::new(), false);
    for (at, sign) in rest.char_indices() {
        match sign {
            '\'' => quoted = !quoted,
            ' ' | '\n' | ';' | ',' | ')' if !quoted => {
                return (!word.is_empty()).then_some((word, start + at));
            }
            sign => word.push(sign),
        }
    }
    (!word.is_empty() && !quoted).then_some((word, text.len()))
}

#[cfg(test)]
mod tests {
    use super::commands_as_calls;

    #[test]
    fn commands_become_calls_and_other_text_stays() {
        for (text, expected) in [
            (
                "  2: afterimage why a.aft --at @0x1#1 --operand left\n",
                "  2: why {\"at\":\"@0x1#1\",\"operand\":\"left\"}\n",
            ),
            (
                "see afterimage why-not 'a b.aft' --at x.c:4; or not",
                "see why_not {\"at\":\"x.c:4\"}; or not",
            ),
            (
                "afterimage slice a.aft --at f#2 --thin",
                "slice {\"at\":\"f#2\",\"thin\":true}",
            ),
            ("afterimage record a.wasm", "afterimage record a.wasm"),
            ("nothing\nof it", "nothing\nof it"),
            ("3 more: --depth N", "3 more: `depth`: N"),
        ] {
            assert_eq!(commands_as_calls(text), expected);
        }
    }
}
