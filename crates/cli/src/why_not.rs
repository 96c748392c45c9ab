//! `afterimage why-not`

mod tell;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use afterimage::explain::Scene;
use afterimage::places::{has_column, times};
use afterimage::why::Way;
use afterimage_analyses::why::{Absence, Place};
use afterimage_ids::{FuncId, OpId};
use afterimage_present::{WhyEntry, WhyText, grouped};
use afterimage_profile::location;
use afterimage_profile::{Line, Resolver};
use afterimage_replay::paths::At;
use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::arguments::{ReportArguments, entries};
use crate::build::Lens;
use crate::early;
use crate::exit::Exit;
use crate::lens;
use crate::output::{harmless, pasted, write};
use tell::{CauseReport, told};

/// Explain why a line did not run: the branch that turned away, what decided it, and where that came from
///
/// A line depends on the branches that decide whether it is reached, and if none in its function does, on the function's calls. If such a branch or call was itself not reached, it is
/// asked in turn what it depends on, until something is found that was executed. Shown is its last execution, or with --after the first one after that time: which way it turned, what decided it, and
/// where that value came from, as `afterimage why` tells it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage why-not app.aft --at parser.c:42
  afterimage why-not app.aft --at handle_error
  afterimage why-not app.aft --at parser.c:42 --after 1000000
  afterimage why-not app.aft --at parser.c:42 --after 'parse#3' --format json")]
pub(crate) struct Arguments {
    /// The place: file.c:42, func+0x2a, @0x1f3, or a function
    #[arg(long, value_name = "PLACE")]
    at: String,
    /// Why it did not run after this moment: t=N, 50%, func#K, file.c:42#K, or -N, the N-th block from the end; where the block of the moment went counts
    #[arg(long, value_name = "POSITION", allow_hyphen_values = true)]
    after: Option<String>,
    /// Go back at most so many moves and computations from what decided the branch
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = entries)]
    steps: u64,
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
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let file = &arguments.report.file;
    let session = lens::finished(file)?;
    early::places(&session, Lens::Full, [arguments.at.as_str()])?;
    let traced = lens::with_whole_path(session)?;
    lens::explain(&traced, |scene| answer(&arguments, scene))
        .with_context(|| file.display().to_string())?;
    Ok(Exit::Success)
}

fn answer(arguments: &Arguments, scene: &Scene<'_, '_>) -> Result<()> {
    let moment = match &arguments.after {
        None => At { time: 0, op: None },
        Some(text) => {
            let positions = scene.traced.positions(scene.names, scene.source())?;
            let moment = positions.moment(text);
            moment.with_context(|| format!("--after {text}"))?
        }
    };
    let after = moment.time;
    let at = harmless(&arguments.at);
    let (places, line) = places(scene, &arguments.at)?;
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
    let asked = PlaceQuery {
        places: &places,
        line,
        never_came,
        behind,
    };
    refuse_executed(scene, &absence, &asked, after, &at)?;
    let never = match after {
        0 => format!("{at} was never executed"),
        _ => format!(
            "{at} was not executed after t={} ({})",
            grouped(after),
            before(scene, &absence, &asked, after)?
        ),
    };
    let length = scene.values.path().length();
    if after >= length && length > 0 {
        bail!("{never}: the run ended at t={}", grouped(length));
    }
    let causes = if places.is_empty() {
        Vec::new()
    } else {
        absence.of(&places)?
    };
    let mut all = causes.iter();
    let Some(first) = all.next() else {
        match after {
            0 => bail!("{never}: no way in the program leads there"),
            _ => bail!("{never}, and no branch or call was that leads there"),
        }
    };
    let mut first = told(scene, first, after)?;
    let mut rest = Vec::new();
    for other in all {
        rest.push(told(scene, other, after)?);
    }
    let mut way = match first.start.take() {
        Some(start) => {
            let way = Way::new(scene, &start, arguments.steps)?;
            Some((start, way))
        }
        None => None,
    };
    let mut entries: Vec<WhyEntry> = Vec::new();
    if let Some((_, way)) = &mut way {
        while way.more(&mut entries)? {}
    }
    write(arguments.report.output.as_deref(), false, |out| {
        match arguments.format {
            Format::Text => {
                writeln!(out, "{never}: {}", first.what)?;
                for hop in &first.hops {
                    writeln!(out, "  {hop}")?;
                }
                if let Some((start, way)) = &way {
                    let origin = afterimage::why::origin(&entries, way.links());
                    writeln!(out, "{} {origin}", start.what)?;
                    let mut text = WhyText {
                        out,
                        file: pasted(&arguments.report.file),
                        shown: None,
                    };
                    for entry in &entries {
                        text.entry(entry)?;
                    }
                    others_text(text.out, &rest)?;
                } else {
                    others_text(out, &rest)?;
                }
            }
            Format::Json => {
                let all = json!({
                    "schema": "afterimage/why-not/1",
                    "at": arguments.at,
                    "after": after,
                    "cause": first.json,
                    "why": entries,
                    "others": Vec::from_iter(rest.iter().map(|told| told.json.clone())),
                });
                serde_json::to_writer(&mut *out, &all)?;
                writeln!(out)?;
            }
        }
        Ok(())
    })
}

