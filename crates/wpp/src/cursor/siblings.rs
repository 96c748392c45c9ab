//! Moves within an activation, skipping the calls that it makes.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use afterimage_ids::{EntitySet, NodeId};
use rustc_hash::FxBuildHasher;

use super::occurrence::SymbolOccurrence;
use super::{At, Cursor, Visit};
use crate::measures::Word;
use crate::{PathError, Root, Segments, Summary};

/// The nodes that a search within an activation looks for. Remembers the rules of each segment that
/// were searched in vain, so that later searches skip them.
pub struct NodeFilter {
    wanted: EntitySet<NodeId>,
    /// For each segment, whether any wanted node is executed in it.
    segments: RefCell<HashMap<usize, bool>>,
    /// The rules that contain no wanted node outside of calls, by segment and position.
    vain: RefCell<HashSet<(usize, u32), FxBuildHasher>>,
}

impl NodeFilter {
    /// The maximum number of rules to remember.
    const RULES: usize = 1 << 20;

    /// Creates a filter that lets these nodes pass.
    pub fn new(nodes: impl IntoIterator<Item = NodeId>) -> Self {
        let mut wanted = EntitySet::new();
        for node in nodes {
            wanted.insert(node);
        }
        Self {
            wanted,
            segments: RefCell::default(),
            vain: RefCell::default(),
        }
    }

    fn is_in_segment(&self, segment: usize, summary: &Summary) -> bool {
        let mut known = self.segments.borrow_mut();
        *known.entry(segment).or_insert_with(|| {
            let mut executed = summary.node_counts.iter();
            executed.any(|&(node, _)| self.wanted.contains(node))
        })
    }

    /// Whether a symbol is a wanted node, or a rule that may contain one outside of calls.
    fn may_pass(&self, segment: usize, word: Word) -> bool {
        match word.as_rule() {
            Some(rule) => !self.vain.borrow().contains(&(segment, rule)),
            None => self.is_wanted(word),
        }
    }

    fn is_wanted(&self, word: Word) -> bool {
        word.as_node()
            .is_some_and(|node| self.wanted.contains(node))
    }

    fn add_vain(&self, segment: usize, rule: u32) {
        let mut vain = self.vain.borrow_mut();
        if vain.len() >= Self::RULES {
            vain.clear();
        }
        vain.insert((segment, rule));
    }
}

/// What a search within an activation and a segment found.
enum Beside {
    /// Another node of the same activation.
    Node,
    /// Nothing, because the activation begins or ends on the way.
    Nothing,
    /// The end of the segment at which the activation is still open.
    Segment,
}

