//! Reports the values of a source variable over time.

use std::io::Write;

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    ChangedByLine, changed_by_line, more_instances, more_values, most_often, row as shown, times,
};
use crate::document::objects::Function;
use crate::document::{Document, NoRows, begin};
use crate::name::{short_function, short_type};
use crate::number::grouped;
use crate::plain::plain;
use crate::render::Render;
use crate::table::Paint;
use crate::{PresentError, Style, WrittenSince};

/// The value of a variable, or of an expression, each time the run was at a place: right before a
/// line or an instruction, or after a function's prologue.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VariableReport {
    /// The variable as named by the user.
    pub variable: String,
    /// The place as named by the user.
    pub at: String,
    /// The number of arrivals at a line, executions of an instruction, or calls to a function.
    pub count: u64,
    /// The values.
    #[serde(flatten)]
    pub rows: VariableRows,
    /// The number of instances, or values, left out.
    pub more: u64,
    /// The variable, if the line itself changes it after its value was read. Absent if it was not
    /// found to change when the line was first and last executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<ChangedByLine>,
    /// The verb for the counted events: arrived at, executed, called.
    #[serde(skip)]
    pub happened: &'static str,
}

impl Document for VariableReport {
    const NAME: &'static str = "variable";
    const COMMAND: &'static str = "values --var NAME";
    type Row = NoRows;
}

/// Values of a variable.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum VariableRows {
    /// The values are listed one by one.
    Instances {
        /// The moments at which the variable was read.
        instances: Vec<VariableInstance>,
        /// Whether the user named each execution by number. If so, the text form does not mention
        /// others.
        #[serde(skip)]
        named: bool,
    },
    /// The values are counted, for `--stats` and `--histogram`.
    Summary {
        /// The statistics for each type.
        stats: Vec<VariableStats>,
        /// The values with their counts, the most frequent first.
        counts: Vec<VariableCount>,
        /// The number of cases without a value, with the reasons.
        missing: Vec<VariableMissing>,
        /// The number of moments at which the variable's place may hold another value.
        #[serde(skip_serializing_if = "crate::document::is_zero")]
        marked: u64,
        /// Whether the text form shows only the statistics.
        #[serde(skip)]
        brief: bool,
    },
}

/// A variable at a moment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VariableInstance {
    /// The number of the arrival, execution or call, from 1.
    pub number: u64,
    /// The time of its block.
    pub t: u64,
    /// The function.
    pub function: Function,
    /// The value, or the reason why there is none.
    #[serde(flatten)]
    pub value: VariableValue,
}

/// The value of a variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum VariableValue {
    /// A value.
    Known {
        /// Its type.
        #[serde(rename = "type")]
        type_name: String,
        /// The value in C notation.
        value: String,
        /// The last write to the variable's place since the call began. This write may have stored
        /// something other than the variable's value.
        #[serde(skip_serializing_if = "Option::is_none")]
        written: Option<WrittenSince>,
    },
    /// No value.
    Unavailable {
        /// The reason.
        unavailable: String,
    },
}

/// A summary of the values of one type.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VariableStats {
    /// The type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The number of distinct values.
    pub different: usize,
    /// The smallest value in C notation.
    pub smallest: String,
    /// The number of the first time at which the variable had the smallest value, from 1.
    pub smallest_first: u64,
    /// The largest value in C notation.
    pub largest: String,
    /// The number of the first time at which the variable had the largest value.
    pub largest_first: u64,
    /// The most frequent value in C notation.
    pub most: String,
    /// The number of times at which the variable had the most frequent value.
    pub most_times: u64,
}

/// A value of a variable, with its count.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VariableCount {
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The value in C notation.
    pub value: String,
    /// Its bits, in hexadecimal.
    pub bits: String,
    /// The number of times at which the variable had this value.
    pub times: u64,
}

/// A reason why a variable had no value, with its count.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VariableMissing {
    /// The reason.
    pub unavailable: String,
    /// The number of cases.
    pub times: u64,
}

