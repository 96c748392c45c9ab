//! Computes operators on floats of any format, and conversions, with exact numbers.

use afterimage_numeric::Trap;

use crate::integers::{read, saturate, write};
use crate::soft::{Exact, F32, F64, Format, Number, add, divide, multiply, square_root};

/// Returns the integer that a number becomes when its fraction is removed. `away` decides whether
/// it is rounded away from zero or towards it.
fn integer(number: Exact, away: impl Fn(u128, Fraction) -> bool) -> Exact {
    if number.exponent >= 0 {
        return number;
    }
    let down = number.exponent.unsigned_abs();
    let whole = number.significand.checked_shr(down).unwrap_or(0);
    // No significand has more than 53 bits.
    let twice = (number.significand << 1).checked_shr(down).unwrap_or(0);
    let exact = twice.checked_shl(down) == Some(number.significand << 1);
    let fraction = match (twice % 2 == 1, exact) {
        (false, true) => Fraction::Zero,
        (false, false) => Fraction::BelowHalf,
        (true, true) => Fraction::Half,
        (true, false) => Fraction::AboveHalf,
    };
    let exact_zero = down >= 128 && number.significand == 0;
    let fraction = if exact_zero { Fraction::Zero } else { fraction };
    Exact {
        significand: whole + u128::from(away(whole, fraction)),
        exponent: 0,
        ..number
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Fraction {
    Zero,
    BelowHalf,
    Half,
    AboveHalf,
}

/// Returns the number without its fraction. If the number is far beyond 64-bit integers, returns
/// any integer beyond them.
fn whole(number: Exact) -> i128 {
    let number = integer(number, |_, _| false);
    let magnitude = match number.significand {
        0 => 0,
        _ if number.exponent > 65 => 1 << 100,
        significand => (significand << number.exponent) as i128,
    };
    if number.negative {
        -magnitude
    } else {
        magnitude
    }
}

/// Maps numbers other than NaN to integers in the same order.
fn rank(format: Format, bits: u64) -> i128 {
    let magnitude = i128::from(bits & !format.sign(true));
    if bits & format.sign(true) == 0 {
        magnitude
    } else {
        -magnitude
    }
}

/// Returns the result of the operator called `name`, without its type. Comparisons yield 1 or 0.
pub fn eval(name: &str, format: Format, [a, b, c]: [u64; 3]) -> Option<u64> {
    use Number::{Finite, Infinite, Nan};

    let sign = format.sign(true);
    let [x, y, z] = [a, b, c].map(|bits| format.read(bits));
    let ordered = !matches!(x, Nan) && !matches!(y, Nan);
    let [i, j] = [a, b].map(|bits| rank(format, bits));
    let name = name.strip_prefix("relaxed_").unwrap_or(name);
    let result = match name {
        "eq" => u64::from(ordered && i == j),
        "ne" => u64::from(!ordered || i != j),
        "lt" => u64::from(ordered && i < j),
        "gt" => u64::from(ordered && i > j),
        "le" => u64::from(ordered && i <= j),
        "ge" => u64::from(ordered && i >= j),
        "abs" => a & !sign,
        "neg" => a ^ sign,
        "copysign" => a & !sign | b & sign,
        "pmin" => {
            if ordered && j < i {
                b
            } else {
                a
            }
        }
        "pmax" => {
            if ordered && i < j {
                b
            } else {
                a
            }
        }
        "min" | "max" if !ordered => format.canonical_nan(),
        // Zeros differ only in their signs.
        "min" => {
            if (i, a & sign == 0) <= (j, b & sign == 0) {
                a
            } else {
                b
            }
        }
        "max" => {
            if (i, a & sign == 0) >= (j, b & sign == 0) {
                a
            } else {
                b
            }
        }
        "add" => sum(format, x, y),
        "sub" => sum(format, x, format.read(b ^ sign)),
        "mul" => match (x, y) {
            (Nan, _) | (_, Nan) => format.canonical_nan(),
            (Finite(x), Finite(y)) => format.round(multiply(x, y), false),
            (Infinite { .. }, Finite(Exact { significand: 0, .. }))
            | (Finite(Exact { significand: 0, .. }), Infinite { .. }) => format.canonical_nan(),
            _ => format.infinity((a ^ b) & sign != 0),
        },
        "div" => match (x, y) {
            (Nan, _) | (_, Nan) | (Infinite { .. }, Infinite { .. }) => format.canonical_nan(),
            (Finite(Exact { significand: 0, .. }), Finite(Exact { significand: 0, .. })) => {
                format.canonical_nan()
            }
            (Finite(x), Finite(y)) if y.significand != 0 => {
                let (quotient, more) = divide(x, y);
                format.round(quotient, more)
            }
            (Finite(_), Infinite { .. }) => (a ^ b) & sign,
            _ => format.infinity((a ^ b) & sign != 0),
        },
        "sqrt" => match x {
            Finite(x) if x.significand == 0 => a,
            Finite(x) if !x.negative => {
                let (root, more) = square_root(x);
                format.round(root, more)
            }
            Infinite { negative: false } => a,
            _ => format.canonical_nan(),
        },
        "madd" => fused(format, x, y, z),
        "nmadd" => fused(format, format.read(a ^ sign), y, z),
        "ceil" | "floor" | "trunc" | "nearest" => match x {
            Nan => format.canonical_nan(),
            Infinite { .. } => a,
            Finite(x) => format.round(
                integer(x, |whole, fraction| match name {
                    "ceil" => !x.negative && fraction != Fraction::Zero,
                    "floor" => x.negative && fraction != Fraction::Zero,
                    "trunc" => false,
                    _ => {
                        fraction == Fraction::AboveHalf
                            || fraction == Fraction::Half && whole % 2 == 1
                    }
                }),
                false,
            ),
        },
        _ => return None,
    };
    Some(result)
}

fn sum(format: Format, x: Number, y: Number) -> u64 {
    match (x, y) {
        (Number::Nan, _) | (_, Number::Nan) => format.canonical_nan(),
        (Number::Infinite { negative: a }, Number::Infinite { negative: b }) if a != b => {
            format.canonical_nan()
        }
        (Number::Infinite { negative }, _) | (_, Number::Infinite { negative }) => {
            format.infinity(negative)
        }
        (Number::Finite(x), Number::Finite(y)) => {
            let (sum, more) = add(x, y);
            format.round(sum, more)
        }
    }
}

fn fused(format: Format, x: Number, y: Number, z: Number) -> u64 {
    match (x, y) {
        (Number::Finite(x), Number::Finite(y)) => sum(format, Number::Finite(multiply(x, y)), z),
        // An infinite or undefined product is the same in every precision.
        _ => {
            let operands = [x, y].map(|number| match number {
                Number::Nan => format.canonical_nan(),
                Number::Infinite { negative } => format.infinity(negative),
                Number::Finite(exact) => format.round(exact, false),
            });
            let product = eval("mul", format, [operands[0], operands[1], 0]).unwrap();
            sum(format, format.read(product), z)
        }
    }
}

fn format(name: &str) -> Format {
    match name {
        "f32" => F32,
        "f64" => F64,
        _ => panic!("{name} is no format"),
    }
}

/// Returns the result of converting `a` to `to`. `name` is the operator's name, without its type.
pub fn convert(name: &str, to: &str, a: u64) -> Option<Result<u64, Trap>> {
    let width = to[1..].parse().unwrap();
    let (name, signed) = match name.rsplit_once('_') {
        Some((name, "s")) => (name, true),
        Some((name, "u")) => (name, false),
        _ => (name, false),
    };
    let (verb, from) = name.rsplit_once('_')?;
    let from_width = from[1..].parse().ok()?;
    let result = match verb {
        "wrap" | "extend" => write(read(a, from_width, signed), width),
        "reinterpret" => a,
        "convert" => {
            let value = read(a, from_width, signed);
            let significand = value.unsigned_abs();
            let exact = Exact {
                negative: value < 0,
                significand,
                exponent: 0,
            };
            format(to).round(exact, false)
        }
        "demote" | "promote" => match format(from).read(a) {
            Number::Nan => format(to).canonical_nan(),
            Number::Infinite { negative } => format(to).infinity(negative),
            Number::Finite(exact) => format(to).round(exact, false),
        },
        "trunc" | "trunc_sat" | "relaxed_trunc" => {
            let number = format(from).read(a);
            let whole = match number {
                Number::Nan if verb == "trunc" => return Some(Err(Trap::InvalidConversion)),
                Number::Nan => 0,
                Number::Infinite { negative: true } => -(1 << 100),
                Number::Infinite { negative: false } => 1 << 100,
                Number::Finite(exact) => whole(exact),
            };
            let nearest = saturate(whole, width, signed);
            if verb == "trunc" && read(nearest, width, signed) != whole {
                return Some(Err(Trap::IntegerOverflow));
            }
            nearest
        }
        _ => return None,
    };
    Some(Ok(result))
}