fn others_text(out: &mut dyn Write, rest: &[CauseReport]) -> Result<()> {
    if rest.is_empty() {
        return Ok(());
    }
    writeln!(out, "or")?;
    for told in rest {
        let at = told
            .place
            .as_ref()
            .map_or(String::new(), |place| format!("  ({})", place.at));
        writeln!(out, "  {}{at}", told.what)?;
    }
    Ok(())
}

/// What is asked about.
struct PlaceQuery<'p> {
    places: &'p [Place],
    line: Option<Line>,
    /// The one of the places in whose block the run ended before it came there.
    never_came: Option<Place>,
    /// The one of the places that is in the block of the moment, behind it.
    behind: Option<Place>,
}

/// The block that is executed at a time.
fn block_at(scene: &Scene<'_, '_>, time: u64) -> Result<Option<Place>> {
    let Some(instance) = scene.values.at(time)? else {
        return Ok(None);
    };
    let node = &scene.values.path().nodes()[instance.node];
    let block = node.blocks.get((time - instance.time) as usize);
    Ok(block.map(|block| (node.function, *block)))
}

impl PlaceQuery<'_> {
    /// How often a place was executed, of so many times that its block was: the last one does not count if the run ended before it came there.
    fn executed(&self, place: Place, times: u64) -> u64 {
        times - u64::from(times > 0 && self.never_came == Some(place))
    }
}

/// Blocks, and in each the first operator that is meant.
type Places = BTreeMap<Place, OpId>;

/// The blocks at a place; none, if no way leads there.
fn places(scene: &Scene<'_, '_>, at: &str) -> Result<(Places, Option<Line>)> {
    let loaded = scene.traced.module();
    let resolver = Resolver::new(&loaded.program, &loaded.bytes, scene.names, scene.source());
    let resolved = resolver.location(at)?;
    if resolved.occurrence.is_some() {
        bail!(
            "--at {at}: leave the number of the execution out; to ask about a part of the run, use --after"
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
                let name = scene.names.function(function);
                bail!("{name} is imported: it has no code here; ask about a call of it");
            };
            found.insert((function, code.cfg.graph.root()), OpId::from_u32(0));
        }
    }
    Ok((found, line))
}

/// How often something was executed, or reached, in a part of the run, and when first and last.
struct Executed {
    count: u64,
    first: u64,
    last: u64,
}

/// How often somebody arrived at a line up to a time and after it, as a profile counts it; `None` if the path does not tell.
fn arrivals(
    scene: &Scene<'_, '_>,
    asked: &PlaceQuery<'_>,
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
    // Those behind the first so many, up to this number.
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

/// Refuses what was executed.
fn refuse_executed(
    scene: &Scene<'_, '_>,
    absence: &Absence<'_, '_>,
    asked: &PlaceQuery<'_>,
    after: u64,
    at: &str,
) -> Result<()> {
    let mut most: Option<(u64, Place)> = None;
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
    // Other blocks of a line may be executed after the last arrival at it.
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
        format!("; for why not again: --after {end}")
    } else {
        String::new()
    };
    bail!(
        "{at} was {how} {}{after}, {when}{later}{hint}",
        times(count)
    )
}

/// How often what was not executed after a time was reached, or executed, up to then, in words.
fn before(
    scene: &Scene<'_, '_>,
    absence: &Absence<'_, '_>,
    asked: &PlaceQuery<'_>,
    after: u64,
) -> Result<String> {
    let told = |how: &str, count, last| {
        let (times, last) = (times(count), grouped(last));
        format!("it was {how} {times} before, the last time at t={last}")
    };
    if let Some([Some(arrived), _]) = arrivals(scene, asked, after)? {
        return Ok(told("reached", arrived.count, arrived.last));
    }
    let (mut most, mut last) = (0, 0);
    for &place in asked.places {
        let runs = absence.runs(place)?;
        let count = asked.executed(place, runs.count());
        most = count.max(most);
        last = runs.select(count)?.map_or(0, |run| run.time).max(last);
    }
    Ok(match most {
        0 => "it never was executed before, either".to_owned(),
        count => told("executed", count, last),
    })
}
