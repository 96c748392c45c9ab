//! Control-flow graph algorithms on any rooted digraph, reducible or not, with
//! or without a path to EXIT. Nothing here knows WebAssembly.

mod flow_graph;

pub use flow_graph::FlowGraph;
