//! Converts values between the engine, the log and command-line literals.

use std::mem::discriminant;

use afterimage_trace::RawValue;
use wasmtime::{Val, ValType};

use crate::RecordError;

/// Converts a value of the engine, bit for bit.
pub(crate) fn raw(value: &Val) -> RawValue {
    match value {
        Val::I32(v) => RawValue::I32(*v),
        Val::I64(v) => RawValue::I64(*v),
        Val::F32(v) => RawValue::F32(*v),
        Val::F64(v) => RawValue::F64(*v),
        Val::V128(v) => RawValue::V128(v.as_u128()),
        Val::FuncRef(None)
        | Val::ExternRef(None)
        | Val::AnyRef(None)
        | Val::ExnRef(None)
        | Val::ContRef(None) => RawValue::NullRef,
        Val::FuncRef(Some(_))
        | Val::ExternRef(Some(_))
        | Val::AnyRef(Some(_))
        | Val::ExnRef(Some(_))
        | Val::ContRef(Some(_)) => RawValue::OpaqueRef,
    }
}

/// Converts a value of the log for the engine. References other than null do not cross the
/// boundary.
pub(crate) fn val(value: RawValue) -> Val {
    match value {
        RawValue::I32(v) => Val::I32(v),
        RawValue::I64(v) => Val::I64(v),
        RawValue::F32(v) => Val::F32(v),
        RawValue::F64(v) => Val::F64(v),
        RawValue::V128(v) => Val::V128(v.into()),
        RawValue::NullRef | RawValue::OpaqueRef => Val::FuncRef(None),
    }
}

/// Whether a value of the log has the type of `like`. References do not cross the boundary.
pub(crate) fn same_type(value: RawValue, like: &Val) -> bool {
    let reference = matches!(value, RawValue::NullRef | RawValue::OpaqueRef);
    !reference && discriminant(&value) == discriminant(&raw(like))
}

/// Returns an arbitrary value of a type, to fill a result slot.
pub(crate) fn zero(ty: &ValType) -> Val {
    // Only reference types of rejected proposals have no null.
    Val::default_for_ty(ty).unwrap_or(Val::FuncRef(None))
}

/// Converts a value of the log into an argument of this type. A null becomes a null of this type.
pub(crate) fn argument(value: RawValue, ty: &ValType) -> Val {
    match value {
        RawValue::NullRef | RawValue::OpaqueRef => zero(ty),
        value => val(value),
    }
}

/// Parses the arguments of an invoked function. They are decimal or hexadecimal integers, decimal
/// floats, NaNs with a payload as in the text format, and null references.
///
/// No other references are possible. Functions and exceptions belong to the guest, and a recording
/// contains no references of the host.
pub(crate) fn parse_arguments(
    export: &str,
    params: &[wasmparser::ValType],
    given: &[String],
) -> Result<Vec<RawValue>, RecordError> {
    let error = |given: String| RecordError::Arguments {
        export: export.to_owned(),
        expected: match params {
            [] => "no arguments".to_owned(),
            params => params
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" "),
        },
        given,
    };
    if params.len() != given.len() {
        return Err(error(format!("{} given", given.len())));
    }
    params
        .iter()
        .zip(given)
        .map(|(ty, text)| {
            literal(*ty, text).ok_or_else(|| {
                error(match ty {
                    wasmparser::ValType::Ref(ty) if ty.is_nullable() => {
                        format!("{text:?} is not of type {ty}: only null can be given")
                    }
                    ty => format!("{text:?} is not of type {ty}"),
                })
            })
        })
        .collect()
}

fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { -value } else { value })
}

/// Parses a NaN with `bits` payload bits, written `nan` or `nan:0x…` with an optional minus sign,
/// and returns its payload. Returns `None` if the text is not a NaN, and `Some(None)` if the
/// payload is invalid.
fn nan(text: &str, bits: u32) -> Option<Option<u64>> {
    let rest = text.strip_prefix('-').unwrap_or(text).strip_prefix("nan")?;
    if rest.is_empty() {
        return Some(Some(1 << (bits - 1)));
    }
    let payload = rest
        .strip_prefix(":0x")
        .and_then(|hex| u64::from_str_radix(hex, 16).ok());
    Some(payload.filter(|&payload| payload > 0 && payload >> bits == 0))
}

fn literal(ty: wasmparser::ValType, text: &str) -> Option<RawValue> {
    use wasmparser::ValType::{F32, F64, I32, I64, Ref, V128};
    Some(match ty {
        I32 => {
            let value = integer(text)?;
            RawValue::I32(
                i32::try_from(value)
                    .ok()
                    .or_else(|| u32::try_from(value).ok().map(|v| v as i32))?,
            )
        }
        I64 => {
            let value = integer(text)?;
            RawValue::I64(
                i64::try_from(value)
                    .ok()
                    .or_else(|| u64::try_from(value).ok().map(|v| v as i64))?,
            )
        }
        F32 => RawValue::F32(match nan(text, 23) {
            Some(bits) => {
                u32::try_from(bits?).ok()? | u32::from(text.starts_with('-')) << 31 | 0xff << 23
            }
            None => text.parse::<f32>().ok()?.to_bits(),
        }),
        F64 => RawValue::F64(match nan(text, 52) {
            Some(bits) => bits? | u64::from(text.starts_with('-')) << 63 | 0x7ff << 52,
            None => text.parse::<f64>().ok()?.to_bits(),
        }),
        V128 => RawValue::V128(match text.strip_prefix("0x") {
            Some(hex) => u128::from_str_radix(hex, 16).ok()?,
            None => text.parse().ok()?,
        }),
        Ref(ty) if ty.is_nullable() && text == "null" => RawValue::NullRef,
        Ref(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use wasmparser::{RefType, ValType};

    use super::{RawValue, literal};

    #[test]
    fn literals_are_read_to_the_bit() {
        let cases = [
            (ValType::F32, "nan", Some(RawValue::F32(0x7fc0_0000))),
            (ValType::F32, "-nan:0x1", Some(RawValue::F32(0xff80_0001))),
            (ValType::F32, "nan:0x800000", None),
            (ValType::F32, "nan:0x0", None),
            (ValType::F32, "-0", Some(RawValue::F32(0x8000_0000))),
            (
                ValType::F64,
                "-nan",
                Some(RawValue::F64(0xfff8_0000_0000_0000)),
            ),
            (
                ValType::F64,
                "nan:0xfffffffffffff",
                Some(RawValue::F64(0x7fff_ffff_ffff_ffff)),
            ),
            (
                ValType::F64,
                "inf",
                Some(RawValue::F64(0x7ff0_0000_0000_0000)),
            ),
            (ValType::V128, "0x10", Some(RawValue::V128(16))),
            (
                ValType::V128,
                "340282366920938463463374607431768211455",
                Some(RawValue::V128(u128::MAX)),
            ),
            (ValType::V128, "-1", None),
            (ValType::FUNCREF, "null", Some(RawValue::NullRef)),
            (ValType::EXTERNREF, "null", Some(RawValue::NullRef)),
            (ValType::EXTERNREF, "1", None),
            (ValType::Ref(RefType::FUNC), "null", None),
        ];
        for (ty, text, expected) in cases {
            assert_eq!(literal(ty, text), expected, "{ty} {text}");
        }
    }
}
