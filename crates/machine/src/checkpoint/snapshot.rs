//! Checkpoints that do not depend on the nodes of a path.

use std::collections::hash_map::Entry;

use afterimage_ids::{BlockId, EntityRef, FuncId, NodeId, OpId};
use afterimage_program::{EdgeKind, Slots};
use wasmparser::ValType;

use super::{Next, Snapshot};
use crate::MachineError;
use crate::code::NodeEnd;
use crate::image::{GlobalBits, State};
use crate::machine::{Machine, position};

/// An activation that waits for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    /// The function of the activation.
    pub function: FuncId,
    /// The block that ends with the call.
    pub block: BlockId,
    /// The values of the activation's variables. The upper halves of values that are not vectors
    /// are undefined.
    pub variables: Vec<GlobalBits>,
}

impl Machine<'_> {
    /// Returns the machine's current state, or `None` if the run has ended. Time: O(variables of
    /// all activations + elements of tables + exceptions). If an activation waits for a call in a
    /// function with vectors, the first snapshot with this call also takes O(operators of the
    /// function).
    ///
    /// # Errors
    /// Returns an error if the module's bytes do not match the program.
    pub fn snapshot(&mut self) -> Result<Option<Snapshot>, MachineError> {
        let Some(checkpoint) = self.checkpoint() else {
            return Ok(None);
        };
        let snapshot = checkpoint.rename(|_, call| match self.codes[call].end {
            NodeEnd::Call { block, .. } => Ok(block),
            _ => Err(MachineError::Checkpoint),
        });
        let mut snapshot = snapshot?;
        self.clear_high(&mut snapshot)?;
        Ok(Some(snapshot))
    }

    /// Restores the state of a machine that followed the same run, even with other nodes. Like
    /// [`restore`](Self::restore), but compiles the calls for which activations wait. The path's
    /// nodes must have been [expected](Self::expect) or defined before.
    ///
    /// # Errors
    /// Returns an error if the snapshot cannot be a state of this run. The machine is then
    /// unusable.
    pub fn restore_snapshot(
        &mut self,
        snapshot: Snapshot,
        fill: impl FnOnce(&mut State),
    ) -> Result<(), MachineError> {
        let checkpoint = snapshot.rename(|function, block| self.call_node(function, block))?;
        self.restore(&checkpoint, fill)
    }

    /// Returns the activations that wait for a call, the outermost first. Each has the values of
    /// its locals and of the slots below the call's operands, as in a [`Snapshot`]. Returns `None`
    /// if the run has ended. Time: O(variables of all activations).
    pub fn waiting(&self) -> Option<Vec<Waits>> {
        let executes = matches!(Next::of(self.waiting)?, Next::Block(_));
        let waits = self.frames.len() - usize::from(executes).min(self.frames.len());
        let frames = self.frames[..waits].iter().map(|frame| {
            let NodeEnd::Call { block, .. } = self.codes.get(frame.call)?.end else {
                return None;
            };
            let live = self.live(frame.function, Some(frame.call))?;
            let low = self.registers.get(frame.base..frame.base + live)?;
            let high = if self.is_wide(frame.function) {
                self.high.get(frame.base..frame.base + live)?
            } else {
                &[]
            };
            let high = high.iter().copied().chain(std::iter::repeat(0));
            Some(Waits {
                function: frame.function,
                block,
                variables: low.iter().copied().zip(high).collect(),
            })
        });
        frames.collect()
    }

    /// Returns the node that consists only of this block, which ends with a call.
    fn call_node(&mut self, function: FuncId, block: BlockId) -> Result<NodeId, MachineError> {
        if let Some(&node) = self.calls.get(&(function, block)) {
            return Ok(node);
        }
        let cfg = &self.body(function)?.function.cfg;
        let (graph, blocks) = (&cfg.graph, &cfg.blocks);
        if blocks.get(block).is_none() {
            return Err(MachineError::Checkpoint);
        }
        let mut ways = graph.out_edges(block).iter();
        let returns = ways.find(|&&edge| cfg.edges[edge].kind == EdgeKind::CallReturn);
        let next = returns.map(|&edge| graph.to(edge));
        let next = next.filter(|&next| next != graph.exit());
        let node = self.define(function, &[block], next)?;
        self.calls.insert((function, block), node);
        Ok(node)
    }

    /// Clears the upper halves of values that are not vectors. These halves contain remnants of
    /// vectors, which depend on the nodes that the machine has executed.
    fn clear_high(&mut self, snapshot: &mut Snapshot) -> Result<(), MachineError> {
        if let Next::Enter { function, .. } = snapshot.next {
            let ty = self.body(function)?.function.ty;
            let types = self.program.types.get(ty);
            let types = types.map_or(&[][..], |ty| &ty.params);
            for ((_, high), ty) in snapshot.arguments.iter_mut().zip(types) {
                if *ty != ValType::V128 {
                    *high = 0;
                }
            }
        }
        let mut high = &mut snapshot.high[..];
        for &(function, call) in &snapshot.frames {
            if !self.body(function)?.wide {
                continue;
            }
            let count;
            match (call, snapshot.next) {
                (Some(call), _) => {
                    let vectors = self.vectors_at(function, call)?;
                    count = vectors.len();
                    clear(high, vectors.iter().copied());
                }
                (None, Next::Block(block)) => {
                    let slots = &self.body(function)?.slots;
                    count = slots.types_at(block).count();
                    clear(high, slots.types_at(block).map(|ty| ty == ValType::V128));
                }
                (None, _) => return Err(MachineError::Checkpoint),
            }
            high = high.get_mut(count..).ok_or(MachineError::Checkpoint)?;
        }
        Ok(())
    }

    /// Returns, for each variable that can still be read during a call, whether it is a vector.
    fn vectors_at(&mut self, function: FuncId, block: BlockId) -> Result<&[bool], MachineError> {
        let node = self.call_node(function, block)?;
        let NodeEnd::Call { results, .. } = self.codes[node].end else {
            return Err(MachineError::Checkpoint);
        };
        let known = self.bodies[position(self.program, function)].as_deref();
        match self.vectors.entry((function, block)) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => {
                let body = known.ok_or(MachineError::Checkpoint)?;
                let call = OpId::new(body.function.cfg.blocks[block].ops.end.index() - 1);
                let slots = Slots::before(self.program, self.bytes, body.function, call)?;
                let types = body.slots.locals.iter().chain(&slots);
                let vectors = types.take(results as usize);
                Ok(place.insert(vectors.map(|ty| *ty == ValType::V128).collect()))
            }
        }
    }
}

/// Sets the upper halves of values that are not vectors to 0.
fn clear(high: &mut [u64], vectors: impl Iterator<Item = bool>) {
    for (half, _) in high.iter_mut().zip(vectors).filter(|(_, vector)| !vector) {
        *half = 0;
    }
}
