//! Computes WebAssembly's numeric operators, bit for bit like the engine that records runs.
//!
//! This crate is for evaluators. Operators are small `Copy` opcodes, and values are represented by
//! their bits. The engine's settings make every result deterministic. NaNs that arithmetic yields
//! are canonical, and relaxed operators have their deterministic meaning (WebAssembly core
//! specification 3.0, section "Numerics", "deterministic profile").
//!
//! Results depend on the processor in one case. On x86-64, the engine calls a function for `ceil`,
//! `floor`, `trunc` and `nearest` if SSE4.1 is missing, and for the fused operators if FMA is
//! missing. It does not canonicalise a NaN that such a function returns. In this crate, the result
//! is always canonical.

mod float;
mod integer;
mod scalar;
mod trap;
mod value;
mod vector;

pub use scalar::Scalar;
pub use trap::Trap;
pub use vector::{Immediate, Kind, Vector, VectorLoad, VectorStore};
