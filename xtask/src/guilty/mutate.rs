//! Makes a bug by changing a line of source code.

use super::Random;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The kind of a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    Operator,
    Constant,
    OffByOne,
    WrongField,
    MissingUpdate,
}

/// All kinds.
pub const KINDS: [Kind; 5] = [
    Kind::Operator,
    Kind::Constant,
    Kind::OffByOne,
    Kind::WrongField,
    Kind::MissingUpdate,
];

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Constant => "constant",
            Self::OffByOne => "off by one",
            Self::WrongField => "wrong field",
            Self::MissingUpdate => "missing update",
        }
    }
}

/// The members of each variable that a file uses.
pub type Fields = BTreeMap<String, Vec<String>>;

/// Operators with spaces around them, and their replacements.
const OPERATORS: [(&str, &[&str]); 20] = [
    ("<", &["<=", ">"]),
    ("<=", &["<", ">"]),
    (">", &[">=", "<"]),
    (">=", &[">", "<"]),
    ("==", &["!="]),
    ("!=", &["=="]),
    ("+", &["-"]),
    ("-", &["+"]),
    ("*", &["+"]),
    ("/", &["*"]),
    ("&&", &["||"]),
    ("||", &["&&"]),
    ("&", &["|"]),
    ("|", &["&"]),
    ("^", &["|"]),
    ("<<", &[">>"]),
    (">>", &["<<"]),
    ("+=", &["-="]),
    ("-=", &["+="]),
    ("|=", &["&="]),
];

/// Returns the line with a random bug of a kind, among all bugs that fit. Returns `None` if none
/// fits.
pub fn mutated(line: &str, kind: Kind, fields: &Fields, random: &mut Random) -> Option<String> {
    let code = masked(line);
    let all = match kind {
        Kind::Operator => operators(&code),
        Kind::Constant => constants(&code),
        Kind::OffByOne => off_by_one(&code),
        Kind::WrongField => wrong_fields(&code, fields),
        Kind::MissingUpdate => missing_updates(&code),
    };
    if all.is_empty() {
        return None;
    }
    let (at, length, text) = &all[random.below(all.len())];
    let mut changed = line.to_owned();
    changed.replace_range(*at..at + length, text);
    Some(changed)
}

/// A replacement, with its place, the number of bytes to replace, and the new text.
type Change = (usize, usize, String);

/// Returns the line with spaces in place of quotes and comments, so that only code is changed.
fn masked(line: &str) -> String {
    let trimmed = line.trim_start();
    if ["#", "//", "/*", "*"]
        .iter()
        .any(|begin| trimmed.starts_with(begin))
    {
        return " ".repeat(line.len());
    }
    let mut out = String::with_capacity(line.len());
    let (mut quote, mut escaped) = (None, false);
    for (at, sign) in line.char_indices() {
        let rest = &line[at..];
        if quote.is_none() && (rest.starts_with("//") || rest.starts_with("/*")) {
            break;
        }
        match (quote, sign) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(mark), sign) if mark == sign => quote = None,
            (None, '"') => quote = Some(sign),
            // A Rust lifetime has no second quote nearby.
            (None, '\'') if rest[1..].chars().take(4).any(|sign| sign == '\'') => {
                quote = Some(sign);
            }
            (None, sign) if sign.is_ascii() => {
                out.push(sign);
                continue;
            }
            _ => {}
        }
        out.extend(std::iter::repeat_n(' ', sign.len_utf8()));
    }
    out.extend(std::iter::repeat_n(' ', line.len() - out.len()));
    out
}

fn operators(code: &str) -> Vec<Change> {
    let mut all = Vec::new();
    for (operator, others) in OPERATORS {
        let spaced = format!(" {operator} ");
        for (at, _) in code.match_indices(&spaced) {
            let change = |other: &&str| (at + 1, operator.len(), (*other).to_owned());
            all.extend(others.iter().map(change));
        }
    }
    all
}

fn is_word(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || sign == '_'
}

/// Returns the words of a line, each with its place.
fn words(code: &str) -> Vec<(usize, &str)> {
    let mut all = Vec::new();
    let mut begin = None;
    for (at, sign) in code.char_indices().chain([(code.len(), ' ')]) {
        match (begin, is_word(sign)) {
            (None, true) => begin = Some(at),
            (Some(from), false) => {
                all.push((from, &code[from..at]));
                begin = None;
            }
            _ => {}
        }
    }
    all
}

fn constants(code: &str) -> Vec<Change> {
    let mut all = Vec::new();
    for (at, word) in words(code) {
        let Ok(number) = word.parse::<u32>() else {
            continue;
        };
        let is_part = code[..at].ends_with('.') || code[at + word.len()..].starts_with('.');
        if is_part {
            continue;
        }
        for other in [
            number.saturating_add(1),
            number.saturating_sub(1),
            number.saturating_mul(2).saturating_add(3),
        ] {
            if other != number {
                all.push((at, word.len(), other.to_string()));
            }
        }
    }
    all
}

fn is_name(word: &str) -> bool {
    word.chars().all(is_word) && !word.starts_with(|sign: char| sign.is_ascii_digit())
}

