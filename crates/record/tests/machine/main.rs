//! The machine runs recorded guests again without the engine, and both agree.
//!
//! One law is behind all of it: whatever the guest does and however its run ended, the machine follows the stored path to its end without
//! a contradiction, and leaves the memories, globals and tables that the engine leaves.

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
#[allow(
    dead_code,
    reason = "shared with the test `exact`, which uses all of it"
)]
#[path = "../exact/words.rs"]
mod words;

mod exported;
mod follow;

mod cases;
mod checkpoints;
mod coverage;
mod endings;
mod generated;
mod mutations;
