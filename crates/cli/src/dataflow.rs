//! `afterimage dataflow`

use std::collections::BTreeSet;

use afterimage::Session;
use afterimage_analyses::dataflow::{
    EventPlace, Fact, FactError, FactInstance, Facts, Instances, LastStep, RunCalls,
};
use afterimage_ids::{FuncId, OpId};
use afterimage_present::{DataflowView, FactRow, FactScene, StepScene, grouped, render};
use afterimage_profile::Resolver;
use afterimage_profile::location::{Occurrence, Place};
use afterimage_replay::steps::Operators;
use anyhow::{Context, Result, bail};

use crate::arguments::{ReportArguments, entries, formats};
use crate::exit::Exit;
use crate::input;
use crate::lens::traced_whole;
use crate::output::write;
use crate::progress::Bar;

/// Answer a GEN-KILL question at all executions of a place: always, never, or how often, and what decided
///
/// The path that was taken is looked at and no other: nothing is said of paths that the run did not take, and nothing is assumed of those that it took. A fact is about the
/// call in which the place is executed, with all that it calls. Of single executions it is told which one decided what: they are numbered from 1, in the order of time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Facts:
  available:PLACE  what a load, or an operator that only computes, gives was
                   read, written or computed before, and has not changed since,
                   as far as the code tells without addresses
  reaching:PLACE   which definitions of its local a local.get reads
  last-use:PLACE   the local of a local.get is not read again before it is set,
                   or the call ends
  gen=PLACES kill=PLACES at=PLACE
                   it was a place of gen, not of kill, that was executed last
                   before; with the word ahead, that is executed next. Several
                   are separated by commas; one of gen and kill may be left
                   out; parts are separated by spaces or semicolons

Places are file.c:42, func+0x2a and @0x1f3, functions by name or, if that has
spaces or commas in it, as func[12], by index. Of a line it is all operators there
that the fact can be about. For gen and kill, a function is a call of it. With
#7 or #last behind the place of an operator that is asked about, only this
execution is.

Examples:
  afterimage dataflow app.aft --fact available:@0x1f3
  afterimage dataflow app.aft --fact available:parser.c:42 --paths 5
  afterimage dataflow app.aft --fact reaching:parse+0x2a
  afterimage dataflow app.aft --fact reaching:parse+0x2a#7
  afterimage dataflow app.aft --fact 'gen=lock kill=unlock at=shared.c:17'
  afterimage dataflow app.aft --fact 'gen=free kill=a.c:17 at=a.c:20 ahead'")]
pub(crate) struct Arguments {
    /// The question
    #[arg(long, value_name = "FACT")]
    fact: String,
    /// Show the N path traces that most calls took, and at which of the call's blocks the fact held
    #[arg(long, value_name = "N", value_parser = entries)]
    paths: Option<u64>,
    /// Of each that decided, list N stretches of executions, or N series of equal ones [default: 3 for text, 100 for JSON]
    #[arg(long, value_name = "N", value_parser = entries)]
    instances: Option<u64>,
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
    /// A row for each operator and what decided
    Csv,
}

formats!(Text, Json, Csv);

/// A fact as it was written.
#[derive(Debug, Default, PartialEq, Eq)]
struct Written<'t> {
    kind: &'t str,
    at: &'t str,
    r#gen: Vec<&'t str>,
    kill: Vec<&'t str>,
    ahead: bool,
}

const FORMS: &str =
    "write available:PLACE, reaching:PLACE, last-use:PLACE, or gen=PLACES kill=PLACES at=PLACE";

impl<'t> Written<'t> {
    fn read(text: &'t str) -> Result<Self> {
        for kind in ["available", "reaching", "last-use"] {
            if let Some(at) = text.strip_prefix(kind).and_then(|t| t.strip_prefix(':')) {
                let at = at.trim();
                if at.is_empty() {
                    bail!("--fact {text}: {kind} of what place? {FORMS}");
                }
                return Ok(Self {
                    kind,
                    at,
                    ..Self::default()
                });
            }
        }
        let mut written = Self {
            kind: "places",
            ..Self::default()
        };
        let between = |c: char| c.is_whitespace() || c == ';';
        for word in text.split(between).filter(|word| !word.is_empty()) {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let places = || value.split(',').filter(|place| !place.is_empty());
            match key {
                "gen" if !value.is_empty() => written.r#gen.extend(places()),
                "kill" if !value.is_empty() => written.kill.extend(places()),
                "at" if !value.is_empty() && written.at.is_empty() => written.at = value,
                "at" if !value.is_empty() => bail!("--fact {text}: it has two at="),
                "ahead" if word == "ahead" => written.ahead = true,
                _ => bail!("--fact {text}: {word} is no part of a fact; {FORMS}"),
            }
        }
        if written.at.is_empty() {
            bail!("--fact {text}: it does not say where; {FORMS}");
        }
        if written.r#gen.is_empty() && written.kill.is_empty() {
            bail!("--fact {text}: it says neither gen= nor kill=, so nothing decides it; {FORMS}");
        }
        Ok(written)
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let written = Written::read(&arguments.fact)?;
    input::ended(&arguments.report.file)?;
    let traced = traced_whole(&arguments.report.file)?;
    answer(&arguments, &written, &traced)
        .with_context(|| arguments.report.file.display().to_string())?;
    Ok(Exit::Success)
}

