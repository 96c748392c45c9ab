//! Implements the tool `diff`, which shows where two runs diverge.

use afterimage::diff::Programs;
use afterimage::diff::same::{SameQuery, same};
use afterimage::diff::versions::versions;
use afterimage::present::{Render, Style};
use afterimage::sources::FirstOf;
use anyhow::{Context, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{Question, Subject};
use crate::answer::{ToolResult, Totals, document_of, text_of};
use crate::schemas;

/// The runs to compare.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The first recording: the correct run, if one of the two was correct.
    recording: String,
    /// The second recording: of the same program, or of another version of it.
    other: String,
}

/// The maximum number of rows in each list.
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
        for session in [a, b] {
            session.ensure_inputs()?;
            session.ensure_path()?;
        }
        let alike = match Programs::of([a, b]) {
            Programs::Same => None,
            Programs::Alike(alike) => Some(alike),
            Programs::Versions => {
                return versions([a, b], Some(ROWS), |view| found(view));
            }
        };
        let sources = FirstOf(vec![&**a.sources(), &**b.sources()]);
        let query = SameQuery {
            lines: true,
            top: Some(ROWS),
            sources: &sources,
            style: Style::default(),
        };
        same([a, b], alike, &query, |view| found(view))
    }
}

fn found(view: &impl Render) -> Result<ToolResult> {
    let text = text_of(view)?;
    let lines = text.lines().count() as u64;
    let totals = Totals {
        unit: "lines of the report",
        shown: lines,
        all: Some(lines),
    };
    Ok(ToolResult::new(document_of(view)?, text, totals))
}
