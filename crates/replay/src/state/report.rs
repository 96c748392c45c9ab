//! The state at a moment, ready to be shown.

use afterimage_ids::{FuncId, OrigOffset};
use afterimage_profile::SourceLine;
use wasmparser::ValType;

use super::Shown;
use crate::values::Bits;

/// The state at a moment: before a block, or one of its operators, is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateReport {
    /// The time of the block.
    pub time: u64,
    /// The operator, unless the moment is that before the block.
    pub before: Option<OrigOffset>,
    /// How many blocks the run executed.
    pub length: u64,
    /// The activations that were asked for, the innermost first.
    pub frames: Vec<Frame>,
    /// How many activations are open.
    pub open: usize,
    /// The globals, if they were asked for.
    pub globals: Option<Globals>,
}

/// An activation with what its variables hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its position in the stack, 0 for the innermost.
    pub number: usize,
    /// Its function.
    pub function: FuncId,
    /// What that is called.
    pub name: String,
    /// When it began: the time of its first block.
    pub entered: u64,
    /// The time of the block where it stands.
    pub time: u64,
    /// The operator before which it stands.
    pub offset: OrigOffset,
    /// The source line of that, if it is known.
    pub line: Option<SourceLine>,
    /// The functions inlined there, the innermost first.
    pub inlined: Vec<String>,
    /// The variables of the source, the innermost scope first; or why there are none.
    pub variables: Result<Vec<Shown>, String>,
    /// The locals of WebAssembly, if there are no variables of the source.
    pub locals: Vec<Local>,
    /// If that is of a library: the line of the user's own code that it was inlined for.
    pub around: Option<SourceLine>,
    /// Its code is not the user's own; unless it was asked for, its variables are left out.
    pub library: bool,
    /// Why what some of them hold is not known: no values were kept of the time of the call, or of the function.
    pub outside: Option<String>,
}

/// A local or a global of WebAssembly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// Its index.
    pub index: u32,
    /// What it is called, if it has a name.
    pub name: Option<String>,
    /// Its type.
    pub ty: ValType,
    /// Whether it is a parameter.
    pub parameter: bool,
    /// What it holds, if that is known.
    pub value: Option<Bits>,
}

/// Globals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Globals {
    /// Those of WebAssembly.
    pub module: Vec<Local>,
    /// Those of the source.
    pub source: Vec<Shown>,
    /// How many of the source there are besides.
    pub more: usize,
}
