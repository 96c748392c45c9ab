//! Follows a value at the end of an execution into callees, back to callers, and to handlers.

use std::rc::Rc;

use afterimage_machine::NodeEnd;
use afterimage_program::EdgeKind;
use afterimage_wpp::{Activation, Segments, Visit};

use super::held::{Frame, Holders};
use crate::trace::caught::{Caught, throws};
use crate::trace::{Compiled, Epochs, Failure, Instance, TraceError};

/// The results of a call that hold the followed value.
#[derive(Clone, Debug)]
enum FollowedResults {
    /// The results at these positions, ascending.
    These(Vec<u32>),
    /// All results, because the value is the call's result.
    All,
}

impl FollowedResults {
    fn is_none(&self) -> bool {
        matches!(self, Self::These(these) if these.is_empty())
    }
}

/// The parts of an exception that hold the followed value.
enum Thrown {
    /// No part of the exception.
    Nothing,
    /// The values at these positions of the exception, ascending.
    These(Vec<u32>),
    /// The reference to the exception.
    Reference,
    /// All values of the exception, and the reference.
    All,
}

impl Thrown {
    /// Returns the positions among the values that a handler receives.
    fn positions(&self, caught: Caught) -> Vec<u32> {
        match self {
            Self::Nothing => Vec::new(),
            Self::These(these) => {
                let these = these.iter().copied();
                these.filter(|&i| i < caught.count()).collect()
            }
            Self::Reference => vec![caught.count()],
            Self::All => (0..=caught.count()).collect(),
        }
    }
}

const MISSING: &str = "a call without an end";

