//! Partitions a run into path traces and a dynamic call graph while it executes.

use afterimage_ids::{BlockId, FuncId};
use rustc_hash::FxHashMap;

use super::call_graph::{Call, CallGraphBuilder, CallId};
use super::call_runs::RunBuilder;
use super::compact::MOST_BLOCKS;
use super::event::{Event, EventError, Outside};
use super::path_builder::PathBuilder;
use super::path_table::PathTable;
use super::wpp::{UniquePath, Wpp};

/// Collects the events of a run into a [`Wpp`] (Zhang and Gupta 2001, section 2, Figures 2 and 3).
///
/// When a call ends, the collector looks up its trace and subtree, and keeps them only if they are
/// new. So memory is not proportional to the run. It is proportional to the unique path traces, the
/// different subtrees of the call graph, and the open activations. Time: O(1) per event, amortised.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    index: FxHashMap<FuncId, usize>,
    tables: Vec<PathTable>,
    calls: CallGraphBuilder,
    top: RunBuilder,
    /// The open activations, followed by some former activations, whose memory is reused.
    stack: Vec<Activation>,
    depth: usize,
}

#[derive(Clone, Debug, Default)]
struct Activation {
    table: usize,
    path: PathBuilder,
    calls: RunBuilder,
}

impl Collector {
    /// Creates a collector for a run that has not begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins an activation.
    pub fn enter(&mut self, function: FuncId) {
        let table = *self.index.entry(function).or_insert_with(|| {
            self.tables.push(PathTable::new(function));
            self.tables.len() - 1
        });
        if self.depth == self.stack.len() {
            self.stack.push(Activation::default());
        }
        self.stack[self.depth].table = table;
        self.depth += 1;
    }

    /// Executes a block in the innermost activation.
    ///
    /// # Errors
    /// Returns an error if no activation is open.
    pub fn block(&mut self, block: BlockId) -> Result<(), EventError> {
        let outside = EventError::NoActivation(Outside::Block(block));
        self.innermost().ok_or(outside)?.path.push(block);
        Ok(())
    }

    /// Executes blocks in the innermost activation, without a call between them.
    ///
    /// # Errors
    /// Returns an error if `blocks` is not empty and no activation is open.
    pub fn blocks(&mut self, blocks: &[BlockId]) -> Result<(), EventError> {
        match (blocks.first(), self.innermost()) {
            (_, Some(activation)) => activation.path.extend(blocks),
            (Some(&first), None) => return Err(EventError::NoActivation(Outside::Block(first))),
            (None, None) => {}
        }
        Ok(())
    }

    /// Executes blocks `count` times in the innermost activation, without a call between them.
    ///
    /// # Errors
    /// Returns an error if `blocks` is not empty and no activation is open.
    pub fn repeat(&mut self, blocks: &[BlockId], count: u64) -> Result<(), EventError> {
        (0..count).try_for_each(|_| self.blocks(blocks))
    }

    /// Ends the innermost activation. Returns the call with all of its callees, for
    /// [`Self::again`].
    ///
    /// # Errors
    /// Returns an error if no call is open, or there are too many different calls or path traces.
    pub fn leave(&mut self) -> Result<CallId, EventError> {
        let Some(depth) = self.depth.checked_sub(1) else {
            return Err(EventError::NoActivation(Outside::Leave));
        };
        let Activation { table, path, calls } = &mut self.stack[depth];
        let table = &mut self.tables[*table];
        let call = Call {
            function: table.function(),
            path: table.add(path)?,
        };
        let subtree = self.calls.subtree(call, calls.finish())?;
        calls.clear();
        self.depth = depth;
        self.again(subtree);
        Ok(subtree)
    }

    /// Repeats a call returned by [`Self::leave`] of this collector, with all of its callees. Time:
    /// O(1), however long the call is. This makes it possible to collect a run from its grammar
    /// without expanding calls.
    pub fn again(&mut self, call: CallId) {
        match self.innermost() {
            Some(caller) => {
                let position = caller.path.len();
                caller.calls.push(call, position);
            }
            None => self.top.push(call, 0),
        }
    }

    /// Processes an event of any kind.
    ///
    /// # Errors
    /// Returns the errors of the method for this kind of event.
    pub fn push(&mut self, event: Event) -> Result<(), EventError> {
        match event {
            Event::Enter(function) => {
                self.enter(function);
                Ok(())
            }
            Event::Block(block) => self.block(block),
            Event::Leave => self.leave().map(|_| ()),
        }
    }

    /// Returns the number of open activations.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Ends the run and returns the collected data. Activations that are still open are marked as
    /// not having returned.
    ///
    /// # Errors
    /// Returns an error if there are too many different calls or path traces, or more calls and
    /// blocks than any run can have.
    pub fn finish(mut self) -> Result<Wpp, EventError> {
        let open = self.depth as u64;
        while self.depth > 0 {
            self.leave()?;
        }
        let calls = std::mem::take(&mut self.calls).finish(self.top.finish(), open);
        let occurrences = calls.checked_occurrences().ok_or(EventError::TooLong)?;
        // Each call counts as a block, which also limits the number of empty calls.
        let mut length = 0u64;
        for (id, count) in calls.ids().zip(occurrences) {
            let path = self.path_of(calls.call(id));
            path.calls += count;
            let blocks = count.checked_mul(path.trace.len() + 1);
            let next = blocks.and_then(|blocks| length.checked_add(blocks));
            length = next
                .filter(|&n| n <= MOST_BLOCKS)
                .ok_or(EventError::TooLong)?;
        }
        for id in calls.open_calls() {
            self.path_of(calls.call(id)).unfinished += 1;
        }
        let mut functions: Vec<_> = self.tables.into_iter().map(PathTable::finish).collect();
        functions.sort_unstable_by_key(|f| f.function);
        Ok(Wpp { functions, calls })
    }

    fn path_of(&mut self, call: Call) -> &mut UniquePath {
        self.tables[self.index[&call.function]].path(call.path)
    }

    fn innermost(&mut self) -> Option<&mut Activation> {
        self.stack[..self.depth].last_mut()
    }
}
