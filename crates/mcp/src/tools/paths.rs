//! Implements the tool `paths`, which shows the different paths that calls took.

use afterimage::present::{
    PathsJson, Style, TraceForm, TraceListing, Whole, found_text, hot_text, paths_json,
    trace_counts_text, traces_text,
};
use afterimage::profile::CodeFilter;
use afterimage::{PathsAbout, PathsQuery};
use anyhow::Result;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Question, Subject};
use crate::answer::{ToolResult, Totals};
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
            top: Some(limit),
            blocks: None,
        };
        let session = asked.session()?;
        session.ensure_path()?;
        query.answer(session, |found, names| {
            let (mut text, mut document) = (Vec::new(), Vec::new());
            let style = Style::default();
            paths_json(&mut document, found, names)?;
            match found {
                PathsJson::Found(found) => found_text(&mut text, found, names, style)?,
                PathsJson::Hot(hot) => hot_text(&mut text, hot, names, style)?,
                PathsJson::Traces(traces, top) => {
                    let listing = TraceListing {
                        form: TraceForm::Blocks,
                        whole: Whole::Beginning,
                        top,
                    };
                    traces_text(&mut text, traces, names, listing, style)?;
                }
                PathsJson::Counts(counts) => trace_counts_text(&mut text, counts, names, style)?,
            }
            let document: Value = serde_json::from_slice(&document)?;
            let rows = ["rows", "traces", "paths"];
            let shown = rows
                .iter()
                .find_map(|rows| Some(document[*rows].as_array()?.len()));
            let shown = shown.unwrap_or(0);
            let totals = Totals {
                unit: "paths or functions",
                shown: shown as u64,
                all: None,
            };
            let text = String::from_utf8_lossy(&text).into_owned();
            let mut found = ToolResult::new(document, text, totals);
            let more = shown == limit && limit < MOST;
            found.more = more.then(|| json!({ "limit": MOST }));
            Ok(found)
        })
    }
}
