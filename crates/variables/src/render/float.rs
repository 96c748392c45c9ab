//! Formats floating-point numbers of every format. The text is the shortest decimal number that
//! rounds to the given number in its format.
//!
//! Rust formats `f32` and `f64`. The other formats use the algorithm of Steele and White (1990) in
//! the form of Burger and Dybvig (1996, section 3). It is exact, and computes with integers of up
//! to about 16,500 bits.

use std::cmp::Ordering;

/// A binary format of IEEE 754.
#[derive(Clone, Copy)]
pub(super) struct Format {
    /// The number of bits of the exponent.
    exponent: u32,
    /// The number of bits after the leading bit of the mantissa.
    fraction: u32,
}

/// The format of `_Float16`, `__fp16` and `f16`.
pub(super) const HALF: Format = Format {
    exponent: 5,
    fraction: 10,
};
/// The format of `__bf16`, which is the upper half of a `float`.
pub(super) const BRAIN: Format = Format {
    exponent: 8,
    fraction: 7,
};
/// The format of WebAssembly's `long double`, `_Float128` and `f128`.
pub(super) const QUADRUPLE: Format = Format {
    exponent: 15,
    fraction: 112,
};

enum Class {
    NotANumber,
    Infinite,
    /// A mantissa, the power of two by which it is multiplied, and whether the next lower number is
    /// only half as far away as the next higher number.
    Finite(u128, i32, bool),
}

impl Format {
    fn width(self) -> u32 {
        1 + self.exponent + self.fraction
    }

    fn is_negative(self, bits: u128) -> bool {
        bits >> (self.width() - 1) & 1 == 1
    }

    fn class(self, bits: u128) -> Class {
        let largest = (1 << self.exponent) - 1;
        let exponent = (bits >> self.fraction) as u32 & largest;
        let fraction = bits & ((1 << self.fraction) - 1);
        let bias = (largest >> 1) as i32 + self.fraction as i32;
        match exponent {
            0 => Class::Finite(fraction, 1 - bias, false),
            _ if exponent == largest && fraction == 0 => Class::Infinite,
            _ if exponent == largest => Class::NotANumber,
            _ => Class::Finite(
                fraction | 1 << self.fraction,
                exponent as i32 - bias,
                fraction == 0 && exponent > 1,
            ),
        }
    }

    /// Returns the shortest decimal number that rounds to this number of the format, in the form in
    /// which Rust writes an `f64`. For a NaN, returns its bits.
    pub(super) fn text(self, bits: u128) -> String {
        let sign = if self.is_negative(bits) { "-" } else { "" };
        match self.class(bits) {
            Class::NotANumber => {
                let digits = self.width() as usize / 4;
                format!("nan(0x{bits:0digits$x})")
            }
            Class::Infinite => format!("{sign}inf"),
            Class::Finite(0, ..) => format!("{sign}0.0"),
            Class::Finite(mantissa, exponent, narrow) => {
                let (digits, point) = shortest(mantissa, exponent, narrow);
                format!("{sign}{}", written(&digits, point))
            }
        }
    }

    /// Returns the nearest `f64`, with ties to even.
    pub(super) fn nearest(self, bits: u128) -> f64 {
        let magnitude = match self.class(bits) {
            Class::NotANumber => f64::NAN,
            Class::Infinite => f64::INFINITY,
            Class::Finite(mantissa, exponent, _) => scaled(mantissa, exponent),
        };
        if self.is_negative(bits) {
            -magnitude
        } else {
            magnitude
        }
    }
}

/// Returns an integer times a power of two, rounded once.
fn scaled(mantissa: u128, exponent: i32) -> f64 {
    let length = 128 - mantissa.leading_zeros() as i32;
    // An f64 of this size has 53 bits, or fewer below the smallest normal number.
    let least = (exponent + length - 53).max(-1074);
    let drop = (least - exponent).clamp(0, 127) as u32;
    if length < drop as i32 {
        return 0.0;
    }
    let (kept, lost) = (mantissa >> drop, mantissa & ((1 << drop) - 1));
    let up = match (drop, (lost << 1).cmp(&(1 << drop))) {
        (0, _) | (_, Ordering::Less) => false,
        (_, Ordering::Greater) => true,
        (_, Ordering::Equal) => kept & 1 == 1,
    };
    // Both factors are exact. Their product is also exact, unless it is too large.
    let at = exponent + drop as i32;
    let (first, second) = (at / 2, at - at / 2);
    match at {
        1024.. => f64::INFINITY,
        _ => (kept + u128::from(up)) as f64 * power(first) * power(second),
    }
}

