use afterimage_numeric::{Immediate, Vector};

use crate::soft::{F32, F64, Format};
use crate::{Random, floats, integers};
use integers::{read, saturate, write};

fn lanes(vector: u128, width: u32) -> Vec<u64> {
    let lanes = (0..128 / width).map(|i| vector >> (i * width) & ((1 << width) - 1));
    lanes.map(|lane| lane as u64).collect()
}

fn vector(width: u32, lanes: impl IntoIterator<Item = u64>) -> u128 {
    let lanes = lanes.into_iter().enumerate();
    lanes
        .map(|(i, lane)| u128::from(lane) << (i as u32 * width))
        .sum()
}

/// Returns the kind of a shape's lanes (`i` or `f`) and their width. For `f32x4`, these are `f` and
/// 32.
fn shape(name: &str) -> (&str, u32) {
    let (lane, _) = name.split_once('x').unwrap();
    (&lane[..1], lane[1..].parse().unwrap())
}

/// Splits an operator's name, `verb_shape_sign`. Also returns which part of the shape's lanes the
/// operator takes.
fn other_shape(name: &str) -> Option<(&str, &str, u32, bool)> {
    let name = name.strip_suffix("_zero").unwrap_or(name);
    let (name, signed) = match name.rsplit_once('_') {
        Some((rest, "s")) => (rest, true),
        Some((rest, "u")) => (rest, false),
        _ => (name, false),
    };
    let (verb, from) = name.rsplit_once('_')?;
    from.contains('x')
        .then(|| (verb, &from[..1], shape(from).1, signed))
}

/// Returns the result of an operator by its definition.
fn expected(operator: Vector, immediate: u128, [a, b, c]: [u128; 3]) -> u128 {
    let (of, name) = operator.name().split_once('.').unwrap();
    match name {
        "not" => return u128::MAX - a,
        "any_true" => return u128::from(a != 0),
        "and" | "or" | "xor" => {
            let [low, high] = [0, 64].map(|by| {
                integers::eval(name, 64, (a >> by) as u64, (b >> by) as u64)
                    .unwrap()
                    .unwrap()
            });
            return u128::from(low) | u128::from(high) << 64;
        }
        "andnot" => return a - (a & b),
        "bitselect" | "relaxed_laneselect" => {
            let chosen = (0..128).map(|i| (if c >> i & 1 == 1 { a } else { b }) >> i & 1);
            return chosen.enumerate().map(|(i, bit)| bit << i).sum();
        }
        _ => {}
    }
    let (kind, width) = shape(of);
    let [x, y, z] = [a, b, c].map(|operand| lanes(operand, width));
    let count = x.len();
    let lane = immediate as usize;
    let ones = (1u128 << width) as u64;
    let ones = ones.wrapping_sub(1);
    match name {
        "splat" => return vector(width, vec![a as u64 & ones; count]),
        "extract_lane" | "extract_lane_u" => return x[lane].into(),
        "extract_lane_s" => return write(read(x[lane], width, true), 32).into(),
        "replace_lane" => {
            let mut x = x;
            x[lane] = b as u64 & ones;
            return vector(width, x);
        }
        "all_true" => return u128::from(!x.contains(&0)),
        "bitmask" => {
            return x
                .iter()
                .enumerate()
                .map(|(i, x)| u128::from(x >> (width - 1)) << i)
                .sum();
        }
        "swizzle" | "relaxed_swizzle" => {
            return vector(
                8,
                y.iter().map(|&i| x.get(i as usize).copied().unwrap_or(0)),
            );
        }
        "shuffle" => {
            let both = [x, y].concat();
            return vector(8, lanes(immediate, 8).iter().map(|&i| both[i as usize]));
        }
        "shl" | "shr_s" | "shr_u" => {
            let shift = b as u32 % width;
            let shifted = x
                .iter()
                .map(|&x| integers::eval(name, width, x, shift.into()));
            return vector(width, shifted.map(|lane| lane.unwrap().unwrap()));
        }
        "q15mulr_sat_s" | "relaxed_q15mulr_s" => {
            let product = |(&x, &y)| {
                let product = read(x, 16, true) * read(y, 16, true) + 0x4000;
                saturate(product.div_euclid(0x8000), 16, true)
            };
            return vector(16, x.iter().zip(&y).map(product));
        }
        "dot_i16x8_s" => return dot(a, b, 16, 2, &[0; 4]),
        "relaxed_dot_i8x16_i7x16_s" => return dot(a, b, 8, 2, &[0; 8]),
        "relaxed_dot_i8x16_i7x16_add_s" => return dot(a, b, 8, 4, &z),
        _ => {}
    }
    let format: Format = if width == 32 { F32 } else { F64 };
    let defined = (0..count).map(|i| match kind {
        "i" => integers::eval(name, width, x[i], y[i]).map(Result::unwrap),
        _ => floats::eval(name, format, [x[i], y[i], z[i]]),
    });
    if let Some(defined) = defined.collect::<Option<Vec<_>>>() {
        let comparison =
            ["eq", "ne", "lt", "gt", "le", "ge"].contains(&name.split('_').next().unwrap());
        let defined = defined.into_iter();
        return vector(
            width,
            defined.map(|lane| if comparison { lane * ones } else { lane }),
        );
    }
    let (verb, from, from_width, signed) = other_shape(name).expect("a definition");
    let [x, y] = [a, b].map(|operand| lanes(operand, from_width));
    let integers =
        |lanes: &[u64]| Vec::from_iter(lanes.iter().map(|&x| read(x, from_width, signed)));
    let half = |lanes: &[i128]| match verb.rsplit_once('_') {
        Some((_, "low")) => lanes[..lanes.len() / 2].to_vec(),
        _ => lanes[lanes.len() / 2..].to_vec(),
    };
    match verb {
        "narrow" => {
            let both = [x, y].concat();
            let both = both.iter().map(|&x| read(x, from_width, true));
            vector(width, both.map(|x| saturate(x, width, signed)))
        }
        "extend_low" | "extend_high" => {
            vector(width, half(&integers(&x)).iter().map(|&x| write(x, width)))
        }
        "extmul_low" | "extmul_high" => {
            let [x, y] = [x, y].map(|lanes| half(&integers(&lanes)));
            vector(width, x.iter().zip(y).map(|(x, y)| write(x * y, width)))
        }
        "extadd_pairwise" => vector(
            width,
            integers(&x)
                .chunks(2)
                .map(|pair| write(pair[0] + pair[1], width)),
        ),
        _ => {
            // Convert the lanes that both types have, from the lowest on. The other lanes are zero.
            let sign = match name.trim_end_matches("_zero") {
                name if name.ends_with("_s") => "_s",
                name if name.ends_with("_u") => "_u",
                _ => "",
            };
            let verb = verb.trim_end_matches("_low");
            let scalar = format!("{verb}_{from}{from_width}{sign}");
            let to = format!("{kind}{width}");
            let converted = x.iter().take(count).map(|&x| {
                let converted = floats::convert(&scalar, &to, x);
                converted
                    .unwrap_or_else(|| panic!("{name} has no definition here"))
                    .unwrap()
            });
            vector(width, converted)
        }
    }
}

