use afterimage_numeric::{Scalar, Trap};
use wasmparser::ValType;

use super::values::{Random, floats, integers, moderate_float};
use super::{Engine, Function, value};

fn edges(of: ValType, random: &mut Random) -> Vec<u64> {
    match of {
        ValType::I32 => integers(32, random),
        ValType::I64 => integers(64, random),
        ValType::F32 => floats(32, random),
        _ => floats(64, random),
    }
}

/// Returns all pairs of edge values, then random pairs.
fn operands(types: &[ValType], random: &mut Random) -> Vec<[u64; 2]> {
    let firsts = edges(types[0], random);
    let seconds = match types {
        [_, second] => edges(*second, random),
        _ => vec![0],
    };
    let pairs = firsts
        .iter()
        .flat_map(|&a| seconds.iter().map(move |&b| [a, b]));
    let mut pairs = Vec::from_iter(pairs);
    for _ in 0..1000 {
        pairs.push(std::array::from_fn(|_| match types[0] {
            ValType::I32 => random.next() >> 32,
            ValType::I64 => random.next(),
            ValType::F32 => moderate_float(32, random),
            _ => moderate_float(64, random),
        }));
    }
    pairs
}

fn trap(trap: Trap) -> wasmtime::Trap {
    match trap {
        Trap::DivisionByZero => wasmtime::Trap::IntegerDivisionByZero,
        Trap::IntegerOverflow => wasmtime::Trap::IntegerOverflow,
        Trap::InvalidConversion => wasmtime::Trap::BadConversionToInteger,
    }
}

#[test]
fn every_scalar_operator_computes_what_the_engine_does() {
    let functions = Scalar::ALL.iter().map(|scalar| Function {
        operator: scalar.name().to_owned(),
        parameters: scalar.types().0.to_vec(),
        result: Some(scalar.types().1),
    });
    let mut engine = Engine::new(&Vec::from_iter(functions));
    let found = engine.operators();
    let found = Vec::from_iter(found.iter().map(|operator| Scalar::of(operator).unwrap()));
    assert_eq!(found, Scalar::ALL);

    let mut random = Random(1);
    for (i, scalar) in Scalar::ALL.iter().enumerate() {
        let function = engine.function(i);
        let (types, _) = scalar.types();
        let mut trapped = false;
        for [a, b] in operands(types, &mut random) {
            let parameters = types
                .iter()
                .zip([a, b])
                .map(|(of, bits)| value(*of, bits.into()));
            let expected = engine.call(&function, &Vec::from_iter(parameters));
            let computed = scalar.eval(a, b).map(u128::from).map_err(trap);
            assert_eq!(
                computed,
                expected,
                "{} of {a:#x} and {b:#x} is {computed:x?}, the engine has {expected:x?}",
                scalar.name()
            );
            trapped |= computed.is_err();
        }
        assert_eq!(scalar.can_trap(), trapped, "{}", scalar.name());
    }
}