fn off_by_one(code: &str) -> Vec<Change> {
    let mut all = Vec::new();
    for (at, word) in words(code) {
        let (before, after) = (&code[..at], &code[at + word.len()..]);
        let is_index = before.ends_with('[') && after.starts_with(']');
        let compared = ["< ", "<= ", "> ", ">= ", "== "]
            .iter()
            .any(|one| before.ends_with(one));
        let ends = after.trim_start().starts_with([')', ';', '{', '&', '|']);
        if is_name(word) && (is_index || compared && ends) {
            for sign in ['+', '-'] {
                all.push((at, word.len(), format!("{word} {sign} 1")));
            }
        }
    }
    all
}

/// Returns the members in a line, each with its place, its variable, and its name.
fn members(code: &str) -> Vec<(usize, &str, &str)> {
    let words = words(code);
    let pairs = words.windows(2);
    let found = pairs.filter_map(|pair| {
        let [(begin, of), (at, name)] = pair else {
            return None;
        };
        let between = &code[begin + of.len()..*at];
        let is_call = code[at + name.len()..]
            .trim_start()
            .starts_with(['(', ':', '!']);
        let joined = between == "." || between == "->";
        (joined && !is_call && is_name(of) && is_name(name)).then_some((*at, *of, *name))
    });
    found.collect()
}

/// Returns the members of all variables in a file.
pub fn fields(text: &str) -> Fields {
    let mut all = Fields::new();
    for line in text.lines() {
        let code = masked(line);
        for (_, of, name) in members(&code) {
            let known = all.entry(of.to_owned()).or_default();
            if !known.iter().any(|other| other == name) {
                known.push(name.to_owned());
            }
        }
    }
    all
}

fn wrong_fields(code: &str, fields: &Fields) -> Vec<Change> {
    let mut all = Vec::new();
    for (at, of, name) in members(code) {
        let others = fields.get(of).into_iter().flatten();
        for other in others.filter(|other| *other != name) {
            all.push((at, name.len(), other.clone()));
        }
    }
    all
}

/// Returns the whole statement, if it is an assignment on a line of its own.
fn missing_updates(code: &str) -> Vec<Change> {
    let trimmed = code.trim();
    let begin = code.len() - code.trim_start().len();
    let whole = || vec![(begin, trimmed.len(), ";".to_owned())];
    let Some(statement) = trimmed.strip_suffix(';').filter(|text| !text.contains(';')) else {
        return Vec::new();
    };
    let stepped = statement
        .strip_suffix("++")
        .or(statement.strip_suffix("--"));
    if let Some(name) = stepped {
        return if name
            .chars()
            .all(|sign| is_word(sign) || ".->[]".contains(sign))
        {
            whole()
        } else {
            Vec::new()
        };
    }
    let Some((left, right)) = statement.split_once('=') else {
        return Vec::new();
    };
    let is_comparison = right.starts_with('=')
        || left.ends_with(['!', '<', '>']) && !left.ends_with("<<") && !left.ends_with(">>");
    let left = left
        .trim_end_matches(['+', '-', '*', '/', '|', '&', '^', '<', '>', '%'])
        .trim();
    let is_place = !left.is_empty()
        && left
            .chars()
            .all(|sign| is_word(sign) || ".->[]*()+&".contains(sign));
    if is_comparison || !is_place {
        return Vec::new();
    }
    whole()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(line: &str, kind: Kind) -> Vec<String> {
        let text = "a.first = a.second; s->strm->avail_in = s->pending;";
        let fields = fields(text);
        let mut found = std::collections::BTreeSet::new();
        for seed in 0..200 {
            found.extend(mutated(line, kind, &fields, &mut Random(seed)));
        }
        found.into_iter().collect()
    }

    #[test]
    fn each_kind_changes_what_it_is_for() {
        assert_eq!(
            all("if (x < y) z();", Kind::Operator),
            ["if (x <= y) z();", "if (x > y) z();"]
        );
        assert_eq!(
            all("x = 7; // 8", Kind::Constant),
            ["x = 17; // 8", "x = 6; // 8", "x = 8; // 8"]
        );
        assert_eq!(
            all("x = a[i];", Kind::OffByOne),
            ["x = a[i + 1];", "x = a[i - 1];"]
        );
        assert_eq!(all("x = a.first;", Kind::WrongField), ["x = a.second;"]);
        assert_eq!(all("  s->x += 4;", Kind::MissingUpdate), ["  ;"]);
        assert_eq!(all("  i++;", Kind::MissingUpdate), ["  ;"]);
    }

    #[test]
    fn texts_comments_and_declarations_stay() {
        for kind in KINDS {
            assert!(all("// x = a[i] + 7;", kind).is_empty());
            assert!(all("print(\"x = 7 + 8\");", kind).is_empty());
        }
        assert!(all("int x = y;", Kind::MissingUpdate).is_empty());
        assert!(all("let x = y;", Kind::MissingUpdate).is_empty());
        assert!(all("x == y;", Kind::MissingUpdate).is_empty());
    }
}
