//! Reports a run line by line, with the variables that changed.

use std::collections::VecDeque;
use std::io::Write;

use afterimage_ids::{FuncId, OpId, OrigOffset};
use afterimage_profile::SourceLine;
use afterimage_replay::state::Shown;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Stretch, TraceHead, TraceRow};
use crate::document::TakeRows;
use crate::document::objects::{Function, Position, position};
use crate::name::without_parameters;
use crate::number::grouped;
use crate::sources::Cache;
use crate::state::StateVariable;
use crate::table::{Paint, plain, shortened, width};
use crate::{PresentError, Sources, Style};

/// An arrival at a line.
#[derive(Clone, Debug)]
pub struct LineEntry {
    /// The time of its block.
    pub time: u64,
    /// The next operator; `None` if the run ended before that operator.
    pub op: Option<OpId>,
    /// The offset of that operator.
    pub offset: Option<OrigOffset>,
    /// The function.
    pub function: FuncId,
    /// The function's name.
    pub name: String,
    /// The inlined function that contains the line.
    pub inlined: Option<String>,
    /// The line.
    pub line: SourceLine,
    /// The number of enclosing activations.
    pub depth: usize,
    /// The time of the activation's first block.
    pub entered: u64,
    /// Whether it is the activation's first line.
    pub begins: bool,
    /// The variables that the activation's previous line declared or changed or, at its first line,
    /// the parameters. `None` if they were not requested. An error says why they are unknown.
    pub changed: Option<Result<Vec<ChangedVariable>, String>>,
}

/// A variable that changed.
#[derive(Clone, Debug)]
pub struct ChangedVariable {
    /// Its value now.
    pub now: Shown,
    /// Its previous value, if it had one. `None` at the line that declares it.
    pub before: Option<String>,
    /// The part that changed, if the text leaves parts out: the suffix of its name, and its text.
    pub part: Option<(String, String)>,
}

/// Returns the next line, or `None` at the end.
pub type NextLine<'s> = dyn FnMut() -> Result<Option<LineEntry>, PresentError> + 's;

/// An arrival at a line. The variables are as they were on arrival, before the line was executed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LineRow {
    /// The time of its block.
    pub t: u64,
    /// The number of enclosing activations.
    pub depth: usize,
    /// The function whose code was executed.
    pub function: Function,
    /// The name of the inlined function that contains the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inlined: Option<String>,
    /// The time of the activation's first block.
    pub entered_t: u64,
    /// Whether it is the activation's first line.
    pub begins: bool,
    /// The offset in the original module of the next operator; `null` if the run ended before that
    /// operator.
    pub offset: Option<u32>,
    /// The line.
    #[serde(serialize_with = "position")]
    #[schemars(with = "Option<Position>")]
    pub source: Option<SourceLine>,
    /// The variables that the activation's previous line declared or changed or, at its first line,
    /// the parameters. Absent if they are unknown or were not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<Vec<ChangedRow>>,
    /// Why the variables are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// A variable that changed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ChangedRow {
    /// Its value now.
    #[serde(flatten)]
    pub variable: StateVariable,
    /// Its previous value, if it had one. Absent at the line that declares it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The parts of a structure, an array or a map that changed. Absent if many parts changed, and
    /// for other values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<ChangedPartRow>>,
}

/// A part of a variable that changed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ChangedPartRow {
    /// The part, as an expression: `accounts[1].balance`.
    pub name: String,
    /// Its value now.
    pub value: String,
}

