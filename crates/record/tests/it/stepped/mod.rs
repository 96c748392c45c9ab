//! The machine computes what the engine does, operator by operator.
//!
//! The engine's debugger single-steps a guest, and before each operator the locals and the operand stack that it shows are what the machine's
//! registers hold: operands, results, arguments, conditions. Where the engine goes is where the path goes.

mod engine;
mod follow;
mod traps;

pub use follow::agree;
