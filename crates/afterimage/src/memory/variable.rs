//! Finds where a source variable is in memory.

use std::cell::Cell;

use afterimage_ids::{FuncId, OpId};
use afterimage_present::document::objects;
use afterimage_present::{CallThere, VariableThere, counted, grouped, shell_word};
use afterimage_program::{Function, Names, SourceMap};
use afterimage_replay::state::{
    Activation, Bodies, Limits, Machine, Moment, Nothing, Object, Occasion, Path, PathError, Shape,
    TypeKind, Unavailable, Variable, VariableKind, VariableLocation, Variables, Watch, WatchError,
    Watched, Written, follow_to,
};
use afterimage_replay::steps::{At, LARGEST_RANGE, MemoryAnswer, Range};
use afterimage_replay::values::RecordedValues;
use afterimage_replay::whole_path::{At as When, Window};
use anyhow::{Result, anyhow, bail};

use crate::Session;
use crate::ended::at_end;
use crate::steps::follow;
use crate::text::pasted;
use crate::wasm_local::wasm_local;

/// A variable that is in memory.
pub(crate) struct VariableInMemory<'a> {
    pub range: Range,
    pub variable: VariableThere,
    variables: &'a Variables<'a>,
    object: Object,
    /// The value as text, read from the whole memory, if the variable may refer to contents outside
    /// its own bytes.
    contents: Option<String>,
}

/// Returns the limits for showing a value. Targets of pointers are not shown, because they are not
/// among the bytes.
fn limits() -> Limits {
    Limits {
        pointed: false,
        ..Limits::default()
    }
}

/// Whether an object is a structure and not a container, whose contents are elsewhere in memory.
fn is_record(variables: &Variables<'_>, object: &Object) -> bool {
    let described = variables
        .plain(object.type_ref)
        .and_then(|plain| variables.describe(plain));
    described.is_ok_and(|described| matches!(described.kind, TypeKind::Record(_)))
}

/// Returns the text of a structure with all its contents, or `None` for other types.
fn contents(variables: &Variables<'_>, object: &Object, machine: &dyn Machine) -> Option<String> {
    let rendered =
        is_record(variables, object).then(|| variables.render(object, &limits(), machine))?;
    (!matches!(rendered.shape, Shape::Missing(_))).then(|| rendered.to_string())
}

impl VariableInMemory<'_> {
    /// Returns the variable's value as text.
    pub(super) fn value(&self, answer: &MemoryAnswer, names: &Names) -> Result<String, String> {
        let held = Held {
            address: self.range.address,
            answer,
            names,
            elsewhere: Cell::new(false),
        };
        let rendered = self.variables.render(&self.object, &limits(), &held);
        if held.elsewhere.get() {
            let unknown = || "its contents are elsewhere in memory; afterimage state and values --var show them";
            return self.contents.clone().ok_or_else(|| unknown().to_owned());
        }
        match rendered.shape {
            Shape::Missing(why) => Err(why.to_string()),
            _ => Ok(rendered.to_string()),
        }
    }
}

/// Holds some bytes of memory, and the table of function pointers. Everything else is unknown.
struct Held<'b> {
    address: u64,
    answer: &'b MemoryAnswer,
    names: &'b Names,
    /// Whether data outside these bytes was requested.
    elsewhere: Cell<bool>,
}

impl Machine for Held<'_> {
    fn memory(&self, address: u64, into: &mut [u8]) -> bool {
        let first = address.checked_sub(self.address);
        let first = first.and_then(|first| usize::try_from(first).ok());
        let held = first.and_then(|first| self.answer.bytes.get(first..)?.get(..into.len()));
        match held {
            Some(held) => into.copy_from_slice(held),
            None => self.elsewhere.set(true),
        }
        held.is_some()
    }

    fn function(&self, index: u64) -> Option<String> {
        let reference = self.answer.table.get(usize::try_from(index).ok()?)?;
        let function = u32::try_from(reference.checked_sub(1)?).ok()?;
        Some(self.names.function(FuncId::from_u32(function)).to_owned())
    }
}

