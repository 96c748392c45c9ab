//! Translates captured states from the rewritten module to the original program.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use afterimage_ids::{BlockId, EntityRef, FuncId, InstrOffset, OpId};
use afterimage_machine::{Body, MachineError, Next, Snapshot};
use afterimage_paths::{Boundary, FinalFrame};
use afterimage_program::{BlockEnd, Callee, OperatorIndex, Program};
use afterimage_rewrite::{OffsetMap, OriginalPlace};

use super::capture::{Captured, CapturedState};
use super::{ChangedPage, Open, Taken};
use crate::RecordError;

/// The size in bytes of the pages by which memories grow.
const WASM_PAGE: u64 = 65536;

/// A cut of the path, with its place in the original program.
pub(crate) struct Cut {
    /// The reading of the stop clock.
    pub clock: u64,
    /// The place of the cut in the path.
    pub boundary: Boundary,
    /// The snapshot, if one was taken at this cut. Its time is not set yet.
    pub taken: Option<Taken>,
}

/// Translates captured states.
pub(crate) struct Reader<'a> {
    program: &'a Program,
    bytes: &'a [u8],
    index: &'a OperatorIndex<'a>,
    map: &'a OffsetMap,
    bodies: HashMap<FuncId, Body<'a>>,
    /// The changed pages of captured states that did not become snapshots.
    pages: Vec<ChangedPage>,
}

impl<'a> Reader<'a> {
    /// Creates a reader for a program and the map of its rewritten module.
    pub(crate) fn new(
        program: &'a Program,
        bytes: &'a [u8],
        index: &'a OperatorIndex<'a>,
        map: &'a OffsetMap,
    ) -> Self {
        Self {
            program,
            bytes,
            index,
            map,
            bodies: HashMap::new(),
            pages: Vec::new(),
        }
    }

