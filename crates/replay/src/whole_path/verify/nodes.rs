//! Looks up the program's facts about each node.

use std::collections::HashMap;

use afterimage_ids::{BlockId, EdgeId, EntityRef, EntitySet, FuncId, NodeId, PrimaryMap, TypeId};
use afterimage_program::{BlockEnd, BlockKind, Callee, Cfg, EdgeKind, Function, Program};
use afterimage_wpp::{Continuation, Directory, Node};

use super::landing::Landings;
use super::span::Outcome;
use super::{PathReport, PathRule};

/// The end of a node.
#[derive(Clone, Copy, Debug)]
pub(super) enum NodeEnd {
    /// Control goes to this vertex.
    Goes(BlockId),
    /// The activation ends.
    Ends(Outcome),
    /// The node ends with a call.
    Calls {
        callee: Callee,
        /// The block to which the call returns, or `None` if it returns out of the function.
        returns: Option<BlockId>,
        /// The vertex to which an exception from the call leads, if the graph has one.
        throws: Option<BlockId>,
    },
    /// The run ends in the node.
    Cut,
    /// The end is unknown, because it was left out, or is wrong and has been reported.
    Unknown,
}

/// The nodes of a path, looked up in its program.
pub(super) struct Nodes<'a> {
    pub program: &'a Program,
    pub nodes: &'a PrimaryMap<NodeId, Node>,
    pub ends: PrimaryMap<NodeId, NodeEnd>,
    pub landings: Landings<'a>,
    /// Whether code was left out of the path.
    pub partial: bool,
    /// The functions that the host may call.
    pub callable: EntitySet<FuncId>,
    /// The types of the imported functions that a table may hold.
    imports: Vec<TypeId>,
}

impl<'a> Nodes<'a> {
    /// Looks up the nodes of a path. Takes linear time, apart from searches among the edges out of
    /// a block.
    pub fn new(program: &'a Program, directory: &'a Directory, report: &mut PathReport) -> Self {
        let mut edges = HashMap::new();
        let mut ends = PrimaryMap::with_capacity(directory.nodes.len());
        for ((id, node), &continuation) in directory.nodes.iter().zip(&directory.continuations) {
            let function = program.function(node.function);
            ends.push(match function {
                Some(function) if node.left_out == 0 => {
                    let edges = edges
                        .entry(node.function)
                        .or_insert_with(|| edges_of(&function.cfg));
                    end(function, edges, id, node, continuation, report)
                }
                _ => NodeEnd::Unknown,
            });
        }
        let mut callable: EntitySet<_> = EntitySet::new();
        let exports = program.exports.iter().map(|&(_, function)| function);
        for function in exports.chain(program.start) {
            callable.insert(function);
        }
        let mut imports = Vec::new();
        for (i, import) in program.imports.iter().enumerate() {
            if program.address_taken.contains(FuncId::new(i)) {
                imports.push(import.ty);
            }
        }
        imports.sort_unstable();
        imports.dedup();
        Self {
            program,
            nodes: &directory.nodes,
            ends,
            landings: Landings::new(program),
            partial: !directory.left_out.is_empty(),
            callable,
            imports,
        }
    }

    /// Returns a node's first block.
    pub fn first(&self, node: NodeId) -> Option<BlockId> {
        self.nodes[node].blocks.first().copied()
    }

    /// Returns a node's last block.
    pub fn last(&self, node: NodeId) -> Option<BlockId> {
        self.nodes[node].blocks.last().copied()
    }

    /// Whether a call can reach an import, which the path does not show.
    pub fn may_be_import(&self, callee: Callee) -> bool {
        match callee {
            Callee::Direct(function) => self.is_import(function),
            Callee::Indirect { ty, .. } => {
                let types = &self.program.types;
                let mut imports = self.imports.iter();
                imports.any(|&import| types.get(import) == types.get(ty))
            }
        }
    }

