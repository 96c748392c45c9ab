//! Finds the last execution that set a local, even if it is far back in the run.

use std::rc::Rc;

use afterimage_ids::{BlockId, FuncId};
use afterimage_wpp::{Occurrences, Segments};
use rustc_hash::FxHashSet;
use wasmparser::Operator;

use super::source::Step;
use super::{Epochs, Failure, Instance, MOST_COUNTED, TraceError, WholeTrace};

/// The search ends after this many executions in other activations that set the local.
const MOST: usize = 64;

impl<'a, S: Segments, E: Epochs> WholeTrace<'a, S, E>
where
    S::Error: std::error::Error + 'static,
{
    /// Returns the origin of a local, which is the last execution of its activation that set it, or
    /// the beginning of the activation. Returns `None` if too many other activations of the
    /// function set it in the meantime, or if the path begins within the activation.
    ///
    /// The executions that set the local are counted in the grammar, so the time does not depend on
    /// the distance to the origin. The first query about a local takes O(nodes of the path), and
    /// later queries take O(depth of the grammar).
    pub(super) fn local_before(
        &self,
        at: Instance,
        local: u32,
    ) -> Result<Option<Step>, Failure<S, E>> {
        let function = self.compiled(at.node)?.code.function;
        let setters = self.setters(function, local)?;
        let mut cursor = self.path.cursor();
        cursor.seek(at.time).map_err(TraceError::Path)?;
        let depth = cursor.depth();
        let Some(activation) = cursor.innermost().map_err(TraceError::Path)? else {
            return Ok(None);
        };
        let entered = activation.entered;
        let mut before = at.time;
        for _ in 0..MOST {
            let found = setters.previous_before(before).map_err(TraceError::Path)?;
            let Some(found) = found.filter(|found| found.time >= entered) else {
                let first = cursor.seek(entered).map_err(TraceError::Path)?;
                // The path may begin within the activation.
                let first = first.filter(|first| first.start == entered);
                return match first {
                    Some(first) => {
                        let first = self.numbered(first.node, first.start)?;
                        self.entered(first, local).map(Some)
                    }
                    None => Ok(None),
                };
            };
            let visit = cursor.seek(found.time).map_err(TraceError::Path)?;
            let visit = visit.ok_or(TraceError::Damaged("an execution that does not exist"))?;
            before = visit.start;
            if cursor.depth() > depth {
                // Everything since this inner activation began belongs to other activations.
                let stack = cursor.stack().map_err(TraceError::Path)?;
                before = stack.get(depth).map_or(before, |inner| inner.entered);
                continue;
            }
            let compiled = self.compiled(visit.node)?;
            if self.writes(&compiled.code, local, None) {
                let instance = self.numbered(visit.node, visit.start)?;
                return self.written(instance, local, None).map(Some);
            }
        }
        Ok(None)
    }

    /// Returns the executions of the nodes that set a local in a function.
    fn setters(
        &self,
        function: FuncId,
        local: u32,
    ) -> Result<Rc<Occurrences<'a, S>>, Failure<S, E>> {
        let key = (function, local);
        if let Some(known) = self.setters.borrow().get(&key) {
            return Ok(Rc::clone(known));
        }
        let unknown = TraceError::Damaged("a function that is not in the program");
        let defined = self.program.function(function).ok_or(unknown)?;
        let sets = |operator: &Operator<'_>| match *operator {
            Operator::LocalSet { local_index } | Operator::LocalTee { local_index } => {
                local_index == local
            }
            _ => false,
        };
        let operators = self.program.operators(self.bytes, defined);
        let setting = operators.filter(|(_, _, operator)| sets(operator));
        let blocks: FxHashSet<BlockId> = setting
            .filter_map(|(op, ..)| defined.block_of(op))
            .collect();
        let nodes = self.path.nodes().iter().filter(|(_, node)| {
            node.function == function && node.blocks.iter().any(|block| blocks.contains(block))
        });
        let setters = self.path.executions(nodes.map(|(id, _)| (id, 0)))?;
        let setters = Rc::new(setters);
        let mut all = self.setters.borrow_mut();
        if all.len() >= MOST_COUNTED {
            all.clear();
        }
        all.insert(key, Rc::clone(&setters));
        Ok(setters)
    }
}
