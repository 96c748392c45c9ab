//! Follows the variables that hold a value along the path.

use std::rc::Rc;

use afterimage_ids::NodeId;
use afterimage_machine::{NodeCode, NodeEnd, Operand, Register};
use afterimage_wpp::{Cursor, Segments, Visit};

use super::Definition;
use super::far::Touching;
use crate::trace::{Compiled, Epochs, Failure, TraceError, WholeTrace};

/// An execution of a node that reads a value from registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The time of the execution's first block.
    pub time: u64,
    /// The node that was executed.
    pub node: NodeId,
    /// The registers that have the value, ascending. They are the variables that hold the value
    /// when the execution begins, or the instruction that computed the value.
    pub registers: Box<[Register]>,
}

/// An activation that has the value, or to which the value may return.
pub(super) struct Frame<'a, S: Segments> {
    /// The number of open activations, including this activation.
    pub depth: usize,
    /// The variables that hold the value, ascending.
    pub held: Vec<u32>,
    /// The node that the activation executed last.
    pub last: Rc<Compiled>,
    /// The number of nodes that the activation has executed since one of them touched the variables
    /// holding the value.
    idle: u32,
    /// The executions that touch these variables. They are computed only after a long walk.
    pub touching: Option<Rc<Touching<'a, S>>>,
}

impl<S: Segments> Clone for Frame<'_, S> {
    fn clone(&self) -> Self {
        Self {
            depth: self.depth,
            held: self.held.clone(),
            last: Rc::clone(&self.last),
            idle: self.idle,
            touching: self.touching.clone(),
        }
    }
}

impl<S: Segments> Frame<'_, S> {
    pub(super) fn new(depth: usize, held: Vec<u32>, last: Rc<Compiled>) -> Self {
        Self {
            depth,
            held,
            last,
            idle: 0,
            touching: None,
        }
    }

    pub(super) fn holds(&self, variable: u32) -> bool {
        self.held.binary_search(&variable).is_ok()
    }

    /// Changes the variables that hold the value.
    pub(super) fn hold(&mut self, held: Vec<u32>) {
        if self.held != held {
            self.held = held;
            self.touching = None;
        }
    }
}

/// The number of an activation's nodes that are walked before a faster method is tried.
const PATIENCE: u32 = 256;

/// The executions that read a value from variables, in order of time.
///
/// Walks along the path while a variable holds the value, and skips calls to which the value is not
/// passed. Time: O(nodes executed in these activations). For a long stretch that does not touch the
/// value, the walk takes only O(log n) for each of the function's nodes that touch it.
pub struct Holders<'t, 'a, S: Segments, E> {
    pub(super) trace: &'t WholeTrace<'a, S, E>,
    /// A cursor at the next execution to examine.
    pub(super) cursor: Cursor<'a, S>,
    /// The activations, from the outermost relevant activation to the innermost, without gaps.
    pub(super) frames: Vec<Frame<'a, S>>,
    /// The instruction that computes the value, if it is in the next execution.
    making: Option<usize>,
}

/// A position among the [`Holders`].
pub struct HoldersMark<'a, S: Segments> {
    time: u64,
    frames: Vec<Frame<'a, S>>,
    making: Option<usize>,
}