impl<'a, S: Segments, E: Epochs> Holders<'_, 'a, S, E>
where
    S::Error: std::error::Error + 'static,
{
    /// Begins with the values that an execution passed on at its end. These are results of its
    /// call, or thrown values.
    pub(super) fn after(&mut self, instance: Instance) -> Result<(), Failure<S, E>> {
        let Some(frame) = self.frames.last() else {
            return Ok(());
        };
        let (depth, last) = (frame.depth, Rc::clone(&frame.last));
        self.cursor.next().map_err(TraceError::Path)?;
        match last.code.end {
            NodeEnd::Call { .. } => {
                self.skip(depth)?;
                self.settle(FollowedResults::All, &Thrown::Nothing)
            }
            NodeEnd::TailCall { .. } if !self.trace.replaced(instance)? => {
                self.frames.pop();
                self.give_to_caller(depth, FollowedResults::All)
            }
            NodeEnd::Throw { .. } => {
                self.settle(FollowedResults::These(Vec::new()), &Thrown::Reference)
            }
            NodeEnd::Rethrow { .. } => {
                self.settle(FollowedResults::These(Vec::new()), &Thrown::All)
            }
            _ => {
                self.frames.clear();
                Ok(())
            }
        }
    }

    /// Leaves an execution. `passed` gives the positions of the followed value among the values
    /// that the execution passes on at its end.
    pub(super) fn leave(
        &mut self,
        visit: Visit,
        compiled: &Compiled,
        passed: Vec<u32>,
    ) -> Result<(), Failure<S, E>> {
        let next = self.cursor.next().map_err(TraceError::Path)?;
        let (Some(frame), Some(_)) = (self.frames.last_mut(), next) else {
            // The run is over.
            self.frames.clear();
            return Ok(());
        };
        let depth = frame.depth;
        let code = &compiled.code;
        match &code.end {
            NodeEnd::Next => {
                self.forget_slots();
                Ok(())
            }
            NodeEnd::Call { .. } if self.cursor.depth() == depth + 1 && !passed.is_empty() => {
                self.enter(depth + 1, passed)
            }
            // The activation no longer matters.
            NodeEnd::Call { .. } if frame.held.is_empty() => Ok(()),
            NodeEnd::Call { .. } => {
                self.skip(depth)?;
                self.settle_without()
            }
            NodeEnd::TailCall { .. } => {
                let instance = self.trace.numbered(visit.node, visit.start)?;
                let replaced = self.trace.replaced(instance)?;
                self.frames.pop();
                if replaced {
                    self.enter(depth, passed)
                } else {
                    self.give_to_caller(depth, FollowedResults::These(Vec::new()))
                }
            }
            NodeEnd::Return(_) => {
                self.frames.pop();
                self.give_to_caller(depth, FollowedResults::These(passed))
            }
            NodeEnd::Throw { .. } => {
                self.settle(FollowedResults::These(Vec::new()), &Thrown::These(passed))
            }
            NodeEnd::Rethrow { .. } => self.settle_without(),
            NodeEnd::Trap => {
                self.frames.clear();
                Ok(())
            }
        }
    }

    /// Enters the callee's activation, in which these arguments hold the followed value.
    fn enter(&mut self, depth: usize, arguments: Vec<u32>) -> Result<(), Failure<S, E>> {
        let Some(visit) = self.cursor.visit() else {
            self.frames.clear();
            return Ok(());
        };
        let first = self.trace.compiled(visit.node)?;
        // When an activation returns, its caller is found again. So the outermost frame is kept
        // only if its own activation holds the value.
        if self.frames.len() == 1 && self.frames[0].held.is_empty() {
            self.frames.clear();
        }
        self.frames.push(Frame::new(depth, arguments, first));
        Ok(())
    }

    /// Skips the callees of the activation at a depth.
    pub(super) fn skip(&mut self, depth: usize) -> Result<(), Failure<S, E>> {
        while self.cursor.depth() > depth {
            self.cursor.skip_activation().map_err(TraceError::Path)?;
        }
        Ok(())
    }

    /// Continues when the innermost activation's callee has ended, by an exception or otherwise, or
    /// when the activation itself has thrown. The cursor is at the next execution. `given` selects
    /// the followed value among the received results, and `thrown` among the parts of the
    /// activation's own exception.
    fn settle(&mut self, given: FollowedResults, thrown: &Thrown) -> Result<(), Failure<S, E>> {
        let trace = self.trace;
        let Some(landed) = self.cursor.visit() else {
            self.frames.clear();
            return Ok(());
        };
        let mut before = self.cursor.clone();
        let thrower = before.previous().map_err(TraceError::Path)?;
        let thrower = thrower.ok_or(TraceError::Damaged(MISSING))?;
        if !throws(&trace.compiled(thrower.node)?.code) {
            return self.give(given);
        }
        let caught = trace.catch(trace.numbered(thrower.node, thrower.start)?)?;
        let Some(caught) = caught else {
            self.frames.clear();
            return Ok(());
        };
        let handler = before.depth().checked_sub(caught.unwound);
        let handler = handler.ok_or(TraceError::Damaged("activations that are not open"))?;
        while self.frames.last().is_some_and(|top| top.depth > handler) {
            self.frames.pop();
        }
        let got = thrown.positions(caught);
        match self.frames.last() {
            // A callee caught the exception, and then returned.
            Some(top) if top.depth < handler => return self.give(given),
            None if got.is_empty() => return Ok(()),
            _ => {}
        }
        if self.cursor.depth() == handler && self.handles(handler, landed)? {
            if self.frames.is_empty() {
                // The callee held the value, but this activation does not.
                let mut cursor = self.cursor.clone();
                let last = cursor.previous_in_activation().map_err(TraceError::Path)?;
                let last = last.ok_or(TraceError::Damaged(MISSING))?;
                let last = trace.compiled(last.node)?;
                self.frames.push(Frame::new(handler, Vec::new(), last));
            }
            let Some(top) = self.frames.last_mut() else {
                return Ok(());
            };
            let held = top.held.iter().copied();
            let held = held.filter(|&v| caught.part(v).is_none());
            let got = got.into_iter().filter_map(|i| caught.variable(i));
            let mut held = Vec::from_iter(held.chain(got));
            held.sort_unstable();
            top.hold(held);
            return Ok(());
        }
        // The handler was the activation's own label.
        self.frames.pop();
        self.give_to_caller(handler, FollowedResults::These(got))
    }

    /// Whether the execution after an exception is a handler of the activation that caught the
    /// exception. `depth` must be the depth of that activation.
    fn handles(&self, depth: usize, landed: Visit) -> Result<bool, Failure<S, E>> {
        let compiled = self.trace.compiled(landed.node)?;
        let body = self.trace.body(compiled.code.function)?;
        let cfg = &body.function.cfg;
        let mut arrivals = cfg.graph.in_edges(compiled.code.first).iter();
        let catches = arrivals.any(|&edge| matches!(cfg.edges[edge].kind, EdgeKind::Catch(_)));
        if !catches || depth > 1 {
            return Ok(catches);
        }
        // The host may have begun another activation.
        let stack = self.cursor.stack().map_err(TraceError::Path)?;
        Ok(stack.last().is_some_and(|last| last.entered < landed.start))
    }

    /// Continues when the callee of the innermost activation has ended without passing on the
    /// value.
    pub(super) fn settle_without(&mut self) -> Result<(), Failure<S, E>> {
        self.settle(FollowedResults::These(Vec::new()), &Thrown::Nothing)
    }

    /// Passes on the values that an activation returned to its caller. The activation has this
    /// depth, and no frame.
    fn give_to_caller(
        &mut self,
        depth: usize,
        given: FollowedResults,
    ) -> Result<(), Failure<S, E>> {
        let mut stack = None;
        if !self.caller(depth, &given, &mut stack)? {
            return Ok(());
        }
        self.give_on(given, stack)
    }

    /// Adds the frame of the caller, if there is no frame and the caller's results matter. Returns
    /// whether there is a frame.
    fn caller(
        &mut self,
        depth: usize,
        given: &FollowedResults,
        stack: &mut Option<Vec<Activation>>,
    ) -> Result<bool, Failure<S, E>> {
        if !self.frames.is_empty() {
            return Ok(true);
        }
        let (Some(landed), false) = (self.cursor.visit(), given.is_none() || depth <= 1) else {
            return Ok(false);
        };
        let depth = depth - 1;
        let mut cursor = self.cursor.clone();
        // The caller continues, or has also ended.
        let mut call = None;
        if cursor.depth() == depth {
            let before = cursor.previous_in_activation();
            call = before.map_err(TraceError::Path)?;
        }
        if call.is_none() {
            let missing = TraceError::Damaged(MISSING);
            let mut visit = cursor.seek(landed.start - 1).map_err(TraceError::Path)?;
            if stack.is_none() {
                *stack = Some(cursor.stack().map_err(TraceError::Path)?);
            }
            let known = stack.as_ref().and_then(|stack| stack.get(depth));
            if let Some(callee) = known {
                visit = cursor
                    .seek(callee.entered.saturating_sub(1))
                    .map_err(TraceError::Path)?;
            }
            // Skip activations that tail calls replaced.
            while cursor.depth() > depth {
                let stack = cursor.stack().map_err(TraceError::Path)?;
                let entered = stack.get(depth).map_or(0, |callee| callee.entered);
                visit = cursor
                    .seek(entered.saturating_sub(1))
                    .map_err(TraceError::Path)?;
            }
            call = Some(visit.ok_or(missing)?);
        }
        let call = call.ok_or(TraceError::Damaged(MISSING))?;
        let compiled = self.trace.compiled(call.node)?;
        self.frames.push(Frame::new(depth, Vec::new(), compiled));
        Ok(true)
    }

    /// Passes on the values that the innermost activation's call returned.
    fn give(&mut self, given: FollowedResults) -> Result<(), Failure<S, E>> {
        self.give_on(given, None)
    }

    fn give_on(
        &mut self,
        mut given: FollowedResults,
        mut stack: Option<Vec<Activation>>,
    ) -> Result<(), Failure<S, E>> {
        while let Some(top) = self.frames.last_mut() {
            let code = &top.last.code;
            let NodeEnd::Call { .. } = code.end else {
                return Err(TraceError::Damaged(MISSING));
            };
            let range = self.trace.result_variables(code);
            let mut held = Vec::from_iter(top.held.iter().copied().filter(|v| !range.contains(v)));
            match given {
                FollowedResults::All => held.extend(range.clone()),
                FollowedResults::These(these) => {
                    let these = these.iter().filter_map(|&i| range.start.checked_add(i));
                    held.extend(these.filter(|v| range.contains(v)));
                }
            }
            held.sort_unstable();
            if code.next.is_some() {
                if self.cursor.depth() != top.depth {
                    return Err(TraceError::Damaged(MISSING));
                }
                top.hold(held);
                self.forget_slots();
                return Ok(());
            }
            // The activation returned the call's results as its own.
            let results = self.trace.results(code.function)?;
            let mut returned = Vec::new();
            for index in 0..results {
                let variable = (range.end + index).saturating_sub(results);
                if held.binary_search(&variable).is_ok() {
                    returned.push(index);
                }
            }
            let depth = top.depth;
            self.frames.pop();
            given = FollowedResults::These(returned);
            if !self.caller(depth, &given, &mut stack)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Drops slots of the operand stack that are no longer in use.
    fn forget_slots(&mut self) {
        let trace = self.trace;
        if let Some(top) = self.frames.last_mut()
            && let Some(next) = top.last.code.next
            && let Ok(body) = trace.body(top.last.code.function)
            && let Some(used) = body.slots.at_start.get(next)
        {
            let used = body.slots.of_slot(used.len() as u32);
            if top.held.last().is_some_and(|&last| last >= used) {
                let held = top.held.iter().copied().filter(|&v| v < used);
                let held = held.collect();
                top.hold(held);
            }
        }
    }
}
