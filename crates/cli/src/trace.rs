//! `afterimage trace`

use std::io::Write;

use afterimage::Session;
use afterimage::ended::results;
use afterimage::path::numbering;
use afterimage::steps::follow;
use afterimage_ids::FuncId;
use afterimage_present::{
    CallSource, PresentError, Scene, StepScene, Stretch, TraceLevel, absent, calls_binary,
    calls_in_json, calls_in_text, grouped, steps_binary, steps_json, steps_text, trace_binary,
    trace_json, trace_text, with_results,
};
use afterimage_replay::paths::{
    CallTree, CallsOf, FileSegments, PathFileError, Places, Positions, RecordedPath, Unit, Visits,
    Window, last, time_of,
};
use afterimage_replay::steps::{
    self, MachineError, Operators, ReverseSteps, Step, Steps, StepsError, Wanted, Within,
    last_steps,
};
use anyhow::{Context, Result, bail};

use crate::arguments::{ReportArguments, StretchArguments, entries, window};
use crate::exit::Exit;
use crate::lens::{self, traced, unbuilt};
use crate::output::{SourceFiles, write};

/// Show what a run executed, in order: block by block, path by path, call by call, statement by statement, or access by access
///
/// Time t counts executed blocks from 1. For --level statement and memory the run is followed from the last checkpoint before --from, which `build --lens full` makes, or from its beginning; with --reverse piece by piece, so that without checkpoints a long stretch takes long. Text on standard output ends after 100 lines, and says how to go on, unless --limit, --last,
/// or both --from and --to say how much is wanted; nothing else is ever cut.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Positions:
  123456, t=123456    the block that was executed as the 123456th
  start, end, -1000   the first block, the last, the 1000th from the end
  50%                 half of the run
  main#3, main#last   the third call of main, the last (without #: the first)
  file.c:42#3         the third time that line 42 was arrived at
  @0x1f3#3, f+0x2a    the block with this operator, when it was executed
A line or an operator is the block; with --level statement and memory, exactly the line's first statement, or the operator.

Examples:
  afterimage trace app.aft
  afterimage trace app.aft --last 50
  afterimage trace app.aft --from 'parse#3' --level call --depth 2
  afterimage trace app.aft --level call --last 20
  afterimage trace app.aft --to main.c:42#last --reverse
  afterimage trace app.aft --level statement --from 'parse#3' --limit 50
  afterimage trace app.aft --level memory --function parse
  afterimage trace app.aft --format bin | my-analysis")]
pub(crate) struct Arguments {
    #[command(flatten)]
    stretch: StretchArguments,
    /// Only the last N entries
    #[arg(long, value_name = "N", value_parser = entries)]
    last: Option<u64>,
    /// Backwards, from --to to --from
    #[arg(long)]
    reverse: bool,
    /// Only entries of this function, by index, name or demangled name
    #[arg(long, value_name = "F")]
    function: Option<String>,
    /// What has an entry
    #[arg(long, default_value = "block")]
    level: Level,
    /// With --level call: how many levels of calls, counted from where the stretch begins [default: 8 for text without --last or --reverse, all otherwise]
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
    /// At most N entries, or all
    #[arg(long, value_name = "N|all", value_parser = limit)]
    limit: Option<Limit>,
    /// The format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    report: ReportArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Level {
    /// A basic block
    Block,
    /// A path: blocks without a call between them, up to a loop's next iteration
    Path,
    /// An activation of a function
    Call,
    /// A statement, with its values: an instruction that yields a value or has an effect
    Statement,
    /// A load, a store, a bulk operation, or what the host read or wrote
    Memory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    /// One object a line
    Json,
    /// Fixed records for other programs, see docs/TRACE.md
    Bin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    All,
    Entries(u64),
}

fn limit(text: &str) -> Result<Limit, String> {
    if text == "all" {
        return Ok(Limit::All);
    }
    let entries = entries(text).map_err(|error| format!("{error}, or all"))?;
    Ok(Limit::Entries(entries))
}

/// Lines that text has on standard output if nothing else is asked for.
const LINES: u64 = 100;
/// Most statements or accesses that may be asked for from the end: they are kept.
const MOST_LAST: u64 = 10_000_000;
/// Most blocks that are read from a path that is not compacted: to compact all of it takes longer than to read these twice.
const MOST_UNBUILT: u64 = 10_000_000;
/// Levels of calls that text has if nothing else is asked for.
const LEVELS: usize = 8;

