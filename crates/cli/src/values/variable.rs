//! `afterimage values --var`: a variable of the source, each time that the run was at a place.

mod summary;

use std::io::Write;

use afterimage::Session;
use afterimage::places::{Site, executions, times};
use afterimage::steps::follow;
use afterimage::wasm_local::{WasmLocal, wasm_local};
use afterimage_ids::{FuncId, OpId, OrigOffset};
use afterimage_present::{WrittenSince, grouped, type_text, value_text, written_text};
use afterimage_profile::Resolver;
use afterimage_profile::location::{Form, Place, form, split_occurrence};
use afterimage_program::{Names, OperatorIndex, SourceMap};
use afterimage_replay::state::{
    Bodies, Evaluated, Number, Occasion, Occasions, Path, PathError, Variables, Watch, WatchError,
    Worth, follow_to,
};
use afterimage_replay::values::RecordedValues;
use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::{Arguments, Format, range, rank, wanted};
use crate::lens;
use crate::output::{harmless, write};

/// What is asked about.
struct VariableQuery<'a> {
    name: &'a str,
    at: &'a str,
    /// What is counted: arrived at, executed, called.
    happened: &'static str,
    count: u64,
}

impl VariableQuery<'_> {
    /// `total (int) at app.c:17: arrived at 5 times`
    fn head(&self, out: &mut dyn Write, kind: Option<&str>) -> Result<()> {
        let kind = kind.map_or(String::new(), |kind| format!(" ({})", harmless(kind)));
        writeln!(
            out,
            "{}{kind} at {}: {} {}",
            harmless(self.name),
            harmless(self.at),
            self.happened,
            times(self.count)
        )?;
        Ok(())
    }
}

/// The answer.
struct Report<'a> {
    asked: VariableQuery<'a>,
    rows: Vec<Evaluated>,
    more: u64,
    /// The user named single occasions: the others are not missing.
    named: bool,
}

pub(super) fn answer<'a>(
    arguments: &Arguments,
    traced: &'a Session,
    names: &'a Names,
    source: &'a SourceMap<'a>,
    name: &str,
) -> Result<()> {
    let loaded = traced.module();
    let path: Path = name.parse().map_err(|error: PathError| {
        anyhow::anyhow!("--var {name}: {error}; write a name, p->next, s.member, a[3] or *p")
    })?;
    let resolver = Resolver::new(&loaded.program, &loaded.bytes, names, source);
    let resolved = resolver.location(arguments.place())?;
    let which = wanted(arguments, resolved.occurrence)?;
    let at = match resolved.occurrence {
        Some(_) => split_occurrence(arguments.place())?.0,
        None => arguments.place(),
    };
    if let (
        Place::Line(..),
        Form::Line {
            column: Some(_), ..
        },
    ) = (&resolved.place, form(at))
    {
        bail!("{at} names a column, but arrivals are counted by line: leave the column out");
    }
    let local = match only_function(&resolved.place) {
        Some(function) => wasm_local(loaded, names, function, name),
        None => None,
    };
    let variables = match local {
        Some(_) => None,
        None => Some(Variables::open(&loaded.bytes)?),
    };
    if let Some(variables) = &variables {
        known(traced, variables, &path, names, &resolved.place)?;
    }
    let values = lens::values(traced)?;
    let (occasions, happened) = occasions(traced, &values, names, source, resolved.place)?;
    let count = occasions.count();
    let summed = arguments.stats || arguments.histogram;
    let (first, last) = range(which, count, (at, happened), |time| Ok(occasions.by(time)?))?;
    let last = last.min((first - 1).saturating_add(which.most(arguments)));
    let bodies = Bodies::new(&loaded.program, &loaded.bytes);
    let called = |function: FuncId| names.function(function).to_owned();
    let program = &loaded.program;
    let subject = match (&variables, local) {
        (Some(variables), _) => {
            let watch = Watch::new(program, &bodies, &values, variables, &called, path);
            Subject::Variable(traced, watch)
        }
        (None, local) => Subject::Local(WasmLocal {
            values: &values,
            bodies: &bodies,
            local: local.unwrap_or_default(),
        }),
    };
    let asked = VariableQuery {
        name,
        at,
        happened,
        count,
    };
    if summed {
        let moments = summary::Moments {
            values: &values,
            occasions: &occasions,
            first,
            last,
        };
        let summary = summary::Summary::of(&moments, &subject, &asked)?;
        return write(arguments.report.output.as_deref(), false, |out| {
            match arguments.format {
                Format::Text => summary.text(out, &asked, arguments)?,
                Format::Json | Format::Bin => {
                    writeln!(out, "{}", summary.json(&asked, arguments.rows()))?;
                }
            }
            Ok(())
        });
    }
    let mut wanted = Vec::new();
    for number in first..=last {
        wanted.extend(occasions.get(&values, number)?);
    }
    let rows = subject.worths(&wanted)?;
    let reasons = rows.iter().map(|row| row.value.as_ref().err());
    if let Some(why) = never(reasons) {
        bail!("--var {name}: {why}");
    }
    let report = Report {
        more: which.of(count, first) - rows.len() as u64,
        named: which.is_named(),
        asked,
        rows,
    };
    write(arguments.report.output.as_deref(), false, |out| {
        match arguments.format {
            Format::Text => text(out, &report, names)?,
            Format::Json | Format::Bin => writeln!(out, "{}", document(&report, names))?,
        }
        Ok(())
    })
}

