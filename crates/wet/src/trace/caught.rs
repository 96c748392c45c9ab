//! Finds caught exceptions, and the values that their handlers received.

use afterimage_ids::NodeId;
use afterimage_machine::{NodeCode, NodeEnd, Taker};
use afterimage_program::EdgeKind;
use afterimage_wpp::Segments;

use super::source::{Source, Taken};
use super::{Epochs, Failure, Instance, TraceError, WholeTrace};
use crate::model::Event;

/// An exception that a handler caught.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caught {
    /// The execution that threw or rethrew the exception.
    thrower: Instance,
    /// The number of activations that the exception ended.
    pub unwound: usize,
    /// The first variable for the caught values.
    first: u32,
    /// The number of the exception's values.
    count: u32,
}

/// A part of an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Carried {
    /// The execution that threw or rethrew the exception.
    thrower: Instance,
    /// The position of the value in the exception, or `None` for the reference to the exception.
    position: Option<u32>,
}

impl Caught {
    /// Returns the part that a variable receives, or `None` if it receives none. The variable after
    /// the values holds the reference. If the handler receives no reference, this variable is never
    /// queried.
    pub(super) fn part(self, variable: u32) -> Option<Carried> {
        self.part_at(variable.checked_sub(self.first)?)
    }

    /// Returns the part at a position.
    pub(super) fn part_at(self, position: u32) -> Option<Carried> {
        (position <= self.count).then_some(Carried {
            thrower: self.thrower,
            position: Some(position).filter(|&position| position < self.count),
        })
    }

    /// Returns the variable that receives the part at a position.
    pub(super) fn variable(self, position: u32) -> Option<u32> {
        self.first.checked_add(position)
    }

    /// Returns the number of the exception's values.
    pub(super) fn count(self) -> u32 {
        self.count
    }
}

/// Whether a node ends with an exception.
pub(super) fn throws(code: &NodeCode) -> bool {
    matches!(code.end, NodeEnd::Throw { .. } | NodeEnd::Rethrow { .. })
}