impl From<&LineEntry> for LineRow {
    fn from(entry: &LineEntry) -> Self {
        let row = |changed: &ChangedVariable| ChangedRow {
            variable: StateVariable::from(&changed.now),
            before: changed.before.clone(),
            parts: changed.parts().map(|parts| {
                let parts = parts.into_iter();
                let part = |(name, value): (String, &str)| ChangedPartRow {
                    name,
                    value: value.to_owned(),
                };
                parts.map(part).collect()
            }),
        };
        let changed = entry.changed.as_ref().map(Result::as_ref).transpose();
        Self {
            t: entry.time,
            depth: entry.depth,
            function: Function {
                index: entry.function.as_u32(),
                name: entry.name.clone(),
            },
            inlined: entry.inlined.clone(),
            entered_t: entry.entered,
            begins: entry.begins,
            offset: entry.offset.map(|offset| offset.0),
            source: Some(entry.line.clone()),
            unavailable: changed.err().cloned(),
            changed: changed
                .ok()
                .flatten()
                .map(|all| all.iter().map(row).collect()),
        }
    }
}

/// Writes lines for programs. `length` is the number of blocks that the run executed.
///
/// # Errors
/// Returns an error if `to` fails or the run cannot be followed.
pub fn line_rows(
    to: &mut dyn TakeRows<TraceHead>,
    next: &mut NextLine<'_>,
    stretch: &Stretch,
    function: Option<Function>,
    length: u64,
    limit: Option<u64>,
) -> Result<(), PresentError> {
    to.head(TraceHead {
        level: "line",
        first: stretch.window.first,
        last: stretch.window.last,
        length,
        left_out: String::new(),
        reverse: stretch.reverse,
        function,
    })?;
    let mut room = limit.unwrap_or(u64::MAX);
    while room > 0
        && let Some(entry) = next()?
    {
        to.row(TraceRow::Line(LineRow::from(&entry)))?;
        room -= 1;
    }
    Ok(())
}

/// The minimum width of a place.
const PLACE: usize = 16;
/// The width of a source line. A line without changes may be wider.
const SOURCE: usize = 44;
/// The minimum width of a source line.
const LEAST_SOURCE: usize = 20;
/// The maximum number of levels of calls that are indented.
const LEVELS: usize = 8;
/// The maximum number of characters in a value.
const VALUE: usize = 60;

/// The maximum number of rows to hold back until their changes are known.
const HELD: usize = 10_000;

/// The form in which lines are written for people.
#[derive(Clone, Copy)]
pub struct LineStyle<'s> {
    /// Source text.
    pub sources: &'s dyn Sources,
    /// The terminal.
    pub style: Style,
    /// Whether later lines come first.
    pub reverse: bool,
    /// The largest possible time.
    pub last: u64,
}

/// Writes lines for people. A heading names the function wherever control enters it or returns to
/// it. Each line shows the variables that it or its calls changed. The changes are known only at
/// the next line of the activation, so rows are held back until then.
///
/// Returns the entry with which to continue, if there are more than `limit` entries.
///
/// # Errors
/// Returns an error if `out` fails or the run cannot be followed.
pub fn lines_text(
    out: &mut dyn Write,
    how: LineStyle<'_>,
    next: &mut NextLine<'_>,
    limit: Option<u64>,
) -> Result<Option<LineEntry>, PresentError> {
    let mut lines = Lines::new(how);
    let mut read = 0;
    let mut further = None;
    while let Some(entry) = next()? {
        let settled = lines.settle(&entry);
        if limit == Some(read) {
            further = Some(entry);
            break;
        }
        read += 1;
        lines.hold(entry, settled);
        lines.write(out, false)?;
    }
    lines.write(out, true)?;
    if read == 0 {
        writeln!(out, "no line is executed there")?;
    }
    Ok(further)
}

/// A row that is not written yet.
struct Held {
    entry: LineEntry,
    /// Its changes, in words.
    changed: String,
    /// Whether these changes are known.
    settled: bool,
}

/// An activation, and the number of its last row.
struct LastRow {
    function: FuncId,
    entered: u64,
    depth: usize,
    row: u64,
    /// In reverse order, the changes that the activation's preceding line made.
    changed: String,
}

