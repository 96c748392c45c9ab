//! Sets breakpoints of all kinds, and finds where the run stops at them.

use std::io::Write;

use afterimage::debugger::{Access, Debugger, Direction, Position, RunTo, StopAt, StopPoint};
use afterimage_present::grouped;
use afterimage_replay::state::{Condition, Path};
use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use crate::debuggee::{Debuggee, position, sentence};
use crate::evaluate::parsed;
use crate::protocol::{
    Breakpoint, DataInfo, Locations, SetBreakpoints, SetExceptions, SetOthers, Wanted,
};

/// The request that sets a breakpoint. Each request replaces all breakpoints of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Lines of a file.
    Line(String),
    Function,
    Operator,
    Data,
}

impl Kind {
    fn reason(&self) -> &'static str {
        match self {
            Self::Line(_) => "breakpoint",
            Self::Function => "function breakpoint",
            Self::Operator => "instruction breakpoint",
            Self::Data => "data breakpoint",
        }
    }
}

/// A breakpoint.
struct Point<'a> {
    id: u64,
    kind: Kind,
    stop: StopPoint<'a>,
    /// The message logged instead of stopping.
    log: Option<Message>,
    /// The name of the breakpoint for the user.
    name: String,
}

/// All breakpoints.
#[derive(Default)]
pub(crate) struct Points<'a> {
    all: Vec<Point<'a>>,
    ids: u64,
    traps: bool,
}

/// The message of a log point: text, and expressions in braces.
struct Message {
    texts: Vec<String>,
    expressions: Vec<Condition>,
}

/// The maximum number of lines that a log point writes during one continuation of the run.
const MOST_LOGGED: usize = 1000;

impl Message {
    fn parse(text: &str) -> Result<Self> {
        let (mut texts, mut expressions) = (vec![String::new()], Vec::new());
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let after = &rest[open + 1..];
            let Some(close) = after.find('}') else {
                bail!("the log message lacks a '}}' after '{{'");
            };
            let expression = after[..close].trim();
            let parsed = parsed(expression).context("log message")?;
            if let Some(last) = texts.last_mut() {
                last.push_str(&rest[..open]);
            }
            texts.push(String::new());
            expressions.push(parsed);
            rest = &after[close + 1..];
        }
        if let Some(last) = texts.last_mut() {
            last.push_str(rest);
        }
        Ok(Self { texts, expressions })
    }

    fn with(&self, values: &[Result<String, String>]) -> String {
        let mut text = String::new();
        for (before, value) in self.texts.iter().zip(values) {
            text.push_str(before);
            match value {
                Ok(value) => text.push_str(value),
                Err(why) => text.push_str(&format!("<{why}>")),
            }
        }
        text.extend(self.texts.last().map(String::as_str));
        text
    }
}

impl<'a> Points<'a> {
    /// Whether the run stops where it trapped.
    pub(crate) fn stops_at_traps(&self) -> bool {
        self.traps
    }

    fn remove(&mut self, kind: &Kind) {
        self.all.retain(|point| point.kind != *kind);
    }

    fn id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    /// Returns where the run stops, like [`Debugger::run_to`], but identifies points by their
    /// positions among all breakpoints.
    pub(crate) fn run_to(
        &self,
        debugger: &Debugger<'a>,
        from: Position,
        direction: Direction,
        bound: Option<Position>,
    ) -> Result<RunTo> {
        let stopping = (0..)
            .zip(&self.all)
            .filter(|(_, point)| point.log.is_none());
        let (numbers, points): (Vec<usize>, Vec<_>) = stopping
            .map(|(number, point)| (number, &point.stop))
            .unzip();
        let mut found = debugger.run_to(from, &points, direction, bound)?;
        for point in &mut found.points {
            *point = numbers[*point];
        }
        Ok(found)
    }

    /// Returns the reason for a stop, and the identifiers of the breakpoints that the run hit.
    pub(crate) fn hit(&self, points: &[usize]) -> (&'static str, Vec<u64>) {
        let hit = || points.iter().filter_map(|&number| self.all.get(number));
        let reason = hit()
            .next()
            .map_or("breakpoint", |point| point.kind.reason());
        (reason, hit().map(|point| point.id).collect())
    }

