//! A page of the manual: its commands, their expected output, and the comparison.

use std::collections::HashMap;
use std::fmt;

/// A page, in order.
pub struct Page {
    parts: Vec<Part>,
}

enum Part {
    /// Lines that are not run.
    Text(Vec<String>),
    /// A command and its output.
    Exchange(Exchange),
}

/// A command and its output.
pub struct Exchange {
    /// The command without its prompt. It has several lines if it contains a here-document.
    pub command: String,
    /// The lines of its output, with `…` for unimportant parts.
    pub answer: Vec<String>,
}

impl Page {
    pub fn parse(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut console = false;
        for line in text.lines() {
            if line.starts_with("```") {
                console = line == "```console";
            } else if console && let Some(command) = line.strip_prefix("$ ") {
                parts.push(Part::Exchange(Exchange {
                    command: command.to_owned(),
                    answer: Vec::new(),
                }));
                continue;
            } else if console && let Some(Part::Exchange(last)) = parts.last_mut() {
                let more = line.strip_prefix("> ").or((line == ">").then_some(""));
                match more {
                    Some(more) if last.answer.is_empty() => {
                        last.command.push('\n');
                        last.command.push_str(more);
                    }
                    _ => last.answer.push(line.to_owned()),
                }
                continue;
            }
            match parts.last_mut() {
                Some(Part::Text(lines)) => lines.push(line.to_owned()),
                _ => parts.push(Part::Text(vec![line.to_owned()])),
            }
        }
        Self { parts }
    }

    pub fn exchanges(&self) -> impl Iterator<Item = &Exchange> {
        self.parts.iter().filter_map(|part| match part {
            Part::Exchange(exchange) => Some(exchange),
            Part::Text(_) => None,
        })
    }

    pub fn exchanges_mut(&mut self) -> impl Iterator<Item = &mut Exchange> {
        self.parts.iter_mut().filter_map(|part| match part {
            Part::Exchange(exchange) => Some(exchange),
            Part::Text(_) => None,
        })
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Part::Text(lines) => lines.iter().try_for_each(|line| writeln!(f, "{line}"))?,
                Part::Exchange(Exchange { command, answer }) => {
                    let command = command.replace('\n', "\n> ").replace("> \n", ">\n");
                    writeln!(f, "$ {command}")?;
                    answer.iter().try_for_each(|line| writeln!(f, "{line}"))?;
                }
            }
        }
        Ok(())
    }
}

/// The places in the code on the page, with the corresponding current places.
pub type Places = HashMap<String, String>;

/// Replaces the places in a command by the current places.
pub fn translated(command: &str, places: &Places) -> String {
    let mut out = String::new();
    for (text, place) in pieces(command) {
        out.push_str(text);
        out.push_str(places.get(place).map_or(place, String::as_str));
    }
    out
}

/// Whether lines match a page. Records the current places for the page's places.
pub fn matches(shown: &[String], printed: &[String], places: &mut Places) -> bool {
    let parts: Vec<_> = shown.split(|line| line == "…").collect();
    let (first, rest) = parts.split_first().expect("a split has a part");
    let same = |shown: &[String], printed: &[String]| {
        let lines = shown.iter().zip(printed);
        shown.len() == printed.len()
            && Vec::from_iter(lines)
                .iter()
                .all(|(a, b)| line_matches(a, b))
    };
    let mut note = |shown: &[String], printed: &[String]| {
        for (shown, printed) in shown.iter().zip(printed) {
            let (shown, printed) = (pieces(shown), pieces(printed));
            if shown.len() == printed.len() {
                let pairs = shown.iter().zip(&printed);
                places.extend(pairs.map(|(a, b)| (a.1.to_owned(), b.1.to_owned())));
            }
        }
    };
    let Some(begin) = printed
        .get(..first.len())
        .filter(|begin| same(first, begin))
    else {
        return false;
    };
    note(first, begin);
    let mut left = &printed[first.len()..];
    let Some((last, between)) = rest.split_last() else {
        return left.is_empty();
    };
    // Match each part as early as possible, to leave the most text for the following parts.
    for part in between {
        let mut starts = 0..=left.len().saturating_sub(part.len());
        let found = starts.find(|&at| {
            left.get(at..at + part.len())
                .is_some_and(|it| same(part, it))
        });
        let Some(at) = found else { return false };
        note(part, &left[at..at + part.len()]);
        left = &left[at + part.len()..];
    }
    let Some(end) = left.len().checked_sub(last.len()).map(|at| &left[at..]) else {
        return false;
    };
    note(last, end);
    same(last, end)
}

