//! Reports the state at a moment, in a form for display.

use afterimage_ids::{FuncId, OrigOffset};
use afterimage_profile::SourceLine;
use wasmparser::ValType;

use super::Shown;
use crate::values::Bits;

/// The state right before a block, or one of its operators, is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateReport {
    /// The time of the block.
    pub time: u64,
    /// The operator that follows the moment, or `None` if the moment precedes the whole block.
    pub before: Option<OrigOffset>,
    /// The number of blocks that the run executed.
    pub length: u64,
    /// The requested activations, the innermost first.
    pub frames: Vec<Frame>,
    /// The number of open activations.
    pub open: usize,
    /// The globals, if requested.
    pub globals: Option<Globals>,
}

/// An activation with the values of its variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The activation's position in the stack, counted from 0 for the innermost.
    pub number: usize,
    /// The function of the activation.
    pub function: FuncId,
    /// The name of the function.
    pub name: String,
    /// The time of the activation's first block.
    pub entered: u64,
    /// The time of the activation's current block.
    pub time: u64,
    /// The operator that the activation executes next.
    pub offset: OrigOffset,
    /// The source line of the operator, if known.
    pub line: Option<SourceLine>,
    /// The functions inlined at the operator, the innermost first.
    pub inlined: Vec<InlinedCall>,
    /// The line in the function itself, which is the line of the operator or of the outermost
    /// inlined call.
    pub own_line: Option<SourceLine>,
    /// The variables of the source, the innermost scope first, or the reason why there are none.
    pub variables: Result<Vec<Shown>, String>,
    /// The locals of WebAssembly, if there are no variables of the source.
    pub locals: Vec<Local>,
    /// If the line belongs to a library, the line of the user's own code into which it was inlined.
    pub around: Option<SourceLine>,
    /// Whether the activation's code belongs to a library. If so, its variables are left out unless
    /// requested.
    pub library: bool,
    /// The reason why some values are unknown, if no values are stored for the time of the call or
    /// for the function.
    pub outside: Option<String>,
}

/// A call that was inlined into an activation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlinedCall {
    /// The name of the function.
    pub name: String,
    /// The line in this function, if known. It is the line of the operator, or of the next inlined
    /// call.
    pub line: Option<SourceLine>,
    /// Whether the function belongs to a library.
    pub library: bool,
}

/// A local or a global of WebAssembly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// The index of the local or global.
    pub index: u32,
    /// The name of the local or global, if it has one.
    pub name: Option<String>,
    /// The type of the value.
    pub ty: ValType,
    /// Whether the local is a parameter.
    pub parameter: bool,
    /// The value, if known.
    pub value: Option<Bits>,
}

/// The values of all requested global variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Globals {
    /// The globals of WebAssembly.
    pub module: Vec<Local>,
    /// The global variables of the source.
    pub source: Vec<Shown>,
    /// The number of source variables that are left out.
    pub more: usize,
}
