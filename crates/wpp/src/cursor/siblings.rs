//! Moves within an activation, skipping the calls that it makes.

use super::occurrence::SymbolOccurrence;
use super::{At, Cursor, Visit};
use crate::{PathError, Root, Segments, Summary};

/// The predecessor of a place within its activation.
enum Before {
    /// Another node of the same activation.
    Node,
    /// Nothing, because the activation begins at the place.
    Nothing,
    /// The beginning of the segment, where the activation is already open.
    Segment,
}

impl<S: Segments> Cursor<'_, S> {
    /// Moves to the previous execution in the same activation, skipping its callees. Returns `None`
    /// if the activation, or the path, begins with the current execution, or the cursor is at no
    /// execution. The cursor then does not move.
    ///
    /// A step takes O(depth of the grammar), regardless of how much the callees executed. If
    /// callees are open at the beginning or the end of a segment, a step may examine each item of
    /// the segment's root.
    ///
    /// # Errors
    /// Returns an error if a segment cannot be read. The cursor then stays in place.
    pub fn previous_in_activation(&mut self) -> Result<Option<Visit>, PathError<S::Error>> {
        self.previous_in_activation_among(|_| true)
    }

    /// Does the same as [`previous_in_activation`](Self::previous_in_activation), but searches only
    /// the earlier segments that `may_have` selects and the segment in which the activation begins.
    ///
    /// # Errors
    /// Returns the errors of [`previous_in_activation`](Self::previous_in_activation).
    pub fn previous_in_activation_among(
        &mut self,
        may_have: impl Fn(usize) -> bool,
    ) -> Result<Option<Visit>, PathError<S::Error>> {
        let path = self.path;
        let At::On(place) = &mut self.at else {
            return Ok(None);
        };
        let time = place.time();
        let depth = place.depth();
        let found = loop {
            match place.before_in_activation(depth) {
                Before::Node => break Ok(true),
                Before::Nothing => break Ok(false),
                Before::Segment => {}
            }
            let summaries = path.segments().summaries();
            // Segments entirely within callees contain nothing of the activation.
            let earlier = &summaries[..place.segment];
            let mut earlier = earlier.iter().enumerate();
            let has = |(number, of): (usize, &Summary)| {
                let kept = of.kept as usize;
                kept < depth || kept == depth && may_have(number)
            };
            let Some((segment, _)) = earlier.rfind(|&of| has(of)) else {
                break Ok(false);
            };
            match path.open(segment) {
                Ok(measured) => {
                    let end = measured.segment.root.len();
                    *place = SymbolOccurrence::first(measured, segment);
                    place.go_to_item(end);
                }
                Err(error) => break Err(error),
            }
        };
        match found {
            Ok(true) => Ok(place.visit()),
            Ok(false) => {
                self.seek(time)?;
                Ok(None)
            }
            Err(error) => {
                self.seek(time)?;
                Err(error)
            }
        }
    }
}

impl SymbolOccurrence {
    /// Moves to the previous node of the innermost of `depth` activations, within the segment.
    fn before_in_activation(&mut self, depth: usize) -> Before {
        loop {
            while !self.sibling_before() {
                match self.ascend() {
                    Some(frame) if frame.call().is_some() => return Before::Nothing,
                    Some(_) => {}
                    None => return Before::Segment,
                }
            }
            if self.frames.is_empty() && !self.skip_items(depth) {
                let before = (self.measured.depths[self.item] as usize) < depth;
                return if before {
                    Before::Nothing
                } else {
                    Before::Segment
                };
            }
            // Step over activations, but enter rules that merely contain activations.
            while let Some(rule) = self.word.as_rule() {
                let skipped = self.measured.layout.body(rule).call().is_some();
                if skipped || self.width == 0 {
                    break;
                }
                self.descend_to_last(rule);
            }
            if self.word.as_node().is_some() {
                return Before::Node;
            }
        }
    }

    /// From an item of the root, moves back to an item that is a symbol inside `depth` activations.
    /// If there is none, stops at the item with which the activation begins, or at the first item.
    fn skip_items(&mut self, depth: usize) -> bool {
        loop {
            let inside = self.measured.depths[self.item] as usize;
            let symbol = matches!(self.measured.segment.root[self.item], Root::Run(_));
            if inside == depth && symbol {
                return true;
            }
            if inside < depth || self.item == 0 {
                return false;
            }
            self.go_to_item(self.item - 1);
        }
    }
}
