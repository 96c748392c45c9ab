//! Backward slices are what the definition says: everything that can be reached over dependences that were written down one by one. And they suffice: executed again without
//! all else, they give the same.
//!
//! The guests are those of the test `machine`, which this one runs again.

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

mod altered;
mod follow;
mod naive;