/// The direction of a search.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Toward {
    Beginning,
    End,
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
        self.beside(Toward::Beginning, None)
    }

    /// Moves to the next execution in the same activation. This is the counterpart of
    /// [`previous_in_activation`](Self::previous_in_activation).
    ///
    /// # Errors
    /// Returns an error if a segment cannot be read. The cursor then stays in place.
    pub fn next_in_activation(&mut self) -> Result<Option<Visit>, PathError<S::Error>> {
        self.beside(Toward::End, None)
    }

    /// Does the same as [`previous_in_activation`](Self::previous_in_activation), but searches for
    /// the previous execution of one of the filter's nodes. Skips segments and rules without them.
    ///
    /// # Errors
    /// Returns the errors of [`previous_in_activation`](Self::previous_in_activation).
    pub fn previous_among(
        &mut self,
        filter: &NodeFilter,
    ) -> Result<Option<Visit>, PathError<S::Error>> {
        self.beside(Toward::Beginning, Some(filter))
    }

    /// Does the same as [`next_in_activation`](Self::next_in_activation), but searches for the next
    /// execution of one of the filter's nodes. Skips segments and rules without them.
    ///
    /// # Errors
    /// Returns the errors of [`next_in_activation`](Self::next_in_activation).
    pub fn next_among(
        &mut self,
        filter: &NodeFilter,
    ) -> Result<Option<Visit>, PathError<S::Error>> {
        self.beside(Toward::End, Some(filter))
    }

    fn beside(
        &mut self,
        toward: Toward,
        filter: Option<&NodeFilter>,
    ) -> Result<Option<Visit>, PathError<S::Error>> {
        let path = self.path;
        let At::On(place) = &mut self.at else {
            return Ok(None);
        };
        let time = place.time();
        let depth = place.depth();
        let summaries = path.segments().summaries();
        let mut is_new = false;
        let found = loop {
            match place.beside(toward, depth, filter, is_new) {
                Beside::Node => break Ok(true),
                Beside::Nothing => break Ok(false),
                Beside::Segment => {}
            }
            // A segment entirely within a callee contains nothing of the activation.
            let has = |&segment: &usize| {
                let summary = &summaries[segment];
                let kept = summary.kept as usize;
                let passes = || filter.is_none_or(|filter| filter.is_in_segment(segment, summary));
                kept < depth || kept == depth && passes()
            };
            let segment = match toward {
                Toward::Beginning => (0..place.segment).rfind(has),
                Toward::End => (place.segment + 1..summaries.len()).find(has),
            };
            let Some(segment) = segment else {
                break Ok(false);
            };
            match path.open(segment) {
                Ok(measured) => {
                    let end = measured.segment.root.len();
                    *place = SymbolOccurrence::first(measured, segment);
                    is_new = toward == Toward::End;
                    if !is_new {
                        place.go_to_item(end);
                    }
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
    /// Moves to the nearest node of the innermost of `depth` activations, within the segment. The
    /// current symbol counts only if `is_new`.
    fn beside(
        &mut self,
        toward: Toward,
        depth: usize,
        filter: Option<&NodeFilter>,
        mut is_new: bool,
    ) -> Beside {
        // The number of rules on the way down that this search entered, and so searches completely.
        let mut entered = 0usize;
        loop {
            while !is_new && !self.sibling_toward(toward) {
                match self.ascend() {
                    Some(frame) if frame.call().is_some() => return Beside::Nothing,
                    Some(frame) if entered > 0 => {
                        entered -= 1;
                        if let Some(filter) = filter {
                            filter.add_vain(self.segment, frame.place());
                        }
                    }
                    Some(_) => {}
                    None => return self.at_edge(depth),
                }
            }
            is_new = false;
            if self.frames.is_empty() && !self.skip_items(toward, depth) {
                return self.at_edge(depth);
            }
            // Step over activations, but enter rules that merely contain activations.
            loop {
                if filter.is_some_and(|filter| !filter.may_pass(self.segment, self.word)) {
                    self.finish_rounds(toward);
                    break;
                }
                let Some(rule) = self.word.as_rule() else {
                    break;
                };
                let is_call = self.measured.layout.body(rule).call().is_some();
                if is_call || self.width == 0 {
                    break;
                }
                entered += 1;
                match toward {
                    Toward::Beginning => self.descend_to_last(rule),
                    Toward::End => self.descend(rule),
                }
            }
            let passes = |word| filter.is_none_or(|filter| filter.is_wanted(word));
            if self.word.as_node().is_some() && passes(self.word) {
                return Beside::Node;
            }
        }
    }

    fn sibling_toward(&mut self, toward: Toward) -> bool {
        match toward {
            Toward::Beginning => self.sibling_before(),
            Toward::End => self.sibling(),
        }
    }

    /// Returns what ends a search at the current item of the root.
    fn at_edge(&self, depth: usize) -> Beside {
        match (self.measured.depths[self.item] as usize) < depth {
            true => Beside::Nothing,
            false => Beside::Segment,
        }
    }

    /// From an item of the root, moves to an item that is a symbol inside `depth` activations. If
    /// there is none, stops outside the activation, or at the root's first item or end.
    fn skip_items(&mut self, toward: Toward, depth: usize) -> bool {
        loop {
            let inside = self.measured.depths[self.item] as usize;
            let item = self.measured.segment.root.get(self.item);
            if inside == depth && matches!(item, Some(Root::Run(_))) {
                return true;
            }
            let next = match toward {
                Toward::Beginning => self.item.checked_sub(1),
                Toward::End => item.map(|_| self.item + 1),
            };
            match next {
                Some(next) if inside >= depth => self.go_to_item(next),
                _ => return false,
            }
        }
    }
}
