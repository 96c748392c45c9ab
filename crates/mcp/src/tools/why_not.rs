//! Implements the tool `why_not`, which shows why a place was not executed.

use afterimage::WhyNotQuery;
use afterimage::present::WhyNotView;
use anyhow::Result;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Question, Subject, next};
use crate::answer::{ToolResult, Totals, document_of, text_of};
use crate::schemas;

/// The place that was not executed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The recording.
    recording: String,
    /// The place: `parser.c:42`, `func+0x2a`, `@0x1f3`, or a function.
    at: String,
    /// Ask why it was not executed after this moment.
    after: Option<String>,
}

impl Question for Arguments {
    const NAME: &'static str = "why_not";
    const TITLE: &'static str = "Why a line did not run";
    const ABOUT: &'static str = "Shows why a line or function was not executed, in the whole \
        run or after a moment: the branch that went another way, the value that decided it, and \
        where that value came from.";

    fn reports() -> Vec<Value> {
        vec![schemas::document("why-not", None)]
    }

    fn recordings(&self) -> Vec<&str> {
        vec![&self.recording]
    }

    fn answer(&self, asked: &Subject<'_>) -> Result<ToolResult> {
        let query = WhyNotQuery {
            after: self.after.clone(),
            ..WhyNotQuery::new(&self.at)
        };
        let report = asked.answered(|session| session.why_not(&query))?;
        let view = WhyNotView {
            report: &report,
            file: "FILE".to_owned(),
        };
        let place = report.cause.kind.place();
        let leads = place.map(|place| {
            let about = (
                format!(
                    "where the deciding value came from, at {}",
                    place.described()
                ),
                !place.library,
            );
            next("why", &self.recording, json!({ "at": place.at }), about)
        });
        let steps = report.why.len() as u64;
        let totals = Totals {
            unit: "steps back from what decided it",
            shown: steps,
            all: Some(steps),
        };
        let found = ToolResult::new(document_of(&view)?, text_of(&view)?, totals);
        Ok(found.with_next(leads.into_iter().collect()))
    }
}
