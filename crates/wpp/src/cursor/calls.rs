//! Walks the call tree in order of time, without the events between calls.

use afterimage_ids::FuncId;

use super::occurrence::SymbolOccurrence;
use super::stack::leave_of;
use crate::measures::Word;
use crate::{PathError, Root, Segments, WholePath};

/// The beginning or end of an activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEvent {
    /// An activation begins.
    Enter {
        /// The activation's function.
        function: FuncId,
        /// The number of activations around it.
        depth: usize,
        /// The time of the activation's first block, which is the number of blocks executed before
        /// it, plus 1.
        time: u64,
    },
    /// An activation ends.
    Leave {
        /// The activation's function.
        function: FuncId,
        /// The number of activations around it.
        depth: usize,
        /// The time of the last block that the activation or a callee executed, which is the number
        /// of blocks executed so far.
        time: u64,
    },
}

/// The beginnings and ends of activations from a given time on.
///
/// Stepping over a symbol without calls takes O(1). So does stepping over the contents of an
/// activation that is skipped or as deep as the limit. An event takes O(1) amortised, plus O(1) for
/// each symbol that the walk steps over in the caller's rules.
pub struct Calls<'a, S: Segments> {
    path: &'a WholePath<S>,
    /// Ends before this time are reported only if the corresponding beginnings were reported.
    from: u64,
    /// Activations inside at least this many other activations are not reported.
    limit: usize,
    /// The number of activations whose beginnings have been reported and that have not ended.
    announced: usize,
    /// The current place, or `None` at the end.
    place: Option<SymbolOccurrence>,
    next: Next,
}

/// The next action at the symbol.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The symbol has not been examined yet.
    Look,
    /// The beginning of the symbol's activation has been reported.
    Inside,
    /// The beginning of the symbol's activation has been reported, and its end comes next.
    End,
    /// The symbol is done.
    Past,
}

impl<S: Segments> WholePath<S> {
    /// Returns the beginnings and ends of activations at block `time` and later, in order of time,
    /// limited to activations inside fewer than `limit` other activations.
    ///
    /// # Errors
    /// Returns an error if a segment cannot be read.
    pub fn calls(&self, time: u64, limit: usize) -> Result<Calls<'_, S>, PathError<S::Error>> {
        let mut calls = Calls {
            path: self,
            from: time,
            limit,
            announced: 0,
            place: None,
            next: Next::Look,
        };
        let before = time.saturating_sub(1);
        if before > self.length() || self.segments().summaries().is_empty() {
            return Ok(calls);
        }
        if before > 0 {
            // The previous node ends with the block before `time`.
            calls.next = Next::Past;
            calls.place = Some(SymbolOccurrence::at(self, before)?);
        } else {
            calls.place = Some(SymbolOccurrence::first(self.open(0)?, 0));
        }
        Ok(calls)
    }
}

