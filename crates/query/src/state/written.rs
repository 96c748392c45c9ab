//! Whether a parameter's local was written since the call began.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use afterimage_ids::{FuncId, NodeId, OpId, OrigOffset};
use afterimage_variables::{Machine, Piece, Place, Variable, VariableKind, Variables, Word};
use afterimage_wpp::Visit;
use wasmparser::Operator;

use super::{Activation, Bodies, StateError};
use crate::values::{RecordedValues, ValuesError};

/// Where the code writes a local.
pub(super) type Sets = Rc<[(OpId, OrigOffset)]>;

/// A write to a local; or where the debug information begins to have a parameter in a slot of the operand stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The time of its block.
    pub time: u64,
    /// The operator.
    pub offset: OrigOffset,
}

/// Tells of all that a location reads that it is 0, and remembers which locals were asked about.
#[derive(Default)]
struct Probe {
    locals: RefCell<Vec<u32>>,
    slots: Cell<bool>,
}

impl Machine for Probe {
    fn local(&self, index: u32) -> Option<Word> {
        self.locals.borrow_mut().push(index);
        Some(Word::w32(0))
    }

    fn global(&self, _: u32) -> Option<Word> {
        Some(Word::w32(0))
    }

    fn stack(&self, _: u32) -> Option<Word> {
        self.slots.set(true);
        Some(Word::w32(0))
    }

    fn memory(&self, _: u64, into: &mut [u8]) -> bool {
        into.fill(0);
        true
    }

    // That is kept, whatever is written to the local.
    fn at_entry(&self, _: u32) -> Option<Word> {
        Some(Word::w32(0))
    }
}

/// The locals that tell a parameter, in whatever form: that hold it or parts of it, point to where it is, or are computed with.
pub(super) struct Doubt {
    locals: Vec<u32>,
    /// How many of the function's locals are arguments.
    arguments: usize,
    /// Where the debug information begins to have the parameter anywhere, unless that is where the function begins: a write of another local right before is
    /// the parameter's own. Where it begins to have it somewhere else the value may be another one already.
    start: Option<OrigOffset>,
    /// A slot of the operand stack has it, or a part of it, and what was computed last may be in that: from where on.
    slot: Option<OrigOffset>,
}

/// The doubt about a parameter at a moment. `None` if no local and no slot of the operand stack tells it.
///
/// Optimised code may keep something else in a local while the debug information goes on to have the parameter there, or has it there again later. It looks the same
/// if it is the source's own assignment that wrote it: what the local holds after a write is told, and that it was written.
pub(super) fn doubt(
    known: &Variables<'_>,
    variable: &Variable,
    at: OrigOffset,
    arguments: usize,
) -> Option<Doubt> {
    if variable.kind != VariableKind::Parameter {
        return None;
    }
    let listed = known.extents(variable);
    let is_list = listed.is_some();
    let code = listed.unwrap_or_else(|| match variable.inlined {
        0 => Vec::new(),
        _ => variable.scope.to_vec(),
    });
    let here = code.iter().find(|range| range.contains(&at));
    let here = here.map_or(at, |range| range.start);
    let start = code.iter().map(|range| range.start).min();
    let probe = Probe::default();
    // Without an offset nothing is in the frame: that is set by the function itself.
    let located = known.locate(variable, is_list.then_some(at), &probe);
    let mut locals = probe.locals.into_inner();
    let pieces = located.map_or(Vec::new(), |object| object.pieces);
    locals.extend(pieces.iter().filter_map(|piece| match piece.place {
        Place::Local(local) => Some(local),
        _ => None,
    }));
    locals.sort_unstable();
    locals.dedup();
    let on_stack = |piece: &Piece| matches!(piece.place, Place::OperandStack(_));
    let slot = probe.slots.get() || pieces.iter().any(on_stack);
    (slot || !locals.is_empty()).then_some(Doubt {
        locals,
        arguments,
        start,
        slot: slot.then_some(here),
    })
}

/// How many bytes `local.set` and `local.tee` take: the operator, and the local seven bits a byte.
fn set_bytes(local: u32) -> u32 {
    1 + (u32::BITS - local.leading_zeros()).div_ceil(7).max(1)
}

