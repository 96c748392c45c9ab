//! Formats numbers, names of constants, and other values of at most sixteen bytes.

use super::float::{self, Format};
use super::string;
use crate::types::{BitField, Encoding, TypeKind, cut};

/// Returns the text of a value. `bits` is zero above the width of the bit-field or of the type.
pub(super) fn text(
    kind: &TypeKind,
    name: Option<&str>,
    bits: u128,
    bytes: u64,
    field: Option<BitField>,
) -> String {
    let width = match field {
        Some(field) => field.count,
        None => 8 * bytes.min(16) as u32,
    };
    match kind {
        // A type without bytes has only one value, such as Rust's `()`.
        TypeKind::Base(_) if bytes == 0 => name.unwrap_or("{}").to_owned(),
        TypeKind::Base(encoding) => base(*encoding, name, bits, width),
        TypeKind::Enumeration {
            enumerators,
            signed,
        } => {
            let known = |value: u128| {
                if width == 128 {
                    value == bits
                } else {
                    value & !(u128::MAX << width) == bits
                }
            };
            match enumerators
                .iter()
                .find(|(_, value)| known(cut(*value, Some(bytes))))
            {
                Some((name, _)) => name.clone(),
                None => match flags(enumerators, bits) {
                    Some(flags) => flags,
                    None if *signed => signed_value(bits, width).to_string(),
                    None => bits.to_string(),
                },
            }
        }
        _ => format!("0x{bits:x}"),
    }
}

fn base(encoding: Encoding, name: Option<&str>, bits: u128, width: u32) -> String {
    let character = || u32::try_from(bits).ok().and_then(char::from_u32);
    match (encoding, width) {
        (Encoding::Signed | Encoding::Unsigned, _)
            if name == Some("wchar_t") && character().is_some_and(|c| c != '\0') =>
        {
            let c = character().unwrap_or_default();
            format!("{bits} {}", string::quoted_character(c))
        }
        (Encoding::Signed, _) => signed_value(bits, width).to_string(),
        (Encoding::Unsigned, _) => bits.to_string(),
        (Encoding::SignedChar | Encoding::UnsignedChar, _) => {
            let value = match encoding {
                Encoding::SignedChar => signed_value(bits, width),
                _ => bits as i128,
            };
            // Above 127, a byte is part of a character, or belongs to another encoding. For a
            // bit-field, only its value matters.
            let character = u8::try_from(value).ok().filter(u8::is_ascii);
            match character.map(char::from) {
                Some(c) => format!("{value} {}", string::quoted_character(c)),
                None => value.to_string(),
            }
        }
        (Encoding::Unicode, _) => match character() {
            Some(c) if name == Some("char") => string::quoted_character(c),
            Some(c) => format!("{bits} {}", string::quoted_character(c)),
            None => bits.to_string(),
        },
        (Encoding::Boolean, _) => match bits {
            0 => "false".into(),
            1 => "true".into(),
            // This is not a valid boolean, so it is shown as a number.
            other => other.to_string(),
        },
        (Encoding::Float, 32) => {
            let value = f32::from_bits(bits as u32);
            if value.is_nan() {
                format!("nan(0x{bits:08x})")
            } else {
                format!("{value:?}")
            }
        }
        (Encoding::Float, 64) => {
            let value = f64::from_bits(bits as u64);
            if value.is_nan() {
                format!("nan(0x{bits:016x})")
            } else {
                format!("{value:?}")
            }
        }
        (Encoding::Float, 16 | 128) => match float_format(name, width) {
            Some(format) => format.text(bits),
            None => format!("0x{bits:x}"),
        },
        (Encoding::Complex | Encoding::ComplexInteger, _) if width.is_multiple_of(16) => {
            let half = width / 2;
            let part = match encoding {
                Encoding::Complex => Encoding::Float,
                _ => Encoding::Signed,
            };
            let [real, imaginary] = [bits & ((1 << half) - 1), bits >> half];
            complex(
                &base(part, None, real, half),
                &base(part, None, imaginary, half),
            )
        }
        _ => format!("0x{bits:0digits$x}", digits = width as usize / 4),
    }
}

/// Formats a complex number from its parts.
pub(crate) fn complex(real: &str, imaginary: &str) -> String {
    let (sign, imaginary) = match imaginary.strip_prefix('-') {
        Some(positive) => ('-', positive),
        None => ('+', imaginary),
    };
    format!("{real} {sign} {imaginary}i")
}

/// Returns the format of a floating-point type other than `float` and `double`.
pub(super) fn float_format(name: Option<&str>, width: u32) -> Option<Format> {
    match (width, name) {
        (16, Some("__bf16")) => Some(float::BRAIN),
        (16, _) => Some(float::HALF),
        (128, _) => Some(float::QUADRUPLE),
        _ => None,
    }
}

