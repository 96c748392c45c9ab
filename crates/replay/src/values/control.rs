//! Finds direct control dependences: the predicates that caused statements to be executed.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use afterimage_graph::{ControlDependence, PostDominatorTree};
use afterimage_ids::{BlockId, EdgeId, FuncId, NodeId, PrimaryMap};
use afterimage_program::{BlockKind, Cfg, Program};
use afterimage_wpp::{Node, NodeFilter};

use super::{Execution, RecordedValues, ValuesError};

/// The cause of a block's execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// A branch in the same activation, at the end of a block.
    Branch {
        /// The time of the block.
        time: u64,
        /// The block that ends with the branch.
        block: BlockId,
    },
    /// The call that began the activation.
    Call {
        /// The time of the calling block.
        time: u64,
    },
    /// The host, which began the activation.
    Host,
    /// The throw of an exception that the activation caught on the way to the block.
    Throw {
        /// The time of the throwing block.
        time: u64,
    },
}

/// Finds control dependences. The dependences of a function are computed on first use.
///
/// A block depends on an edge if it post-dominates the edge's target and does not strictly
/// post-dominate the edge's source (Ferrante, Ottenstein and Warren 1987). Loops without an exit
/// get an artificial exit. Traps do not count. A call is a predicate only if an exception may leave
/// it. The last of these edges executed before the block decides. A block that depends on no edge
/// depends on the call of its activation. A block may depend on whether an exception is handled, or
/// on which exception is handled. If an exception was handled after the deciding edge, the block
/// also depends on the throw.
pub struct Controllers<'a> {
    pub(super) program: &'a Program,
    known: RefCell<HashMap<FuncId, Rc<FunctionControl>>>,
}

/// Control dependences of a function.
pub(super) struct FunctionControl {
    pub(super) dependence: ControlDependence,
    pub(super) post_dominators: PostDominatorTree,
    /// For each block, the blocks that depend on its out-edges, each with that edge.
    pub(super) dependents: HashMap<BlockId, Vec<(EdgeId, BlockId)>>,
    /// For each block, the nodes whose branches may decide whether it is executed, once requested.
    deciders: RefCell<HashMap<BlockId, Rc<NodeFilter>>>,
    /// The function's nodes, by their blocks, once requested.
    nodes: OnceCell<HashMap<BlockId, Vec<NodeId>>>,
}

impl<'a> Controllers<'a> {
    /// Creates an index of the control dependences of a program.
    pub fn new(program: &'a Program) -> Self {
        Self {
            program,
            known: RefCell::default(),
        }
    }

    pub(super) fn of(&self, function: FuncId, cfg: &Cfg) -> Rc<FunctionControl> {
        if let Some(known) = self.known.borrow().get(&function) {
            return Rc::clone(known);
        }
        let post_dominators = PostDominatorTree::compute(&cfg.graph);
        let dependence = ControlDependence::compute(&cfg.graph, &post_dominators);
        let mut dependents: HashMap<_, Vec<_>> = HashMap::new();
        for block in cfg.blocks.keys() {
            for &edge in dependence.controllers(block) {
                let of_block = dependents.entry(cfg.graph.from(edge)).or_default();
                of_block.push((edge, block));
            }
        }
        let found = Rc::new(FunctionControl {
            dependence,
            post_dominators,
            dependents,
            deciders: RefCell::default(),
            nodes: OnceCell::new(),
        });
        self.known.borrow_mut().insert(function, Rc::clone(&found));
        found
    }

