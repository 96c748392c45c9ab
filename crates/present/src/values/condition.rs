//! Reports when a condition about variables holds.

use std::io::Write;

use schemars::JsonSchema;
use serde::Serialize;

use super::{ChangedByLine, VariableMissing, changed_by_line, more_instances, row as shown, times};
use crate::document::objects::Function;
use crate::document::{Document, NoRows, begin};
use crate::number::grouped;
use crate::plain::plain;
use crate::render::Render;
use crate::table::Paint;
use crate::{PresentError, Style};

/// The times at which a condition holds, among all times at which the run was at a place: right
/// before a line or an instruction, or after a function's prologue. The file docs/EXPRESSIONS.md
/// defines conditions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ConditionReport {
    /// The condition as written.
    pub condition: String,
    /// The place as named by the user.
    pub at: String,
    /// The number of arrivals at a line, executions of an instruction, or calls to a function.
    pub count: u64,
    /// The number of arrivals, executions or calls that were examined. It is smaller than `count`
    /// if only some were requested, or only the first or the last at which the condition holds.
    pub looked_at: u64,
    /// The number of examined arrivals, executions or calls for which the condition holds.
    pub holds: u64,
    /// The cases in which the condition's operands have no value, with the reasons.
    pub unknown: Vec<VariableMissing>,
    /// The times at which the condition holds.
    pub instances: Vec<ConditionInstance>,
    /// The number of further times at which the condition holds, which `instances` leaves out.
    pub more: u64,
    /// The variables that the line itself changes, after the condition was tested. Absent if none
    /// was found to change when the line was first and last executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<ChangedByLine>,
    /// The verb for the counted events: arrived at, executed, called.
    #[serde(skip)]
    pub happened: &'static str,
}

/// A time at which a condition holds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ConditionInstance {
    /// The number of the arrival, execution or call, from 1.
    pub number: u64,
    /// The time of its block.
    pub t: u64,
    /// The function.
    pub function: Function,
    /// The values of the condition's variables, in the condition's order.
    pub values: Vec<ConditionValue>,
}

/// The value of a variable.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ConditionValue {
    /// The variable, or expression, as written.
    pub name: String,
    /// The value in C notation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Why it has no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

impl Document for ConditionReport {
    const NAME: &'static str = "condition";
    const COMMAND: &'static str = "values --where EXPR";
    type Row = NoRows;
}

impl Render for ConditionReport {
    const NAME: &'static str = "a report of values";

    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError> {
        let looked_at = if self.looked_at == self.count {
            String::new()
        } else {
            format!(", tested {}", grouped(self.looked_at))
        };
        let head = format!(
            "{} at {}: {} {}{looked_at}, holds {}",
            plain(&self.condition),
            plain(&self.at),
            self.happened,
            times(self.count),
            times(self.holds)
        );
        writeln!(out, "{}", style.heading(&head, 2))?;
        for row in &self.instances {
            let value = |one: &ConditionValue| {
                let value = match (&one.value, &one.unavailable) {
                    (Some(value), _) => plain(value),
                    (None, why) => format!("<{}>", plain(why.as_deref().unwrap_or("?"))),
                };
                format!("{} = {value}", plain(&one.name))
            };
            let values = row.values.iter().map(value);
            let line = format!(
                "{:>12}  t={:<14} {}",
                format!("#{}", grouped(row.number)),
                grouped(row.t),
                Vec::from_iter(values).join(", ")
            );
            writeln!(out, "{}", shown(&line, style))?;
        }
        more_instances(out, self.more)?;
        for row in &self.unknown {
            let line = format!(
                "{:>12}  unknown: {}",
                times(row.times),
                plain(&row.unavailable)
            );
            writeln!(out, "{}", style.paint(Paint::Dead, &shown(&line, style)))?;
        }
        let what = ("the condition is tested", "test");
        changed_by_line(out, what, &self.at, self.changed.as_ref(), style)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        begin(out, self)
    }
}
