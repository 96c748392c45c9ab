//! `afterimage values`

mod loads;
mod variable;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;

use afterimage::Session;
use afterimage::places::{Site, chosen, executions, line_of, statements, times};
use afterimage::steps::follow;
use afterimage_analyses::why::ValType;
use afterimage_ids::{FuncId, OrigOffset};
use afterimage_present::document::objects::MemoryRange;
use afterimage_present::{bits_text, grouped, range_text, type_text, value_text};
use afterimage_profile::location::{Occurrence, number};
use afterimage_replay::Trap;
use afterimage_replay::state::Rank;
use afterimage_replay::steps::{GivenBy, GivenCounts, given_counts};
use afterimage_replay::values::{
    Bits, Effect, Execution, Executions, RecordedValues, TypedValue, Types, ValuesError,
};
use afterimage_wet::FileEpochs;
use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use crate::arguments::{ReportArguments, entries};
use crate::build::Lens;
use crate::early;
use crate::exit::Exit;
use crate::lens;
use crate::output::{harmless, pasted, write};
use crate::progress::Bar;

/// Show the values that statements produced, or a variable of the source had, execution by execution
///
/// A statement is an instruction that yields a value or has an effect. Shown are its result; of a store and of a write to a global what was
/// written; of a branch what decided it; of a call its arguments and what it returned; of what accesses memory where, and how
/// many bytes. The one with which a run that trapped ended is marked. The recording's values are built first, if it has none.
///
/// With --var it is the value of a variable, or of an expression such as p->next->key or *p, each time that the line is arrived at, just before;
/// with --at FUNCTION each time that it is called. What is in memory is known by following the run from its beginning.
///
/// With --loads it is what each load of the program read, summed up, by following the run; with --each all of it, one load's values after the other, up to
/// 256 at a time. Different values are told apart up to 4,096 of them.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["at", "loads"]))]
#[command(after_help = "\
Examples:
  afterimage values app.aft --at parser.c:42
  afterimage values app.aft --at parse+0x2a --instances 1000..1010
  afterimage values app.aft --at parser.c:42#last
  afterimage values app.aft --at @0x1f3 --instances t=123456
  afterimage values app.aft --at @0x1f3 --histogram
  afterimage values app.aft --at parser.c:42 --var depth
  afterimage values app.aft --at parser.c:42 --var depth --histogram
  afterimage values app.aft --at list.c:16 --var 'n->next->key' --instances last
  afterimage values app.aft --loads
  afterimage values app.aft --loads --each --format bin -o loads.bin")]
pub(crate) struct Arguments {
    /// The place: file.c:42, func+0x2a, @0x1f3, or a function; #K or #last at its end is one execution
    #[arg(long, value_name = "PLACE")]
    at: Option<String>,
    /// What all loads of the program read, summed up
    #[arg(long, conflicts_with_all = ["at", "var", "instances", "stats", "histogram"])]
    loads: bool,
    /// All values that they read instead
    #[arg(long, requires = "loads")]
    each: bool,
    /// The value of this variable of the source, or expression: total, p->next->key, *p
    #[arg(long, value_name = "NAME")]
    var: Option<String>,
    /// Which executions of each statement: A..B, K, last, or t=T for those in block T and later [default: all]
    #[arg(long, value_name = "WHICH")]
    instances: Option<String>,
    /// Sum up the values instead: how many, different ones, smallest, largest
    #[arg(long, conflicts_with = "histogram")]
    stats: bool,
    /// Count how often each value occurred instead, the most frequent first
    #[arg(long)]
    histogram: bool,
    /// The most rows for each statement, if it is not A..B [default: 10], or lines with --loads [default: 100 for text on standard output]
    #[arg(long, value_name = "N", value_parser = entries)]
    limit: Option<u64>,
    /// The format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    report: ReportArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    /// Values of --loads --each for other programs, see docs/TRACE.md
    Bin,
}

impl Arguments {
    fn place(&self) -> &str {
        self.at.as_deref().unwrap_or_default()
    }

    fn rows(&self) -> u64 {
        self.limit.unwrap_or(10)
    }
}

/// Which executions are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    First,
    Range(u64, u64),
    One(Occurrence),
    From(u64),
}

