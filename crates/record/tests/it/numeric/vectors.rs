use afterimage_numeric::{Immediate, Vector};
use wasmparser::ValType;

use super::values::{Random, floats, integers, moderate_float};
use super::{Engine, Function, value};

/// Returns the immediates to try, in the text format.
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

/// Packs lanes of `width` bits into vectors.
fn pack(width: u32, lanes: &[u64]) -> Vec<u128> {
    let vectors = lanes.chunks(128 / width as usize).map(|lanes| {
        let lanes = lanes.iter().rev();
        lanes.fold(0u128, |vector, &lane| {
            vector.unbounded_shl(width) | u128::from(lane)
        })
    });
    vectors.collect()
}

/// Three operands.
type Triple = [u128; 3];

fn pack_triples(width: u32, lanes: [Vec<u64>; 3]) -> impl Iterator<Item = Triple> {
    let [a, b, c] = lanes.map(|lanes| pack(width, &lanes));
    a.into_iter().zip(b).zip(c).map(|((a, b), c)| [a, b, c])
}

/// Returns all pairs of these lanes, then arbitrary pairs. The third operand is always arbitrary.
fn pairs(width: u32, edges: &[u64], random: &mut Random) -> impl Iterator<Item = Triple> {
    let pairs = edges
        .iter()
        .flat_map(|&a| edges.iter().map(move |&b| (a, b)));
    let (mut firsts, mut seconds): (Vec<_>, Vec<_>) = pairs.unzip();
    for _ in 0..4000 {
        firsts.push(random.choose(edges));
        seconds.push(random.choose(edges));
    }
    let thirds = firsts.iter().map(|_| random.choose(edges)).collect();
    pack_triples(width, [firsts, seconds, thirds])
}

/// Returns vectors of equal lanes, because sums of neighbours have edge cases of their own.
fn equal_lanes(width: u32, random: &mut Random) -> Vec<Triple> {
    let least = 1u64 << (width - 1);
    let edges = [0, 1, least - 1, least, least | (least - 1)];
    let vectors = edges.map(|lane| pack(width, &vec![lane; 128 / width as usize])[0]);
    let pairs = vectors
        .iter()
        .flat_map(|&a| vectors.iter().map(move |&b| (a, b)));
    pairs.map(|(a, b)| [a, b, random.wide()]).collect()
}

/// Returns floats of similar size. In every other lane, the third float nearly cancels the product
/// of the others.
fn moderate_floats(width: u32, random: &mut Random) -> impl Iterator<Item = Triple> {
    let mut lanes = [vec![], vec![], vec![]];
    for i in 0..4000 {
        let [a, b, c] = [(); 3].map(|()| moderate_float(width, random));
        let minus_product = match width {
            32 => u64::from((-f32::from_bits(a as u32) * f32::from_bits(b as u32)).to_bits()),
            _ => (-f64::from_bits(a) * f64::from_bits(b)).to_bits(),
        };
        let c = if i % 2 == 0 { minus_product } else { c };
        for (lanes, lane) in lanes.iter_mut().zip([a, b, c]) {
            lanes.push(lane);
        }
    }
    pack_triples(width, lanes)
}

/// Returns edge values of every kind of lane, and random vectors.
fn operands(random: &mut Random) -> Vec<Triple> {
    let mut triples = Vec::new();
    for width in [8, 16, 32, 64] {
        let edges = integers(width, random);
        triples.extend(pairs(width, &edges, random));
        triples.extend(equal_lanes(width, random));
    }
    for width in [32, 64] {
        let edges = floats(width, random);
        triples.extend(pairs(width, &edges, random));
        triples.extend(moderate_floats(width, random));
    }
    triples.extend((0..1000).map(|_| [random.wide(), random.wide(), random.wide()]));
    triples
}

/// Converts a vector to an operand. A scalar takes the vector's low lane.
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
