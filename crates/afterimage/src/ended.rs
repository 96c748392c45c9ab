//! Finds the values of source variables at a moment or at the end of a run, and the results of an
//! invoked function.

use std::cell::RefCell;

use afterimage_present::{ResultValue, bits_text, type_text, value_text, written_text};
use afterimage_program::Names;
use afterimage_replay::state::{
    BitField, Bodies, Ended, Limits, Machine, Object, Occasion, Path, PathError, Piece, Rendered,
    Shape, Unavailable, VariableLocation, Variables, Watch, WatchError, Written, follow_to,
};
use afterimage_replay::steps::follow_to_end;
use afterimage_replay::values::RecordedValues;
use afterimage_replay::whole_path::At;
use afterimage_trace::{Ending, Event, RawValue, TraceFile};
use anyhow::{Result, anyhow, bail};
use wasmparser::ValType;

use crate::Session;
use crate::steps::follow;

/// Converts a result of an invoked function.
fn result(value: RawValue) -> ResultValue {
    let (ty, low, high) = match value {
        RawValue::I32(v) => (ValType::I32, u64::from(v as u32), 0),
        RawValue::I64(v) => (ValType::I64, v as u64, 0),
        RawValue::F32(bits) => (ValType::F32, u64::from(bits), 0),
        RawValue::F64(bits) => (ValType::F64, bits, 0),
        RawValue::V128(bits) => (ValType::V128, bits as u64, (bits >> 64) as u64),
        RawValue::NullRef | RawValue::OpaqueRef => {
            let text = match value {
                RawValue::NullRef => "null",
                _ => "a reference",
            };
            return ResultValue {
                kind: type_text(ValType::FUNCREF),
                bits: None,
                text: text.to_owned(),
            };
        }
    };
    ResultValue {
        kind: type_text(ty),
        bits: Some(bits_text(ty, (low, high))),
        text: value_text(ty, (low, high)),
    }
}

/// Returns the results of the function that was invoked instead of `_start`. Returns `None` if
/// `_start` ran, the function did not return, or the log was stripped. Reads the whole log.
pub fn results(file: &TraceFile) -> Result<Option<Vec<ResultValue>>> {
    let ending = file.end()?.map(|end| end.ending);
    let meta = file.meta()?;
    if meta.invoke.is_none() || meta.is_without_inputs() || ending != Some(Ending::Returned) {
        return Ok(None);
    }
    let mut last = None;
    for event in file.log()? {
        if let Event::Leave { results } = event? {
            last = Some(results);
        }
    }
    let rows = |results: Vec<RawValue>| results.into_iter().map(result).collect();
    Ok(last.map(rows))
}

/// Returns where the run ended, if the text asks for the end and the run trapped, was stopped, or
/// was in a host call.
pub fn place_of_end(traced: &Session, at: &str) -> Result<Option<At>> {
    if at.trim() != "end" {
        return Ok(None);
    }
    let time = traced.path()?.length();
    let stood = traced.final_operator()?;
    Ok(stood.map(|(_, op)| At { time, op: Some(op) }))
}

/// Whether a string asks for the end of a completed run, at which its functions and their variables
/// no longer exist.
pub fn is_over(traced: &Session, at: &str) -> Result<bool> {
    Ok(at.trim() == "end" && traced.final_operator()?.is_none())
}

/// An object and its value, ready to be shown in reports.
pub struct Shown {
    /// The places of the object's pieces. The elements of Rust vectors and strings come before the
    /// vectors and strings themselves.
    pub pieces: Vec<Piece>,
    /// The object's value.
    pub rendered: Rendered,
    /// The bits of the object, if it shares its bytes with other objects.
    pub bits: Option<BitField>,
    /// The bytes of the object's first piece, if it is short and in memory.
    pub held: Vec<u8>,
    /// The reason for doubt, if the expression begins with a parameter whose place may hold another
    /// value.
    pub written: Option<Written>,
}

/// The maximum number of bytes to hold, which is the size of the longest number.
const HELD: u64 = 16;

