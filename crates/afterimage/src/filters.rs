//! Defines filters that select which parts of a path, or of values, to keep.

use std::collections::BTreeSet;
use std::convert::Infallible;

use afterimage_ids::FuncId;
use afterimage_present::grouped;
use afterimage_profile::Resolver;
use afterimage_profile::location::{Form, Occurrence, Place, form, number, split_occurrence};
use afterimage_program::{Module, Names, SourceMap};
use afterimage_record::{CUT, Filter, Mark, MarkedCode, PathFilter};
use afterimage_replay::values::LeftOut;
use afterimage_replay::whole_path::{line_arrivals, time_of};
use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use crate::values::KeptValues;

/// The treatment of a window that ends after the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// Refuse the window.
    Refused,
    /// End the window with the run, because the run's length was unknown when the window was
    /// chosen.
    Cut,
}

/// Filters for a path or for values. A part is kept only if all filters keep it. Without filters,
/// everything is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filters {
    /// Keep only these functions, given by name.
    pub include: Vec<String>,
    /// Keep all functions except these, given by name.
    pub exclude: Vec<String>,
    /// Keep only the part between two positions, inclusive: `1000..2000`, `50%..end`,
    /// `parse#3..-1`.
    pub window: Option<String>,
    /// Keep nothing before the K-th call to a function, arrival at a line, or execution of an
    /// instruction: `parse#3`.
    pub start: Option<String>,
    /// Keep nothing after this event, given in the same form.
    pub stop: Option<String>,
}

impl Filters {
    /// Whether the filters keep everything.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Selects which values of a run of `length` blocks to keep. `time` returns the time at which
    /// the run was at a place.
    ///
    /// # Errors
    /// Returns an error if the program has no such function or place, or nothing is left.
    pub fn values(
        &self,
        names: &Names,
        source: &SourceMap<'_>,
        module: &Module,
        (length, beyond): (u64, Beyond),
        time: impl Fn(&str) -> Result<u64>,
    ) -> Result<KeptValues> {
        let (mut first, mut last) = match self.window.as_deref() {
            None => (1, length.max(1)),
            Some(text) => {
                let end = |text: &str| plain(text).map_or_else(|| time(text), Ok);
                let (from, to) = ends(text, end)?;
                in_order(text, from, to)?;
                (from, to)
            }
        };
        let run = || format!("the run has {0} blocks, from t=1 to t={0}", grouped(length));
        let given = self.window.as_deref().unwrap_or_default();
        if first > length && self.window.is_some() {
            bail!("--window {given} is after the end: {}", run());
        }
        if last > length && self.window.is_some() {
            match beyond {
                Beyond::Refused => bail!("--window {given} goes beyond the end: {}", run()),
                Beyond::Cut => last = length,
            }
        }
        let mark = |text: &Option<String>, option: &str| {
            let time = text.as_deref().map(&time).transpose();
            time.with_context(|| format!("{option} {}", text.as_deref().unwrap_or_default()))
        };
        let (start, stop) = (mark(&self.start, "--start")?, mark(&self.stop, "--stop")?);
        first = first.max(start.unwrap_or(first));
        last = last.min(stop.unwrap_or(last));
        if first > last && length > 0 {
            bail!(
                "nothing is left between t={}, where it would begin, and t={}, where it would end",
                grouped(first),
                grouped(last)
            );
        }
        Ok(KeptValues {
            first,
            last,
            left_out: self.functions(names, source, module)?,
        })
    }

    /// Returns the functions whose values are not kept.
    ///
    /// # Errors
    /// Returns an error if the program has no such function, or all functions are left out.
    pub fn functions(
        &self,
        names: &Names,
        source: &SourceMap<'_>,
        module: &Module,
    ) -> Result<LeftOut> {
        if self.include.is_empty() && self.exclude.is_empty() {
            return Ok(LeftOut::default());
        }
        let include = functions(names, source, &self.include, "--include")?;
        let exclude = functions(names, source, &self.exclude, "--exclude")?;
        let all = module.program.functions.iter().map(|function| function.id);
        let is_left_out = |function: &FuncId| {
            exclude.contains(function) || !include.is_empty() && !include.contains(function)
        };
        let left_out: BTreeSet<FuncId> = all.clone().filter(is_left_out).collect();
        if left_out.len() == all.len() {
            bail!("--include and --exclude leave out all functions");
        }
        let words = Self {
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            ..Self::default()
        };
        Ok(LeftOut::new(left_out.into_iter().collect(), words.words()))
    }

