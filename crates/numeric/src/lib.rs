//! What WebAssembly's numeric operators compute, bit for bit as the engine does that makes recordings.
//!
//! For an evaluator: operators are small `Copy` opcodes, values are their bits.
//! The engine's settings leave nothing open: NaNs that arithmetic yields are canonical, relaxed
//! operators have their deterministic meaning. (WebAssembly core specification 3.0, section "Numerics"; its
//! "deterministic profile".) One thing is left to the processor: on x86-64 without SSE4.1 the engine calls a function
//! for `ceil`, `floor`, `trunc` and `nearest`, and without FMA for the fused operators, and does not canonicalise what that function
//! returns for a NaN. Here the result is always canonical.

mod float;
mod integer;
mod scalar;
mod trap;
mod value;
mod vector;

pub use scalar::Scalar;
pub use trap::Trap;
pub use vector::{Immediate, Kind, Vector, VectorLoad, VectorStore};
