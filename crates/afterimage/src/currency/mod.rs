//! Currency: whether a variable of an optimised program holds what its source says.

pub mod cause;
pub mod names;
pub mod pair;
pub mod question;
pub mod read;