/// Whether a line matches a page's line, in which `…` means anything.
fn line_matches(shown: &str, printed: &str) -> bool {
    let (shown, printed) = (steady(shown), steady(printed));
    let mut parts = shown.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut left) = printed.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return left.is_empty();
    };
    for part in parts {
        let Some(at) = left.find(part) else {
            return false;
        };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

/// Removes the alignment of a line, and the parts that depend on the compiler: places in the code,
/// times and sizes.
fn steady(line: &str) -> String {
    let mut out: String = pieces(line)
        .iter()
        .flat_map(|(text, place)| match place {
            &"" => [text, ""],
            _ => [text, "@"],
        })
        .collect();
    for mark in ["t=", " ("] {
        let mut from = 0;
        while let Some(at) = out[from..].find(mark) {
            from += at + mark.len();
            let number = |c: char| c.is_ascii_digit() || c == ',' || c == '.';
            let length = out[from..].find(|c| !number(c));
            let end = from + length.unwrap_or(out.len() - from);
            let mut units = [" B)", " kB)", " MB)"].iter();
            if mark == "t=" {
                out.replace_range(from..end, "");
            } else if let Some(unit) = units.find(|unit| out[end..].starts_with(**unit)) {
                out.replace_range(from..end + unit.len(), ")");
            }
        }
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Splits a line into pieces of text, each with the place after it: `@0x1f3`. The last piece has no
/// place.
fn pieces(line: &str) -> Vec<(&str, &str)> {
    let mut pieces = Vec::new();
    let mut left = line;
    while let Some(at) = left.find("@0x") {
        let digits = &left[at + 3..];
        let length = digits
            .find(|c: char| !c.is_ascii_hexdigit())
            .unwrap_or(digits.len());
        let end = at + 3 + length;
        pieces.push((&left[..at], &left[at..end]));
        left = &left[end..];
    }
    pieces.push((left, ""));
    pieces
}

#[test]
fn what_is_not_what_a_page_shows_is_found() {
    let lines = |text: &str| Vec::from_iter(text.lines().map(str::to_owned));
    let check = |shown: &str, printed: &str| {
        let mut places = Places::new();
        let same = matches(&lines(shown), &lines(printed), &mut places);
        (same, places)
    };
    for (shown, printed, same) in [
        ("a\nb", "a\nb", true),
        ("a\nb", "a", false),
        ("a", "a\nb", false),
        ("a\n…\nd", "a\nb\nc\nd", true),
        ("a\n…\nd", "a\nd", true),
        ("a\n…\nd", "a\nb\nc", false),
        ("…\nb\n…\nb\n…", "a\nb\nc", false),
        ("…\nb\n…\nb\n…", "b\nb", true),
        ("a\n…\na", "a", false),
        ("x = … at t=7", "x = 5 (0x5)  at t=1,234", true),
        ("x = … at t=7", "y = 5 (0x5)  at t=1,234", false),
        (
            "recorded in a.aft (1.5 kB)",
            "recorded in a.aft (23 B)",
            true,
        ),
        (
            "recorded in a.aft (1.5 kB)",
            "recorded in b.aft (1.5 kB)",
            false,
        ),
        ("add @0x1f: 5", "add @0x20: 5", true),
        ("add @0x1f: 5", "add @0x20: 6", false),
    ] {
        assert_eq!(check(shown, printed).0, same, "{shown:?} {printed:?}");
    }
    let (_, places) = check(
        "a\n…\n5 at @0x1f#1, 6 at @0x2",
        "a\nb\n5 at @0xa#1, 6 at @0xb",
    );
    let command = "afterimage why --at @0x1f#1 --not @0x2 --nor @0x3";
    assert_eq!(
        translated(command, &places),
        "afterimage why --at @0xa#1 --not @0xb --nor @0x3"
    );
}