impl<S: Segments> Calls<'_, S> {
    /// Returns the next event, or `None` at the end of the path.
    ///
    /// # Errors
    /// Returns an error if a segment cannot be read. The next call tries again.
    #[allow(
        clippy::should_implement_trait,
        reason = "it can fail, and be told to skip"
    )]
    pub fn next(&mut self) -> Result<Option<CallEvent>, PathError<S::Error>> {
        while let Some(place) = &mut self.place {
            let event = match self.next {
                Next::Look => {
                    let (next, event) = look(place, self.limit);
                    self.next = next;
                    event
                }
                Next::Inside => {
                    self.next = enter(place, self.limit);
                    None
                }
                Next::End => {
                    self.next = Next::Past;
                    let end = place.start + place.width;
                    called(place).map(|function| place.leave(function, end))
                }
                Next::Past => {
                    let end = place.start + place.width;
                    if place.sibling() {
                        self.next = Next::Look;
                        None
                    } else if let Some(frame) = place.ascend() {
                        frame.call().map(|function| place.leave(function, end))
                    } else {
                        self.open_next_segment()?;
                        None
                    }
                }
            };
            if let Some(event) = event
                && self.is_announced(event)
            {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// If the last event was the beginning of an activation, skips its contents. The activation's
    /// end comes next, if it ends. This has no effect after any other event.
    ///
    /// # Errors
    /// Returns an error if a segment cannot be read. Then nothing is skipped.
    pub fn skip(&mut self) -> Result<(), PathError<S::Error>> {
        if self.next != Next::Inside {
            return Ok(());
        }
        let Some(place) = &self.place else {
            return Ok(());
        };
        if called(place).is_some() {
            self.next = Next::End;
        } else {
            let depth = place.measured.depths[place.item] + 1;
            self.place = leave_of(self.path, place.segment, place.item + 1, depth)?;
            self.next = Next::Look;
        }
        Ok(())
    }

    fn open_next_segment(&mut self) -> Result<(), PathError<S::Error>> {
        let segment = self.place.as_ref().map_or(0, |place| place.segment + 1);
        self.place = if segment < self.path.segments().summaries().len() {
            Some(SymbolOccurrence::first(self.path.open(segment)?, segment))
        } else {
            None
        };
        self.next = Next::Look;
        Ok(())
    }

    fn is_announced(&mut self, event: CallEvent) -> bool {
        match event {
            CallEvent::Enter { .. } => self.announced += 1,
            // The walk may begin deeper than the limit.
            CallEvent::Leave { depth, .. } if depth >= self.limit => return false,
            CallEvent::Leave { time, .. } if self.announced == 0 => return time >= self.from,
            CallEvent::Leave { .. } => self.announced -= 1,
        }
        true
    }
}

/// Examines a symbol for the first time.
fn look(place: &mut SymbolOccurrence, limit: usize) -> (Next, Option<CallEvent>) {
    let depth = place.depth();
    let enter = |function| CallEvent::Enter {
        function,
        depth,
        time: place.time(),
    };
    if depth > limit {
        return (Next::Past, None);
    }
    match place.word.as_rule() {
        Some(_) if depth == limit => (Next::Past, None),
        Some(rule) => {
            let body = place.measured.layout.body(rule);
            match body.call() {
                Some(function) => (Next::Inside, Some(enter(function))),
                None if body.calls() => {
                    place.descend(rule);
                    (Next::Look, None)
                }
                None => (Next::Past, None),
            }
        }
        None if place.word != Word::NONE => (Next::Past, None),
        None => match place.measured.segment.root.get(place.item) {
            Some(&Root::Enter(function)) if depth < limit => (Next::Inside, Some(enter(function))),
            Some(&Root::Leave) => {
                let leave = place.measured.functions[place.item].map(|function| {
                    let time = place.measured.segment.before + place.start;
                    CallEvent::Leave {
                        function,
                        depth: depth - 1,
                        time,
                    }
                });
                (Next::Past, leave)
            }
            _ => (Next::Past, None),
        },
    }
}

/// Enters the activation whose beginning has been reported.
fn enter(place: &mut SymbolOccurrence, limit: usize) -> Next {
    let Some(rule) = place.word.as_rule() else {
        // The symbol is an item of the root.
        return Next::Past;
    };
    let body = place.measured.layout.body(rule);
    if place.depth() + 1 >= limit || body.first == body.end {
        return Next::End;
    }
    place.descend(rule);
    Next::Look
}

/// Returns the function of the symbol, if it is an activation.
fn called(place: &SymbolOccurrence) -> Option<FuncId> {
    place.measured.layout.body(place.word.as_rule()?).call()
}

impl SymbolOccurrence {
    /// Returns the end of the activation that the symbol represents, `end` blocks into the segment.
    fn leave(&self, function: FuncId, end: u64) -> CallEvent {
        CallEvent::Leave {
            function,
            depth: self.depth(),
            time: self.measured.segment.before + end,
        }
    }
}
