//! Bidirectional prediction: the stream compression of Zhang and Gupta 2005, section 4.
//!
//! A stream is held as two stacks of bits with a window of some values between them: what lies left of the window is coded
//! by its right context, what lies right of it by its left context. A step pops a value from one stack and pushes the one
//! that leaves the window on the other. A predicted value takes a bit, any other the bit and its width: the paper's 1 and 33.
//!
//! **A correction.** Figure 9 as printed stores on a miss the value itself, and cannot run backward, because the table
//! entry that the miss overwrote is lost. What is stored here is that *evicted entry*, as the prose's "prediction v" has it, and
//! decoding puts it back: the value is always what the table holds. Coding is then undone exactly, step by step. A test
//! keeps the printed version, and that it fails.
//!
//! **Departures.** Figure 13 gives only the main cases of last n, with one table for both directions; here each direction has its own, so
//! that every step is the exact inverse of its opposite. Values of more than 32 bits are told in 64. The paper tells
//! neither the sizes of contexts and tables nor the number of instances that selection takes; see [`METHODS`],
//! [`TABLE_LOG`] and [`TRIAL`].

mod bit_stack;
mod predictor;
mod selection;
mod side;
mod walk;

pub use predictor::{Method, TABLE_LOG};
pub use selection::{METHODS, TRIAL, select};
pub use walk::Bidirectional;