/// The state while rows are written.
struct Lines<'s> {
    how: LineStyle<'s>,
    cache: Cache<'s>,
    /// The widths of a time and of a source line.
    widths: (usize, usize),
    held: VecDeque<Held>,
    /// The number of rows written.
    written: u64,
    /// The activations that may have another row, the outermost first.
    open: Vec<LastRow>,
    /// The least depth so far. The outermost activation is not indented.
    least: Option<usize>,
    /// The activation and the inlined function of the last row.
    around: Option<(u64, Option<String>)>,
    /// The reason for unknown variables that was written last.
    said: Option<String>,
}

impl<'s> Lines<'s> {
    fn new(how: LineStyle<'s>) -> Self {
        let time = grouped(how.last).len().max(4) + "t=".len();
        // On a narrow terminal, the variables get half of the remaining width.
        let narrow =
            |columns: usize| (columns.saturating_sub(time + PLACE + 6) / 2).max(LEAST_SOURCE);
        let source = how.style.width.map_or(SOURCE, narrow).min(SOURCE);
        Self {
            how,
            cache: Cache::new(how.sources),
            widths: (time, source),
            held: VecDeque::new(),
            written: 0,
            open: Vec::new(),
            least: None,
            around: None,
            said: None,
        }
    }

    fn held(&mut self, row: u64) -> Option<&mut Held> {
        let at = row.checked_sub(self.written)?;
        self.held.get_mut(at as usize)
    }

    /// Settles the rows whose changes are now known. Returns the changes that the entry's own row
    /// shows.
    fn settle(&mut self, entry: &LineEntry) -> String {
        let is_same =
            |open: &LastRow| (open.function, open.entered) == (entry.function, entry.entered);
        while let Some(open) = self
            .open
            .pop_if(|open| open.depth > entry.depth || open.depth == entry.depth && !is_same(open))
        {
            if let Some(held) = self.held(open.row) {
                held.settled = true;
            }
        }
        let changed = entry.changed_text();
        let Some(last) = self.open.pop_if(|open| is_same(open)) else {
            return if entry.begins {
                changed
            } else if self.how.reverse || changed.is_empty() {
                String::new()
            } else {
                format!("(before: {changed})")
            };
        };
        if self.how.reverse {
            return last.changed;
        }
        match self.held(last.row) {
            Some(held) => {
                held.settled = true;
                held.changed = match (held.changed.is_empty(), changed.is_empty()) {
                    (false, false) => format!("{}, {changed}", held.changed),
                    (_, true) => return String::new(),
                    (true, false) => changed,
                };
                String::new()
            }
            None if changed.is_empty() => changed,
            None => format!("(before: {changed})"),
        }
    }

    fn hold(&mut self, entry: LineEntry, changed: String) {
        let own = if entry.begins {
            String::new()
        } else {
            entry.changed_text()
        };
        self.open.push(LastRow {
            function: entry.function,
            entered: entry.entered,
            depth: entry.depth,
            row: self.written + self.held.len() as u64,
            changed: own,
        });
        self.held.push_back(Held {
            entry,
            changed,
            settled: self.how.reverse,
        });
    }

    /// Writes the settled rows or, with `all`, all rows.
    fn write(&mut self, out: &mut dyn Write, all: bool) -> Result<(), PresentError> {
        while let Some(held) = self.held.front()
            && (all || held.settled || self.held.len() > HELD)
        {
            let Some(held) = self.held.pop_front() else {
                break;
            };
            self.written += 1;
            self.row(out, &held)?;
        }
        Ok(())
    }

