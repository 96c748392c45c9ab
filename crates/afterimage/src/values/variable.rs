//! Reports the values of a source variable each time the run was at a place.

use afterimage_ids::{FuncId, OpId, OrigOffset};
use afterimage_present::document::objects::Function;
use afterimage_present::values::{
    VariableInstance, VariableReport, VariableRows, VariableValue, rank,
};
use afterimage_present::{WrittenSince, type_text, value_text};
use afterimage_profile::location::{Form, Place, form, split_occurrence};
use afterimage_program::{Names, OperatorIndex, SourceMap};
use afterimage_replay::state::{
    Bodies, Evaluated, Number, Occasion, Occasions, Path, PathError, Variables, Watch, WatchError,
    Worth, follow_to,
};
use afterimage_replay::values::RecordedValues;
use anyhow::{Result, bail};

use super::changed::changed;
use super::{Instances, ValuesQuery, VariableQuery, summary};
use crate::Session;
use crate::places::{Site, executions};
use crate::steps::follow;
use crate::wasm_local::{WasmLocal, wasm_local};

impl VariableQuery {
    /// Creates a query for the values of a variable whenever the run was at a place.
    pub fn new(name: impl Into<String>, at: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            values: ValuesQuery::new(at),
        }
    }

    pub(crate) fn answer(&self, traced: &Session) -> Result<VariableReport> {
        let (name, query) = (self.name.as_str(), &self.values);
        let loaded = traced.module();
        let source = traced.source_map();
        let names = traced.program_names();
        let path: Path = name.parse().map_err(|error: PathError| {
            anyhow::anyhow!("--var {name}: {error}; write a name, p->next, s.member, a[3] or *p")
        })?;
        let NamedPlace { place, which, at } = named_place(traced, names, source, query)?;
        let at = at.as_str();
        let line = match place {
            Place::Line(line, _) => Some(line),
            Place::Function(_) | Place::Operator(..) => None,
        };
        let local = match only_function(&place) {
            Some(function) => wasm_local(traced, names, function, name),
            None => None,
        };
        let variables = match local {
            Some(_) => None,
            None => Some(traced.variables()?),
        };
        if let Some(variables) = variables {
            known(traced, variables, &path, names, &place)?;
        }
        let values = traced.values()?;
        let (occasions, happened) = occasions(traced, &values, names, source, place)?;
        let count = occasions.count();
        let by = |time| Ok(occasions.by(time)?);
        let (first, last) = which.range(count, (at, happened), by)?;
        let last = last.min((first - 1).saturating_add(query.most(which)));
        let bodies = Bodies::new(&loaded.program, &loaded.bytes);
        let called = |function: FuncId| names.short(function);
        let program = &loaded.program;
        let subject = match (variables, local) {
            (Some(variables), _) => {
                let watch = Watch::new(program, &bodies, &values, variables, &called, path);
                Subject::Variable(traced, Box::new(watch))
            }
            (None, local) => Subject::Local(WasmLocal {
                values: &values,
                bodies: &bodies,
                local: local.unwrap_or_default(),
            }),
        };
        let (rows, more) = if query.is_summed() {
            let moments = summary::Moments {
                values: &values,
                occasions: &occasions,
                first,
                last,
            };
            summary::rows(traced, &moments, &subject, self)?
        } else {
            let mut wanted = Vec::new();
            for number in first..=last {
                wanted.extend(occasions.get(&values, number)?);
            }
            let rows = subject.worths(&wanted)?;
            let reasons = rows.iter().map(|row| row.value.as_ref().err());
            if let Some(why) = never(reasons) {
                bail!("--var {name}: {why}");
            }
            let more = which.of(count, first) - rows.len() as u64;
            let instances = rows.into_iter().map(|row| instance(names, row));
            let rows = VariableRows::Instances {
                instances: instances.collect(),
                named: which.is_named(),
            };
            (rows, more)
        };
        let changed = match line {
            Some(line) if first <= last => {
                let samples = [first, last].map(|number| occasions.get(&values, number));
                let samples = samples.into_iter().filter_map(Result::transpose);
                let samples = samples.collect::<Result<Vec<_>, _>>()?;
                changed(traced, source, &[name], (line, &samples), |moments| {
                    let rows = subject.worths(moments)?.into_iter();
                    let text = |row: Evaluated| vec![row.value.ok().map(|worth| worth.text)];
                    Ok(rows.map(text).collect())
                })?
            }
            _ => None,
        };
        Ok(VariableReport {
            variable: name.to_owned(),
            at: at.to_owned(),
            count,
            rows,
            more,
            changed,
            happened,
        })
    }
}

