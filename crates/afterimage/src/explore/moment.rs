//! Finds the name of a moment.

use afterimage_ids::{FuncId, OrigOffset};
use afterimage_present::MomentDocument;
use afterimage_present::document::objects::Function;
use afterimage_profile::Source;
use afterimage_profile::location::Place;
use afterimage_program::Location;
use afterimage_replay::whole_path::{At, PathFileError, time_of};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::Session;
use crate::named::{NamedProgram, calls_ahead, frames_around, with_names};

/// Asks for the name of a moment, and for the arrival at its line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MomentQuery {
    /// The moment: `parser.c:42#7`, `main#last`, `t=123456`, `50%`, `end`.
    pub at: String,
    /// If it is given, selects the moment right before the operator at this offset of the original
    /// module, in the block that is executed at the time of `at`. The block must contain the
    /// operator, but only its function is checked.
    pub offset: Option<u32>,
}

/// An arrival at a line, and the total number of arrivals.
struct Arrival {
    number: u64,
    count: u64,
    is_here: bool,
}

impl MomentQuery {
    /// Checks that a moment is a time or names a place of the program. Does not follow the run, so
    /// it does not check that the run reaches the moment.
    ///
    /// # Errors
    /// Returns an error if there is no such place.
    pub fn check(session: &Session, at: &str) -> Result<()> {
        if time_of::<PathFileError>(at, u64::MAX)?.is_some() {
            return Ok(());
        }
        with_names(session, |program| {
            program.resolver().location(at)?;
            Ok(())
        })
    }

    pub(crate) fn answer(&self, session: &Session) -> Result<MomentDocument> {
        self.with_calls_ahead(session, None)
    }

    /// Answers for the moment before the innermost `ahead` inlined calls at its operator are
    /// entered. If `ahead` is `None`, the text of the question determines the number.
    pub(super) fn with_calls_ahead(
        &self,
        session: &Session,
        ahead: Option<usize>,
    ) -> Result<MomentDocument> {
        with_names(session, |program| {
            let positions = program.positions()?;
            let path = session.path()?;
            let at = positions.moment(&self.at)?;
            let mut cursor = path.cursor();
            let visit = cursor.seek(at.time)?;
            let visit = visit
                .with_context(|| format!("{}: no block is executed at that moment", self.at))?;
            let node = &path.nodes()[visit.node];
            let function = node.function;
            let operators = program.operators.of(function)?;
            let op = match self.offset {
                None => at.op,
                Some(offset) => Some(program.operator_at(function, OrigOffset(offset), at.time)?),
            };
            // The beginning of a block is named after the block's first operator.
            let code = session.program().function(function);
            let block = node.blocks.get((at.time - visit.start) as usize);
            let first = code
                .zip(block)
                .map(|(code, block)| code.cfg.blocks[*block].ops.start);
            let named = match op.or(first) {
                Some(op) => positions
                    .written(function, op, at.time)?
                    .map(|text| (op, text)),
                None => None,
            };
            let place = op
                .or(first)
                .and_then(|op| operators.get(op.as_u32() as usize));
            // If an offset is given, the text of the question does not name this operator.
            let asked = place.filter(|_| at.op.is_some() && self.offset.is_none());
            let ahead = match (ahead, asked) {
                (Some(ahead), _) => ahead,
                (None, Some(place)) => {
                    calls_ahead(&program.resolver(), program.source, &self.at, place.offset)
                }
                (None, None) => 0,
            };
            let frames = place.map(|place| frames_around(program.source, place.offset, ahead));
            let frames = frames.unwrap_or_default();
            let location = match frames.first() {
                Some(frame) if ahead > 0 => frame.location,
                _ => place.and_then(|place| place.position),
            };
            let line = location.map(|at| program.source.line(at));
            let folded = session.folded(program.source);
            let hidden = location.filter(|at| !folded.shows(at.file));
            let around = hidden.and_then(|_| {
                let mut outer = frames.iter().skip(1).filter_map(|frame| frame.location);
                outer.find(|at| folded.shows(at.file))
            });
            let arrival = match (location, op.or(first)) {
                (Some(location), Some(op)) => arrival(
                    &program,
                    (function, location),
                    At {
                        time: at.time,
                        op: Some(op),
                    },
                )?,
                _ => None,
            };
            Ok(MomentDocument {
                at: match (op, named) {
                    (Some(_), Some((_, text))) => text,
                    _ => format!("t={}", at.time),
                },
                t: at.time,
                length: path.length(),
                function: Function::new(program.names, function),
                offset: op.and(place).map(|place| place.offset.0),
                line: line.as_ref().map(ToString::to_string),
                source: line,
                around: around.map(|at| program.source.line(at)),
                arrival: arrival.as_ref().map(|found| found.number),
                arrivals: arrival.as_ref().map(|found| found.count),
                arrives: arrival.is_some_and(|found| found.is_here),
            })
        })
    }
}

/// The maximum number of arrivals to examine in one block.
const IN_BLOCK: u64 = 64;

/// Finds the last arrival at a line that is not after a moment.
fn arrival(
    program: &NamedProgram<'_>,
    (function, location): (FuncId, Location),
    at: At,
) -> Result<Option<Arrival>> {
    let positions = program.positions()?;
    let line = program.source.line(location);
    let found = program.resolver().location(&line.to_string());
    let (line, mut functions) = match found.map(|found| found.place) {
        Ok(Place::Line(line, operators)) => {
            let functions = operators.into_iter().map(|(function, _)| function);
            (line, Vec::from_iter(functions))
        }
        _ => return Ok(None),
    };
    functions.dedup();
    if !functions.contains(&function) {
        return Ok(None);
    }
    // If parts were left out of the path, arrivals are not counted.
    let Ok(all) = positions.arrivals(line, functions.into_iter()) else {
        return Ok(None);
    };
    let mut number = all.by(at.time)?;
    let mut is_here = false;
    for _ in 0..IN_BLOCK {
        let Some(found) = all.get(number)? else { break };
        is_here = found.time == at.time && found.op == at.op;
        let is_later = (found.time, found.op) > (at.time, at.op);
        if is_here || !is_later {
            break;
        }
        number -= 1;
    }
    Ok((number > 0).then_some(Arrival {
        number,
        count: all.count(),
        is_here,
    }))
}
