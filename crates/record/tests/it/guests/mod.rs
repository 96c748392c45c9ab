//! Tests guests of every kind. Each guest is recorded once and followed in every way.

mod cases;
mod endings;
mod exported;
mod generated;

pub use cases::{CASES, record_case, record_run};

use crate::harness::Recording;
use crate::stored::Stored;
use crate::{machine, slices, stepped, wet};

/// Checks that the machine agrees with the engine, step by step. Also checks that the whole
/// execution trace and slices agree with a naive record of everything.
fn agree(recording: &Recording) {
    let stored = Stored::of(recording);
    machine::agree(recording, &stored);
    stepped::agree(recording, &stored);
    wet::agree(recording, &stored);
    slices::agree(recording, &stored);
}
