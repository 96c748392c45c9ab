//! Finds control dependences in reverse: the executions that a predicate or a call caused.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use afterimage_ids::{BlockId, EdgeId, FuncId, OpId};
use afterimage_machine::NodeEnd;
use afterimage_program::Cfg;
use afterimage_wpp::{Cursor, Visit};

use super::control::{FunctionControl, dispatches, reaches};
use super::{Controllers, Instance, RecordedValues, ValuesError};
use crate::whole_path::FileSegments;

/// A controlled execution of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controlled {
    /// The time of the execution.
    pub time: u64,
    /// The function that contains the block.
    pub function: FuncId,
    /// The block that was executed.
    pub block: BlockId,
}

/// Iterates, in order of time, over the executions of blocks that depend on one execution of a
/// predicate, a call or a throw. These are all executions for which [`Controllers::of_execution`]
/// names this predicate, call or throw.
///
/// Goes through the callee's activation and then through the operator's own activation. Skips their
/// callees, and stops when no later block can depend on the operator. In the operator's own
/// activation, the walk goes at most to the closest post-dominator of the operator's block. Takes
/// time linear in the executed nodes of these activations.
pub struct ControlledBlocks<'v, 'a> {
    values: &'v RecordedValues<'a>,
    cursor: Cursor<'a, FileSegments>,
    /// The remaining walks. The current walk is the last.
    walks: Vec<Walk<'a>>,
}

/// A walk along an activation.
struct Walk<'a> {
    function: FuncId,
    cfg: &'a Cfg,
    known: Rc<FunctionControl>,
    /// The number of open activations during the walk, including its own.
    depth: usize,
    /// The time of the last block before the activation's end.
    last: u64,
    waits: Waits,
    /// The block that ends the walk.
    until: Option<BlockId>,
    /// The current execution of a node.
    visit: Visit,
    /// The position of the next block in this node.
    at: usize,
    /// The block before the current block, or `None` at the beginning.
    before: Option<BlockId>,
    /// For each pair of blocks, the blocks that depend on the transfer of control from one to the
    /// other.
    decided: HashMap<(BlockId, BlockId), Rc<[BlockId]>>,
}

/// The blocks that depend on the operator if they are executed next.
enum Waits {
    /// The blocks that depend on the edge that control takes next.
    Decided,
    /// These blocks. No other decision on which they depend has come in between.
    These(HashSet<BlockId>),
    /// All blocks except these, which depend on an intermediate decision.
    AllBut(HashSet<BlockId>),
}

impl Walk<'_> {
    /// Goes from one block to another.
    fn pass(&mut self, from: BlockId, to: BlockId) {
        let decided = self.decided(from, to);
        let decided = decided.iter().copied();
        match &mut self.waits {
            Waits::Decided => self.waits = Waits::These(decided.collect()),
            Waits::These(these) => decided.for_each(|block| {
                these.remove(&block);
            }),
            Waits::AllBut(others) => others.extend(decided),
        }
    }

    fn decided(&mut self, from: BlockId, to: BlockId) -> Rc<[BlockId]> {
        if let Some(known) = self.decided.get(&(from, to)) {
            return Rc::clone(known);
        }
        // Vertices that dispatch exceptions execute nothing, so their edges count as edges of the
        // block.
        let sources = std::iter::once(from).chain(dispatches(self.cfg, from));
        let all = sources.filter_map(|source| self.known.dependents.get(&source));
        let taken = |edge| reaches(self.cfg, self.cfg.graph.to(edge), to);
        let decided = all.flatten().filter(|&&(edge, _)| taken(edge));
        let decided: Rc<[BlockId]> = decided.map(|&(_, block)| block).collect();
        self.decided.insert((from, to), Rc::clone(&decided));
        decided
    }

    fn waits_for(&self, block: BlockId) -> bool {
        match &self.waits {
            Waits::Decided => false,
            Waits::These(these) => these.contains(&block),
            Waits::AllBut(others) => !others.contains(&block),
        }
    }

    fn is_over(&self) -> bool {
        matches!(&self.waits, Waits::These(these) if these.is_empty())
    }
}

