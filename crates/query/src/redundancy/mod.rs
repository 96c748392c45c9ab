//! Redundant loads: those that read again what is available already (Zhang and Gupta 2001, section 4.3.1, "degree of redundancy").

mod exact;
mod shadow;
mod tracker;

pub use exact::{LoadRedundancy, LoadSource, Redundancy, load_redundancy};
