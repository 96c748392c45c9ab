//! Finds the inlined functions that made calls, and their frames in a tree of calls.

use afterimage_ids::{BlockId, FuncId};
use afterimage_profile::Source;
use afterimage_program::{Location, demangle};
use afterimage_replay::whole_path::CallEntry;

use super::Scene;
use super::text::shown_line;
use crate::name::short_function;
use crate::table::{plain, shortened};
use crate::{PresentError, Style};

/// The mark of an inlined function.
const INLINED: &str = ", inlined";
/// The minimum width of a name.
const LEAST_NAME: usize = 18;

/// An inlined function that made a call, or whose inlined callee made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InlinedCaller {
    name: String,
    /// The place of the inlined call. `None` if it is unknown, or in code that is not shown.
    at: Option<Location>,
}

impl InlinedCaller {
    /// Returns the shown inlined functions at a call, the innermost first.
    pub(crate) fn of_call<S>(
        scene: &Scene<'_, S>,
        (function, block): (FuncId, BlockId),
    ) -> Result<Vec<Self>, PresentError> {
        let last = scene.place(function, block)?.last;
        let frames = match scene.own {
            Some(own) => own.folded.inlined_frames(last),
            None => scene.places.source().inlined_frames(last),
        };
        // The last frame is the function that the module defines, which was not inlined.
        let around = frames.iter().skip(1).map(|frame| {
            let is_shown = |at: &Location| scene.own.is_none_or(|own| own.folded.shows(at.file));
            frame.location.filter(is_shown)
        });
        let callers = frames.iter().zip(around).filter_map(|(frame, at)| {
            let raw = frame.function.clone()?;
            let name = demangle(&raw).unwrap_or(raw);
            Some(Self { name, at })
        });
        Ok(callers.collect())
    }

    /// Formats the place of the inlined call.
    pub(crate) fn place<S>(&self, scene: &Scene<'_, S>) -> String {
        self.at.map_or_else(String::new, |at| shown_line(scene, at))
    }

    /// Formats the function: `parse, inlined`. On a terminal, the name is shortened so that the text
    /// fits beside `used` columns, if enough room is left for a short name.
    pub(crate) fn shown(&self, style: Style, used: usize) -> String {
        let mut name = plain(&short_function(&self.name));
        if let Some(room) = style.width {
            let room = room.saturating_sub(used + INLINED.len()).max(LEAST_NAME);
            name = shortened(&name, room, room / 2);
        }
        name + INLINED
    }
}

/// The inlined functions on the way from the root of a tree of calls to the current call. Calls are
/// entered in order of time.
///
/// The path does not show where an inlined call begins and ends, so consecutive calls from one place
/// share a frame.
#[derive(Default)]
pub(super) struct InlinedLevels {
    levels: Vec<Level>,
    /// The number of levels, from the outermost, whose frames are all written.
    written: usize,
}

/// The inlined functions between an activation and the activation around it.
struct Level {
    depth: usize,
    /// The outermost comes first.
    callers: Vec<InlinedCaller>,
    written: usize,
    /// The number of inlined functions on outer levels.
    above: usize,
}

impl InlinedLevels {
    /// Continues with a call. Returns its depth in the tree with inlined functions.
    pub(super) fn enter<S>(
        &mut self,
        scene: &Scene<'_, S>,
        call: &CallEntry,
    ) -> Result<usize, PresentError> {
        let depth = call.depth;
        while self.levels.last().is_some_and(|level| level.depth > depth) {
            self.levels.pop();
        }
        let same = self.levels.pop_if(|level| level.depth == depth);
        self.written = self.written.min(self.levels.len());
        let (callers, written) = match (same, call.within) {
            // The activation around the call still waits at the same place.
            (Some(same), _) if call.is_tail => (same.callers, same.written),
            (_, None) => (Vec::new(), 0),
            (same, Some(within)) => {
                let mut callers = InlinedCaller::of_call(scene, within)?;
                callers.reverse();
                let written = same.map_or(0, |same| {
                    let pairs = same.callers.iter().zip(&callers);
                    same.written.min(pairs.take_while(|(a, b)| a == b).count())
                });
                (callers, written)
            }
        };
        let outer = self.levels.last();
        let above = outer.map_or(0, |outer| outer.above + outer.callers.len());
        let inlined = above + callers.len();
        self.levels.push(Level {
            depth,
            callers,
            written,
            above,
        });
        Ok(depth + inlined)
    }

    /// Returns the frames that must be written before the current call, the outermost first, each
    /// with its depth in the tree.
    pub(super) fn unwritten(&mut self) -> Vec<(usize, InlinedCaller)> {
        let mut frames = Vec::new();
        for level in &mut self.levels[self.written..] {
            let rest = level.callers.iter().enumerate().skip(level.written);
            frames.extend(rest.map(|(at, one)| (level.depth + level.above + at, one.clone())));
            level.written = level.callers.len();
        }
        self.written = self.levels.len();
        frames
    }
}
