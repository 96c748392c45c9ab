//! Answers questions about one execution of a function as a whole.
//!
//! For a moment of the run, reports the activation at that moment with its arguments and result,
//! its path by lines, and each line's changes, writes and calls. A call is one entry, without the
//! lines of the callee. Each statement is listed under the line at which the activation last
//! arrived before it.

mod path;

use std::collections::{BTreeMap, HashMap};

use afterimage_ids::{FuncId, OpId};
use afterimage_present::document::objects::{Function, Position, TypedValue};
use afterimage_present::{
    ActivationCall, ActivationCaller, ActivationChange, ActivationLine, ActivationReport,
    ActivationVariable, ActivationWrite, ChangedVariable, LineEntry, Sources, value_text,
};
use afterimage_profile::{Source, SourceLine};
use afterimage_program::Location;
use afterimage_replay::steps::{
    self, Enter, LineSteps, Range, Step, Steps, Value, WantedLines, What, Within,
};
use afterimage_replay::whole_path::{
    CallEntry, CallsOf, FileSegments, Positions, Window, kth_call,
};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::Session;
use crate::lines::{self, Lines};
use crate::named::{NamedProgram, with_names};
use crate::path::numbering;
use crate::steps::follow;
use path::folded;

/// Requests one execution of a function: its lines, changes, writes and calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivationQuery {
    /// A moment within the execution: `parse#3` (the third call to `parse`), `parser.c:42#7`,
    /// `@0x1f3#2` or `t=123456`. Selects the innermost function at that moment. If a report of the
    /// whole execution would be cut off before this moment, the report begins at the moment
    /// instead.
    pub at: String,
    /// The maximum number of arrivals at lines to report.
    pub arrivals: usize,
    /// The number of arrivals at which to read variables, counted from the first. Reading variables
    /// requires following the run.
    pub variables: usize,
}

/// The maximum number of the activation's statements to examine.
const STATEMENTS: usize = 200_000;
/// The maximum number of unexecuted lines to show between two executed lines.
const GAP: u32 = 4;
/// The maximum number of distinct writes, and of distinct calls, to show for a line.
const EACH: usize = 8;

impl ActivationQuery {
    /// The default number of arrivals.
    pub const ARRIVALS: usize = 20_000;
    /// The default number of arrivals at which to read variables.
    pub const VARIABLES: usize = 64;

    /// Creates a query about the execution that contains a moment.
    pub fn new(at: impl Into<String>) -> Self {
        Self {
            at: at.into(),
            arrivals: Self::ARRIVALS,
            variables: Self::VARIABLES,
        }
    }

    pub(crate) fn answer(&self, session: &Session) -> Result<ActivationReport> {
        with_names(session, |program| {
            let positions = program.positions()?;
            let moment = positions.moment(&self.at)?;
            let calls = around(session, moment.time)?;
            let Some(call) = calls.last() else {
                bail!("{}: no function is active at that moment", self.at);
            };
            lines::check(program.source)?;
            let asked = AnalysedCall {
                program,
                positions: &positions,
                call,
                arrivals: self.arrivals.max(1),
                variables: self.variables.max(1),
            };
            asked.report((moment.time, moment.op))
        })
    }
}

/// Returns the activation that executes a block, and the activations around it, outermost first.
fn around(session: &Session, time: u64) -> Result<Vec<CallEntry>> {
    let path = session.path()?;
    let mut cursor = path.cursor();
    cursor.seek(time)?;
    let Some(inner) = cursor.innermost()? else {
        return Ok(Vec::new());
    };
    let number = path.activations(inner.function)?.rank(inner.entered)?;
    Ok(kth_call(path, inner.function, number)?)
}

/// The data needed to analyse an activation.
struct AnalysedCall<'q, 'p> {
    program: NamedProgram<'p>,
    positions: &'q Positions<'p, FileSegments>,
    call: &'q CallEntry,
    /// The maximum number of arrivals to report, and the number at which to read variables.
    arrivals: usize,
    variables: usize,
}

/// A time, and an operator of the block at that time.
type Moment = (u64, Option<OpId>);

/// A part of an activation, from a moment on.
struct Part {
    /// The moment where it begins, if that is not the activation's beginning.
    from: Option<Moment>,
    done: Done,
    arrivals: Vec<Arrival>,
    /// The first arrival after the part.
    more: Option<Moment>,
    /// The first arrivals, with the variables that changed.
    watched: Vec<LineEntry>,
}

/// An arrival at a line.
struct Arrival {
    time: u64,
    op: Option<OpId>,
    line: SourceLine,
}