    /// Returns the program that is executed.
    pub(crate) fn program(&self) -> &'a Program {
        self.program
    }

    /// Translates a cut. Returns `None` if the host has called a function and nothing has been
    /// executed since.
    pub(crate) fn read(&mut self, captured: Captured) -> Result<Option<Cut>, RecordError> {
        let Captured {
            clock,
            calls,
            lines: _,
            state,
            waits: _waits,
        } = captured;
        let mut open = Vec::with_capacity(calls.len());
        for &(function, offset) in calls.iter().rev() {
            let (found, block) = self.place(offset)?;
            if found != function {
                return Err(RecordError::Snapshot(MachineError::Checkpoint));
            }
            open.push(FinalFrame { function, block });
        }
        let Some(&FinalFrame { function, block }) = open.last() else {
            return Ok(None);
        };
        let is_entered = self.body(function)?.function.cfg.graph.root() == block;
        if is_entered {
            open.pop();
        }
        let taken = match state {
            Some(state) => self.taken(clock, (&open, is_entered, block), state)?,
            None => None,
        };
        if open.is_empty() {
            return Ok(None);
        }
        if !is_entered {
            open.pop();
        }
        let boundary = Boundary {
            waiting: open,
            function,
            header: (!is_entered).then_some(block),
        };
        Ok(Some(Cut {
            clock,
            boundary,
            taken,
        }))
    }

    /// Builds the snapshot of these open activations, without setting its time. If `is_entered`, a
    /// function was just called, so all activations are waiting. Otherwise, the last activation is
    /// about to execute `block`.
    fn taken(
        &mut self,
        clock: u64,
        (open, is_entered, block): (&[FinalFrame], bool, BlockId),
        state: CapturedState,
    ) -> Result<Option<Taken>, RecordError> {
        let CapturedState {
            log,
            mut held,
            globals,
            tables,
            memories,
            mut pages,
        } = state;
        self.pages.append(&mut pages);
        held.reverse();
        let misfit = || RecordError::Snapshot(MachineError::Checkpoint);
        if held.len() != open.len() + usize::from(is_entered) {
            return Err(misfit());
        }
        let mut entered = None;
        if is_entered {
            let last = held.pop().ok_or_else(misfit)?;
            let parameters = parameters(self.program, Callee::Direct(last.function));
            entered = Some((last, parameters));
        }
        if open.is_empty() {
            return Ok(None);
        }
        let next = match &entered {
            Some((entered, _)) => Next::Enter {
                function: entered.function,
                tail: false,
            },
            None => Next::Block(block),
        };
        let mut frames = Vec::with_capacity(open.len());
        let mut activations = Vec::with_capacity(open.len());
        for (number, (frame, held)) in open.iter().zip(held).enumerate() {
            let FinalFrame { function, block } = *frame;
            if held.function != function {
                return Err(misfit());
            }
            let is_active = number + 1 == open.len() && !is_entered;
            let call = (!is_active).then_some(block);
            let (locals, operands) = self.live(function, call, block)?;
            activations.push(Open {
                held,
                locals,
                operands,
                wide: self.body(function)?.wide,
            });
            frames.push((function, call));
        }
        let snapshot = Snapshot {
            time: 0,
            log,
            next,
            arguments: Vec::new(),
            frames,
            registers: Vec::new(),
            high: Vec::new(),
            globals,
            pages: memories.iter().map(|bytes| bytes / WASM_PAGE).collect(),
            tables,
            data: Vec::new(),
            elements: Vec::new(),
            exceptions: Vec::new(),
            made: 0,
            room: 0,
        };
        Ok(Some(Taken {
            clock,
            snapshot,
            activations,
            entered,
            opened: Vec::new(),
            pages: std::mem::take(&mut self.pages),
        }))
    }

    /// Returns the block that contains an offset of the rewritten module.
    fn place(&self, offset: u32) -> Result<(FuncId, BlockId), RecordError> {
        let offset = InstrOffset(offset);
        let unknown = || RecordError::UnknownPlace(offset.to_string());
        let (id, place) = self.map.lookup(offset).ok_or_else(unknown)?;
        let block = match place {
            OriginalPlace::Poll(block) => Some(block),
            OriginalPlace::Operator(offset) => self.index.find(offset).and_then(|(_, op)| {
                let function = self.program.function(id)?;
                function.block_of(op)
            }),
            _ => None,
        };
        Ok((id, block.ok_or_else(unknown)?))
    }

    fn body(&mut self, id: FuncId) -> Result<&Body<'a>, RecordError> {
        match self.bodies.entry(id) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => {
                let unknown = || RecordError::UnknownPlace(format!("function {}", id.index()));
                let function = self.program.function(id).ok_or_else(unknown)?;
                let body = Body::read(self.program, self.bytes, function)?;
                Ok(place.insert(body))
            }
        }
    }

    /// Counts an activation's locals, and its operand slots that can still be read. The activation
    /// waits for the call at the end of `call`, or is about to execute `block`.
    fn live(
        &mut self,
        function: FuncId,
        call: Option<BlockId>,
        block: BlockId,
    ) -> Result<(usize, usize), RecordError> {
        let misfit = || RecordError::Snapshot(MachineError::Checkpoint);
        let program = self.program;
        let body = self.body(function)?;
        let locals = body.slots.locals.len();
        let Some(call) = call else {
            let slots = body.slots.at_start.get(block).ok_or_else(misfit)?;
            return Ok((locals, slots.len()));
        };
        let block = body.function.cfg.blocks.get(call).ok_or_else(misfit)?;
        let BlockEnd::Call(callee) = block.end else {
            return Err(misfit());
        };
        let op = OpId::new(block.ops.end.index().saturating_sub(1));
        let height = body.slots.heights.get(op).copied().ok_or_else(misfit)?;
        let taken =
            parameters(program, callee) + usize::from(matches!(callee, Callee::Indirect { .. }));
        let below = (height as usize).checked_sub(taken).ok_or_else(misfit)?;
        Ok((locals, below))
    }
}

/// Returns the number of the callee's parameters.
fn parameters(program: &Program, callee: Callee) -> usize {
    let ty = match callee {
        Callee::Direct(function) => match program.function(function) {
            Some(function) => Some(function.ty),
            None => program
                .imports
                .get(function.index())
                .map(|import| import.ty),
        },
        Callee::Indirect { ty, .. } => Some(ty),
    };
    let ty = ty.and_then(|ty| program.types.get(ty));
    ty.map_or(0, |ty| ty.params.len())
}
