//! Implements the tool `find`, which shows when a condition holds, or which functions have a given
//! name.

use afterimage::ProfileQuery;
use afterimage::present::document::objects::Function;
use afterimage::profile::Sort;
use afterimage::values::{ConditionQuery, Instances, ValuesQuery, Wanted};
use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::history::listed;
use super::{Question, Subject, needs, next};
use crate::answer::{BODY, ToolResult, Totals, document_of, text_of};
use crate::schemas;

/// The condition or the text to search for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The recording.
    recording: String,
    /// Find the functions whose names contain this text, with the number of calls to each.
    name: Option<String>,
    /// Find the times at which this condition about variables of the source holds: `fee < 0 &&
    /// a->balance > 10`. Requires `at`.
    r#where: Option<String>,
    /// The place: `parser.c:42`, or a function.
    at: Option<String>,
    /// The times to report among all times at which the condition holds.
    which: Option<Which>,
    /// The executions of the place to consider: `A..B`, one number, `last`, or `t=T` for all from
    /// block T on.
    instances: Option<String>,
    /// Skip this many functions, to continue an answer.
    #[serde(default)]
    offset: usize,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Which {
    All,
    First,
    Last,
    Count,
}

/// Functions with a given name.
#[derive(Serialize, JsonSchema)]
struct Functions {
    /// The text that the functions' names contain.
    name: String,
    /// The functions, the most executed instructions first.
    functions: Vec<FoundFunction>,
}

/// A function.
#[derive(Serialize, JsonSchema)]
struct FoundFunction {
    /// The function.
    function: Function,
    /// The number of calls to the function.
    calls: u64,
    /// The number of instructions that the function executed itself.
    instructions: u64,
    /// The line of the function, if known: `parser.c:12`.
    source: Option<String>,
}

/// The maximum number of times in an answer.
const ROWS: u64 = 30;

impl Question for Arguments {
    const NAME: &'static str = "find";
    const TITLE: &'static str = "When a condition holds, or which functions have a name";
    const ABOUT: &'static str = "Shows the executions of a line or function at which a \
        condition about its variables holds (`at` and `where`): the first, the last, all of \
        them, or their number. With `name`, shows the functions whose names contain a string.";

    fn reports() -> Vec<Value> {
        vec![
            schemas::document("condition", None),
            schemas::report::<Functions>(),
        ]
    }

    fn recordings(&self) -> Vec<&str> {
        vec![&self.recording]
    }

    fn answer(&self, asked: &Subject<'_>) -> Result<ToolResult> {
        match (&self.name, &self.r#where, &self.at) {
            (Some(name), None, None) => self.functions(asked, name),
            (None, Some(condition), Some(at)) => self.condition(asked, condition, at),
            _ => Err(needs(
                "find: give name, or at and where; for what a place did each time, use history",
            )),
        }
    }
}

impl Arguments {
    fn condition(&self, asked: &Subject<'_>, condition: &str, at: &str) -> Result<ToolResult> {
        let instances = match &self.instances {
            None => Instances::All,
            Some(text) => text
                .parse()
                .map_err(|error| needs(&format!("find: instances {text}: {error}")))?,
        };
        let query = ConditionQuery {
            values: ValuesQuery {
                instances,
                limit: ROWS,
                ..ValuesQuery::new(at)
            },
            wanted: match self.which {
                None | Some(Which::All) => Wanted::All,
                Some(Which::First) => Wanted::First,
                Some(Which::Last) => Wanted::Last,
                Some(Which::Count) => Wanted::Count,
            },
            ..ConditionQuery::new(condition, at)
        };
        let mut report = asked.answered(|session| session.condition(&query))?;
        // A range shows all its executions, regardless of the limit.
        report.more += report.instances.len().saturating_sub(ROWS as usize) as u64;
        report.instances.truncate(ROWS as usize);
        let first = report.instances.first().map(|one| {
            let about = ("the state then".to_owned(), true);
            let place = super::place(at);
            next(
                "state",
                &self.recording,
                json!({ "at": format!("{place}#{}", one.number) }),
                about,
            )
        });
        let document = (document_of(&report)?, text_of(&report)?);
        let found = match query.wanted {
            Wanted::All => listed(document, "times", &query.values),
            // The query does not ask for the other times.
            Wanted::First | Wanted::Last | Wanted::Count => ToolResult {
                more: None,
                ..listed(document, "times", &query.values)
            },
        };
        Ok(found.with_next(first.into_iter().collect()))
    }

    fn functions(&self, asked: &Subject<'_>, name: &str) -> Result<ToolResult> {
        let query = ProfileQuery {
            sort: Some(Sort::Instructions),
            ..ProfileQuery::default()
        };
        let profile = asked.session()?.execution_counts(&[], &query)?;
        let profile = serde_json::to_value(&profile)?;
        let wanted = name.to_lowercase();
        let rows = profile["rows"].as_array().into_iter().flatten();
        let rows = rows.filter_map(|row| {
            let name = row["function"]["name"].as_str()?;
            let source = &row["source"];
            let source = source["file"]
                .as_str()
                .map(|file| format!("{file}:{}", source["line"]));
            name.to_lowercase()
                .contains(&wanted)
                .then(|| FoundFunction {
                    function: Function {
                        index: row["function"]["index"].as_u64().unwrap_or(0) as u32,
                        name: name.to_owned(),
                    },
                    calls: row["entries"].as_u64().unwrap_or(0),
                    instructions: row["instructions"].as_u64().unwrap_or(0),
                    source,
                })
        });
        let rows = Vec::from_iter(rows);
        let all = rows.len();
        let rows = rows.into_iter().skip(self.offset).take(BODY - 1);
        let functions = Vec::from_iter(rows);
        let mut text = String::from("   calls  instructions  function\n");
        for one in &functions {
            let FoundFunction {
                function,
                calls,
                instructions,
                source,
            } = one;
            let source = source.as_deref().unwrap_or("no line");
            text += &format!(
                "{calls:>8}  {instructions:>12}  {}  {source}\n",
                function.name
            );
        }
        let until = self.offset + functions.len();
        let called = functions.iter().find(|one| one.calls > 0);
        let first = called.map(|one| {
            let name = &one.function.name;
            let about = (format!("the first call to {name}"), true);
            next(
                "call",
                &self.recording,
                json!({ "at": format!("{name}#1") }),
                about,
            )
        });
        let totals = Totals {
            unit: "functions",
            shown: functions.len() as u64,
            all: Some(all as u64),
        };
        let report = Functions {
            name: name.to_owned(),
            functions,
        };
        let mut found = ToolResult::new(serde_json::to_value(&report)?, text, totals);
        found.more = (until < all).then(|| json!({ "offset": until }));
        Ok(found.with_next(first.into_iter().collect()))
    }
}
