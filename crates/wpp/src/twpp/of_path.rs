//! Converts the grammar of a whole path to path traces and the dynamic call graph, without
//! expanding the run.

mod call;
mod counts;
mod fingerprint;
mod function;
mod open;
mod outlines;
mod own_traces;
mod walk;

use afterimage_ids::{FuncId, NodeId, PrimaryMap, RuleId};

pub use self::call::{CallPath, call_path};
pub use self::counts::{PathCounts, count_paths};
pub use self::function::function_paths;
pub use self::outlines::{PathOutline, path_outlines};
use self::walk::{Visitor, Way, walk};
use super::call_graph::CallId;
use super::collector::Collector;
use super::event::EventError;
use super::wpp::Wpp;
use crate::{Node, PathError, Root, Segments, WholePath};

/// The reason why path traces cannot be computed from a path. `E` is the error of loading a
/// segment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CollectError<E> {
    /// The path cannot be read.
    #[error(transparent)]
    Path(#[from] PathError<E>),
    /// There are more items of some kind than can be numbered.
    #[error(transparent)]
    Event(#[from] EventError),
    /// A filter left out blocks when the path was built.
    #[error("blocks of {0} were left out when the path was built")]
    LeftOut(FuncId),
}

/// Returns the path traces of all calls, and the dynamic call graph (Zhang and Gupta 2001, section
/// 2). At each segment, `tell` receives the number of blocks before it.
///
/// A rule that represents a call is walked once per segment, without its callees, however often the
/// call occurs. So time is linear in the grammars, and in the own blocks and the direct calls of
/// these rules. Memory is linear in the result, the open segment and the open activations.
///
/// # Errors
/// Returns an error if a segment cannot be read, something was left out of the path, or there are
/// too many different calls or path traces, or too many calls and blocks.
pub fn collect<S: Segments>(
    path: &WholePath<S>,
    tell: &dyn Fn(u64),
) -> Result<Wpp, CollectError<S::Error>> {
    let mut collector = Collector::new();
    let mut open: Vec<FuncId> = Vec::new();
    for segment in 0..path.segments().summaries().len() {
        let measured = path.open(segment)?;
        let segment_of = &measured.segment;
        tell(segment_of.before);
        if segment_of.open != open {
            return Err(PathError::Follow { segment }.into());
        }
        let mut visitor = All {
            collector: &mut collector,
            nodes: path.nodes(),
            known: vec![None; segment_of.grammar.rules.len()],
        };
        for item in &segment_of.root {
            match *item {
                Root::Run(symbol) => walk(&segment_of.grammar, symbol, &mut visitor)?,
                Root::Enter(function) => visitor.collector.enter(function),
                Root::Leave => {
                    visitor.collector.leave()?;
                }
            }
        }
        open = segment_of.open_after();
    }
    Ok(collector.finish()?)
}

/// Passes a run to a collector. A call that the collector knows takes a single step.
struct All<'a> {
    collector: &'a mut Collector,
    nodes: &'a PrimaryMap<NodeId, Node>,
    /// The collector's id for each rule that represents a call.
    known: Vec<Option<CallId>>,
}

impl Visitor for All<'_> {
    type Error = Stop;

    fn node(&mut self, node: NodeId, times: u64) -> Result<(), Stop> {
        let blocks = whole(&self.nodes[node])?;
        Ok(self.collector.repeat(blocks, times)?)
    }

    fn call(&mut self, rule: RuleId, function: FuncId) -> Way {
        match self.known[rule.as_u32() as usize] {
            Some(call) => {
                self.collector.again(call);
                Way::Past
            }
            None => {
                self.collector.enter(function);
                Way::Into
            }
        }
    }

    fn called(&mut self, rule: RuleId) -> Result<(), Stop> {
        self.known[rule.as_u32() as usize] = Some(self.collector.leave()?);
        Ok(())
    }
}

/// A [`CollectError`] that does not concern segments.
enum Stop {
    Event(EventError),
    LeftOut(FuncId),
}

impl From<EventError> for Stop {
    fn from(error: EventError) -> Self {
        Self::Event(error)
    }
}

impl<E> From<Stop> for CollectError<E> {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Event(error) => Self::Event(error),
            Stop::LeftOut(function) => Self::LeftOut(function),
        }
    }
}

/// Returns the blocks of a node, if they were not left out.
fn whole(node: &Node) -> Result<&[afterimage_ids::BlockId], Stop> {
    if node.left_out > 0 {
        return Err(Stop::LeftOut(node.function));
    }
    Ok(&node.blocks)
}