/// Explains how to select one of several global variables with the same name.
fn which_file(why: &PathError) -> &'static str {
    match why {
        PathError::Ambiguous { .. } => "; to choose one, name a line in its file: --at file.c:LINE",
        _ => "",
    }
}

/// A variable at a moment.
struct VariableAt {
    object: Object,
    type_name: String,
    /// Whether the variable exists only during the call.
    local: bool,
    /// The reason for doubt, if the variable's place may hold another value.
    written: Option<Written>,
    contents: Option<String>,
}

/// Finds a variable, a part of it, or the object that it points to.
pub(crate) fn find<'a>(
    traced: &'a Session,
    names: &Names,
    expression: &str,
    (at, moment): (At, &str),
    ensure: &dyn Fn() -> Result<()>,
) -> Result<VariableInMemory<'a>> {
    let path: Path = expression.parse().map_err(|error: PathError| {
        anyhow!("--var {expression}: {error}; write a name, p->next, s.member, a[3] or *p")
    })?;
    let At::Before(when) = at else {
        return global(traced, names, traced.variables()?, expression, &path);
    };
    let time = when.time;
    let walked = traced.path()?;
    let executed = walked.cursor().seek(time)?.map(|visit| visit.node);
    let function = executed.map(|node| walked.nodes()[node].function);
    if let Some(function) = function
        && let Some(local) = wasm_local(traced, names, function, expression)
    {
        bail!(
            "{expression} is local {local} of {} at t={}, not in memory; see its values with: afterimage values {} --at {} --var {}",
            names.short(function),
            grouped(time),
            pasted(traced.at()),
            shell_word(place_of(moment, names.function(function))),
            shell_word(expression)
        );
    }
    let variables = traced.variables()?;
    ensure()?;
    let values = traced.values()?;
    let (function, seen) = seen(traced, &values, names, variables, &path, when)?;
    let seen = match seen {
        Ok(seen) => seen,
        Err(why @ PathError::Unavailable(Unavailable::OptimisedOut)) => bail!(
            "{expression}: {why}, so it is not in memory at t={}; compile the program with -O0 \
             or -Og to keep it there",
            grouped(time)
        ),
        Err(why @ PathError::Unavailable(Unavailable::NotHere { .. })) => bail!(
            "{expression}: {why}, so it is not in memory at t={}; see its values elsewhere with: afterimage values {} --at PLACE --var {}",
            grouped(time),
            pasted(traced.at()),
            shell_word(expression)
        ),
        Err(why) => bail!(
            "{expression} at t={}: {why}{}",
            grouped(time),
            which_file(&why)
        ),
    };
    let range = in_memory(expression, &seen.object).map_err(|error| match error {
        NotInMemory::Elsewhere(place) => anyhow!(
            "{expression} is {place} of {} at t={}, not in memory; see its values with: afterimage values {} --at {} --var {}",
            names.short(function),
            grouped(time),
            pasted(traced.at()),
            shell_word(place_of(moment, names.function(function))),
            shell_word(expression)
        ),
        NotInMemory::Size(why) => anyhow!(why),
    })?;
    let call = if seen.local {
        let window = call(traced, time)?;
        Some(CallThere {
            function: objects::Function::new(names, function),
            first_t: window.first,
            last_t: window.last,
        })
    } else {
        None
    };
    Ok(VariableInMemory {
        range,
        variable: VariableThere {
            name: expression.to_owned(),
            type_name: seen.type_name,
            value: None,
            unavailable: None,
            written: seen.written.map(Into::into),
            call,
        },
        variables,
        object: seen.object,
        contents: seen.contents,
    })
}

