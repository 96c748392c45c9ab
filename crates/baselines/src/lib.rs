//! Implements other representations of a control-flow trace, for comparison.
//!
//! Each baseline reads a trace as a stream and reports the number of bytes or bits that it would
//! store. Its memory does not grow with the trace. For grammars and entropies, memory grows only
//! with the distinct parts.
//!
//! | baseline | stores | source |
//! |---|---|---|
//! | [`BlockTrace`] | 4 bytes per executed block | the uncompacted trace of Zhang and Gupta 2001, Table 1 |
//! | [`BranchTrace`] | one bit per conditional branch | the usual way of tracing, as in processors' branch traces |
//! | [`Sequitur`] | a grammar that generates exactly the trace | Larus 1999; Nevill-Manning and Witten 1997 |
//! | [`bidirectional`] | mispredicted values, and one bit for each predicted value | Zhang and Gupta 2005, section 4 |
//! | [`ZstdSize`] | any of these streams through zstd | RFC 8878 |
//! | [`branch_entropy_bits`], [`StreamEntropy`] | the size under an ideal entropy coder | Shannon 1948 |
//!
//! Nothing here depends on WebAssembly or the rest of the project.

pub mod bidirectional;
mod block_trace;
mod branch_trace;
mod byte_count;
mod entropy;
mod grammar;
mod sequitur;
mod zstd_size;

pub use block_trace::BlockTrace;
pub use branch_trace::BranchTrace;
pub use byte_count::ByteCount;
pub use entropy::{StreamEntropy, branch_entropy_bits, entropy_bits};
pub use grammar::{Expansion, Grammar, GrammarSize, Symbol};
pub use sequitur::{MAX_TERMINAL, Sequitur, SequiturError};
pub use zstd_size::ZstdSize;
