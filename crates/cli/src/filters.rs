//! Options that leave parts of a path out.

use std::collections::BTreeSet;

use afterimage::KeptValues;
use afterimage_ids::FuncId;
use afterimage_present::grouped;
use afterimage_profile::Resolver;
use afterimage_profile::location::{Form, Occurrence, Place, form, number, split_occurrence};
use afterimage_program::{Names, SourceMap};
use afterimage_record::{CUT, Filter, Mark, MarkedCode, PathFilter};
use afterimage_replay::paths::line_arrivals;
use afterimage_replay::values::LeftOut;
use anyhow::{Context, Result, bail};

use crate::input::Loaded;

/// What is done with a window that ends after the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beyond {
    Refused,
    /// The run was not known when the window was chosen.
    Cut,
}

/// What of a path, or of values, is kept.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(
    next_help_heading = "Leaving parts of the path, or of the values, out (times stay what they are)"
)]
pub(crate) struct FilterArguments {
    /// Keep this function only; may be repeated
    #[arg(long, value_name = "FUNCTION")]
    include: Vec<String>,
    /// Leave this function out; may be repeated
    #[arg(long, value_name = "FUNCTION")]
    exclude: Vec<String>,
    /// Keep what is executed between two times, both included
    #[arg(long, value_name = "T1..T2")]
    window: Option<String>,
    /// Keep nothing before the K-th call of a function, arrival at a line, or execution of an instruction
    #[arg(long, value_name = "PLACE#K")]
    start: Option<String>,
    /// Keep nothing after the K-th call of a function, arrival at a line, or execution of an instruction
    #[arg(long, value_name = "PLACE#K")]
    stop: Option<String>,
}

impl FilterArguments {
    /// The first option that was given, if any.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--include", !self.include.is_empty()),
            ("--exclude", !self.exclude.is_empty()),
            ("--window", self.window.is_some()),
            ("--start", self.start.is_some()),
            ("--stop", self.stop.is_some()),
        ];
        let mut given = given.into_iter().filter(|option| option.1);
        given.next().map(|option| option.0)
    }

    /// Of which part of a run values are kept, which has so many blocks; `beyond` tells whether the window may end after the run.
    pub(crate) fn values(
        &self,
        loaded: &Loaded,
        length: u64,
        beyond: Beyond,
        time: impl Fn(&str) -> Result<u64>,
    ) -> Result<KeptValues> {
        let (mut first, mut last) = match self.window.as_deref() {
            None => (1, length.max(1)),
            Some(text) => window(text)?,
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
            left_out: self.functions(loaded)?,
        })
    }

    /// The functions of which no values are kept. It takes nothing of the run to know.
    pub(crate) fn functions(&self, loaded: &Loaded) -> Result<LeftOut> {
        if self.include.is_empty() && self.exclude.is_empty() {
            return Ok(LeftOut::default());
        }
        let source = loaded.source_map();
        let names = loaded.names(&source);
        let include = functions(&names, &self.include, "--include")?;
        let exclude = functions(&names, &self.exclude, "--exclude")?;
        let all = loaded.program.functions.iter().map(|function| function.id);
        let is_left_out = |function: &FuncId| {
            exclude.contains(function) || !include.is_empty() && !include.contains(function)
        };
        let left_out: BTreeSet<FuncId> = all.clone().filter(is_left_out).collect();
        if left_out.len() == all.len() {
            bail!("this leaves all functions out");
        }
        let words = Self {
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            ..Self::default()
        };
        Ok(LeftOut::new(left_out.into_iter().collect(), words.words()))
    }

    /// The filter.
    pub(crate) fn filter(&self, loaded: &Loaded) -> Result<PathFilter> {
        if self.given().is_none() {
            return Ok(PathFilter::default());
        }
        let source = loaded.source_map();
        let names = loaded.names(&source);
        let resolver = Resolver::new(&loaded.program, &loaded.bytes, &names, &source);
        let mark = |text: &Option<String>, option: &str| -> Result<Option<Mark>> {
            let Some(text) = text else { return Ok(None) };
            let mark = mark(loaded, &source, &resolver, text);
            mark.map(Some).with_context(|| format!("{option} {text}"))
        };
        let keep = Filter {
            include: functions(&names, &self.include, "--include")?,
            exclude: functions(&names, &self.exclude, "--exclude")?,
            window: self.window.as_deref().map(window).transpose()?,
            start: mark(&self.start, "--start")?,
            stop: mark(&self.stop, "--stop")?,
        };
        Ok(PathFilter {
            keep,
            left_out: self.words(),
        })
    }

    /// What is left out, in words.
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

