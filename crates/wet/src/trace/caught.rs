//! Exceptions that were caught, and what their handlers got.

use afterimage_machine::{NodeCode, NodeEnd};
use afterimage_program::EdgeKind;
use afterimage_wpp::Segments;

use super::{Epochs, Failure, Instance, TraceError, WholeTrace};
use crate::model::Event;

/// What became of an exception.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caught {
    /// How many activations it ended.
    pub unwound: usize,
    /// The first variable that gets what is caught.
    first: u32,
    /// How many values it carries.
    count: u32,
}

impl Caught {
    /// Whether a variable gets a part of it. Behind the values may be a reference; if there is none, nobody asks for this variable.
    pub(super) fn gets(self, variable: u32) -> bool {
        let place = variable.checked_sub(self.first);
        place.is_some_and(|place| place <= self.count)
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
    /// What became of the exception that an execution ends with. `None` if it was not caught.
    pub(super) fn catch(&self, thrower: Instance) -> Result<Option<Caught>, Failure<S, E>> {
        let compiled = self.compiled(thrower.node)?;
        let kept = self.kept(thrower, compiled.model.of_event(Event::Caught))?;
        let Some((unwound, variables)) = kept else {
            return Ok(None);
        };
        let unwound = usize::try_from(unwound);
        let unwound = unwound.map_err(|_| TraceError::Damaged("activations that are not open"))?;
        Ok(Some(Caught {
            unwound,
            first: (variables >> 32) as u32,
            count: variables as u32,
        }))
    }

    /// Whether a variable may have been written by a handler after a node, and what it got: `follower` is the next execution in the same activation,
    /// if there is one.
    pub(super) fn caught(
        &self,
        code: &NodeCode,
        variable: u32,
        follower: impl FnOnce() -> Result<Option<Instance>, Failure<S, E>>,
    ) -> Result<Option<Caught>, Failure<S, E>> {
        // What a handler gets is on the operand stack.
        let calls = matches!(code.end, NodeEnd::Call { .. });
        if !calls && !throws(code) || variable < self.locals(code) {
            return Ok(None);
        }
        let body = self.body(code.function)?;
        let cfg = &body.function.cfg;
        let Some(follower) = follower()? else {
            return Ok(None);
        };
        let block = self.compiled(follower.node)?.code.first;
        let mut arrivals = cfg.graph.in_edges(block).iter();
        if !arrivals.any(|&edge| matches!(cfg.edges[edge].kind, EdgeKind::Catch(_))) {
            return Ok(None);
        }
        // The exception, if there was one, was thrown right before the handler began.
        let mut cursor = self.path.cursor();
        cursor.seek(follower.time).map_err(TraceError::Path)?;
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

    /// The next execution in the same activation. `None` if there is none. Takes a look at each activation that replaced the callee of
    /// the call that it ends with.
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