fn answer(arguments: &Arguments, written: &Written<'_>, traced: &Session) -> Result<()> {
    let loaded = traced.module();
    let source = traced.source_map();
    let names = loaded.names(&source);
    let operators = Operators::new(&loaded.program, &loaded.bytes, &source);
    let resolver = Resolver::new(&loaded.program, &loaded.bytes, &names, &source);
    let places = |text: &str| -> Result<Place> {
        let resolved = resolver.location(text)?;
        if resolved.occurrence.is_some() {
            bail!(
                "{text} names one execution; what makes a fact hold or not is all executions of a place: leave out what is behind the #"
            );
        }
        Ok(resolved.place)
    };
    let events = |texts: &[&str]| -> Result<Vec<EventPlace>> {
        let mut events = Vec::new();
        for text in texts {
            match places(text)? {
                Place::Operator(function, op) => events.push(EventPlace::Operator(function, op)),
                Place::Line(_, all) => {
                    events.extend(all.into_iter().map(|(f, op)| EventPlace::Operator(f, op)));
                }
                Place::Function(function) if loaded.program.function(function).is_none() => bail!(
                    "{text} is imported, so the path has nothing of it; name the places that call it"
                ),
                Place::Function(function) => events.push(EventPlace::Entry(function)),
            }
        }
        Ok(events)
    };
    let fact = match written.kind {
        "available" => Fact::Available,
        "reaching" => Fact::Reaching,
        "last-use" => Fact::LastUse,
        _ => Fact::Places {
            r#gen: events(&written.r#gen)?,
            kill: events(&written.kill)?,
            ahead: written.ahead,
        },
    };
    let at = resolver.location(written.at)?;
    let one = at.occurrence;
    match arguments.format {
        Format::Csv if one.is_some() => bail!(
            "{}: comma-separated values are of all executions; of one, ask for text or JSON",
            written.at
        ),
        Format::Csv if arguments.paths.is_some() || arguments.instances.is_some() => bail!(
            "--paths and --instances are for text and JSON: comma-separated values have a row for what decided"
        ),
        _ if one.is_some() && (arguments.paths.is_some() || arguments.instances.is_some()) => {
            bail!(
                "{} is one execution: leave out --paths and --instances, or what is behind the #",
                written.at
            )
        }
        _ => {}
    }
    let (asked, is_line) = match at.place {
        Place::Line(..) if one.is_some() => bail!(
            "{} is an arrival at a line, and facts are about executions of operators: leave out what is behind the # to see the line's, and then add it to one of these",
            written.at
        ),
        Place::Operator(function, op) => (vec![(function, op)], false),
        Place::Line(_, all) => (all, true),
        Place::Function(function) => match loaded.program.function(function) {
            Some(_) if written.kind == "places" => (vec![(function, OpId::from_u32(0))], false),
            Some(known) => {
                let all = (0..known.operators).map(|op| (function, OpId::from_u32(op)));
                (all.collect(), true)
            }
            None => bail!("{} is imported: it has no operators here", written.at),
        },
    };
    if one.is_some() && asked.len() > 1 {
        bail!(
            "{} names one call of a function with many operators: name one of these",
            written.at
        );
    }
    let calls = run_calls(traced)?.context(
        "how the run ended was not recorded, so it is not known how much of its last block was executed; record the program again",
    )?;
    let facts = Facts::new(&calls, &loaded.program, &loaded.bytes);
    let mut asked = asked;
    if is_line && written.kind == "places" {
        // Within a block no other place is executed but the line's own and those before it: one row each tells it.
        let mut seen = BTreeSet::new();
        asked.retain(|&(function, op)| {
            let block = loaded.program.function(function).map(|f| f.block_of(op));
            seen.insert((function, block.flatten()))
        });
    }
    let rows = rows(arguments, written, &facts, &fact, asked, is_line, one)?;
    let first = |function: FuncId, block| {
        let function = loaded.program.function(function);
        function.map_or(OpId::from_u32(0), |f| f.cfg.blocks[block].ops.start)
    };
    let scene = FactScene {
        steps: StepScene {
            names: &names,
            operators: &operators,
            source: &source,
            memories: loaded.program.memories,
            style: arguments.report.style(),
        },
        text: &arguments.fact,
        fact: &fact,
        first: &first,
    };
    let style = scene.steps.style;
    let view = DataflowView { scene, rows };
    write(arguments.report.output.as_deref(), false, |out| {
        Ok(render(out, &view, arguments.format, style)?)
    })
}