/// Which functions the words of a file say to be left out: whether one is. `None` if they name functions that the program does not have.
pub(crate) fn said(loaded: &Loaded, words: &str) -> Option<impl Fn(FuncId) -> bool + use<>> {
    let source = loaded.source_map();
    let names = loaded.names(&source);
    let (mut include, mut exclude) = (None, BTreeSet::new());
    for part in words.split("; ").filter(|part| !part.is_empty()) {
        if let Some(others) = part.strip_prefix("functions other than ") {
            include = Some(listed(&names, others)?);
        } else if part != CUT
            && !["outside", "before", "after"]
                .iter()
                .any(|of| is_time(part, of))
        {
            exclude = listed(&names, part)?;
        }
    }
    Some(move |function| {
        exclude.contains(&function)
            || include
                .as_ref()
                .is_some_and(|kept| !kept.contains(&function))
    })
}

/// Whether words are about times, and not about functions.
fn is_time(part: &str, of: &str) -> bool {
    let of_time = |verb: &str| part.starts_with(&format!("what {verb} {of} "));
    of_time("is") || of_time("came")
}

/// Functions that are listed by name, with commas between names and in some of them.
fn listed(names: &Names, list: &str) -> Option<BTreeSet<FuncId>> {
    let parts = Vec::from_iter(list.split(", "));
    let (mut found, mut at) = (BTreeSet::new(), 0);
    while at < parts.len() {
        let mut ends = (at + 1..=parts.len().min(at + MOST_COMMAS)).rev();
        let (end, own) = ends.find_map(|end| {
            let name = parts[at..end].join(", ");
            let own = functions(names, &[name], "").ok()?;
            Some((end, own))
        })?;
        found.extend(own);
        at = end;
    }
    Some(found)
}

/// Names with more commas are not looked for.
const MOST_COMMAS: usize = 64;

/// Functions by name.
fn functions(names: &Names, list: &[String], option: &str) -> Result<Vec<FuncId>> {
    list.iter()
        .map(|name| {
            let function = names.find(name);
            function.with_context(|| format!("{option} {name}"))
        })
        .collect()
}

/// `T1..T2`.
fn window(text: &str) -> Result<(u64, u64)> {
    let time = |text: &str| number(text.strip_prefix("t=").unwrap_or(text));
    let Some((Some(from), Some(to))) = text.split_once("..").map(|(a, b)| (time(a), time(b)))
    else {
        bail!(
            "--window {text}: write two times, such as 1000..2000; they count executed blocks from 1"
        );
    };
    if from == 0 || to < from {
        bail!("--window {text}: times count from 1, and the second is not before the first");
    }
    Ok((from, to))
}

/// `PLACE#K`.
fn mark(
    loaded: &Loaded,
    source: &SourceMap<'_>,
    resolver: &Resolver<'_>,
    text: &str,
) -> Result<Mark> {
    let program = &loaded.program;
    let resolved = resolver.location(text)?;
    let number = match resolved.occurrence {
        None => 1,
        Some(Occurrence::Kth(number)) => number,
        Some(Occurrence::Last) => bail!(
            "which is the last is known only when the run is over; write a number (afterimage profile counts calls and lines)"
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
                bail!("arrivals are counted by line: leave the column out");
            }
            let functions: BTreeSet<FuncId> = operators.iter().map(|(id, _)| *id).collect();
            let mut places = Vec::new();
            for function in functions.into_iter().filter_map(|id| program.function(id)) {
                let found = line_arrivals(program, &loaded.bytes, source, function, line)?;
                let Some(found) = found else {
                    bail!(
                        "which blocks are executed does not tell the arrivals there; write a function, or an instruction as function+0x2a or @0x1f3"
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
        bail!("it is imported, and has no blocks; name a function that the program defines");
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
