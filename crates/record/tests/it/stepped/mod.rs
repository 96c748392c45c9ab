//! Checks that the machine and the engine compute the same, operator by operator.
//!
//! The engine's debugger single-steps a guest. Before each operator, its locals and operand stack
//! must equal the machine's registers: operands, results, arguments and conditions. The engine must
//! also follow the path.

mod engine;
mod follow;
mod traps;

pub use follow::agree;
