//! Partitioning a run into path traces and a dynamic call graph, while it goes on.

use afterimage_ids::{BlockId, FuncId};
use rustc_hash::FxHashMap;

use super::call_graph::{Call, CallGraphBuilder};
use super::call_runs::RunBuilder;
use super::event::{Event, EventError, Outside};
use super::path_builder::PathBuilder;
use super::path_table::PathTable;
use super::wpp::Wpp;

/// Collects the events of a run into a [`Wpp`] (Zhang and Gupta 2001, section 2, Figures 2 and 3).
///
/// A call's trace and subtree are looked up when the call ends and kept only if they are new, so memory is proportional to the
/// unique path traces, the different subtrees of the call graph and the activations that are open, and not to
/// the run. O(1) an event, amortised.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    index: FxHashMap<FuncId, usize>,
    tables: Vec<PathTable>,
    calls: CallGraphBuilder,
    top: RunBuilder,
    /// The activations that are open, and after them some that were, for their memory.
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
    /// An empty run.
    pub fn new() -> Self {
        Self::default()
    }

    /// An activation begins.
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

    /// The innermost activation executes a block.
    ///
    /// # Errors
    /// If no activation is open.
    pub fn block(&mut self, block: BlockId) -> Result<(), EventError> {
        let outside = EventError::NoActivation(Outside::Block(block));
        self.innermost().ok_or(outside)?.path.push(block);
        Ok(())
    }

    /// The innermost activation executes blocks, with no call between them.
    ///
    /// # Errors
    /// If there is a block and no activation is open.
    pub fn blocks(&mut self, blocks: &[BlockId]) -> Result<(), EventError> {
        match (blocks.first(), self.innermost()) {
            (_, Some(activation)) => activation.path.extend(blocks),
            (Some(&first), None) => return Err(EventError::NoActivation(Outside::Block(first))),
            (None, None) => {}
        }
        Ok(())
    }

    /// The innermost activation executes blocks so many times over, with no call between them.
    ///
    /// # Errors
    /// If there is a block and no activation is open.
    pub fn repeat(&mut self, blocks: &[BlockId], count: u64) -> Result<(), EventError> {
        (0..count).try_for_each(|_| self.blocks(blocks))
    }

    /// The innermost activation ends.
    ///
    /// # Errors
    /// If none is open, or if there are too many different ones.
    pub fn leave(&mut self) -> Result<(), EventError> {
        self.end(true)
    }

    /// An event of any kind.
    ///
    /// # Errors
    /// As the method for its kind.
    pub fn push(&mut self, event: Event) -> Result<(), EventError> {
        match event {
            Event::Enter(function) => {
                self.enter(function);
                Ok(())
            }
            Event::Block(block) => self.block(block),
            Event::Leave => self.leave(),
        }
    }

    /// How many activations are open.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The run ends: what was collected. Activations that are open have not returned, and are marked so.
    ///
    /// # Errors
    /// If there are too many different ones.
    pub fn finish(mut self) -> Result<Wpp, EventError> {
        let open = self.depth as u64;
        while self.depth > 0 {
            self.end(false)?;
        }
        let calls = self.calls.finish(self.top.finish(), open);
        let mut functions: Vec<_> = self.tables.into_iter().map(PathTable::finish).collect();
        functions.sort_unstable_by_key(|f| f.function);
        Ok(Wpp { functions, calls })
    }

    fn innermost(&mut self) -> Option<&mut Activation> {
        self.stack[..self.depth].last_mut()
    }

    fn end(&mut self, returned: bool) -> Result<(), EventError> {
        let Some(depth) = self.depth.checked_sub(1) else {
            return Err(EventError::NoActivation(Outside::Leave));
        };
        let (callers, own) = self.stack.split_at_mut(depth);
        let Activation { table, path, calls } = &mut own[0];
        let table = &mut self.tables[*table];
        let call = Call {
            function: table.function(),
            path: table.add(path, returned)?,
        };
        let subtree = self.calls.subtree(call, calls.finish())?;
        calls.clear();
        match callers.last_mut() {
            Some(caller) => caller.calls.push(subtree, caller.path.len()),
            None => self.top.push(subtree, 0),
        }
        self.depth = depth;
        Ok(())
    }
}