    /// Makes the filter of a path. `length` returns the number of blocks of the run, or `None`
    /// before the run. In that case, a window that depends on the length is only checked.
    ///
    /// # Errors
    /// Returns an error if the program has no such function or place, the run has no such time, or
    /// `length` fails.
    pub fn path<'a>(
        &self,
        names: &'a Names,
        source: &'a SourceMap<'a>,
        module: &'a Module,
        length: impl Fn() -> Result<Option<u64>>,
    ) -> Result<PathFilter> {
        if self.is_nothing() {
            return Ok(PathFilter::default());
        }
        let resolver = Resolver::new(&module.program, &module.bytes, names, source);
        let mark = |text: &Option<String>, option: &str| -> Result<Option<Mark>> {
            let Some(text) = text else { return Ok(None) };
            let mark = mark(module, source, &resolver, text);
            mark.map(Some).with_context(|| format!("{option} {text}"))
        };
        let mut keep = Filter {
            include: functions(names, source, &self.include, "--include")?,
            exclude: functions(names, source, &self.exclude, "--exclude")?,
            window: None,
            start: mark(&self.start, "--start")?,
            stop: mark(&self.stop, "--stop")?,
        };
        if let Some(text) = &self.window {
            let place = |text: &str| self::mark(module, source, &resolver, text);
            let (from, to) = ends(text, |text| End::of(text, &length, place))?;
            let both = |option: &str| {
                format!("--window {text} and {option} both name a place: write only one of them")
            };
            let from = from
                .apart(&mut keep.start)
                .with_context(|| both("--start"))?;
            let to = to.apart(&mut keep.stop).with_context(|| both("--stop"))?;
            if from.or(to).is_some() {
                let (from, to) = (from.unwrap_or(1), to.unwrap_or(u64::MAX));
                in_order(text, from, to)?;
                keep.window = Some((from, to));
            }
        }
        Ok(PathFilter {
            keep,
            left_out: self.words(),
        })
    }

    /// Describes the parts that were left out.
    fn words(&self) -> String {
        let mut words = Vec::new();
        if !self.include.is_empty() {
            words.push(format!("functions other than {}", self.include.join(", ")));
        }
        if !self.exclude.is_empty() {
            words.push(self.exclude.join(", "));
        }
        if let Some(window) = &self.window {
            words.push(format!("what is outside {window}"));
        }
        if let Some(start) = &self.start {
            words.push(format!("what came before {start}"));
        }
        if let Some(stop) = &self.stop {
            words.push(format!("what came after {stop}"));
        }
        words.join("; ")
    }
}

/// Parses the description of the functions that were left out, as stored in a file. Returns a
/// predicate, or `None` if the program lacks a named function.
pub(crate) fn said(names: &Names, words: &str) -> Option<impl Fn(FuncId) -> bool + use<>> {
    let (mut include, mut exclude) = (None, BTreeSet::new());
    for part in words.split("; ").filter(|part| !part.is_empty()) {
        if let Some(others) = part.strip_prefix("functions other than ") {
            include = Some(listed(names, others)?);
        } else if part != CUT
            && !["outside", "before", "after"]
                .iter()
                .any(|of| is_time(part, of))
        {
            exclude = listed(names, part)?;
        }
    }
    Some(move |function| {
        exclude.contains(&function)
            || include
                .as_ref()
                .is_some_and(|kept| !kept.contains(&function))
    })
}

/// Whether a part of a description concerns times rather than functions.
fn is_time(part: &str, of: &str) -> bool {
    let of_time = |verb: &str| part.starts_with(&format!("what {verb} {of} "));
    of_time("is") || of_time("came")
}

/// Parses a list of function names separated by commas. Names may contain commas, too.
fn listed(names: &Names, list: &str) -> Option<BTreeSet<FuncId>> {
    let parts = Vec::from_iter(list.split(", "));
    let (mut found, mut at) = (BTreeSet::new(), 0);
    while at < parts.len() {
        let mut ends = (at + 1..=parts.len().min(at + MOST_COMMAS)).rev();
        let (end, own) = ends.find_map(|end| {
            let name = parts[at..end].join(", ");
            Some((end, names.known(&name)?))
        })?;
        found.insert(own);
        at = end;
    }
    Some(found)
}

/// The number of commas that a function name may contain.
const MOST_COMMAS: usize = 64;

/// Finds functions by name.
fn functions(
    names: &Names,
    source: &SourceMap<'_>,
    list: &[String],
    option: &str,
) -> Result<Vec<FuncId>> {
    list.iter()
        .map(|name| {
            let function = names.find(name, source);
            function.with_context(|| format!("{option} {name}"))
        })
        .collect()
}

