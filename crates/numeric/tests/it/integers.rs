//! Computes operators on integers of any width with unbounded numbers.

use afterimage_numeric::Trap;

/// Returns a value of `width` bits, read as two's complement if `signed`.
pub fn read(bits: u64, width: u32, signed: bool) -> i128 {
    let bits = i128::from(bits) % (1 << width);
    if signed && bits >> (width - 1) == 1 {
        bits - (1 << width)
    } else {
        bits
    }
}

/// Returns the value modulo two to the power of `width`.
pub fn write(value: i128, width: u32) -> u64 {
    value.rem_euclid(1 << width) as u64
}

/// Returns the nearest value that the type has.
pub fn saturate(value: i128, width: u32, signed: bool) -> u64 {
    let (least, greatest) = if signed {
        (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    } else {
        (0, (1 << width) - 1)
    };
    write(value.max(least).min(greatest), width)
}

fn bit(bits: u64, i: u32) -> bool {
    bits / 2u64.pow(i) % 2 == 1
}

/// Returns a value whose bit `i` is bit `from(i)` of `bits`, or 0 if there is no such bit.
fn permute(bits: u64, width: u32, from: impl Fn(i128) -> i128) -> u64 {
    let set = (0..width).filter(|&i| {
        let from = from(i.into());
        (0..width.into()).contains(&from) && bit(bits, from as u32)
    });
    set.map(|i| 2u64.pow(i)).sum()
}

/// Returns the result of the operator called `name` (without its type) on operands of `width` bits.
/// Returns `None` if it is not an operator whose operands and result have that type. Comparisons
/// yield 1 or 0.
pub fn eval(name: &str, width: u32, a: u64, b: u64) -> Option<Result<u64, Trap>> {
    let (stem, signed) = match name.rsplit_once('_') {
        Some((stem, "s")) => (stem, true),
        Some((stem, "u")) => (stem, false),
        _ => (name, false),
    };
    let [x, y] = [a, b].map(|bits| read(bits, width, signed));
    let size = i128::from(width);
    let shift = read(b, 32.min(width), false) % size;
    let zero_divisor = || Err(Trap::DivisionByZero);
    let exact = match stem {
        "eqz" => i128::from(x == 0),
        "eq" => i128::from(x == y),
        "ne" => i128::from(x != y),
        "lt" => i128::from(x < y),
        "gt" => i128::from(x > y),
        "le" => i128::from(x <= y),
        "ge" => i128::from(x >= y),
        "add" => x + y,
        "sub" => x - y,
        "mul" if width == 64 => x.wrapping_mul(y),
        "mul" => x * y,
        "neg" => -x,
        "abs" => read(a, width, true).abs(),
        "min" => x.min(y),
        "max" => x.max(y),
        "avgr" => (x + y + 1) / 2,
        "add_sat" => return Some(Ok(saturate(x + y, width, signed))),
        "sub_sat" => return Some(Ok(saturate(x - y, width, signed))),
        "div" if y == 0 => return Some(zero_divisor()),
        "rem" if y == 0 => return Some(zero_divisor()),
        "div" if signed && x / y == 1 << (width - 1) => return Some(Err(Trap::IntegerOverflow)),
        "div" => x / y,
        "rem" => x % y,
        "clz" => (0..width).rev().take_while(|&i| !bit(a, i)).count() as i128,
        "ctz" => (0..width).take_while(|&i| !bit(a, i)).count() as i128,
        "popcnt" => (0..width).filter(|&i| bit(a, i)).count() as i128,
        "and" => permute(a, width, |i| if bit(b, i as u32) { i } else { -1 }).into(),
        "or" => x + y - i128::from(permute(a, width, |i| if bit(b, i as u32) { i } else { -1 })),
        "xor" => (0..width)
            .filter(|&i| bit(a, i) != bit(b, i))
            .map(|i| 1 << i)
            .sum(),
        "shl" => permute(a, width, |i| i - shift).into(),
        "shr" if signed => permute(a, width, |i| (i + shift).min(size - 1)).into(),
        "shr" => permute(a, width, |i| i + shift).into(),
        "rotl" => permute(a, width, |i| (i - shift).rem_euclid(size)).into(),
        "rotr" => permute(a, width, |i| (i + shift) % size).into(),
        "extend8" => read(a, 8, signed),
        "extend16" => read(a, 16, signed),
        "extend32" => read(a, 32, signed),
        _ => return None,
    };
    Some(Ok(write(exact, width)))
}
