//! Compresses streams by bidirectional prediction (Zhang and Gupta 2005, section 4).
//!
//! A stream consists of two stacks of bits, with a window of a few values between them. Values left
//! of the window are coded by their right context, and values right of the window by their left
//! context. A step pops a value from one stack and pushes the value that leaves the window onto the
//! other. A predicted value takes one bit. Any other value takes one bit plus its width. In the
//! paper, these are 1 and 33 bits.
//!
//! **A correction.** Figure 9 as printed stores the value itself on a miss. Such a stream cannot be
//! decoded backward, because the table entry that the miss overwrote is lost. This implementation
//! stores the *evicted entry* instead, as the words "prediction v" in the paper's text say.
//! Decoding takes the value from the table, which always contains it, and restores the entry. So
//! each step of coding can be undone exactly. A test implements the printed version and shows that
//! it fails.
//!
//! **Departures.** Figure 13 shows only the main cases of the last n method, with one table for
//! both directions. Here each direction has its own table, so every step is the exact inverse of
//! its opposite. Streams with values above 32 bits store all values in 64 bits. The paper specifies
//! neither the sizes of contexts and tables nor the number of values that selection examines. Here
//! they are given by [`METHODS`], [`TABLE_LOG`] and [`TRIAL`].

mod bit_stack;
mod predictor;
mod selection;
mod side;
mod walk;

pub use predictor::{Method, TABLE_LOG};
pub use selection::{METHODS, TRIAL, select};
pub use walk::Bidirectional;