/// Finds a variable at a moment, in the function executed at that moment. If the variable has no
/// place yet at the beginning of a block, looks it up before the block's last operator.
fn seen<'a>(
    traced: &'a Session,
    values: &RecordedValues<'a>,
    names: &Names,
    variables: &Variables<'a>,
    path: &Path,
    When { time, op }: When,
) -> Result<(FuncId, Result<VariableAt, PathError>)> {
    let loaded = traced.module();
    let bodies = Bodies::new(&loaded.program, &loaded.bytes);
    let called = |function: FuncId| names.short(function);
    let program = &loaded.program;
    let watch = Watch::new(program, &bodies, values, variables, &called, path.clone());
    let later = match op {
        Some(_) => None,
        None => Some(Activation::at_call(values, &bodies, time)?.op),
    };
    let mut found = None;
    let moments = [Some((op, false)), later.map(|op| (Some(op), true))];
    for (op, is_later) in moments.into_iter().flatten() {
        let number = 1;
        let occasion = Occasion { number, time, op };
        let rows = watch.each(
            &[occasion],
            |halts, show| follow(traced, |run, log| Ok(follow_to(run, log, halts, show)?)),
            |watched| {
                let seen = look(watched, path)?;
                Ok(watch
                    .written(watched)
                    .map(|written| VariableAt { written, ..seen }))
            },
        );
        let rows = rows.map_err(|error| match error {
            WatchError::State(error) => error.into(),
            WatchError::Follow(error) => error,
        })?;
        let Some(row) = rows.into_iter().next() else {
            break;
        };
        let value = match row.value {
            Ok(seen) => {
                let mut seen = seen?;
                if is_later {
                    seen.contents = None;
                }
                Ok(seen)
            }
            Err(why) => Err(why),
        };
        let is_early = matches!(
            value,
            Err(
                PathError::Unavailable(Unavailable::NoFrame { .. } | Unavailable::NotHere { .. })
                    | PathError::NotInScope { .. }
            )
        );
        // If the variable has no place before the last operator either, keep the first result,
        // which is more informative.
        if found.is_none() || value.is_ok() {
            found = Some((row.function, value));
        }
        if !is_early {
            break;
        }
    }
    found.ok_or_else(|| anyhow!("the run ended before t={}", grouped(time)))
}

fn look(watched: &Watched<'_, '_>, path: &Path) -> Result<VariableAt, PathError> {
    let Watched {
        variables,
        moment,
        scopes,
        object,
        ..
    } = watched;
    let place = scopes.map(|scopes| (scopes, moment.activation.offset));
    let (variable, _) = variables.begin(path, place)?;
    Ok(VariableAt {
        type_name: variables.type_name(object.type_ref)?,
        object: object.clone(),
        local: is_local(variables, (&variable, object), moment)?,
        written: None,
        contents: contents(variables, object, *moment),
    })
}

/// Whether the object that an expression denotes exists only during the innermost call. `variable`
/// is the variable with which the expression begins.
pub(crate) fn is_local(
    variables: &Variables<'_>,
    (variable, object): (&Variable, &Object),
    moment: &Moment<'_, '_>,
) -> Result<bool, Unavailable> {
    let at = Some(moment.activation.offset);
    // An object that has a place even without any machine state is static.
    let is_static = variables.locate(variable, at, &Nothing).is_ok();
    let whole = variables.locate(variable, at, moment)?;
    let inside = object.memory().all(|part| {
        let mut all = whole.memory();
        all.any(|all| all.start <= part.start && part.end <= all.end)
    });
    Ok(!is_static && inside)
}

