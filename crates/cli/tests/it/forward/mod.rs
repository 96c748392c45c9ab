//! Programs and references for slices and reachability.

pub mod guests;
pub mod intervals;
pub mod naive;
pub mod recorded;
