//! A place in a segment's grammar: the way down from the root to a symbol.

use std::sync::Arc;

use afterimage_ids::{FuncId, RuleId};

use crate::measures::Measured;
use crate::{Kind, Root, Rule, Symbol};

/// A rule on the way down, and which of its symbols the way goes through.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) rule: RuleId,
    /// The positions of the rule's first symbol, the one in question, and the next rule's first.
    first: u32,
    at: u32,
    end: u32,
    /// The function, if the rule is an activation.
    pub(super) call: Option<FuncId>,
    /// Which of its repetitions it is, from 0, and how many there are: 1 for all rules but repetitions.
    round: u64,
    rounds: u64,
    /// How many blocks of the segment are executed before the rule begins.
    pub(super) base: u64,
}

/// A symbol of a segment: an occurrence of it, not one that stands for all.
#[derive(Clone)]
pub(crate) struct Place {
    pub(super) measured: Arc<Measured>,
    /// Which segment it is.
    pub(super) segment: usize,
    /// The item of the root; as many as there are at the end.
    pub(super) item: usize,
    /// The rules on the way down from the item.
    pub(super) frames: Vec<Frame>,
    /// How many of these are activations.
    pub(super) calls: usize,
    /// How many blocks of the segment are executed before the symbol.
    pub(super) start: u64,
}

impl Place {
    /// The first item of the root.
    pub(super) fn first(measured: Arc<Measured>, segment: usize) -> Self {
        Self {
            measured,
            segment,
            item: 0,
            frames: Vec::new(),
            calls: 0,
            start: 0,
        }
    }

    /// The symbol; `None` for an item of the root that is none, and at the end.
    #[inline]
    pub(super) fn symbol(&self) -> Option<Symbol> {
        match self.frames.last() {
            Some(frame) => Some(self.measured.symbols[frame.at as usize].symbol),
            None => match self.measured.segment.root.get(self.item) {
                Some(&Root::Run(symbol)) => Some(symbol),
                _ => None,
            },
        }
    }

    /// How many blocks the symbol executes.
    #[inline]
    pub(super) fn width(&self) -> u64 {
        match self.frames.last() {
            Some(frame) => {
                let symbols = &self.measured.symbols;
                let end = symbols[frame.at as usize].end;
                if frame.at == frame.first {
                    end
                } else {
                    end - symbols[frame.at as usize - 1].end
                }
            }
            None => match self.measured.root_starts.get(self.item + 1) {
                Some(end) => end - self.measured.root_starts[self.item],
                None => 0,
            },
        }
    }

    /// How many activations are open.
    #[inline]
    pub(super) fn depth(&self) -> usize {
        self.measured.depths[self.item] as usize + self.calls
    }

    /// The first symbol of this one's rule, which must have symbols.
    #[inline]
    pub(super) fn descend(&mut self, rule: RuleId) {
        let Rule { kind, start, len } = self.measured.rules[rule].rule;
        let (call, rounds) = match kind {
            Kind::Sequence => (None, 1),
            Kind::Repeat(times) => (None, times),
            Kind::Call(function) => (Some(function), 1),
        };
        self.calls += usize::from(call.is_some());
        self.frames.push(Frame {
            rule,
            first: start,
            at: start,
            end: start + len,
            call,
            round: 0,
            rounds,
            base: self.start,
        });
    }

    /// The symbol whose rule this one is in, which begins earlier or with it.
    #[inline]
    pub(super) fn ascend(&mut self) -> Option<Frame> {
        let frame = self.frames.pop()?;
        self.calls -= usize::from(frame.call.is_some());
        self.start = frame.base;
        Some(frame)
    }

    /// The next symbol of the same rule, if there is one. Must be called after the symbol's width was added to the start.
    #[inline]
    pub(super) fn sibling(&mut self) -> bool {
        match self.frames.last_mut() {
            Some(frame) if frame.at + 1 < frame.end => frame.at += 1,
            Some(frame) if frame.round + 1 < frame.rounds => {
                frame.round += 1;
                frame.at = frame.first;
            }
            Some(_) => return false,
            None if self.item < self.measured.segment.root.len() => {
                self.item += 1;
                return self.item < self.measured.segment.root.len();
            }
            None => return false,
        }
        true
    }

    /// The next node, if there is one in the segment.
    pub(super) fn step(&mut self) -> bool {
        loop {
            self.start += self.width();
            while !self.sibling() {
                let after = self.start;
                if self.ascend().is_none() {
                    return false;
                }
                self.start = after;
            }
            if self.sink() {
                return true;
            }
        }
    }

    /// Goes down to the first node, as long as the symbols take time. Whether it has arrived.
    #[inline]
    pub(super) fn sink(&mut self) -> bool {
        while let Some(symbol) = self.symbol() {
            let Some(rule) = symbol.as_rule() else {
                return true;
            };
            if self.measured.rules[rule].length == 0 {
                return false;
            }
            self.descend(rule);
        }
        false
    }

    /// The node before, if there is one in the segment.
    pub(super) fn step_back(&mut self) -> bool {
        loop {
            match self.frames.last_mut() {
                Some(frame) if frame.at > frame.first => frame.at -= 1,
                Some(frame) if frame.round > 0 => {
                    frame.round -= 1;
                    frame.at = frame.end - 1;
                }
                Some(_) => {
                    self.ascend();
                    continue;
                }
                None if self.item > 0 => self.item -= 1,
                None => return false,
            }
            self.start -= self.width();
            if self.sink_back() {
                return true;
            }
        }
    }

    /// Goes down to the last node, as long as the symbols take time. Whether it has arrived.
    fn sink_back(&mut self) -> bool {
        while let Some(symbol) = self.symbol() {
            let Some(rule) = symbol.as_rule() else {
                return true;
            };
            let length = self.measured.rules[rule].length;
            if length == 0 {
                return false;
            }
            self.descend(rule);
            self.start += length;
            if let Some(frame) = self.frames.last_mut() {
                frame.at = frame.end - 1;
                frame.round = frame.rounds - 1;
            }
            self.start -= self.width();
        }
        false
    }

    /// The node that is executed after so many blocks of the segment, fewer than its length. What the way there has in
    /// common with the way to the present place is not searched again.
    pub(super) fn locate(&mut self, offset: u64) {
        while let Some(frame) = self.frames.last() {
            if frame.base <= offset && offset - frame.base < self.measured.rules[frame.rule].length
            {
                break;
            }
            self.ascend();
        }
        if self.frames.is_empty() {
            let starts = &self.measured.root_starts;
            self.item = starts.partition_point(|&start| start <= offset) - 1;
            self.start = starts[self.item];
            self.descend_once();
        }
        while let Some(frame) = self.frames.last_mut() {
            let symbols = &self.measured.symbols;
            let within = offset - frame.base;
            self.start = frame.base;
            if frame.rounds > 1 {
                let round = symbols[frame.first as usize].end;
                frame.round = within / round;
                self.start += frame.round * round;
            } else {
                let own = &symbols[frame.first as usize..frame.end as usize];
                let before = own.partition_point(|symbol| symbol.end <= within);
                frame.at = frame.first + before as u32;
                if before > 0 {
                    self.start += own[before - 1].end;
                }
            }
            if !self.descend_once() {
                break;
            }
        }
    }

    /// Goes to the first symbol of the symbol's rule, if it is one.
    fn descend_once(&mut self) -> bool {
        match self.symbol().and_then(Symbol::as_rule) {
            Some(rule) => {
                self.descend(rule);
                true
            }
            None => false,
        }
    }
}
