//! Guests of every kind. Each is recorded once, and followed in every way.

mod cases;
mod endings;
mod exported;
mod generated;

pub use cases::{CASES, record_case, record_run};

use crate::harness::Recording;
use crate::stored::Stored;
use crate::{machine, slices, stepped, wet};

/// The machine gets where the engine got, step by step; the whole execution trace and slices are what everything written down says.
fn agree(recording: &Recording) {
    let stored = Stored::of(recording);
    machine::agree(recording, &stored);
    stepped::agree(recording, &stored);
    wet::agree(recording, &stored);
    slices::agree(recording, &stored);
}
