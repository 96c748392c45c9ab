//! Reads encodings and constants from attributes.

use gimli::AttributeValue;

use super::Encoding;
use crate::debug::{Entry, Value};

/// Returns the interpretation of a base type's bits.
pub(super) fn encoding(entry: &Entry<'_>) -> Encoding {
    let Some(AttributeValue::Encoding(encoding)) = entry.value(gimli::DW_AT_encoding) else {
        return Encoding::Other;
    };
    match encoding {
        gimli::DW_ATE_signed => Encoding::Signed,
        gimli::DW_ATE_unsigned => Encoding::Unsigned,
        gimli::DW_ATE_signed_char => Encoding::SignedChar,
        gimli::DW_ATE_unsigned_char => Encoding::UnsignedChar,
        gimli::DW_ATE_UTF => Encoding::Unicode,
        gimli::DW_ATE_boolean => Encoding::Boolean,
        gimli::DW_ATE_float => Encoding::Float,
        gimli::DW_ATE_complex_float => Encoding::Complex,
        // Clang and GCC use this for GNU C's complex integers.
        gimli::DW_ATE_lo_user => Encoding::ComplexInteger,
        _ => Encoding::Other,
    }
}

/// Returns a constant, in two's complement if it is negative.
pub(super) fn constant(value: Value<'_>) -> Option<u128> {
    Some(match value {
        AttributeValue::Sdata(value) => i128::from(value) as u128,
        AttributeValue::Data16(value) => value,
        AttributeValue::Block(bytes) if bytes.len() <= 16 => {
            let mut all = [0; 16];
            all[..bytes.len()].copy_from_slice(bytes.slice());
            u128::from_le_bytes(all)
        }
        other => u128::from(other.udata_value()?),
    })
}

/// Returns the lowest bytes of a constant.
pub(crate) fn cut(value: u128, bytes: Option<u64>) -> u128 {
    match bytes {
        Some(bytes @ 1..16) => value & (u128::MAX >> (128 - 8 * bytes)),
        _ => value,
    }
}
