//! Implements the tool `source`, which shows source lines with the number of arrivals at each line.

use std::collections::BTreeMap;

use afterimage::ProfileQuery;
use afterimage::present::Sources;
use afterimage::profile::{By, CodeFilter};
use anyhow::{Result, bail};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Question, Subject, next};
use crate::answer::{BODY, ToolResult, Totals};
use crate::schemas;

/// The source lines to show.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The recording.
    recording: String,
    /// The file, or the end of its path: `parser.c`, `src/lib.rs`. By default, the files are
    /// listed.
    file: Option<String>,
    /// A line to show with the lines around it; the default is the first executed line.
    line: Option<u32>,
    /// To continue an answer, begin at this line or, in the list of files, at this file.
    from: Option<u32>,
}

/// Lines of a file, or files.
#[derive(Serialize, JsonSchema)]
struct Source {
    /// The file; `null` if files are listed.
    file: Option<String>,
    /// Its lines.
    lines: Vec<SourceLine>,
    /// The files of the user's own code, with the number of their lines that were reached.
    files: Vec<SourceFile>,
}

/// A line.
#[derive(Serialize, JsonSchema)]
struct SourceLine {
    /// The line's number.
    line: u32,
    /// The number of arrivals; `null` if the line has no code.
    times: Option<u64>,
    /// Its text; `null` if the file was not found.
    text: Option<String>,
}

/// A file.
#[derive(Serialize, JsonSchema)]
struct SourceFile {
    /// Its path.
    file: String,
    /// The number of lines with code.
    lines: u64,
    /// The number of these lines that were reached.
    reached: u64,
}

/// The number of lines shown before the requested one.
const BEFORE: u32 = 16;

type Counts = BTreeMap<String, BTreeMap<u32, u64>>;

impl Question for Arguments {
    const NAME: &'static str = "source";
    const TITLE: &'static str = "Source lines and how often each ran";
    const ABOUT: &'static str = "Shows lines of a source file, around a line or from a line on, \
        with the number of arrivals at each. Without `file`, lists the files of the user's own \
        code.";

    fn reports() -> Vec<Value> {
        vec![schemas::report::<Source>()]
    }

    fn recordings(&self) -> Vec<&str> {
        vec![&self.recording]
    }

    fn answer(&self, asked: &Subject<'_>) -> Result<ToolResult> {
        let query = ProfileQuery {
            by: By::Line,
            code: Some(match &self.file {
                Some(_) => CodeFilter::All,
                None => CodeFilter::Mine,
            }),
            ..ProfileQuery::default()
        };
        let session = asked.session()?;
        let profile = serde_json::to_value(session.execution_counts(&[], &query)?)?;
        let mut counts = Counts::new();
        for row in profile["rows"].as_array().into_iter().flatten() {
            let source = &row["source"];
            let file = source["file"].as_str().unwrap_or_default().to_owned();
            let line = source["line"].as_u64().unwrap_or(0) as u32;
            let lines = counts.entry(file).or_default();
            *lines.entry(line).or_default() += row["count"].as_u64().unwrap_or(0);
        }
        let Some(wanted) = &self.file else {
            return Ok(self.files(&counts));
        };
        let path = chosen(&counts, wanted)?;
        let lines = &counts[path];
        let text = session.sources().read(path);
        let text = text.map(|text| Vec::from_iter(text.lines().map(str::to_owned)));
        self.lines(path, lines, text.as_deref())
    }
}

/// Returns the file with this path or, if there is none, the only file whose path ends with it.
fn chosen<'c>(counts: &'c Counts, wanted: &str) -> Result<&'c str> {
    if let Some((whole, _)) = counts.get_key_value(wanted) {
        return Ok(whole);
    }
    let end = format!("/{wanted}");
    let found = counts.keys().filter(|path| path.ends_with(&end));
    let found = Vec::from_iter(found.map(String::as_str));
    match &found[..] {
        [one] => Ok(one),
        [] => {
            let own = counts
                .keys()
                .filter(|path| CodeFilter::Mine.shows(path))
                .take(8);
            let own = Vec::from_iter(own.map(String::as_str)).join(", ");
            bail!("no code comes from a file {wanted}; the first files are: {own}")
        }
        several => bail!("several files are called {wanted}: {}", several.join(", ")),
    }
}

