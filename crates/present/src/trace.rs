//! Reports stretches of a run entry by entry, while reading them. Entries are not collected in
//! memory, so a run may have any length.

mod binary;
mod calls;
mod inlined;
mod json;
mod lines;
mod text;

use std::error::Error;

use afterimage_ids::{BlockId, FuncId};
use afterimage_profile::OwnFunctions;
use afterimage_program::Names;
use afterimage_replay::whole_path::{
    BlockPlace, CallEntry, CallTree, CallsOf, Numbering, Places, Window,
};
use afterimage_wpp::{Segments, WholePath};

pub use self::binary::{calls_binary, trace_binary};
pub(crate) use self::calls::CalledAt;
pub use self::calls::{CallRow, call_rows, calls_in_text};
pub(crate) use self::inlined::InlinedCaller;
pub use self::json::{TraceHead, TraceRow, trace_rows};
pub use self::lines::{
    ChangedPartRow, ChangedRow, ChangedVariable, LineEntry, LineRow, LineStyle, NextLine,
    line_rows, lines_text,
};
pub use self::text::{leave_out_library, trace_text};
use crate::{PresentError, Sources, Style};

/// The kind of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceLevel {
    /// A basic block.
    Block,
    /// A path: blocks of one activation up to a call, a loop's header or the end.
    Path,
}

/// The run to show, with its program.
#[derive(Clone, Copy)]
pub struct Scene<'a, S> {
    /// The run.
    pub path: &'a WholePath<S>,
    /// The functions' names.
    pub names: &'a Names,
    /// The source places of blocks.
    pub places: &'a Places<'a>,
    /// The functions that the text form shows, if it leaves out others.
    pub own: Option<&'a OwnFunctions<'a>>,
    /// The text of source files.
    pub sources: &'a dyn Sources,
    /// A description of the missing parts of the path; empty if it is complete.
    pub left_out: &'a str,
    /// The style of text.
    pub style: Style,
}

/// A stretch of a run, for the head of the output.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// The times at which the stretch begins and ends.
    pub window: Window,
    /// Whether the output goes backward in time.
    pub reverse: bool,
    /// The function to show; `None` for all functions.
    pub function: Option<FuncId>,
}

/// The activations of a stretch: the whole tree, or the activations of one function.
pub enum CallSource<'a, S: Segments> {
    /// The tree of all activations.
    Tree(Box<CallTree<'a, S>>),
    /// The activations of one function, with their numbers in the whole run.
    Of(Box<CallsOf<'a, S>>, Numbering),
}

impl<S: Segments> CallSource<'_, S>
where
    S::Error: Send + Sync,
{
    /// Returns the next activation, with its number among the activations of its function. The
    /// number is `None` if it is unknown, or if the tree is shown.
    fn next_call(&mut self) -> Result<Option<(Option<u64>, CallEntry)>, PresentError> {
        match self {
            CallSource::Tree(tree) => {
                let next = tree.next_call().map_err(unreadable)?;
                Ok(next.map(|call| (None, call)))
            }
            CallSource::Of(calls, numbering) => {
                let next = calls.next_call().map_err(unreadable)?;
                Ok(next.map(|(kept, call)| (numbering.of_kept(call.function, kept), call)))
            }
        }
    }

    /// Returns the number of activations that are open at the beginning of the stretch, and the
    /// innermost `count` of them, if they are shown.
    fn around(&mut self, count: usize) -> Result<(usize, Vec<CallEntry>), PresentError> {
        match self {
            CallSource::Tree(tree) => {
                let calls = tree.innermost_around(count).map_err(unreadable)?;
                Ok((tree.around().len(), calls))
            }
            CallSource::Of(..) => Ok((0, Vec::new())),
        }
    }
}

impl<S> Scene<'_, S> {
    /// Whether the text form shows an activation of a function.
    pub(crate) fn shows(&self, function: FuncId) -> bool {
        self.own.is_none_or(|own| own.shows(function))
    }

    /// Whether the text form shows a block. Code of a shown function may be inlined into a library
    /// function.
    fn shows_block(&self, function: FuncId, block: BlockId) -> Result<bool, PresentError> {
        Ok(self.shows(function) || self.place(function, block)?.position.is_some())
    }

    /// Returns the place of a block. Succeeds for every block of a path, because the program
    /// contains it.
    fn place(&self, function: FuncId, block: BlockId) -> Result<BlockPlace, PresentError> {
        let place = self.places.block(function, block)?;
        place.ok_or(PresentError::NoGraph(function.as_u32()))
    }
}

/// Creates the error for a path that cannot be read.
pub(crate) fn unreadable(error: impl Error + Send + Sync + 'static) -> PresentError {
    PresentError::Path(Box::new(error))
}