/// Finds a global variable at the end of the run, or the object that an expression on a global
/// variable denotes at the end.
fn global<'a>(
    traced: &Session,
    names: &Names,
    variables: &'a Variables<'a>,
    expression: &str,
    path: &Path,
) -> Result<VariableInMemory<'a>> {
    let object = match variables.resolve(path, None, &Nothing) {
        // The place of the variable depends on the contents of memory.
        Err(PathError::Unavailable(
            Unavailable::Unknown(_) | Unavailable::OutsideMemory { .. },
        )) => at_end(traced, |ended| variables.resolve(path, None, ended))?,
        known => known,
    };
    let object = match object {
        Ok(object) => object,
        Err(error @ PathError::NoVariable { .. }) => {
            let functions = with_local(traced, variables, &path.variable);
            match functions.is_empty() {
                true => bail!("{error}"),
                false => bail!(
                    "{} is a variable of {}, so it does not exist at the end of the run; without --at, its last moment is shown",
                    path.variable,
                    listed(&functions, names)
                ),
            }
        }
        Err(error) => bail!(
            "{expression} at the end of the run: {error}{}",
            which_file(&error)
        ),
    };
    let range = in_memory(expression, &object).map_err(|error| match error {
        NotInMemory::Elsewhere(place) => anyhow!(
            "{expression} is {place}, not in memory; see its values with: afterimage values --at PLACE --var {} {}",
            shell_word(expression),
            pasted(traced.at())
        ),
        NotInMemory::Size(why) => anyhow!(why),
    })?;
    let contents = if is_record(variables, &object) {
        at_end(traced, |ended| contents(variables, &object, ended))?
    } else {
        None
    };
    Ok(VariableInMemory {
        range,
        variable: VariableThere {
            name: expression.to_owned(),
            type_name: variables.type_name(object.type_ref)?,
            value: None,
            unavailable: None,
            written: None,
            call: None,
        },
        variables,
        object,
        contents,
    })
}

/// Returns a place to suggest for `values --at`. This is the moment that the user named if it names
/// a place, and otherwise the function.
fn place_of<'t>(moment: &'t str, function: &'t str) -> &'t str {
    match moment.contains(|c: char| c.is_alphabetic()) && !moment.starts_with("t=") {
        true if !["start", "end"].contains(&moment) => moment,
        _ => function,
    }
}

/// The maximum number of functions that a message names.
const MOST_NAMED: usize = 8;