    /// Returns the causes of an execution. A branch, a call or the host comes first, followed by
    /// the throws, the latest first. Looks back through the activation, in time linear in the nodes
    /// that it has executed since the cause. In a function without exception handlers, skips
    /// everything except nodes with a branch that may decide. All executions must belong to one
    /// recording.
    ///
    /// # Errors
    /// Returns an error if the path cannot be read.
    pub fn of_execution(
        &self,
        values: &RecordedValues<'_>,
        execution: &Execution,
    ) -> Result<Vec<Controller>, ValuesError> {
        let mut thrown = Vec::new();
        let controller = self.decider(values, execution, &mut thrown)?;
        // If the deciding branch is itself a throw, the throw is not listed again.
        let decides =
            |time: u64| matches!(controller, Controller::Branch { time: of, .. } if of == time);
        thrown.retain(|&time| !decides(time));
        let thrown = thrown.into_iter().map(|time| Controller::Throw { time });
        Ok(std::iter::once(controller).chain(thrown).collect())
    }

    fn decider(
        &self,
        values: &RecordedValues<'_>,
        execution: &Execution,
        thrown: &mut Vec<u64>,
    ) -> Result<Controller, ValuesError> {
        let path = values.path();
        let blocks = |node: NodeId| &path.nodes()[node].blocks;
        let instance = execution.instance;
        let function = path.nodes()[instance.node].function;
        let mut cursor = path.cursor();
        cursor.seek(instance.time).map_err(ValuesError::Path)?;
        let position = (execution.time - instance.time) as usize;
        let of = &blocks(instance.node)[..=position];
        let (Some((&block, before)), Some(code)) =
            (of.split_last(), self.program.function(function))
        else {
            return Ok(Controller::Host);
        };
        let cfg = &code.cfg;
        let known = self.of(function, cfg);
        let controllers = known.dependence.controllers(block);
        // This closure returns whether control takes a controlling edge from one block to another.
        let decides = |from: BlockId, to: BlockId| {
            let mut edges = controllers.iter();
            edges.any(|&edge| takes(cfg, edge, from, to))
        };
        let mut follower = block;
        let mut part = before;
        let mut start = instance.time;
        let deciders = known.deciders(path.nodes(), (function, cfg), block);
        while !controllers.is_empty() {
            for (i, &candidate) in part.iter().enumerate().rev() {
                if decides(candidate, follower) {
                    let time = start + i as u64;
                    let block = candidate;
                    return Ok(Controller::Branch { time, block });
                }
                follower = candidate;
            }
            let previous = match &deciders {
                Some(deciders) => cursor.previous_among(deciders),
                None => cursor.previous_in_activation(),
            };
            let Some(visit) = previous.map_err(ValuesError::Path)? else {
                break;
            };
            if deciders.is_some() {
                let mut next = cursor.clone();
                let next = next.next_in_activation().map_err(ValuesError::Path)?;
                let first = next.and_then(|next| blocks(next.node).first().copied());
                follower = first.unwrap_or(follower);
            } else if known.is_handled(cfg, follower, block)
                && let Some(handler) = values.at(start)?
                && let Some(thrower) = values.thrower(handler)?
            {
                let length = path.nodes()[thrower.node].length();
                thrown.push(thrower.time + length - 1);
            }
            part = blocks(visit.node);
            start = visit.start;
        }
        // No branch in the activation decides, so the cause is the activation's beginning.
        let outermost = cursor.depth() <= 1;
        let own = cursor.innermost().map_err(ValuesError::Path)?;
        let caller = cursor.seek(own.map_or(0, |own| own.entered - 1));
        let Some(caller) = caller.map_err(ValuesError::Path)? else {
            return Ok(Controller::Host);
        };
        // A tail call may have replaced the activation that the host began.
        if outermost {
            let before = values.at(caller.start)?;
            if !before.map_or(Ok(false), |before| values.replaced(before))? {
                return Ok(Controller::Host);
            }
        }
        Ok(Controller::Call {
            time: caller.last(),
        })
    }
}

