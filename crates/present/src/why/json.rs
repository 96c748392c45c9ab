//! The way back as JSON: a head, then an entry a line.

use std::io::Write;

use schemars::JsonSchema;
use serde::Serialize;

use super::WhyEntry;
use crate::PresentError;
#[cfg(doc)]
use crate::document::row;
use crate::document::{Document, begin};
use crate::state::WrittenSince;

/// Where a value came from. The lines after the first one are the way back, as it is found: how the value was moved, how it was computed, and where it came from in the end.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WhyHead {
    /// What is explained, in words.
    pub about: String,
    /// The value, as text.
    pub value: String,
    /// The statement, as `--at` takes it: `@OFFSET#K`.
    pub at: Option<String>,
    /// What wrote to the variable's place since the call began: it may be something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<WrittenSince>,
}

impl Document for WhyHead {
    const NAME: &'static str = "why";
    const COMMAND: &'static str = "why";
    type Row = WhyEntry;
}

/// Writes what is asked about; entries follow with [`row`].
///
/// # Errors
/// If `out` fails.
pub fn why_head(out: &mut dyn Write, head: &WhyHead) -> Result<(), PresentError> {
    begin(out, head)
}