impl Which {
    /// How many of them may be shown: of those that are not named one by one a list has as many as it may have lines, a summary all.
    fn most(self, arguments: &Arguments) -> u64 {
        match self {
            Self::Range(..) | Self::One(_) => u64::MAX,
            Self::First | Self::From(_) if arguments.stats || arguments.histogram => u64::MAX,
            Self::First | Self::From(_) => arguments.rows(),
        }
    }

    /// Of how many executions those that are shown are the first, if the first of these has a number.
    fn of(self, count: u64, first: u64) -> u64 {
        match self {
            Self::From(_) => count + 1 - first,
            Self::First | Self::Range(..) | Self::One(_) => count,
        }
    }

    /// They are named, so that there are no others to tell of.
    fn is_named(self) -> bool {
        matches!(self, Self::Range(..) | Self::One(_))
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let file = &arguments.report.file;
    // What loads read is found by following the run, however far it is.
    let session = if arguments.loads {
        lens::session(file)?
    } else {
        lens::finished(file)?
    };
    early::places(&session, Lens::Full, arguments.at.as_deref())?;
    let traced = lens::with_whole_path(session)?;
    answer(&arguments, &traced).with_context(|| arguments.report.file.display().to_string())?;
    Ok(Exit::Success)
}

fn which(text: &str) -> Result<Which> {
    if text == "last" {
        return Ok(Which::One(Occurrence::Last));
    }
    if let Some(time) = text.strip_prefix("t=").and_then(number) {
        return Ok(Which::From(time));
    }
    let range = text
        .split_once("..")
        .map(|(from, to)| (number(from), number(to)));
    match range {
        Some((Some(from), Some(to))) if from > 0 && from <= to => Ok(Which::Range(from, to)),
        None => match number(text) {
            Some(one) if one > 0 => Ok(Which::One(Occurrence::Kth(one))),
            _ => bail!("--instances {text}: write A..B, one number, last, or t=T"),
        },
        _ => bail!(
            "--instances {text}: executions count from 1, and the second is not before the first"
        ),
    }
}

/// Which executions are asked for, of a place that may name one.
fn wanted(arguments: &Arguments, named: Option<Occurrence>) -> Result<Which> {
    Ok(match (&arguments.instances, named) {
        (Some(_), Some(_)) => bail!(
            "{} names one execution already; leave --instances out",
            arguments.place()
        ),
        (Some(text), None) => which(text)?,
        (None, Some(occurrence)) => Which::One(occurrence),
        (None, None) => Which::First,
    })
}

/// The first and the last of `count` executions that are asked for; the last is before the first if there are none and none is named. `by` tells how
/// many there were at a time and before.
fn range(
    which: Which,
    count: u64,
    (what, happened): (&str, &str),
    by: impl Fn(u64) -> Result<u64>,
) -> Result<(u64, u64)> {
    Ok(match which {
        Which::First => (1, count),
        _ if count == 0 => bail!("{what} was never {happened}"),
        Which::Range(first, _) if first > count => bail!(
            "{what} was {happened} {}: there is no execution {}",
            times(count),
            grouped(first)
        ),
        Which::Range(first, last) => (first, last.min(count)),
        Which::One(Occurrence::Last) => (count, count),
        Which::One(Occurrence::Kth(number)) if !(1..=count).contains(&number) => bail!(
            "{what} was {happened} {}: there is no execution {}",
            times(count),
            grouped(number)
        ),
        Which::One(Occurrence::Kth(number)) => (number, number),
        Which::From(time) => {
            let before = by(time.saturating_sub(1))?;
            if before >= count {
                bail!(
                    "{what} was not {happened} at t={} or later; the last time is number {}",
                    grouped(time),
                    grouped(count)
                );
            }
            (before + 1, count)
        }
    })
}

fn answer(arguments: &Arguments, traced: &Session) -> Result<()> {
    let loaded = traced.module();
    if arguments.format == Format::Bin && !arguments.each {
        bail!("--format bin is for --loads --each");
    }
    let source = traced.source_map();
    let names = loaded.names(&source);
    if arguments.loads {
        return loads::answer(arguments, traced, &names, &source);
    }
    if let Some(name) = &arguments.var {
        return variable::answer(arguments, traced, &names, &source, name);
    }
    let types = Types::new(&loaded.program, &loaded.bytes);
    let found = statements(traced, &names, &source, &types, arguments.place())?;
    let which = wanted(arguments, found.occurrence)?;
    let values = lens::values(traced)?;
    // A number behind the place names executions that belong together.
    let named = match found.occurrence {
        Some(_) => Some(chosen(
            traced,
            &values,
            (&names, &source),
            &found,
            arguments.place(),
        )?),
        None => None,
    };
    let trap = traced.trap()?;
    let epochs = traced.epochs()?;
    let windows = epochs.windows().map(|index| (index.first, index.length));
    let windows = Vec::from_iter(windows);
    let mut reports = Vec::new();
    let mut refused = None;
    let mut asked = StatementQuery {
        arguments,
        values: &values,
        types: &types,
        windows: &windows,
        trap: trap.as_ref(),
        followed: HashMap::new(),
    };
    if named.is_none() && (arguments.stats || arguments.histogram) {
        asked.followed = asked.follow_many(traced, epochs, &found.sites, which)?;
    }
    for site in &found.sites {
        let mut which = which;
        if let Some(named) = &named {
            let mut here = named
                .iter()
                .filter(|chosen| chosen.site.offset == site.offset);
            let chosen = here.next().map(|chosen| chosen.get(traced, &values));
            let Some(execution) = chosen.transpose()?.flatten() else {
                continue;
            };
            which = Which::One(Occurrence::Kth(execution.number));
        }
        let (all, count) = executions(traced, &values, site)?;
        let what = format!("the statement at @{}", site.offset);
        let by = |time| Ok(all.by(time)?);
        let function = names.function(site.function);
        let range = range(which, count, (&what, "executed"), by);
        let kept = left_out(epochs, site.function, function).map_or(Ok(()), Err);
        let rows = match kept.and(range) {
            Ok(range) => {
                let rows = asked.rows(site, &all, (count, range), which);
                match rows {
                    Err(error) if !is_left_out(&error) => return Err(error),
                    rows => rows,
                }
            }
            Err(why) => Err(why),
        };
        let rows = match rows {
            Ok(rows) => rows,
            // Others of the line may have been executed, and kept.
            Err(why) => {
                let rows = Rows {
                    refused: Some(why.to_string()),
                    ..Rows::default()
                };
                refused.get_or_insert(why);
                rows
            }
        };
        reports.push(Report {
            site,
            line: line_of(&source, site.offset),
            function: function.to_owned(),
            count,
            rows,
        });
    }
    if let Some(why) = refused
        && reports.iter().all(|report| report.rows.refused.is_some())
    {
        return Err(why);
    }
    // Of many statements those that give nothing only take room.
    if reports.len() > 1 {
        let gives = |report: &Report<'_>| report.rows.gives || report.rows.refused.is_some();
        reports.retain(|report| gives(report) || report.count == 0);
    }
    write(arguments.report.output.as_deref(), false, |out| {
        match arguments.format {
            Format::Text => {
                let file = &arguments.report.file;
                let scene = Shown {
                    memories: loaded.program.memories,
                    rest: rest_of(&windows, file),
                };
                text(out, &scene, &reports)?;
            }
            Format::Json | Format::Bin => {
                let all = Vec::from_iter(reports.iter().map(Report::json));
                let all = json!({
                    "schema": "afterimage/values/1",
                    "at": arguments.place(),
                    "statements": all,
                });
                serde_json::to_writer(&mut *out, &all)?;
                writeln!(out)?;
            }
        }
        Ok(())
    })
}

/// Why there are no values of a function, if it was left out of all windows.
fn left_out(epochs: &FileEpochs, function: FuncId, name: &str) -> Option<anyhow::Error> {
    let mut windows = epochs.windows().peekable();
    let &first = windows.peek()?;
    if !windows.all(|index| index.left_out.has(function)) {
        return None;
    }
    let windows = epochs.windows().map(|index| (index.first, index.length));
    Some(anyhow!(
        "{name} was left out: values were kept without {}, {}; to have them, build the values anew: afterimage build --lens full --again",
        first.left_out.words,
        windows_text(&Vec::from_iter(windows))
    ))
}

/// From when to when values were kept.
fn windows_text(windows: &[(u64, u64)]) -> String {
    let text =
        |&(first, last): &(u64, u64)| format!("from t={} to t={}", grouped(first), grouped(last));
    Vec::from_iter(windows.iter().map(text)).join(", ")
}

/// What is not kept, and how to get it.
fn rest_of(windows: &[(u64, u64)], file: &Path) -> String {
    format!(
        "outside of what was kept, {}; the rest: afterimage build --lens full {}",
        windows_text(windows),
        pasted(file)
    )
}

/// Whether it is about a part of the run, or a function, of which no values are kept.
fn is_left_out(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<ValuesError>();
    matches!(error, Some(ValuesError::Outside { .. }))
}

/// A statement and what is shown of it.
struct Report<'a> {
    site: &'a Site,
    line: String,
    function: String,
    count: u64,
    rows: Rows,
}

