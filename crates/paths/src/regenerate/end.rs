//! The end of a run: where the bits are used up, the known end decides where the path stops.

use afterimage_ids::{BlockId, FuncId};

use super::stack::Activation;
use super::tables::PathEnd;
use super::{ExecutedPath, Next, RegenerateError, Regenerator, Sink};

/// An activation that was open when the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinalFrame {
    /// Its function.
    pub function: FuncId,
    /// The block that it was in.
    pub block: BlockId,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// No activation was left: every call by the host returned, or an exception left the last one.
    Done,
    /// With activations open.
    Open {
        /// The outermost first; at least one.
        frames: Vec<FinalFrame>,
        /// A function was reached by a call that the stack had no room for.
        in_vain: bool,
    },
}

impl Regenerator<'_> {
    /// The last words have been fed, the last calls by the host told. Takes the run to its end.
    ///
    /// After the last bits everything is determined, and no state comes back: a loop that writes nothing ticks. So the first
    /// state that agrees with the end is the end.
    ///
    /// # Errors
    /// If the run does not get there.
    pub fn finish<S: Sink>(
        &mut self,
        finish: &Finish,
        sink: &mut S,
    ) -> Result<(), RegenerateError> {
        if let Some(last) = self.bits.last() {
            self.bits.open(last);
        }
        loop {
            match finish {
                Finish::Open { frames, in_vain } => {
                    if *in_vain && self.tail_calls_in_vain(frames, sink)?
                        || self.ends_here(frames, sink)?
                    {
                        return Ok(());
                    }
                }
                Finish::Done => {
                    let nothing = self.current.is_none() && self.outer.is_empty();
                    if nothing && self.host_calls.is_empty() {
                        let left = self.bits.left();
                        return if left {
                            Err(RegenerateError::Late)
                        } else {
                            Ok(())
                        };
                    }
                }
            }
            match self.step(sink) {
                Ok(Next::Go) => {}
                Ok(Next::Idle) => return Err(RegenerateError::Elsewhere),
                // A path that would need more bits.
                Err(RegenerateError::Bits) if !self.bits.left() => {
                    let at = self.current.map_or(0, |at| at.function);
                    return Err(RegenerateError::Early(self.tables.id(at)));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the run ends in the path that comes next, or at the call that was reached last. Then that part of the
    /// path is told.
    fn ends_here<S: Sink>(
        &mut self,
        frames: &[FinalFrame],
        sink: &mut S,
    ) -> Result<bool, RegenerateError> {
        let Some(at) = self.current else {
            return Ok(false);
        };
        let Some((top, below)) = frames.split_last() else {
            return Ok(false);
        };
        if self.tables.id(at.function) != top.function || !self.waits_at(below) {
            return Ok(false);
        }
        let width = self.tables.width(at.function, at.start);
        let Ok(number) = self.bits.peek(width) else {
            return Ok(false);
        };
        if self.bits.more_than(width) {
            return Ok(false);
        }
        let _ = self.tables.walk(at.function, at.start, number)?;
        let blocks = self.tables.walked();
        let Some(last) = blocks.iter().position(|&b| b == top.block) else {
            return Ok(false);
        };
        let part = &blocks[..=last];
        self.time += part.len() as u64;
        let node = sink.define(ExecutedPath {
            function: self.tables.id(at.function),
            blocks: part,
        });
        sink.path(node);
        self.current = Some(Activation {
            block: top.block,
            ..at
        });
        self.bits.take(width)?;
        Ok(true)
    }

    /// Whether the outer activations are these, each in a call.
    fn waits_at(&self, frames: &[FinalFrame]) -> bool {
        let same = |(a, f): (&Activation, &FinalFrame)| {
            self.tables.id(a.function) == f.function && a.block == f.block
        };
        self.outer.len() == frames.len() && self.outer.iter().zip(frames).all(same)
    }

    /// Whether the next path, which uses up the bits, replaces its activation by one that the stack has no room for. Then
    /// the path is told.
    fn tail_calls_in_vain<S: Sink>(
        &mut self,
        frames: &[FinalFrame],
        sink: &mut S,
    ) -> Result<bool, RegenerateError> {
        let Some(at) = self.current else {
            return Ok(false);
        };
        let width = self.tables.width(at.function, at.start);
        let Ok(number) = self.bits.peek(width) else {
            return Ok(false);
        };
        if self.bits.more_than(width) || !self.waits_at(frames) {
            return Ok(false);
        }
        let path = self.tables.path(at.function, at.start, number, sink)?;
        if !matches!(path.end, PathEnd::TailCall { .. }) {
            return Ok(false);
        }
        self.bits.take(width)?;
        sink.path(path.node);
        self.time += u64::from(path.length);
        sink.leave();
        self.current = None;
        Ok(true)
    }
}
