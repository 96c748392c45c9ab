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
const OPTIONS: [(&str, &str); 9] = [
    ("--instances A..B, or --limit N", "`instances`: A..B"),
    ("--code all, or --frame N", "`frame`: N"),
    ("more: --depth N", "more: `depth`: N"),
    ("more: --limit N", "more: `limit`: N"),
    ("its --steps N goes further", "`offset` goes further"),
    (
        "of its operands with --operand",
        "of its operands with `operand`",
    ),
    ("ask with --at or --stdout", "ask with `at` or `stdout`"),
    ("--stdout text:", "`stdout`: text:"),
    ("; --code all shows them", ""),
];

/// A call to a tool: its name and its arguments.
pub(crate) type Call = (&'static str, Map<String, Value>);

/// Rewrites each command in a string as a call to the corresponding tool, if there is one. The
/// calls are about the same recording, so they do not name it.
pub(crate) fn commands_as_calls(text: &str) -> String {
    rewritten(text, |(_, arguments)| {
        arguments.remove("recording");
    })
}

/// Like [`commands_as_calls`], but the calls name their recordings. Also returns the calls.
pub(crate) fn calls_about_several(text: &str) -> (String, Vec<Call>) {
    let mut all = Vec::new();
    let text = rewritten(text, |call| all.push(call.clone()));
    (text, all)
}

fn rewritten(text: &str, mut change: impl FnMut(&mut Call)) -> String {
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
                Some((mut call, used)) => {
                    change(&mut call);
                    let (tool, arguments) = call;
                    out.push_str(&format!("{tool} {}", Value::Object(arguments)));
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

/// Rewrites the options of the command line that are also arguments of a tool: `--after 7` becomes
/// "`after` 7".
pub(crate) fn options_as_arguments(text: &str, known: &[&String]) -> String {
    let mut parts = text.split("--");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|sign: char| !sign.is_ascii_lowercase() && sign != '-');
        let (option, rest) = part.split_at(end.unwrap_or(part.len()));
        let name = option.replace('-', "_");
        if known.iter().any(|known| **known == name) {
            out += &format!("`{name}`{rest}");
        } else {
            out += "--";
            out += part;
        }
    }
    out
}

/// Returns the call for a command's words, and the number of bytes of these words.
fn call(text: &str) -> Option<(Call, usize)> {
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
            // The first word without an option is the recording. Later words without an option are
            // prose.
            (None, None) if is_first => {
                arguments.insert("recording".to_owned(), Value::String(word));
                is_first = false;
            }
            (None, None) => break,
        }
        used += length;
    }
    if let Some(option) = option {
        arguments.insert(option, Value::Bool(true));
    }
    Some(((*tool, arguments), used))
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
    use serde_json::json;

    use super::{calls_about_several, commands_as_calls};

    #[test]
    fn calls_about_several_recordings_name_them() {
        let text = "  afterimage why a.aft --at f#1\n  afterimage why 'b c.aft' --at f#1\n";
        let (text, calls) = calls_about_several(text);
        let recordings = calls.iter().map(|(_, arguments)| &arguments["recording"]);
        assert_eq!(Vec::from_iter(recordings), ["a.aft", "b c.aft"]);
        let line =
            |recording: &str| format!("  why {}\n", json!({ "at": "f#1", "recording": recording }));
        let sorted = |line: &str| {
            let mut signs = Vec::from_iter(line.chars());
            signs.sort_unstable();
            signs
        };
        assert_eq!(sorted(&text), sorted(&(line("a.aft") + &line("b c.aft"))));
    }

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