/// The effect of a statement.
enum Did {
    Wrote(Range, Option<Value>),
    Called(FuncId, Box<[Value]>),
    Got(FuncId, Box<[Value]>),
}

/// The effects of the statements of an activation.
struct Done {
    all: Vec<(u64, Option<OpId>, Did)>,
    /// The activation's stack frame.
    frame: Frame,
    /// The time of the last block whose effects are all known.
    reach: u64,
}

/// The changes, writes and calls gathered for a line.
#[derive(Default)]
struct Gathered {
    times: u64,
    first: Option<Moment>,
    changed: Vec<ActivationChange>,
    writes: Vec<ActivationWrite>,
    calls: Vec<(FuncId, ActivationCall)>,
    left_out: u64,
}

impl AnalysedCall<'_, '_> {
    fn report(&self, moment: Moment) -> Result<ActivationReport> {
        let (session, call) = (self.program.session, self.call);
        let path = session.path()?;
        let first = self.part(None, Frame::default())?;
        let parameters = first.watched.first().filter(|first| first.begins);
        let parameters = parameters.into_iter().flat_map(|first| &first.changed);
        let arguments = parameters.flatten().flatten().map(variable).collect();
        let Part {
            from,
            done,
            arrivals,
            more,
            watched,
        } = match first.more {
            Some(next) if next <= moment => self.part(Some(moment), first.done.frame)?,
            _ => first,
        };
        let mut gathered: BTreeMap<(String, u32), (SourceLine, Gathered)> = BTreeMap::new();
        let key = |line: &SourceLine| (line.path.clone(), line.line);
        for arrival in &arrivals {
            let at = (arrival.time, arrival.op);
            let line = gathered.entry(key(&arrival.line));
            let (_, line) = line.or_insert_with(|| (arrival.line.clone(), Gathered::default()));
            line.times += 1;
            line.first.get_or_insert(at);
        }
        for pair in watched.windows(2) {
            let found = gathered.get_mut(&key(&pair[0].line));
            let (_, line) = found.context("a line is missing from the activation")?;
            for one in pair[1].changed.iter().flatten().flatten() {
                change(&mut line.changed, one);
            }
        }
        let until = more.unwrap_or((u64::MAX, None));
        for (time, op, did) in &done.all {
            let before = arrivals.partition_point(|one| (one.time, one.op) <= (*time, *op));
            let Some(arrival) = before.checked_sub(1).and_then(|at| arrivals.get(at)) else {
                continue;
            };
            if (*time, *op) < until {
                let found = gathered.get_mut(&key(&arrival.line));
                let (_, line) = found.context("a line is missing from the activation")?;
                self.add(line, *time, did)?;
            }
        }
        let own = arrivals.first().map(|arrival| arrival.line.path.clone());
        let occurrences = path.activations(call.function)?;
        let kept = occurrences.rank(call.entered)?;
        let numbers = numbering(path);
        let unavailable = watched
            .iter()
            .find_map(|one| one.changed.as_ref()?.as_ref().err());
        Ok(ActivationReport {
            function: Function::new(self.program.names, call.function),
            call: numbers.of_kept(call.function, kept),
            calls: numbers
                .calls(call.function, occurrences.count())
                .unwrap_or(occurrences.count()),
            t: call.entered,
            end_t: call.left,
            blocks: call.blocks(path.length()),
            depth: call.depth,
            caller: self.caller()?,
            arguments,
            returned: self
                .returned()?
                .map(|values| values.iter().map(TypedValue::from).collect()),
            from: from.map(|(time, op)| self.position(time, op)).transpose()?,
            path: folded(&arrivals, own.as_deref()),
            arrivals: arrivals.len() as u64,
            more: more.map(|(time, op)| self.position(time, op)).transpose()?,
            lines: self.lines(gathered, own.as_deref())?,
            watched: watched.len().min(arrivals.len()) as u64,
            unavailable: unavailable.cloned(),
        })
    }

    /// Returns the part of the activation from a moment on.
    fn part(&self, from: Option<Moment>, frame: Frame) -> Result<Part> {
        let mut most = STATEMENTS;
        loop {
            let done = self.statements(from, frame, most)?;
            let (arrivals, more) = self.arrivals(from, done.reach)?;
            // Examine enough statements to know all effects of at least one arrival.
            if arrivals.is_empty() && more.is_some() {
                most = most.saturating_mul(2);
                continue;
            }
            return Ok(Part {
                from,
                watched: self.watched(from, done.reach)?,
                done,
                arrivals,
                more: more.map(|next| (next.time, next.op)),
            });
        }
    }

