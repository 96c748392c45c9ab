//! Finds the start of a slice from the user's query.

use std::collections::BTreeSet;

use crate::Session;
use crate::ended::{self, is_over, place_of_end};
use crate::explain::Scene;
use crate::places::{self, Chosen, and_why_not, chosen, statements};
use crate::steps::follow;
use crate::wasm_local::wasm_local;
use afterimage_analyses::slices::{
    Criterion, Operator, Reach, SliceAbout, SliceAlong, Want, criteria,
};
use afterimage_ids::OrigOffset;
use afterimage_present::{grouped, value_text};
use afterimage_profile::location::{Occurrence, split_occurrence};
use afterimage_replay::state::{
    Activation, Bodies, Path, PathError, Piece, VariableLocation, Written,
};
use afterimage_replay::steps::{Range, StepsError, memory_size};
use afterimage_replay::values::{Execution, RecordedValues};
use afterimage_replay::whole_path::{At, PathFileError};
use afterimage_trace::Ending;
use anyhow::{Context, Result, anyhow, bail};

use crate::monitor::Note;
use crate::text::{harmless, pasted};

/// The start of a slice.
pub struct SliceStart {
    pub criteria: Vec<Criterion>,
    /// The criteria for the subject's operands, if they are separate. The operands are one
    /// dependence away from the subject.
    pub taken: Vec<Criterion>,
    /// The subject in words.
    pub title: String,
    /// The reason for doubt, if the variable's place may hold another value.
    pub written: Option<Written>,
    /// The offsets of the operators in the module.
    pub offsets: Vec<OrigOffset>,
    /// The statements, if the slice is about statements.
    pub operators: Vec<Operator>,
}

impl SliceStart {
    /// Finds the start of a slice. In a thin slice, the operands of the operator that killed the
    /// program are separate criteria, because a thin slice would not follow an address otherwise.
    pub fn find(scene: &Scene<'_, '_>, about: &SliceAbout, along: SliceAlong) -> Result<Self> {
        match about {
            SliceAbout::Statement { at } => of_statements(scene, at, None),
            SliceAbout::Operand { at, operand } => of_statements(scene, at, Some(operand)),
            SliceAbout::Variable { at, name } => of_variable(scene, at, name),
            SliceAbout::Bytes {
                at,
                address,
                length,
            } => {
                let range = Range {
                    memory: 0,
                    address: *address,
                    length: *length,
                };
                of_bytes(scene, at, range)
            }
            SliceAbout::Trap => of_trap(scene, along == SliceAlong::Thin),
        }
        .map_err(|error| match about.at() {
            Some(at) => and_why_not(error, scene.traced.at(), at),
            None => error,
        })
    }
}

fn of_statements(scene: &Scene<'_, '_>, at: &str, operand: Option<&str>) -> Result<SliceStart> {
    let (traced, values) = (scene.traced, scene.values);
    let (names, source) = (scene.names, scene.source());
    let found = statements(traced, names, source, &scene.types, at)?;
    let mut chosen = chosen(traced, values, (names, source), &found, at)?;
    chosen.sort_by_key(|chosen| chosen.site.offset);
    if let Some(operand) = operand.filter(|_| chosen.len() > 1) {
        let others;
        (chosen, others) = taking(traced, values, chosen, operand)?;
        let sites = chosen.iter().map(|chosen| chosen.site);
        let sites = sites.map(|site| format!("@{} {}", site.offset, site.text));
        match chosen.len() {
            0 if others.is_empty() => bail!("no statement that was executed at {at} takes a value"),
            0 => bail!(
                "no statement that was executed at {at} has an operand {operand}; they have: {}",
                Vec::from_iter(others).join(", ")
            ),
            1 => {}
            many => bail!(
                "{many} statements at {at} have an operand {operand}; name one: {}",
                Vec::from_iter(sites).join(", ")
            ),
        }
    }
    let (mut criteria, mut offsets, mut operators) = (Vec::new(), Vec::new(), Vec::new());
    let mut title = String::new();
    for chosen in &chosen {
        let site = chosen.site;
        let Some(execution) = chosen.get(traced, values)? else {
            continue;
        };
        let criterion = match operand {
            None => criteria::of_execution(&execution),
            Some(operand) => {
                let compiled = values.compiled(execution.instance.node)?;
                let all = execution.statement.map(|s| s.operands(&compiled.code));
                let all = all.unwrap_or_default();
                let Some(index) = places::operand(&all, operand) else {
                    let roles = Vec::from_iter(all.iter().map(|one| one.role));
                    if roles.is_empty() {
                        bail!("`{}` takes no values", site.text)
                    } else {
                        bail!(
                            "`{}` has no operand {operand}; it has: {}",
                            site.text,
                            roles.join(", ")
                        )
                    }
                };
                criteria::of_operand(&execution, &compiled.code, index)
            }
        };
        criteria.extend(criterion);
        operators.push((site.function, site.op));
        offsets.push(site.offset);
        title = format!("`{}` at t={}", site.text, grouped(execution.time));
    }
    if criteria.is_empty() {
        bail!(
            "{at} only moves a value or jumps, so it has no slice; for the decisions that led to it: {}",
            places::what_let_run(traced.at(), at)
        );
    }
    let place = split_occurrence(at).map_or(at, |split| split.0);
    let which = match found.occurrence {
        Some(Occurrence::Last) => "last".to_owned(),
        Some(Occurrence::Kth(number)) => grouped(number),
        None => grouped(1),
    };
    let place = format!("{place}#{which}");
    let title = match (operand, operators.len()) {
        (Some(operand), _) => format!("operand {operand} of {place}, {title},"),
        (None, 1) => format!("{place}, {title},"),
        (None, many) => format!("{place} ({many} statements)"),
    };
    Ok(SliceStart {
        criteria,
        taken: Vec::new(),
        title,
        offsets,
        written: None,
        operators,
    })
}

