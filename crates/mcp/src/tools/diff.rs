//! Implements the tool `diff`, which shows where two runs diverge.

use std::path::Path;

use afterimage::Session;
use afterimage::diff::Programs;
use afterimage::diff::same::{SameQuery, same};
use afterimage::diff::versions::versions;
use afterimage::present::Style;
use afterimage::sources::FirstOf;
use afterimage::text::pasted;
use anyhow::{Context, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Question, Subject};
use crate::answer::{Next, ToolResult, Totals, document_of, page, text_of};
use crate::calls::{Call, calls_about_several};
use crate::schemas;

/// The runs to compare.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The first recording: the correct run, if one of the two was correct.
    recording: String,
    /// The second recording: of the same program, or of another version of it.
    other: String,
    /// The maximum number of rows in each list, by default 8.
    limit: Option<usize>,
    /// Skip this many lines of the report, to continue an answer.
    #[serde(default)]
    offset: usize,
}

/// The default number of rows in each list.
const ROWS: usize = 8;

impl Question for Arguments {
    const NAME: &'static str = "diff";
    const TITLE: &'static str = "Where two runs diverge";
    const ABOUT: &'static str = "Shows where two recorded runs first differ: in control, in a \
        value, in the actions of the host, or in the output. Also shows the lines that ran a \
        different number of times. For two versions of a program, shows the statements that \
        compute different values.";

    fn reports() -> Vec<Value> {
        ["diff", "versions"]
            .map(|name| schemas::document(name, None))
            .into()
    }

    fn recordings(&self) -> Vec<&str> {
        vec![&self.recording, &self.other]
    }

    fn answer(&self, asked: &Subject<'_>) -> Result<ToolResult> {
        let &[a, b] = asked.sessions else {
            return None.context("diff needs two recordings");
        };
        let whole = asked.once(|| self.whole([a, b]))?;
        self.shown([a, b], &whole)
    }
}

/// A whole answer, as text and as a document.
type Whole = (String, Value);

impl Arguments {
    fn whole(&self, sessions: [&Session; 2]) -> Result<Whole> {
        for session in sessions {
            session.ensure_inputs()?;
            session.ensure_path()?;
        }
        let rows = Some(self.limit.unwrap_or(ROWS).max(1));
        let alike = match Programs::of(sessions) {
            Programs::Same => None,
            Programs::Alike(alike) => Some(alike),
            Programs::Versions => {
                return versions(sessions, rows, |view| {
                    Ok((text_of(view)?, document_of(view)?))
                });
            }
        };
        let sources = FirstOf(sessions.map(|session| &**session.sources()).into());
        let query = SameQuery {
            lines: true,
            top: rows,
            sources: &sources,
            style: Style::default(),
        };
        same(sessions, alike, &query, |view| {
            Ok((text_of(view)?, document_of(view)?))
        })
    }

    fn shown(&self, sessions: [&Session; 2], (text, document): &Whole) -> Result<ToolResult> {
        let mut text = text.clone();
        // Name the recordings as the agent does.
        for (session, name) in sessions.iter().zip([&self.recording, &self.other]) {
            text = text.replace(&pasted(session.at()), &pasted(Path::new(name)));
        }
        let (text, calls) = calls_about_several(&text);
        let lines = Vec::from_iter(text.lines());
        let offset = self.offset.min(lines.len());
        let joined = |lines: &[&str]| Ok(lines.iter().map(|line| format!("{line}\n")).collect());
        let (rows, text) = page(&lines, offset, joined)?;
        let until = offset + rows.len();
        let totals = Totals {
            unit: "lines of the report",
            shown: rows.len() as u64,
            all: Some(lines.len() as u64),
        };
        let mut found = ToolResult::new(document.clone(), text, totals);
        found.more = (until < lines.len()).then(|| json!({ "offset": until }));
        // The report quotes the programs, so it may contain other commands.
        let names = [&self.recording, &self.other];
        let is_known = |call: &Call| {
            let recording = call.1["recording"].as_str();
            names.iter().any(|name| recording == Some(name))
        };
        let next = calls
            .into_iter()
            .filter(is_known)
            .map(|(tool, arguments)| Next {
                tool,
                about: "what led there".to_owned(),
                arguments,
                own: true,
            });
        Ok(found.with_next(next.collect()))
    }
}