    fn row(&mut self, out: &mut dyn Write, held: &Held) -> Result<(), PresentError> {
        let Held { entry, changed, .. } = held;
        let (style, (time, source)) = (self.how.style, self.widths);
        let least = self.least.get_or_insert(entry.depth);
        *least = entry.depth.min(*least);
        let levels = (entry.depth - *least).min(LEVELS);
        let indent = " ".repeat(2 * levels);
        let own = (entry.entered, entry.inlined.clone());
        if self.around.as_ref() != Some(&own) {
            let header = format!("{:time$}  {indent}{}", "", entry.header());
            writeln!(out, "{}", style.paint(Paint::Bold, &style.cut(&header)))?;
            self.around = Some(own);
        }
        let t = format!("t={}", grouped(entry.time));
        let place = plain(&entry.line.to_string());
        let text = self.cache.line(&entry.line.path, entry.line.line);
        let text = plain(text.unwrap_or_default().trim());
        let room = source.saturating_sub(indent.len());
        let text = if changed.is_empty() {
            text
        } else {
            shortened(&text, room, 0)
        };
        let pad = room.saturating_sub(width(&text));
        let wide = PLACE.saturating_sub(width(&place));
        let line = format!(
            "{t:>time$}  {indent}{place}{:wide$}  {text}{:pad$}  {changed}",
            "", ""
        );
        writeln!(out, "{}", style.cut(line.trim_end()))?;
        if let Some(Err(why)) = &entry.changed
            && self.said.as_ref() != Some(why)
        {
            writeln!(out, "{:time$}  {indent}  {}", "", plain(why))?;
            self.said = Some(why.clone());
        }
        Ok(())
    }
}

impl LineEntry {
    /// Returns the heading with the function of the line. Includes the arguments where the function
    /// begins.
    fn header(&self) -> String {
        let name = plain(without_parameters(&self.name));
        if let Some(inlined) = &self.inlined {
            let inlined = plain(without_parameters(inlined));
            return format!("{inlined}, inlined in {name}");
        }
        match (&self.changed, self.begins) {
            (Some(Ok(parameters)), true) => {
                let own = parameters.iter().filter(|one| one.now.parameter);
                let one = |one: &ChangedVariable| format!("{}={}", named(&one.now), one.now.brief);
                format!(
                    "{name}({})",
                    plain(&Vec::from_iter(own.map(one)).join(", "))
                )
            }
            (Some(Err(_)), true) => format!("{name}()"),
            (None, true) => name,
            (_, false) => format!("in {name}, called at t={}", grouped(self.entered)),
        }
    }

    /// Formats the variables that changed.
    fn changed_text(&self) -> String {
        let Some(Ok(changed)) = &self.changed else {
            return String::new();
        };
        // The parameters are in the heading.
        let own = changed
            .iter()
            .filter(|one| !(self.begins && one.now.parameter));
        let one = |one: &ChangedVariable| {
            let value = one.now.value.as_deref().unwrap_or("?");
            let doubt = if one.now.written.is_some() { "?" } else { "" };
            let told = |name: &str, value: &str| {
                format!("{name} = {}{doubt}", shortened(&plain(value), VALUE, 0))
            };
            match one.parts() {
                Some(parts) => {
                    let all = parts.iter().map(|(part, value)| told(part, value));
                    Vec::from_iter(all).join(", ")
                }
                None => told(&named(&one.now), value),
            }
        };
        Vec::from_iter(own.map(one)).join(", ")
    }
}

/// The maximum number of changed parts to list instead of the whole value.
const PARTS: usize = 3;
/// The maximum depth of a changed part.
const DEPTH: usize = 6;

