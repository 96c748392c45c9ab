//! Reports the values of statements and variables, one by one or in summary.

mod condition;
mod variable;

use std::io::Write;

use afterimage_profile::SourceLine;
use afterimage_replay::state::Rank;
use afterimage_replay::values::Bits;
use schemars::JsonSchema;
use serde::Serialize;
use wasmparser::ValType;

use crate::document::objects::{Function, MemoryRange, Position, TypedValue, position};
use crate::document::{Document, NoRows, begin};
use crate::name::short_type;
use crate::number::grouped;
use crate::plain::plain;
use crate::render::Render;
use crate::table::wrapped;
use crate::{PresentError, Style, range_text, type_text};

pub use condition::{ConditionInstance, ConditionReport, ConditionValue};
pub use variable::{
    VariableCount, VariableInstance, VariableMissing, VariableReport, VariableRows, VariableStats,
    VariableValue,
};

/// The values of the statements at a place.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ValuesReport {
    /// The place as named by the user.
    pub at: String,
    /// The statements at the place that have values or other results to show.
    pub statements: Vec<StatementValues>,
    /// The number of memories. If there is only one, the text form omits the memory's number.
    #[serde(skip)]
    pub memories: u32,
    /// A description of the values that are not stored, and how to get them.
    #[serde(skip)]
    pub rest: String,
}

impl Document for ValuesReport {
    const NAME: &'static str = "values";
    const COMMAND: &'static str = "values";
    type Row = NoRows;
}

/// The values of a statement.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StatementValues {
    /// Its function.
    pub function: Function,
    /// The operator's offset in the original module.
    pub offset: u32,
    /// The operator's text, with demangled names.
    pub operator: String,
    /// Its line, if known.
    #[serde(serialize_with = "position")]
    #[schemars(with = "Option<Position>")]
    pub source: Option<SourceLine>,
    /// For library code that was inlined, the line that the text form shows instead.
    #[serde(skip)]
    pub own: Option<SourceLine>,
    /// The number of executions.
    pub executions: u64,
    /// Why nothing is known about the requested executions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The values of these executions.
    #[serde(flatten)]
    pub rows: ValueRows,
    /// The number of rows left out.
    pub more: u64,
    /// The number of requested executions outside the part of the run with stored values.
    #[serde(skip_serializing_if = "crate::document::is_zero")]
    pub outside: u64,
    /// Whether each execution was requested by number, so that the text form does not mention
    /// others.
    #[serde(skip)]
    pub named: bool,
}

/// The values of a statement, listed or counted.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ValueRows {
    /// The values are listed one by one.
    Instances {
        /// The executions.
        instances: Vec<ValuesInstance>,
    },
    /// The values are counted, for `--stats` and `--histogram`.
    Counts {
        /// The values, each with its number of occurrences.
        counts: Vec<ValueCount>,
        /// Why the last execution gave no value, if it trapped and ended the run.
        #[serde(skip_serializing_if = "Option::is_none")]
        trapped: Option<String>,
        /// Whether the text form shows a summary of the values.
        #[serde(skip)]
        stats: bool,
    },
}

/// The effect of an execution.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ValuesInstance {
    /// The number of the execution, from 1.
    pub number: u64,
    /// The time of its block.
    pub t: u64,
    /// The values that it gave, or its operands if it trapped.
    pub values: Vec<RoleValue>,
    /// The memory that it read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<MemoryRange>,
    /// The memory that it wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<MemoryRange>,
    /// Why the execution trapped, if it ended the run. A trapped execution read and wrote nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trapped: Option<String>,
}

/// A value, and its role in the statement.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RoleValue {
    /// The role of the value, empty for a result. `stored` (for an integer, only the bytes that
    /// were written), `set`, `decided by` and `returned` are other values of a statement. A call,
    /// or a statement without these values, has operands: `argument`, `index`, `carried`, `byte` of
    /// a fill, `from byte` of a data segment, or another operand.
    pub role: &'static str,
    /// The value.
    #[serde(flatten)]
    pub value: TypedValue,
    /// Its rank among values of its type.
    #[serde(skip)]
    pub rank: Rank,
}

