//! Defines the source of tokens and the receiver of the path.

use afterimage_ids::{BlockId, FuncId};

/// The bits of the tokens that a run wrote, in sequence, each token with its most significant bit
/// first.
pub trait TokenReader {
    /// Returns the next `width` bits (1 to 32) without consuming them. Zeros follow the last bit.
    fn peek(&mut self, width: u8) -> u32;

    /// Consumes `width` bits. Returns `false` if fewer bits are left, or no token ends after them.
    fn take(&mut self, width: u8) -> bool;

    /// Whether no bit is left, at the end of the recorded part or of the run.
    fn is_empty(&self) -> bool;
}

/// Receives the path in the order of execution.
pub trait PathSink {
    /// Reports that an activation of a function begins.
    fn enter(&mut self, function: FuncId);
    /// Reports that the innermost activation executes these blocks in sequence. Dispatch vertices
    /// and EXIT are not among them.
    fn blocks(&mut self, blocks: &[BlockId]);
    /// Reports that the innermost activation ends, because it returns, an exception leaves it, or a
    /// tail call replaces it.
    fn leave(&mut self);
}