impl ChangedVariable {
    /// Returns the parts of the variable that changed, with their new values. Their names are
    /// expressions: `p->next`, `accounts[1].balance`, `ages["Ada"]`. Returns `None` if too many
    /// parts changed, or if the value has no parts with such names.
    fn parts(&self) -> Option<Vec<(String, &str)>> {
        if let Some((part, value)) = &self.part {
            return Some(vec![(format!("{}{part}", named(&self.now)), value)]);
        }
        let (before, now) = (self.before.as_deref()?, self.now.value.as_deref().ok()?);
        let mut found = changed_parts(before, now)?;
        for _ in 1..DEPTH {
            let inner = found.iter().map(|part| {
                let inner = changed_parts(part.before, part.now);
                let Some(inner) = inner else {
                    return vec![part.clone()];
                };
                let inner = inner.into_iter().map(|one| ChangedPart {
                    name: format!("{}{}", part.name, one.name),
                    ..one
                });
                inner.collect()
            });
            let inner = inner.collect::<Vec<_>>().concat();
            if inner.len() > PARTS || inner.len() == found.len() && inner == found {
                break;
            }
            found = inner;
        }
        let name = named(&self.now);
        let found = found.into_iter();
        Some(
            found
                .map(|part| (format!("{name}{}", part.name), part.now))
                .collect(),
        )
    }
}

/// A part of a value, with its previous and its present text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ChangedPart<'t> {
    /// The suffix that selects the part: `.x`, `->x`, `[3]`, `["key"]`.
    name: String,
    before: &'t str,
    now: &'t str,
}

/// Returns the parts of a structure, an array or a map that changed. Returns `None` if too many
/// parts changed, or if the value has no parts with names.
fn changed_parts<'t>(before: &'t str, now: &'t str) -> Option<Vec<ChangedPart<'t>>> {
    let (head, inside) = now.split_once("{ ")?;
    let (head_before, inside_before) = before.split_once("{ ")?;
    let is_pointer = head.ends_with(" -> ");
    if head != head_before || !(head.is_empty() || is_pointer) {
        return None;
    }
    let (old, new) = (
        parts(inside_before.strip_suffix(" }")?)?,
        parts(inside.strip_suffix(" }")?)?,
    );
    let is_same = |(a, b): (&(&str, &str), &(&str, &str))| a.0 == b.0;
    if old.len() != new.len() || new.len() < 2 || !old.iter().zip(&new).all(is_same) {
        return None;
    }
    // Elements that are left out may have changed, too.
    if new.iter().any(|(_, part)| part.starts_with('…')) {
        return None;
    }
    let mut found = Vec::new();
    for (position, (&(_, before), &(name, now))) in old.iter().zip(&new).enumerate() {
        if before != now {
            found.push(ChangedPart {
                name: suffix(name, position, is_pointer)?,
                before,
                now,
            });
        }
    }
    (1..=PARTS).contains(&found.len()).then_some(found)
}

/// Returns the suffix that selects a part, given its name or, in a map, its key. An element of an
/// array has no name.
fn suffix(name: &str, position: usize, is_pointer: bool) -> Option<String> {
    let is_word = |sign: char| sign.is_alphanumeric() || sign == '_';
    let is_number = name
        .strip_prefix('-')
        .unwrap_or(name)
        .parse::<u64>()
        .is_ok();
    let is_text = name.len() > 1 && name.starts_with('"') && name.ends_with('"');
    match is_pointer {
        _ if !name.is_empty() && name.chars().all(is_word) && !is_number => {
            Some(format!("{}{name}", if is_pointer { "->" } else { "." }))
        }
        false if name.is_empty() => Some(format!("[{position}]")),
        false if is_number || is_text => Some(format!("[{name}]")),
        _ => None,
    }
}