impl<'a> Controllers<'a> {
    /// Returns the executions that depend on an operator in an execution of a node. There are none
    /// if the operator does not end its block.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn controlled<'v>(
        &self,
        values: &'v RecordedValues<'a>,
        instance: Instance,
        op: OpId,
    ) -> Result<ControlledBlocks<'v, 'a>, ValuesError> {
        let path = values.path();
        let mut blocks = ControlledBlocks {
            values,
            cursor: path.cursor(),
            walks: Vec::new(),
        };
        let unknown = ValuesError::Damaged("an execution that does not exist");
        let node = path.nodes().get(instance.node).ok_or(unknown)?;
        let block = self.program.function(node.function).and_then(|function| {
            let block = function.block_of(op)?;
            let ends = function.cfg.blocks[block].ops.end.as_u32() == op.as_u32() + 1;
            ends.then_some(block)
        });
        let at = node.blocks.iter().position(|&other| Some(other) == block);
        let visit = blocks.cursor.seek(instance.time);
        let visit = visit.map_err(ValuesError::Path)?;
        let (Some(at), Some(visit)) = (at, visit) else {
            return Ok(blocks);
        };
        if at + 1 == node.blocks.len()
            && let Some(handler) = values.handler(instance)?
        {
            blocks
                .walks
                .extend(self.handling(values, block, handler, &mut blocks.cursor)?);
            blocks.resume()?;
            return Ok(blocks);
        }
        if let Some(mut own) = self.walk(&blocks.cursor, visit, node.function)? {
            own.waits = Waits::Decided;
            own.at = at + 1;
            own.before = block;
            own.until = block.and_then(|b| own.known.post_dominators.immediate_post_dominator(b));
            blocks.walks.push(own);
        }
        if at + 1 == node.blocks.len() {
            let cursor = &mut blocks.cursor;
            let depth = cursor.depth();
            let next = cursor.next().map_err(ValuesError::Path)?;
            let called = match values.compiled(instance.node)?.code.end {
                NodeEnd::Call { .. } => cursor.depth() == depth + 1,
                NodeEnd::TailCall { .. } => values.replaced(instance)?,
                _ => false,
            };
            if let Some(visit) = next.filter(|_| called) {
                let function = path.nodes()[visit.node].function;
                blocks.walks.extend(self.walk(cursor, visit, function)?);
            }
        }
        blocks.resume()?;
        Ok(blocks)
    }

    /// Starts a walk along the activation that handles a block's exception, from the beginning of
    /// the handler.
    fn handling(
        &self,
        values: &RecordedValues<'_>,
        thrower: Option<BlockId>,
        handler: Instance,
        cursor: &mut Cursor<'a, FileSegments>,
    ) -> Result<Option<Walk<'a>>, ValuesError> {
        let own = cursor.depth();
        let visit = cursor.seek(handler.time).map_err(ValuesError::Path)?;
        let node = values.path().nodes().get(handler.node);
        let (Some(visit), Some(node)) = (visit, node) else {
            return Ok(None);
        };
        let Some(mut walk) = self.walk(cursor, visit, node.function)? else {
            return Ok(None);
        };
        let Some(&block) = node.blocks.first() else {
            return Ok(None);
        };
        let edges = walk.known.handled(walk.cfg, block);
        let edges = HashSet::<EdgeId>::from_iter(edges);
        let dependents = walk.known.dependents.values().flatten();
        let handled = dependents.filter(|(edge, _)| edges.contains(edge));
        let mut waits = HashSet::from_iter(handled.map(|&(_, block)| block));
        // If the throwing activation itself handles the exception, all blocks that the throw
        // decides depend on it.
        if let Some(thrower) = thrower.filter(|_| own == walk.depth) {
            waits.extend(walk.decided(thrower, block).iter().copied());
        }
        walk.waits = Waits::These(waits);
        Ok(Some(walk))
    }

    /// Creates a walk along the activation at the cursor.
    fn walk(
        &self,
        cursor: &Cursor<'a, FileSegments>,
        visit: Visit,
        function: FuncId,
    ) -> Result<Option<Walk<'a>>, ValuesError> {
        let Some(code) = self.program.function(function) else {
            return Ok(None);
        };
        let last = cursor.activation_end().map_err(ValuesError::Path)?;
        Ok(Some(Walk {
            function,
            cfg: &code.cfg,
            known: self.of(function, &code.cfg),
            depth: cursor.depth(),
            last: last.unwrap_or(u64::MAX),
            waits: Waits::AllBut(HashSet::new()),
            until: None,
            visit,
            at: 0,
            before: None,
            decided: HashMap::new(),
        }))
    }
}

impl ControlledBlocks<'_, '_> {
    /// Returns the next controlled execution.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    #[expect(
        clippy::should_implement_trait,
        reason = "it can fail, which iterators cannot"
    )]
    pub fn next(&mut self) -> Result<Option<Controlled>, ValuesError> {
        while let Some(walk) = self.walks.last_mut() {
            let blocks = &self.values.path().nodes()[walk.visit.node].blocks;
            let Some(&block) = blocks.get(walk.at) else {
                if !self.go_on()? {
                    self.end()?;
                }
                continue;
            };
            let time = walk.visit.start + walk.at as u64;
            walk.at += 1;
            if let Some(before) = walk.before.replace(block) {
                walk.pass(before, block);
            }
            let found = walk.waits_for(block).then_some(Controlled {
                time,
                function: walk.function,
                block,
            });
            if walk.until == Some(block) || walk.is_over() {
                self.end()?;
            }
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Returns the number of remaining executions. Moves the iterator to the end.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn rest(&mut self) -> Result<u64, ValuesError> {
        let mut count = 0;
        while self.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// Goes to the next node of the activation. Returns whether there is a next node.
    fn go_on(&mut self) -> Result<bool, ValuesError> {
        let Some(walk) = self.walks.last_mut() else {
            return Ok(false);
        };
        let mut next = self.cursor.next().map_err(ValuesError::Path)?;
        while next.is_some() && self.cursor.depth() > walk.depth {
            next = self.cursor.skip_activation().map_err(ValuesError::Path)?;
        }
        let next = next.filter(|visit| visit.start <= walk.last);
        if let Some(visit) = next {
            walk.visit = visit;
            walk.at = 0;
        }
        Ok(next.is_some())
    }

    /// Ends the current walk, and goes to the beginning of the next.
    fn end(&mut self) -> Result<(), ValuesError> {
        self.walks.pop();
        self.resume()
    }

    fn resume(&mut self) -> Result<(), ValuesError> {
        if let Some(walk) = self.walks.last() {
            let start = walk.visit.start;
            self.cursor.seek(start).map_err(ValuesError::Path)?;
        }
        Ok(())
    }
}
