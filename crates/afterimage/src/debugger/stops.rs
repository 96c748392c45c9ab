//! Finds where a run stops: at executions of a place, which the path's grammar locates, at accesses
//! to memory, and at changes of variables.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use afterimage_ids::{FuncId, OpId, OrigOffset};
use afterimage_profile::Line;
use afterimage_profile::location::{Place, number};
use afterimage_program::{FileId, Location, SourceMap};
use afterimage_replay::state::{Condition, Variables};
use afterimage_replay::steps::Range;
use afterimage_replay::whole_path::{ArrivalTimes, FileSegments};
use afterimage_wpp::{Occurrences, Visit};
use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use super::changes::{Changing, Named};
use super::memory::{Access, Watched};
use super::{Debugger, Direction, Position};
use crate::places::{Site, reached};
use crate::values::{Look, first_variable};

/// The place to stop, as the user gives it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopAt {
    /// A line, a function or an operator, as `--at` of all commands takes it: `parser.c:42`,
    /// `parse`, `@0x1f3`.
    Place(String),
    /// A line of a file or, if the line has no code, the next line with code.
    Line {
        /// The path in the debug information, or a suffix of it.
        path: String,
        /// The line's number, from 1.
        line: u32,
    },
    /// Accesses to bytes of memory.
    Memory {
        /// The kind of access.
        access: Access,
        /// The index of the memory.
        memory: u32,
        /// The first address.
        address: u64,
        /// The number of bytes.
        bytes: u64,
    },
    /// Changes of a variable that is not in memory. Only changes during the call that executes
    /// `at` count.
    Variable {
        /// A position at which the variable is in scope.
        at: Position,
        /// The number of inlined calls that lead to the variable's frame.
        inlined: u32,
        /// The variable's name.
        name: String,
    },
}

/// Selects the executions of a place at which the run stops. Executions are counted from 1 over the
/// whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hits {
    /// Only this execution.
    Exactly(u64),
    /// This execution and all later ones.
    From(u64),
    /// All executions up to this one.
    To(u64),
    /// Every n-th execution.
    Every(u64),
}

impl FromStr for Hits {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let count = |digits: &str| number(digits.trim());
        let form = |sign: &str| text.strip_prefix(sign).and_then(count);
        let found = None
            .or_else(|| form(">=").map(Self::From))
            .or_else(|| form("<=").map(Self::To))
            .or_else(|| form("==").map(Self::Exactly))
            .or_else(|| form("=").map(Self::Exactly))
            .or_else(|| form(">").map(|from| Self::From(from.saturating_add(1))))
            .or_else(|| form("<").map(|to| Self::To(to.saturating_sub(1))))
            .or_else(|| form("%").filter(|every| *every > 0).map(Self::Every))
            .or_else(|| count(text).map(Self::Exactly));
        found.ok_or_else(|| {
            format!("hit count '{text}': write a number, >= 5, <= 5, > 5, < 5, == 5, or % 5 for every fifth execution")
        })
    }
}

impl fmt::Display for Hits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(number) => write!(f, "== {number}"),
            Self::From(number) => write!(f, ">= {number}"),
            Self::To(number) => write!(f, "<= {number}"),
            Self::Every(number) => write!(f, "% {number}"),
        }
    }
}

impl Hits {
    /// Returns the number of the nearest execution at which the run stops, searching from `number`
    /// in `direction`.
    fn nearest(self, number: u64, direction: Direction) -> Option<u64> {
        match (self, direction) {
            (Self::Exactly(only), Direction::Forward) => Some(only).filter(|it| *it >= number),
            (Self::Exactly(only), Direction::Backward) => Some(only).filter(|it| *it <= number),
            (Self::From(first), Direction::Forward) => Some(number.max(first)),
            (Self::From(first), Direction::Backward) => Some(number).filter(|it| *it >= first),
            (Self::To(last), Direction::Forward) => Some(number).filter(|it| *it <= last),
            (Self::To(last), Direction::Backward) => Some(number.min(last)),
            (Self::Every(step), Direction::Forward) => number.checked_next_multiple_of(step),
            (Self::Every(step), Direction::Backward) => Some(number - number % step),
        }
        .filter(|number| *number > 0)
    }
}

/// A place to stop, found in the program.
pub struct StopPoint<'a> {
    place: Points<'a>,
    /// The chosen line, if there is only one.
    line: Option<Line>,
    /// The function that contains all the point's code, if there is only one.
    function: Option<FuncId>,
    condition: Option<Condition>,
    hits: Option<Hits>,
}

