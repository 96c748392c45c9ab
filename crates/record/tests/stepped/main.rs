//! The machine computes what the engine does, operator by operator.
//!
//! The guests are those of the test `machine`, which this one runs again: the engine's debugger single-steps them, and before each
//! operator the locals and the operand stack that it shows are what the machine's registers hold: operands, results, arguments, conditions. Where the engine goes
//! is where the path goes.

#[path = "../machine/cases.rs"]
mod cases;
#[path = "../machine/endings.rs"]
mod endings;
#[path = "../machine/exported.rs"]
mod exported;
#[path = "../machine/generated.rs"]
mod generated;
#[path = "../corpus/given.rs"]
mod given;
#[allow(
    dead_code,
    reason = "shared with the test `exact`, which uses all of it"
)]
#[path = "../exact/harness.rs"]
mod harness;
#[allow(
    dead_code,
    reason = "shared with the test `exact`, which uses all of it"
)]
#[path = "../exact/play.rs"]
mod play;
#[allow(
    dead_code,
    reason = "shared with the test `exact`, which uses all of it"
)]
#[path = "../exact/random.rs"]
mod random;
#[path = "../wet/stored.rs"]
mod stored;
#[allow(
    dead_code,
    reason = "shared with the test `exact`, which uses all of it"
)]
#[path = "../exact/words.rs"]
mod words;

mod engine;
mod follow;
mod traps;