    /// Describes a stop for the user, with the number of the execution.
    pub(crate) fn description(
        &self,
        debugger: &Debugger<'a>,
        at: Position,
        points: &[usize],
    ) -> Result<String> {
        let Some(point) = points.first().and_then(|&number| self.all.get(number)) else {
            return Ok(String::new());
        };
        Ok(match point.stop.count() {
            Some(count) => {
                let number = debugger.count_by(&point.stop, at)?;
                format!("{}: {} of {}", point.name, grouped(number), grouped(count))
            }
            None => {
                let access = point.stop.access();
                let done = access.map_or("reached", |access| match access {
                    Access::Read => "read",
                    Access::Write => "written",
                    Access::ReadWrite => "read or written",
                });
                format!("{} was {done}", point.name)
            }
        })
    }

    /// Returns the messages of log points between two positions.
    pub(crate) fn logged(
        &self,
        debugger: &Debugger<'a>,
        from: Position,
        to: Position,
    ) -> Result<Vec<String>> {
        let mut lines: Vec<(Position, String)> = Vec::new();
        let mut more = None;
        for point in &self.all {
            let Some(message) = &point.log else { continue };
            let mut passed = debugger.passed(&point.stop, (from, to), MOST_LOGGED + 1)?;
            if passed.len() > MOST_LOGGED {
                passed.truncate(MOST_LOGGED);
                more = Some(point);
            }
            let values = debugger.values_at(&passed, &message.expressions)?;
            let texts = passed.iter().zip(values);
            lines.extend(texts.map(|(at, values)| (*at, message.with(&values) + "\n")));
        }
        lines.sort_by_key(|(at, _)| *at);
        if to < from {
            lines.reverse();
        }
        let mut lines = Vec::from_iter(lines.into_iter().map(|(_, line)| line));
        if let Some(point) = more {
            lines.push(format!(
                "… {} prints more than {} lines: the rest is left out\n",
                point.name,
                grouped(MOST_LOGGED as u64)
            ));
        }
        Ok(lines)
    }
}

/// Returns a string, or `None` if it is missing or empty.
fn non_empty(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.trim().is_empty())
}

impl<'a, W: Write + Send + 'static> Debuggee<'_, 'a, W> {
    fn set(&mut self, kind: Kind, name: String, at: &StopAt, wanted: &Wanted) -> Breakpoint {
        let id = self.points.id();
        let found = || -> Result<(StopPoint<'a>, Option<Message>)> {
            let (condition, hits) = (
                non_empty(&wanted.condition),
                non_empty(&wanted.hit_condition),
            );
            let log = non_empty(&wanted.log_message)
                .map(Message::parse)
                .transpose()?;
            Ok((self.debugger.stop_point(at, condition, hits)?, log))
        };
        let (stop, log) = match found() {
            Ok(found) => found,
            Err(error) => {
                return Breakpoint {
                    id,
                    message: Some(sentence(&error)),
                    ..Breakpoint::default()
                };
            }
        };
        let message = stop.count().map(|count| match count {
            0 => "never executed in this run".to_owned(),
            1 => "executed once".to_owned(),
            count => format!("executed {} times", grouped(count)),
        });
        let taken = stop.line().filter(|_| matches!(kind, Kind::Line(_)));
        let name = taken.map_or(name, |line| format!("line {}", line.number));
        let line = stop.line().map(|line| self.numbering.line(line.number));
        self.points.all.push(Point {
            id,
            kind,
            stop,
            log,
            name,
        });
        Breakpoint {
            id,
            verified: true,
            message,
            line,
            ..Breakpoint::default()
        }
    }

    pub(crate) fn set_lines(&mut self, wanted: SetBreakpoints) -> Result<Value> {
        let mut all = wanted.breakpoints;
        if let (true, Some(lines)) = (all.is_empty(), wanted.lines) {
            let only_lines = lines.into_iter().map(|line| Wanted {
                line,
                ..Wanted::default()
            });
            all.extend(only_lines);
        }
        let path = self.file_of(&wanted.source);
        let kind = match &path {
            Ok(path) => Kind::Line(path.clone()),
            Err(_) => Kind::Line(String::new()),
        };
        self.points.remove(&kind);
        let mut breakpoints = Vec::new();
        for one in &all {
            let line = self.numbering.number_of(one.line);
            let found = match (&path, &line) {
                (Ok(path), &Ok(line)) => {
                    let at = StopAt::Line {
                        path: path.clone(),
                        line,
                    };
                    let name = format!("line {line}");
                    self.set(kind.clone(), name, &at, one)
                }
                (Err(error), _) | (_, Err(error)) => Breakpoint {
                    id: self.points.id(),
                    message: Some(sentence(error)),
                    ..Breakpoint::default()
                },
            };
            breakpoints.push(Breakpoint {
                source: Some(wanted.source.clone()),
                ..found
            });
        }
        Ok(json!({ "breakpoints": breakpoints }))
    }

