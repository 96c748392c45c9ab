//! Describes a place in a segment's grammar by the descent from the root to a symbol.

use std::sync::Arc;

use afterimage_ids::FuncId;

use super::siblings::Toward;
use crate::measures::{Body, Measured, Word};

/// A rule on this descent, and the symbol through which the descent continues.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    body: Body,
    /// The position of the symbol.
    at: u32,
    /// The current repetition, from 0.
    round: u64,
    /// The number of the segment's blocks executed before the rule begins.
    pub(super) base: u64,
    /// The number of blocks that the rule executes in total.
    pub(super) length: u64,
}

impl Frame {
    /// Returns the position of the rule.
    pub(super) fn place(&self) -> u32 {
        self.body.first
    }

    /// Returns the function, if the rule is an activation.
    #[inline]
    pub(super) fn call(&self) -> Option<FuncId> {
        self.body.call()
    }
}

/// An occurrence of a symbol in a segment's execution.
pub(crate) struct SymbolOccurrence {
    pub(super) measured: Arc<Measured>,
    /// The number of the segment.
    pub(super) segment: usize,
    /// The item of the root, or the number of items at the end.
    pub(super) item: usize,
    /// The rules on the way down from the item.
    pub(super) frames: Vec<Frame>,
    /// The number of these rules that are activations.
    pub(super) calls: usize,
    /// The symbol at this place. It is empty at the end, and for an item of the root without a
    /// symbol.
    pub(super) word: Word,
    /// The number of the segment's blocks executed before the symbol.
    pub(super) start: u64,
    /// The number of blocks that the symbol executes.
    pub(super) width: u64,
}

impl Clone for SymbolOccurrence {
    fn clone(&self) -> Self {
        Self {
            measured: Arc::clone(&self.measured),
            frames: self.frames.clone(),
            ..*self
        }
    }
}

impl SymbolOccurrence {
    /// Returns the place at the first item of the root.
    pub(super) fn first(measured: Arc<Measured>, segment: usize) -> Self {
        let mut place = Self {
            measured,
            segment,
            item: 0,
            frames: Vec::new(),
            calls: 0,
            word: Word::NONE,
            start: 0,
            width: 0,
        };
        place.go_to_item(0);
        place
    }

    /// Moves to another segment, to the node that is executed after `offset` of its blocks.
    /// `offset` must be less than the segment's length. Reads only the data on the way there.
    pub(super) fn locate_in(&mut self, measured: Arc<Measured>, segment: usize, offset: u64) {
        self.measured = measured;
        self.segment = segment;
        self.frames.clear();
        self.calls = 0;
        self.locate(offset);
    }

    /// Moves to an item of the root, or to the root's end. There must be no frames.
    pub(super) fn go_to_item(&mut self, item: usize) {
        let starts = &self.measured.root_starts;
        self.item = item;
        self.word = self.measured.words[item];
        self.start = starts[item];
        self.width = starts.get(item + 1).map_or(0, |end| end - starts[item]);
    }

    /// Returns the number of open activations.
    #[inline]
    pub(super) fn depth(&self) -> usize {
        self.measured.depths[self.item] as usize + self.calls
    }

    /// Enters the rule of the current symbol. The place is then before the rule's first symbol.
    #[inline]
    fn push(&mut self, rule: u32) -> Body {
        let body = self.measured.layout.body(rule);
        self.calls += usize::from(body.call().is_some());
        self.frames.push(Frame {
            body,
            at: body.first,
            round: 0,
            base: self.start,
            length: self.width,
        });
        body
    }

    /// Moves to the first symbol of the current symbol's rule, which must have symbols.
    #[inline]
    pub(super) fn descend(&mut self, rule: u32) {
        let body = self.push(rule);
        self.look(body, body.first);
    }

    /// Reads the symbol at a position of a rule.
    #[inline]
    fn look(&mut self, body: Body, at: u32) {
        self.word = self.measured.layout.at(at);
        self.width = self.measured.layout.width_at(at, body.is_wide());
    }

    /// Moves up to the symbol whose rule contains the current symbol. The new symbol begins at or
    /// before the current symbol.
    #[inline]
    pub(super) fn ascend(&mut self) -> Option<Frame> {
        let frame = self.frames.pop()?;
        self.calls -= usize::from(frame.call().is_some());
        self.word = Word::rule(frame.body.first);
        self.start = frame.base;
        self.width = frame.length;
        Some(frame)
    }

