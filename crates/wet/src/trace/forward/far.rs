//! Skips long stretches in which nothing touches the variables that hold a value.

use std::rc::Rc;

use afterimage_ids::NodeId;
use afterimage_machine::{NodeCode, NodeEnd};
use afterimage_program::EdgeKind;
use afterimage_wpp::{Occurrences, Segments};

use super::held::Holders;
use crate::trace::{Epochs, Failure, TraceError};

/// The executions of a function's nodes that touch the variables holding the value, by reading or
/// writing them.
pub(super) struct Touching<'a, S: Segments>(Option<Occurrences<'a, S>>);

impl<'a, S: Segments, E: Epochs> Holders<'_, 'a, S, E>
where
    S::Error: std::error::Error + 'static,
{
    /// Moves to the next execution in the innermost activation that touches the variables holding
    /// the value. If there is none, no variable holds the value any more.
    pub(super) fn leap(&mut self) -> Result<(), Failure<S, E>> {
        let touching = self.touching()?;
        let (Some(top), Some(visit)) = (self.frames.last(), self.cursor.visit()) else {
            return Ok(());
        };
        let Some(occurrences) = &touching.0 else {
            return Ok(());
        };
        let depth = top.depth;
        let end = self.cursor.activation_end().map_err(TraceError::Path)?;
        let end = end.unwrap_or(u64::MAX);
        let mut from = visit.start;
        loop {
            let next = occurrences.next_after(from - 1).map_err(TraceError::Path)?;
            let Some(next) = next.filter(|next| next.time <= end) else {
                if let Some(top) = self.frames.last_mut() {
                    top.hold(Vec::new());
                }
                return Ok(());
            };
            self.cursor.seek(next.time).map_err(TraceError::Path)?;
            if self.cursor.depth() == depth {
                return Ok(());
            }
            // The execution belongs to another activation of the function, which this activation
            // called.
            self.skip(depth)?;
            match self.cursor.visit() {
                Some(visit) if visit.start <= end => from = visit.start,
                _ => from = end.saturating_add(1),
            }
        }
    }

    /// Returns the executions that touch the variables holding the value, in the innermost
    /// activation's function. The first call takes O(nodes of the function).
    fn touching(&mut self) -> Result<Rc<Touching<'a, S>>, Failure<S, E>> {
        let nothing = Rc::new(Touching(None));
        let Some(top) = self.frames.last() else {
            return Ok(nothing);
        };
        if let Some(known) = &top.touching {
            return Ok(Rc::clone(known));
        }
        let trace = self.trace;
        let function = top.last.code.function;
        let body = trace.body(function)?;
        let slots = body.slots.locals.len() as u32;
        let mut edges = body.function.cfg.edges.values();
        let handles = edges.any(|edge| matches!(edge.kind, EdgeKind::Catch(_)));
        let touching = if handles && top.held.iter().any(|&variable| variable >= slots) {
            // A handler may write these slots, whichever node threw the exception.
            nothing
        } else {
            let mut touching: Vec<(NodeId, u64)> = Vec::new();
            for (id, node) in trace.path.nodes().iter() {
                if node.function != function {
                    continue;
                }
                let compiled = trace.compiled(id)?;
                let code = &compiled.code;
                let given = trace.result_variables(code);
                let touched = top.held.iter().any(|variable| {
                    code.inputs.binary_search(variable).is_ok()
                        || code.outputs.binary_search_by_key(variable, |o| o.0).is_ok()
                        || given.contains(variable)
                });
                if touched || returns(code) {
                    touching.push((id, 0));
                }
            }
            Rc::new(Touching(Some(trace.path.executions(touching)?)))
        };
        if let Some(top) = self.frames.last_mut() {
            top.touching = Some(Rc::clone(&touching));
        }
        Ok(touching)
    }
}

/// Returns whether the function returns the results of the node's call, possibly among other
/// values.
fn returns(code: &NodeCode) -> bool {
    matches!(code.end, NodeEnd::Call { .. }) && code.next.is_none()
}
