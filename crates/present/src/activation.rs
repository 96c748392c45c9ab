//! Reports one execution of a function as a whole.

use std::io::Write;

use schemars::JsonSchema;
use serde::Serialize;

use crate::document::objects::{Function, MemoryRange, Position, TypedValue};
use crate::document::{Document, NoRows, begin};
use crate::name::{short_function, without_parameters};
use crate::number::counted;
use crate::plain::plain;
use crate::render::Render;
use crate::steps::range_text;
use crate::table::shortened;
use crate::{PresentError, Style, grouped};

/// One execution of a function: its arguments, its path as a list of lines, the effects of each
/// line, and its result.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ActivationReport {
    /// The function.
    pub function: Function,
    /// The number of the call, from 1; `null` if a filter left out calls.
    pub call: Option<u64>,
    /// The number of calls to the function.
    pub calls: u64,
    /// The time of its first block.
    pub t: u64,
    /// The time of its last block, including blocks of its callees; `null` if it was still open
    /// when the run ended.
    pub end_t: Option<u64>,
    /// The number of blocks executed from its first block to its last, including its callees.
    pub blocks: u64,
    /// The number of enclosing activations.
    pub depth: usize,
    /// Its caller; `null` for the host.
    pub caller: Option<ActivationCaller>,
    /// Its arguments.
    pub arguments: Vec<ActivationVariable>,
    /// The values it returned; `null` if it did not return.
    pub returned: Option<Vec<TypedValue>>,
    /// The lines in order of arrival: `4-6 (7 10 6)×3 12-15`. `(7 10 6)×3` means three repetitions
    /// of lines 7, 10 and 6. Lines of other files follow the name of their file. A long path ends
    /// with `…`.
    pub path: String,
    /// The position where the path begins, if it is not the beginning of the execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The number of arrivals at lines in the path.
    pub arrivals: u64,
    /// The position where the path continues, if the path is cut off.
    pub more: Option<String>,
    /// Its lines in order, the lines of its own file first. The list includes short gaps of lines
    /// that were not executed.
    pub lines: Vec<ActivationLine>,
    /// The number of arrivals, counted from the first, at which variables were examined for
    /// changes.
    pub watched: u64,
    /// Why the variables are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// The caller of an activation.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ActivationCaller {
    /// The function.
    pub function: Function,
    /// The line of the call, if known.
    pub source: Option<Position>,
    /// The call, as a position: `@0x1f3#7`, or a time.
    pub at: String,
}

/// A variable and its value.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ActivationVariable {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its value, in C notation.
    pub value: String,
}

/// A line that belongs to an activation.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ActivationLine {
    /// Its position.
    pub source: Position,
    /// Its displayed name: `bank.c:12`.
    #[serde(skip)]
    pub shown: String,
    /// Its text, if available.
    pub text: Option<String>,
    /// The number of times the activation arrived at it.
    pub times: u64,
    /// Its first arrival, as a position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The variables that it changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<ActivationChange>,
    /// Its writes to memory outside the function's own frame.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<ActivationWrite>,
    /// Its calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ActivationCall>,
    /// The number of writes and calls that are not listed because there are too many distinct ones.
    #[serde(skip_serializing_if = "crate::document::is_zero")]
    pub left_out: u64,
}

/// A variable that a line changed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ActivationChange {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The number of changes.
    pub times: u64,
    /// Its value after the first change.
    pub first: String,
    /// Its value after the last change.
    pub last: String,
}

/// Bytes that a line wrote.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ActivationWrite {
    /// The bytes written.
    pub access: MemoryRange,
    /// The number of times they were written.
    pub times: u64,
    /// The value written last, if the bytes are one value.
    pub value: Option<String>,
}

/// A function that a line called.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ActivationCall {
    /// The function.
    pub function: Function,
    /// The number of times it was called.
    pub times: u64,
    /// The first of the calls, as a position: `parse#7`; `null` for an import.
    pub at: Option<String>,
    /// The arguments of the first call, as WebAssembly values.
    pub arguments: Vec<String>,
    /// The results of the first call, if it is an import.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub returned: Vec<String>,
}

impl Document for ActivationReport {
    const NAME: &'static str = "activation";
    const COMMAND: &'static str = "calls --function F --call K --lines";
    type Row = NoRows;
}

/// The minimum width of the column for places.
const PLACE: usize = 18;
/// The maximum number of columns for the text of a line.
const SOURCE: usize = 56;
/// The maximum number of columns for a value.
const VALUE: usize = 60;
/// The maximum number of columns for the path.
const PATH: usize = 600;

impl ActivationReport {
    /// Returns the position of the call: `parse#7`, or the time of its first block if its number is
    /// unknown.
    pub fn at(&self) -> String {
        match self.call {
            Some(call) => format!("{}#{call}", self.function.name),
            None => format!("t={}", self.t),
        }
    }

