//! Finds why a place was not executed.

mod cause;
mod variables;

use std::collections::{BTreeMap, BTreeSet};

use afterimage_analyses::why::{Absence, CodeBlock};
use afterimage_ids::{FuncId, OpId};
use afterimage_present::{WhyNotBefore, WhyNotReport, grouped, not_executed, times};
use afterimage_profile::Line;
use afterimage_profile::location;
use afterimage_replay::whole_path::At;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::explain::Scene;
use crate::places::{WasExecuted, has_column};
use crate::text::harmless;
use crate::why::Way;

/// Asks why a place was not executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhyNotQuery {
    /// The place: `parser.c:42`, `func+0x2a`, `@0x1f3`, or a function.
    pub at: String,
    /// Only executions after this moment count. `None` means the whole run.
    pub after: Option<String>,
    /// The maximum number of moves and computations to follow back from the deciding value.
    pub steps: u64,
}

impl WhyNotQuery {
    /// The default of `steps`.
    pub const STEPS: u64 = 200;

    /// Creates a query about the whole run.
    pub fn new(at: impl Into<String>) -> Self {
        Self {
            at: at.into(),
            after: None,
            steps: Self::STEPS,
        }
    }

    pub(crate) fn answer(&self, scene: &Scene<'_, '_>) -> Result<WhyNotReport> {
        let moment = match &self.after {
            None => At { time: 0, op: None },
            Some(text) => {
                let positions = scene.traced.positions(scene.names, scene.source())?;
                let moment = positions.moment(text);
                moment.with_context(|| format!("--after {text}"))?
            }
        };
        let after = moment.time;
        let (places, line) = places(scene, &self.at)?;
        let stopped = scene.traced.stops()?.first().copied();
        // The run may have ended before any of the place's operators.
        let never_came = stopped.as_ref().and_then(|stop| {
            let place = (stop.function, stop.block);
            let first = places.get(&place)?;
            (*first >= stop.next).then_some(place)
        });
        let absence = Absence::new(scene.walk(), after, stopped);
        let behind = match moment.op {
            Some(op) => block_at(scene, after)?
                .filter(|block| places.get(block).is_some_and(|first| op < *first)),
            None => None,
        };
        let places = Vec::from_iter(places.into_keys());
        let asked = WhyNotTarget {
            places: &places,
            line,
            never_came,
            behind,
        };
        refuse_executed(scene, &absence, &asked, after, &harmless(&self.at))?;
        let before = match after {
            0 => None,
            _ => before(scene, &absence, &asked, after)?,
        };
        let never = || not_executed(&self.at, after, before.as_ref());
        let length = scene.values.path().length();
        if after >= length && length > 0 {
            bail!("{}: the run ended at t={}", never(), grouped(length));
        }
        let causes = if places.is_empty() {
            Vec::new()
        } else {
            absence.of(&places)?
        };
        let Some((first, others)) = causes.split_first() else {
            match after {
                0 => bail!("{}: nothing in the program leads there", never()),
                _ => bail!("{}, nor was any branch or call that leads there", never()),
            }
        };
        let (cause, start) = cause::found(scene, first)?;
        let others = others.iter().map(|other| Ok(cause::found(scene, other)?.0));
        let others = others.collect::<Result<_>>()?;
        let (mut why, mut steps) = (Vec::new(), 0);
        if let Some(start) = start {
            let mut way = Way::new(scene, &start, self.steps)?;
            while way.more(&mut why)? {}
            steps = way.links();
        }
        Ok(WhyNotReport {
            at: self.at.clone(),
            after,
            before,
            cause,
            why,
            steps,
            others,
        })
    }
}

struct WhyNotTarget<'p> {
    places: &'p [CodeBlock],
    line: Option<Line>,
    /// The block of a place that was not reached, because the run ended in the block before the
    /// place.
    never_came: Option<CodeBlock>,
    /// The block of the moment, if the place is in this block but after the moment.
    behind: Option<CodeBlock>,
}

/// Finds the block that is executed at a time.
fn block_at(scene: &Scene<'_, '_>, time: u64) -> Result<Option<CodeBlock>> {
    let Some(instance) = scene.values.at(time)? else {
        return Ok(None);
    };
    let node = &scene.values.path().nodes()[instance.node];
    let block = node.blocks.get((time - instance.time) as usize);
    Ok(block.map(|block| (node.function, *block)))
}

impl WhyNotTarget<'_> {
    /// Returns how often a place was executed if its block was executed `times` times. The last
    /// execution does not count if the run ended before it reached the place.
    fn executed(&self, place: CodeBlock, times: u64) -> u64 {
        times - u64::from(times > 0 && self.never_came == Some(place))
    }
}

/// The blocks of a place, each with its first operator at the place.
type Places = BTreeMap<CodeBlock, OpId>;

/// Finds the blocks at a place. There are none if the place is unreachable.
fn places(scene: &Scene<'_, '_>, at: &str) -> Result<(Places, Option<Line>)> {
    let loaded = scene.traced.module();
    let resolver = scene.traced.resolver(scene.names, scene.source());
    let resolved = resolver.location(at)?;
    if resolved.occurrence.is_some() {
        bail!(
            "--at {at}: leave out the number of the execution; to ask about a part of the run, \
             use --after"
        );
    }
    let of = |(function, op): (FuncId, OpId)| {
        let block = afterimage_replay::values::block_at(loaded.program.function(function)?, op)?;
        Some(((function, block), op))
    };
    let mut line = None;
    let mut found = Places::new();
    match resolved.place {
        location::Place::Operator(function, op) => found.extend(of((function, op))),
        location::Place::Line(own, operators) => {
            line = (!has_column(at)).then_some(own);
            for (place, op) in operators.into_iter().filter_map(of) {
                let first = found.entry(place).or_insert(op);
                *first = op.min(*first);
            }
        }
        location::Place::Function(function) => {
            let Some(code) = loaded.program.function(function) else {
                let name = scene.names.short(function);
                bail!(
                    "{name} is imported, so its code is not in this module; ask about a call to it"
                );
            };
            found.insert((function, code.cfg.graph.root()), OpId::from_u32(0));
        }
    }
    Ok((found, line))
}

