//! Checks backward slices against their definition: everything reachable over individually recorded
//! dependences. They also suffice: executing only them gives the same result.

mod altered;
mod follow;
mod naive;

pub use follow::{agree, agree_on_few};