impl<'t, 'a, S: Segments, E: Epochs> Holders<'t, 'a, S, E>
where
    S::Error: std::error::Error + 'static,
{
    pub(super) fn new(
        trace: &'t WholeTrace<'a, S, E>,
        definition: Definition,
    ) -> Result<Self, Failure<S, E>> {
        let instance = definition.instance();
        let mut cursor = trace.path.cursor();
        cursor.seek(instance.time).map_err(TraceError::Path)?;
        let last = trace.compiled(instance.node)?;
        let frame = Frame::new(cursor.depth(), Vec::new(), last);
        let mut holders = Self {
            trace,
            cursor,
            frames: vec![frame],
            making: None,
        };
        match definition {
            Definition::Result { inst, .. } => holders.making = Some(inst),
            Definition::Write { .. } => holders.frames.clear(),
            Definition::After { instance } => holders.after(instance)?,
        }
        Ok(holders)
    }

    /// Returns the next holder.
    ///
    /// # Errors
    /// Returns an error if the trace is damaged or incomplete.
    #[expect(
        clippy::should_implement_trait,
        reason = "it can fail, which iterators cannot"
    )]
    pub fn next(&mut self) -> Result<Option<Held>, Failure<S, E>> {
        let mut leapt = false;
        while let (Some(top), Some(visit)) = (self.frames.last(), self.cursor.visit()) {
            if top.held.is_empty() && self.making.is_none() {
                // This activation no longer matters.
                self.frames.pop();
                if let Some(caller) = self.frames.last() {
                    let depth = caller.depth;
                    self.skip(depth)?;
                    self.settle_without()?;
                }
            } else if !leapt && (top.idle > PATIENCE || top.touching.is_some()) {
                self.leap()?;
                leapt = true;
            } else {
                leapt = false;
                if let Some(held) = self.pass(visit)? {
                    return Ok(Some(held));
                }
            }
        }
        self.frames.clear();
        Ok(None)
    }

    /// Returns the current position.
    pub fn mark(&self) -> HoldersMark<'a, S> {
        HoldersMark {
            time: self.cursor.visit().map_or(0, |visit| visit.start),
            frames: self.frames.clone(),
            making: self.making,
        }
    }

    /// Returns to a position.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn go(&mut self, mark: &HoldersMark<'a, S>) -> Result<(), Failure<S, E>> {
        self.frames.clone_from(&mark.frames);
        self.making = mark.making;
        self.cursor.seek(mark.time).map_err(TraceError::Path)?;
        Ok(())
    }

    /// Moves past the current execution, which belongs to the innermost activation.
    fn pass(&mut self, visit: Visit) -> Result<Option<Held>, Failure<S, E>> {
        let trace = self.trace;
        let making = self.making.take();
        let compiled = trace.compiled(visit.node)?;
        let code = &compiled.code;
        let Some(frame) = self.frames.last_mut() else {
            return Ok(None);
        };
        let mut registers = both(&frame.held, &code.inputs);
        if let Some(inst) = making {
            registers.push(code.first_result() + inst as u32);
        }
        let holds = |register: Register| match code.source(register) {
            Operand::Variable(variable) => frame.holds(variable),
            Operand::Result(inst) => making == Some(inst),
            Operand::Constant(_) => false,
        };
        let all = |registers: &[Register]| {
            let holding = (0..).zip(registers).filter(|&(_, &r)| holds(r));
            Vec::from_iter(holding.map(|(i, _)| i))
        };
        let passed = match &code.end {
            NodeEnd::Call { arguments, .. } | NodeEnd::TailCall { arguments, .. } => all(arguments),
            NodeEnd::Return(values) | NodeEnd::Throw { values, .. } => all(values),
            NodeEnd::Rethrow { .. } | NodeEnd::Next | NodeEnd::Trap => Vec::new(),
        };
        let touched = !registers.is_empty() || !both_outputs(&frame.held, code).is_empty();
        let held = if touched {
            after(&frame.held, code, holds)
        } else {
            frame.held.clone()
        };
        frame.hold(held);
        frame.idle = if touched {
            0
        } else {
            frame.idle.saturating_add(1)
        };
        frame.last = Rc::clone(&compiled);
        self.leave(visit, &compiled, passed)?;
        let held = Held {
            time: visit.start,
            node: visit.node,
            registers: registers.into(),
        };
        Ok((!held.registers.is_empty()).then_some(held))
    }
}

/// Returns the common members of two ascending lists.
fn both(a: &[u32], b: &[u32]) -> Vec<u32> {
    let common = a.iter().filter(|one| b.binary_search(one).is_ok());
    common.copied().collect()
}

/// Returns the variables in `held` that a node writes.
fn both_outputs(held: &[u32], code: &NodeCode) -> Vec<u32> {
    let written = |variable: &&u32| {
        let found = code.outputs.binary_search_by_key(*variable, |o| o.0);
        found.is_ok()
    };
    held.iter().filter(written).copied().collect()
}

/// Returns the variables that hold the value after a node.
fn after(held: &[u32], code: &NodeCode, holds: impl Fn(Register) -> bool) -> Vec<u32> {
    let written = |variable: u32| {
        code.outputs
            .binary_search_by_key(&variable, |o| o.0)
            .is_ok()
    };
    let mut after = Vec::from_iter(held.iter().copied().filter(|&v| !written(v)));
    let new = code.outputs.iter().filter(|&&(_, from)| holds(from));
    after.extend(new.map(|&(variable, _)| variable));
    after.sort_unstable();
    after
}
