//! Saves and restores the state of a machine between two nodes.

mod snapshot;
mod wire;

use afterimage_ids::{BlockId, FuncId, NodeId};
use afterimage_trace::LogPlace;
use wasmparser::ValType;

pub use self::snapshot::Waits;
use crate::MachineError;
use crate::activations::Frame;
use crate::code::NodeEnd;
pub use crate::exceptions::Exception;
use crate::image::{GlobalBits, PAGE, State};
use crate::lazy::Bytes;
use crate::machine::{Machine, Waiting};
use crate::step::make_room;

/// The whole state of a machine between two nodes, except the bytes of its memories. Memories are
/// the largest part of the state, and change the least.
///
/// `C` names the pending call of an activation, by the node that ends with the call or by the
/// call's block ([`Snapshot`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint<C = NodeId> {
    /// The number of blocks executed.
    pub time: u64,
    /// The position at which the log continues.
    pub log: LogPlace,
    /// The call or the block to execute next.
    pub next: Next,
    /// The arguments of the call that is about to begin, or an empty list if no call begins.
    pub arguments: Vec<GlobalBits>,
    /// The activations, outermost first, each with its function and the call for which it waits.
    /// The activation that executes `next` has no call.
    pub frames: Vec<(FuncId, Option<C>)>,
    /// The variables that can still be read, activation by activation. These are the locals, and
    /// slots of the operand stack. A waiting activation has the slots below its call's operands.
    /// Any other activation has the slots in use at its next block.
    pub registers: Vec<u64>,
    /// The upper halves of the variables of functions with vectors.
    pub high: Vec<u64>,
    /// The bits of the globals, by index.
    pub globals: Vec<GlobalBits>,
    /// The number of pages of each memory.
    pub pages: Vec<u64>,
    /// The changes to the tables, by index.
    pub tables: Vec<ChangedTable>,
    /// The data segments that were dropped, ascending.
    pub data: Vec<u32>,
    /// The element segments that were dropped, ascending.
    pub elements: Vec<u32>,
    /// The exceptions that may still be referenced, by their references, ascending.
    pub exceptions: Vec<(u64, Exception)>,
    /// The number of exception references created so far.
    pub made: u64,
    /// The number of exceptions above which unreferenced exceptions are dropped.
    pub room: u64,
}

/// A checkpoint that does not depend on a path's nodes, because it names calls by their blocks.
/// Upper halves of values that are not vectors are 0.
pub type Snapshot = Checkpoint<BlockId>;

/// The call or the block that a machine executes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A call by the host, for which no activation waits.
    Host,
    /// The beginning of a call to this function.
    Enter {
        /// The called function.
        function: FuncId,
        /// Whether the call is a tail call.
        tail: bool,
    },
    /// This block of the innermost activation.
    Block(BlockId),
}

/// A table's difference from its initial contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedTable {
    /// The number of elements in the table.
    pub length: u64,
    /// The elements that differ from the initial elements (or from null, for new elements), in
    /// maximal runs. A run has a position, a length and the common value. Positions ascend. The
    /// value 0 is null, and f + 1 is function f.
    pub elements: Vec<(u64, u64, u64)>,
}

impl Next {
    fn of(waiting: Waiting) -> Option<Self> {
        Some(match waiting {
            Waiting::Host => Self::Host,
            Waiting::Enter { function, tail } => Self::Enter { function, tail },
            Waiting::Block(block) => Self::Block(block),
            Waiting::Nothing | Waiting::Failed => return None,
        })
    }
}

impl From<Next> for Waiting {
    fn from(next: Next) -> Self {
        match next {
            Next::Host => Self::Host,
            Next::Enter { function, tail } => Self::Enter { function, tail },
            Next::Block(block) => Self::Block(block),
        }
    }
}

impl<C> Checkpoint<C> {
    /// Returns the number of blocks executed before the checkpoint.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Returns the position at which the log continues.
    pub fn log(&self) -> LogPlace {
        self.log
    }

    /// Returns the same checkpoint with other names for calls.
    fn rename<D, E>(
        self,
        mut call: impl FnMut(FuncId, C) -> Result<D, E>,
    ) -> Result<Checkpoint<D>, E> {
        let mut frames = Vec::with_capacity(self.frames.len());
        for (function, waits) in self.frames {
            let waits = waits.map(|waits| call(function, waits)).transpose()?;
            frames.push((function, waits));
        }
        Ok(Checkpoint {
            frames,
            time: self.time,
            log: self.log,
            next: self.next,
            arguments: self.arguments,
            registers: self.registers,
            high: self.high,
            globals: self.globals,
            pages: self.pages,
            tables: self.tables,
            data: self.data,
            elements: self.elements,
            exceptions: self.exceptions,
            made: self.made,
            room: self.room,
        })
    }
}