    /// Moves to the next symbol of the same rule, if there is one.
    #[inline]
    pub(super) fn sibling(&mut self) -> bool {
        match self.frames.last_mut() {
            Some(frame) if frame.at + 1 < frame.body.end => {
                frame.at += 1;
                let (body, at) = (frame.body, frame.at);
                self.start += self.width;
                self.look(body, at);
            }
            Some(frame) if frame.round + 1 < frame.body.rounds() => {
                // The rule has only this symbol.
                frame.round += 1;
                self.start += self.width;
            }
            Some(_) => return false,
            None if self.item < self.measured.segment.root.len() => {
                self.go_to_item(self.item + 1);
                return self.item < self.measured.segment.root.len();
            }
            None => return false,
        }
        true
    }

    /// Moves to the next node of the segment, if there is one.
    #[inline]
    pub(super) fn step(&mut self) -> bool {
        loop {
            while !self.sibling() {
                if self.ascend().is_none() {
                    return false;
                }
            }
            if self.sink() {
                return true;
            }
        }
    }

    /// Descends to the first node, but stops at a symbol that takes no time. Returns whether it has
    /// reached a node.
    #[inline]
    pub(super) fn sink(&mut self) -> bool {
        while let Some(rule) = self.word.as_rule() {
            if self.width == 0 {
                return false;
            }
            self.descend(rule);
        }
        self.word != Word::NONE
    }

    /// Moves to the previous symbol of the same rule, if there is one.
    #[inline]
    pub(super) fn sibling_before(&mut self) -> bool {
        match self.frames.last_mut() {
            Some(frame) if frame.at > frame.body.first => {
                frame.at -= 1;
                let (body, at) = (frame.body, frame.at);
                self.look(body, at);
                self.start -= self.width;
            }
            Some(frame) if frame.round > 0 => {
                frame.round -= 1;
                self.start -= self.width;
            }
            None if self.item > 0 => self.go_to_item(self.item - 1),
            _ => return false,
        }
        true
    }

    /// In a repetition, moves to its last round, or with [`Toward::Beginning`] to its first.
    pub(super) fn finish_rounds(&mut self, toward: Toward) {
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        let round = match toward {
            Toward::Beginning => 0,
            Toward::End => frame.body.rounds() - 1,
        };
        if frame.body.rounds() > 1 {
            self.start = frame.base + round * self.width;
            frame.round = round;
        }
    }

    /// Moves to the previous node of the segment, if there is one.
    #[inline]
    pub(super) fn step_back(&mut self) -> bool {
        loop {
            while !self.sibling_before() {
                if self.ascend().is_none() {
                    return false;
                }
            }
            if self.sink_back() {
                return true;
            }
        }
    }

    /// Descends to the last node, but stops at a symbol that takes no time. Returns whether it has
    /// reached a node.
    #[inline]
    fn sink_back(&mut self) -> bool {
        while let Some(rule) = self.word.as_rule() {
            if self.width == 0 {
                return false;
            }
            self.descend_to_last(rule);
        }
        self.word != Word::NONE
    }

    /// Moves to the last symbol of the current symbol's rule, which must have symbols.
    #[inline]
    pub(super) fn descend_to_last(&mut self, rule: u32) {
        let end = self.start + self.width;
        let body = self.push(rule);
        if let Some(frame) = self.frames.last_mut() {
            frame.at = body.end - 1;
            frame.round = body.rounds() - 1;
        }
        self.look(body, body.end - 1);
        self.start = end - self.width;
    }

    /// Moves to the node at `offset` blocks into the segment. `offset` must be less than the
    /// segment's length. Reuses the part of the descent that both places share.
    pub(super) fn locate(&mut self, offset: u64) {
        while let Some(frame) = self.frames.last() {
            if frame.base <= offset && offset - frame.base < frame.length {
                break;
            }
            self.ascend();
        }
        if self.frames.is_empty() {
            let starts = &self.measured.root_starts;
            self.go_to_item(starts.partition_point(|&start| start <= offset) - 1);
        } else {
            self.search(offset);
        }
        while let Some(rule) = self.word.as_rule() {
            self.push(rule);
            self.search(offset);
        }
    }

    /// Moves to the symbol of the innermost rule at `offset` blocks into the segment.
    #[inline]
    fn search(&mut self, offset: u64) {
        let layout = &self.measured.layout;
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        let (body, within) = (frame.body, offset - frame.base);
        self.start = frame.base;
        if body.rounds() > 1 {
            let round = layout.end_at(body.first, body.is_wide());
            frame.round = within / round;
            self.start += frame.round * round;
        } else {
            frame.at = layout.find(body, within);
            self.start += layout.end_at(frame.at - 1, body.is_wide());
        }
        let at = frame.at;
        self.look(body, at);
    }
}
