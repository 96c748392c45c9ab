//! WebAssembly bytes → functions, control-flow graphs, statements in static
//! single assignment form, names and a source map. Pure: no engine, no files.

mod calls;
mod cfg;
mod cfg_builder;
pub mod dump;
mod error;
mod operators;
mod parse;
mod program;

pub use cfg::{Block, BlockEnd, BlockKind, Callee, Cfg, Edge, EdgeKind};
pub use error::ParseError;
pub use operators::{OperatorIndex, Operators};
pub use program::{Function, FunctionType, Import, Program};