impl Arguments {
    /// How many entries there may be.
    fn entries(&self) -> Option<u64> {
        let StretchArguments { from, to } = &self.stretch;
        let whole = self.last.is_some() || from.is_some() && to.is_some();
        let is_long = self.format == Format::Text && !whole && self.report.output.is_none();
        match self.limit {
            Some(Limit::Entries(entries)) => Some(entries),
            None if is_long => Some(LINES),
            Some(Limit::All) | None => None,
        }
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    check(&arguments)?;
    let (traced, is_stretch) = match stretch_of_words(&arguments)? {
        Some(traced) => (traced, true),
        None => (traced(&arguments.report.file)?, false),
    };
    shown(&arguments, &traced, is_stretch)
        .with_context(|| arguments.report.file.display().to_string())?;
    Ok(Exit::Success)
}

/// What is asked for, from the words of a path that is not compacted: there is no need to compact all of it if times say
/// what is wanted, and it may be a run that goes on.
fn stretch_of_words(arguments: &Arguments) -> Result<Option<Session>> {
    let StretchArguments { from, to } = &arguments.stretch;
    let blocks = arguments.level == Level::Block;
    // When activations that are open began is not in the words.
    if !matches!(arguments.level, Level::Block | Level::Path) || arguments.function.is_some() {
        return Ok(None);
    }
    let limit = arguments.entries();
    unbuilt(&arguments.report.file, |length, longest| {
        let time = |option: &str, text: &Option<String>, default| match text {
            Some(text) => {
                time_of::<PathFileError>(text, length).with_context(|| format!("{option} {text}"))
            }
            None => Ok(Some(default)),
        };
        let (first, last) = (time("--from", from, 1)?, time("--to", to, length)?);
        // Places are found in the whole path.
        let (Some(first), Some(last)) = (first, last) else {
            return Ok(None);
        };
        let Window { first, last } = window(first, last)?;
        let (first, last) = match (arguments.last, limit) {
            (Some(entries), _) if blocks => (last.saturating_sub(entries).max(first), last),
            (Some(_), _) => return Ok(None),
            // One more than the limit shows whether there is more.
            (None, Some(limit)) => {
                let blocks_of = if blocks { 1 } else { longest };
                let enough = limit.saturating_add(1).saturating_mul(blocks_of);
                if arguments.reverse {
                    (first.max(last.saturating_sub(enough)), last)
                } else {
                    (first, last.min(first.saturating_add(enough)))
                }
            }
            (None, None) => (first, last),
        };
        Ok((last - first < MOST_UNBUILT).then_some((first, last)))
    })
}

/// Refuses options that would have no effect.
fn check(arguments: &Arguments) -> Result<()> {
    if arguments.depth == Some(0) {
        bail!("--depth 0 shows nothing; give a number from 1 on");
    }
    let tree = arguments.level == Level::Call && arguments.function.is_none();
    if arguments.depth.is_some() && !tree {
        bail!("--depth limits a tree of calls: it goes with --level call, and without --function");
    }
    if let Some(level) = step_level(arguments.level) {
        let name = match level {
            steps::Level::Statement => "statement",
            steps::Level::Memory => "memory",
        };
        if arguments.last.is_some_and(|last| last > MOST_LAST) {
            bail!(
                "--last goes up to {} with --level {name}; write where the stretch begins with --from",
                grouped(MOST_LAST)
            );
        }
    }
    Ok(())
}

/// Of a stretch of a path there is no more than how many blocks the run has.
fn shown(arguments: &Arguments, traced: &Session, is_stretch: bool) -> Result<()> {
    let source = traced.source_map();
    let names = traced.module().names(&source);
    let function = arguments.function.as_deref();
    let function = function.map(|text| lens::function(traced, &names, text));
    let positions = traced.positions(&names, &source)?;
    if traced.path()?.length() == 0 {
        bail!("the run executed no block, so there is nothing to trace");
    }
    let (window, within) = match step_level(arguments.level) {
        Some(_) => arguments.stretch.exactly(&positions)?,
        None => (arguments.stretch.window(&positions)?, Within::default()),
    };
    let mut stretch = Stretch {
        window,
        reverse: arguments.reverse,
        function: function.transpose()?,
    };
    if let Some(function) = stretch.function
        && !(arguments.level == Level::Statement
            && is_open(traced.path()?, function, window.first)?)
    {
        executed(traced.path()?, function, window, names.function(function))?;
    }
    let out = arguments.report.output.as_deref();
    let places = Places::new(traced.program(), traced.bytes(), &source);
    let scene = Scene {
        path: traced.path()?,
        names: &names,
        places: &places,
        sources: &SourceFiles,
        left_out: &traced.path()?.segments().directory().left_out,
        style: arguments.report.style(),
    };
    let mut limit = arguments.entries();
    if let Some(level) = step_level(arguments.level) {
        let wanted = Wanted {
            level,
            window: stretch.window,
            within,
            function: stretch.function,
            range: None,
        };
        let operators = Operators::new(traced.program(), traced.bytes(), &source);
        let scene = StepScene {
            names: &names,
            operators: &operators,
            source: &source,
            memories: traced.program().memories,
            style: arguments.report.style(),
        };
        return statements(
            arguments,
            traced,
            &scene,
            &stretch,
            (wanted, limit),
            &positions,
        );
    }
    if let Some(entries) = arguments.last {
        let unit = match arguments.level {
            Level::Block => Some(Unit::Block),
            Level::Path => Some(Unit::Path),
            Level::Call | Level::Statement | Level::Memory => None,
        };
        if let Some(unit) = unit {
            let function = stretch.function;
            stretch.window = last(traced.path()?, window, function, unit, entries)?;
        }
        limit = limit.filter(|&limit| limit < entries);
    }
    write(out, arguments.format == Format::Bin, |out| {
        let rest = match arguments.level {
            Level::Block | Level::Path | Level::Statement | Level::Memory => {
                visits(arguments, out, &scene, &stretch, limit)?
            }
            Level::Call => calls(arguments, out, &scene, &stretch, limit)?,
        };
        // After a stretch only the number of blocks is known.
        let unknown = is_stretch && arguments.level != Level::Block;
        let rest = rest.map(|rest| Rest {
            count: rest.count.filter(|_| !unknown),
            ..rest
        });
        if arguments.format == Format::Text {
            ending(out, traced, &stretch, rest)?;
        }
        Ok(())
    })
}

/// The level of what is found by following the run.
fn step_level(level: Level) -> Option<steps::Level> {
    match level {
        Level::Statement => Some(steps::Level::Statement),
        Level::Memory => Some(steps::Level::Memory),
        Level::Block | Level::Path | Level::Call => None,
    }
}

fn statements(
    arguments: &Arguments,
    traced: &Session,
    scene: &StepScene<'_>,
    stretch: &Stretch,
    (wanted, limit): (Wanted, Option<u64>),
    positions: &Positions<'_, FileSegments>,
) -> Result<()> {
    let unreadable = |error| PresentError::Path(Box::new(error));
    follow(traced, |run, log| {
        let mut kept;
        let mut streamed;
        let mut backwards;
        let mut next: Box<dyn FnMut() -> Result<Option<Step>, PresentError>>;
        if let Some(last) = arguments.last {
            kept = last_steps(run, log, wanted, last as usize)?;
            next = if arguments.reverse {
                Box::new(|| Ok(kept.pop_back()))
            } else {
                Box::new(|| Ok(kept.pop_front()))
            };
        } else if arguments.reverse {
            let log = || {
                traced
                    .file()
                    .log()
                    .map_err(|error| StepsError::from(MachineError::from(error)))
            };
            backwards = ReverseSteps::new(run, log, wanted)?;
            next = Box::new(|| backwards.next().map_err(unreadable));
        } else {
            streamed = Steps::new(run, log, wanted)?;
            next = Box::new(|| streamed.next().map_err(unreadable));
        }
        let (level, length) = (wanted.level, traced.path()?.length());
        let out = arguments.report.output.as_deref();
        write(out, arguments.format == Format::Bin, |out| {
            match arguments.format {
                Format::Bin => steps_binary(out, scene, &mut next, level, stretch, limit)?,
                Format::Json => steps_json(out, scene, &mut next, level, stretch, length, limit)?,
                Format::Text => {
                    let mut first = None;
                    let mut next = || {
                        let step = next()?;
                        if let Some(Step { time, op, .. }) = step {
                            first.get_or_insert((time, op));
                        }
                        Ok(step)
                    };
                    let next = steps_text(out, scene, &mut next, stretch.window.last, limit)?;
                    let Some(Step {
                        time, function, op, ..
                    }) = next
                    else {
                        return ending(out, traced, stretch, None);
                    };
                    let exact = op.map(|op| positions.written(function, op, time));
                    let exact = exact.transpose()?.flatten();
                    let goes_on = first.is_none_or(|(begun, operator)| {
                        begun != time || exact.is_some() && operator != op
                    });
                    if goes_on {
                        let next = exact.unwrap_or_else(|| time.to_string());
                        ending(out, traced, stretch, Some(Rest { next, count: None }))?;
                    } else {
                        // From there on the same lines would come again.
                        writeln!(out, "… and more: see them with --limit N, or --limit all")?;
                    }
                }
            }
            Ok(())
        })
    })
}

/// Whether a function is open at a time: it may return without executing another block.
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
        "{name} executes nothing from t={} to t={}; it does nearest at t={nearest}",
        window.first,
        window.last
    )
}

