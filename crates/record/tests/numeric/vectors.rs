use afterimage_numeric::{Immediate, Vector};
use wasmparser::ValType;

use crate::values::{Random, floats, integers, moderate_float};
use crate::{Engine, Function, value};

/// The immediates to try, in the text format.
fn immediates(vector: Vector, random: &mut Random) -> Vec<String> {
    match vector.immediate() {
        Immediate::None => vec![String::new()],
        Immediate::Lane => {
            let (_, lanes) = vector.name().split_once('x').unwrap();
            let (lanes, _) = lanes.split_once('.').unwrap();
            let lanes = lanes.parse::<u32>().unwrap();
            (0..lanes).map(|lane| format!(" {lane}")).collect()
        }
        Immediate::Shuffle => {
            let list = |of: &mut dyn FnMut(u64) -> u64| {
                String::from_iter((0..16).map(|i| format!(" {}", of(i))))
            };
            let mut shuffles = vec![
                list(&mut |i| i),
                list(&mut |i| 31 - i),
                list(&mut |i| i / 2),
            ];
            shuffles.extend((0..12).map(|_| list(&mut |_| random.next() % 32)));
            shuffles
        }
    }
}

/// `width`-bit lanes in vectors.
fn pack(width: u32, lanes: &[u64]) -> Vec<u128> {
    let vectors = lanes.chunks(128 / width as usize).map(|lanes| {
        let lanes = lanes.iter().rev();
        lanes.fold(0u128, |vector, &lane| {
            vector.unbounded_shl(width) | u128::from(lane)
        })
    });
    vectors.collect()
}

/// All pairs of edges, lane by lane, of every kind of lane; then edges in any order, and random ones. The third
/// operands are chosen so that a fused product is nearly cancelled in some lanes.
fn operands(random: &mut Random) -> Vec<[u128; 3]> {
    let mut triples = Vec::new();
    let mut lanes_of = |width: u32, edges: Vec<u64>, random: &mut Random| {
        let pairs = edges
            .iter()
            .flat_map(|&a| edges.iter().map(move |&b| (a, b)));
        let (mut firsts, mut seconds): (Vec<_>, Vec<_>) = pairs.unzip();
        for _ in 0..4000 {
            firsts.push(random.choose(&edges));
            seconds.push(random.choose(&edges));
        }
        let thirds = Vec::from_iter(firsts.iter().map(|_| random.choose(&edges)));
        let [firsts, seconds, thirds] = [firsts, seconds, thirds].map(|lanes| pack(width, &lanes));
        triples.extend((0..firsts.len()).map(|i| [firsts[i], seconds[i], thirds[i]]));
    };
    for width in [8, 16, 32, 64] {
        let edges = integers(width, random);
        lanes_of(width, edges, random);
    }
    for width in [32, 64] {
        let edges = floats(width, random);
        lanes_of(width, edges, random);
    }
    triples.extend((0..1000).map(|_| [random.wide(), random.wide(), random.wide()]));
    for width in [32, 64] {
        let mut lanes = [vec![], vec![], vec![]];
        for i in 0..4000 {
            let [a, b] = [(); 2].map(|()| moderate_float(width, random));
            let minus_product = match width {
                32 => u64::from((-f32::from_bits(a as u32) * f32::from_bits(b as u32)).to_bits()),
                _ => (-f64::from_bits(a) * f64::from_bits(b)).to_bits(),
            };
            let c = if i % 2 == 0 {
                minus_product
            } else {
                moderate_float(width, random)
            };
            for (lanes, lane) in lanes.iter_mut().zip([a, b, c]) {
                lanes.push(lane);
            }
        }
        let [a, b, c] = lanes.map(|lanes| pack(width, &lanes));
        triples.extend((0..a.len()).map(|i| [a[i], b[i], c[i]]));
    }
    triples
}

/// What an operand is made of: of a vector its low lane, if a scalar is wanted.
fn operand(of: ValType, bits: u128) -> u128 {
    match of {
        ValType::I32 | ValType::F32 => u128::from(bits as u32),
        ValType::I64 | ValType::F64 => u128::from(bits as u64),
        _ => bits,
    }
}

#[test]
fn every_vector_operator_computes_what_the_engine_does() {
    let mut random = Random(2);
    let mut functions = Vec::new();
    let mut vectors = Vec::new();
    for &vector in Vector::ALL {
        for immediate in immediates(vector, &mut random) {
            vectors.push(vector);
            functions.push(Function {
                operator: format!("{}{immediate}", vector.name()),
                parameters: vector.types().0.to_vec(),
                result: Some(vector.types().1),
            });
        }
    }
    let mut engine = Engine::new(&functions);
    let found = engine.operators();
    let found = Vec::from_iter(found.iter().map(|operator| Vector::of(operator).unwrap()));
    assert!(found.iter().map(|(vector, _)| vector).eq(&vectors));

    let operands = operands(&mut random);
    for (i, (vector, immediate)) in found.into_iter().enumerate() {
        let function = engine.function(i);
        let (types, _) = vector.types();
        for triple in &operands {
            let mut bits = *triple;
            for (bits, of) in bits.iter_mut().zip(types) {
                *bits = operand(*of, *bits);
            }
            let parameters = types.iter().zip(bits).map(|(of, bits)| value(*of, bits));
            let expected = engine.call(&function, &Vec::from_iter(parameters)).unwrap();
            let computed = vector.eval(immediate, bits);
            assert!(
                computed == expected,
                "{} of {bits:#034x?} is {computed:#034x}, the engine has {expected:#034x}",
                functions[i].operator
            );
        }
    }
}