/// Returns the last moment at which the local variable that an expression begins with was in scope.
/// Returns `None` if no function has such a variable, or if it is a global variable.
///
/// # Errors
/// Returns an error if several functions that were executed have such a variable, or none was
/// executed, or the path cannot be read.
pub(super) fn last_in_scope(
    traced: &Session,
    (names, source): (&Names, &SourceMap<'_>),
    expression: &str,
) -> Result<Option<When>> {
    let Ok(path) = expression.parse::<Path>() else {
        return Ok(None);
    };
    let (variables, name) = (traced.variables()?, &path.variable);
    if !matches!(
        variables.begin(&path, None),
        Err(PathError::NoVariable { .. })
    ) {
        return Ok(None);
    }
    let functions = with_local(traced, variables, name);
    let positions = traced.positions(names, source)?;
    let operators = traced.operators();
    let stopped = traced.final_operator()?.map(|(_, op)| op);
    let length = traced.path()?.length();
    let mut executed: Vec<(&Function, When)> = Vec::new();
    for &function in &functions {
        let Ok(scopes) = variables.function(function.id) else {
            continue;
        };
        let known = operators.of(function.id)?;
        let is_in_scope = |op: &OpId| {
            let offset = known.get(op.as_u32() as usize).map(|known| known.offset);
            offset.is_some_and(|offset| {
                let found = variables.find(name, Some((&scopes, offset)));
                found.is_ok_and(|found| found.kind != VariableKind::Global)
            })
        };
        let mut last: Option<(u64, OpId)> = None;
        for block in function.cfg.blocks.values() {
            let ops = block.ops.start.as_u32()..block.ops.end.as_u32();
            let Some(op) = ops.clone().rev().map(OpId::from_u32).find(is_in_scope) else {
                continue;
            };
            let Some(all) = positions.executions_of(function.id, op)? else {
                continue;
            };
            let Some(found) = all.select(all.count())? else {
                continue;
            };
            // The run may have ended before the operator.
            let op = match stopped.filter(|_| found.time == length) {
                Some(stopped) => ops
                    .map(OpId::from_u32)
                    .rev()
                    .find(|op| *op <= stopped && is_in_scope(op)),
                None => Some(op),
            };
            last = last.max(op.map(|op| (found.time, op)));
        }
        executed.extend(last.map(|(time, op)| (function, When { time, op: Some(op) })));
    }
    match &*executed {
        [] if functions.is_empty() => Ok(None),
        [] => bail!(
            "{name} is a variable of {}, and was never in scope in this run",
            listed(&functions, names)
        ),
        [(_, when)] => Ok(Some(*when)),
        [(function, When { time, op }), ..] => {
            let op = op.unwrap_or(OpId::from_u32(0));
            let at = positions.written(function.id, op, *time)?;
            let at = at.unwrap_or_else(|| format!("t={time}"));
            let all = Vec::from_iter(executed.iter().map(|(function, _)| *function));
            bail!(
                "{name} is a variable of {}: choose a moment, such as the last in {}: --at {}",
                listed(&all, names),
                names.short(function.id),
                shell_word(&at)
            )
        }
    }
}

/// Lists the names of the first few functions.
fn listed(functions: &[&Function], names: &Names) -> String {
    let all = functions.iter().take(MOST_NAMED);
    let all = Vec::from_iter(all.map(|function| names.short(function.id)));
    let more = functions.len() - all.len();
    let more = match more {
        0 => String::new(),
        more => format!(" and {}", counted(more as u64, "other function")),
    };
    format!("{}{more}", all.join(", "))
}

/// Returns the functions that have a variable with this name.
fn with_local<'a>(traced: &'a Session, variables: &Variables<'_>, name: &str) -> Vec<&'a Function> {
    let has_it = |function: &&Function| {
        let Ok(scopes) = variables.function(function.id) else {
            return false;
        };
        let place = Some((&scopes, function.body.start));
        match variables.find(name, place) {
            Ok(found) => found.kind != VariableKind::Global,
            Err(error) => matches!(error, PathError::NotInScope { .. }),
        }
    };
    let functions = traced.program().functions.iter();
    functions.filter(has_it).collect()
}

/// The reason why there are no bytes to examine.
pub(crate) enum NotInMemory {
    /// The variable is elsewhere.
    Elsewhere(String),
    /// The variable has no bytes, or too many.
    Size(String),
}

/// Returns the range of an object's bytes in memory.
pub(crate) fn in_memory(expression: &str, object: &Object) -> Result<Range, NotInMemory> {
    let mut ranges = object.memory();
    let (Some(range), None, 1) = (ranges.next(), ranges.next(), object.pieces.len()) else {
        let mut places = Vec::new();
        for piece in &object.pieces {
            let place = match &piece.place {
                VariableLocation::OptimisedOut => "optimised out".to_owned(),
                place => place.to_string(),
            };
            if !places.contains(&place) {
                places.push(place);
            }
        }
        let places = if places.is_empty() {
            "nowhere".to_owned()
        } else {
            places.join(" and ")
        };
        return Err(NotInMemory::Elsewhere(places));
    };
    let length = range.end - range.start;
    if length == 0 {
        return Err(NotInMemory::Size(format!("{expression} has no bytes")));
    }
    if length > LARGEST_RANGE {
        return Err(NotInMemory::Size(format!(
            "{expression} has {} bytes, and at most {} can be shown at once: name a part of it",
            grouped(length),
            grouped(LARGEST_RANGE)
        )));
    }
    Ok(Range {
        memory: 0,
        address: range.start,
        length,
    })
}

/// Returns the window of the call that executes a block.
pub(crate) fn call(traced: &Session, time: u64) -> Result<Window> {
    let mut cursor = traced.path()?.cursor();
    cursor.seek(time)?;
    let stack = cursor.stack()?;
    let first = stack.last().map_or(time, |innermost| innermost.entered);
    let last = cursor.activation_end()?;
    Ok(Window {
        first,
        last: last.unwrap_or(traced.path()?.length()),
    })
}
