//! Implements the tool `call`, which shows one execution of a function as a whole.

use afterimage::ActivationQuery;
use afterimage::present::{ActivationLine, ActivationReport};
use anyhow::Result;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Question, Subject, next};
use crate::answer::{Next, ToolResult, Totals, document_of, page, text_of};
use crate::schemas;

/// An execution of a function.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The recording.
    recording: String,
    /// A moment within the execution: `parse#3` (the third call to parse), `parser.c:42#7` (the
    /// seventh arrival at that line), `@0x1f3#2` or `t=123456`. Selects the innermost function at
    /// that moment.
    at: String,
    /// Begin at this line of the answer, from 0. By default, a long answer begins a few lines
    /// before the line of `at`.
    offset: Option<usize>,
    /// End before this line of the answer, to continue an answer.
    until: Option<usize>,
}

/// The number of lines shown before the requested one.
const BEFORE: usize = 16;

impl Question for Arguments {
    const NAME: &'static str = "call";
    const TITLE: &'static str = "One execution of a function";
    const ABOUT: &'static str = "Shows one whole execution of a function: its arguments, its \
        result, its path by lines with loop counts, and what each line changed, wrote to memory \
        and called. Each line has the number of times it ran; lines with `-` did not run. Ask \
        this about a step of `why`, or about a call.";

    fn reports() -> Vec<Value> {
        vec![schemas::document("activation", None)]
    }

    fn recordings(&self) -> Vec<&str> {
        vec![&self.recording]
    }

    fn answer(&self, asked: &Subject<'_>) -> Result<ToolResult> {
        let session = asked.session()?;
        let whole = session.activation(&ActivationQuery::new(&self.at))?;
        let all = whole.lines.len();
        let begins = self.begins(&whole);
        let end = self.until.unwrap_or(all).min(all);
        let offset = self.offset.unwrap_or(begins).min(end);
        let of = |lines: &[ActivationLine]| ActivationReport {
            lines: lines.to_vec(),
            ..whole.clone()
        };
        let (lines, text) = page(&whole.lines[..end], offset, |lines| text_of(&of(lines)))?;
        let until = offset + lines.len();
        let mut found = ToolResult::new(
            document_of(&of(lines))?,
            text,
            Totals {
                unit: "lines of the call",
                shown: lines.len() as u64,
                all: Some(all as u64),
            },
        );
        found.next = self.next(&whole, lines);
        found.more = if until < end {
            Some(json!({ "offset": until }))
        } else if self.until.is_none() && begins > 0 && offset >= begins {
            // The lines before the first one that was shown.
            Some(json!({ "offset": 0, "until": begins }))
        } else {
            let next = whole.more.as_ref();
            next.map(|at| json!({ "at": at, "offset": null, "until": null }))
        };
        Ok(found)
    }
}

impl Arguments {
    /// Returns the first line shown by default.
    fn begins(&self, whole: &ActivationReport) -> usize {
        let is_asked = |line: &ActivationLine| {
            let of_line = self
                .at
                .split_once('#')
                .map_or(&*self.at, |(place, _)| place);
            line.at.as_deref() == Some(&*self.at) || line.shown == of_line
        };
        let at = whole.lines.iter().position(is_asked);
        if whole.lines.len() > crate::answer::BODY {
            at.map_or(0, |at| at.saturating_sub(BEFORE))
        } else {
            0
        }
    }

    fn next(&self, whole: &ActivationReport, lines: &[ActivationLine]) -> Vec<Next> {
        let mut all = Vec::new();
        if let Some(caller) = &whole.caller {
            let about = (
                format!("the call to {} that made this call", caller.function.name),
                true,
            );
            all.push(next(
                "call",
                &self.recording,
                json!({ "at": caller.at }),
                about,
            ));
        }
        let callees = lines.iter().flat_map(|line| &line.calls);
        for callee in callees {
            if let Some(at) = &callee.at {
                let about = (format!("what {} did", callee.function.name), true);
                all.push(next("call", &self.recording, json!({ "at": at }), about));
            }
        }
        all
    }
}
