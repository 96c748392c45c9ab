//! Determines whether a parameter's place may hold another value, because the place has been
//! written since the call began or is shared.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use afterimage_ids::{BlockId, FuncId, NodeId, OpId, OrigOffset};
use afterimage_variables::{
    FunctionScopes, Machine, Piece, Unavailable, Variable, VariableKind, VariableLocation,
    Variables, Word,
};
use afterimage_wpp::{NodeFilter, Visit};
use wasmparser::Operator;

use super::{Activation, Bodies, StateError};
use crate::whole_path::RecordedPath;

/// The operators that write a local.
pub(super) type Sets = Rc<[(OpId, OrigOffset)]>;

/// The reason why a parameter's place may hold a value other than the parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The time of the write's block or, without a write, the time of the moment.
    pub time: u64,
    /// The operator that wrote. Without a write, this is the first operator of the code for which
    /// the debug information names the place.
    pub offset: OrigOffset,
    /// The possible cause of another value in the place.
    pub by: Writer,
}

/// The possible cause of another value in a parameter's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The only operator of the function that writes the local.
    Only,
    /// One of several operators that write the local.
    Several,
    /// The place is a slot of the operand stack.
    Slot,
    /// The place in memory also belongs to another variable.
    Shared,
}

/// Contents in which all data is 0. They record the locals that a location reads, and whether it
/// reads a slot of the operand stack, a global or memory.
#[derive(Default)]
struct Probe {
    locals: RefCell<Vec<u32>>,
    slots: Cell<bool>,
    others: Cell<bool>,
}

impl Machine for Probe {
    fn local(&self, index: u32) -> Option<Word> {
        self.locals.borrow_mut().push(index);
        Some(Word::w32(0))
    }

    fn global(&self, _: u32) -> Option<Word> {
        self.others.set(true);
        Some(Word::w32(0))
    }

    fn stack(&self, _: u32) -> Option<Word> {
        self.slots.set(true);
        Some(Word::w32(0))
    }

    fn memory(&self, _: u64, into: &mut [u8]) -> bool {
        self.others.set(true);
        into.fill(0);
        true
    }

    // A write to a local does not change the local's value at the entry.
    fn at_entry(&self, _: u32) -> Option<Word> {
        Some(Word::w32(0))
    }
}

/// The places that a location reads.
struct Probed {
    locals: Vec<u32>,
    /// Whether a slot of the operand stack is read to find the place.
    slots: bool,
    /// Whether a global or memory is read to find the place.
    others: bool,
    /// The pieces of the variable, or the reason why it has no location.
    pieces: Result<Vec<Piece>, Unavailable>,
}

fn probe(known: &Variables<'_>, variable: &Variable, at: Option<OrigOffset>) -> Probed {
    let probe = Probe::default();
    let located = known.locate(variable, at, &probe);
    let mut locals = probe.locals.into_inner();
    let pieces = located.map(|object| object.pieces);
    locals.extend(
        pieces
            .iter()
            .flatten()
            .filter_map(|piece| match piece.place {
                VariableLocation::Local(local) => Some(local),
                _ => None,
            }),
    );
    locals.sort_unstable();
    locals.dedup();
    Probed {
        locals,
        slots: probe.slots.get(),
        others: probe.others.get(),
        pieces,
    }
}

/// Returns the locals that determine a variable's value at an offset, ascending. Returns `None` if
/// the operand stack, a global or memory also determines it.
pub fn locals_of(
    known: &Variables<'_>,
    variable: &Variable,
    at: Option<OrigOffset>,
) -> Option<Vec<u32>> {
    let found = probe(known, variable, at);
    let only = match &found.pieces {
        Ok(pieces) => pieces.iter().all(|piece| {
            use VariableLocation as Place;
            matches!(
                piece.place,
                Place::Local(_) | Place::Value(_) | Place::OptimisedOut
            )
        }),
        // There is no value there.
        Err(Unavailable::OptimisedOut | Unavailable::NotHere { .. }) => true,
        Err(_) => false,
    };
    (only && !found.slots && !found.others).then_some(found.locals)
}

/// The places on which a parameter's value depends. These are the locals that hold the value or
/// parts of it, point to it, or are used to compute it. The place in memory also counts if it may
/// belong to another variable.
pub(super) struct Doubt {
    locals: Vec<u32>,
    /// The number of the function's locals that are arguments.
    arguments: usize,
    /// The first code for which the debug information gives the parameter a place. A local that is
    /// not an argument belongs to the parameter alone if its only write comes right before this
    /// code. A local that is also written elsewhere holds another variable at other times.
    start: Option<OrigOffset>,
    /// The code at which doubts about the place begin, and their reason. A slot of the operand
    /// stack that holds the parameter, or a part of it, may contain the latest result instead.
    /// Alternatively, another variable shares the parameter's memory.
    place: Option<(OrigOffset, Writer)>,
}

