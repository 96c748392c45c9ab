//! Implements binary floating point (IEEE 754-2019) from its definition, with exact numbers that
//! are rounded once.

/// A binary floating-point format.
#[derive(Clone, Copy)]
pub struct Format {
    /// The number of bits of the fraction field.
    pub fraction: u32,
    /// The number of bits of the exponent field.
    pub exponent: u32,
}

pub const F32: Format = Format {
    fraction: 23,
    exponent: 8,
};
pub const F64: Format = Format {
    fraction: 52,
    exponent: 11,
};

/// A number: (-1)^negative * significand * 2^exponent.
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    pub negative: bool,
    pub significand: u128,
    pub exponent: i32,
}

#[derive(Clone, Copy, Debug)]
pub enum Number {
    Nan,
    Infinite { negative: bool },
    Finite(Exact),
}

impl Format {
    pub fn width(self) -> u32 {
        self.fraction + self.exponent + 1
    }

    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    pub fn sign(self, negative: bool) -> u64 {
        u64::from(negative) << (self.width() - 1)
    }

    pub fn infinity(self, negative: bool) -> u64 {
        self.sign(negative) | ((1 << self.exponent) - 1) << self.fraction
    }

    pub fn canonical_nan(self) -> u64 {
        self.infinity(false) | 1 << (self.fraction - 1)
    }

    pub fn read(self, bits: u64) -> Number {
        let negative = bits >> (self.width() - 1) & 1 == 1;
        let fraction = u128::from(bits & ((1 << self.fraction) - 1));
        let field = (bits >> self.fraction & ((1 << self.exponent) - 1)) as i32;
        let least = 1 - self.bias() - self.fraction as i32;
        if field == (1 << self.exponent) - 1 {
            return match fraction {
                0 => Number::Infinite { negative },
                _ => Number::Nan,
            };
        }
        Number::Finite(match field {
            0 => Exact {
                negative,
                significand: fraction,
                exponent: least,
            },
            _ => Exact {
                negative,
                significand: fraction | 1 << self.fraction,
                exponent: least + field - 1,
            },
        })
    }

    /// Returns the float nearest to the number, ties to even. `more` says that the true magnitude
    /// is slightly greater, by less than one unit of the significand. The significand must then
    /// have bits to spare.
    pub fn round(self, number: Exact, more: bool) -> u64 {
        let sign = self.sign(number.negative);
        if number.significand == 0 {
            assert!(!more);
            return sign;
        }
        let least = 1 - self.bias() - self.fraction as i32;
        let length = 128 - number.significand.leading_zeros() as i32;
        // The exponent of the last place. `fraction + 1` bits remain, or fewer below the least
        // normal number.
        let place = (number.exponent + length - 1 - self.fraction as i32).max(least);
        let drop = place - number.exponent;
        assert!(drop > 1 || !more, "a significand without bits to spare");
        let kept = if drop <= 0 {
            number.significand << -drop
        } else {
            let kept = number.significand.checked_shr(drop as u32).unwrap_or(0);
            let rest = if drop < 128 {
                number.significand - (kept << drop)
            } else {
                number.significand
            };
            let half = 1u128.checked_shl(drop as u32 - 1).unwrap_or(u128::MAX);
            let up = rest > half || rest == half && (more || kept % 2 == 1);
            kept + u128::from(up)
        };
        // A carry out of the significand goes to the exponent field, up to infinity.
        let field = (place - least) as u128;
        let magnitude = (field << self.fraction) + kept;
        sign | (magnitude.min(self.infinity(false).into()) as u64)
    }
}

/// Returns the sum, and whether the true magnitude is slightly greater. Both significands have at
/// most 106 bits. A zero sum of numbers with different signs is positive.
pub fn add(a: Exact, b: Exact) -> (Exact, bool) {
    let top = |n: Exact| n.exponent + 128 - n.significand.leading_zeros() as i32;
    if a.significand == 0 || b.significand == 0 {
        let number = if a.significand == 0 { b } else { a };
        let negative = if number.significand == 0 {
            a.negative && b.negative
        } else {
            number.negative
        };
        return (Exact { negative, ..number }, false);
    }
    let (large, small) = if top(a) >= top(b) { (a, b) } else { (b, a) };
    // The highest bit of the larger number becomes bit 126, so that a carry fits.
    let up = large.significand.leading_zeros() - 1;
    let exponent = large.exponent - up as i32;
    let (x, shift) = (large.significand << up, small.exponent - exponent);
    let (y, lost) = if shift >= 0 {
        (small.significand << shift, false)
    } else {
        let y = small.significand.checked_shr(-shift as u32).unwrap_or(0);
        (y, shift <= -128 || y << -shift != small.significand)
    };
    if large.negative == small.negative {
        return (
            Exact {
                negative: large.negative,
                significand: x + y,
                exponent,
            },
            lost,
        );
    }
    // The lost bits make the difference smaller. So one unit is subtracted, and the true value is
    // slightly greater than the result.
    let (greater, less, negative) = if x >= y {
        (x, y, large.negative)
    } else {
        (y, x, small.negative)
    };
    let significand = greater - less - u128::from(lost);
    (
        Exact {
            negative: negative && significand != 0,
            significand,
            exponent,
        },
        lost,
    )
}

/// Returns the exact product.
pub fn multiply(a: Exact, b: Exact) -> Exact {
    Exact {
        negative: a.negative != b.negative,
        significand: a.significand * b.significand,
        exponent: a.exponent + b.exponent,
    }
}

/// Returns the quotient by a number that is not 0, and whether the true magnitude is slightly
/// greater.
pub fn divide(a: Exact, b: Exact) -> (Exact, bool) {
    let up = a.significand.leading_zeros();
    let dividend = a.significand.checked_shl(up).unwrap_or(0);
    let quotient = Exact {
        negative: a.negative != b.negative,
        significand: dividend / b.significand,
        exponent: a.exponent.wrapping_sub(up as i32) - b.exponent,
    };
    (quotient, !dividend.is_multiple_of(b.significand))
}

/// Returns the square root of a number that is not negative, and whether the true root is slightly
/// greater.
pub fn square_root(a: Exact) -> (Exact, bool) {
    let up = a.significand.leading_zeros() & !1;
    let up = if (a.exponent - up as i32) % 2 == 0 {
        up
    } else {
        up.saturating_sub(1)
    };
    let square = a.significand.checked_shl(up).unwrap_or(0);
    // Find the root bit by bit, from the highest.
    let root = (0..64).rev().fold(0u128, |root, i| {
        let with = root | 1 << i;
        if with * with <= square { with } else { root }
    });
    let exponent = (a.exponent - up as i32) / 2;
    (
        Exact {
            negative: a.negative,
            significand: root,
            exponent,
        },
        root * root != square,
    )
}
