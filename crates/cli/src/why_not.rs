//! `afterimage why-not`

use std::collections::BTreeSet;
use std::io::Write;

use afterimage_ids::{FuncId, OpId};
use afterimage_present::{WhyEntry, WhyPlace, WhyText, grouped, value_text, why_json};
use afterimage_program::EdgeKind;
use afterimage_query::Resolver;
use afterimage_query::location;
use afterimage_query::state::calls;
use afterimage_query::why::{Absence, Absent, At, Cause, Hop, Place, Turned};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::arguments::{ReportArguments, entries};
use crate::exit::Exit;
use crate::explain::{Scene, explain};
use crate::input;
use crate::lens::traced_whole;
use crate::output::{harmless, write};
use crate::places::times;
use crate::why::{Start, Way};

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
    /// Why it did not run after this moment: t=N, 50%, func#K, file.c:42#K
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
    input::ended(file)?;
    let traced = traced_whole(file)?;
    explain(file, &traced, |scene| answer(&arguments, scene))
        .with_context(|| file.display().to_string())?;
    Ok(Exit::Success)
}

/// A cause, told.
struct Told {
    /// In one sentence, to stand behind the place.
    what: String,
    /// How the place depends on it.
    hops: Vec<String>,
    /// The branch or call.
    place: Option<WhyPlace>,
    /// What decided it.
    start: Option<Start>,
    json: Value,
}

fn answer(arguments: &Arguments, scene: &Scene<'_, '_>) -> Result<()> {
    let after = match &arguments.after {
        None => 0,
        Some(text) => {
            let positions = scene.traced.positions(scene.names, scene.source);
            let time = positions.time(text);
            time.with_context(|| format!("--after {text}"))?
        }
    };
    let at = harmless(&arguments.at);
    let places = places(scene, &arguments.at)?;
    let absence = Absence::new(scene.walk(), after);
    refuse_executed(scene, &absence, &places, after, &at)?;
    let never = match after {
        0 => format!("{at} was never executed"),
        _ => format!("{at} was not executed after t={}", grouped(after)),
    };
    let causes = match places.is_empty() {
        true => Vec::new(),
        false => absence.of(&places)?,
    };
    let Some((first, others)) = causes.split_first() else {
        match after {
            0 => bail!("{never}: no way in the program leads there"),
            _ => bail!(
                "{never}, and no branch or call was that leads there: {}",
                before(&absence, &places)?
            ),
        }
    };
    let mut first = told(scene, first, after)?;
    let mut rest = Vec::new();
    for other in others {
        rest.push(told(scene, other, after)?);
    }
    let mut way = first.start.take().map(|start| {
        let way = Way::new(scene, &start, arguments.steps);
        (start, way)
    });
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
                    writeln!(out, "{}", crate::why::head(start, &entries, way.links()))?;
                    let mut text = WhyText {
                        out,
                        file: arguments.report.file.display().to_string(),
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
                let why = entries.iter().map(why_json);
                let all = json!({
                    "schema": "afterimage/why-not/1",
                    "at": arguments.at,
                    "after": after,
                    "cause": first.json,
                    "why": Vec::from_iter(why),
                    "others": Vec::from_iter(rest.iter().map(|told| told.json.clone())),
                });
                serde_json::to_writer(&mut *out, &all)?;
                writeln!(out)?;
            }
        }
        Ok(())
    })
}

