//! Formats values as text.

use wasmparser::ValType;

/// The smallest number that is also shown in hexadecimal.
const LARGE: u64 = 4096;

/// Formats a value of WebAssembly as text. Integers are signed, with their hexadecimal digits if
/// they are large. Floats are written as in Rust, and NaNs include their bits. Vectors are
/// hexadecimal. References to functions are the functions' indices, and other references are their
/// numbers in the run.
pub fn value_text(ty: ValType, (low, high): (u64, u64)) -> String {
    match ty {
        ValType::I32 => whole(i64::from(low as u32 as i32), u64::from(low as u32)),
        ValType::I64 => whole(low as i64, low),
        ValType::F32 => {
            let value = f32::from_bits(low as u32);
            if value.is_nan() {
                format!("NaN (0x{low:08x})")
            } else {
                format!("{value:?}")
            }
        }
        ValType::F64 => {
            let value = f64::from_bits(low);
            if value.is_nan() {
                format!("NaN (0x{low:016x})")
            } else {
                format!("{value:?}")
            }
        }
        ValType::V128 => format!("0x{high:016x}{low:016x}"),
        ValType::Ref(of) => match low.checked_sub(1) {
            None => "null".to_owned(),
            Some(function) if of.is_func_ref() => format!("func {function}"),
            Some(reference) => format!("reference {reference}"),
        },
    }
}

/// Formats the bits of a value as in all JSON documents: in hexadecimal, with all bits for a
/// vector.
pub fn bits_text(ty: ValType, (low, high): (u64, u64)) -> String {
    match ty {
        ValType::V128 => format!("0x{high:016x}{low:016x}"),
        _ => format!("0x{low:x}"),
    }
}

fn whole(signed: i64, bits: u64) -> String {
    if signed.unsigned_abs() < LARGE {
        signed.to_string()
    } else {
        format!("{signed} (0x{bits:x})")
    }
}

/// Returns the name of a type.
pub fn type_text(ty: ValType) -> &'static str {
    match ty {
        ValType::I32 => "i32",
        ValType::I64 => "i64",
        ValType::F32 => "f32",
        ValType::F64 => "f64",
        ValType::V128 => "v128",
        ValType::Ref(_) => "ref",
    }
}

/// Returns the number of a type in binary forms.
pub(crate) fn type_number(ty: ValType) -> u8 {
    match ty {
        ValType::I32 => 1,
        ValType::I64 => 2,
        ValType::F32 => 3,
        ValType::F64 => 4,
        ValType::V128 => 5,
        ValType::Ref(_) => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_by_their_type() {
        let text = |ty, low| value_text(ty, (low, 0));
        assert_eq!(text(ValType::I32, 0xffff_ffff), "-1");
        assert_eq!(text(ValType::I32, 0x8000_0000), "-2147483648 (0x80000000)");
        assert_eq!(text(ValType::I64, 4096), "4096 (0x1000)");
        assert_eq!(text(ValType::F32, u64::from(1.5f32.to_bits())), "1.5");
        assert_eq!(
            text(ValType::F64, f64::NAN.to_bits()),
            "NaN (0x7ff8000000000000)"
        );
        assert_eq!(text(ValType::F64, (-0.0f64).to_bits()), "-0.0");
        let vector = value_text(ValType::V128, (1, 2));
        assert_eq!(vector, "0x00000000000000020000000000000001");
    }
}