/// Returns the bytes of an object's first piece, if it is short and in memory.
pub fn held(pieces: &[Piece], machine: &dyn Machine) -> Vec<u8> {
    let Some(piece) = pieces.first().filter(|piece| piece.bytes <= HELD) else {
        return Vec::new();
    };
    let VariableLocation::Memory(address) = piece.place else {
        return Vec::new();
    };
    let mut held = vec![0; piece.bytes as usize];
    if machine.memory(address, &mut held) {
        held
    } else {
        Vec::new()
    }
}

/// Prepares an object and its rendered value for reports.
pub fn shown(
    variables: &Variables<'_>,
    object: &Object,
    machine: &dyn Machine,
    rendered: Rendered,
) -> Shown {
    let mut pieces = variables.content(object, &Limits::default(), machine);
    pieces.extend(object.pieces.iter().cloned());
    Shown {
        held: held(&pieces, machine),
        pieces,
        rendered,
        bits: object.bits,
        written: None,
    }
}

/// Finds the place and value of a variable, or of an expression, right before a moment. Returns
/// `None` if the run ended before the moment.
pub fn before<'a>(
    traced: &'a Session,
    values: &RecordedValues<'a>,
    names: &Names,
    (variables, bodies): (&Variables<'a>, &Bodies<'a>),
    path: Path,
    moment: At,
) -> Result<Option<Result<Shown, PathError>>> {
    let called = |function| names.short(function);
    let program = traced.program();
    let watch = Watch::new(program, bodies, values, variables, &called, path);
    let occasion = Occasion {
        number: 1,
        time: moment.time,
        op: moment.op,
    };
    let rows = watch.each(
        &[occasion],
        |halts, show| follow(traced, |run, log| Ok(follow_to(run, log, halts, show)?)),
        |watched| {
            let (object, moment) = (&watched.object, watched.moment);
            let rendered = variables.render(object, &Limits::default(), moment);
            Ok(watch.written(watched).map(|written| Shown {
                written,
                ..shown(variables, object, moment, rendered)
            }))
        },
    );
    let rows = rows.map_err(|error| match error {
        WatchError::State(error) => error.into(),
        WatchError::Follow(error) => error,
    })?;
    let Some(row) = rows.into_iter().next() else {
        return Ok(None);
    };
    Ok(Some(match row.value {
        Ok(found) => Ok(found?),
        Err(why) => Err(why),
    }))
}

/// Returns the words that mark a doubtful value in a sentence, or an empty string.
pub fn marked(written: Option<Written>) -> String {
    written_text(written).replacen("  ", " ", 1)
}

/// Passes the state at the end of the run to `look`.
pub fn at_end<T>(traced: &Session, look: impl FnOnce(&Ended<'_>) -> T) -> Result<T> {
    let failed = RefCell::default();
    let program = traced.program();
    let found = follow(traced, |run, log| {
        Ok(follow_to_end(run, log, |paused| {
            look(&Ended {
                paused,
                program,
                failed: &failed,
            })
        })?)
    })?;
    match failed.into_inner() {
        Some(error) => Err(error.into()),
        None => Ok(found),
    }
}

/// Finds the place and value of a variable at the end of a completed run.
pub fn variable(
    traced: &Session,
    variables: &Variables<'_>,
    path: &Path,
    name: &str,
) -> Result<Shown> {
    let found = at_end(traced, |ended| {
        let object = variables.resolve(path, None, ended)?;
        let rendered = variables.render(&object, &Limits::default(), ended);
        match rendered.shape {
            Shape::Missing(why) => Err(*why),
            _ => Ok(shown(variables, &object, ended, rendered)),
        }
    })?;
    match found {
        Ok(found) => Ok(found),
        Err(error @ PathError::NoVariable { lacks: Some(_), .. }) => {
            bail!("--var {name} at the end of the run: {error}")
        }
        Err(
            PathError::NoVariable { .. }
            | PathError::NotInScope { .. }
            | PathError::Unavailable(Unavailable::NoFrame { .. }),
        ) => bail!(
            "--var {name} at the end of the run: there is no such global variable, and no \
             function is active any more; for a variable of a function, name a place in it"
        ),
        Err(why) => Err(anyhow!("--var {name} at the end of the run: {why}")),
    }
}