#[derive(Default)]
struct Rows {
    /// The statement gives values, or has something else to show.
    gives: bool,
    /// Why there is none of the executions that are asked for.
    refused: Option<String>,
    /// Executions and what they did.
    shown: Vec<(Execution, Did)>,
    /// How many executions there are besides, or how many values.
    more: u64,
    /// They were asked for one by one: the others are not missing.
    named: bool,
    /// How many of those that are asked for are outside of what was kept.
    outside: u64,
    /// Why one of those that were summed up gave nothing.
    trapped: Option<String>,
    /// How often each value occurred.
    counted: Option<GivenCounts>,
    /// Only a summary of these is wanted.
    stats: bool,
}

/// What an execution did.
struct Did {
    effect: Effect,
    /// Why it trapped, if it did.
    trap: Option<String>,
}

/// What is asked of statements.
struct StatementQuery<'s, 'a> {
    arguments: &'s Arguments,
    values: &'s RecordedValues<'a>,
    types: &'s Types<'a>,
    /// From when to when values were kept.
    windows: &'s [(u64, u64)],
    trap: Option<&'s Trap>,
    /// What was counted by following the run, by statement.
    followed: HashMap<OrigOffset, GivenCounts>,
}

/// Asking for the value of an execution takes as long as following so many blocks, about.
const BLOCKS_PER_VALUE: u64 = 2048;