/// What was not shown.
struct Rest {
    /// The position of the first entry.
    next: String,
    /// How many entries it has, if that is known.
    count: Option<u64>,
}

fn visits(
    arguments: &Arguments,
    out: &mut dyn Write,
    scene: &Scene<'_, FileSegments>,
    stretch: &Stretch,
    limit: Option<u64>,
) -> Result<Option<Rest>> {
    let level = match arguments.level {
        Level::Path => TraceLevel::Path,
        _ => TraceLevel::Block,
    };
    let path = scene.path;
    let mut visits = Visits::new(path, stretch.window, stretch.reverse, stretch.function)?;
    match arguments.format {
        Format::Bin => trace_binary(out, path, &mut visits, level, stretch, limit)?,
        Format::Json => trace_json(out, scene, &mut visits, level, stretch, limit)?,
        Format::Text => {
            let Some(next) = trace_text(out, scene, &mut visits, level, limit)? else {
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
    arguments: &Arguments,
    out: &mut dyn Write,
    scene: &Scene<'_, FileSegments>,
    stretch: &Stretch,
    limit: Option<u64>,
) -> Result<Option<Rest>> {
    let mut source = match stretch.function {
        Some(function) => {
            let mut calls = CallsOf::new(scene.path, stretch.window, stretch.reverse, function)?;
            if let Some(last) = arguments.last {
                calls.keep_last(last);
            }
            CallSource::Of(Box::new(calls), numbering(scene.path))
        }
        None => {
            // The last calls are those that came last, however deep.
            let overview =
                arguments.format == Format::Text && !stretch.reverse && arguments.last.is_none();
            let levels = if overview { LEVELS } else { usize::MAX };
            let levels = arguments.depth.unwrap_or(levels);
            let mut tree = CallTree::new(scene.path, stretch.window, stretch.reverse, levels)?;
            if let Some(last) = arguments.last {
                tree.keep_last(last)?;
            }
            CallSource::Tree(Box::new(tree))
        }
    };
    match arguments.format {
        Format::Bin => calls_binary(out, &mut source, stretch, limit)?,
        Format::Json => calls_in_json(out, scene, &mut source, stretch, limit)?,
        Format::Text => {
            let next = calls_in_text(out, scene, &mut source, stretch, limit)?;
            return Ok(next.map(|next| Rest {
                next: next.to_string(),
                // The one that does not fit has been taken.
                count: match &source {
                    CallSource::Of(calls, _) => Some(calls.count() + 1),
                    CallSource::Tree(_) => None,
                },
            }));
        }
    }
    Ok(None)
}

/// The last line: how to go on, or how the run ended.
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
        let option = if stretch.reverse { "--to" } else { "--from" };
        writeln!(
            out,
            "… and {more}: go on with {option} {next}, or --limit all"
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
            None => writeln!(out, "the recording ends here: it was cut off, or goes on")?,
        }
    }
    Ok(())
}
