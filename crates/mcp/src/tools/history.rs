//! Implements the tool `history`, which shows the values of a variable, a statement or memory over
//! time.

use afterimage::memory::addresses;
use afterimage::present::values::{StatementValues, ValueRows, ValuesInstance, ValuesReport};
use afterimage::values::{Instances, ValuesQuery};
use afterimage::{MemoryBytes, MemoryQuery, VariableQuery};
use anyhow::Result;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Question, Subject, needs};
use crate::answer::{BODY, ToolResult, Totals, document_of, page, text_of};
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
    /// Skip this many statements, to continue an answer.
    #[serde(default)]
    offset: usize,
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
            ..ValuesQuery::new(at)
        };
        let Some(name) = &self.var else {
            return self.statements(asked, &values);
        };
        let query = VariableQuery {
            name: name.clone(),
            values: first_of(&values, ROWS),
        };
        let mut report = asked.answered(|session| session.variable_values(&query))?;
        report.more += beyond(&values, &query.values, report.count);
        let found = (document_of(&report)?, text_of(&report)?);
        Ok(listed(found, "executions", &values))
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

impl Arguments {
    /// Shows the same executions of all executed statements: as many as fit, but at least one.
    fn statements(&self, asked: &Subject<'_>, values: &ValuesQuery) -> Result<ToolResult> {
        let ask = |rows| -> Result<ValuesReport> {
            let first = first_of(values, rows);
            let mut report = asked.answered(|session| session.statement_values(&first))?;
            for one in &mut report.statements {
                one.more += beyond(values, &first, one.executions);
            }
            Ok(report)
        };
        let mut report = ask(1)?;
        let executed = report.statements.iter().filter(|one| one.executions > 0);
        // A statement has at least two lines besides its executions.
        let most = (BODY / executed.count().max(1)).saturating_sub(2) as u64;
        if most > 1 {
            report = ask(most.min(ROWS))?;
        }
        let never = report.statements.iter().filter(|one| one.executions == 0);
        let mut never = never.count();
        if never == report.statements.len() {
            never = 0;
        } else {
            report.statements.retain(|one| one.executions > 0);
        }
        let all = report.statements.iter().map(|one| shown(one) + one.more);
        let all = all.sum();
        let mut rows = most.clamp(1, ROWS) as usize;
        let (trimmed, cut) = loop {
            let (trimmed, cut) = trim(&report, values, rows);
            let lines = text_of(&trimmed)?.lines().count();
            if lines <= BODY || rows == 1 {
                break (trimmed, cut);
            }
            rows = (rows * BODY / lines).clamp(1, rows - 1);
        };
        let of = |statements: &[StatementValues]| ValuesReport {
            statements: statements.to_vec(),
            ..trimmed.clone()
        };
        let count = trimmed.statements.len();
        let offset = self.offset.min(count);
        let (statements, text) = page(&trimmed.statements, offset, |some| {
            let mut text = text_of(&of(some))?;
            if never > 0 {
                text += &format!("statements here that were never executed: {never}\n");
            }
            Ok(text)
        })?;
        let totals = Totals {
            unit: "executions of statements",
            shown: statements.iter().map(shown).sum(),
            all: Some(all),
        };
        let mut found = ToolResult::new(document_of(&of(statements))?, text, totals);
        let until = offset + statements.len();
        let executions = trimmed.statements.iter().map(|one| one.executions).max();
        let rest = cut.and_then(|cut| match values.instances {
            Instances::From(_) => Some(format!("t={cut}")),
            _ => rest(values, cut, executions.unwrap_or(0)),
        });
        found.more = if until < count {
            Some(json!({ "offset": until }))
        } else {
            rest.map(|rest| json!({ "offset": 0, "instances": rest }))
        };
        Ok(found)
    }
}

/// Returns the question about at most `rows` of the selected executions.
fn first_of(values: &ValuesQuery, rows: u64) -> ValuesQuery {
    let instances = match values.instances {
        Instances::Range(from, to) => Instances::Range(from, to.min(from.saturating_add(rows - 1))),
        other => other,
    };
    ValuesQuery {
        instances,
        limit: rows,
        ..values.clone()
    }
}

/// Returns the number of selected executions after those of a question about the first of them.
/// `count` is the number of all executions.
fn beyond(values: &ValuesQuery, first: &ValuesQuery, count: u64) -> u64 {
    match (values.instances, first.instances) {
        (Instances::Range(_, last), Instances::Range(_, shown)) => {
            last.min(count).saturating_sub(shown)
        }
        _ => 0,
    }
}

/// Returns the executions that a report about a statement shows.
fn instances(statement: &StatementValues) -> &[ValuesInstance] {
    match &statement.rows {
        ValueRows::Instances { instances } => instances,
        ValueRows::Counts { .. } => &[],
    }
}

fn shown(statement: &StatementValues) -> u64 {
    instances(statement).len() as u64
}

/// Cuts a report so that it shows at most `rows` executions of each statement. Also returns the
/// number of the first execution that it does not show. If the executions are selected from a time
/// on, returns a time instead of a number.
fn trim(report: &ValuesReport, values: &ValuesQuery, rows: usize) -> (ValuesReport, Option<u64>) {
    let key = |one: &ValuesInstance| match values.instances {
        Instances::From(_) => one.t,
        _ => one.number,
    };
    let cut = report.statements.iter().filter_map(|statement| {
        let all = instances(statement);
        let last = all.last()?;
        let more = match values.instances {
            Instances::From(_) => statement.more > 0,
            _ => rest(values, last.number + 1, statement.executions).is_some(),
        };
        let left_out = all.get(rows).map(key);
        left_out.or_else(|| more.then(|| key(last) + 1))
    });
    let cut = cut.min();
    let mut trimmed = report.clone();
    if let Some(cut) = cut {
        for statement in &mut trimmed.statements {
            if let ValueRows::Instances { instances } = &mut statement.rows {
                let before = instances.len();
                instances.retain(|one| key(one) < cut);
                statement.more += (before - instances.len()) as u64;
            }
        }
    }
    (trimmed, cut)
}

/// Returns an answer that lists executions. It contains their number, and the arguments that
/// request the next of the selected executions.
pub(super) fn listed(
    (document, text): (Value, String),
    unit: &'static str,
    values: &ValuesQuery,
) -> ToolResult {
    let instances = document["instances"].as_array();
    let shown = instances.map_or(0, Vec::len) as u64;
    let more = document["more"].as_u64().unwrap_or(0);
    let last = instances.and_then(|all| all.last()?["number"].as_u64());
    let count = document["count"].as_u64().unwrap_or(0);
    let last = last.filter(|_| more > 0);
    let rest = last.and_then(|last| rest(values, last + 1, count));
    let totals = Totals {
        unit,
        shown,
        all: Some(shown + more),
    };
    let mut found = ToolResult::new(document, text, totals);
    found.more = rest.map(|rest| json!({ "instances": rest }));
    found
}

/// Returns the selected executions from a number on, as an argument. `count` is the number of all
/// executions.
fn rest(values: &ValuesQuery, from: u64, count: u64) -> Option<String> {
    let last = match values.instances {
        Instances::Range(_, last) => last.min(count),
        // A number after the place selects one execution.
        Instances::All if values.at.contains('#') => from - 1,
        Instances::All | Instances::From(_) => count,
        Instances::One(_) | Instances::Last => from - 1,
    };
    (from <= last).then(|| format!("{from}..{last}"))
}