fn others_text(out: &mut dyn Write, rest: &[Told]) -> Result<()> {
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

/// The blocks at a place; none, if no way leads there.
fn places(scene: &Scene<'_, '_>, at: &str) -> Result<Vec<Place>> {
    let loaded = &scene.traced.loaded;
    let resolver = Resolver::new(&loaded.program, &loaded.bytes, scene.names, scene.source);
    let resolved = resolver.location(at)?;
    if resolved.occurrence.is_some() {
        bail!(
            "--at {at}: leave the number of the execution out; to ask about a part of the run, use --after"
        );
    }
    let of = |(function, op): (FuncId, OpId)| {
        let block = loaded.program.function(function)?.block_of(op)?;
        Some((function, block))
    };
    let found: BTreeSet<Place> = match resolved.place {
        location::Place::Operator(function, op) => of((function, op)).into_iter().collect(),
        location::Place::Line(_, operators) => operators.into_iter().filter_map(of).collect(),
        location::Place::Function(function) => {
            let Some(code) = loaded.program.function(function) else {
                let name = scene.names.function(function);
                bail!("{name} is imported: it has no code here; ask about a call of it");
            };
            BTreeSet::from([(function, code.cfg.graph.root())])
        }
    };
    Ok(found.into_iter().collect())
}

/// Refuses what was executed.
fn refuse_executed(
    scene: &Scene<'_, '_>,
    absence: &Absence<'_, '_>,
    places: &[Place],
    after: u64,
    at: &str,
) -> Result<()> {
    let mut most: Option<(u64, Place)> = None;
    for &place in places {
        let count = absence.times(place)?;
        if count > 0 && most.is_none_or(|(most, _)| count > most) {
            most = Some((count, place));
        }
    }
    let Some((count, place)) = most else {
        return Ok(());
    };
    let runs = absence.runs(place)?;
    let first = runs.next_after(after)?.map_or(0, |first| first.time);
    let last = runs.select(runs.count())?.map_or(0, |last| last.time);
    let when = match count {
        1 => format!("at t={}", grouped(first)),
        _ => format!("first at t={}, last at t={}", grouped(first), grouped(last)),
    };
    let after = match after {
        0 => String::new(),
        after => format!(" after t={}", grouped(after)),
    };
    let hint = match last < scene.values.path().length() {
        true => format!("; for why not again: --after {last}"),
        false => String::new(),
    };
    bail!("{at} was executed {}{after}, {when}{hint}", times(count))
}

/// How often something was executed, in words.
fn before(absence: &Absence<'_, '_>, places: &[Place]) -> Result<String> {
    let (mut most, mut last) = (0, 0);
    for &place in places {
        let runs = absence.runs(place)?;
        most = runs.count().max(most);
        last = runs
            .select(runs.count())?
            .map_or(0, |run| run.time)
            .max(last);
    }
    Ok(match most {
        0 => "it never was executed before, either".to_owned(),
        count => format!(
            "it was executed {} before, the last time at t={}",
            times(count),
            grouped(last)
        ),
    })
}

/// The operator that a block ends with.
fn end_of(scene: &Scene<'_, '_>, (function, block): Place) -> Result<OpId> {
    let code = scene.traced.loaded.program.function(function);
    let end = code.and_then(|code| code.cfg.blocks.get(block));
    let op = end.and_then(|block| block.ops.end.as_u32().checked_sub(1));
    op.map(OpId::from_u32).context("a block without operators")
}

/// `file.c:42 in main`.
fn text(place: &WhyPlace) -> String {
    match place.line.is_empty() {
        true => format!("{} in {}", place.at, place.function),
        false => format!("{} in {}", place.line, place.function),
    }
}

fn told(scene: &Scene<'_, '_>, absent: &Absent, after: u64) -> Result<Told> {
    let mut hops = Vec::new();
    let mut json_hops = Vec::new();
    for hop in &absent.hops {
        let (how, place) = match *hop {
            Hop::Branch(place) => ("that depends on", place),
            Hop::Call(place) => ("its function would be called by", place),
        };
        let place = scene.operator(place.0, end_of(scene, place)?)?;
        hops.push(format!(
            "{how} {} at {}, which was not executed",
            place.operator,
            text(&place)
        ));
        json_hops.push(json!({
            "how": if matches!(hop, Hop::Branch(_)) { "branch" } else { "call" },
            "at": place.at, "line": place.line, "function": place.function, "operator": place.operator,
        }));
    }
    let which = if after == 0 {
        "the last time"
    } else {
        "the first time then"
    };
    let name = |function| harmless(scene.names.function(function));
    let mut told = match absent.cause {
        Cause::Branch {
            place,
            edge,
            times: count,
            execution,
        } => {
            let (shown, start) = decided(scene, place, &execution)?;
            let code = scene.traced.loaded.program.function(place.0);
            let kind = code.map(|code| code.cfg.edges[edge].kind);
            let needed = match kind {
                Some(EdgeKind::Taken | EdgeKind::Then) => "that takes another value than 0",
                Some(EdgeKind::NotTaken | EdgeKind::Else) => "that takes 0",
                Some(EdgeKind::CallThrow | EdgeKind::Throw) => "that takes an exception",
                _ => "that takes another index",
            };
            let by = start.as_ref().map_or(String::new(), |start| {
                format!(" {which} decided by {}", start.value)
            });
            let went = went(scene, place.0, &execution)?;
            let what = format!(
                "{} at {} was executed {} and never went there;{by}{went} ({needed})",
                shown.operator,
                text(&shown),
                times(count)
            );
            let json = json!({
                "kind": "branch", "place": shown.at, "line": shown.line, "function": shown.function,
                "operator": shown.operator, "times": count, "time": execution.time,
                "value": start.as_ref().map(|start| start.value.clone()),
            });
            Told {
                what,
                hops,
                place: Some(shown),
                start,
                json,
            }
        }
        Cause::Table {
            place,
            function,
            times: count,
            execution,
            called,
        } => {
            let (shown, start) = decided(scene, place, &execution)?;
            let by = start.as_ref().map_or(String::new(), |start| {
                format!(", through index {}", start.value)
            });
            let called = called.map_or("a function of the host".to_owned(), name);
            let what = format!(
                "{} at {} was executed {} and never called {}; {which} it called {called}{by}",
                shown.operator,
                text(&shown),
                times(count),
                name(function)
            );
            let json = json!({
                "kind": "table", "place": shown.at, "line": shown.line, "function": shown.function,
                "operator": shown.operator, "times": count, "time": execution.time, "called": called,
                "value": start.as_ref().map(|start| start.value.clone()),
            });
            Told {
                what,
                hops,
                place: Some(shown),
                start,
                json,
            }
        }
        Cause::Ended {
            place,
            times: count,
            time,
        } => {
            let mut shown = scene.operator(place.0, end_of(scene, place)?)?;
            shown.time = time;
            let end = scene.traced.file.end()?;
            let (stack, _) = calls(scene.values, scene.values.path().length(), usize::MAX)?;
            let mut open = stack.iter();
            let is_open = open.any(|call| call.function == place.0 && call.entered <= time);
            let then = match end.filter(|_| is_open) {
                Some(end) => format!("the run {}", end.ending),
                None => format!("{} was left by an exception", shown.function),
            };
            let what = format!(
                "{} at {} was executed {}, and from there the way leads on, but then, at t={} or after, {then}",
                shown.operator,
                text(&shown),
                times(count),
                grouped(time)
            );
            let json = json!({
                "kind": "ended", "place": shown.at, "line": shown.line, "function": shown.function,
                "operator": shown.operator, "times": count, "time": time,
            });
            Told {
                what,
                hops,
                place: Some(shown),
                start: None,
                json,
            }
        }
        Cause::Host(function) | Cause::Uncalled(function) => {
            let (kind, what) = match absent.cause {
                Cause::Host(_) => ("host", "only the host could have called"),
                _ => ("uncalled", "nothing in the program calls"),
            };
            let what = format!("{what} {}", name(function));
            let json = json!({ "kind": kind, "function": name(function) });
            Told {
                what,
                hops,
                place: None,
                start: None,
                json,
            }
        }
    };
    told.json["through"] = Value::Array(json_hops);
    Ok(told)
}

/// An execution of a branch or call, and what decided it.
fn decided(
    scene: &Scene<'_, '_>,
    place: Place,
    execution: &Turned,
) -> Result<(WhyPlace, Option<Start>)> {
    let op = end_of(scene, place)?;
    let walk = scene.walk();
    let spot = walk.spot_of(execution.instance, op);
    let shown = scene.place(spot)?;
    let Some(statement) = walk.statement(execution.instance, op)? else {
        return Ok((shown, None));
    };
    let compiled = scene.values.compiled(execution.instance.node)?;
    let operands = statement.operands(&compiled.code);
    let (types, _) = scene.types.of(place.0, op).unwrap_or_default();
    let wanted = |role| matches!(role, "condition" | "index");
    let found = operands
        .iter()
        .zip(&types)
        .find(|(one, _)| wanted(one.role));
    let Some((one, &ty)) = found else {
        return Ok((shown, None));
    };
    let bits = match scene.values.value(execution.instance, one.register) {
        Ok(bits) => bits,
        // What decided it is not known, but which way it turned is.
        Err(afterimage_query::values::ValuesError::Outside { .. }) => return Ok((shown, None)),
        Err(error) => return Err(error.into()),
    };
    let value = value_text(ty, bits);
    let start = Start {
        from: At::Register(execution.instance, one.register),
        ty: Some(ty),
        what: format!("what decided it at {}, {value},", shown.at),
        value,
        place: Some(shown.clone()),
        spot: Some(spot),
        prelude: Vec::new(),
    };
    Ok((shown, Some(start)))
}

/// Where a branch went instead.
fn went(scene: &Scene<'_, '_>, function: FuncId, execution: &Turned) -> Result<String> {
    let Some(code) = scene.traced.loaded.program.function(function) else {
        return Ok(String::new());
    };
    let Some(to) = execution.to else {
        let ended = execution.time >= scene.values.path().length();
        let what = if ended {
            ", and the run ended"
        } else {
            ", it left the function"
        };
        return Ok(what.to_owned());
    };
    let Some(block) = code
        .cfg
        .blocks
        .get(to)
        .filter(|block| !block.ops.is_empty())
    else {
        return Ok(", it left the function".to_owned());
    };
    let place = scene.operator(function, block.ops.start)?;
    Ok(match place.line.is_empty() {
        true => format!(", it went to {}", place.at),
        false => format!(", it went to {}", place.line),
    })
}