/// Returns the doubt about a parameter at a moment. Returns `None` if the parameter is in no local
/// and no slot of the operand stack, and no other variable shares its memory.
///
/// Optimised code may store another value in a local while the debug information still names the
/// local for the parameter, or names it again later. An assignment in the source looks the same. So
/// the value after a write is shown together with the write.
pub(super) fn doubt(
    known: &Variables<'_>,
    function: &FunctionScopes,
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
    // Without an offset, the parameter does not count as a part of the frame, because the function
    // itself sets up the frame.
    let Probed {
        locals,
        slots,
        pieces,
        ..
    } = probe(known, variable, is_list.then_some(at));
    let on_stack = |piece: &Piece| matches!(piece.place, VariableLocation::OperandStack(_));
    let place = if slots || pieces.iter().flatten().any(on_stack) {
        Some((here, Writer::Slot))
    } else {
        // A damaged entry has no value, so this default does not matter.
        let is_shared = known.is_shared(function, variable).unwrap_or(true);
        is_shared.then_some((here, Writer::Shared))
    };
    (place.is_some() || !locals.is_empty()).then_some(Doubt {
        locals,
        arguments,
        start,
        place,
    })
}

/// Returns the encoded size of `local.set` and `local.tee`, which consist of the opcode and the
/// local in LEB128.
fn set_bytes(local: u32) -> u32 {
    1 + (u32::BITS - local.leading_zeros()).div_ceil(7).max(1)
}

impl Doubt {
    /// Returns the last write since the call that may have put another value in the parameter's
    /// place before a moment in the block at `time`. `written` returns the last write to a local
    /// ([`Activation::written`]). A doubt about a slot of the operand stack, or about shared
    /// memory, counts as a write at the code where the doubt begins.
    ///
    /// # Errors
    /// Returns the same errors as `written`.
    pub(super) fn written<E>(
        &self,
        time: u64,
        written: impl Fn(u32) -> Result<Option<Written>, E>,
    ) -> Result<Option<Written>, E> {
        let place = self.place;
        let mut last = place.map(|(offset, by)| Written { time, offset, by });
        for &local in &self.locals {
            let found = written(local)?.filter(|write| {
                let after = OrigOffset(write.offset.0.saturating_add(set_bytes(local)));
                let is_argument = (local as usize) < self.arguments;
                is_argument || write.by != Writer::Only || self.start != Some(after)
            });
            let key = |write: &Written| (write.time, write.offset);
            last = last.into_iter().chain(found).max_by_key(key);
        }
        Ok(last)
    }
}

impl Bodies<'_> {
    /// Returns the operators of a function that write a local, ascending. O(operators) on first
    /// use.
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

impl Activation<'_> {
    /// Returns the activation's last write to a local. Returns `None` if there was no write, so a
    /// parameter still has its argument. The nodes may have other numbers in this path than in the
    /// path by which the activation was found.
    ///
    /// Takes O(nodes of the path). Opens the segments that execute a node with a write, and the
    /// segments of the moment and of the activation's beginning.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn written(
        &self,
        path: &RecordedPath,
        bodies: &Bodies<'_>,
        local: u32,
    ) -> Result<Option<Written>, StateError> {
        let sets = bodies.sets(self.function, local);
        if sets.is_empty() {
            return Ok(None);
        }
        let mut cursor = path.cursor();
        let here = cursor.seek(self.time)?;
        let here = here.ok_or(StateError::NoMoment(self.time))?;
        let writes = Writes {
            activation: self,
            path,
            sets,
        };
        if let Some(found) = writes.before_moment(here) {
            return Ok(Some(found));
        }
        let own = path.nodes().iter();
        let own = own.filter(|(_, node)| node.function == self.function);
        let writers = own.filter(|&(id, _)| writes.whole(id).is_some());
        let writers = NodeFilter::new(writers.map(|(id, _)| id));
        let last = cursor.previous_among(&writers)?;
        Ok(last.and_then(|visit| writes.of(visit)))
    }
}

/// The writes of an activation to a local, by nodes of a path.
struct Writes<'w, 'a> {
    activation: &'w Activation<'a>,
    path: &'w RecordedPath,
    sets: Sets,
}

impl Writes<'_, '_> {
    /// Returns the position of the block with the last write among some blocks, and the operator's
    /// offset. With `before`, only writes before that operator count in the last block.
    fn last_in(&self, blocks: &[BlockId], before: Option<OpId>) -> Option<(u64, OrigOffset)> {
        let function = self.activation.program.function(self.activation.function)?;
        for (position, block) in blocks.iter().enumerate().rev() {
            let ops = &function.cfg.blocks.get(*block)?.ops;
            let end = match before {
                Some(before) if position + 1 == blocks.len() => before,
                _ => ops.end,
            };
            let writes = self.sets.partition_point(|set| set.0 < end);
            let last = self.sets[..writes].last();
            if let Some(&(_, offset)) = last.filter(|set| set.0 >= ops.start) {
                return Some((position as u64, offset));
            }
        }
        None
    }

    fn whole(&self, node: NodeId) -> Option<(u64, OrigOffset)> {
        self.last_in(&self.path.nodes()[node].blocks, None)
    }

    /// Returns the last write before the moment, within the execution of the node that contains the
    /// moment.
    fn before_moment(&self, visit: Visit) -> Option<Written> {
        let Activation { time, op, .. } = self.activation;
        let here = (time - visit.start) as usize + 1;
        let blocks = self.path.nodes()[visit.node].blocks.get(..here)?;
        let (position, offset) = self.last_in(blocks, Some(*op))?;
        Some(self.written(visit.start + position, offset))
    }

    fn of(&self, visit: Visit) -> Option<Written> {
        let (position, offset) = self.whole(visit.node)?;
        Some(self.written(visit.start + position, offset))
    }

    fn written(&self, time: u64, offset: OrigOffset) -> Written {
        let by = match self.sets.len() {
            1 => Writer::Only,
            _ => Writer::Several,
        };
        Written { time, offset, by }
    }
}
