//! Parses WebAssembly bytes into functions, control-flow graphs, statements in static single
//! assignment form, names and a source map. The crate uses no engine and no files.

mod assemble;
mod beginning;
mod body;
mod calls;
mod cfg;
mod cfg_builder;
pub mod dump;
mod error;
mod fit;
mod missing;
mod module;
mod names;
mod nearest;
mod operators;
mod parse;
mod program;
mod sections;
mod slots;
mod source;
mod ssa;
mod stack;

pub use beginning::{BEGINNING, is_module};
pub use body::validator;
pub use cfg::{Block, BlockEnd, BlockKind, Callee, Cfg, Edge, EdgeKind};
pub use error::ParseError;
pub use fit::Fit;
pub use missing::NoDebug;
pub use module::Module;
pub use names::{
    NameError, Names, declared_without_code, demangle, short_function, short_type,
    without_parameters,
};
pub use nearest::nearest;
pub use operators::{OperatorIndex, Operators};
pub use program::{Function, FunctionType, Import, Program};
pub use sections::address_base;
pub use slots::{NO_HEIGHT, Slots};
pub use source::{FileId, InlinedFrame, InlinedFunction, LineError, Location, Row, SourceMap};
pub use ssa::{Effect, MemoryStore, Phi, Ssa, Statement, Value, ValueDef};
pub use stack::{Carried, CarriedFrom};