/// Finds the executions of statements that have an operand, and the names of the operands of the
/// other statements.
fn taking<'f, 'a>(
    traced: &'a Session,
    values: &RecordedValues<'a>,
    chosen: Vec<Chosen<'f>>,
    operand: &str,
) -> Result<(Vec<Chosen<'f>>, BTreeSet<&'static str>)> {
    let (mut taking, mut others) = (Vec::new(), BTreeSet::new());
    for one in chosen {
        let Some(execution) = one.get(traced, values)? else {
            continue;
        };
        let compiled = values.compiled(execution.instance.node)?;
        let all = execution.statement.map(|s| s.operands(&compiled.code));
        let all = all.unwrap_or_default();
        match places::operand(&all, operand) {
            Some(_) => taking.push(one),
            None => others.extend(all.iter().map(|other| other.role)),
        }
    }
    Ok((taking, others))
}

/// Starts at the operator that killed the program. With `thin`, each of its operands is also a
/// separate criterion.
fn of_trap(scene: &Scene<'_, '_>, thin: bool) -> Result<SliceStart> {
    let (traced, values) = (scene.traced, scene.values);
    let end = traced.file().end()?;
    let end = end.context("the recording does not contain the end of the run")?;
    match end.ending {
        Ending::Returned => bail!("the run returned and was not killed; ask with --at"),
        Ending::Interrupted { .. } | Ending::StackOverflow | Ending::HostError { .. } => bail!(
            "the run {}: no statement caused that; see: afterimage state --at end {}",
            end.ending,
            pasted(traced.at())
        ),
        Ending::Exited { .. } | Ending::Exception { .. } | Ending::Trapped { .. } => {}
    }
    let found = traced.ended_in()?;
    let (time, function, op) = found.context("where the run ended is not in the recording")?;
    let instance = values.at(time)?.context("the run has no blocks")?;
    let walk = scene.walk();
    let execution = Execution {
        number: 0,
        time,
        instance,
        statement: walk.statement(instance, op)?,
    };
    let criterion = criteria::of_execution(&execution).unwrap_or(Criterion {
        start: instance.time,
        // An operator that is not a statement takes no values, so only control dependences matter.
        wants: vec![Want::Block((time - instance.time) as usize)],
        reach: Reach::ALL,
    });
    let compiled = values.compiled(instance.node)?;
    let operands = execution.statement.map(|one| one.operands(&compiled.code));
    let operands = 0..operands.map_or(0, |operands| operands.len());
    let taken = operands.filter(|_| thin);
    let taken = taken.filter_map(|k| criteria::of_operand(&execution, &compiled.code, k));
    let operators = traced.operators();
    let operator = operators.get(function, op)?;
    let operator = operator.context("an operator is not in the program")?;
    let ending = match traced.trap()? {
        Some(trapped) => trapped.why,
        None => end.ending.to_string(),
    };
    let place = format!(
        "`{}` at @{} in {}",
        operator.name,
        operator.offset,
        harmless(scene.names.function(function))
    );
    Ok(SliceStart {
        title: format!(
            "{place}, t={}, where the run ended ({ending}),",
            grouped(time)
        ),
        criteria: vec![criterion],
        taken: taken.collect(),
        offsets: vec![operator.offset],
        written: None,
        operators: vec![(function, op)],
    })
}

/// Finds the moment before a place is executed.
fn moment<'a>(scene: &Scene<'_, 'a>, at: &str) -> Result<(Activation<'a>, At)> {
    let traced = scene.traced;
    let loaded = traced.module();
    let At { time, op } = match place_of_end(traced, at)? {
        Some(end) => end,
        None => {
            let positions = traced.positions(scene.names, scene.source())?;
            let found = positions.moment(at);
            found.with_context(|| format!("--at {at}"))?
        }
    };
    let bodies = Bodies::new(&loaded.program, &loaded.bytes);
    let activation = Activation::at(scene.values, &bodies, time, op)?;
    Ok((activation, At { time, op }))
}

