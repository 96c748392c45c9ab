//! Control-flow graph algorithms on any rooted digraph, reducible or not, with or without a path to
//! EXIT. Nothing here depends on WebAssembly.
//!
//! Every algorithm is near-linear in the size of the graph, unless its documentation says
//! otherwise. None recurses on the graph.

mod adjacency;
mod ambiguity;
mod components;
mod control_dependence;
mod depth_first;
mod dominators;
mod flow_graph;
mod loops;
mod lowest_common_ancestor;
mod post_dominators;
mod spanning_forest;
mod union_find;

pub use adjacency::Adjacency;
pub use ambiguity::{Ambiguity, find_ambiguity};
pub use components::Components;
pub use control_dependence::ControlDependence;
pub use depth_first::DepthFirst;
pub use dominators::DominatorTree;
pub use flow_graph::FlowGraph;
pub use loops::{Loop, LoopForest};
pub use post_dominators::{PostDominatorTree, virtual_exits};
pub use spanning_forest::{SpanningForest, is_forest};
pub use union_find::UnionFind;
