//! Answers questions about recorded executions that need more than a look-up. The questions concern
//! the origin of a value, slices, differences and correspondences between two executions,
//! redundancy, data flow, currency, and simulated predictors and caches.

pub mod currency;
pub mod dataflow;
pub mod diff;
pub mod matching;
pub mod redundancy;
pub mod simulate;
pub mod slices;
pub mod why;