    fn is_import(&self, function: FuncId) -> bool {
        function.index() < self.program.imports.len()
    }

    /// Whether a call can reach a defined function.
    pub fn may_reach(&self, callee: Callee, function: FuncId) -> bool {
        match callee {
            Callee::Direct(callee) => callee == function,
            Callee::Indirect { ty, .. } => {
                let defined = self.program.function(function);
                let same = defined.is_some_and(|defined| {
                    self.program.types.get(defined.ty) == self.program.types.get(ty)
                });
                same && self.program.address_taken.contains(function)
            }
        }
    }
}

/// An edge for each pair of blocks that are joined.
type Edges = HashMap<(BlockId, BlockId), EdgeId>;

fn edges_of(cfg: &Cfg) -> Edges {
    let edges = cfg.edges.iter();
    edges.map(|(id, edge)| ((edge.from, edge.to), id)).collect()
}

fn end(
    function: &Function,
    edges: &Edges,
    id: NodeId,
    node: &Node,
    continuation: Continuation,
    report: &mut PathReport,
) -> NodeEnd {
    let (name, cfg) = (function.id, &function.cfg);
    for (i, &block) in node.blocks.iter().enumerate() {
        let what = if cfg.blocks[block].kind != BlockKind::Code {
            "executes nothing"
        } else if i + 1 == node.blocks.len() {
            continue;
        } else if matches!(cfg.blocks[block].end, BlockEnd::Call(_)) {
            "ends with a call, but is not the last block"
        } else if !edges.contains_key(&(block, node.blocks[i + 1])) {
            "has no edge to the next block"
        } else {
            continue;
        };
        let text = format!("{id} of {name}: {block}, its block number {i}, {what}");
        report.find(PathRule::Edges, text);
        return NodeEnd::Unknown;
    }
    let Some(&last) = node.blocks.last() else {
        return NodeEnd::Unknown;
    };
    match continued(cfg, edges, last, continuation) {
        Ok(end) => end,
        Err(what) => {
            report.find(PathRule::Continuation, format!("{id} of {name}: {what}"));
            NodeEnd::Unknown
        }
    }
}

/// Returns the end of a node with this last block.
fn continued(
    cfg: &Cfg,
    edges: &Edges,
    last: BlockId,
    continuation: Continuation,
) -> Result<NodeEnd, String> {
    let exit = cfg.graph.exit();
    let Continuation { next, calls } = continuation;
    if let BlockEnd::Call(callee) = cfg.blocks[last].end {
        let to = |kind: EdgeKind| {
            let mut ways = cfg.graph.out_edges(last).iter();
            let edge = ways.find(|&&edge| cfg.edges[edge].kind == kind);
            edge.map(|&edge| cfg.graph.to(edge))
        };
        let returns = to(EdgeKind::CallReturn).filter(|&to| to != exit);
        let throws = to(EdgeKind::CallThrow);
        return if !calls {
            Err(format!("{last} ends with a call, but the node does not"))
        } else if next != returns {
            Err("it does not continue after its call".to_owned())
        } else {
            Ok(NodeEnd::Calls {
                callee,
                returns,
                throws,
            })
        };
    }
    if calls {
        return Err(format!(
            "{last} does not end with a call, but the node does"
        ));
    }
    let leaves = edges.contains_key(&(last, exit));
    match next {
        Some(next) if next == exit => Err("it continues at the function's end".to_owned()),
        Some(next) if edges.contains_key(&(last, next)) => Ok(NodeEnd::Goes(next)),
        Some(next) => Err(format!(
            "no edge leads from {last} to {next}, where it continues"
        )),
        None if !leaves => Ok(NodeEnd::Cut),
        None => Ok(NodeEnd::Ends(match cfg.blocks[last].end {
            BlockEnd::TailCall(callee) => Outcome::tail(callee),
            _ => Outcome::RETURNS,
        })),
    }
}
