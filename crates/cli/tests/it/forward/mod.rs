//! Programs and references for slices and what is reached.

pub mod guests;
pub mod intervals;
pub mod naive;
pub mod recorded;