impl Arguments {
    fn files(&self, counts: &Counts) -> ToolResult {
        let from = self.from.unwrap_or(0) as usize;
        let files = counts.iter().map(|(file, lines)| SourceFile {
            file: file.clone(),
            lines: lines.len() as u64,
            reached: lines.values().filter(|count| **count > 0).count() as u64,
        });
        let files = Vec::from_iter(files.skip(from).take(BODY - 1));
        let mut text = String::from("reached  of  file\n");
        for one in &files {
            text += &format!("{:>7}  {}  {}\n", one.reached, one.lines, one.file);
        }
        let first = files.iter().max_by_key(|one| one.reached).map(|one| {
            let about = (format!("the lines of {}", one.file), true);
            next(
                "source",
                &self.recording,
                json!({ "file": one.file }),
                about,
            )
        });
        let until = from + files.len();
        let totals = Totals {
            unit: "files",
            shown: files.len() as u64,
            all: Some(counts.len() as u64),
        };
        let report = Source {
            file: None,
            lines: Vec::new(),
            files,
        };
        let mut found = ToolResult::new(json!(report), text, totals);
        found.more = (until < counts.len()).then(|| json!({ "from": until }));
        found.with_next(first.into_iter().collect())
    }

    fn lines(
        &self,
        path: &str,
        lines: &BTreeMap<u32, u64>,
        text: Option<&[String]>,
    ) -> Result<ToolResult> {
        let last = lines.keys().next_back().copied().unwrap_or(0);
        let last = text.map_or(last, |text| text.len() as u32);
        for wanted in [self.from, self.line].into_iter().flatten() {
            if wanted > last {
                bail!("{path} has no line {wanted}; the last is {last}");
            }
        }
        let reached = lines.iter().find(|(_, count)| **count > 0);
        let begin = reached.or(lines.iter().next()).map_or(1, |(line, _)| *line);
        let from = match (self.from, self.line) {
            (Some(from), _) => from,
            (None, Some(line)) => line.saturating_sub(BEFORE),
            (None, None) => begin.saturating_sub(2),
        };
        let from = from.max(1);
        let until = from.saturating_add(BODY as u32 - 1).min(last + 1);
        let line = |line: u32| SourceLine {
            line,
            times: lines.get(&line).copied(),
            text: text.and_then(|text| text.get(line as usize - 1).cloned()),
        };
        let shown = Vec::from_iter((from..until).map(line));
        let mut told = format!("{path}\n");
        if text.is_none() {
            told = format!("{path}: its text was not found\n");
        }
        for one in &shown {
            let times = one.times.map_or(String::new(), |times| times.to_string());
            let mark = if Some(one.line) == self.line {
                '>'
            } else {
                ' '
            };
            let text = one.text.as_deref().unwrap_or_default();
            told += &format!("{times:>10} {mark}{:>6}  {text}\n", one.line);
        }
        let asked = self
            .line
            .filter(|line| lines.get(line).is_some_and(|count| *count > 0));
        let short = path.rsplit('/').next().unwrap_or(path);
        let calls = asked.map(|line| {
            let about = (format!("the call that reached line {line} last"), true);
            next(
                "call",
                &self.recording,
                json!({ "at": format!("{short}:{line}#last") }),
                about,
            )
        });
        let totals = Totals {
            unit: "lines",
            shown: shown.len() as u64,
            all: Some(u64::from(last)),
        };
        let report = Source {
            file: Some(path.to_owned()),
            lines: shown,
            files: Vec::new(),
        };
        let mut found = ToolResult::new(json!(report), told, totals);
        found.more = (until <= last).then(|| json!({ "from": until }));
        Ok(found.with_next(calls.into_iter().collect()))
    }
}