impl<'a> StatementQuery<'_, 'a> {
    /// The values of statements that are to be summed up, counted by following the run, if that takes less than asking for them.
    fn follow_many(
        &self,
        traced: &'a Session,
        epochs: &FileEpochs,
        sites: &[Site],
        which: Which,
    ) -> Result<HashMap<OrigOffset, GivenCounts>> {
        let (mut asked, mut offsets, mut executed) = (Vec::new(), Vec::new(), 0u64);
        for site in sites {
            let (all, count) = executions(traced, self.values, site)?;
            let by = |time| Ok(all.by(time)?);
            // Why there are none of another one is said when it is its turn.
            let Ok((first, last)) = range(which, count, ("", ""), by) else {
                continue;
            };
            let is_left_out = left_out(epochs, site.function, "").is_some();
            if count == 0 || is_left_out || self.kept(&all, (first, last))? != [(first, last)] {
                continue;
            }
            executed = executed.saturating_add(last - first + 1);
            offsets.push(site.offset);
            asked.push(GivenBy {
                function: site.function,
                op: site.op,
                executions: (first, last),
            });
        }
        if executed.saturating_mul(BLOCKS_PER_VALUE) <= traced.path()?.length() {
            return Ok(HashMap::new());
        }
        let counts = follow(traced, |run, log| Ok(given_counts(run, log, &asked)?))?;
        let known = offsets.into_iter().zip(counts);
        let known = known.filter_map(|(offset, counts)| Some((offset, counts?)));
        Ok(known.collect())
    }

    /// A summary of what was counted of executions, of which this is the last.
    fn summed(
        &self,
        site: &Site,
        all: &Executions<'a>,
        last: u64,
        mut counted: GivenCounts,
    ) -> Result<Rows> {
        let arguments = self.arguments;
        let mut rows = Rows {
            stats: arguments.stats,
            gives: !counted.is_empty(),
            ..Rows::default()
        };
        if let Some(trap) = self.trap
            && let Some(execution) = all.get(self.values, last)?
            && trap.is_at(site.function, site.op, execution.time)
        {
            rows.trapped = Some(trap.why.clone());
        }
        if !arguments.stats {
            counted.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
            rows.more = (counted.len() as u64).saturating_sub(arguments.rows());
            counted.truncate(arguments.rows() as usize);
        }
        rows.counted = Some(counted);
        Ok(rows)
    }

    fn rows(
        &self,
        site: &Site,
        all: &Executions<'a>,
        (count, (first, last)): (u64, (u64, u64)),
        which: Which,
    ) -> Result<Rows> {
        let arguments = self.arguments;
        let mut rows = Rows {
            stats: arguments.stats,
            named: which.is_named(),
            ..Rows::default()
        };
        if count == 0 {
            return Ok(rows);
        }
        let summed = arguments.stats || arguments.histogram;
        if let Some(counted) = self.followed.get(&site.offset) {
            let mut summed = self.summed(site, all, last, counted.clone())?;
            summed.named = rows.named;
            return Ok(summed);
        }
        let mut ranges = self.kept(all, (first, last))?;
        let kept: u64 = ranges.iter().map(|(from, to)| to - from + 1).sum();
        if kept == 0 {
            // What is asked of one of them says why there is none.
            ranges = vec![(first, first)];
        }
        // Of one that takes nothing from any value, the first is known all the same.
        rows.outside = last - first + 1 - kept.max(1);
        let most = kept.clamp(1, which.most(arguments));
        let bar = Bar::start("computing values", Some(most));
        let progress = bar.progress();
        let mut counted: BTreeMap<(u64, u64), (TypedValue, u64)> = BTreeMap::new();
        let numbers = ranges.into_iter().flat_map(|(from, to)| from..=to);
        for (done, number) in (0..most).zip(numbers) {
            let Some(execution) = all.get(self.values, number)? else {
                break;
            };
            if summed {
                for value in self.types.given(self.values, &execution, site.op)? {
                    rows.gives = true;
                    counted.entry(value.bits).or_insert((value, 0)).1 += 1;
                }
                if let Some(trap) = self.trap_at(site, &execution) {
                    rows.trapped = Some(trap.why.clone());
                }
            } else {
                let did = self.did(site, &execution)?;
                rows.gives |= did.is_something();
                rows.shown.push((execution, did));
            }
            if done.is_multiple_of(256) {
                progress(done);
            }
        }
        drop(bar);
        if summed {
            let mut counted = Vec::from_iter(counted.into_values());
            if !arguments.stats {
                counted.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
                rows.more = (counted.len() as u64).saturating_sub(arguments.rows());
                counted.truncate(arguments.rows() as usize);
            }
            rows.counted = Some(counted);
        } else {
            let of = which.of(count, first);
            rows.more = of - rows.outside - rows.shown.len() as u64;
        }
        Ok(rows)
    }

    /// Which of the executions from one to another one are kept, as numbers from one to another.
    fn kept(&self, all: &Executions<'a>, (first, last): (u64, u64)) -> Result<Vec<(u64, u64)>> {
        let length = self.values.path().length();
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        if self.windows.contains(&(1, length)) {
            ranges.push((first, last));
            return Ok(ranges);
        }
        // Nodes are kept as a whole that are in a window in part.
        let is_in = |number, (from, to): (u64, u64)| -> Result<bool> {
            let Some(execution) = all.get(self.values, number)? else {
                return Ok(false);
            };
            let instance = execution.instance;
            let length = self.values.path().nodes()[instance.node].length();
            Ok(instance.time <= to && from < instance.time.saturating_add(length))
        };
        for &window in self.windows {
            let mut from = all.by(window.0.saturating_sub(1))? + 1;
            let mut to = all.by(window.1)?;
            if from > 1 && is_in(from - 1, window)? {
                from -= 1;
            }
            if is_in(to + 1, window)? {
                to += 1;
            }
            ranges.push((from.max(first), to.min(last)));
        }
        ranges.retain(|(from, to)| from <= to);
        ranges.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (from, to) in ranges {
            match merged.last_mut() {
                Some(before) if from <= before.1.saturating_add(1) => before.1 = before.1.max(to),
                _ => merged.push((from, to)),
            }
        }
        Ok(merged)
    }

    /// Why an execution trapped, if it is the one that did.
    fn trap_at(&self, site: &Site, execution: &Execution) -> Option<&Trap> {
        let here = |trap: &&Trap| trap.is_at(site.function, site.op, execution.time);
        self.trap.filter(here)
    }

    fn did(&self, site: &Site, execution: &Execution) -> Result<Did> {
        let effect = self.types.effect(self.values, execution, site.op)?;
        let trap = self.trap_at(site, execution).map(|trap| trap.why.clone());
        // Without the end of the recording nobody knows.
        let unfinished = || "the recording ends before it is done".to_owned();
        let trap = trap.or_else(|| effect.trapped.then(unfinished));
        Ok(Did { effect, trap })
    }
}

