//! Whole execution traces answer as if everything had been written down.
//!
//! The guests are those of the test `machine`, which this one runs again: whatever they do, a recorder that writes everything down
//! uncompressed, and the trace built by the crate under test, say the same.

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
#[allow(
    dead_code,
    reason = "shared with the test `exact`, which uses all of it"
)]
#[path = "../exact/words.rs"]
mod words;

mod compare;
mod epochs;
mod follow;
mod forward;
mod naive;
mod shapes;
mod stored;
