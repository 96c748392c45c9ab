//! Tracks activations that are open at a segment's end. Their traces continue in later segments.

use afterimage_ids::{BlockId, FuncId, NodeId, PrimaryMap, RuleId};

use super::walk::{Visitor, Way, walk};
use super::{Stop, whole};
use crate::measures::Measured;
use crate::twpp::path_builder::PathBuilder;
use crate::{Grammar, Node, Root, Summary, Symbol};

/// The open activations of a function, and the blocks that each has executed itself.
#[derive(Default)]
pub(super) struct Open {
    /// The activations, outermost first, each with the number of activations around it.
    activations: Vec<(u32, PathBuilder)>,
}

impl Open {
    pub(super) fn push(&mut self, depth: u32, trace: PathBuilder) {
        self.activations.push((depth, trace));
    }

    /// Whether no activation of the function is open.
    pub(super) fn is_empty(&self) -> bool {
        self.activations.is_empty()
    }

    /// Skips a segment in which the activations execute nothing. The segment's summary shows which
    /// of them end. Returns their traces, innermost first.
    pub(super) fn pass(&mut self, summary: &Summary) -> impl Iterator<Item = PathBuilder> {
        let ended = |&(depth, _): &(u32, _)| depth < summary.kept;
        let kept = self.activations.partition_point(ended);
        self.activations.drain(kept..).rev().map(|(_, trace)| trace)
    }

    /// Walks the root of a segment from an item on. Adds the activations of `function` that begin
    /// in the root, and passes the traces of activations that end to `ended`.
    pub(super) fn follow(
        &mut self,
        measured: &Measured,
        from: usize,
        nodes: &PrimaryMap<NodeId, Node>,
        function: Option<FuncId>,
        mut ended: impl FnMut(PathBuilder) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let segment = &measured.segment;
        for (item, &depth) in segment.root.iter().zip(&measured.depths).skip(from) {
            match *item {
                Root::Run(symbol) => {
                    if let Some((own, trace)) = self.activations.last_mut()
                        && *own + 1 == depth
                    {
                        own_trace(&segment.grammar, symbol, nodes, trace)?;
                    }
                }
                Root::Enter(entered) if Some(entered) == function => {
                    self.push(depth, PathBuilder::default());
                }
                Root::Enter(_) => {}
                Root::Leave => {
                    let own = |(own, _): &mut (u32, _)| *own + 1 == depth;
                    if let Some((_, trace)) = self.activations.pop_if(own) {
                        ended(trace)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the activations that never ended.
    pub(super) fn finish(self) -> impl Iterator<Item = PathBuilder> {
        self.activations.into_iter().map(|(_, trace)| trace)
    }
}

/// Appends the blocks that an activation itself executes in a symbol, without the blocks of its
/// callees.
pub(super) fn own_trace(
    grammar: &Grammar,
    symbol: Symbol,
    nodes: &PrimaryMap<NodeId, Node>,
    trace: &mut PathBuilder,
) -> Result<(), Stop> {
    walk(grammar, symbol, &mut Own { nodes, trace })
}

/// Does the same as [`own_trace`], for a rule that represents a whole activation.
pub(super) fn own_trace_of_call(
    grammar: &Grammar,
    call: RuleId,
    nodes: &PrimaryMap<NodeId, Node>,
    trace: &mut PathBuilder,
) -> Result<(), Stop> {
    let symbols = grammar.symbols_of(call).iter();
    symbols
        .copied()
        .try_for_each(|symbol| own_trace(grammar, symbol, nodes, trace))
}

struct Own<'a> {
    nodes: &'a PrimaryMap<NodeId, Node>,
    trace: &'a mut PathBuilder,
}

impl Visitor for Own<'_> {
    type Error = Stop;

    fn node(&mut self, node: NodeId, times: u64) -> Result<(), Stop> {
        let blocks: &[BlockId] = whole(&self.nodes[node])?;
        (0..times).for_each(|_| self.trace.extend(blocks));
        Ok(())
    }

    fn call(&mut self, _: RuleId, _: FuncId) -> Way {
        Way::Past
    }

    fn called(&mut self, _: RuleId) -> Result<(), Stop> {
        Ok(())
    }
}