    /// Returns the results of the activation, if it returned.
    fn returned(&self) -> Result<Option<Box<[Value]>>> {
        let Some(left) = self.call.left else {
            return Ok(None);
        };
        let wanted = steps::Wanted {
            window: Window {
                first: left,
                last: left,
            },
            ..steps::Wanted::ALL
        };
        follow(self.program.session, |run, log| {
            let mut all = Steps::new(run, log, wanted)?;
            let mut returned = None;
            // A callee may also return at this time. The activation returns last, so the last
            // return overwrites the others.
            while let Some(step) = all.next()? {
                if let What::Return(values) = step.what {
                    returned = Some(values);
                }
            }
            Ok(returned)
        })
    }

    /// Returns the effects of the activation's own statements from a moment on, up to `most`
    /// statements.
    fn statements(&self, from: Option<Moment>, frame: Frame, most: usize) -> Result<Done> {
        let (session, call) = (self.program.session, self.call);
        let path = session.path()?;
        let last = call.left.unwrap_or(path.length());
        let window = Window {
            first: from.map_or(call.entered, |(time, _)| time),
            last,
        };
        let nested = if last > call.entered {
            nested(session, call, last)?
        } else {
            Vec::new()
        };
        let is_own = |time: u64| {
            let at = nested.partition_point(|(first, _)| *first <= time);
            at.checked_sub(1).is_none_or(|at| nested[at].1 < time)
        };
        let wanted = steps::Wanted {
            window,
            function: Some(call.function),
            ..steps::Wanted::ALL
        };
        follow(session, |run, log| {
            let mut all = Steps::new(run, log, wanted)?;
            let mut done = Done {
                all: Vec::new(),
                frame,
                reach: last,
            };
            let mut looked_at = 0;
            while let Some(step) = all.next()? {
                if !is_own(step.time) {
                    continue;
                }
                looked_at += 1;
                if looked_at > most {
                    done.reach = step.time - 1;
                    break;
                }
                if from.is_none() {
                    done.frame.see(&step, looked_at);
                }
                done.all.extend(effect(step, &done.frame));
            }
            Ok(done)
        })
    }

    /// Returns the wanted arrivals at the activation's lines.
    fn wanted(&self, from: Option<Moment>, reach: u64) -> WantedLines {
        let (first, op) = from.unwrap_or((self.call.entered, None));
        WantedLines {
            window: Window {
                first,
                last: reach.max(first),
            },
            within: Within {
                from: op.map(|op| (first, op)),
                to: None,
            },
            reverse: false,
            enter: Enter::UpTo(self.call.depth + 1),
            function: None,
        }
    }

    /// Returns the arrivals at the activation's lines, and the next arrival if there are more.
    fn arrivals(
        &self,
        from: Option<Moment>,
        reach: u64,
    ) -> Result<(Vec<Arrival>, Option<Arrival>)> {
        let session = self.program.session;
        let folded = session.folded(self.program.source);
        let stop = session.stops()?.first().copied();
        follow(session, |run, _| {
            let mut steps = LineSteps::new(run, &folded, stop, self.wanted(from, reach))?;
            let mut found = Vec::new();
            while let Some(step) = steps.next()? {
                if step.depth != self.call.depth {
                    continue;
                }
                let at = Location {
                    file: step.line.file,
                    line: step.line.number,
                    column: 0,
                };
                let arrival = Arrival {
                    time: step.time,
                    op: step.op,
                    line: folded.line(at),
                };
                if found.len() == self.arrivals {
                    return Ok((found, Some(arrival)));
                }
                found.push(arrival);
            }
            // The last arrival may have more effects than were examined.
            let end = self.call.left.unwrap_or(session.path()?.length());
            let cut = reach < end;
            let more = if cut { found.pop() } else { None };
            Ok((found, more))
        })
    }

    /// Returns the first arrivals, with the variables that changed.
    fn watched(&self, from: Option<Moment>, reach: u64) -> Result<Vec<LineEntry>> {
        let most = self.variables;
        let session = self.program.session;
        let folded = session.folded(self.program.source);
        let seen = (self.program, self.positions);
        follow(session, |run, _| {
            let mut lines = Lines::new(seen, run, &folded, self.wanted(from, reach), None)?;
            let mut found = Vec::new();
            while found.len() < most
                && let Some(entry) = lines.next(most)?
            {
                found.push(entry);
            }
            found.retain(|entry| entry.entered == self.call.entered);
            Ok(found)
        })
    }