impl<S: Segments, E: Epochs> WholeTrace<'_, S, E>
where
    S::Error: std::error::Error + 'static,
{
    /// Returns the exception with which an execution ends, or `None` if no handler caught the
    /// exception.
    pub(super) fn catch(&self, thrower: Instance) -> Result<Option<Caught>, Failure<S, E>> {
        let compiled = self.compiled(thrower.node)?;
        let kept = self.kept(thrower, compiled.model.of_event(Event::Caught))?;
        let Some((unwound, variables)) = kept else {
            return Ok(None);
        };
        let unwound = usize::try_from(unwound);
        let unwound = unwound.map_err(|_| TraceError::Damaged("activations that are not open"))?;
        Ok(Some(Caught {
            thrower,
            unwound,
            first: (variables >> 32) as u32,
            count: variables as u32,
        }))
    }

    /// Returns the exception that a handler caught after a node, if the handler may have written a
    /// part of it to a variable. `follower` returns the next execution in the same activation, if
    /// there is one.
    pub(super) fn caught(
        &self,
        code: &NodeCode,
        variable: u32,
        follower: impl FnOnce() -> Result<Option<Instance>, Failure<S, E>>,
    ) -> Result<Option<Caught>, Failure<S, E>> {
        // A handler receives values on the operand stack.
        let calls = matches!(code.end, NodeEnd::Call { .. });
        if !calls && !throws(code) || variable < self.locals(code) {
            return Ok(None);
        }
        let Some(follower) = follower()? else {
            return Ok(None);
        };
        if !self.is_handler(follower.node)? {
            return Ok(None);
        }
        self.caught_by(follower)
    }

    /// Returns the exception caught by the handler with which an execution begins. Returns `None`
    /// if no exception was caught there, even if the block is a handler in its function.
    fn caught_by(&self, handler: Instance) -> Result<Option<Caught>, Failure<S, E>> {
        // If there was an exception, it was thrown right before the handler began.
        let mut cursor = self.path.cursor();
        cursor.seek(handler.time).map_err(TraceError::Path)?;
        let depth = cursor.depth();
        let Some(before) = cursor.previous().map_err(TraceError::Path)? else {
            return Ok(None);
        };
        if !throws(&self.compiled(before.node)?.code) {
            return Ok(None);
        }
        let thrown_at = cursor.depth();
        let caught = self.catch(self.numbered(before.node, before.start)?)?;
        Ok(caught.filter(|caught| thrown_at.checked_sub(caught.unwound) == Some(depth)))
    }

    /// Whether a node begins with a block that handles exceptions.
    fn is_handler(&self, node: NodeId) -> Result<bool, Failure<S, E>> {
        let compiled = self.compiled(node)?;
        let body = self.body(compiled.code.function)?;
        let cfg = &body.function.cfg;
        let mut arrivals = cfg.graph.in_edges(compiled.code.first).iter();
        Ok(arrivals.any(|&edge| matches!(cfg.edges[edge].kind, EdgeKind::Catch(_))))
    }

    /// Returns the execution that threw or rethrew the exception that an execution begins to
    /// handle, or `None` if the execution handles nothing.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    pub fn thrower(&self, handler: Instance) -> Result<Option<Instance>, Failure<S, E>> {
        if !self.is_handler(handler.node)? {
            return Ok(None);
        }
        let caught = self.caught_by(handler)?;
        Ok(caught.map(|caught| caught.thrower))
    }

    /// Returns the execution that begins by handling the exception that an execution throws.
    /// Returns `None` if the execution throws nothing. Also returns `None` if no execution handles
    /// the exception, because the activation that caught it returned the exception's values.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    pub fn handler(&self, thrower: Instance) -> Result<Option<Instance>, Failure<S, E>> {
        if !throws(&self.compiled(thrower.node)?.code) {
            return Ok(None);
        }
        let mut cursor = self.path.cursor();
        cursor.seek(thrower.time).map_err(TraceError::Path)?;
        let Some(next) = cursor.next().map_err(TraceError::Path)? else {
            return Ok(None);
        };
        let handler = self.numbered(next.node, next.start)?;
        let by = self.thrower(handler)?;
        Ok(by.filter(|by| *by == thrower).map(|_| handler))
    }

    /// Returns the origin of a part of an exception, one step back. The handler of a `throw`
    /// receives exactly the operands of the `throw`. The `throw` also makes the reference. The
    /// values that `throw_ref` throws come from the reference, because the reference represents the
    /// whole exception.
    pub(super) fn carried(&self, part: Carried) -> Result<Result<Taken, Source>, Failure<S, E>> {
        let Carried { thrower, position } = part;
        let compiled = self.compiled(thrower.node)?;
        Ok(match (&compiled.code.end, position) {
            (NodeEnd::Throw { values, .. }, Some(position)) => {
                let value = values.get(position as usize);
                let value = value.ok_or(TraceError::Damaged("a throw without values"))?;
                Ok((thrower, *value, Some(Taker::Given(position))))
            }
            (NodeEnd::Throw { .. }, None) | (NodeEnd::Rethrow { .. }, _) => {
                Err(Source::Thrown { instance: thrower })
            }
            _ => return Err(TraceError::Damaged("an exception that nothing threw")),
        })
    }

    /// Returns the next execution in the same activation, or `None` if there is none. If the
    /// execution ends with a call, examines each activation that replaced the callee in a tail
    /// call.
    pub(super) fn follower(&self, instance: Instance) -> Result<Option<Instance>, Failure<S, E>> {
        let mut cursor = self.path.cursor();
        cursor.seek(instance.time).map_err(TraceError::Path)?;
        let depth = cursor.depth();
        let mut visit = cursor.next().map_err(TraceError::Path)?;
        while visit.is_some() && cursor.depth() > depth {
            visit = cursor.skip_activation().map_err(TraceError::Path)?;
        }
        Ok(visit.map(|visit| Instance {
            time: visit.start,
            node: visit.node,
            number: 0,
        }))
    }
}