impl FunctionControl {
    /// Returns the edges over which an exception may reach a handler. These are edges into the
    /// vertices that dispatch exceptions to the handler, and edges from these vertices to the
    /// handler.
    pub(super) fn handled(&self, cfg: &Cfg, handler: BlockId) -> Vec<EdgeId> {
        let before = |v: BlockId| cfg.graph.predecessors(v).filter(|&v| is_dispatch(cfg, v));
        let mut dispatches = Vec::from_iter(before(handler));
        let mut at = 0;
        while let Some(&dispatch) = dispatches.get(at) {
            for v in before(dispatch) {
                if !dispatches.contains(&v) {
                    dispatches.push(v);
                }
            }
            at += 1;
        }
        let into = dispatches.iter().flat_map(|&v| cfg.graph.in_edges(v));
        let own = cfg.graph.in_edges(handler).iter();
        let own = own.filter(|&&edge| dispatches.contains(&cfg.graph.from(edge)));
        into.chain(own).copied().collect()
    }

    /// Returns the nodes with a block from which a branch may decide whether `block` is executed.
    /// Returns `None` if the function handles exceptions.
    fn deciders(
        &self,
        nodes: &PrimaryMap<NodeId, Node>,
        (function, cfg): (FuncId, &Cfg),
        block: BlockId,
    ) -> Option<Rc<NodeFilter>> {
        if cfg.blocks.keys().any(|vertex| is_dispatch(cfg, vertex)) {
            return None;
        }
        let mut known = self.deciders.borrow_mut();
        let found = known.entry(block).or_insert_with(|| {
            let nodes = self.nodes.get_or_init(|| {
                let mut by_block: HashMap<BlockId, Vec<NodeId>> = HashMap::new();
                for (id, node) in nodes.iter().filter(|(_, node)| node.function == function) {
                    for &block in &*node.blocks {
                        by_block.entry(block).or_default().push(id);
                    }
                }
                by_block
            });
            let controllers = self.dependence.controllers(block).iter();
            let sources = controllers.map(|&edge| cfg.graph.from(edge));
            let deciders = sources.filter_map(|source| nodes.get(&source)).flatten();
            Rc::new(NodeFilter::new(deciders.copied()))
        });
        Some(Rc::clone(found))
    }

    /// Whether a block depends on the exception that a handler catches.
    fn is_handled(&self, cfg: &Cfg, handler: BlockId, block: BlockId) -> bool {
        let controllers = self.dependence.controllers(block);
        if controllers.is_empty() {
            return false;
        }
        let handled = self.handled(cfg, handler);
        controllers.iter().any(|edge| handled.contains(edge))
    }
}

/// Whether control takes an edge on its way from one block to another in an activation. The way is
/// direct, or leads through vertices that dispatch an exception and execute nothing.
fn takes(cfg: &Cfg, edge: EdgeId, from: BlockId, to: BlockId) -> bool {
    let source = cfg.graph.from(edge);
    let is_left =
        source == from || is_dispatch(cfg, source) && dispatches(cfg, from).contains(&source);
    is_left && reaches(cfg, cfg.graph.to(edge), to)
}

fn is_dispatch(cfg: &Cfg, vertex: BlockId) -> bool {
    matches!(cfg.blocks[vertex].kind, BlockKind::Dispatch(_))
}

/// Returns the vertices that may dispatch an exception thrown in a block.
pub(super) fn dispatches(cfg: &Cfg, from: BlockId) -> Vec<BlockId> {
    let mut found: Vec<BlockId> = Vec::new();
    let mut work = vec![from];
    while let Some(v) = work.pop() {
        for next in cfg.graph.successors(v) {
            if is_dispatch(cfg, next) && !found.contains(&next) {
                found.push(next);
                work.push(next);
            }
        }
    }
    found
}

/// Whether a vertex is the given block, or leads to it through vertices that dispatch exceptions.
pub(super) fn reaches(cfg: &Cfg, from: BlockId, to: BlockId) -> bool {
    from == to
        || is_dispatch(cfg, from)
            && (cfg.graph.successors(from).any(|next| next == to)
                || dispatches(cfg, from)
                    .iter()
                    .any(|&v| v == to || cfg.graph.successors(v).any(|next| next == to)))
}
