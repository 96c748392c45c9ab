//! Redundant loads and expressions: those that give again what is available already (Zhang and Gupta 2001, section 4.3.1, "degree of redundancy").

mod answer;
mod expressions;
mod latest;
mod loads;
mod places;
mod shadow;
mod tracker;
mod ways;

pub use answer::{InPath, OperatorRedundancy, OperatorSource, Redundancy, Way};
pub use expressions::expression_redundancy;
pub use loads::load_redundancy;
