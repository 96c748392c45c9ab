//! Finds the lines of the user's own code for which library code was executed.

use std::cell::RefCell;
use std::collections::HashMap;

use afterimage_ids::{FuncId, OrigOffset};
use afterimage_present::OwnPlace;
use afterimage_profile::{Folded, OwnFunctions, Source};
use afterimage_program::{Names, SourceMap};
use afterimage_replay::paths::{Places, RecordedPath};
use anyhow::Result;

use crate::Session;

/// The number of activations to search for the user's own code.
const STACK: usize = 64;

/// Finds lines of the user's own code, by the path alone.
pub(crate) struct OwnLines<'a> {
    path: &'a RecordedPath,
    source: &'a SourceMap<'a>,
    own: OwnFunctions<'a>,
    places: Places<'a>,
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
            called: RefCell::default(),
        }
    }

    /// Returns the line of the user's own code that library code was inlined into or called from,
    /// when the block of a time executed an operator. `None` for the user's own code, and if there
    /// is no such line.
    pub(crate) fn at(
        &self,
        (function, offset): (FuncId, OrigOffset),
        time: u64,
    ) -> Result<Option<OwnPlace>> {
        let folded = self.own.folded;
        if let Some(at) = folded.locate(offset) {
            let is_own = self.source.locate(offset) == Some(at);
            let line = folded.line(at);
            return Ok((!is_own).then_some(OwnPlace {
                line,
                called: false,
            }));
        }
        if self.own.shows(function) {
            return Ok(None);
        }
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
            // The block before the first one of an activation made the call.
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
