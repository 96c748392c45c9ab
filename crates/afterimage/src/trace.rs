//! Reports what a run executed, in order.

mod bounds;
mod last;
mod skip;
mod statements;

use std::io::Write;

use afterimage_ids::FuncId;
use afterimage_present::document::objects::Function;
use afterimage_present::document::{JsonLines, Listed, TakeRows, WithRows};
use afterimage_present::{
    CallSource, LineStyle, NoSources, Scene, Sources, Stretch, Style, TraceHead, TraceLevel,
    absent, call_rows, calls_binary, calls_in_text, grouped, leave_out_library, line_rows,
    lines_text, narrow, trace_binary, trace_rows, trace_text, with_results,
};
use afterimage_profile::{OwnFunctions, Source};
use afterimage_replay::steps::{self, Enter, Wanted, WantedLines, Within};
use afterimage_replay::whole_path::{
    CallTree, CallsOf, FileSegments, PathFileError, Places, Positions, RecordedPath, Unit, Visits,
    Window, time_of,
};
use afterimage_wpp::Visit;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

pub use self::bounds::Bounds;
use self::bounds::{Bound, Direction, window};
use self::last::last_shown;
use crate::Session;
use crate::ended::results;
use crate::lines::{self, Lines};
use crate::named::{NamedProgram, with_names};
use crate::path::numbering;
use crate::rows::Form;
use crate::steps::follow;

/// The kind of entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// A basic block.
    Block,
    /// A path: blocks without a call between them, up to the next iteration of a loop.
    Path,
    /// An activation of a function.
    Call,
    /// A line of source, with the variables that changed.
    Line,
    /// A statement, with its values.
    Statement,
    /// An access to memory.
    Memory,
}

impl Level {
    /// Returns the corresponding level, if entries are found by following the run.
    fn of_steps(self) -> Option<steps::Level> {
        match self {
            Self::Statement => Some(steps::Level::Statement),
            Self::Memory => Some(steps::Level::Memory),
            Self::Block | Self::Path | Self::Call | Self::Line => None,
        }
    }
}

/// The calls that a walk by lines enters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepInto {
    /// All calls.
    #[default]
    Calls,
    /// Calls to one function, given by name.
    Function(String),
    /// No calls.
    Nothing,
}

/// The variables that a walk by lines shows with each line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineVariables {
    /// The variables that changed.
    #[default]
    Changed,
    /// None. The run is not followed, so the answer comes sooner.
    Omitted,
}

/// A report of what a run executed, in order.
pub type TraceReport = WithRows<TraceHead>;

/// Asks what a run executed, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceQuery {
    pub bounds: Bounds,
    /// The maximum number of entries, counted from the end of the stretch.
    pub last: Option<u64>,
    /// Whether to go backward, from the bound `from` to the bound `to`.
    pub reverse: bool,
    /// The only function with entries in the report, if one is given.
    pub function: Option<String>,
    pub level: Level,
    /// The number of levels of calls to show, counted from the beginning of the stretch.
    pub depth: usize,
    /// The calls to enter, at level `line`.
    pub into: StepInto,
    /// The variables to show, at level `line`.
    pub variables: LineVariables,
    /// The maximum number of entries.
    pub limit: Option<u64>,
}

/// A stretch, and the data needed to show its entries.
#[derive(Clone, Copy)]
struct Shown<'s, 'p> {
    program: NamedProgram<'p>,
    positions: &'s Positions<'p, FileSegments>,
    stretch: &'s Stretch,
    /// The functions that text output shows, if it leaves out any function.
    own: Option<&'s OwnFunctions<'p>>,
    sources: &'s dyn Sources,
    style: Style,
}

