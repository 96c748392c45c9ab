//! Lists the nearest lines of the user's own code that an answer of `why` depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;

use afterimage::present::document::objects::Position;
use afterimage::{NearLine, NearLines, NearQuery};
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;

use super::Subject;

/// A line of the user's own code on which the chain's first step in that code depends.
#[derive(Clone, Serialize, JsonSchema)]
pub(super) struct Near {
    /// Its position.
    source: Position,
    /// Its execution at the shortest distance, as an argument of `why`, if the line is among the
    /// nearest.
    pub at: Option<String>,
    /// The text of the line, if it is among the nearest and its source was found.
    text: Option<String>,
    /// Its distance: the sum of the lengths of the dependences in between. Data dependences are the
    /// shortest.
    distance: u32,
    /// The kind of the shortest chain of dependences: `values`, `addresses` if the chain contains
    /// an address of a read or write, or `control` if it contains a branch or call.
    through: &'static str,
}

impl Near {
    /// Formats the line as `parser.c:42`, with a mark: `&` through an address, `?` through a branch
    /// or call.
    pub(super) fn place(&self) -> String {
        let Position { file, line, .. } = &self.source;
        let mark = match self.through {
            "addresses" => "&",
            "control" => "?",
            _ => "",
        };
        format!("{}:{line}{mark}", name(file))
    }
}

/// The number of nearest lines that are shown with their text.
const NEAR: usize = 10;
/// The number of nearest lines to look for, besides those that earlier answers showed. More would
/// fit into some answers, but take longer to find.
const ENOUGH: usize = 400;
/// The maximum length of a row of lines.
const WIDTH: usize = 140;
/// The maximum number of lines without executions between two lines of a range.
const BETWEEN: u32 = 3;

/// The places at which the search for the nearest lines starts.
pub(super) struct Starts {
    /// Executions.
    pub at: Vec<String>,
    /// Whether to start at the end of the run.
    pub trap: bool,
}

/// The nearest lines, and other branches of their functions.
#[derive(Default)]
pub(super) struct Nearest {
    /// The lines, the nearest first.
    pub lines: Vec<Near>,
    /// Whether there may be further lines.
    cut: bool,
    /// The number of lines after which the search ended.
    enough: usize,
    /// Other lines of the functions of `lines`, with a branch that always went the same way. The
    /// functions of the nearest lines come first. `None` if the run's counts are unknown.
    pub one_way: Option<Vec<Position>>,
    /// The executed lines of the functions of `lines`, by file, if known.
    ran: Option<BTreeMap<String, BTreeSet<u32>>>,
    /// The lines of the chain.
    chain: BTreeSet<(String, u32)>,
}

/// Lines that the same answer names before, by file.
type Named = BTreeMap<String, BTreeSet<u32>>;

impl Nearest {
    /// Finds the lines on which some executions depend. Leaves out `shown`, which are the lines of
    /// the chain itself. `after` is the number of lines that earlier answers showed.
    pub(super) fn find(
        asked: &Subject<'_>,
        starts: Starts,
        shown: &BTreeSet<(String, u32)>,
        after: usize,
    ) -> Result<Self> {
        let session = asked.session()?;
        let enough = ENOUGH + after;
        let query = NearQuery {
            at: starts.at,
            trap: starts.trap,
            enough: enough + shown.len(),
            named: NEAR + shown.len(),
        };
        // There is no slice from a place without a value.
        let Ok(NearLines { lines, cut, ran }) = asked.answered(|session| session.near(&query))
        else {
            return Ok(Self::default());
        };
        let mut known: BTreeSet<_> = lines.iter().map(|one| key(&one.source)).collect();
        known.extend(shown.iter().cloned());
        let (ran, one_way) = ran.map(|ran| (ran.lines, ran.one_way)).unzip();
        let one_way: Option<Vec<Position>> = one_way;
        let is_new = |line: &Position| known.insert(key(line));
        let one_way = one_way.map(|lines| lines.into_iter().filter(is_new).collect());
        let sources = session.sources();
        let is_other = |one: &NearLine| !shown.contains(&key(&one.source));
        let others = lines.into_iter().filter(is_other).take(enough);
        let described = |(number, one): (usize, NearLine)| {
            let Position { file, line, .. } = &one.source;
            let text = if number < NEAR {
                sources.lines(file).and_then(|mut lines| lines.line(*line))
            } else {
                None
            };
            Near {
                text: text.map(|text| text.trim().to_owned()),
                source: one.source,
                at: one.at,
                distance: one.distance,
                through: one.through,
            }
        };
        Ok(Self {
            lines: others.enumerate().map(described).collect(),
            cut,
            enough,
            one_way,
            ran,
            chain: shown.clone(),
        })
    }