/// A place, and the selected executions.
pub(super) struct NamedPlace {
    pub place: Place,
    pub which: Instances,
    /// The place as written, without a number.
    pub at: String,
}

/// Resolves the place that a query names.
pub(super) fn named_place<'a>(
    session: &'a Session,
    names: &'a Names,
    source: &'a SourceMap<'a>,
    query: &ValuesQuery,
) -> Result<NamedPlace> {
    let resolver = session.resolver(names, source);
    let resolved = resolver.location(&query.at)?;
    let which = query.instances.named(&query.at, resolved.occurrence)?;
    let at = match resolved.occurrence {
        Some(_) => split_occurrence(&query.at)?.0,
        None => &query.at,
    };
    let is_column = matches!(
        form(at),
        Form::Line {
            column: Some(_),
            ..
        }
    );
    if matches!(resolved.place, Place::Line(..)) && is_column {
        bail!("{at} names a column, but arrivals are counted by line: leave out the column");
    }
    Ok(NamedPlace {
        which,
        at: at.to_owned(),
        place: resolved.place,
    })
}

fn instance(names: &Names, row: Evaluated) -> VariableInstance {
    VariableInstance {
        number: row.number,
        t: row.time,
        function: Function::new(names, row.function),
        value: match row.value {
            Ok(worth) => VariableValue::Known {
                type_name: worth.type_name,
                value: worth.text,
                written: worth.written.map(WrittenSince::from),
            },
            Err(why) => VariableValue::Unavailable {
                unavailable: why.to_string(),
            },
        },
    }
}

/// The variable or expression that is evaluated at each moment.
pub(super) enum Subject<'s, 'a> {
    /// An expression of the source.
    Variable(&'s Session, Box<Watch<'s, 'a>>),
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

    /// Reads numbers. The flag with each number says whether its place may hold another value.
    pub(super) fn numbers(&self, occasions: &[Occasion]) -> Result<Vec<Evaluated<(Number, bool)>>> {
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

pub(super) fn unwatched(error: WatchError<anyhow::Error>) -> anyhow::Error {
    match error {
        WatchError::State(error) => error.into(),
        WatchError::Follow(error) => error,
    }
}

/// Returns the function that contains all code of a place, if there is exactly one.
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

/// Whether an expression has no value because of its types, and therefore never has one.
pub(super) fn is_of_types(why: &PathError) -> bool {
    matches!(
        why,
        PathError::NoMember { .. }
            | PathError::NotPointer { .. }
            | PathError::NotIndexable { .. }
            | PathError::OutsideArray { .. }
            | PathError::Incomplete { .. }
            | PathError::Aggregate { .. }
    )
}

/// Returns why an expression can never have a value, if the reason lies in its types and is the
/// same everywhere.
pub(super) fn never<'e>(
    mut reasons: impl Iterator<Item = Option<&'e PathError>>,
) -> Option<&'e PathError> {
    let first = reasons.next()??;
    (is_of_types(first) && reasons.all(|why| why == Some(first))).then_some(first)
}

/// The maximum number of variables that a refusal names.
const MOST_NAMED: usize = 16;

/// Refuses a variable that is unknown in every function of the place, because it never has a value.
pub(super) fn known(
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
                "{} is imported, so its variables are not in this module",
                names.short(function)
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
                let place = Some((&scopes, offset));
                variables.begin(path, place).map(|(found, _)| found)
            }
            // Code without debug information has only global variables.
            Err(error) => match variables.find(&path.variable, None) {
                Err(PathError::NoVariable { .. }) => {
                    let called = |function| names.short(function);
                    Err(error.named(called).into())
                }
                found => found,
            },
        };
        match found {
            // The variable may be in scope at other instructions of the line.
            Ok(_) | Err(PathError::NotInScope { .. }) => return Ok(()),
            Err(PathError::NoVariable {
                name,
                nearest,
                lacks,
            }) if nearest.is_empty() && (1..=MOST_NAMED).contains(&there.len()) => {
                let error = format!(
                    "there is no variable {name} in {}; in scope there: {}{}",
                    names.short(function),
                    there.join(", "),
                    lacks.map_or_else(String::new, |why| why.hint())
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

/// Returns all times at which the run was at a place, and the verb for messages: "called",
/// "executed" or "arrived at".
pub(super) fn occasions<'v, 's: 'v>(
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