    /// Adds a statement's effect to the data about its line.
    fn add(&self, line: &mut Gathered, time: u64, did: &Did) -> Result<()> {
        match did {
            Did::Wrote(range, value) => {
                let value = value.map(|value| value_text(value.ty, value.bits));
                let is_same = |one: &ActivationWrite| Range::from(one.access) == *range;
                match line.writes.iter().position(is_same) {
                    Some(same) => {
                        line.writes[same].times += 1;
                        line.writes[same].value = value;
                    }
                    None if line.writes.len() < EACH => line.writes.push(ActivationWrite {
                        access: (*range).into(),
                        times: 1,
                        value,
                    }),
                    None => line.left_out += 1,
                }
            }
            Did::Called(callee, arguments) => {
                match line.calls.iter().position(|(of, _)| of == callee) {
                    Some(same) => line.calls[same].1.times += 1,
                    None if line.calls.len() < EACH => {
                        let call = ActivationCall {
                            function: Function::new(self.program.names, *callee),
                            times: 1,
                            at: self.callee(*callee, time)?,
                            arguments: texts(arguments),
                            returned: Vec::new(),
                        };
                        line.calls.push((*callee, call));
                    }
                    None => line.left_out += 1,
                }
            }
            Did::Got(callee, values) => {
                let same = line.calls.iter_mut().find(|(of, _)| of == callee);
                if let Some((_, same)) = same.filter(|(_, same)| same.times == 1) {
                    same.returned = texts(values);
                }
            }
        }
        Ok(())
    }

    /// Returns the position of the call made by the block executed at `time`. Returns `None` if the
    /// block calls the host.
    fn callee(&self, callee: FuncId, time: u64) -> Result<Option<String>> {
        let session = self.program.session;
        if session.program().function(callee).is_none() {
            return Ok(None);
        }
        let path = session.path()?;
        let all = path.activations(callee)?;
        let number = all.rank(time + 1)?;
        let begun = all.select(number)?.map(|found| found.time);
        if begun != Some(time + 1) {
            return Ok(None);
        }
        let number = numbering(path).of_kept(callee, number);
        Ok(Some(self.named(callee, number, time + 1)))
    }

    /// Formats a call as a position, with the function's name if the name is unique.
    fn named(&self, function: FuncId, number: Option<u64>, time: u64) -> String {
        let name = self.program.names.function(function);
        let found = self.program.names.find(name, self.program.source);
        match number {
            Some(number) if found.is_ok_and(|found| found == function) => {
                format!("{name}#{number}")
            }
            _ => format!("t={time}"),
        }
    }

    fn caller(&self) -> Result<Option<ActivationCaller>> {
        let Some((function, block)) = self.call.site else {
            return Ok(None);
        };
        let session = self.program.session;
        let code = session.program().function(function);
        let op = code.and_then(|code| {
            let ops = &code.cfg.blocks[block].ops;
            ops.end.as_u32().checked_sub(1).map(OpId::from_u32)
        });
        let found = match op {
            Some(op) => self.program.operators.get(function, op)?,
            None => None,
        };
        let folded = session.folded(self.program.source);
        let source = found.and_then(|found| folded.locate(found.offset));
        let source = source.map(|at| Position::from(&self.program.source.line(at)));
        let time = self.call.entered.saturating_sub(1);
        let exact = op.map(|op| self.positions.written(function, op, time));
        let exact = exact.transpose()?.flatten();
        Ok(Some(ActivationCaller {
            function: Function::new(self.program.names, function),
            source,
            at: exact.unwrap_or_else(|| format!("t={time}")),
        }))
    }

    /// Formats an arrival as a position.
    fn position(&self, time: u64, op: Option<OpId>) -> Result<String> {
        let exact = op.map(|op| self.positions.written(self.call.function, op, time));
        let exact = exact.transpose()?.flatten();
        Ok(exact.unwrap_or_else(|| format!("t={time}")))
    }