fn power(exponent: i32) -> f64 {
    2f64.powi(exponent.clamp(-1022, 1023))
}

/// Writes digits as a decimal number, with the point after the first `point` digits.
fn written(digits: &str, point: i32) -> String {
    let exponent = point - 1;
    if !(-4..16).contains(&exponent) {
        let (first, rest) = digits.split_at(1);
        return match rest {
            "" => format!("{first}e{exponent}"),
            _ => format!("{first}.{rest}e{exponent}"),
        };
    }
    let count = digits.len() as i32;
    if point <= 0 {
        format!("0.{}{digits}", "0".repeat(-point as usize))
    } else if point >= count {
        format!("{digits}{}.0", "0".repeat((point - count) as usize))
    } else {
        let (whole, rest) = digits.split_at(point as usize);
        format!("{whole}.{rest}")
    }
}

/// Returns the shortest digits of `mantissa · 2^exponent`, and the number of digits before the
/// point.
fn shortest(mantissa: u128, exponent: i32, narrow: bool) -> (String, i32) {
    // The number is r / s, and the ends of the interval that rounds to it are (r - below) / s and
    // (r + above) / s.
    let above_bits = exponent.max(0) as u32;
    let below_bits = (-exponent).max(0) as u32;
    let extra = u32::from(narrow);
    let mut r = Natural::of(mantissa).shifted(above_bits + 1 + extra);
    let mut s = Natural::of(1).shifted(below_bits + 1 + extra);
    let mut below = Natural::of(1).shifted(above_bits);
    let mut above = below.clone().shifted(extra);
    // If the mantissa is even, the ends of the interval also round to it.
    let even = mantissa & 1 == 0;
    let is_high = |r: &Natural, above: &Natural, s: &Natural| match r.plus(above).cmp(s) {
        Ordering::Equal => even,
        order => order.is_gt(),
    };
    let bits = 128 - mantissa.leading_zeros() as i32 + exponent - 1;
    let mut point = (f64::from(bits) * std::f64::consts::LOG10_2).floor() as i32;
    let ten = |times: i32, numbers: &mut [&mut Natural]| {
        for _ in 0..times {
            numbers.iter_mut().for_each(|number| number.multiply(10));
        }
    };
    ten(point, &mut [&mut s]);
    ten(-point, &mut [&mut r, &mut below, &mut above]);
    // The estimate is too small by at most one or, after rounding up, two.
    while is_high(&r, &above, &s) {
        point += 1;
        s.multiply(10);
    }
    let mut digits = String::new();
    loop {
        ten(1, &mut [&mut r, &mut below, &mut above]);
        let mut digit = 0;
        while r.cmp(&s).is_ge() {
            r.subtract(&s);
            digit += 1;
        }
        let low = match r.cmp(&below) {
            Ordering::Equal => even,
            order => order.is_lt(),
        };
        let high = is_high(&r, &above, &s);
        let last = match (low, high) {
            (false, false) => None,
            (true, false) => Some(digit),
            (false, true) => Some(digit + 1),
            (true, true) => match r.plus(&r).cmp(&s) {
                Ordering::Less => Some(digit),
                _ => Some(digit + 1),
            },
        };
        digits.extend(char::from_digit(last.unwrap_or(digit), 10));
        if last.is_some() {
            return (digits, point);
        }
    }
}

/// A natural number in base 2^32. The lowest digit comes first, and the highest is not 0.
#[derive(Clone, PartialEq, Eq)]
struct Natural(Vec<u32>);

impl Natural {
    fn of(mut number: u128) -> Self {
        let mut digits = Vec::new();
        while number > 0 {
            digits.push(number as u32);
            number >>= 32;
        }
        Self(digits)
    }

    fn shifted(self, by: u32) -> Self {
        let mut digits = vec![0; by as usize / 32];
        let mut carry = 0;
        for digit in self.0 {
            let wide = u64::from(digit) << (by % 32) | carry;
            digits.push(wide as u32);
            carry = wide >> 32;
        }
        digits.extend((carry > 0).then_some(carry as u32));
        Self(digits)
    }

    fn multiply(&mut self, by: u32) {
        let mut carry = 0;
        for digit in &mut self.0 {
            let wide = u64::from(*digit) * u64::from(by) + carry;
            *digit = wide as u32;
            carry = wide >> 32;
        }
        self.0.extend((carry > 0).then_some(carry as u32));
    }

