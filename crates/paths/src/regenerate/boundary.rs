//! Continues to a boundary. This is a moment between two paths at which the run has written all
//! bits of the earlier paths.

use afterimage_ids::{BlockId, FuncId};

use super::stack::Activation;
use super::tables::Target;
use super::{FinalFrame, RegenerateError, Regenerator, Sink};

/// A moment when an activation is about to execute a block where paths begin. The block is a loop's
/// header or a function's first block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary {
    /// The activations that wait for a call, outermost first.
    pub waiting: Vec<FinalFrame>,
    /// The function that is active.
    pub function: FuncId,
    /// The header that the function has reached, or `None` if it was called and has executed
    /// nothing.
    pub header: Option<BlockId>,
}

impl Regenerator<'_> {
    /// Continues to the boundary at which the words fed so far end.
    ///
    /// The first state that agrees with the boundary is the right state, as at the end of a run.
    /// After the last bits, everything is determined, and no state recurs.
    pub(super) fn go_to<S: Sink>(
        &mut self,
        boundary: &Boundary,
        sink: &mut S,
    ) -> Result<(), RegenerateError> {
        if let Some(last) = self.bits.last() {
            self.bits.open(last);
        }
        while !self.is_at(boundary) {
            match self.step(sink, None) {
                Ok(super::Next::Go) => {}
                Ok(_) => return Err(RegenerateError::Elsewhere),
                Err(RegenerateError::Bits) if !self.bits.left() => {
                    return Err(RegenerateError::Elsewhere);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn is_at(&mut self, boundary: &Boundary) -> bool {
        if self.bits.left() || self.outer.len() != boundary.waiting.len() {
            return false;
        }
        let is_here = match (boundary.header, self.current, &self.pending) {
            (
                Some(header),
                Some(Activation {
                    function, start, ..
                }),
                _,
            ) => {
                self.tables.id(function) == boundary.function
                    && self.tables.start_of(function, header) == Some(start)
            }
            (None, None, Some((target, _))) => match target {
                Target::Defined(function) => self.tables.id(*function) == boundary.function,
                Target::Table(_) => true,
                Target::Import(_) => false,
            },
            _ => false,
        };
        is_here && self.waits_at(&boundary.waiting)
    }
}