/// Parses the two ends of `FIRST..LAST` with `read`. Names may contain `..`, so tries each way to
/// divide the text.
fn ends<T>(text: &str, read: impl Fn(&str) -> Result<T>) -> Result<(T, T)> {
    let mut failed = None;
    for (at, dots) in text.match_indices("..") {
        let (first, last) = (text[..at].trim(), text[at + dots.len()..].trim());
        if first.is_empty() || last.is_empty() {
            continue;
        }
        match read(first).and_then(|first| Ok((first, read(last)?))) {
            Ok(found) => return Ok(found),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    let failed = failed.unwrap_or_else(|| {
        anyhow!("write two positions, such as 1000..2000, parse#3..end or 50%..-1")
    });
    Err(failed.context(format!("--window {text}")))
}

/// Parses a plain time, `1000` or `t=1000`, even if the run does not have it.
fn plain(text: &str) -> Option<u64> {
    number(text.strip_prefix("t=").unwrap_or(text))
}

fn in_order(text: &str, first: u64, last: u64) -> Result<()> {
    if first == 0 || last < first {
        bail!(
            "--window {text} is t={}..{}: times are numbered from 1, and the end must not be before \
             the beginning",
            grouped(first),
            grouped(last)
        );
    }
    Ok(())
}

/// An end of the window of a path.
enum End {
    Time(u64),
    /// A position relative to the run's length, which is not known yet.
    Later,
    Place(Mark),
}

impl End {
    fn of(
        text: &str,
        length: impl Fn() -> Result<Option<u64>>,
        place: impl Fn(&str) -> Result<Mark>,
    ) -> Result<Self> {
        if let Some(time) = plain(text) {
            return Ok(Self::Time(time));
        }
        if time_of::<Infallible>(text, u64::MAX)?.is_none() {
            return place(text).map(Self::Place);
        }
        let Some(length) = length()? else {
            return Ok(Self::Later);
        };
        let time = time_of::<Infallible>(text, length)?;
        Ok(time.map_or(Self::Later, Self::Time))
    }

    /// Returns the time of this end, if it has one. If the end is an execution of a place, stores
    /// it in `mark`. Returns `None` if `mark` is already set.
    fn apart(self, mark: &mut Option<Mark>) -> Option<Option<u64>> {
        match self {
            Self::Time(time) => Some(Some(time)),
            Self::Later => Some(None),
            Self::Place(_) if mark.is_some() => None,
            Self::Place(place) => {
                *mark = Some(place);
                Some(None)
            }
        }
    }
}

/// Parses `PLACE#K`.
fn mark(
    module: &Module,
    source: &SourceMap<'_>,
    resolver: &Resolver<'_>,
    text: &str,
) -> Result<Mark> {
    let program = &module.program;
    let resolved = resolver.location(text)?;
    let number = match resolved.occurrence {
        None => 1,
        Some(Occurrence::Kth(number)) => number,
        Some(Occurrence::Last) => bail!(
            "the last execution is known only after the run; write a number (afterimage \
             profile counts calls and lines)"
        ),
    };
    let (function, op) = match resolved.place {
        Place::Function(function) => (function, None),
        Place::Operator(function, op) => (function, Some(op)),
        Place::Line(line, operators) => {
            let place = split_occurrence(text).map_or(text, |split| split.0);
            if let Form::Line {
                column: Some(_), ..
            } = form(place)
            {
                bail!("arrivals are counted by line: leave out the column");
            }
            let functions: BTreeSet<FuncId> = operators.iter().map(|(id, _)| *id).collect();
            let mut places = Vec::new();
            for function in functions.into_iter().filter_map(|id| program.function(id)) {
                let found = line_arrivals(program, &module.bytes, source, function, line)?;
                let Some(found) = found else {
                    bail!(
                        "the executed blocks do not determine the arrivals there; write a \
                         function, or an instruction as function+0x2a or @0x1f3"
                    );
                };
                places.push(MarkedCode {
                    function: found.function,
                    inside: found.inside,
                    entry: found.entry,
                    over: found.over,
                });
            }
            return Ok(Mark { places, number });
        }
    };
    let Some(defined) = program.function(function) else {
        bail!("it is imported and has no blocks; name a function that the program defines");
    };
    let block = match op {
        None => Some(defined.cfg.graph.root()),
        Some(op) => defined.block_of(op),
    };
    let Some(block) = block else {
        bail!("the instruction cannot be reached");
    };
    Ok(Mark::block(function, block, number))
}
