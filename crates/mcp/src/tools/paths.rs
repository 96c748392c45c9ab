//! Implements the tool `paths`, which shows the different paths that calls took.

use afterimage::present::document::begin;
use afterimage::present::{
    PathNames, PathsDocument, PathsJson, Style, TraceForm, TraceListing, Whole, found_text,
    hot_text, paths_json, trace_counts_text, traces_text,
};
use afterimage::profile::CodeFilter;
use afterimage::{PathsAbout, PathsQuery};
use anyhow::{Context, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Question, Subject};
use crate::answer::{ENTRIES, ToolResult, Totals, page};
use crate::schemas;

/// The subject of the question.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The recording.
    recording: String,
    /// Show the different sequences of blocks that the calls to this function executed. By default,
    /// show the number of sequences for each function.
    function: Option<String>,
    /// Show the acyclic stretches that were executed most often, with their lines.
    #[serde(default)]
    hot: bool,
    /// The maximum number of rows.
    limit: Option<usize>,
    /// Skip this many rows, to continue an answer.
    #[serde(default)]
    offset: usize,
}

/// The default number of rows.
const ROWS: usize = 20;
/// The maximum number of rows in an answer.
const MOST: usize = 40;

impl Question for Arguments {
    const NAME: &'static str = "paths";
    const TITLE: &'static str = "Ways through functions";
    const ABOUT: &'static str = "Shows the different paths that the calls to a function took, \
        with the number of calls that took each. Without `function`, shows the number of paths \
        of each function. With `hot`, shows the stretches that ran most often.";

    fn reports() -> Vec<Value> {
        vec![schemas::document("paths", None)]
    }

    fn recordings(&self) -> Vec<&str> {
        vec![&self.recording]
    }

    fn answer(&self, asked: &Subject<'_>) -> Result<ToolResult> {
        let limit = self.limit.unwrap_or(ROWS).clamp(1, MOST);
        let query = PathsQuery {
            about: if self.hot {
                PathsAbout::Hot
            } else {
                PathsAbout::Traces(Default::default())
            },
            function: self.function.clone(),
            code: CodeFilter::All,
            top: Some(self.offset.saturating_add(limit)),
            blocks: None,
        };
        let session = asked.session()?;
        session.ensure_path()?;
        // A path trace may have millions of blocks, so the document has only the first of each.
        let outlined = PathsQuery {
            blocks: Some(ENTRIES),
            ..query.clone()
        };
        let has_traces = self.function.is_some() && !self.hot;
        let outlined = has_traces.then(|| session.paths(&outlined)).transpose()?;
        query.answer(session, |found, names| {
            let (text, document) = self.shown(found, names, outlined)?;
            let shown = document["rows"].as_array().map_or(0, Vec::len);
            let all = document["available"].as_u64().unwrap_or(0);
            let totals = Totals {
                unit: if self.hot {
                    "paths"
                } else if self.function.is_some() {
                    "traces"
                } else {
                    "functions"
                },
                shown: shown as u64,
                all: Some(all),
            };
            let until = self.offset.saturating_add(shown);
            let mut found = ToolResult::new(document, text, totals);
            let more = shown > 0 && (until as u64) < all;
            found.more = more.then(|| json!({ "offset": until }));
            Ok(found)
        })
    }
}

impl Arguments {
    /// Returns the rows from the offset on that fit into an answer, as text and as a document.
    fn shown(
        &self,
        found: PathsJson<'_>,
        names: PathNames<'_>,
        outlined: Option<PathsDocument>,
    ) -> Result<(String, Value)> {
        let mut text = Vec::new();
        let style = Style::default();
        let skipped = |rows: usize| ..self.offset.min(rows);
        let document = match found {
            PathsJson::Found(found) => {
                found_text(&mut text, found, names, style)?;
                document(PathsJson::Found(found), names)?
            }
            PathsJson::Hot(hot) => {
                let mut hot = hot.clone();
                hot.rows.drain(skipped(hot.rows.len()));
                hot_text(&mut text, &hot, names, style)?;
                document(PathsJson::Hot(&hot), names)?
            }
            PathsJson::Traces(traces, rows) => {
                let all = Vec::from_iter(rows);
                let offset = self.offset.min(all.len());
                let of = |rows: &[usize]| {
                    rows.first()
                        .map_or(0..0, |first| *first..first + rows.len())
                };
                let (rows, shown) = page(&all, offset, |rows| {
                    let listing = TraceListing {
                        form: TraceForm::Blocks,
                        whole: Whole::Beginning,
                        rows: of(rows),
                    };
                    let mut text = Vec::new();
                    traces_text(&mut text, traces, names, listing, style)?;
                    Ok(String::from_utf8_lossy(&text).into_owned())
                })?;
                text = shown.into_bytes();
                let mut outlined = outlined.context("the beginnings of path traces")?;
                outlined.rows = outlined.rows.drain(of(rows)).collect();
                let mut document = Vec::new();
                begin(&mut document, &outlined)?;
                serde_json::from_slice(&document)?
            }
            PathsJson::Counts(counts) => {
                let mut counts = counts.clone();
                counts.rows.drain(skipped(counts.rows.len()));
                trace_counts_text(&mut text, &counts, names, style)?;
                document(PathsJson::Counts(&counts), names)?
            }
        };
        // The heading has the number of rows. This line also counts skipped rows.
        let text = String::from_utf8_lossy(&text);
        let lines = text.lines().filter(|line| !line.starts_with("… and "));
        Ok((lines.map(|line| format!("{line}\n")).collect(), document))
    }
}

fn document(found: PathsJson<'_>, names: PathNames<'_>) -> Result<Value> {
    let mut document = Vec::new();
    paths_json(&mut document, found, names)?;
    Ok(serde_json::from_slice(&document)?)
}
