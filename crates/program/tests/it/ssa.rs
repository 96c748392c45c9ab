//! Checks statements by their definition, and against executions on a machine that does not use
//! them.

use std::path::Path;

use afterimage_ids::OpId;
use afterimage_program::{Program, Ssa};
use afterimage_testkit::modules::{HANDWRITTEN, ModuleConfig, SplitMix64, module_from_seed};
use afterimage_testkit::ssa::verify;

fn check(name: &str, bytes: &[u8], random: &mut SplitMix64) -> usize {
    let program = Program::parse(bytes).unwrap();
    let mut compared = 0;
    for function in &program.functions {
        let ssa = Ssa::build(&program, bytes, function)
            .unwrap_or_else(|error| panic!("{name}: {}: {error}", function.id));
        verify(&program, bytes, function, &ssa)
            .unwrap_or_else(|error| panic!("{name}: {}: {error}", function.id));
        for _ in 0..4 {
            compared += crate::machine::walk(&program, bytes, function, &ssa, random)
                .unwrap_or_else(|error| panic!("{name}: {}: {error}", function.id));
        }
    }
    compared
}

#[test]
fn statements_of_generated_modules() {
    let mut compared = 0;
    let mut random = SplitMix64(1);
    for seed in 0..500 {
        let config = ModuleConfig {
            traps: seed % 2 == 0,
            simd: seed % 5 == 0,
            fuel: (seed % 3 == 0).then_some(100),
            ..ModuleConfig::default()
        };
        compared += check(
            &format!("seed {seed}"),
            &module_from_seed(seed, &config),
            &mut random,
        );
    }
    assert!(
        compared > 100_000,
        "{compared} operands are too few to mean much"
    );
}

#[test]
fn statements_of_handwritten_modules() {
    let mut random = SplitMix64(2);
    for (name, text) in HANDWRITTEN {
        check(name, &wat::parse_str(text).unwrap(), &mut random);
    }
    for folder in ["tests/cfg", "tests/ssa"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ext| ext == "wat") {
                let name = path.display().to_string();
                check(&name, &wat::parse_file(&path).unwrap(), &mut random);
            }
        }
    }
}

#[test]
fn another_modules_bytes_are_refused() {
    let bytes =
        wat::parse_str("(module (func (param i32) (drop (i32.eqz (local.get 0)))))").unwrap();
    let program = Program::parse(&bytes).unwrap();
    let function = &program.functions[0];
    assert!(Ssa::build(&program, &bytes[..bytes.len() - 1], function).is_err());
    assert!(Ssa::build(&program, &[], function).is_err());
    let other = wat::parse_str("(module (func (param i32) (nop) (nop) (nop) (nop)))").unwrap();
    assert!(Ssa::build(&program, &other, function).is_err());
}

#[test]
fn who_takes_a_constant() {
    let text = "(module (func (param i32) (result i32)
        (local.set 0 (i32.add (local.get 0) (i32.const 7)))
        (i32.store (i32.const 9) (i32.const 7))
        (i32.const 5)) (memory 1))";
    let bytes = wat::parse_str(text).unwrap();
    let program = Program::parse(&bytes).unwrap();
    let ssa = Ssa::build(&program, &bytes, &program.functions[0]).unwrap();
    let takers = (0..8).map(|op| ssa.taker_of(OpId::from_u32(op)));
    let takers = Vec::from_iter(takers.map(|taker| taker.map(OpId::as_u32)));
    // The operators are local.get, i32.const, i32.add, local.set, i32.const twice, i32.store, and
    // those of the returned value.
    let (sum, store) = (Some(2), Some(6));
    assert_eq!(takers, [None, sum, None, None, store, store, None, None]);
}