impl Doubt {
    /// The last write since the call that may have put something else there, at a moment in block T. `written` tells the last one to a local
    /// ([`Activation::written`]). Of a slot of the operand stack it is where the debug information begins to have the parameter there: compilers leave it in the
    /// slot when something else is computed in it.
    ///
    /// # Errors
    /// As `written`.
    pub(super) fn written<E>(
        &self,
        time: u64,
        written: impl Fn(u32) -> Result<Option<Written>, E>,
    ) -> Result<Option<Written>, E> {
        let mut last = self.slot.map(|offset| Written { time, offset });
        for &local in &self.locals {
            let found = written(local)?.filter(|write| {
                let behind = OrigOffset(write.offset.0.saturating_add(set_bytes(local)));
                (local as usize) < self.arguments || self.start != Some(behind)
            });
            let key = |write: &Written| (write.time, write.offset);
            last = last.into_iter().chain(found).max_by_key(key);
        }
        Ok(last)
    }
}

impl Bodies<'_> {
    /// The operators of a function that write a local, ascending; O(operators) when they are first asked for.
    fn sets(&self, function: FuncId, local: u32) -> Sets {
        let key = (function, local);
        if let Some(known) = self.sets.borrow().get(&key) {
            return Rc::clone(known);
        }
        let found = self.program.function(function).map(|function| {
            let operators = self.program.operators(self.module, function);
            let writes = operators.filter(|(_, _, operator)| {
                matches!(
                    operator,
                    Operator::LocalSet { local_index } | Operator::LocalTee { local_index }
                        if *local_index == local
                )
            });
            writes.map(|(op, offset, _)| (op, offset)).collect()
        });
        let found: Sets = found.unwrap_or_default();
        self.sets.borrow_mut().insert(key, Rc::clone(&found));
        found
    }
}

impl<'a> Activation<'a> {
    /// The last write to a local since the activation began with block `entered`. `None` if there was none: it holds what it was called with, if it is a
    /// parameter.
    ///
    /// O(nodes of the path), and where calls of the same function are open in each other O(nodes of the activation).
    ///
    /// # Errors
    /// If the path cannot be read.
    pub fn written(
        &self,
        values: &RecordedValues<'a>,
        bodies: &Bodies<'a>,
        entered: u64,
        local: u32,
    ) -> Result<Option<Written>, StateError> {
        let sets = bodies.sets(self.function, local);
        if sets.is_empty() {
            return Ok(None);
        }
        let last_in = |node: NodeId, count: usize, before: Option<OpId>| {
            let function = self.program.function(self.function)?;
            let blocks = values.path().nodes()[node].blocks.get(..count)?;
            for (position, block) in blocks.iter().enumerate().rev() {
                let ops = &function.cfg.blocks.get(*block)?.ops;
                let end = match before {
                    Some(before) if position + 1 == count => before,
                    _ => ops.end,
                };
                let writes = sets.partition_point(|set| set.0 < end);
                let last = sets[..writes].last().filter(|set| set.0 >= ops.start);
                if let Some(&(_, offset)) = last {
                    return Some((position as u64, offset));
                }
            }
            None
        };
        let whole = |node: NodeId| {
            let count = values.path().nodes()[node].blocks.len();
            last_in(node, count, None)
        };
        let instance = self.instance;
        let here = (self.time - instance.time) as usize + 1;
        if let Some((position, offset)) = last_in(instance.node, here, Some(self.op)) {
            let time = instance.time + position;
            return Ok(Some(Written { time, offset }));
        }
        let path = values.path();
        let own = path.nodes().iter();
        let own = own.filter(|(_, node)| node.function == self.function);
        let writers = own.filter_map(|(id, _)| Some((id, whole(id)?.0)));
        let writers = path.executions(writers).map_err(ValuesError::from)?;
        let before = writers.rank(instance.time.saturating_sub(1))?;
        if before == writers.rank(entered.saturating_sub(1))? {
            return Ok(None);
        }
        let written = |visit: Visit| {
            let (position, offset) = whole(visit.node)?;
            let time = visit.start + position;
            Some(Written { time, offset })
        };
        let mut cursor = path.cursor();
        if let Some(found) = writers.select(before)? {
            // It may be another activation's, called since.
            let visit = cursor.seek(found.time)?;
            let stack = cursor.stack()?;
            if stack.last().is_some_and(|own| own.entered == entered) {
                return Ok(visit.and_then(written));
            }
        }
        cursor.seek(instance.time)?;
        while let Some(visit) = cursor.previous_in_activation()? {
            if let Some(found) = written(visit) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}
