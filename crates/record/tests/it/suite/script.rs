//! Reads scripts of the test suite, with modules, calls and expected outcomes.

use afterimage_trace::RawValue;
use wasm_encoder::{HeapType, Instruction};
use wast::core::{NanPattern, V128Pattern, WastArgCore, WastRetCore};
use wast::{WastArg, WastRet};

/// An argument.
#[derive(Clone, Copy)]
pub enum Value {
    I32(i32),
    I64(i64),
    F32(u32),
    F64(u64),
    V128(i128),
    Null(HeapType),
}

impl Value {
    /// Converts an argument; returns `None` if only a host could provide it.
    pub fn of(argument: &WastArg<'_>) -> Option<Self> {
        let WastArg::Core(argument) = argument else {
            return None;
        };
        Some(match argument {
            WastArgCore::I32(value) => Self::I32(*value),
            WastArgCore::I64(value) => Self::I64(*value),
            WastArgCore::F32(value) => Self::F32(value.bits),
            WastArgCore::F64(value) => Self::F64(value.bits),
            WastArgCore::V128(value) => Self::V128(i128::from_le_bytes(value.to_le_bytes())),
            WastArgCore::RefNull(wast::core::HeapType::Abstract { ty, .. }) => match ty {
                wast::core::AbstractHeapType::Func => Self::Null(HeapType::FUNC),
                wast::core::AbstractHeapType::Extern => Self::Null(HeapType::EXTERN),
                wast::core::AbstractHeapType::Exn => {
                    Self::Null(wasm_encoder::RefType::EXNREF.heap_type)
                }
                _ => return None,
            },
            _ => return None,
        })
    }

    pub fn instruction(self) -> Instruction<'static> {
        match self {
            Self::I32(value) => Instruction::I32Const(value),
            Self::I64(value) => Instruction::I64Const(value),
            Self::F32(bits) => Instruction::F32Const(f32::from_bits(bits).into()),
            Self::F64(bits) => Instruction::F64Const(f64::from_bits(bits).into()),
            Self::V128(value) => Instruction::V128Const(value),
            Self::Null(ty) => Instruction::RefNull(ty),
        }
    }
}

fn is_f32(bits: u32, pattern: &NanPattern<wast::token::F32>) -> bool {
    match pattern {
        NanPattern::CanonicalNan => bits & 0x7fff_ffff == 0x7fc0_0000,
        NanPattern::ArithmeticNan => bits & 0x7fc0_0000 == 0x7fc0_0000,
        NanPattern::Value(value) => bits == value.bits,
    }
}

fn is_f64(bits: u64, pattern: &NanPattern<wast::token::F64>) -> bool {
    match pattern {
        NanPattern::CanonicalNan => bits & (u64::MAX >> 1) == 0x7ff8 << 48,
        NanPattern::ArithmeticNan => bits & 0x7ff8 << 48 == 0x7ff8 << 48,
        NanPattern::Value(value) => bits == value.bits,
    }
}

fn is_vector(value: u128, pattern: &V128Pattern) -> bool {
    let bytes = value.to_le_bytes();
    let lane = |i: usize, width: usize| {
        let mut lane = [0; 8];
        lane[..width].copy_from_slice(&bytes[i * width..(i + 1) * width]);
        u64::from_le_bytes(lane)
    };
    let all = |width: usize, is: &dyn Fn(usize, u64) -> bool| {
        (0..16 / width).all(|i| is(i, lane(i, width)))
    };
    match pattern {
        V128Pattern::I8x16(lanes) => all(1, &|i, bits| bits as i8 == lanes[i]),
        V128Pattern::I16x8(lanes) => all(2, &|i, bits| bits as i16 == lanes[i]),
        V128Pattern::I32x4(lanes) => all(4, &|i, bits| bits as i32 == lanes[i]),
        V128Pattern::I64x2(lanes) => all(8, &|i, bits| bits as i64 == lanes[i]),
        V128Pattern::F32x4(lanes) => all(4, &|i, bits| is_f32(bits as u32, &lanes[i])),
        V128Pattern::F64x2(lanes) => all(8, &|i, bits| is_f64(bits, &lanes[i])),
    }
}

/// Whether a result matches the script.
pub fn fits(value: RawValue, expected: &WastRet<'_>) -> bool {
    let WastRet::Core(expected) = expected else {
        return false;
    };
    is(value, expected)
}

fn is(value: RawValue, expected: &WastRetCore<'_>) -> bool {
    match (value, expected) {
        (RawValue::I32(value), WastRetCore::I32(expected)) => value == *expected,
        (RawValue::I64(value), WastRetCore::I64(expected)) => value == *expected,
        (RawValue::F32(bits), WastRetCore::F32(pattern)) => is_f32(bits, pattern),
        (RawValue::F64(bits), WastRetCore::F64(pattern)) => is_f64(bits, pattern),
        (RawValue::V128(bits), WastRetCore::V128(pattern)) => is_vector(bits, pattern),
        (RawValue::NullRef, WastRetCore::RefNull(_)) => true,
        (RawValue::OpaqueRef, WastRetCore::RefFunc(_)) => true,
        (value, WastRetCore::Either(any)) => any.iter().any(|one| is(value, one)),
        _ => false,
    }
}

/// Whether an ending matches the message of a script.
pub fn trap_fits(ending: &str, message: &str) -> bool {
    let words: &[(&str, &[&str])] = &[
        (
            "out of bounds memory access",
            &["memory access out of bounds"],
        ),
        (
            "out of bounds table access",
            &["table access out of bounds"],
        ),
        (
            "undefined element",
            &["table access out of bounds", "indirect call to null"],
        ),
        ("undefined", &["table access out of bounds"]),
        ("uninitialized element", &["indirect call to null"]),
        ("uninitialized", &["indirect call to null"]),
        (
            "indirect call type mismatch",
            &["indirect call type mismatch"],
        ),
        ("integer divide by zero", &["integer division by zero"]),
        ("integer overflow", &["integer overflow"]),
        (
            "invalid conversion to integer",
            &["invalid conversion to integer"],
        ),
        ("unreachable", &["unreachable executed"]),
        ("null reference", &["null reference"]),
        ("null exception reference", &["null reference"]),
        ("unaligned atomic", &["unaligned atomic"]),
        (
            "expected shared memory",
            &["atomic wait on non-shared memory"],
        ),
        ("call stack exhausted", &["exhausted its stack"]),
        ("out of bounds", &["access out of bounds"]),
    ];
    let known = words.iter().find(|(known, _)| message.starts_with(known));
    known.is_some_and(|(_, endings)| endings.iter().any(|known| ending.contains(known)))
}
