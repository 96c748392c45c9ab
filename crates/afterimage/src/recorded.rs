//! Writes messages about a run that has just been recorded.

use afterimage_record::{RecordError, Uncertain};
use afterimage_trace::{Interrupter, RawValue};

/// Returns a remark for a recording that may name the wrong operator for its trap, or that lacks
/// the end of its run.
pub fn remark(uncertain: &Uncertain, asked: Option<Interrupter>) -> String {
    let what = if uncertain.in_block {
        "the recording may name the wrong operator: not the load that trapped, but one that \
         uses its value"
    } else {
        "the engine does not report where it trapped, so the recording ends there as if it had \
         been cut off"
    };
    let (why, remedy) = match (&uncertain.error, asked) {
        (RecordError::Interrupted, Some(Interrupter::Timeout)) => (
            "was stopped by the time limit".to_owned(),
            "; record it again with a longer --timeout",
        ),
        (RecordError::Interrupted, _) => ("was interrupted".to_owned(), "; record it again"),
        (error, _) => (format!("failed: {error}"), ""),
    };
    format!("{what}; running it again to find out {why}{remedy}")
}

/// Formats a value as on the command line.
pub fn literal(value: &RawValue) -> String {
    match *value {
        RawValue::I32(v) => v.to_string(),
        RawValue::I64(v) => v.to_string(),
        RawValue::F32(bits) => f32::from_bits(bits).to_string(),
        RawValue::F64(bits) => f64::from_bits(bits).to_string(),
        RawValue::V128(bits) => format!("0x{bits:032x}"),
        RawValue::NullRef => "null".to_owned(),
        RawValue::OpaqueRef => "reference".to_owned(),
    }
}
