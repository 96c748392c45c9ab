//! The source of tokens and the receiver of the path.

use afterimage_ids::{BlockId, FuncId};

/// The bits of the tokens that a run wrote, in sequence, each token with its most significant bit
/// first.
pub trait TokenReader {
    /// The next `width` bits (1 to 32), without consuming them; zeros follow the last bit.
    fn peek(&mut self, width: u8) -> u32;

    /// Consumes `width` bits. Returns false if fewer are left, or no token ends there.
    fn take(&mut self, width: u8) -> bool;

    /// Whether no bit is left, at the end of the recorded part or of the run.
    fn is_empty(&self) -> bool;
}

/// Receives the path in the order of execution.
pub trait PathSink {
    /// An activation of a function begins.
    fn enter(&mut self, function: FuncId);
    /// The innermost activation executes these blocks in sequence. Dispatch vertices and EXIT are
    /// not among them.
    fn blocks(&mut self, blocks: &[BlockId]);
    /// The innermost activation ends: it returns, an exception leaves it, or a tail call replaces
    /// it.
    fn leave(&mut self);
}
