//! Finds the lines of the user's own code for which library code was executed.

use std::cell::RefCell;
use std::collections::HashMap;

use afterimage_ids::{FuncId, OpId, OrigOffset};
use afterimage_present::{OwnPlace, PresentError, StepCode};
use afterimage_profile::{Folded, OwnFunctions, Source};
use afterimage_program::{Names, SourceMap};
use afterimage_replay::steps::{Operators, Step, What};
use afterimage_replay::whole_path::{Places, RecordedPath};
use anyhow::Result;

use crate::Session;

/// The number of activations to search for the user's own code.
const STACK: usize = 64;

/// The user's own line into which library code was inlined. The inner `None` represents the user's
/// own code. The outer `None` represents library code that is not inlined into the user's own code.
type Here = Option<Option<OwnPlace>>;

/// Finds lines of the user's own code from the path alone.
pub(crate) struct OwnLines<'a> {
    path: &'a RecordedPath,
    source: &'a SourceMap<'a>,
    own: OwnFunctions<'a>,
    places: Places<'a>,
    /// The results of [`here`](Self::here) for operators. Finding one takes far longer than looking
    /// it up again.
    known: RefCell<HashMap<(FuncId, Option<OpId>), Here>>,
    /// The line that called each activation of library code, by the time of its first block.
    called: RefCell<HashMap<u64, Option<OwnPlace>>>,
}

impl<'a> OwnLines<'a> {
    pub(crate) fn new(
        session: &'a Session,
        path: &'a RecordedPath,
        (folded, names): (&'a Folded<'a>, &'a Names),
    ) -> Self {
        Self {
            path,
            source: session.source_map(),
            own: OwnFunctions::new(folded, session.program(), names),
            places: Places::new(session.program(), session.bytes(), folded),
            known: RefCell::default(),
            called: RefCell::default(),
        }
    }

    /// Returns the user's own line into which an operator's library code was inlined, or from which
    /// it was called at a time. Returns `None` if the operator is in the user's own code, or if
    /// there is no such line.
    pub(crate) fn at(
        &self,
        (function, offset): (FuncId, OrigOffset),
        time: u64,
    ) -> Result<Option<OwnPlace>> {
        match self.here(function, Some(offset)) {
            Some(place) => Ok(place),
            None => self.caller(time),
        }
    }

    /// Returns `None` for library code that is not inlined into shown code. For shown code, returns
    /// the line into which library code was inlined, or an inner `None` for the user's own code.
    fn here(&self, function: FuncId, offset: Option<OrigOffset>) -> Here {
        let folded = self.own.folded;
        let Some((offset, at)) = offset.and_then(|offset| Some((offset, folded.locate(offset)?)))
        else {
            return self.own.shows(function).then_some(None);
        };
        let is_own = self.source.locate(offset) == Some(at);
        Some((!is_own).then(|| OwnPlace {
            line: folded.line(at),
            called: false,
        }))
    }

    /// Returns the code of a step. For library code, finds the calling line if `lines` is set or
    /// the step is a trap.
    pub(crate) fn of_step(
        &self,
        operators: &Operators<'_>,
        step: &Step,
        lines: bool,
    ) -> Result<StepCode, PresentError> {
        let key = (step.function, step.op);
        let known = self.known.borrow().get(&key).cloned();
        let here = match known {
            Some(known) => known,
            None => {
                let operator = step.op.map(|op| operators.get(step.function, op));
                let offset = operator.transpose()?.flatten().map(|found| found.offset);
                let found = self.here(step.function, offset);
                self.known.borrow_mut().insert(key, found.clone());
                found
            }
        };
        let is_trap = matches!(step.what, What::Trap(..));
        Ok(match here {
            Some(place) => StepCode::Shown(place),
            None if !lines && !is_trap => StepCode::Folded(None),
            None => {
                let caller = self.caller(step.time);
                let caller = caller.map_err(|error| PresentError::Path(error.into()))?;
                match is_trap {
                    true => StepCode::Shown(caller),
                    false => StepCode::Folded(caller),
                }
            }
        })
    }

    /// Returns the line of the user's own code that called the library code executed at `time`.
    fn caller(&self, time: u64) -> Result<Option<OwnPlace>> {
        let folded = self.own.folded;
        let mut cursor = self.path.cursor();
        cursor.seek(time)?;
        let stack = cursor.stack()?;
        let Some(innermost) = stack.last() else {
            return Ok(None);
        };
        if let Some(known) = self.called.borrow().get(&innermost.entered) {
            return Ok(known.clone());
        }
        let mut found = None;
        for activation in stack.iter().rev().take(STACK) {
            // The block before an activation's first block made the call.
            let site = activation.entered - 1;
            let Some(visit) = cursor.seek(site)? else {
                break;
            };
            let node = &self.path.nodes()[visit.node];
            let Some(&block) = node.blocks.get((site - visit.start) as usize) else {
                break;
            };
            let place = self.places.block(node.function, block)?;
            if let Some(at) = place.and_then(|place| place.end) {
                let line = folded.line(at);
                found = Some(OwnPlace { line, called: true });
                break;
            }
            if self.own.shows(node.function) {
                break;
            }
        }
        let mut called = self.called.borrow_mut();
        Ok(called.entry(innermost.entered).or_insert(found).clone())
    }
}