    /// Formats the lines after the first `after`, as many as fit into some rows. The nearest have
    /// their text. Returns the text, and the number of lines from which to continue if there are
    /// more.
    pub(super) fn text(&self, after: usize, rows: usize) -> (String, Option<usize>) {
        let mut text = String::new();
        let lines = self.lines.get(after..).unwrap_or_default();
        if lines.is_empty() {
            return (text, None);
        }
        let ranges = match &self.ran {
            Some(_) => "; ranges include lines that never ran in these functions",
            None => "",
        };
        let farther = if after > 0 { "farther" } else { "the nearest" };
        text += &format!(
            "{farther} lines that it depends on (& by an address, ? by a branch or call{ranges}):\n"
        );
        let (first, others) = lines.split_at(if after > 0 { 0 } else { lines.len().min(NEAR) });
        for one in first {
            let line = one.text.as_deref().unwrap_or_default();
            let _ = writeln!(text, "  {}  | {line}", one.place());
        }
        let others = Vec::from_iter(others.iter().map(|one| &one.source));
        let mut left = rows;
        let mut named = Named::new();
        let chain = self.chain.iter().cloned();
        for (file, line) in chain.chain(first.iter().map(|one| key(&one.source))) {
            named.entry(file).or_default().insert(line);
        }
        let (shown, fit) = self.fitted(&others, &named, self.cut, rows);
        for (number, row) in shown.iter().enumerate() {
            let then = match number {
                0 if after == 0 => "then",
                _ => "    ",
            };
            let _ = writeln!(text, "  {then} {row}");
            left -= 1;
        }
        let until = after + first.len() + fit;
        let branches = Vec::from_iter(self.one_way.iter().flatten());
        for (file, line) in others[..fit].iter().map(|one| key(one)) {
            named.entry(file).or_default().insert(line);
        }
        let (branches, _) = self.fitted(&branches, &named, false, left.saturating_sub(1));
        if !branches.is_empty() {
            text += "other branches of the same functions that always went the same way:\n";
        }
        for row in branches {
            let _ = writeln!(text, "  {row}");
        }
        let is_more = until < self.lines.len() || self.is_full();
        (text, is_more.then_some(until))
    }

    /// Whether the search ended because it found enough lines.
    fn is_full(&self) -> bool {
        self.cut && self.lines.len() == self.enough
    }

    /// Returns the rows with as many lines as fit, and the number of these lines. `cut` means that
    /// there are further lines.
    fn fitted(
        &self,
        lines: &[&Position],
        named: &Named,
        cut: bool,
        rows: usize,
    ) -> (Vec<String>, usize) {
        let (mut fit, mut not) = (0, lines.len() + 1);
        while fit + 1 < not {
            let middle = fit.midpoint(not);
            if self.rows(&lines[..middle], named).len() <= rows {
                fit = middle;
            } else {
                not = middle;
            }
        }
        let mut shown = self.rows(&lines[..fit], named);
        if let Some(last) = shown.last_mut()
            && (cut || fit < lines.len())
        {
            last.push_str("; …");
        }
        (shown, fit)
    }

    /// Formats lines by file, as `parser.c:42,44-47; lexer.c:7`. The file of the first line comes
    /// first. Adds the lines that lie between two of these lines, or between one of them and one in
    /// `named`.
    fn rows(&self, lines: &[&Position], named: &Named) -> Vec<String> {
        let mut files: Vec<(&str, BTreeSet<u32>)> = Vec::new();
        for one in lines {
            match files.iter_mut().find(|(file, _)| *file == one.file) {
                Some((_, lines)) => drop(lines.insert(one.line)),
                None => files.push((&one.file, BTreeSet::from([one.line]))),
            }
        }
        let mut rows = Vec::new();
        let mut row = String::new();
        for (file, lines) in files {
            let ranges = self.ranges(file, lines, named.get(file));
            for (number, (begin, end)) in ranges.into_iter().enumerate() {
                let mut range = begin.to_string();
                if begin < end {
                    let _ = write!(range, "-{end}");
                }
                let place = format!("{}:{range}", name(file));
                let added = match number {
                    0 => format!("; {place}"),
                    _ => format!(",{range}"),
                };
                if row.is_empty() {
                    row = place;
                } else if row.len() + added.len() <= WIDTH {
                    row += &added;
                } else {
                    rows.push(std::mem::replace(&mut row, place));
                }
            }
        }
        rows.extend((!row.is_empty()).then_some(row));
        rows
    }