fn of_bytes(scene: &Scene<'_, '_>, at: &str, range: Range) -> Result<SliceStart> {
    let traced = scene.traced;
    if traced.program().memories == 0 {
        bail!("the program has no memory");
    }
    let (activation, _) = moment(scene, at)?;
    let size = follow(traced, |run, log| {
        Ok(memory_size(run, log, range.memory, activation.time)?)
    })?;
    let end = range.address.checked_add(range.length);
    let Some(end) = end.filter(|end| *end <= size) else {
        return Err(StepsError::<PathFileError>::Outside {
            memory: range.memory,
            size,
            address: range.address.max(size),
        }
        .into());
    };
    let last = end - 1;
    let mut criterion = criteria::of_bytes(&activation, range);
    let mut when = format!("before t={}", grouped(activation.time));
    if at.trim() == "end" {
        criterion = criteria::of_bytes_behind(&activation, range);
        when = "at the end".to_owned();
    }
    Ok(SliceStart {
        criteria: vec![criterion],
        taken: Vec::new(),
        title: format!("0x{:x}..0x{last:x} {when}", range.address),
        offsets: vec![activation.offset],
        written: None,
        operators: Vec::new(),
    })
}

fn of_variable(scene: &Scene<'_, '_>, at: &str, name: &str) -> Result<SliceStart> {
    let (traced, values, names) = (scene.traced, scene.values, scene.names);
    let loaded = traced.module();
    let path: Path = name.parse().map_err(|error: PathError| {
        anyhow!("--var {name}: {error}; write a name, p->next, s.member, a[3] or *p")
    })?;
    let (activation, at_moment) = moment(scene, at)?;
    let time = at_moment.time;
    let over = is_over(traced, at)?;
    if !over && let Some(local) = wasm_local(traced, names, activation.function, name) {
        return of_local(values, &activation, (at, name), local);
    }
    let variables = traced.variables()?;
    if over {
        let shown = ended::variable(traced, variables, &path, name)?;
        return Ok(SliceStart {
            criteria: vec![criteria::of_pieces_behind(&activation, &shown.pieces)],
            taken: Vec::new(),
            title: format!("{name} = {} at the end of the run,", shown.rendered),
            offsets: vec![activation.offset],
            written: None,
            operators: Vec::new(),
        });
    }
    let bodies = Bodies::new(&loaded.program, &loaded.bytes);
    let known = (variables, &bodies);
    let found = ended::before(traced, values, names, known, path, at_moment)?;
    let found = found.with_context(|| format!("the run ended before {at}"))?;
    let ended::Shown {
        pieces,
        rendered: text,
        written,
        ..
    } = found.map_err(|why| anyhow!("--var {name} at t={}: {why}", grouped(time)))?;
    let lost = |piece: &Piece| matches!(piece.place, VariableLocation::OptimisedOut);
    if !pieces.is_empty() && pieces.iter().all(lost) {
        bail!("--var {name} at t={}: optimised out", grouped(time));
    }
    if pieces.iter().any(lost) {
        let remark =
            format!("--var {name}: the parts of it that are optimised out are not in the slice");
        traced.monitor().note(traced.at(), &Note::Remark(remark));
    }
    let mark = ended::marked(written);
    Ok(SliceStart {
        criteria: vec![criteria::of_pieces(&activation, &pieces)],
        taken: Vec::new(),
        title: match at.trim() {
            "end" => format!("{name} = {text}{mark} at the end of the run,"),
            at => format!("{name} = {text}{mark} before {at}, t={},", grouped(time)),
        },
        written,
        offsets: vec![activation.offset],
        operators: Vec::new(),
    })
}

/// Starts at the value of a WebAssembly local at a moment.
fn of_local(
    values: &RecordedValues<'_>,
    activation: &Activation<'_>,
    (at, name): (&str, &str),
    local: u32,
) -> Result<SliceStart> {
    let ty = activation.locals().get(local as usize);
    let ty = *ty.with_context(|| format!("{name} is local {local}, which does not exist"))?;
    let text = value_text(ty, activation.recorded(values, local)?);
    let piece = Piece {
        place: VariableLocation::Local(local),
        offset: 0,
        bytes: 1,
    };
    Ok(SliceStart {
        criteria: vec![criteria::of_pieces(activation, &[piece])],
        taken: Vec::new(),
        title: format!(
            "{name} = {text} before {at}, t={},",
            grouped(activation.time)
        ),
        offsets: vec![activation.offset],
        written: None,
        operators: Vec::new(),
    })
}