/// Parses the parts that a string lists, with their names and values: `a = 1, b = { 2, 3 }`. The
/// elements of an array have no names. Returns `None` if the text is not such a list.
fn parts(text: &str) -> Option<Vec<(&str, &str)>> {
    let (mut found, mut begin, mut depth) = (Vec::new(), 0, 0u32);
    // The position of the part's value, if the part has a name.
    let mut value = None;
    // The quotation mark of the string or character that contains the position, and whether a
    // backslash precedes the position.
    let (mut quote, mut escaped) = (None, false);
    let part = |begin: usize, value: &mut Option<usize>, end: usize| match value.take() {
        Some(at) => (text[begin..at - " = ".len()].trim(), text[at..end].trim()),
        None => ("", text[begin..end].trim()),
    };
    for (at, sign) in text.char_indices() {
        match (quote, sign) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(mark), sign) if mark == sign => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(sign),
            (None, '{' | '(' | '<') => depth += 1,
            (None, '}' | ')') => depth = depth.checked_sub(1)?,
            // The `>` of an arrow is not a bracket.
            (None, '>') if !text[..at].ends_with('-') => depth = depth.checked_sub(1)?,
            (None, ',') if depth == 0 => {
                found.push(part(begin, &mut value, at));
                begin = at + 1;
            }
            (None, ' ') if depth == 0 && value.is_none() && text[at..].starts_with(" = ") => {
                value = Some(at + " = ".len());
            }
            _ => {}
        }
    }
    if quote.is_some() || depth > 0 {
        return None;
    }
    found.push(part(begin, &mut value, text.len()));
    Some(found)
}

/// Returns the displayed name of a variable. Parameters may have no name.
fn named(variable: &Shown) -> String {
    match &*variable.name {
        "" => "_".to_owned(),
        name => plain(name),
    }
}

#[cfg(test)]
mod tests {
    use super::changed_parts;

    fn changed<'t>(before: &'t str, now: &'t str) -> Option<Vec<(String, &'t str)>> {
        let found = changed_parts(before, now)?.into_iter();
        Some(found.map(|part| (part.name, part.now)).collect())
    }

    #[test]
    fn of_a_value_the_parts_that_changed_are_shown() {
        let before = r#"0x10 -> { src = "a, \"b = }", pos = 5, seen = { '+' = 1, ',' = 2 }, f = 0x4 -> { 1 } }"#;
        let now = r#"0x10 -> { src = "a, \"b = }", pos = 6, seen = { '+' = 1, ',' = 3 }, f = 0x4 -> { 1 } }"#;
        let expected = vec![
            ("->pos".to_owned(), "6"),
            ("->seen".to_owned(), "{ '+' = 1, ',' = 3 }"),
        ];
        assert_eq!(changed(before, now), Some(expected));
        for (before, now, name, value) in [
            ("{ x = 1, y = 2 }", "{ x = 1, y = 3 }", ".y", "3"),
            ("{ 1, 2 }", "{ 1, 3 }", "[1]", "3"),
            (
                "{ { x = 1, y = 2 }, { x = 3, y = 4 } }",
                "{ { x = 1, y = 2 }, { x = 5, y = 4 } }",
                "[1]",
                "{ x = 5, y = 4 }",
            ),
            (
                "{ \"a = b\" = 1, \"c\" = 2 }",
                "{ \"a = b\" = 1, \"c\" = 3 }",
                "[\"c\"]",
                "3",
            ),
            ("{ 7 = 1, -8 = 2 }", "{ 7 = 1, -8 = 3 }", "[-8]", "3"),
        ] {
            assert_eq!(changed(before, now), Some(vec![(name.to_owned(), value)]));
        }
        // A value without parts, or with different parts than before, is shown as a whole.
        for (before, now) in [
            ("{ 1, 2 }", "{ 1, 2, 3 }"),
            ("{ 1, 2, … }", "{ 1, 3, … }"),
            ("{ 1, 2, 3, 4 }", "{ 5, 6, 7, 8 }"),
            ("0x10 -> { 1, 2 }", "0x10 -> { 1, 3 }"),
            ("{ x = 1 }", "{ x = 2 }"),
            ("0x10 -> { x = 1, y = 2 }", "0x20 -> { x = 1, y = 3 }"),
            ("{ x = 1, y = 2 }", "{ x = 1, z = 2 }"),
            ("1", "2"),
            ("{ 'a' = 1, 'b' = 2 }", "{ 'a' = 1, 'b' = 3 }"),
            ("{ x = 1, y = \"}", "{ x = 1, y = \"}"),
        ] {
            assert_eq!(changed(before, now), None, "{now}");
        }
    }
}