/// Formats a value that is not a constant of its enumeration as a combination of constants: `READ |
/// WRITE`. Returns `None` unless the constants are flags. Each flag consists of bits that have
/// their own names, most flags consist of one such bit, and the values do not simply count upwards
/// from 0 or 1.
fn flags(enumerators: &[(String, u128)], bits: u128) -> Option<String> {
    let single = |value: &u128| value.count_ones() == 1;
    let values = || enumerators.iter().map(|(_, value)| *value);
    let singles = values().filter(single).count();
    let several = values().filter(|value| value.count_ones() > 1).count();
    let named = values().filter(single).fold(0, |all, value| all | value);
    let most = values().max()?;
    let positive = values().filter(|value| *value > 0);
    // Flags with the values 1, 2, 3 and so on are rarely declared in this order.
    let counts =
        most > 2 && positive.clone().count() as u128 == most && positive.clone().is_sorted();
    let composed = values().all(|value| value & !named == 0);
    if singles < 2 || several > singles || counts || !composed || bits & named == 0 {
        return None;
    }
    let mut left = bits;
    let mut parts = Vec::new();
    for (name, value) in enumerators.iter().filter(|(_, value)| single(value)) {
        if left & value != 0 {
            parts.push(name.clone());
            left &= !value;
        }
    }
    if left != 0 {
        parts.push(format!("0x{left:x}"));
    }
    Some(parts.join(" | "))
}

/// Returns the value in two's complement with `width` bits.
pub(super) fn signed_value(bits: u128, width: u32) -> i128 {
    let unused = 128 - width.clamp(1, 128);
    ((bits << unused) as i128) >> unused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact() {
        let show = |encoding, bits, width| base(encoding, None, bits, width);
        assert_eq!(show(Encoding::Signed, 0xffff_fffe, 32), "-2");
        assert_eq!(show(Encoding::Signed, 0b101, 3), "-3");
        assert_eq!(show(Encoding::Signed, u128::MAX - 4, 128), "-5");
        assert_eq!(
            show(Encoding::Unsigned, u128::MAX, 128),
            u128::MAX.to_string()
        );
        assert_eq!(show(Encoding::SignedChar, 0x61, 8), "97 'a'");
        assert_eq!(show(Encoding::SignedChar, 0xff, 8), "-1");
        assert_eq!(show(Encoding::SignedChar, 0b1101, 4), "-3");
        assert_eq!(show(Encoding::UnsignedChar, 10, 8), r"10 '\n'");
        assert_eq!(base(Encoding::Unicode, Some("char"), 0xe9, 32), "'é'");
        assert_eq!(show(Encoding::Unicode, 0xd800, 16), "55296");
        assert_eq!(show(Encoding::Boolean, 1, 8), "true");
        assert_eq!(show(Encoding::Boolean, 3, 8), "3");
        assert_eq!(show(Encoding::Float, 0.1f32.to_bits().into(), 32), "0.1");
        assert_eq!(
            show(Encoding::Float, (-0.0f64).to_bits().into(), 64),
            "-0.0"
        );
        assert_eq!(show(Encoding::Float, 0x7fc0_0001, 32), "nan(0x7fc00001)");
        let complex = u128::from((-1.0f32).to_bits()) << 32 | u128::from(3.0f32.to_bits());
        assert_eq!(show(Encoding::Complex, complex, 64), "3.0 - 1.0i");
        let complex = u128::from(2.5f64.to_bits()) << 64 | u128::from((-0.5f64).to_bits());
        assert_eq!(show(Encoding::Complex, complex, 128), "-0.5 + 2.5i");
        assert_eq!(show(Encoding::Float, 0x3fff_4000 << 96, 128), "1.25");
        assert_eq!(show(Encoding::Float, 0x3e00, 16), "1.5");
        assert_eq!(base(Encoding::Float, Some("__bf16"), 0x3fc0, 16), "1.5");
        let integers = 0xffff_ffff_0000_0003;
        assert_eq!(show(Encoding::ComplexInteger, integers, 64), "3 - 1i");
        let wide = |bits| base(Encoding::Signed, Some("wchar_t"), bits, 32);
        assert_eq!([wide(0xe9), wide(0)], ["233 'é'", "0"]);
    }

    /// Returns the text of a value of an enumeration with these constants.
    fn constant(values: &[u128], bits: u128) -> String {
        let names = ('A'..).map(String::from);
        let kind = TypeKind::Enumeration {
            enumerators: names.zip(values.iter().copied()).collect(),
            signed: false,
        };
        text(&kind, None, bits, 4, None)
    }

    #[test]
    fn flags_are_told_from_constants() {
        assert_eq!(constant(&[1, 2, 4], 5), "A | C");
        assert_eq!(constant(&[0, 1, 2, 4, 3], 5), "B | D");
        assert_eq!(constant(&[0, 1, 2, 4, 8, 3], 3), "F");
        assert_eq!(constant(&[0, 1, 2, 4, 8, 3], 7), "B | C | D");
        assert_eq!(constant(&[1, 2, 4], 9), "A | 0x8");
        assert_eq!(constant(&[1, 2, 4], 8), "8");
        assert_eq!(constant(&[1, 0x8000_0000], 0x8000_0001), "A | B");
        assert_eq!(constant(&[0, 1, 2], 3), "B | C");
        // These constants count upwards, so they are not flags.
        assert_eq!(constant(&[0, 1, 2, 3, 4, 5], 7), "7");
        assert_eq!(constant(&[1, 2, 3, 4], 5), "5");
        assert_eq!(constant(&[0, 5, 6], 7), "7");
        assert_eq!(constant(&[1, 2, 5], 3), "3");
        assert_eq!(constant(&[], 1), "1");
    }
}