/// A place with its line and the function that contains all its code, if each is unique.
type Found<'a> = (Points<'a>, Option<Line>, Option<FuncId>);

pub(super) enum Points<'a> {
    Line(ArrivalTimes<'a, FileSegments>),
    Calls(FuncId, Occurrences<'a, FileSegments>),
    /// All executions of an operator's block, and the number of them that reached the operator.
    Operator(OpId, Occurrences<'a, FileSegments>, u64),
    Memory(Watched),
    Variable(Changing<'a>),
}

/// The place where a run stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunTo {
    /// The position where the run stopped, or `None` if it reached its end, its beginning or the
    /// given bound without stopping.
    pub at: Option<Position>,
    /// The indices of the points that stopped the run there.
    pub points: Vec<usize>,
    /// The number of executions at which conditions were examined.
    pub looked_at: u64,
    /// The number of these executions at which the condition had no value.
    pub unknown: u64,
    /// The reason why the condition had no value in the last of these executions.
    pub why_unknown: Option<String>,
}

/// Returns the lines of a file with code, ascending, including lines whose calls were all inlined.
fn with_code(source: &SourceMap<'_>, file: FileId) -> Vec<u32> {
    let mut lines = source.lines_of(file);
    lines.extend(source.lines_of_inlined(file));
    lines.sort_unstable();
    lines.dedup();
    lines
}

impl<'a> StopPoint<'a> {
    /// Returns the chosen line. It differs from the requested line if the requested line has no
    /// code.
    pub fn line(&self) -> Option<Line> {
        self.line
    }

    /// Returns the number of executions of the place, ignoring conditions and hit counts. Returns
    /// `None` for accesses to memory and changes of variables, which are not counted.
    pub fn count(&self) -> Option<u64> {
        match &self.place {
            Points::Line(all) => Some(all.count()),
            Points::Calls(_, all) => Some(all.count()),
            Points::Operator(_, _, count) => Some(*count),
            Points::Memory(_) | Points::Variable(_) => None,
        }
    }

    /// Returns the kind of access to data at which the run stops.
    pub fn access(&self) -> Option<Access> {
        match &self.place {
            Points::Memory(watched) => Some(watched.access),
            Points::Variable(_) => Some(Access::Write),
            _ => None,
        }
    }

    pub(super) fn place(&self) -> &Points<'a> {
        &self.place
    }

    pub(super) fn function(&self) -> Option<FuncId> {
        self.function
    }
}

impl<'a> Debugger<'a> {
    /// Finds where to stop. Takes O(nodes of the path). In the worst case, opens all grammars.
    ///
    /// # Errors
    /// Returns an error if the program has no such place, the condition refers to something unknown
    /// there, the condition or the hit count is invalid, or one of them is given for accesses to
    /// memory or changes of a variable.
    pub fn stop_point(
        &self,
        at: &StopAt,
        condition: Option<&str>,
        hits: Option<&str>,
    ) -> Result<StopPoint<'a>> {
        let condition = condition.map(|text| -> Result<Condition> {
            let found: Result<Condition, _> = text.parse();
            found.map_err(|error| anyhow!("condition '{text}': {error}"))
        });
        let condition = condition.transpose()?;
        let hits = hits.map(|text| text.parse::<Hits>().map_err(|why| anyhow!(why)));
        let hits = hits.transpose()?;
        let is_data = matches!(at, StopAt::Memory { .. } | StopAt::Variable { .. });
        if is_data && (condition.is_some() || hits.is_some()) {
            bail!(
                "data breakpoints take no condition or hit count here: set a breakpoint with the \
                 condition on a line"
            );
        }
        let (place, line, function) = match at {
            StopAt::Place(text) => self.points(self.named(text)?, condition.as_ref())?,
            StopAt::Line { path, line } => {
                self.points(self.line_point(path, *line)?, condition.as_ref())?
            }
            StopAt::Memory {
                access,
                memory,
                address,
                bytes,
            } => {
                let range = Range {
                    memory: *memory,
                    address: *address,
                    length: *bytes,
                };
                let watched = Watched {
                    access: *access,
                    range,
                };
                (Points::Memory(watched), None, None)
            }
            StopAt::Variable { at, inlined, name } => {
                let inlined = Some(*inlined);
                let changing = self.changing(*at, Named { name, inlined })?;
                (Points::Variable(changing), None, None)
            }
        };
        Ok(StopPoint {
            place,
            line,
            function,
            condition,
            hits,
        })
    }

    fn named(&self, text: &str) -> Result<Place> {
        let resolved = self.program.resolver().location(text)?;
        if resolved.occurrence.is_some() {
            bail!(
                "a breakpoint is about all executions, but {text} names one: leave out the #, or go there with goto {text}"
            );
        }
        Ok(resolved.place)
    }

    /// Finds the executions of a place. Refuses a condition that refers to something unknown there.
    fn points(&self, place: Place, condition: Option<&Condition>) -> Result<Found<'a>> {
        if let Some(condition) = condition {
            let variables = self.known_variables()?;
            let names = self.program.names;
            first_variable(self.session(), (condition, &place), variables, names)?;
        }
        Ok(match place {
            Place::Function(function) => {
                if self.run.program.function(function).is_none() {
                    let name = self.program.names.short(function);
                    bail!(
                        "{name} is imported, so its calls are not part of the path; stop at its callers"
                    );
                }
                let calls = self.path().activations(function)?;
                (Points::Calls(function, calls), None, Some(function))
            }
            Place::Operator(function, op) => {
                let code = self.run.program.function(function);
                let block = code.and_then(|code| code.block_of(op));
                let block = block.context("this operator is in no block: it cannot be reached")?;
                let nodes = self.path().nodes().iter();
                let own = nodes.filter(|(_, node)| node.function == function);
                let targets = own.filter_map(|(id, node)| {
                    let at = node.blocks.iter().position(|&other| other == block)?;
                    Some((id, at as u64))
                });
                let all = self.path().executions(targets)?;
                let by = |time| Ok(all.rank(time)?);
                let count = reached(self.session(), (function, op), all.count(), by)?;
                (Points::Operator(op, all, count), None, Some(function))
            }
            Place::Line(line, operators) => {
                let functions = operators.iter().map(|(function, _)| *function);
                let all = self.positions.arrivals(line, functions)?;
                let first = operators.first().map(|(function, _)| *function);
                let is_it = |(function, _): &(FuncId, OpId)| Some(*function) == first;
                let only = first.filter(|_| operators.iter().all(is_it));
                (Points::Line(all), Some(line), only)
            }
        })
    }

    /// Finds the line, or the next line of the file with code.
    fn line_point(&self, path: &str, line: u32) -> Result<Place> {
        let source = self.program.source;
        let file = source.find_file(path)?;
        let mut lines = with_code(source, file);
        lines.retain(|other| *other >= line);
        let resolver = self.program.resolver();
        let full = source.path(file);
        let mut error = None;
        for line in std::iter::once(line).chain(lines).take(NEXT_LINES) {
            match resolver.location(&format!("{full}:{line}")) {
                Ok(found) => return Ok(found.place),
                Err(why) => error = error.or(Some(why)),
            }
        }
        Err(error.map_or_else(|| anyhow!("{path}:{line} has no code"), Into::into))
    }

    /// Returns the lines with code in a range of a file's lines.
    ///
    /// # Errors
    /// Returns an error if the program has no such file.
    pub fn lines_with_code(
        &self,
        path: &str,
        lines: std::ops::RangeInclusive<u32>,
    ) -> Result<Vec<u32>> {
        let source = self.program.source;
        let file = source.find_file(path)?;
        let mut found = with_code(source, file);
        found.retain(|line| lines.contains(line));
        Ok(found)
    }

    /// Returns where the run stops next, or stopped last, for one of these points. Does not look
    /// beyond `bound`. O(log executions) for each point without a condition. For a point with a
    /// condition, examines the executions one by one.
    ///
    /// # Errors
    /// Returns an error if the run cannot be followed, a condition can never have a value, or the
    /// search was interrupted.
    pub fn run_to(
        &self,
        from: Position,
        points: &[&StopPoint<'a>],
        direction: Direction,
        bound: Option<Position>,
    ) -> Result<RunTo> {
        let mut found = RunTo {
            at: bound,
            ..RunTo::default()
        };
        // Search for points without a condition first, because their stops limit the other
        // searches.
        let mut order = Vec::from_iter(0..points.len());
        order.sort_by_key(|&point| points[point].condition.is_some());
        for point in order {
            let at = match &points[point].place {
                Points::Memory(watched) => {
                    self.nearest_access(*watched, from, direction, found.at)?
                }
                Points::Variable(changing) => {
                    let change = self.nearest_change(changing, from, direction, found.at)?;
                    change.map(|change| match direction {
                        Direction::Forward => change.after,
                        Direction::Backward => change.by,
                    })
                }
                _ => self.nearest(points[point], from, direction, &mut found)?,
            };
            let Some(at) = at else { continue };
            let nearer = match (found.at, direction) {
                (None, _) => true,
                (Some(known), Direction::Forward) => at < known,
                (Some(known), Direction::Backward) => at > known,
            };
            if nearer {
                found.at = Some(at);
                found.points.clear();
            }
            if found.at == Some(at) {
                found.points.push(point);
            }
        }
        found.points.sort_unstable();
        if found.points.is_empty() {
            found.at = None;
        }
        Ok(found)
    }

    /// Returns the number of executions of a point that stop at a position or before it.
    pub fn count_by(&self, point: &StopPoint<'a>, at: Position) -> Result<u64> {
        let mut count = match &point.place {
            Points::Line(all) => all.by(at.time)?,
            Points::Calls(_, all) => all.rank(at.time)?,
            Points::Operator(_, all, count) => all.rank(at.time)?.min(*count),
            Points::Memory(_) | Points::Variable(_) => return Ok(0),
        };
        while count > 0
            && let Some(execution) = self.execution(point, count)?
            && execution.1 > at
        {
            count -= 1;
        }
        Ok(count)
    }

    /// Returns the position where the k-th execution of a point stops. Executions are counted from
    /// 1.
    pub(super) fn execution(
        &self,
        point: &StopPoint<'a>,
        number: u64,
    ) -> Result<Option<(Visit, Position)>> {
        let found = match &point.place {
            Points::Line(all) => all.get(number)?.map(|found| (found.time, found.op)),
            Points::Calls(function, all) => match all.select(number)? {
                Some(found) => {
                    let behind = self.prologue(*function)?.behind(found.time);
                    Some((behind.time, behind.op))
                }
                None => None,
            },
            Points::Operator(op, all, _) => {
                all.select(number)?.map(|found| (found.time, Some(*op)))
            }
            Points::Memory(_) | Points::Variable(_) => None,
        };
        let Some((time, op)) = found else {
            return Ok(None);
        };
        let visit = self.path().cursor().seek(time)?;
        let visit = visit.context("an execution is not in the path")?;
        let position = match (op, &point.place) {
            (None, _) => self.first_of(time)?,
            (Some(op), Points::Line(_)) => {
                let step = afterimage_replay::steps::LineStep {
                    time,
                    op: Some(op),
                    function: self.path().nodes()[visit.node].function,
                    line: point
                        .line
                        .context("the breakpoint of a line has no line number")?,
                    depth: 0,
                    visit,
                };
                let arrived = self.arrived(&step)?;
                if arrived.time > visit.last() {
                    let visit = self.path().cursor().seek(arrived.time)?;
                    let visit = visit.context("an execution is not in the path")?;
                    return Ok(Some((visit, arrived)));
                }
                arrived
            }
            (Some(op), _) => Position::new(time, op),
        };
        Ok(Some((visit, position)))
    }

    /// Returns the nearest execution beyond a position at which the run stops. With a condition,
    /// does not search beyond a stop that was already found.
    fn nearest(
        &self,
        point: &StopPoint<'a>,
        from: Position,
        direction: Direction,
        found: &mut RunTo,
    ) -> Result<Option<Position>> {
        let count = point.count().unwrap_or(0);
        let (first, last) = match direction {
            Direction::Forward => {
                let from = self.count_by(point, from)? + 1;
                let to = match found.at {
                    Some(at) if point.condition.is_some() => self.count_by(point, at)?,
                    _ => count,
                };
                (from, to)
            }
            Direction::Backward => {
                let mut to = self.count_by(point, from)?;
                while to > 0
                    && let Some((_, at)) = self.execution(point, to)?
                    && at >= from
                {
                    to -= 1;
                }
                let from = match found.at {
                    Some(at) if point.condition.is_some() => self.count_by(point, at)?.max(1),
                    _ => 1,
                };
                (from, to)
            }
        };
        if first > last {
            return Ok(None);
        }
        if point.condition.is_some() {
            return self.scan(point, first..=last, direction, found);
        }
        let near = match direction {
            Direction::Forward => first,
            Direction::Backward => last,
        };
        let near = point
            .hits
            .map_or(Some(near), |hits| hits.nearest(near, direction));
        let near = near.filter(|number| (first..=last).contains(number));
        let execution = near
            .map(|number| self.execution(point, number))
            .transpose()?;
        Ok(execution.flatten().map(|(_, at)| at))
    }

    /// Whether the k-th execution may stop the run, ignoring the condition.
    pub(super) fn may_stop(point: &StopPoint<'_>, number: u64) -> bool {
        let nearest = |hits: Hits| hits.nearest(number, Direction::Forward);
        point.hits.is_none_or(|hits| nearest(hits) == Some(number))
    }

    pub(super) fn condition<'p>(point: &'p StopPoint<'_>) -> Option<&'p Condition> {
        point.condition.as_ref()
    }

    /// Returns the positions at which a point stops the run on the way from the first of two
    /// positions (exclusive) to the second (inclusive). They are in the order in which they are
    /// reached: the latest first if the second position is the earlier one. Returns at most `most`
    /// positions, those nearest to the first of the two.
    ///
    /// # Errors
    /// Returns the same errors as [`run_to`](Self::run_to).
    pub fn passed(
        &self,
        point: &StopPoint<'a>,
        (from, to): (Position, Position),
        most: usize,
    ) -> Result<Vec<Position>> {
        let direction = if from <= to {
            Direction::Forward
        } else {
            Direction::Backward
        };
        let mut at = from;
        let mut found = Vec::new();
        while found.len() < most
            && let Some(next) = self.run_to(at, &[point], direction, Some(to))?.at
        {
            found.push(next);
            at = next;
        }
        if direction == Direction::Backward {
            found.sort_by_key(|at| Reverse(*at));
        }
        Ok(found)
    }

    /// Returns the interesting executions of a line, or of the next line with code: the first, the
    /// last, and those nearest to a position.
    ///
    /// # Errors
    /// Returns an error if there is no such line, or the path cannot be read.
    pub fn moments(&self, path: &str, line: u32, from: Position) -> Result<Vec<LineMoment>> {
        let at = StopAt::Line {
            path: path.to_owned(),
            line,
        };
        let point = self.stop_point(&at, None, None)?;
        let count = point.count().unwrap_or(0);
        let by = self.count_by(&point, from)?;
        let here = match self.execution(&point, by)? {
            Some((_, at)) if by > 0 && at == from => by,
            _ => by + 1,
        };
        let line = point.line().map_or(line, |line| line.number);
        let wanted = [
            (by + 1, "next"),
            (here.saturating_sub(1), "previous"),
            (1, "first"),
            (count, "last"),
        ];
        let mut found = Vec::new();
        for (number, which) in wanted {
            if (1..=count).contains(&number)
                && let Some((_, at)) = self.execution(&point, number)?
            {
                found.push(LineMoment {
                    at,
                    number,
                    count,
                    line,
                    which,
                });
            }
        }
        Ok(found)
    }

    /// Returns the place of a position in the user's own source.
    ///
    /// # Errors
    /// Returns an error if there is no such position.
    pub fn located(&self, at: Position) -> Result<Option<Location>> {
        let (_, offset) = self.place(at)?;
        if at.ahead > 0 {
            let frames = self.own_frames_around(offset, at.ahead);
            return Ok(frames.first().and_then(|frame| frame.location));
        }
        Ok(self.line(offset))
    }

    /// Finds an operator of the program by its offset.
    ///
    /// # Errors
    /// Returns an error if there is no operator at the offset.
    pub fn operator_at(&self, offset: OrigOffset) -> Result<Site> {
        let text = format!("@{offset}");
        match self.program.resolver().location(&text)?.place {
            Place::Operator(function, op) => Ok(Site {
                function,
                op,
                offset,
                text,
            }),
            _ => bail!("{text} is not an operator"),
        }
    }

    pub(super) fn look<'l>(
        &'l self,
        condition: &'l Condition,
        lists: bool,
    ) -> Result<Look<'l, 'a>> {
        Ok(Look::new(condition, self.known_variables()?, lists))
    }

    pub(super) fn known_variables(&self) -> Result<&'a Variables<'a>> {
        let variables = self.variables.as_ref().copied();
        variables.map_err(|error| anyhow!(error.to_string()))
    }
}

/// An execution of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineMoment {
    /// The position where the execution begins.
    pub at: Position,
    /// The number of the execution, from 1.
    pub number: u64,
    /// The total number of executions.
    pub count: u64,
    /// The line's number.
    pub line: u32,
    /// `"next"`, `"previous"`, `"first"` or `"last"`.
    pub which: &'static str,
}

/// The maximum number of lines to try after a line without code.
const NEXT_LINES: usize = 64;