/// The number of executions or arrivals in a part of the run, with the first and the last of them.
struct Executed {
    count: u64,
    first: u64,
    last: u64,
}

/// Counts the arrivals at a line up to a time and after it, as a profile counts them. Returns
/// `None` if the path does not determine the number.
fn arrivals(
    scene: &Scene<'_, '_>,
    asked: &WhyNotTarget<'_>,
    after: u64,
) -> Result<Option<[Option<Executed>; 2]>> {
    let Some(line) = asked.line else {
        return Ok(None);
    };
    let functions: BTreeSet<FuncId> = asked.places.iter().map(|place| place.0).collect();
    let positions = scene.traced.positions(scene.names, scene.source())?;
    let Ok(all) = positions.arrivals(line, functions.into_iter()) else {
        return Ok(None);
    };
    let time = |number| Ok::<u64, anyhow::Error>(all.time(number)?.unwrap_or(0));
    // Describes the arrivals after the first `before`, up to number `last`.
    let part = |before: u64, last: u64| {
        let executed = || {
            Ok::<_, anyhow::Error>(Executed {
                count: last - before,
                first: time(before + 1)?,
                last: time(last)?,
            })
        };
        (before < last).then(executed).transpose()
    };
    let by = all.by(after)?;
    Ok(Some([part(0, by)?, part(by, all.count())?]))
}

/// Refuses a place that was executed.
fn refuse_executed(
    scene: &Scene<'_, '_>,
    absence: &Absence<'_, '_>,
    asked: &WhyNotTarget<'_>,
    after: u64,
    at: &str,
) -> Result<()> {
    let mut most: Option<(u64, CodeBlock)> = None;
    for &place in asked.places {
        let of_moment = u64::from(asked.behind == Some(place));
        let count = asked.executed(place, absence.times(place)? + of_moment);
        if count > 0 && most.is_none_or(|(most, _)| count > most) {
            most = Some((count, place));
        }
    }
    let Some((count, place)) = most else {
        return Ok(());
    };
    let arrived = match asked.behind {
        Some(_) => None,
        None => arrivals(scene, asked, after)?.and_then(|[_, behind]| behind),
    };
    let how = match arrived {
        Some(_) => "reached",
        None => "executed",
    };
    let Executed { count, first, last } = match arrived {
        Some(arrived) => arrived,
        None => {
            let runs = absence.runs(place)?;
            let first = if asked.behind == Some(place) {
                after
            } else {
                runs.next_after(after)?.map_or(0, |first| first.time)
            };
            let all = asked.executed(place, runs.count());
            let last = runs.select(all)?.map_or(0, |last| last.time);
            Executed { count, first, last }
        }
    };
    let when = match count {
        1 => format!("at t={}", grouped(first)),
        _ => format!("first at t={}, last at t={}", grouped(first), grouped(last)),
    };
    let after = match (after, asked.behind) {
        (0, _) => String::new(),
        (after, Some(behind)) if behind == place => format!(" from t={} on", grouped(after)),
        (after, _) => format!(" after t={}", grouped(after)),
    };
    // Other blocks of a line may be executed after the last arrival at the line.
    let mut end = last;
    for &place in asked.places {
        let runs = absence.runs(place)?;
        let own = runs.select(asked.executed(place, runs.count()))?;
        end = own.map_or(0, |own| own.time).max(end);
    }
    let later = if end > last {
        format!(", and executed up to t={}", grouped(end))
    } else {
        String::new()
    };
    let hint = if end < scene.values.path().length() {
        format!("; to ask why it did not run after that: --after {end}")
    } else {
        String::new()
    };
    let part = match asked.line {
        Some(_) if asked.places.len() > 1 => {
            format!("; to ask about a part of the line: --at {at}:COLUMN")
        }
        _ => String::new(),
    };
    bail!(WasExecuted(format!(
        "{at} was {how} {}{after}, {when}{later}{part}{hint}",
        times(count)
    )))
}

/// Returns the arrivals or executions up to a time, for a place that was not executed later.
fn before(
    scene: &Scene<'_, '_>,
    absence: &Absence<'_, '_>,
    asked: &WhyNotTarget<'_>,
    after: u64,
) -> Result<Option<WhyNotBefore>> {
    if let Some([Some(arrived), _]) = arrivals(scene, asked, after)? {
        return Ok(Some(WhyNotBefore {
            arrivals: true,
            times: arrived.count,
            t: arrived.last,
        }));
    }
    let (mut most, mut last) = (0, 0);
    for &place in asked.places {
        let runs = absence.runs(place)?;
        let count = asked.executed(place, runs.count());
        most = count.max(most);
        last = runs.select(count)?.map_or(0, |run| run.time).max(last);
    }
    Ok((most > 0).then_some(WhyNotBefore {
        arrivals: false,
        times: most,
        t: last,
    }))
}
