//! Finds the variables that a branch's line of source names, and their values.

use afterimage_analyses::why::{BranchOutcome, CodeBlock};
use afterimage_ids::OpId;
use afterimage_present::{WhyNotVariable, WhyPlace};
use afterimage_replay::state::{Bodies, Path, Shape};
use afterimage_replay::whole_path::At;
use anyhow::Result;

use crate::ended;
use crate::explain::Scene;
use crate::text::harmless;

/// The maximum number of variables to show.
const MOST: usize = 4;
/// The maximum length of a value to show.
const LONGEST: usize = 32;

/// Returns the variables that the line of a branch names, with their values before the branch's
/// block executes the line. Returns no variables if the line is not the branch's own, because a
/// name may mean something else there. Leaves out variables whose place may hold another value.
pub(super) fn in_condition(
    scene: &Scene<'_, '_>,
    (function, block): CodeBlock,
    place: &WhyPlace,
    execution: &BranchOutcome,
) -> Result<Vec<WhyNotVariable>> {
    let own = place.around.is_none() && !place.library;
    let (Some(text), true) = (&place.text, own) else {
        return Ok(Vec::new());
    };
    // Without variables in the debug information, the names mean nothing.
    let Ok(variables) = scene.traced.variables() else {
        return Ok(Vec::new());
    };
    let code = scene.traced.program().function(function);
    let Some(block) = code.and_then(|code| code.cfg.blocks.get(block)) else {
        return Ok(Vec::new());
    };
    let (mut op, mut begins) = (block.ops.end.as_u32().saturating_sub(1), None);
    let line = |op| {
        let position = scene.position(function, OpId::from_u32(op))?;
        Ok::<_, anyhow::Error>(position.map(|position| (position.file, position.line)))
    };
    let branch = line(op)?;
    // The line itself may change a variable, as in `if (n++ < 9)`.
    while op >= block.ops.start.as_u32() && line(op)? == branch {
        begins = Some(OpId::from_u32(op));
        let Some(before) = op.checked_sub(1) else {
            break;
        };
        op = before;
    }
    let moment = At {
        time: execution.time,
        op: begins,
    };
    let loaded = scene.traced.module();
    let bodies = Bodies::new(&loaded.program, &loaded.bytes);
    let mut found = Vec::new();
    for name in named(text) {
        let Ok(path) = name.parse::<Path>() else {
            continue;
        };
        let known = (variables, &bodies);
        let shown = ended::before(scene.traced, scene.values, scene.names, known, path, moment)?;
        let Some(Ok(shown)) = shown else {
            continue;
        };
        let value = harmless(&shown.rendered.to_string());
        let is_missing = matches!(shown.rendered.shape, Shape::Missing(_));
        if is_missing || shown.written.is_some() || value.chars().count() > LONGEST {
            continue;
        }
        found.push(WhyNotVariable { name, value });
        if found.len() == MOST {
            break;
        }
    }
    Ok(found)
}

/// Returns the variables, with members, that a line of source may read. Leaves out the names of
/// functions, macros, types and paths, and the names that the line itself declares or assigns. Most
/// other words of the line name no variable.
fn named(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let mut found: Vec<String> = Vec::new();
    // Whether the words are a pattern: `let Some(n) =`, `for n in`.
    let mut declares = false;
    let mut i = 0;
    while i < bytes.len() {
        match at(i) {
            b'/' if matches!(at(i + 1), b'/' | b'*') => break,
            b'"' => {
                i += 1;
                while i < bytes.len() && at(i) != b'"' {
                    i += if at(i) == b'\\' { 2 } else { 1 };
                }
                i += 1;
            }
            b'\'' if at(i + 1) == b'\\' => i += 4,
            b'\'' if at(i + 2) == b'\'' => i += 3,
            b'=' if at(i + 1) != b'=' => {
                declares = false;
                i += 1;
            }
            byte if byte.is_ascii_digit() => {
                while is_word(at(i)) {
                    i += 1;
                }
            }
            byte if is_word(byte) => {
                let is_member = i > 0 && at(i - 1) == b'.' && !(i > 1 && at(i - 2) == b'.')
                    || i > 1 && matches!(&bytes[i - 2..i], b"->" | b"::");
                let begin = i;
                let mut ends = Vec::new();
                loop {
                    while is_word(at(i)) {
                        i += 1;
                    }
                    ends.push(i);
                    let skip = match (at(i), at(i + 1)) {
                        (b'.', next) if is_word(next) => 1,
                        (b'-', b'>') if is_word(at(i + 2)) => 2,
                        _ => break,
                    };
                    i += skip;
                }
                let mut next = i;
                while at(next) == b' ' {
                    next += 1;
                }
                match text.get(begin..ends[0]) {
                    Some("let" | "for" | "auto") => declares = true,
                    Some("in") => declares = false,
                    _ => {}
                }
                let is_path = at(i) == b':' && at(i + 1) == b':';
                let is_macro = at(i) == b'!' && at(i + 1) != b'=';
                if at(next) == b'(' {
                    // The last word is a method or a function.
                    ends.pop();
                }
                let is_assigned = is_assigned(&bytes[next..]);
                let end = ends.last().copied();
                if !(declares || is_member || is_path || is_macro || is_assigned)
                    && let Some(name) = end.and_then(|end| text.get(begin..end))
                    && !found.iter().any(|known| known == name)
                {
                    found.push(name.to_owned());
                }
            }
            byte => {
                let is_loop = byte == b'(' && text[..i].trim_end().ends_with("for");
                if is_loop || matches!(byte, b';' | b':') {
                    declares = false;
                }
                i += 1;
            }
        }
    }
    found
}

/// Whether an assignment follows, or the rest of a loop over a range: `= 1`, `+= 1`, `: all`.
fn is_assigned(rest: &[u8]) -> bool {
    match rest {
        [b'=', next, ..] => *next != b'=' && *next != b'>',
        [b'<', b'<', b'=', ..] | [b'>', b'>', b'=', ..] => true,
        [
            b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^',
            b'=',
            ..,
        ] => true,
        [b':', next, ..] => *next != b':',
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn variables_are_found_in_lines_of_c_and_rust() {
        for (text, names) in [
            (
                "if self.percent == 0 && self.mugs >= 10 {",
                "self.percent self.mugs",
            ),
            ("if let Some(word) = words.next() {", "words"),
            ("while let Some(n) = p.next && n > 1 {", "p.next n"),
            ("for order in &orders {", "orders"),
            (
                "if (a->balance < fee && !strcmp(name, \"x y\")) {",
                "a->balance fee name",
            ),
            ("for (i = 0; i < n; i++)", "i n"),
            ("for (auto x : list) total += x;", "list x"),
            ("int big = size > 0x1f ? LIMIT : 2;", "size"),
            ("n <<= 1; if (n >= m || n == 'q') // or k", "n m"),
            (
                "match event.kind { Kind::Big(x) => x, }",
                "match event.kind x",
            ),
            (
                "if list.iter().any(|x| *x == 1e5) { println!(\"{y}\") }",
                "list x",
            ),
            ("if (all[i].x <= v.y.size())", "all i v.y"),
        ] {
            let mut found = named(text);
            found.retain(|name| !matches!(&**name, "if" | "while" | "int" | "for" | "let" | "in"));
            assert_eq!(found.join(" "), names, "{text}");
        }
    }
}
