//! Regenerates the end of a run. When the tokens are used up, the recorded end shows where the path
//! stops.

use afterimage_ids::FuncId;
use afterimage_program::BlockKind;

use super::{PathSink, Phase, Regenerator, Step, TokenReader, WitnessError};
use crate::{FinalFrame, Finish};

/// An empty stream of tokens.
struct Nothing;

impl TokenReader for Nothing {
    fn peek(&mut self, _: u8) -> u32 {
        0
    }

    fn take(&mut self, _: u8) -> bool {
        false
    }

    fn is_empty(&self) -> bool {
        true
    }
}

impl Regenerator<'_> {
    /// Continues to the end of the run. [`Regenerator::advance`] must have read all tokens, and all
    /// calls by the host must have been added.
    ///
    /// After the last token, everything is determined. Consider a branch that is still to come. No
    /// silent path leads from it to a call that writes or to EXIT, so its activation cannot end,
    /// and is among the final activations. There is no silent diamond, so only one silent way leads
    /// to the block where that activation ended. No state of the stack recurs, because there is no
    /// silent cycle and every function that ends with a tail call has written. So the first state
    /// that agrees with the end is the end.
    ///
    /// # Errors
    /// Returns an error if the run does not reach its end.
    pub fn finish<S: PathSink>(
        &mut self,
        finish: &Finish,
        sink: &mut S,
    ) -> Result<(), WitnessError> {
        self.depth_at_token = self.stack.len();
        loop {
            if self.phase == Phase::Arrives
                && let Some(top) = self.stack.last()
            {
                let cfg = &self.program.functions[top.function as usize].cfg;
                if cfg.blocks[top.at].kind == BlockKind::Code {
                    sink.blocks(&[top.at]);
                }
            }
            let is_over = match finish {
                Finish::Open(frames) => self.is_end(frames),
                Finish::Done => self.stack.is_empty() && self.host_calls.is_empty(),
            };
            if is_over {
                return Ok(());
            }
            self.step_to(finish, sink)?;
        }
    }

    /// Whether the open activations equal `frames`.
    fn is_end(&self, frames: &[FinalFrame]) -> bool {
        let same = |i: usize| {
            let (activation, frame) = (&self.stack[i], &frames[i]);
            activation.at == frame.block && self.id(activation.function) == frame.function
        };
        // The innermost frames are the most likely to differ.
        self.stack.len() == frames.len()
            && (0..frames.len()).rev().all(same)
            && self.host_calls.is_empty()
    }

    fn id(&self, function: u32) -> FuncId {
        self.program.functions[function as usize].id
    }

    /// Moves from the end of one vertex to the beginning of the next.
    fn step_to<S: PathSink>(&mut self, finish: &Finish, sink: &mut S) -> Result<(), WitnessError> {
        let frames = match finish {
            Finish::Open(frames) => &frames[..],
            Finish::Done => &[],
        };
        let (program, depth, phase) = (self.program, self.stack.len(), self.phase);
        // As in `enter`, a function that calls itself silently never returns. So beyond the final
        // activations, each function is open at most once.
        if depth > frames.len().max(self.depth_at_token) + self.tables.len() {
            return Err(WitnessError::Elsewhere);
        }
        let Some((top, table, cfg)) = self.top() else {
            let function = self.host_calls.pop_front().ok_or(WitnessError::Elsewhere)?;
            return self.call_by_host(function, &mut Nothing, sink).map(|_| ());
        };
        if let Phase::Returned { thrown } = phase {
            return self.go_on(thrown, &mut Nothing, sink).map(|_| ());
        }
        let id = program.functions[top.function as usize].id;
        let edge = match table.step(top.at) {
            Step::Branch(_) => {
                let frame = frames.get(depth - 1).filter(|f| f.function == id);
                let frame = frame.ok_or(WitnessError::Early(id))?;
                let edge = table.lead_to(cfg, top.at, frame.block);
                Some(edge.ok_or(WitnessError::Elsewhere)?)
            }
            Step::TailCall(target) => {
                self.leave(false, sink);
                // The stack may have had no room for the callee.
                let in_vain = matches!(finish, Finish::Open(_)) && self.is_end(frames);
                return if in_vain {
                    Ok(())
                } else {
                    self.follow_tail_call(target, id, &mut Nothing, sink)
                        .map(|_| ())
                };
            }
            Step::Stop => return Err(WitnessError::Elsewhere),
            _ => None,
        };
        match edge {
            Some(edge) => self.cross(edge, &mut Nothing, sink)?,
            None => self.end_of_vertex(&mut Nothing, sink)?,
        };
        Ok(())
    }
}