/// Returns, for each lane of `c`, the sum of the lane and of `many` products of signed lanes.
fn dot(a: u128, b: u128, width: u32, many: usize, c: &[u64]) -> u128 {
    let [x, y] = [a, b].map(|operand| lanes(operand, width));
    let products = x
        .iter()
        .zip(y)
        .map(|(&x, y)| read(x, width, true) * read(y, width, true));
    let products = Vec::from_iter(products);
    let width = width * many as u32;
    let sums = products
        .chunks(many)
        .map(|products| products.iter().sum::<i128>());
    vector(
        width,
        sums.zip(c)
            .map(|(sum, &c)| write(sum + i128::from(c), width)),
    )
}

#[test]
fn every_vector_operator_follows_its_definition() {
    let mut random = Random(7);
    for &operator in Vector::ALL {
        for i in 0..1500 {
            let width = [8, 16, 32, 64][i % 4];
            // Sometimes, use equal lanes, because sums of neighbours have their own edge cases.
            let equal = i % 16 >= 12;
            let mut operand = || {
                let lane = random.bits(width);
                let lanes = (0..128 / width).map(|_| if equal { lane } else { random.bits(width) });
                vector(width, lanes)
            };
            let [a, mut b, c] = [operand(), operand(), operand()];
            if i / 16 % 4 == 0 {
                b = a;
            }
            let immediate = match operator.immediate() {
                Immediate::None => 0,
                Immediate::Lane => {
                    let (_, width) = shape(operator.name());
                    (random.next() % u64::from(128 / width)).into()
                }
                Immediate::Shuffle => vector(8, (0..16).map(|_| random.next() % 32)),
            };
            let computed = operator.eval(immediate, [a, b, c]);
            let expected = expected(operator, immediate, [a, b, c]);
            assert!(
                computed == expected,
                "{} ({immediate:#x}) of {a:#034x}, {b:#034x}, {c:#034x} is {computed:#034x}, by definition {expected:#034x}",
                operator.name()
            );
        }
    }
}
