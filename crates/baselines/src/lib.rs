//! What others store of a control-flow trace, to compare with.
//!
//! Each baseline takes a trace as a stream, in memory that does not grow with the trace (or, for grammars and
//! entropies, only with what is distinct in it), and says how many bytes or bits it would store:
//!
//! | baseline | stores | source |
//! |---|---|---|
//! | [`BlockTrace`] | 4 bytes per executed block | the uncompacted trace of Zhang and Gupta 2001, Table 1 |
//! | [`BranchTrace`] | one bit per conditional branch | the usual way of tracing, as in processors' branch traces |
//! | [`Sequitur`] | a grammar that generates one string, the trace | Larus 1999; Nevill-Manning and Witten 1997 |
//! | [`bidirectional`] | what reversible predictors do not predict, a bit for what they do | Zhang and Gupta 2005, section 4 |
//! | [`ZstdSize`] | any of these streams through zstd | RFC 8878 |
//! | [`branch_entropy_bits`], [`StreamEntropy`] | what an ideal entropy coder would | Shannon 1948 |
//!
//! Nothing here knows WebAssembly or the rest of the project.

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
