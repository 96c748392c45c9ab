//! Values: the engine's, the log's, and as literals on the command line.

use std::mem::discriminant;

use afterimage_trace::RawValue;
use wasmtime::{Val, ValType};

use crate::RecordError;

/// A value of the engine, by its bits.
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

/// A value of the log, for the engine. References other than null do not cross the boundary.
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

/// Whether a value of the log can stand where this value stands. References do not cross the boundary.
pub(crate) fn same_type(value: RawValue, like: &Val) -> bool {
    let reference = matches!(value, RawValue::NullRef | RawValue::OpaqueRef);
    !reference && discriminant(&value) == discriminant(&raw(like))
}

/// Some value of a type: room for a result.
pub(crate) fn zero(ty: &ValType) -> Val {
    // Only references of proposals that are refused have no null.
    Val::default_for_ty(ty).unwrap_or(Val::FuncRef(None))
}

/// Reads the arguments of an invoked function: decimal or hexadecimal integers, decimal floats.
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
        .map(|(ty, text)| literal(*ty, text).ok_or_else(|| error(format!("{text:?} is no {ty}"))))
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

fn literal(ty: wasmparser::ValType, text: &str) -> Option<RawValue> {
    use wasmparser::ValType::{F32, F64, I32, I64};
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
        F32 => RawValue::F32(text.parse::<f32>().ok()?.to_bits()),
        F64 => RawValue::F64(text.parse::<f64>().ok()?.to_bits()),
        _ => return None,
    })
}
