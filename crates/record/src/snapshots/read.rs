//! What captured states mean.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use afterimage_ids::{BlockId, EntityRef, FuncId, InstrOffset, OpId};
use afterimage_machine::{Body, MachineError, Next, Snapshot};
use afterimage_paths::{Boundary, FinalFrame};
use afterimage_program::{BlockEnd, Callee, OperatorIndex, Program};
use afterimage_rewrite::{OffsetMap, OriginalPlace};

use super::capture::Captured;
use super::{ChangedPage, Open, Taken};
use crate::RecordError;

/// Bytes of a page by which memories grow.
const WASM_PAGE: u64 = 65536;

/// What captured states mean.
pub(crate) struct Reader<'a> {
    program: &'a Program,
    bytes: &'a [u8],
    index: &'a OperatorIndex<'a>,
    map: &'a OffsetMap,
    bodies: HashMap<FuncId, Body<'a>>,
    /// The pages of those that were no snapshots.
    pages: Vec<ChangedPage>,
}

impl<'a> Reader<'a> {
    /// Of a program whose rewritten module has this map.
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

    /// The program that is executed.
    pub(crate) fn program(&self) -> &'a Program {
        self.program
    }

    /// The snapshot, but for its time, and where the path is then. `None` where the host has called a function and nothing was executed.
    pub(crate) fn read(
        &mut self,
        captured: Captured,
    ) -> Result<Option<(Taken, Boundary)>, RecordError> {
        let Captured {
            clock,
            log,
            frames,
            globals,
            tables,
            memories,
            mut pages,
            waits: _waits,
        } = captured;
        self.pages.append(&mut pages);
        let mut open = Vec::with_capacity(frames.len());
        for frame in frames.into_iter().rev() {
            let (function, block) = self.place(frame.offset)?;
            if frame.held.function != function {
                return Err(RecordError::Snapshot(MachineError::Checkpoint));
            }
            open.push((function, block, frame.held));
        }
        let Some((function, block, _)) = open.last() else {
            return Ok(None);
        };
        let (function, header) = (*function, *block);
        let mut entered = None;
        if self.body(function)?.function.cfg.graph.root() == header {
            let parameters = parameters(self.program, Callee::Direct(function));
            entered = open.pop().map(|(_, _, held)| (held, parameters));
        }
        if open.is_empty() {
            return Ok(None);
        }
        let (mut waiting, mut frames) = (Vec::new(), Vec::new());
        let mut activations = Vec::with_capacity(open.len());
        let count = open.len();
        for (number, (function, block, held)) in open.into_iter().enumerate() {
            let is_active = number + 1 == count && entered.is_none();
            let (locals, operands) = self.live(function, (!is_active).then_some(block), block)?;
            activations.push(Open {
                held,
                locals,
                operands,
                wide: self.body(function)?.wide,
            });
            frames.push((function, (!is_active).then_some(block)));
            if !is_active {
                waiting.push(FinalFrame { function, block });
            }
        }
        let is_entered = entered.is_some();
        let next = if is_entered {
            let tail = false;
            Next::Enter { function, tail }
        } else {
            Next::Block(header)
        };
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
        let taken = Taken {
            clock,
            snapshot,
            activations,
            entered,
            opened: Vec::new(),
            pages: std::mem::take(&mut self.pages),
        };
        let boundary = Boundary {
            waiting,
            function,
            header: (!is_entered).then_some(header),
        };
        Ok(Some((taken, boundary)))
    }

    /// The block that an offset of the rewritten module is in.
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

    /// How many locals and slots of the operand stack of an activation can still be read: one that waits for the call of a block, or is about to execute it.
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

/// How many parameters what is called has.
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
