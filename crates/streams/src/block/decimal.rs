//! Codes floats that are whole numbers, or whole numbers divided by a power of ten. A column stores
//! the whole numbers.
//!
//! Each value is the float nearest to `number / 10^digits`. IEEE 754 defines this division, so it
//! gives the same bits everywhere.

use super::{Nesting, decode_nested, encode_nested};
use crate::{StreamError, varint};

/// The maximum number of digits after the point.
const MOST_DIGITS: u8 = 9;

/// Powers of ten that floats represent exactly. (`powi` may round differently on different
/// machines.)
const POWERS: [f64; MOST_DIGITS as usize + 1] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

/// A block of decimal floats.
pub(crate) struct Plan {
    format: Format,
    numbers: Vec<u64>,
}

/// The float type, and the number of digits after the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Format {
    single: bool,
    digits: u8,
}

impl Format {
    fn parameter(self) -> u8 {
        self.digits << 1 | u8::from(self.single)
    }

    fn from_parameter(parameter: u8) -> Result<Self, StreamError> {
        let (single, digits) = (parameter & 1 == 1, parameter >> 1);
        if digits > MOST_DIGITS {
            return Err(StreamError::Malformed("too many digits"));
        }
        Ok(Self { single, digits })
    }

    fn scale(self) -> f64 {
        POWERS[usize::from(self.digits)]
    }

    fn value(self, number: u64, scale: f64) -> u64 {
        let float = varint::unzigzag(number) as i64 as f64 / scale;
        if self.single {
            (float as f32).to_bits().into()
        } else {
            float.to_bits()
        }
    }

    /// Returns the number whose float has the bits `value`, if it exists.
    fn number(self, value: u64, scale: f64) -> Option<u64> {
        let float = if self.single {
            f64::from(f32::from_bits(u32::try_from(value).ok()?))
        } else {
            f64::from_bits(value)
        };
        let number = (float * scale).round();
        // A value that does not fit, or is NaN, does not survive the round trip.
        let number = varint::zigzag(number as i64 as u64);
        (self.value(number, scale) == value).then_some(number)
    }
}

/// Plans a block of decimal floats, if all values qualify.
pub(crate) fn plan(values: &[u64]) -> Option<Plan> {
    let largest = *values.iter().max()?;
    // Small integers are not meant as floats, although their bits are floats.
    let single = largest <= u32::MAX.into();
    if largest < if single { 1 << 23 } else { 1 << 52 } {
        return None;
    }
    let formats = (0..=MOST_DIGITS).map(|digits| Format { single, digits });
    let plan = |format: Format| {
        let scale = format.scale();
        let numbers = values.iter().map(|&value| format.number(value, scale));
        Some(Plan {
            format,
            numbers: numbers.collect::<Option<_>>()?,
        })
    };
    formats.into_iter().find_map(plan)
}

/// Appends the block and returns the tag's parameter.
pub(crate) fn encode(plan: &Plan, nesting: Nesting, out: &mut Vec<u8>) -> u8 {
    encode_nested(&plan.numbers, nesting, out);
    plan.format.parameter()
}

/// Decodes the block.
pub(crate) fn decode(
    input: &mut &[u8],
    parameter: u8,
    out: &mut [u64],
    nesting: Nesting,
) -> Result<(), StreamError> {
    let format = Format::from_parameter(parameter)?;
    let scale = format.scale();
    decode_nested(input, out, nesting)?;
    for slot in out {
        *slot = format.value(*slot, scale);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_comes_back_is_a_decimal() {
        let bits = |floats: &[f64]| {
            floats
                .iter()
                .map(|float| float.to_bits())
                .collect::<Vec<_>>()
        };
        let format = |values: &[u64]| plan(values).map(|plan| plan.format);
        let double = |digits| {
            Some(Format {
                single: false,
                digits,
            })
        };
        assert_eq!(format(&bits(&[0.0, 3.0, -7.0])), double(0));
        assert_eq!(format(&bits(&[0.1, 3.0, -7.25])), double(2));
        for strange in [f64::NAN, -0.0, f64::INFINITY, 1e300, 0.1 + 0.2] {
            assert_eq!(format(&bits(&[1.0, strange])), None, "{strange}");
        }
        assert_eq!(format(&[3, 4, 500]), None);
        let single = format(&[1.5f32.to_bits().into(), 0.7f32.to_bits().into()]);
        assert_eq!(
            single,
            Some(Format {
                single: true,
                digits: 1
            })
        );
    }
}
