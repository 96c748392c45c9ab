//! Checks backward slices against their definition, which is everything reachable over individually
//! recorded dependences. Also checks that slices suffice, because executing only a slice gives the
//! same result.

mod altered;
mod follow;
mod naive;

pub use follow::{agree, agree_on_few};
