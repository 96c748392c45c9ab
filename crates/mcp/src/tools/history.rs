//! Implements the tool `history`, which shows the values of a variable, a statement or memory over
//! time.

use afterimage::memory::addresses;
use afterimage::values::{Instances, ValuesQuery};
use afterimage::{MemoryBytes, MemoryQuery, VariableQuery};
use anyhow::Result;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Question, Subject, needs};
use crate::answer::{BODY, ToolResult, Totals, document_of, text_of};
use crate::schemas;

/// The subject of the question.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The recording.
    recording: String,
    /// The place: `parser.c:42`, a function, `@0x1f3`. `#K` selects one execution. For `address`, a
    /// moment; the default is the end of the run.
    at: Option<String>,
    /// A variable of the source at `at`, or an expression such as `p->next`. By default, shows the
    /// values that the statements at `at` gave.
    var: Option<String>,
    /// Bytes of memory: `0x1040` for eight bytes, or `0x1040..0x107f`. Shows the last write to
    /// these bytes, and their next read and write.
    address: Option<String>,
    /// The executions to show: `A..B`, one number, `last`, or `t=T` for all from block T on.
    instances: Option<String>,
}

/// The maximum number of executions in an answer.
const ROWS: u64 = 30;

impl Question for Arguments {
    const NAME: &'static str = "history";
    const TITLE: &'static str = "Values over time";
    const ABOUT: &'static str = "Shows the value of a source variable each time that a place \
        was reached (`at` and `var`), or the values that the statements at a place gave (`at`). \
        With `address`, shows bytes of memory at a moment, their last write, and their next \
        read and write.";

    fn reports() -> Vec<Value> {
        ["variable", "values", "memory"]
            .map(|name| schemas::document(name, None))
            .into()
    }

    fn recordings(&self) -> Vec<&str> {
        vec![&self.recording]
    }

    fn answer(&self, asked: &Subject<'_>) -> Result<ToolResult> {
        if let Some(address) = &self.address {
            return self.memory(asked, address);
        }
        let at = self.at.as_ref();
        let at = at.ok_or_else(|| needs("history: give at (and var), or address"))?;
        let instances = match &self.instances {
            None => Instances::All,
            Some(text) => text
                .parse()
                .map_err(|error| needs(&format!("history: instances {text}: {error}")))?,
        };
        let values = ValuesQuery {
            instances,
            limit: ROWS,
            ..ValuesQuery::new(at)
        };
        let (document, text) = match &self.var {
            Some(name) => {
                let name = name.clone();
                let query = VariableQuery { name, values };
                let report = asked.answered(|session| session.variable_values(&query))?;
                (document_of(&report)?, text_of(&report)?)
            }
            None => {
                let report = asked.answered(|session| session.statement_values(&values))?;
                (document_of(&report)?, text_of(&report)?)
            }
        };
        Ok(listed(document, text, "executions"))
    }
}

impl Arguments {
    fn memory(&self, asked: &Subject<'_>, address: &str) -> Result<ToolResult> {
        let found = addresses(address).map_err(|why| needs(&format!("history: {why}")))?;
        let query = MemoryQuery {
            bytes: MemoryBytes::Range {
                memory: 0,
                address: found.0,
                bytes: found.1,
            },
            at: self.at.clone(),
        };
        let report = asked.session()?.memory(&query)?;
        let parts = report.parts.len() as u64;
        let totals = Totals {
            unit: "parts of the bytes",
            shown: parts,
            all: Some(parts),
        };
        Ok(ToolResult::new(
            document_of(&report)?,
            text_of(&report)?,
            totals,
        ))
    }
}

/// Returns an answer with instances: their number, and the arguments that request the next
/// instances.
pub(super) fn listed(document: Value, text: String, unit: &'static str) -> ToolResult {
    let lists = document["statements"].as_array().cloned();
    let lists = lists.unwrap_or_else(|| vec![document.clone()]);
    let (mut shown, mut more, mut last) = (0, 0, 0);
    for list in &lists {
        let instances = list["instances"].as_array();
        shown += instances.map_or(0, Vec::len) as u64;
        more += list["more"].as_u64().unwrap_or(0);
        let number = instances.and_then(|all| all.last()?["number"].as_u64());
        last = last.max(number.unwrap_or(0));
    }
    let mut found = ToolResult::new(
        document,
        text,
        Totals {
            unit,
            shown,
            all: Some(shown + more),
        },
    );
    let until = last.saturating_add(BODY as u64 / 2);
    found.more = (more > 0).then(|| json!({ "instances": format!("{}..{until}", last + 1) }));
    found
}