/// The destination and form of entries.
enum Target<'o> {
    Text(&'o mut dyn Write),
    Bin(&'o mut dyn Write),
    Rows(&'o mut dyn TakeRows<TraceHead>),
}

impl TraceQuery {
    /// Creates a query about the whole run.
    pub fn new(level: Level) -> Self {
        Self {
            bounds: Bounds::default(),
            last: None,
            reverse: false,
            function: None,
            level,
            depth: usize::MAX,
            into: StepInto::Calls,
            variables: LineVariables::Changed,
            limit: None,
        }
    }
}

/// The maximum number of statements or accesses to request from the end of a stretch. They are kept
/// in memory.
const MOST_LAST: u64 = 10_000_000;
/// The maximum number of blocks to read from a path that is not compacted. Compacting the whole
/// path takes longer than reading this number of blocks twice.
pub(crate) const MOST_UNBUILT: u64 = 10_000_000;
/// The minimum number of blocks to read from an uncompacted path for the text form. This form
/// leaves out library code, so a few blocks may have no entries.
const FOLDED: u64 = 1_000_000;
impl TraceQuery {
    fn direction(&self) -> Direction {
        if self.reverse {
            Direction::Backward
        } else {
            Direction::Forward
        }
    }

    /// Refuses requests that are too large.
    ///
    /// # Errors
    /// Returns an error if more entries are requested from the end than can be kept.
    pub fn check(&self) -> Result<()> {
        let name = match self.level {
            Level::Block | Level::Path | Level::Call => return Ok(()),
            Level::Line => "line",
            Level::Statement => "statement",
            Level::Memory => "memory",
        };
        if self.last.is_some_and(|last| last > MOST_LAST) {
            bail!(
                "--last is at most {} with --level {name}; for more, begin the stretch with --from",
                grouped(MOST_LAST)
            );
        }
        Ok(())
    }

    /// Reads only the requested part of a path that is not compacted, if the bounds of the request
    /// are times. The run may still be unfinished. Returns whether this is possible.
    ///
    /// # Errors
    /// Returns an error if the file is damaged, or the stretch is empty.
    pub fn use_words(&self, session: &Session, form: Form) -> Result<bool> {
        let [from, to] = self.bounds.in_time(self.direction());
        if let (Some(_), Some(count), (_, None), None) =
            (self.level.of_steps(), self.last, from, &self.function)
            && self.limit.is_none_or(|limit| limit >= count)
        {
            return self.use_last(session);
        }
        let blocks = self.level == Level::Block;
        // The data that the live run wrote does not say when open activations began.
        if !matches!(self.level, Level::Block | Level::Path) || self.function.is_some() {
            return Ok(false);
        }
        let wanted = |length: u64, longest: u64| -> Result<Option<(u64, u64)>> {
            let time = |(option, text): Bound<'_>, default| match text {
                Some(text) => time_of::<PathFileError>(text, length)
                    .with_context(|| format!("{option} {text}")),
                None => Ok(Some(default)),
            };
            let (first, last) = (time(from, 1)?, time(to, length)?);
            // Positions other than times can only be found in the whole path.
            let (Some(first), Some(last)) = (first, last) else {
                return Ok(None);
            };
            let Window { first, last } = window(first, last, self.direction())?;
            let least = if form == Form::Text { FOLDED } else { 0 };
            let (first, last) = match (self.last.map(|last| last.max(least)), self.limit) {
                (Some(entries), _) if blocks => (last.saturating_sub(entries).max(first), last),
                (Some(_), _) => return Ok(None),
                // Request one more entry than the limit, to learn whether there are more.
                (None, Some(limit)) => {
                    let blocks_of = if blocks { 1 } else { longest };
                    let enough = limit.saturating_add(1).saturating_mul(blocks_of);
                    let enough = enough.max(least);
                    if self.reverse {
                        (first.max(last.saturating_sub(enough)), last)
                    } else {
                        (first, last.min(first.saturating_add(enough)))
                    }
                }
                (None, None) => (first, last),
            };
            Ok((last - first < MOST_UNBUILT).then_some((first, last)))
        };
        session.use_stretch(|length, longest| {
            let found = wanted(length, longest);
            found.with_context(|| session.at().display().to_string())
        })
    }

    /// Writes the entries. `is_stretch` says that only a stretch of the path exists, and that only
    /// the number of blocks is known outside it. `writing` runs the writer.
    ///
    /// # Errors
    /// Returns an error if there is no such stretch or function, the recording is damaged, or
    /// writing fails.
    pub fn write(
        &self,
        session: &Session,
        is_stretch: bool,
        form: Form,
        shown: (&dyn Sources, Style),
        writing: impl FnOnce(&mut dyn FnMut(&mut dyn Write) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let of = (is_stretch, form == Form::Text);
        self.entries(session, of, shown, |tell| {
            writing(&mut |out| match form {
                Form::Text => narrow(out, shown.1, |out| tell(Target::Text(out))),
                Form::Bin => tell(Target::Bin(out)),
                Form::Json => tell(Target::Rows(&mut JsonLines(out))),
            })
        })
    }

    /// Returns the entries. The path must exist.
    pub(crate) fn answer(&self, session: &Session) -> Result<TraceReport> {
        let mut rows = Listed::default();
        let shown = (&NoSources as &dyn Sources, Style::default());
        self.entries(session, (false, false), shown, |tell| {
            tell(Target::Rows(&mut rows))
        })?;
        let report = rows.all().into_iter().next();
        report.context("the trace has no head")
    }

    fn entries(
        &self,
        session: &Session,
        (is_stretch, is_text): (bool, bool),
        (sources, style): (&dyn Sources, Style),
        telling: impl FnOnce(&mut dyn FnMut(Target<'_>) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let traced = session;
        with_names(session, |program| {
            let function = self.function.as_deref();
            let function = function.map(|text| program.function(text));
            let positions = program.positions()?;
            if traced.path()?.length() == 0 {
                bail!("the run executed no block, so there is nothing to trace");
            }
            let (window, within) = match self.level {
                Level::Line | Level::Statement | Level::Memory => {
                    self.bounds
                        .exactly(&positions, self.level, self.direction())?
                }
                Level::Block | Level::Path | Level::Call => {
                    let window = self.bounds.window_of(&positions, self.direction())?;
                    (window, Within::default())
                }
            };
            let mut stretch = Stretch {
                window,
                reverse: self.reverse,
                function: function.transpose()?,
            };
            if let Some(function) = stretch.function
                && !(self.level == Level::Statement
                    && is_open(traced.path()?, function, window.first)?)
            {
                executed(
                    traced.path()?,
                    function,
                    window,
                    &program.names.short(function),
                )?;
            }
            // Show a function that the user names, even if it is library code.
            let is_folded =
                is_text && stretch.function.is_none() && !program.own.folded.shows_all();
            let own = is_folded.then_some(program.own);
            let source: &dyn Source = own.map_or(program.source, |own| own.folded);
            let places = Places::new(traced.program(), traced.bytes(), source);
            let scene = Scene {
                path: traced.path()?,
                names: program.names,
                places: &places,
                own,
                sources,
                left_out: &traced.path()?.segments().directory().left_out,
                style,
            };
            let mut limit = self.limit;
            let shown = Shown {
                program,
                positions: &positions,
                stretch: &stretch,
                own,
                sources,
                style,
            };
            if self.level == Level::Line {
                let enter = match &self.into {
                    StepInto::Calls => Enter::Calls,
                    StepInto::Function(text) => Enter::Function(program.function(text)?),
                    StepInto::Nothing => Enter::Nothing,
                };
                let wanted = WantedLines {
                    window,
                    within,
                    reverse: self.reverse,
                    enter,
                    function: stretch.function,
                };
                return self.lines(shown, wanted, telling);
            }
            if let Some(level) = self.level.of_steps() {
                let wanted = Wanted {
                    level,
                    window: stretch.window,
                    within,
                    function: stretch.function,
                    range: None,
                };
                return self.statements(shown, wanted, telling);
            }
            if let Some(entries) = self.last {
                let unit = match self.level {
                    Level::Block => Some(Unit::Block),
                    Level::Path => Some(Unit::Path),
                    Level::Call | Level::Line | Level::Statement | Level::Memory => None,
                };
                if let Some(unit) = unit {
                    stretch.window = last_shown(traced, &stretch, own, (unit, entries))?;
                }
                limit = limit.filter(|&limit| limit < entries);
            }
            telling(&mut |mut to| {
                let rest = match self.level {
                    Level::Block | Level::Path | Level::Line | Level::Statement | Level::Memory => {
                        self.visits(&mut to, (&scene, is_stretch), &stretch, limit)?
                    }
                    Level::Call => self.calls(&mut to, &scene, &stretch, limit)?,
                };
                // After the stretch, only the number of blocks is known.
                let unknown = is_stretch && self.level != Level::Block;
                let rest = rest.map(|rest| Rest {
                    count: rest.count.filter(|_| !unknown),
                    ..rest
                });
                match to {
                    Target::Text(out) => ending(out, traced, &stretch, rest),
                    Target::Bin(_) | Target::Rows(_) => Ok(()),
                }
            })
        })
    }

    fn lines<'p>(
        &self,
        shown: Shown<'_, 'p>,
        wanted: WantedLines,
        telling: impl FnOnce(&mut dyn FnMut(Target<'_>) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let Shown {
            program,
            positions,
            stretch,
            ..
        } = shown;
        let session = program.session;
        let folded = session.folded(program.source);
        lines::check(program.source)?;
        let limit = self.limit;
        // Request one more line than the limit, to learn whether there are more.
        let most = limit.map_or(usize::MAX, |limit| {
            usize::try_from(limit.saturating_add(1)).unwrap_or(usize::MAX)
        });
        let last = self.last.and_then(|last| usize::try_from(last).ok());
        follow(session, |run, _| {
            let mut lines = Lines::new((program, positions), run, &folded, wanted, last)?;
            if self.variables == LineVariables::Omitted {
                lines = lines.without_variables();
            }
            let mut next = || lines.next(most).map_err(lines::unreadable);
            telling(&mut |to| {
                match to {
                    Target::Bin(_) => {
                        bail!("--level line has no binary form: choose --format text or json")
                    }
                    Target::Rows(to) => {
                        let function = stretch.function;
                        let function = function.map(|it| Function::new(program.names, it));
                        let length = session.path()?.length();
                        line_rows(to, &mut next, stretch, function, length, limit)?;
                    }
                    Target::Text(out) => {
                        let how = LineStyle {
                            sources: shown.sources,
                            style: shown.style,
                            reverse: stretch.reverse,
                            last: stretch.window.last,
                        };
                        let Some(entry) = lines_text(out, how, &mut next, limit)? else {
                            return ending(out, session, stretch, None);
                        };
                        let exact = entry
                            .op
                            .map(|op| positions.written(entry.function, op, entry.time));
                        let exact = exact.transpose()?.flatten();
                        let next = exact.unwrap_or_else(|| entry.time.to_string());
                        ending(out, session, stretch, Some(Rest { next, count: None }))?;
                    }
                }
                Ok(())
            })
        })
    }

    fn visits(
        &self,
        to: &mut Target<'_>,
        (scene, is_stretch): (&Scene<'_, FileSegments>, bool),
        stretch: &Stretch,
        limit: Option<u64>,
    ) -> Result<Option<Rest>> {
        let level = match self.level {
            Level::Path => TraceLevel::Path,
            _ => TraceLevel::Block,
        };
        let path = scene.path;
        let mut window = stretch.window;
        if is_stretch && matches!(to, Target::Text(_)) {
            window = read_part(path, window)?;
        }
        let mut visits = Visits::new(path, window, stretch.reverse, stretch.function)?;
        match to {
            Target::Bin(out) => trace_binary(out, path, &mut visits, level, stretch, limit)?,
            Target::Rows(to) => trace_rows(*to, scene, &mut visits, level, stretch, limit)?,
            Target::Text(out) => {
                // After a stretch, it is unknown what is executed.
                if scene.own.is_some() && !is_stretch {
                    leave_out_library(scene, &mut visits)?;
                }
                let next = trace_text(out, scene, &mut visits, level, limit)?;
                // The rest was not read.
                let rest = match stretch.reverse {
                    true => (window.first > stretch.window.first).then(|| window.first - 1),
                    false => (window.last < stretch.window.last).then(|| window.last + 1),
                };
                let Some(next) = next.or(rest) else {
                    return Ok(None);
                };
                let left = if stretch.reverse {
                    Window {
                        last: next,
                        ..stretch.window
                    }
                } else {
                    Window {
                        first: next,
                        ..stretch.window
                    }
                };
                let count = match (level, stretch.function) {
                    (TraceLevel::Block, None) => Some(left.last - left.first + 1),
                    (TraceLevel::Block, Some(_)) => None,
                    (TraceLevel::Path, function) => {
                        Visits::new(path, left, stretch.reverse, function)?.count()?
                    }
                };
                let next = next.to_string();
                return Ok(Some(Rest { next, count }));
            }
        }
        Ok(None)
    }

    fn calls(
        &self,
        to: &mut Target<'_>,
        scene: &Scene<'_, FileSegments>,
        stretch: &Stretch,
        limit: Option<u64>,
    ) -> Result<Option<Rest>> {
        let mut source = match stretch.function {
            Some(function) => {
                let mut calls =
                    CallsOf::new(scene.path, stretch.window, stretch.reverse, function)?;
                if let Some(last) = self.last {
                    calls.keep_last(last);
                }
                CallSource::Of(Box::new(calls), numbering(scene.path))
            }
            None => {
                let mut tree =
                    CallTree::new(scene.path, stretch.window, stretch.reverse, self.depth)?;
                if let Some(last) = self.last {
                    tree.keep_last(last)?;
                }
                CallSource::Tree(Box::new(tree))
            }
        };
        match to {
            Target::Bin(out) => calls_binary(out, &mut source, stretch, limit)?,
            Target::Rows(to) => call_rows(*to, scene, &mut source, stretch, limit)?,
            Target::Text(out) => {
                let next = calls_in_text(out, scene, &mut source, stretch, limit)?;
                return Ok(next.map(|next| Rest {
                    next: next.to_string(),
                    // The source has already returned the entry that exceeds the limit.
                    count: match &source {
                        CallSource::Of(calls, _) => Some(calls.count() + 1),
                        CallSource::Tree(_) => None,
                    },
                }));
            }
        }
        Ok(None)
    }
}

/// Returns the part of a window that was read, if the path is not compacted.
fn read_part(path: &RecordedPath, window: Window) -> Result<Window> {
    let Window {
        mut first,
        mut last,
    } = window;
    let mut cursor = path.cursor();
    let is_unread = |visit: &Visit| path.nodes()[visit.node].left_out > 0;
    if let Some(before) = cursor.seek(first)?.filter(is_unread) {
        first = before.last() + 1;
    }
    if let Some(after) = cursor.seek(last)?.filter(is_unread) {
        last = after.start - 1;
    }
    // If the window has become empty, nothing was read.
    Ok(if first <= last {
        Window { first, last }
    } else {
        window
    })
}

/// Whether a function is open at a time, even if it returns without executing another block.
fn is_open(path: &RecordedPath, function: FuncId, time: u64) -> Result<bool> {
    let mut cursor = path.cursor();
    cursor.seek(time)?;
    let stack = cursor.stack()?;
    Ok(stack.iter().any(|open| open.function == function))
}

/// Refuses a stretch in which a function executes nothing.
fn executed(path: &RecordedPath, function: FuncId, window: Window, name: &str) -> Result<()> {
    if Visits::new(path, window, false, Some(function))?
        .next_visit()?
        .is_some()
    {
        return Ok(());
    }
    let nearest = |first, last, reverse| -> Result<_> {
        let window = Window { first, last };
        if first > last {
            return Ok(None);
        }
        Ok(Visits::new(path, window, reverse, Some(function))?.next_visit()?)
    };
    let before = nearest(1, window.first - 1, true)?.map(|visit| visit.last());
    let after = nearest(window.last + 1, path.length(), false)?.map(|visit| visit.start);
    let distance = |time: &u64| time.abs_diff(window.first).min(time.abs_diff(window.last));
    let Some(nearest) = before.into_iter().chain(after).min_by_key(distance) else {
        bail!(absent(name, &path.segments().directory().left_out));
    };
    bail!(
        "{name} executes nothing from t={} to t={}; the nearest time is t={}",
        grouped(window.first),
        grouped(window.last),
        grouped(nearest)
    )
}

/// The entries that are left to show.
struct Rest {
    /// The position of the first entry that is left.
    next: String,
    /// The number of entries that are left, if known.
    count: Option<u64>,
}

/// Writes the last line, which says how to continue or how the run ended.
fn ending(
    out: &mut dyn Write,
    traced: &Session,
    stretch: &Stretch,
    rest: Option<Rest>,
) -> Result<()> {
    if let Some(Rest { next, count }) = rest {
        let more = count.map_or("more".to_owned(), |count| {
            format!("{} more", grouped(count))
        });
        writeln!(
            out,
            "… and {more}: continue with --from {next}, or --limit all"
        )?;
    } else if !stretch.reverse
        && stretch.function.is_none()
        && stretch.window.last == traced.path()?.length()
    {
        match traced.file().end()? {
            Some(end) => {
                let results = results(traced.file())?;
                let ending = with_results(&end.ending, results.as_deref());
                writeln!(out, "the run {ending}")?;
            }
            None => writeln!(
                out,
                "the recording ends here: it was cut off, or is still being \
                written"
            )?,
        }
    }
    Ok(())
}