    pub(crate) fn set_functions(&mut self, wanted: SetOthers) -> Result<Value> {
        self.points.remove(&Kind::Function);
        let set = wanted.breakpoints.iter().map(|one| {
            let at = StopAt::Place(one.name.clone());
            self.set(Kind::Function, one.name.clone(), &at, one)
        });
        Ok(json!({ "breakpoints": Vec::from_iter(set) }))
    }

    pub(crate) fn set_operators(&mut self, wanted: SetOthers) -> Result<Value> {
        self.points.remove(&Kind::Operator);
        let mut set = Vec::new();
        for one in &wanted.breakpoints {
            let address = address(&one.instruction_reference).and_then(|address| {
                let address = address.checked_add_signed(one.offset);
                address.ok_or_else(|| anyhow!("there is no such address"))
            });
            set.push(match address {
                Ok(address) => {
                    let name = format!("@0x{address:x}");
                    let at = StopAt::Place(name.clone());
                    Breakpoint {
                        instruction_reference: Some(format!("0x{address:x}")),
                        ..self.set(Kind::Operator, name, &at, one)
                    }
                }
                Err(error) => Breakpoint {
                    id: self.points.id(),
                    message: Some(sentence(&error)),
                    ..Breakpoint::default()
                },
            });
        }
        Ok(json!({ "breakpoints": set }))
    }

    pub(crate) fn set_data(&mut self, wanted: SetOthers) -> Result<Value> {
        self.points.remove(&Kind::Data);
        let mut set = Vec::new();
        for one in &wanted.breakpoints {
            let found = match watched(&one.data_id, one.access_type.as_deref()) {
                Ok((name, at)) => Ok(self.set(Kind::Data, name, &at, one)),
                Err(error) => Err(error),
            };
            set.push(found.unwrap_or_else(|error| Breakpoint {
                id: self.points.id(),
                message: Some(sentence(&error)),
                ..Breakpoint::default()
            }));
        }
        Ok(json!({ "breakpoints": set }))
    }

    pub(crate) fn set_exceptions(&mut self, wanted: SetExceptions) -> Result<Value> {
        self.points.traps = wanted.filters.iter().any(|filter| filter == "trap");
        Ok(Value::Null)
    }

    /// Returns the identifier with which to watch a variable or an address, or why this is
    /// impossible.
    pub(crate) fn data_info(&mut self, wanted: &DataInfo) -> Result<Value> {
        let bytes = wanted.bytes.map(u64::try_from).transpose();
        let bytes = bytes.context("bytes: must not be negative")?;
        let refused = |why: &str| json!({ "dataId": null, "description": why });
        if wanted.as_address {
            let address = address(&wanted.name)?;
            let bytes = bytes.unwrap_or(1);
            return self.data_range_of(address, bytes, &wanted.name);
        }
        let found = match position(wanted.variables_reference) {
            Some(handle) => self.part_named(handle, &wanted.name)?,
            None => self.object_named(wanted.frame_id, &wanted.name)?,
        };
        let (object, bytes) = match found {
            Ok((object, size)) => (object, bytes.unwrap_or(size)),
            Err(why) => return Ok(refused(&format!("{}: {why}", wanted.name))),
        };
        if let Some(address) = object.address() {
            return self.data_range_of(address, bytes, &wanted.name);
        }
        let frame = match position(wanted.variables_reference) {
            Some(handle) => self.frame_of_locals(handle)?,
            None => Some(self.frame(wanted.frame_id)?),
        };
        let is_whole = wanted
            .name
            .parse::<Path>()
            .is_ok_and(|path| path.is_variable());
        let Some(frame) = frame.filter(|_| is_whole) else {
            return Ok(refused(&format!(
                "{} is a part of a variable that is not in memory here; watch the whole variable",
                wanted.name
            )));
        };
        let Position { time, op, .. } = frame.position();
        Ok(json!({
            "dataId": format!("{time}.{op}.{} {}", frame.inlined, wanted.name),
            "description": format!("{} (not in memory; changes during this call)", wanted.name),
            "accessTypes": [Access::Write],
            "canPersist": false,
        }))
    }

