//! Implements the tool `state`, which shows the call stack and its variables at a moment.

use afterimage::StateQuery;
use afterimage::present::StateView;
use anyhow::Result;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Question, Subject};
use crate::answer::{BODY, ToolResult, Totals, document_of, text_of};
use crate::schemas;

/// The moment, and the parts of the state to show.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The recording.
    recording: String,
    /// The moment: `parser.c:42#7`, `parse#3`, `@0x1f3#2`, `t=123456`, `50%`, `end`. Shows the
    /// state right before it.
    #[serde(default = "end")]
    at: String,
    /// Show only this function of the stack, counted from 0 for the innermost.
    frame: Option<usize>,
    /// The number of functions on the stack to show, from the innermost one.
    depth: Option<usize>,
    /// Also show global variables.
    #[serde(default)]
    globals: bool,
}

fn end() -> String {
    "end".to_owned()
}

impl Question for Arguments {
    const NAME: &'static str = "state";
    const TITLE: &'static str = "Stack and variables at a moment";
    const ABOUT: &'static str = "Shows the call stack at a moment of the run, with the values \
        of the arguments and local variables of the source.";

    fn reports() -> Vec<Value> {
        vec![schemas::document("state", None)]
    }

    fn recordings(&self) -> Vec<&str> {
        vec![&self.recording]
    }

    fn answer(&self, asked: &Subject<'_>) -> Result<ToolResult> {
        let mut query = StateQuery {
            depth: self.depth.unwrap_or(StateQuery::DEPTH).clamp(1, BODY),
            frame: self.frame,
            globals: self.globals,
            ..StateQuery::new(&self.at)
        };
        let session = asked.session()?;
        let state = |query: &StateQuery| -> Result<StateView> {
            match session.early_state(query)? {
                Some(view) => Ok(view),
                None => asked.answered(|session| session.state(query)),
            }
        };
        let mut view = state(&query)?;
        let mut text = text_of(&view)?;
        // If the answer is too long, the outermost functions are left for the next call. `depth`
        // counts the user's own functions only, so `frames` may stay longer.
        while text.lines().count() > BODY && query.depth > 1 {
            query.depth = query.depth.min(view.report.frames.len()).max(2) / 2;
            view = state(&query)?;
            text = text_of(&view)?;
        }
        let shown = view.report.frames.len();
        let last = view.report.frames.last().map_or(0, |frame| frame.number);
        let more = last + 1 < view.report.open;
        let mut found = ToolResult::new(
            document_of(&view)?,
            text,
            Totals {
                unit: "functions of the stack",
                shown: shown as u64,
                all: Some(view.report.open as u64),
            },
        );
        found.more = more.then(|| json!({ "frame": last + 1 }));
        Ok(found)
    }
}
