//! Questions about recorded executions that take more than a look-up: why a value is what it is,
//! slices, how two executions differ or correspond, redundancy, data flow, currency, and simulated
//! predictors and caches.

pub mod currency;
pub mod dataflow;
pub mod diff;
pub mod matching;
pub mod redundancy;
pub mod simulate;
pub mod slices;
pub mod why;