/// The path traces and calls of a run; `None` if it is not known how it ended.
pub(crate) fn run_calls(traced: &Session) -> Result<Option<RunCalls>> {
    let Some(end) = traced.file().end()? else {
        return Ok(None);
    };
    let _bar = Bar::start("collecting path traces", None);
    let loaded = traced.module();
    let last = LastStep::of(&loaded.program, &loaded.bytes, &end)?;
    Ok(Some(RunCalls::of(traced.path()?, last)?))
}

/// So many operators are asked about at once: what is known of their executions is in memory together.
const AT_ONCE: usize = 8;

/// The answers: of a line, those for the operators that the fact can be about, and that were executed.
fn rows(
    arguments: &Arguments,
    written: &Written<'_>,
    facts: &Facts<'_>,
    fact: &Fact,
    asked: Vec<(FuncId, OpId)>,
    is_line: bool,
    one: Option<Occurrence>,
) -> Result<Vec<FactRow>> {
    let usual = match arguments.format {
        Format::Text => 3,
        Format::Json => 100,
        Format::Csv => 0,
    };
    let most = arguments.instances.unwrap_or(usual) as usize;
    let paths = arguments.paths.unwrap_or(0) as usize;
    let mut rows = Vec::new();
    let mut refused: Option<FactError> = None;
    let of_function = asked.chunk_by(|a, b| a.0 == b.0);
    for some in of_function.flat_map(|all| all.chunks(AT_ONCE)) {
        let function = some[0].0;
        let ops = Vec::from_iter(some.iter().map(|&(_, op)| op));
        let answers = facts.answers(function, &ops, fact, paths);
        for (&op, answer) in ops.iter().zip(answers) {
            let (answer, each) = match answer {
                Ok(answer) => answer,
                Err(error) if is_line => {
                    refused = refused.or(Some(error));
                    continue;
                }
                Err(error) => bail!("{}: {error}", written.at),
            };
            let one = match one {
                Some(which) => Some(execution(&each, which, written.at)?),
                None => None,
            };
            let decided = answer.decided.iter();
            rows.push(FactRow {
                function,
                op,
                instances: match one {
                    Some(_) => Vec::new(),
                    None => decided.map(|&(by, _)| each.decided_by(by, most)).collect(),
                },
                one,
                answer,
            });
        }
    }
    // Of a line some copies may never have been executed.
    if rows.iter().any(|row| row.answer.executions > 0) {
        rows.retain(|row| !is_line || row.answer.executions > 0);
    }
    if rows.is_empty() {
        let why = refused.map_or(String::new(), |error| format!(": {error}"));
        bail!(
            "{}: the fact can be about none of its operators{why}",
            written.at
        );
    }
    Ok(rows)
}

/// The execution that was asked about.
fn execution(each: &Instances<'_>, which: Occurrence, at: &str) -> Result<FactInstance> {
    let number = match which {
        Occurrence::Kth(number) => number,
        Occurrence::Last => each.count(),
    };
    each.get(number).with_context(|| match each.count() {
        0 => format!("{at}: it was never executed"),
        1 => format!("{at}: it was executed once"),
        count => format!("{at}: it was executed {} times", grouped(count)),
    })
}

#[cfg(test)]
mod tests {
    use super::Written;

    #[test]
    fn facts_are_read() {
        let read = |text| Written::read(text).unwrap();
        let available = read("available:a.c:42");
        assert_eq!((available.kind, available.at), ("available", "a.c:42"));
        let places = read("gen=@0x10,@0x20 kill=f;at=@0x40; ahead");
        assert_eq!(places.r#gen, ["@0x10", "@0x20"]);
        assert_eq!(
            (places.kill, places.at, places.ahead),
            (vec!["f"], "@0x40", true)
        );
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "available:",
            "gen=@0x10",
            "at=@0x10",
            "gen= at=f",
            "gen=f at=f at=g",
            "dead:f",
            "gen=f at=f ahead=1",
        ] {
            assert!(Written::read(text).is_err(), "{text}");
        }
    }
}