/// What has a value at each moment.
enum Subject<'s, 'a> {
    /// An expression of the source.
    Variable(&'s Session, Watch<'s, 'a>),
    /// A local of WebAssembly.
    Local(WasmLocal<'s, 'a>),
}

impl Subject<'_, '_> {
    fn worths(&self, occasions: &[Occasion]) -> Result<Vec<Evaluated>> {
        match self {
            Self::Variable(traced, watch) => {
                let rows = watch.at(occasions, |halts, show| {
                    follow(traced, |run, log| Ok(follow_to(run, log, halts, show)?))
                });
                rows.map_err(unwatched)
            }
            Self::Local(local) => local.at(occasions, |ty, bits| Worth {
                type_name: type_text(ty).to_owned(),
                text: value_text(ty, bits),
                written: None,
            }),
        }
    }

    /// Each with whether its place may hold something else.
    fn numbers(&self, occasions: &[Occasion]) -> Result<Vec<Evaluated<(Number, bool)>>> {
        match self {
            Self::Variable(traced, watch) => {
                let rows = watch.each(
                    occasions,
                    |halts, show| follow(traced, |run, log| Ok(follow_to(run, log, halts, show)?)),
                    |watched| {
                        let number = watched.variables.number(&watched.object, watched.moment)?;
                        Ok((number, watch.written(watched)))
                    },
                );
                let rows = rows.map_err(unwatched)?.into_iter().map(|row| {
                    let value = match row.value {
                        Ok((number, written)) => Ok((number, written?.is_some())),
                        Err(why) => Err(why),
                    };
                    Ok(Evaluated {
                        number: row.number,
                        time: row.time,
                        function: row.function,
                        value,
                    })
                });
                rows.collect()
            }
            Self::Local(local) => local.at(occasions, |ty, bits| {
                let number = Number {
                    type_name: type_text(ty).to_owned(),
                    bits: u128::from(bits.0) | u128::from(bits.1) << 64,
                    rank: rank(ty, bits),
                    text: value_text(ty, bits),
                };
                (number, false)
            }),
        }
    }
}

fn unwatched(error: WatchError<anyhow::Error>) -> anyhow::Error {
    match error {
        WatchError::State(error) => error.into(),
        WatchError::Follow(error) => error,
    }
}

/// The function that all code of a place is in, if it is one.
fn only_function(place: &Place) -> Option<FuncId> {
    match place {
        Place::Function(function) | Place::Operator(function, _) => Some(*function),
        Place::Line(_, operators) => {
            let (first, _) = operators.first()?;
            operators
                .iter()
                .all(|(function, _)| function == first)
                .then_some(*first)
        }
    }
}

/// Why an expression can never have a value, if that is the same wherever there is none and it has one nowhere.
fn never<'e>(mut reasons: impl Iterator<Item = Option<&'e PathError>>) -> Option<&'e PathError> {
    let first = reasons.next()??;
    let of_types = matches!(
        first,
        PathError::NoMember { .. }
            | PathError::NotPointer { .. }
            | PathError::NotIndexable { .. }
            | PathError::OutsideArray { .. }
            | PathError::Incomplete { .. }
            | PathError::Aggregate { .. }
    );
    (of_types && reasons.all(|why| why == Some(first))).then_some(first)
}

/// The most variables that a refusal names.
const MOST_NAMED: usize = 16;