    fn data_range_of(&self, address: u64, bytes: u64, name: &str) -> Result<Value> {
        if bytes == 0 || bytes > LARGEST_WATCHED {
            bail!("{name} has {bytes} bytes; from 1 to {LARGEST_WATCHED} can be watched");
        }
        Ok(json!({
            "dataId": format!("0x{address:x}+{bytes} {name}"),
            "description": format!("{name} ({bytes} bytes at 0x{address:x})"),
            "accessTypes": [Access::Read, Access::Write, Access::ReadWrite],
            "canPersist": false,
        }))
    }

    /// Returns the requested lines that have code.
    pub(crate) fn locations(&self, wanted: &Locations) -> Result<Value> {
        let path = self.file_of(&wanted.source)?;
        let first = self.numbering.number_of(wanted.line)?;
        let last = match wanted.end_line {
            Some(line) => self.numbering.number_of(line)?,
            None => first,
        };
        let lines = self.debugger.lines_with_code(&path, first..=last)?;
        let lines = lines.into_iter();
        let lines = lines.map(|line| json!({ "line": self.numbering.line(line) }));
        Ok(json!({ "breakpoints": Vec::from_iter(lines) }))
    }

    /// Returns why the run trapped at its current position.
    pub(crate) fn exception_info(&self) -> Result<Value> {
        let Some(why) = &self.exception else {
            bail!("the run is not where it trapped");
        };
        Ok(json!({
            "exceptionId": "trap",
            "description": why,
            "breakMode": "always",
            "details": {
                "message": why,
                "fullTypeName": "WebAssembly trap",
                "evaluateName": "why --trap",
            },
        }))
    }
}

/// The maximum number of watched bytes.
const LARGEST_WATCHED: u64 = 1 << 16;

/// Parses the kind of access of a data breakpoint. The default is `write`.
fn access(text: Option<&str>) -> Result<Access> {
    let text = text.unwrap_or("write");
    serde_json::from_value(text.into())
        .map_err(|_| anyhow!("{text}: set accessType to \"read\", \"write\" or \"readWrite\""))
}

/// Reads an address, in hexadecimal after `0x` or in decimal.
pub(crate) fn address(text: &str) -> Result<u64> {
    let text = text.trim();
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let parsed = match digits {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| anyhow!("{text:?} is not an address: write 0x and hexadecimal digits"))
}

/// Returns the name and the data that a `dataId` contains: `0x400+8 NAME` for bytes of memory, and
/// `TIME.OPERATOR.INLINED NAME` for a variable that is not in memory, with a position in its call and
/// the number of inlined calls that lead to its frame.
fn watched(id: &str, access_type: Option<&str>) -> Result<(String, StopAt)> {
    let access = access(access_type)?;
    let unknown = || anyhow!("{id:?} is not a dataId of dataBreakpointInfo");
    let (data, name) = id.split_once(' ').ok_or_else(unknown)?;
    let at = match data.split_once('+') {
        Some((first, bytes)) => {
            let bytes = bytes.parse().ok();
            let bytes = bytes.filter(|bytes| (1..=LARGEST_WATCHED).contains(bytes));
            StopAt::Memory {
                access,
                memory: 0,
                address: address(first).map_err(|_| unknown())?,
                bytes: bytes.ok_or_else(unknown)?,
            }
        }
        None => {
            let mut numbers = data.split('.').map(str::parse::<u64>);
            let mut number = || numbers.next().and_then(Result::ok).ok_or_else(unknown);
            let (time, op, inlined) = (number()?, number()?, number()?);
            if access != Access::Write {
                bail!("{name} is not in memory, so its reads cannot be watched");
            }
            let at = Position {
                time,
                op: u32::try_from(op).map_err(|_| unknown())?,
                ahead: 0,
            };
            StopAt::Variable {
                at,
                inlined: u32::try_from(inlined).map_err(|_| unknown())?,
                name: name.to_owned(),
            }
        }
    };
    Ok((name.to_owned(), at))
}