impl Checkpoint {
    /// Returns the nodes that end with pending calls. A machine needs their code to continue from
    /// the checkpoint.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.frames.iter().filter_map(|&(_, call)| call)
    }
}

impl Machine<'_> {
    /// Returns the machine's current state, or `None` if the run has ended. Time: O(variables of
    /// all activations + elements of tables + exceptions).
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        let next = Next::of(self.waiting)?;
        let waits = !matches!(next, Next::Block(_));
        let (mut registers, mut high) = (Vec::new(), Vec::new());
        let mut frames = Vec::with_capacity(self.frames.len());
        for (index, frame) in self.frames.iter().enumerate() {
            let call = (waits || index + 1 < self.frames.len()).then_some(frame.call);
            let range = frame.base..frame.base + self.live(frame.function, call)?;
            registers.extend_from_slice(self.registers.get(range.clone())?);
            if self.is_wide(frame.function) {
                high.extend_from_slice(self.high.get(range)?);
            }
            frames.push((frame.function, call));
        }
        let arguments = match next {
            Next::Enter { .. } => self.values.clone(),
            _ => Vec::new(),
        };
        let memories = self.state.memories.iter();
        let mut exceptions = Vec::from_iter(self.exceptions.kept.clone());
        exceptions.sort_unstable_by_key(|&(reference, _)| reference);
        Some(Checkpoint {
            time: self.time,
            log: self.source.place(),
            next,
            arguments,
            frames,
            registers,
            high,
            globals: self.globals(),
            pages: memories.map(|m| m.bytes.len() as u64 / PAGE).collect(),
            tables: self.changed_tables(),
            data: dropped(&self.state.data, &self.first.data),
            elements: dropped(&self.state.elements, &self.first.elements),
            exceptions,
            made: self.exceptions.made,
            room: self.exceptions.room as u64,
        })
    }

    /// Restores the state of a machine that followed the same run. The nodes in
    /// [`nodes`](Checkpoint::nodes) must be compiled. Memories get their former sizes, filled with
    /// zeros. `fill` then writes their former bytes.
    ///
    /// # Errors
    /// Returns an error if the checkpoint cannot be a state of this run. The machine is then
    /// unusable.
    pub fn restore(
        &mut self,
        checkpoint: &Checkpoint,
        fill: impl FnOnce(&mut State),
    ) -> Result<(), MachineError> {
        self.waiting = Waiting::Failed;
        let fits = self.restore_state(checkpoint)? && self.restore_frames(checkpoint)?;
        if !fits {
            return Err(MachineError::Checkpoint);
        }
        self.source.go(checkpoint.log)?;
        fill(&mut self.state);
        self.exceptions.kept = checkpoint.exceptions.iter().cloned().collect();
        self.exceptions.made = checkpoint.made;
        self.exceptions.room = usize::try_from(checkpoint.room).unwrap_or(usize::MAX);
        self.values.clone_from(&checkpoint.arguments);
        self.time = checkpoint.time;
        self.trap = None;
        self.waiting = checkpoint.next.into();
        Ok(())
    }

    /// Returns the number of an activation's variables that can still be read. Returns `None` if
    /// there is no such activation.
    fn live(&self, function: FuncId, call: Option<NodeId>) -> Option<usize> {
        let body = self.known_body(function)?;
        let slots = &body.slots;
        let live = match (call, self.waiting) {
            (Some(call), _) => {
                let code = self.codes.get(call)?;
                let NodeEnd::Call { results, .. } = code.end else {
                    return None;
                };
                (code.function == function).then_some(results as usize)?
            }
            (None, Waiting::Block(block)) => slots.locals.len() + slots.at_start.get(block)?.len(),
            (None, _) => return None,
        };
        Some(live.min(body.variables()))
    }

    fn is_wide(&self, function: FuncId) -> bool {
        self.known_body(function).is_some_and(|body| body.wide)
    }

    /// Returns the globals. The upper halves of globals that are not vectors are cleared.
    fn globals(&self) -> Vec<GlobalBits> {
        let globals = self.state.globals.iter().zip(&self.program.globals);
        let globals = globals.map(|(&(low, high), ty)| match ty {
            ValType::V128 => (low, high),
            _ => (low, 0),
        });
        globals.collect()
    }

    fn changed_tables(&self) -> Vec<ChangedTable> {
        let tables = self.state.tables.iter().zip(&self.first.tables);
        let changed = tables.map(|(table, first)| {
            let first = first.elements.iter().chain(std::iter::repeat(&0));
            let elements = (0..).zip(&table.elements).zip(first);
            let changed = elements.filter(|((_, element), first)| element != first);
            let mut runs: Vec<(u64, u64, u64)> = Vec::new();
            for ((position, &element), _) in changed {
                match runs.last_mut() {
                    Some((first, count, of)) if *of == element && *first + *count == position => {
                        *count += 1;
                    }
                    _ => runs.push((position, 1, element)),
                }
            }
            ChangedTable {
                length: table.elements.len() as u64,
                elements: runs,
            }
        });
        changed.collect()
    }

    /// Restores memories, tables, globals and segments. Returns whether they fit the module.
    fn restore_state(&mut self, from: &Checkpoint) -> Result<bool, MachineError> {
        let (state, first) = (&mut self.state, &self.first);
        let fits = from.pages.len() == state.memories.len()
            && from.tables.len() == first.tables.len()
            && from.globals.len() == first.globals.len();
        if !fits {
            return Ok(false);
        }
        for memory in &mut state.memories {
            memory.bytes = Bytes::default();
        }
        for (index, &pages) in from.pages.iter().enumerate() {
            let grown = state.grow_memory(index, pages);
            grown.map_err(|_| MachineError::Checkpoint)?;
        }
        for table in &mut state.tables {
            table.elements = Vec::new();
        }
        for (index, changed) in from.tables.iter().enumerate() {
            let grown = state.grow_table(index, changed.length, 0);
            grown.map_err(|_| MachineError::Checkpoint)?;
            let elements = &mut state.tables[index].elements;
            for (element, first) in elements.iter_mut().zip(&first.tables[index].elements) {
                *element = *first;
            }
            for &(position, count, element) in &changed.elements {
                let end = position.checked_add(count);
                let end = end.filter(|end| *end <= elements.len() as u64);
                match end.and_then(|end| elements.get_mut(position as usize..end as usize)) {
                    Some(place) => place.fill(element),
                    None => return Ok(false),
                }
            }
        }
        state.globals.clone_from(&from.globals);
        state.data.clone_from(&first.data);
        state.elements.clone_from(&first.elements);
        Ok(drop_all(&mut state.data, &from.data) && drop_all(&mut state.elements, &from.elements))
    }

    /// Restores activations and their variables. Returns whether they fit the program.
    fn restore_frames(&mut self, from: &Checkpoint) -> Result<bool, MachineError> {
        // The checkpoint's next step determines the number of the innermost activation's variables.
        self.waiting = from.next.into();
        let built = self.build_frames(from);
        self.waiting = Waiting::Failed;
        built
    }

    fn build_frames(&mut self, from: &Checkpoint) -> Result<bool, MachineError> {
        let in_call = match from.next {
            Next::Host => from.frames.is_empty(),
            Next::Enter { function, .. } => {
                self.body(function)?;
                true
            }
            Next::Block(_) => from.frames.last().is_some_and(|(_, call)| call.is_none()),
        };
        if !in_call {
            return Ok(false);
        }
        self.frames.clear();
        self.high.clear();
        let (mut low, mut high) = (&from.registers[..], &from.high[..]);
        let mut base = 0;
        for &(function, call) in &from.frames {
            let (variables, wide) = {
                let body = self.body(function)?;
                (body.variables(), body.wide)
            };
            let Some(live) = self.live(function, call) else {
                return Ok(false);
            };
            if base + variables > super::activations::MOST_REGISTERS {
                return Ok(false);
            }
            // The existing allocation is kept, because allocating again would take longer than the
            // rest of this function.
            if self.registers.len() < base + variables {
                make_room(&mut self.registers, base + variables);
            }
            self.registers[base + live..base + variables].fill(0);
            if !take(&mut low, &mut self.registers[base..base + live]) {
                return Ok(false);
            }
            if wide {
                self.high.resize(base + variables, 0);
                if !take(&mut high, &mut self.high[base..base + live]) {
                    return Ok(false);
                }
            }
            self.frames.push(Frame {
                function,
                base,
                call: call.unwrap_or(NodeId::from_u32(0)),
            });
            base += variables;
        }
        Ok(low.is_empty() && high.is_empty())
    }
}

/// Moves numbers from the front of a list to `to`. Returns whether there were enough.
fn take(from: &mut &[u64], to: &mut [u64]) -> bool {
    let Some((taken, rest)) = from.split_at_checked(to.len()) else {
        return false;
    };
    to.copy_from_slice(taken);
    *from = rest;
    true
}

/// Returns the segments that are empty now but were not initially.
fn dropped<T>(now: &[std::sync::Arc<[T]>], first: &[std::sync::Arc<[T]>]) -> Vec<u32> {
    let pairs = (0..).zip(now.iter().zip(first));
    let dropped = pairs.filter(|(_, (now, first))| now.is_empty() && !first.is_empty());
    dropped.map(|(index, _)| index).collect()
}

/// Empties these segments. Returns whether they exist.
fn drop_all<T>(segments: &mut [std::sync::Arc<[T]>], dropped: &[u32]) -> bool {
    dropped.iter().all(|&index| {
        let segment = segments.get_mut(index as usize);
        segment
            .map(|segment| *segment = std::sync::Arc::new([]))
            .is_some()
    })
}