impl Did {
    fn is_something(&self) -> bool {
        let Effect {
            values, accesses, ..
        } = &self.effect;
        let touched = accesses.read.or(accesses.written);
        !values.is_empty() || touched.is_some() || self.trap.is_some()
    }

    /// `stored 7 to 0x20, 4 bytes`.
    fn text(&self, memories: u32) -> String {
        let mut text = match &self.trap {
            Some(why) => format!("trapped ({why})"),
            None => String::new(),
        };
        let values = self.effect.values.iter().map(|value| match value.role {
            "" => value_text(value.ty, value.bits),
            role => format!("{role} {}", value_text(value.ty, value.bits)),
        });
        let values = Vec::from_iter(values).join(", ");
        let accesses = self.effect.accesses;
        let range = |word, range| format!("{word} {}", range_text(memories, range));
        let parts = [
            (!values.is_empty()).then_some(values),
            accesses.read.map(|read| range("from", read)),
            accesses.written.map(|written| range("to", written)),
        ];
        let parts = Vec::from_iter(parts.into_iter().flatten()).join(" ");
        if !text.is_empty() && !parts.is_empty() {
            text.push_str(": ");
        }
        text + &parts
    }
}

/// How text shows what there is.
struct Shown {
    /// How many memories there are.
    memories: u32,
    /// What is outside of what was kept, and how to get it.
    rest: String,
}

