//! What a slice is asked of.

pub mod question;