    /// Joins lines of a file into ranges. A line between two others may be in a range only if it
    /// never ran in these functions. One of the two may be in `named` instead.
    fn ranges(
        &self,
        file: &str,
        lines: BTreeSet<u32>,
        named: Option<&BTreeSet<u32>>,
    ) -> Vec<(u32, u32)> {
        let ran = self.ran.as_ref().map(|ran| ran.get(file));
        let is_free = |between: Range<u32>| match ran {
            Some(ran) => ran.is_none_or(|ran| ran.range(between).next().is_none()),
            None => between.is_empty(),
        };
        let mut all = lines.clone();
        all.extend(named.into_iter().flatten());
        let mut shown = lines.clone();
        for (&one, &next) in all.iter().zip(all.iter().skip(1)) {
            let is_own = lines.contains(&one) || lines.contains(&next);
            if is_own && next - one <= BETWEEN + 1 && is_free(one + 1..next) {
                shown.extend(one + 1..next);
            }
        }
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for line in shown {
            match ranges.last_mut() {
                Some((_, end)) if *end + 1 == line => *end = line,
                _ => ranges.push((line, line)),
            }
        }
        ranges
    }
}

fn name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

fn key(place: &Position) -> (String, u32) {
    (place.file.clone(), place.line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the places in rows, as ranges of lines with the names of their files.
    fn read(rows: &[String]) -> Vec<(String, u32, u32)> {
        let mut all = Vec::new();
        for list in rows.iter().flat_map(|row| row.split("; ")) {
            let Some((file, ranges)) = list.split_once(':') else {
                assert_eq!(list, "…");
                continue;
            };
            for range in ranges.split(',') {
                let (begin, end) = range.split_once('-').unwrap_or((range, range));
                all.push((
                    file.to_owned(),
                    begin.parse().unwrap(),
                    end.parse().unwrap(),
                ));
            }
        }
        all
    }

    #[test]
    fn rows_name_the_lines_and_between_them_only_lines_that_never_ran() {
        // All patterns of six lines: whether each line ran, whether it is among the nearest, and
        // whether it was named before.
        for pattern in 0..1_u32 << 18 {
            let is = |line: u32, bit: u32| pattern >> (3 * (line - 1) + bit) & 1 == 1;
            let lines = Vec::from_iter((1..=6).filter(|line| is(*line, 0)));
            let before = BTreeSet::from_iter((1..=6).filter(|line| is(*line, 2)));
            let mut all = before.clone();
            all.extend(&lines);
            let ran = |line: &u32| is(*line, 1) || all.contains(line);
            let near = Nearest {
                ran: Some(BTreeMap::from([(
                    "a.c".to_owned(),
                    (1..=6).filter(ran).collect(),
                )])),
                ..Nearest::default()
            };
            let places = Vec::from_iter(lines.iter().map(|line| Position::line("a.c", *line)));
            let named = Named::from([("a.c".to_owned(), before)]);
            let rows = near.rows(&Vec::from_iter(&places), &named);
            let named = read(&rows).into_iter().flat_map(|(_, from, to)| from..=to);
            let named = BTreeSet::from_iter(named);
            for line in 1..=6 {
                let before = all.range(..line).next_back();
                let after = all.range(line + 1..).next();
                let is_between = match (before, after) {
                    (Some(before), Some(after)) => {
                        let is_own = lines.contains(before) || lines.contains(after);
                        let is_free = !(before + 1..*after).any(|one| ran(&one));
                        is_own && after - before <= BETWEEN + 1 && is_free
                    }
                    _ => false,
                };
                let expected = lines.contains(&line) || is_between;
                assert_eq!(
                    named.contains(&line),
                    expected,
                    "{pattern:b} {line} {rows:?}"
                );
            }
        }
    }

    #[test]
    fn rows_are_short_and_show_the_nearest_lines() {
        // Every second line of three files; all lines ran.
        let files = ["src/a.c", "src/b.c", "a_file_with_a_long_name.rs"];
        let ran = files.map(|file| (file.to_owned(), (1..1000).collect()));
        let near = Nearest {
            ran: Some(BTreeMap::from(ran)),
            ..Nearest::default()
        };
        let place = |number: u32| Position::line(files[number as usize % 3], number * 2 + 1);
        let all = Vec::from_iter((0..400).map(place));
        let all = Vec::from_iter(&all);
        let mut last = 0;
        for rows in 0..30 {
            let (shown, fit) = near.fitted(&all, &Named::new(), false, rows);
            assert!(fit <= all.len());
            assert!(shown.len() <= rows, "{shown:?}");
            let named = read(&shown);
            let nearest = all[..named.len()]
                .iter()
                .map(|one| (name(&one.file), one.line));
            let nearest =
                BTreeSet::from_iter(nearest.map(|(file, line)| (file.to_owned(), line, line)));
            assert_eq!(BTreeSet::from_iter(named.iter().cloned()), nearest);
            for row in &shown {
                assert!(row.trim_end_matches("; …").len() <= WIDTH, "{row}");
            }
            let is_cut = shown.last().is_some_and(|row| row.ends_with("; …"));
            assert_eq!(is_cut, rows > 0 && named.len() < all.len(), "{shown:?}");
            assert!(named.len() > last || named.len() == all.len() || rows == 0);
            last = named.len();
        }
        assert_eq!(last, all.len());
    }
}