    /// Formats the function, its arguments and its results.
    fn signature(&self) -> String {
        let name = plain(&short_function(without_parameters(&self.function.name)));
        let number = self
            .call
            .map_or(String::new(), |call| format!("#{}", grouped(call)));
        let arguments = self.arguments.iter().map(|one| {
            let value = shortened(&plain(&one.value), VALUE, 0);
            format!("{}={value}", plain(&one.name))
        });
        let arguments = Vec::from_iter(arguments).join(", ");
        let gave = match self.returned.as_deref() {
            None => " did not return".to_owned(),
            Some([]) => String::new(),
            Some(values) => {
                let values = values.iter().map(|value| value.text.clone());
                format!(" = {}", Vec::from_iter(values).join(", "))
            }
        };
        format!("{name}{number}({arguments}){gave}")
    }

    /// Describes the time and the caller of the call.
    fn placed(&self) -> String {
        let end = match self.end_t {
            Some(end) => format!("to {}", grouped(end)),
            None => "to the end of the run".to_owned(),
        };
        let from = match &self.caller {
            None => "called by the host".to_owned(),
            Some(caller) => {
                let name = plain(&short_function(without_parameters(&caller.function.name)));
                let line = caller.source.as_ref().map_or(String::new(), |at| {
                    format!(" at {}:{}", plain(&at.file), at.line)
                });
                format!("called by {name}{line} ({})", caller.at)
            }
        };
        format!(
            "{from}; t={} {end}, {}; one of {}",
            grouped(self.t),
            counted(self.blocks, "block"),
            counted(self.calls, "call")
        )
    }
}

impl ActivationLine {
    /// Describes the effects of the line, for people.
    fn done(&self) -> String {
        let changed = self.changed.iter().map(|one| {
            let text = |value: &str| shortened(&plain(value), VALUE, 0);
            let name = plain(&one.name);
            match one.times {
                1 => format!("{name} = {}", text(&one.last)),
                times => format!(
                    "{name} = {} … {} ({times} times)",
                    text(&one.first),
                    text(&one.last)
                ),
            }
        });
        let writes = self.writes.iter().map(|one| {
            let value = one.value.as_deref().unwrap_or("bytes");
            let range = range_text(0, one.access.into());
            match one.times {
                1 => format!("[{range}] <- {value}"),
                times => format!("[{range}] <- {value} ({times} times)"),
            }
        });
        let calls = self.calls.iter().map(|one| {
            let name = plain(&short_function(without_parameters(&one.function.name)));
            let number = one.at.as_deref().and_then(|at| at.rsplit_once('#'));
            let number = number.map_or(String::new(), |(_, number)| format!("#{number}"));
            let arguments = one.arguments.join(", ");
            let returned = match &one.returned[..] {
                [] => String::new(),
                values => format!(" = {}", values.join(", ")),
            };
            match one.times {
                1 => format!("calls {name}{number}({arguments}){returned}"),
                times => format!("calls {name}{number}({arguments}){returned}, {times} times"),
            }
        });
        let left_out = match self.left_out {
            0 => None,
            more => Some(format!("… {} more", grouped(more))),
        };
        let all = Vec::from_iter(changed.chain(writes).chain(calls).chain(left_out));
        all.join("; ")
    }
}

impl Render for ActivationReport {
    const NAME: &'static str = "an execution of a function";

    fn text(&self, out: &mut dyn Write, style: Style) -> Result<(), PresentError> {
        writeln!(out, "{}", self.signature())?;
        writeln!(out, "  {}", self.placed())?;
        writeln!(out, "path by lines: {}", shortened(&self.path, PATH, 0))?;
        let arrivals = counted(self.arrivals, "arrival");
        let shown = match &self.from {
            Some(from) => format!("{arrivals} from {from} on"),
            None => format!("the first {arrivals}"),
        };
        if let Some(more) = &self.more {
            writeln!(out, "  {shown}; continue at {more}")?;
        } else if self.from.is_some() {
            writeln!(out, "  {shown}")?;
        }
        if self.watched < self.arrivals {
            let watched = counted(self.watched, "arrival");
            writeln!(out, "  changes of variables: only at the first {watched}")?;
        }
        if let Some(why) = &self.unavailable {
            writeln!(out, "  variables are not known: {}", plain(why))?;
        }
        for line in &self.lines {
            let times = match line.times {
                0 => "-".to_owned(),
                times => grouped(times),
            };
            let text = line.text.as_deref().unwrap_or_default();
            let text = plain(text.trim_end());
            let done = line.done();
            let text = if done.is_empty() {
                text
            } else {
                format!("{:SOURCE$}", shortened(&text, SOURCE, 0))
            };
            let at = line.at.as_deref().unwrap_or_default();
            let shown = format!(
                "{times:>7}  {at:<12} {:<PLACE$}  {text}  {done}",
                plain(&line.shown)
            );
            writeln!(out, "{}", style.cut(shown.trim_end()))?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> Result<(), PresentError> {
        begin(out, self)
    }
}