    fn plus(&self, other: &Self) -> Self {
        let mut digits = Vec::new();
        let mut carry = 0;
        for at in 0..self.0.len().max(other.0.len()) {
            let digit = |number: &Self| u64::from(number.0.get(at).copied().unwrap_or(0));
            let wide = digit(self) + digit(other) + carry;
            digits.push(wide as u32);
            carry = wide >> 32;
        }
        digits.extend((carry > 0).then_some(carry as u32));
        Self(digits)
    }

    /// Subtracts a number that must not be larger than this number.
    fn subtract(&mut self, other: &Self) {
        let mut borrow = false;
        for (at, digit) in self.0.iter_mut().enumerate() {
            let (first, one) = digit.overflowing_sub(other.0.get(at).copied().unwrap_or(0));
            let (second, two) = first.overflowing_sub(borrow.into());
            *digit = second;
            borrow = one || two;
        }
        while self.0.pop_if(|digit| *digit == 0).is_some() {}
    }

    fn cmp(&self, other: &Self) -> Ordering {
        let length = self.0.len().cmp(&other.0.len());
        length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOUBLE: Format = Format {
        exponent: 11,
        fraction: 52,
    };
    const SINGLE: Format = Format {
        exponent: 8,
        fraction: 23,
    };

    /// Returns pseudo-random bits, and the bits at the ends of the format.
    fn samples(width: u32) -> impl Iterator<Item = u128> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u128;
        let random = (0..2000).map(move |_| {
            state = state.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645) + 1;
            state >> (128 - width)
        });
        let all = u128::MAX >> (128 - width);
        let ends = [
            0,
            1,
            2,
            3,
            all,
            all >> 1,
            all >> 2,
            all - 1,
            !(all >> 1) & all,
        ];
        let powers = (0..width).map(|bit| 1 << bit);
        random.chain(ends).chain(powers)
    }

    #[test]
    fn numbers_are_as_the_standard_library_prints_them() {
        for bits in samples(64) {
            let number = f64::from_bits(bits as u64);
            if number.is_finite() {
                assert_eq!(DOUBLE.text(bits), format!("{number:?}"));
                assert_eq!(DOUBLE.nearest(bits).to_bits(), number.to_bits());
            }
        }
        for bits in samples(32) {
            let number = f32::from_bits(bits as u32);
            if number.is_finite() {
                assert_eq!(SINGLE.text(bits), format!("{number:?}"));
                assert_eq!(SINGLE.nearest(bits), f64::from(number));
            }
        }
    }

    /// The expected texts come from glibc's `%.36Lg`, cut to the necessary digits.
    #[test]
    fn numbers_of_quadruple_precision_are_exact() {
        for (bits, text) in [
            (0x3fff_4000 << 96, "1.25"),
            (0xc000 << 112, "-2.0"),
            (0, "0.0"),
            (1 << 127, "-0.0"),
            (0x7fff << 112, "inf"),
            (1, "6e-4966"),
            (
                0x3ffd_5555_5555_5555_5555_5555_5555_5555,
                "0.3333333333333333333333333333333333",
            ),
            (
                0x4000_921f_b544_42d1_8469_898c_c517_01b8,
                "3.1415926535897932384626433832795028",
            ),
            (
                0x7ffe_ffff_ffff_ffff_ffff_ffff_ffff_ffff,
                "1.189731495357231765085759326628007e4932",
            ),
            // 0.1 as a double, which is a different number from 0.1.
            (
                0x3ffb_9999_9999_9999_a000_0000_0000_0000,
                "0.1000000000000000055511151231257827",
            ),
        ] {
            assert_eq!(QUADRUPLE.text(bits), text);
        }
        assert_eq!(QUADRUPLE.nearest(0x3fff_4000 << 96), 1.25);
        assert_eq!(
            QUADRUPLE.nearest(0x3ffd_5555_5555_5555_5555_5555_5555_5555),
            1.0 / 3.0
        );
        assert_eq!(QUADRUPLE.nearest(0x7ffe << 112), f64::INFINITY);
        assert_eq!(QUADRUPLE.nearest(1), 0.0);
        assert!(QUADRUPLE.nearest(0x7fff_8000 << 96).is_nan());
    }

    #[test]
    fn short_formats_have_few_digits() {
        let half = |bits| HALF.text(bits);
        assert_eq!(half(0x3e00), "1.5");
        assert_eq!(half(0x2e66), "0.1");
        assert_eq!(half(0x7bff), "65500.0");
        assert_eq!(half(0x0001), "6e-8");
        assert_eq!(half(0xfc00), "-inf");
        assert_eq!(half(0x7e00), "nan(0x7e00)");
        assert_eq!(BRAIN.text(0x3fc0), "1.5");
        assert_eq!(BRAIN.text(0x3dcd), "0.1");
    }
}
