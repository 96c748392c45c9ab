//! Currency: whether a variable of an optimised program holds the value that its source implies.

pub mod cause;
pub mod names;
pub mod pair;
pub mod question;
pub mod read;