fn text(out: &mut dyn Write, scene: &Shown, reports: &[Report<'_>]) -> Result<()> {
    let mut said = None;
    for (i, report) in reports.iter().enumerate() {
        // What holds for a whole function is said once.
        if report.rows.refused.is_some() && report.rows.refused == said {
            continue;
        }
        said.clone_from(&report.rows.refused);
        if i > 0 {
            writeln!(out)?;
        }
        let place = if report.line.is_empty() {
            String::new()
        } else {
            format!("  {}", harmless(&report.line))
        };
        writeln!(
            out,
            "@{} {}{place}  in {}: {}",
            report.site.offset,
            harmless(&report.site.text),
            harmless(&report.function),
            match report.count {
                0 => "never executed".to_owned(),
                count => format!("executed {}", times(count)),
            }
        )?;
        let rows = &report.rows;
        if let Some(why) = &rows.refused {
            writeln!(out, "{:>12}  {}", "…", harmless(why))?;
        }
        let outside = |out: &mut dyn Write| match rows.outside {
            0 => Ok(()),
            some => writeln!(out, "{:>12}  {} {}", "…", grouped(some), scene.rest),
        };
        if let Some(counted) = &rows.counted {
            summary(out, counted, rows)?;
            if let Some(why) = &rows.trapped {
                writeln!(out, "{:>12}  trapped ({why})", times(1))?;
            }
            outside(out)?;
            continue;
        }
        for (execution, did) in &rows.shown {
            let line = format!(
                "{:>12}  t={:<14} {}",
                format!("#{}", grouped(execution.number)),
                grouped(execution.time),
                did.text(scene.memories)
            );
            writeln!(out, "{}", line.trim_end())?;
        }
        outside(out)?;
        if rows.more > 0 && !rows.named {
            writeln!(
                out,
                "{:>12}  {} more: --instances A..B, or --limit N",
                "…",
                grouped(rows.more)
            )?;
        }
    }
    Ok(())
}

fn summary(out: &mut dyn Write, counted: &[(TypedValue, u64)], rows: &Rows) -> Result<()> {
    let show = |value: &TypedValue| value_text(value.ty, value.bits);
    if !rows.stats {
        for (value, often) in counted {
            writeln!(out, "{:>12}  {}", times(*often), show(value))?;
        }
        if rows.more > 0 {
            writeln!(
                out,
                "{:>12}  {} more {}: --limit N",
                "…",
                grouped(rows.more),
                if rows.more == 1 { "value" } else { "values" }
            )?;
        }
        return Ok(());
    }
    let of = |value: &TypedValue| rank(value.ty, value.bits);
    let order = |a: &&(TypedValue, u64), b: &&(TypedValue, u64)| of(&a.0).order(&of(&b.0));
    let smallest = counted.iter().min_by(order);
    let largest = counted.iter().max_by(order);
    let most = counted.iter().max_by_key(|(_, times)| *times);
    let (Some(smallest), Some(largest), Some(most)) = (smallest, largest, most) else {
        return Ok(());
    };
    if let [(only, often)] = counted {
        writeln!(out, "    always {} ({})", show(only), times(*often))?;
        return Ok(());
    }
    writeln!(
        out,
        "    {} different values, from {} to {}; {}",
        grouped(counted.len() as u64),
        show(&smallest.0),
        show(&largest.0),
        most_often(&show(&most.0), most.1)
    )?;
    Ok(())
}

/// Which of several values occurred most often.
fn most_often(value: &str, often: u64) -> String {
    match often {
        1 => "each once".to_owned(),
        often => format!("most often {value} ({})", times(often)),
    }
}

/// Where a value stands among others of its type.
fn rank(ty: ValType, (low, high): Bits) -> Rank {
    match type_text(ty) {
        "i32" => Rank::Signed((low as u32 as i32).into()),
        "i64" => Rank::Signed((low as i64).into()),
        "f32" => Rank::Float(f32::from_bits(low as u32).into()),
        "f64" => Rank::Float(f64::from_bits(low)),
        _ => Rank::Unsigned(u128::from(low) | u128::from(high) << 64),
    }
}

impl Report<'_> {
    fn json(&self) -> Value {
        let value = |value: &TypedValue| {
            json!({
                "role": value.role,
                "type": type_text(value.ty),
                "bits": bits_text(value.ty, value.bits),
                "text": value_text(value.ty, value.bits),
            })
        };
        let mut report = json!({
            "function": self.function,
            "offset": self.site.offset.0,
            "operator": self.site.text,
            "line": self.line,
            "executions": self.count,
        });
        match &self.rows.counted {
            Some(counted) => {
                let counts = counted
                    .iter()
                    .map(|(found, times)| json!({ "value": value(found), "times": times }));
                report["counts"] = counts.collect();
                if let Some(why) = &self.rows.trapped {
                    report["trapped"] = json!(why);
                }
                report["more"] = json!(self.rows.more);
            }
            None => {
                let shown = self.rows.shown.iter().map(|(execution, did)| {
                    let Effect {
                        values, accesses, ..
                    } = &did.effect;
                    let mut instance = json!({
                        "number": execution.number,
                        "time": execution.time,
                        "values": Vec::from_iter(values.iter().map(value)),
                    });
                    let accessed = [("read", accesses.read), ("written", accesses.written)];
                    for (key, range) in accessed {
                        if let Some(range) = range {
                            instance[key] = json!(MemoryRange::from(range));
                        }
                    }
                    if let Some(why) = &did.trap {
                        instance["trapped"] = json!(why);
                    }
                    instance
                });
                report["instances"] = shown.collect();
                report["more"] = json!(self.rows.more);
            }
        }
        if self.rows.outside > 0 {
            report["outside"] = json!(self.rows.outside);
        }
        if let Some(why) = &self.rows.refused {
            report["refused"] = json!(why);
        }
        report
    }
}