impl Render for VariableReport {
    const NAME: &'static str = "a report of values";

    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError> {
        match &self.rows {
            VariableRows::Instances { instances, named } => {
                self.instances(out, instances, style)?;
                more_instances(out, if *named { 0 } else { self.more })?;
            }
            VariableRows::Summary {
                stats,
                counts,
                missing,
                marked,
                brief,
            } => {
                let one = match stats.as_slice() {
                    [one] => Some(one.type_name.as_str()),
                    _ => None,
                };
                self.head(out, one, style)?;
                if *brief {
                    for of_type in stats {
                        extremes(out, of_type, one.is_none())?;
                    }
                } else {
                    for count in counts {
                        let kind = match one {
                            Some(_) => String::new(),
                            None => format!(" ({})", plain(&short_type(&count.type_name))),
                        };
                        writeln!(
                            out,
                            "{:>12}  {}{kind}",
                            times(count.times),
                            plain(&count.value)
                        )?;
                    }
                    more_values(out, self.more)?;
                }
                if *marked > 0 {
                    writeln!(
                        out,
                        "{:>12}  may be wrong: the place has been written since the call began, or \
                         also belongs to another variable",
                        times(*marked)
                    )?;
                }
                for row in missing {
                    let why = plain(&row.unavailable);
                    let line = format!("{:>12}  <{why}>", times(row.times));
                    writeln!(out, "{}", style.paint(Paint::Dead, &shown(&line, style)))?;
                }
            }
        }
        let what = ("each value was read", "see");
        changed_by_line(out, what, &self.at, self.changed.as_ref(), style)
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        begin(out, self)
    }
}

impl VariableReport {
    /// Writes the head: `total (int) at app.c:17: arrived at 5 times`.
    fn head(
        &self,
        out: &mut dyn Write,
        kind: Option<&str>,
        style: Style,
    ) -> Result<(), PresentError> {
        let kind = kind.map_or(String::new(), |kind| {
            format!(" ({})", plain(&short_type(kind)))
        });
        let head = format!(
            "{}{kind} at {}: {} {}",
            plain(&self.variable),
            plain(&self.at),
            self.happened,
            times(self.count)
        );
        writeln!(out, "{}", style.heading(&head, 2))?;
        Ok(())
    }

    fn instances(
        &self,
        out: &mut dyn Write,
        rows: &[VariableInstance],
        style: Style,
    ) -> Result<(), PresentError> {
        let kind = rows.iter().find_map(|row| match &row.value {
            VariableValue::Known { type_name, .. } => Some(type_name.as_str()),
            VariableValue::Unavailable { .. } => None,
        });
        self.head(out, kind, style)?;
        let several = rows.iter().any(|row| row.function != rows[0].function);
        // Join consecutive rows that have no value for the same reason.
        let same = |a: &VariableInstance, b: &VariableInstance| {
            let is_missing = matches!(a.value, VariableValue::Unavailable { .. });
            is_missing && a.value == b.value && a.function == b.function
        };
        for rows in rows.chunk_by(same) {
            let row = &rows[0];
            let value = match &row.value {
                VariableValue::Known { value, written, .. } => {
                    let written = written.as_ref().map_or(String::new(), WrittenSince::text);
                    format!("{}{written}", plain(value))
                }
                VariableValue::Unavailable { unavailable } => format!("<{}>", plain(unavailable)),
            };
            let function = if several {
                format!("  in {}", plain(&short_function(&row.function.name)))
            } else {
                String::new()
            };
            let (number, time) = match rows {
                [.., last] if rows.len() > 1 => (
                    format!("#{}..{}", grouped(row.number), grouped(last.number)),
                    format!("{}..{}", grouped(row.t), grouped(last.t)),
                ),
                _ => (format!("#{}", grouped(row.number)), grouped(row.t)),
            };
            let line = format!("{number:>12}  t={time:<14} {value}{function}");
            let paint = match row.value {
                VariableValue::Known { .. } => Paint::Plain,
                VariableValue::Unavailable { .. } => Paint::Dead,
            };
            writeln!(out, "{}", style.paint(paint, &shown(&line, style)))?;
        }
        Ok(())
    }
}

fn extremes(
    out: &mut dyn Write,
    stats: &VariableStats,
    is_typed: bool,
) -> Result<(), PresentError> {
    let kind = if is_typed {
        format!("({}) ", plain(&short_type(&stats.type_name)))
    } else {
        String::new()
    };
    if stats.different == 1 {
        writeln!(
            out,
            "    {kind}always {} ({})",
            plain(&stats.smallest),
            times(stats.most_times)
        )?;
        return Ok(());
    }
    writeln!(
        out,
        "    {kind}{} different values, from {} (first #{}) to {} (first #{}); {}",
        grouped(stats.different as u64),
        plain(&stats.smallest),
        grouped(stats.smallest_first),
        plain(&stats.largest),
        grouped(stats.largest_first),
        most_often(&plain(&stats.most), stats.most_times)
    )?;
    Ok(())
}
