use afterimage_numeric::{Scalar, Trap};
use wasmparser::ValType;

use crate::soft::{F32, F64};
use crate::{Random, floats, integers};

/// Returns the result of an operator by its definition.
fn expected(scalar: Scalar, a: u64, b: u64) -> Result<u64, Trap> {
    let (result, name) = scalar.name().split_once('.').unwrap();
    if let Some(converted) = floats::convert(name, result, a) {
        return converted;
    }
    let defined = match result {
        "f32" => floats::eval(name, F32, [a, b, 0]).map(Ok),
        "f64" => floats::eval(name, F64, [a, b, 0]).map(Ok),
        "i32" => integers::eval(name, 32, a, b),
        _ => integers::eval(name, 64, a, b),
    };
    defined.unwrap_or_else(|| panic!("{} has no definition here", scalar.name()))
}

#[test]
fn every_scalar_operator_follows_its_definition() {
    let mut random = Random(5);
    for &scalar in Scalar::ALL {
        let width = match scalar.types().0[0] {
            ValType::I32 | ValType::F32 => 32,
            _ => 64,
        };
        for i in 0..4000 {
            let a = random.bits(width);
            let b = match i % 4 {
                0 => a,
                1 => a ^ random.bits(width / 2),
                _ => random.bits(width),
            };
            let [computed, expected] = [scalar.eval(a, b), expected(scalar, a, b)];
            assert!(
                computed == expected,
                "{} of {a:#x} and {b:#x} is {computed:x?}, by definition {expected:x?}",
                scalar.name()
            );
        }
    }
}

#[test]
fn bits_above_an_operand_are_ignored() {
    let mut random = Random(6);
    for &scalar in Scalar::ALL {
        let (types, result) = scalar.types();
        for _ in 0..100 {
            let [a, b] = [random.next(), random.next()];
            let cut = |bits: u64, i: usize| match types.get(i) {
                Some(ValType::I32 | ValType::F32) => bits & 0xffff_ffff,
                Some(_) => bits,
                None => 0,
            };
            let computed = scalar.eval(a, b);
            assert_eq!(
                computed,
                scalar.eval(cut(a, 0), cut(b, 1)),
                "{}",
                scalar.name()
            );
            if matches!(result, ValType::I32 | ValType::F32) {
                assert_eq!(computed.unwrap_or(0) >> 32, 0, "{}", scalar.name());
            }
        }
    }
}
