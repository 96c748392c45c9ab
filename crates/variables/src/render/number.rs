//! Numbers, names of constants, and what else fits in sixteen bytes.

use super::string;
use crate::types::{BitField, Encoding, TypeKind, cut};

/// The text of a value. `bits` is zero above the value's width, which is that of the bit-field or of the type.
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
        // What takes no bytes has one value only: Rust's `()`.
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
                None if *signed => signed_value(bits, width).to_string(),
                None => bits.to_string(),
            }
        }
        _ => format!("0x{bits:x}"),
    }
}

fn base(encoding: Encoding, name: Option<&str>, bits: u128, width: u32) -> String {
    let character = || u32::try_from(bits).ok().and_then(char::from_u32);
    match (encoding, width) {
        (Encoding::Signed, _) => signed_value(bits, width).to_string(),
        (Encoding::Unsigned, _) => bits.to_string(),
        (Encoding::SignedChar | Encoding::UnsignedChar, _) => {
            let value = match encoding {
                Encoding::SignedChar => signed_value(bits, width),
                _ => bits as i128,
            };
            // Above 127 a byte is a part of a character, or of another encoding. Of a bit-field, the value counts.
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
            // Not a truth value, so it is shown as it is.
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
        (Encoding::Float, 128) if let Some(value) = of_quadruple(bits) => format!("{value:?}"),
        (Encoding::Complex, 64 | 128) => {
            let half = width / 2;
            let part = |bits| base(Encoding::Float, None, bits, half);
            let imaginary = part(bits >> half);
            let (sign, imaginary) = match imaginary.strip_prefix('-') {
                Some(positive) => ('-', positive),
                None => ('+', imaginary.as_str()),
            };
            let real = part(bits & ((1 << half) - 1));
            format!("{real} {sign} {imaginary}i")
        }
        _ => format!("0x{bits:0digits$x}", digits = width as usize / 4),
    }
}

/// A number of quadruple precision, if double precision has it, too.
fn of_quadruple(bits: u128) -> Option<f64> {
    let sign = ((bits >> 127) as u64) << 63;
    let exponent = (bits >> 112) as u64 & 0x7fff;
    let mantissa = bits << 16 >> 16;
    let short = (mantissa >> 60) as u64;
    let exponent = match exponent {
        0 if mantissa == 0 => 0,
        0x7fff if mantissa == 0 => 0x7ff,
        _ => (exponent + 0x3ff)
            .checked_sub(0x3fff)
            .filter(|at| (1..0x7ff).contains(at))?,
    };
    let exact = u128::from(short) << 60 == mantissa;
    exact.then(|| f64::from_bits(sign | exponent << 52 | short))
}

/// The value in two's complement of so many bits.
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
        assert_eq!(show(Encoding::Float, 1, 128), format!("0x{:032x}", 1));
        let quadruple = |bits| show(Encoding::Float, bits, 128);
        assert_eq!(quadruple(0x3fff_4000 << 96), "1.25");
        assert_eq!(quadruple(0xc000 << 112), "-2.0");
        assert_eq!(quadruple(0), "0.0");
        assert_eq!(quadruple(0x7fff << 112), "inf");
        let third = 0x3ffd_5555_5555_5555_5555_5555_5555_5555;
        assert_eq!(quadruple(third), format!("0x{third:x}"));
    }
}