    /// Returns the lines with their text, the lines of the function's own file first. Includes
    /// short gaps between executed lines.
    fn lines(
        &self,
        gathered: BTreeMap<(String, u32), (SourceLine, Gathered)>,
        own: Option<&str>,
    ) -> Result<Vec<ActivationLine>> {
        let mut files: HashMap<String, Option<Vec<String>>> = HashMap::new();
        let sources = self.program.session.sources();
        let mut text = |path: &str, line: u32| -> Option<String> {
            let known = files.entry(path.to_owned());
            let lines = known.or_insert_with(|| {
                let text = sources.read(path)?;
                Some(text.lines().map(str::to_owned).collect())
            });
            lines.as_ref()?.get(line.checked_sub(1)? as usize).cloned()
        };
        let mut all = Vec::from_iter(gathered);
        all.sort_by_key(|((path, _), _)| Some(path.as_str()) != own);
        let mut lines: Vec<ActivationLine> = Vec::new();
        for ((path, number), (line, found)) in all {
            let before = lines.last().filter(|last| last.source.file == path);
            let between = before.map_or(0..0, |last| last.source.line + 1..number);
            if between.len() <= GAP as usize {
                for skipped in between {
                    let text = text(&path, skipped).filter(|text| !text.trim().is_empty());
                    lines.extend(text.map(|text| {
                        ActivationLine {
                            source: Position::line(&path, skipped),
                            shown: SourceLine {
                                line: skipped,
                                ..line.clone()
                            }
                            .to_string(),
                            text: Some(text),
                            times: 0,
                            at: None,
                            changed: Vec::new(),
                            writes: Vec::new(),
                            calls: Vec::new(),
                            left_out: 0,
                        }
                    }));
                }
            }
            let position =
                |at: Option<Moment>| at.map(|(time, op)| self.position(time, op)).transpose();
            lines.push(ActivationLine {
                source: Position::line(&path, number),
                shown: line.to_string(),
                text: text(&path, number),
                times: found.times,
                at: position(found.first)?,
                changed: found.changed,
                writes: found.writes,
                calls: found.calls.into_iter().map(|(_, call)| call).collect(),
                left_out: found.left_out,
            });
        }
        Ok(lines)
    }
}

/// Returns the nested activations of the same function, each with its first and last block. Leaves
/// out activations inside other nested activations.
fn nested(session: &Session, call: &CallEntry, last: u64) -> Result<Vec<(u64, u64)>> {
    let path = session.path()?;
    let window = Window {
        first: call.entered + 1,
        last,
    };
    let mut calls = CallsOf::new(path, window, false, call.function)?;
    let mut found: Vec<(u64, u64)> = Vec::new();
    while let Some((_, inner)) = calls.next_call()? {
        let end = inner.left.unwrap_or(last);
        if found.last().is_none_or(|(_, outer)| *outer < inner.entered) {
            found.push((inner.entered, end));
        }
    }
    Ok(found)
}

/// The stack frame that holds an activation's variables in memory. A compiled function first lowers
/// the stack pointer to make room for it.
#[derive(Clone, Copy, Default)]
struct Frame {
    from: u64,
    to: u64,
}

impl Frame {
    /// Examines a statement. The first two statements show the stack pointer before and after it is
    /// lowered.
    fn see(&mut self, step: &Step, number: usize) {
        let What::Computed(value) = &step.what else {
            return;
        };
        match number {
            1 => self.to = value.bits.0,
            2 if value.bits.0 < self.to => self.from = value.bits.0,
            _ => {}
        }
    }

    fn holds(&self, range: &Range) -> bool {
        self.from > 0 && range.memory == 0 && (self.from..self.to).contains(&range.address)
    }
}

/// Returns the effect of a statement, if it is reported.
fn effect(step: Step, frame: &Frame) -> Option<(u64, Option<OpId>, Did)> {
    let did = match step.what {
        What::Store(range, value) => Did::Wrote(range, Some(value)),
        What::Call { callee, arguments } => Did::Called(callee, arguments),
        What::HostReturn(callee, values) => Did::Got(callee, values),
        other => Did::Wrote(other.written()?, None),
    };
    match &did {
        Did::Wrote(range, _) if frame.holds(range) => None,
        _ => Some((step.time, step.op, did)),
    }
}

fn texts(values: &[Value]) -> Vec<String> {
    let texts = values.iter().map(|value| value_text(value.ty, value.bits));
    texts.collect()
}

fn variable(one: &ChangedVariable) -> ActivationVariable {
    let value = one.now.value.clone();
    ActivationVariable {
        name: one.now.name.clone(),
        type_name: one.now.type_name.clone(),
        value: value.unwrap_or_else(|why| format!("<{why}>")),
    }
}

/// Adds a change of a variable to the list.
fn change(all: &mut Vec<ActivationChange>, one: &ChangedVariable) {
    let ActivationVariable {
        name,
        type_name,
        value,
    } = variable(one);
    match all.iter_mut().find(|known| known.name == name) {
        Some(known) => {
            known.times += 1;
            known.last = value;
        }
        None => all.push(ActivationChange {
            name,
            type_name,
            times: 1,
            first: value.clone(),
            last: value,
        }),
    }
}
