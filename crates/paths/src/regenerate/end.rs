//! Regenerates the end of a run. When the bits are used up, the known end decides where the path
//! stops.

use afterimage_ids::{BlockId, FuncId};

use super::stack::Activation;
use super::{Next, RegenerateError, Regenerator, Sink};

/// An activation that was open when the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinalFrame {
    /// The activation's function.
    pub function: FuncId,
    /// The block in which the activation was.
    pub block: BlockId,
}

/// The way in which a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// No activation was open. Every call by the host had returned, or an exception had left the
    /// last activation.
    Done,
    /// These activations were open. The outermost comes first.
    Open(Vec<FinalFrame>),
}

impl Regenerator<'_> {
    /// Continues to the end of the run. All words and all calls by the host must have been fed.
    ///
    /// After the last bits, everything is determined. No state recurs, because every loop writes at
    /// least one bit. So the first state that agrees with the end is the end.
    ///
    /// # Errors
    /// Returns an error if the run does not reach its end.
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
                Finish::Open(frames) => {
                    if frames.is_empty() && self.calls_in_vain() || self.ends_here(frames, sink)? {
                        // The host's last call may have found no room on the stack.
                        let is_last = self.host_calls.len() <= 1;
                        return is_last.then_some(()).ok_or(RegenerateError::Late);
                    }
                }
                Finish::Done => {
                    if self.is_idle() && self.host_calls.is_empty() {
                        let left = self.bits.left();
                        return if left {
                            Err(RegenerateError::Late)
                        } else {
                            Ok(())
                        };
                    }
                }
            }
            let last = match finish {
                Finish::Open(frames) => Some(&frames[..]),
                Finish::Done => None,
            };
            match self.step(sink, last) {
                Ok(Next::Go) => {}
                Ok(Next::End) => return Ok(()),
                Ok(Next::Idle) => return Err(RegenerateError::Elsewhere),
                // The path would need more bits.
                Err(RegenerateError::Bits) if !self.bits.left() => {
                    let at = self.current.map_or(0, |at| at.function);
                    return Err(RegenerateError::Early(self.tables.id(at)));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether no activation is open or about to begin.
    fn is_idle(&self) -> bool {
        self.current.is_none() && self.outer.is_empty() && self.pending.is_none()
    }

    /// Whether only the host's last call remains, which found no room on the stack, or called an
    /// import.
    fn calls_in_vain(&self) -> bool {
        self.is_idle() && !self.bits.left() && self.host_calls.len() <= 1
    }

    /// Whether the run ends in the next path. If so, reports that part of the path.
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
        self.time += last as u64 + 1;
        let node = if last + 1 == blocks.len() {
            self.tables.path(at.function, at.start, number, sink)?.node
        } else {
            self.tables.shorten(last + 1);
            self.tables.define(at.function, None, sink)
        };
        sink.path(node);
        self.current = Some(Activation {
            block: top.block,
            ..at
        });
        self.bits.take(width)?;
        Ok(true)
    }

    /// Whether the outer activations equal `frames`, each waiting in a call.
    pub(super) fn waits_at(&self, frames: &[FinalFrame]) -> bool {
        let same = |(a, f): (&Activation, &FinalFrame)| {
            self.tables.id(a.function) == f.function && a.block == f.block
        };
        self.outer.len() == frames.len() && self.outer.iter().zip(frames).all(same)
    }
}
