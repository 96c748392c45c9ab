//! Where tokens come from and where the path goes.

use afterimage_ids::{BlockId, FuncId};

/// The bits of the tokens that a run wrote, one after the other, each with its most significant bit first.
pub trait TokenReader {
    /// The next so many bits (1 to 32), without taking them: zeros follow the last.
    fn peek(&mut self, width: u8) -> u32;

    /// Takes so many bits; false if there are not so many left, or no token ends there.
    fn take(&mut self, width: u8) -> bool;

    /// Whether no bit is left: at the end of what has been recorded so far or of the run.
    fn is_empty(&self) -> bool;
}

/// Who is told of the path, in the order of execution.
pub trait PathSink {
    /// An activation of a function begins.
    fn enter(&mut self, function: FuncId);
    /// The innermost activation executes these blocks, one after the other. Dispatch vertices and EXIT are not among them.
    fn blocks(&mut self, blocks: &[BlockId]);
    /// The innermost activation ends: it returns, an exception leaves it, or a tail call replaces it.
    fn leave(&mut self);
}
