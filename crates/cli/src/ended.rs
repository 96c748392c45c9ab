//! What variables of the source hold when a run has ended.

use std::cell::RefCell;

use afterimage_query::paths::At;
use afterimage_query::state::{
    BitField, Ended, Limits, Machine, Object, Path, PathError, Piece, Place, Rendered, Shape,
    Unavailable, Variables,
};
use afterimage_query::steps::follow_to_end;
use anyhow::{Result, anyhow, bail};

use crate::lens::Traced;
use crate::steps::follow;

/// Where the run stood when it ended, if that is what a text asks for and it stood anywhere: it trapped, was stopped, or the host did not return.
pub(crate) fn stood(traced: &Traced, at: &str) -> Result<Option<At>> {
    if at.trim() != "end" {
        return Ok(None);
    }
    let time = traced.path.length();
    let stood = traced.stood()?;
    Ok(stood.map(|(_, op)| At { time, op: Some(op) }))
}

/// Whether a text asks for the end of a run that came to its end: then functions, and what was theirs, are gone.
pub(crate) fn is_over(traced: &Traced, at: &str) -> Result<bool> {
    Ok(at.trim() == "end" && traced.stood()?.is_none())
}

/// What is shown of an object.
pub(crate) struct Shown {
    /// Where it is: of vectors and strings of Rust, their elements are before themselves.
    pub pieces: Vec<Piece>,
    /// What it holds.
    pub rendered: Rendered,
    /// Which bits of its bytes it has, if it shares them with others.
    pub bits: Option<BitField>,
    /// What the first of its pieces holds, if that is a few bytes in memory.
    pub held: Vec<u8>,
}

/// No number is longer.
const HELD: u64 = 16;

/// What the first piece of an object holds, if that is a few bytes in memory.
pub(crate) fn held(pieces: &[Piece], machine: &dyn Machine) -> Vec<u8> {
    let Some(piece) = pieces.first().filter(|piece| piece.bytes <= HELD) else {
        return Vec::new();
    };
    let Place::Memory(address) = piece.place else {
        return Vec::new();
    };
    let mut held = vec![0; piece.bytes as usize];
    match machine.memory(address, &mut held) {
        true => held,
        false => Vec::new(),
    }
}

/// Where an object is whose content is known.
pub(crate) fn shown(
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
    }
}

/// Looks at what there is when the run has ended.
pub(crate) fn at_end<T>(traced: &Traced, look: impl FnOnce(&Ended<'_>) -> T) -> Result<T> {
    let failed = RefCell::default();
    let program = &traced.loaded.program;
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

/// Where a variable is when the run has come to its end, and what it holds.
pub(crate) fn variable(
    traced: &Traced,
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
        Err(
            PathError::NoVariable { .. }
            | PathError::NotInScope { .. }
            | PathError::Unavailable(Unavailable::NoFrame),
        ) => bail!(
            "--var {name} at the end of the run: there is no such global variable, and no function is executed any more then: for what is in one name a place in it"
        ),
        Err(why) => Err(anyhow!("--var {name} at the end of the run: {why}")),
    }
}