impl RoleValue {
    /// Creates a value.
    pub fn new(role: &'static str, ty: ValType, bits: Bits) -> Self {
        Self {
            role,
            value: TypedValue::new(ty, bits),
            rank: rank(ty, bits),
        }
    }
}

/// The occurrences of a value.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ValueCount {
    /// The value.
    pub value: RoleValue,
    /// The number of occurrences.
    pub times: u64,
    /// The number of the first execution with this value, from 1.
    pub first: u64,
}

/// Returns the rank of a value among values of its type.
pub fn rank(ty: ValType, (low, high): Bits) -> Rank {
    match type_text(ty) {
        "i32" => Rank::Signed((low as u32 as i32).into()),
        "i64" => Rank::Signed((low as i64).into()),
        "f32" => Rank::Float(f32::from_bits(low as u32).into()),
        "f64" => Rank::Float(f64::from_bits(low)),
        _ => Rank::Unsigned(u128::from(low) | u128::from(high) << 64),
    }
}

impl ValuesInstance {
    /// Formats the effect of an execution: `stored 7 to 0x20, 4 bytes`.
    fn text(&self, memories: u32) -> String {
        let mut text = match &self.trapped {
            Some(why) => format!("trapped ({why})"),
            None => String::new(),
        };
        let values = self.values.iter().map(|value| match value.role {
            "" => value.value.text.clone(),
            role => format!("{role} {}", value.value.text),
        });
        let values = Vec::from_iter(values).join(", ");
        let range =
            |word, range: MemoryRange| format!("{word} {}", range_text(memories, range.into()));
        let parts = [
            (!values.is_empty()).then_some(values),
            self.read.map(|read| range("from", read)),
            self.written.map(|written| range("to", written)),
        ];
        let parts = Vec::from_iter(parts.into_iter().flatten()).join(" ");
        if !text.is_empty() && !parts.is_empty() {
            text.push_str(": ");
        }
        text + &parts
    }
}