/// Refuses a variable that no function of the place knows: it has no value anywhere.
fn known(
    traced: &Session,
    variables: &Variables<'_>,
    path: &Path,
    names: &Names,
    place: &Place,
) -> Result<()> {
    let loaded = traced.module();
    let mut operators: Vec<(FuncId, OpId)> = match place {
        Place::Function(function) => vec![(*function, OpId::from_u32(0))],
        Place::Operator(function, op) => vec![(*function, *op)],
        Place::Line(_, operators) => operators.clone(),
    };
    operators.sort_unstable();
    operators.dedup_by_key(|(function, _)| *function);
    let index = OperatorIndex::new(&loaded.program, &loaded.bytes);
    let (mut unknown, mut named) = (None, None);
    let mut there: Vec<String> = Vec::new();
    for (function, op) in operators {
        let Some(defined) = loaded.program.function(function) else {
            bail!(
                "{} is imported: it has no variables here",
                names.function(function)
            );
        };
        let offset = index.offsets(defined).get(op.as_u32() as usize).copied();
        let offset = offset.unwrap_or(OrigOffset(defined.body.start.0));
        let found = match variables.function(function) {
            Ok(scopes) => {
                let all = variables.in_scope_of(&scopes, offset);
                // Global variables have no scope.
                let all = all.unwrap_or_default().into_iter();
                let own = all.filter(|one| one.inlined == 0 && !one.scope.is_empty());
                there = own.map(|one| one.name).collect();
                variables.find(&path.variable, Some((&scopes, offset)))
            }
            // Of code without debug information only global variables are known.
            Err(error) => match variables.find(&path.variable, None) {
                Err(PathError::NoVariable { .. }) => {
                    let called = |function| names.function(function).to_owned();
                    Err(error.named(called).into())
                }
                found => found,
            },
        };
        match found {
            // It may be in scope at other instructions of the line.
            Ok(_) | Err(PathError::NotInScope { .. }) => return Ok(()),
            Err(PathError::NoVariable { name, nearest })
                if nearest.is_empty() && (1..=MOST_NAMED).contains(&there.len()) =>
            {
                let error = format!(
                    "there is no variable {name} in {}; in scope there: {}",
                    names.function(function),
                    there.join(", ")
                );
                named = Some(anyhow::anyhow!(error));
            }
            Err(error) => unknown = Some(error),
        }
    }
    match (unknown, named) {
        (Some(error), _) => Err(error.into()),
        (None, Some(error)) => Err(error),
        (None, None) => Ok(()),
    }
}

/// All times at which the run was at a place, and what that is called.
fn occasions<'v, 's: 'v>(
    traced: &'s Session,
    values: &RecordedValues<'v>,
    names: &'s Names,
    source: &'s SourceMap<'s>,
    place: Place,
) -> Result<(Occasions<'v>, &'static str)> {
    Ok(match place {
        Place::Function(function) => {
            let calls = traced.path()?.activations(function)?;
            let prologue = traced.positions(names, source)?.prologue(function)?;
            (Occasions::Calls(calls, prologue), "called")
        }
        Place::Operator(function, op) => {
            let site = Site {
                function,
                op,
                offset: OrigOffset(0),
                text: String::new(),
            };
            let (all, count) = executions(traced, values, &site)?;
            (Occasions::Operator(all, op, count), "executed")
        }
        Place::Line(line, operators) => {
            let positions = traced.positions(names, source)?;
            let functions = operators.iter().map(|(function, _)| *function);
            let all = positions.arrivals(line, functions)?;
            (Occasions::Line(all), "arrived at")
        }
    })
}

fn text(out: &mut dyn Write, report: &Report<'_>, names: &Names) -> Result<()> {
    let types = report.rows.iter().filter_map(|row| row.value.as_ref().ok());
    let kind = types.map(|worth| worth.type_name.as_str()).next();
    report.asked.head(out, kind)?;
    let mut functions = report.rows.iter().map(|row| row.function);
    let first = functions.next();
    let several = functions.any(|function| Some(function) != first);
    // Rows in succession without a value, for the same reason, are one row.
    let same = |a: &Evaluated, b: &Evaluated| match (&a.value, &b.value) {
        (Err(a_why), Err(b_why)) => a_why == b_why && a.function == b.function,
        _ => false,
    };
    for rows in report.rows.chunk_by(same) {
        let row = &rows[0];
        let value = match &row.value {
            Ok(worth) => format!("{}{}", harmless(&worth.text), written_text(worth.written)),
            Err(why) => format!("<{}>", harmless(&why.to_string())),
        };
        let function = if several {
            format!("  in {}", harmless(names.function(row.function)))
        } else {
            String::new()
        };
        let (number, time) = match rows {
            [.., last] if rows.len() > 1 => (
                format!("#{}..{}", grouped(row.number), grouped(last.number)),
                format!("{}..{}", grouped(row.time), grouped(last.time)),
            ),
            _ => (format!("#{}", grouped(row.number)), grouped(row.time)),
        };
        writeln!(out, "{number:>12}  t={time:<14} {value}{function}")?;
    }
    if report.more > 0 && !report.named {
        writeln!(
            out,
            "{:>12}  {} more: --instances A..B, or --limit N",
            "…",
            grouped(report.more)
        )?;
    }
    Ok(())
}

fn document(report: &Report<'_>, names: &Names) -> Value {
    let rows = report.rows.iter().map(|row| {
        let mut json = json!({
            "number": row.number,
            "time": row.time,
            "function": names.function(row.function),
        });
        match &row.value {
            Ok(worth) => {
                json["type"] = json!(worth.type_name);
                json["value"] = json!(worth.text);
                if let Some(written) = worth.written {
                    json["written"] = json!(WrittenSince::from(written));
                }
            }
            Err(why) => json["unavailable"] = json!(why.to_string()),
        }
        json
    });
    json!({
        "schema": "afterimage/variable/1",
        "variable": report.asked.name,
        "at": report.asked.at,
        "count": report.asked.count,
        "instances": Vec::from_iter(rows),
        "more": report.more,
    })
}
