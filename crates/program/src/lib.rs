//! WebAssembly bytes → functions, control-flow graphs, statements in static
//! single assignment form, names and a source map. Pure: no engine, no files.

mod cfg;
mod program;

pub use cfg::{Block, BlockEnd, BlockKind, Callee, Cfg, Edge, EdgeKind};
pub use program::{Function, FunctionType, Import, Program};