impl Render for ValuesReport {
    const NAME: &'static str = "a report of values";

    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError> {
        let mut said = None;
        for (i, report) in self.statements.iter().enumerate() {
            // Write a reason that applies to a whole function only once.
            if report.refused.is_some() && report.refused == said {
                continue;
            }
            said.clone_from(&report.refused);
            if i > 0 {
                writeln!(out)?;
            }
            self.statement(out, report, style)?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        begin(out, self)
    }
}

impl ValuesReport {
    fn statement(
        &self,
        out: &mut dyn Write,
        report: &StatementValues,
        style: Style,
    ) -> Result<(), PresentError> {
        let place = report.own.as_ref().or(report.source.as_ref());
        let place = place.map_or(String::new(), |line| {
            format!("  {}", plain(&line.to_string()))
        });
        let head = format!(
            "@0x{:x} {}{place}  in {}: {}",
            report.offset,
            plain(&report.operator),
            plain(&short_type(&report.function.name)),
            match report.executions {
                0 => "never executed".to_owned(),
                count => format!("executed {}", times(count)),
            }
        );
        writeln!(out, "{}", style.heading(&head, 2))?;
        if let Some(why) = &report.refused {
            writeln!(out, "{:>12}  {}", "…", plain(why))?;
        }
        let outside = |out: &mut dyn Write| match report.outside {
            0 => Ok(()),
            some => writeln!(out, "{:>12}  {} {}", "…", grouped(some), self.rest),
        };
        match &report.rows {
            ValueRows::Counts {
                counts,
                trapped,
                stats,
            } => {
                if *stats {
                    extremes(out, counts)?;
                } else {
                    histogram(out, counts, report.more)?;
                }
                if let Some(why) = trapped {
                    writeln!(out, "{:>12}  trapped ({why})", times(1))?;
                }
                outside(out)?;
            }
            ValueRows::Instances { instances } => {
                for instance in instances {
                    let line = format!(
                        "{:>12}  t={:<14} {}",
                        format!("#{}", grouped(instance.number)),
                        grouped(instance.t),
                        instance.text(self.memories)
                    );
                    writeln!(out, "{}", row(line.trim_end(), style))?;
                }
                outside(out)?;
                if !report.named {
                    more_instances(out, report.more)?;
                }
            }
        }
        Ok(())
    }
}

fn histogram(out: &mut dyn Write, counts: &[ValueCount], more: u64) -> Result<(), PresentError> {
    for count in counts {
        writeln!(
            out,
            "{:>12}  {}",
            times(count.times),
            count.value.value.text
        )?;
    }
    more_values(out, more)
}

fn extremes(out: &mut dyn Write, counts: &[ValueCount]) -> Result<(), PresentError> {
    let order = |a: &&ValueCount, b: &&ValueCount| a.value.rank.order(&b.value.rank);
    let smallest = counts.iter().min_by(order);
    let largest = counts.iter().max_by(order);
    let most = counts.iter().max_by_key(|count| count.times);
    let (Some(smallest), Some(largest), Some(most)) = (smallest, largest, most) else {
        return Ok(());
    };
    let show = |count: &ValueCount| count.value.value.text.clone();
    if let [only] = counts {
        writeln!(out, "    always {} ({})", show(only), times(only.times))?;
        return Ok(());
    }
    writeln!(
        out,
        "    {} different values, from {} (first #{}) to {} (first #{}); {}",
        grouped(counts.len() as u64),
        show(smallest),
        grouped(smallest.first),
        show(largest),
        grouped(largest.first),
        most_often(&show(most), most.times)
    )?;
    Ok(())
}

/// Formats the row of an execution, with its value wrapped to the width of the terminal.
fn row(line: &str, style: Style) -> String {
    wrapped(line, style.width, 18)
}

/// Variables that a line changes: their values differ between the arrival at the line and the next
/// line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ChangedByLine {
    /// The variables, as written by the user.
    pub variables: Vec<String>,
    /// The next line. The variables have their new values there.
    #[serde(serialize_with = "position")]
    #[schemars(with = "Option<Position>")]
    pub next: Option<SourceLine>,
}

/// Writes that `what` happens before a line changes variables, and how to see the new values.
fn changed_by_line(
    out: &mut dyn Write,
    (what, see): (&str, &str),
    at: &str,
    changed: Option<&ChangedByLine>,
    style: Style,
) -> Result<(), PresentError> {
    if let Some(ChangedByLine { variables, next }) = changed
        && let Some(next) = next
    {
        let line = format!(
            "{what} before {} runs, which changes {}: to {see} the new value, use --at {}",
            plain(at),
            plain(&variables.join(" and ")),
            plain(&next.to_string())
        );
        writeln!(out, "{}", wrapped(&line, style.width, 2))?;
    }
    Ok(())
}

/// Writes the number of executions left out.
fn more_instances(out: &mut dyn Write, more: u64) -> Result<(), PresentError> {
    if more > 0 {
        writeln!(
            out,
            "{:>12}  {} more: --instances A..B, or --limit N",
            "…",
            grouped(more)
        )?;
    }
    Ok(())
}

/// Writes the number of values left out.
fn more_values(out: &mut dyn Write, more: u64) -> Result<(), PresentError> {
    if more > 0 {
        let values = if more == 1 { "value" } else { "values" };
        writeln!(
            out,
            "{:>12}  {} more {values}: --limit N",
            "…",
            grouped(more)
        )?;
    }
    Ok(())
}

/// Names the most frequent of several values.
fn most_often(value: &str, often: u64) -> String {
    match often {
        1 => "each once".to_owned(),
        often => format!("most often {value} ({})", times(often)),
    }
}

/// Formats a number of times.
fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        many => format!("{} times", grouped(many)),
    }
}
