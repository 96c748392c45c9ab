//! Performs floating-point arithmetic as the engine does with NaN canonicalisation.
//!
//! An arithmetic operator that yields a NaN yields the canonical NaN, which is positive and quiet,
//! with payload zero. The rule holds for `add`, `sub`, `mul`, `div`, `sqrt`, `min`, `max`, `ceil`,
//! `floor`, `trunc`, `nearest`, the fused operators, `promote` and `demote`. It does not hold for
//! `abs`, `neg`, `copysign`, `pmin`, `pmax`, `reinterpret`, loads and selections. These only move
//! or change bits, including the bits of a signalling NaN.

/// Operations that WebAssembly's operators need in addition to the arithmetic of [`f32`] and
/// [`f64`].
pub(crate) trait Float: Copy {
    /// Returns the number itself, or the canonical NaN for any NaN.
    fn canonical(self) -> Self;

    /// Returns the lesser operand, or the canonical NaN if one is NaN. -0 is less than +0.
    fn min_or_nan(self, other: Self) -> Self;

    /// Returns the greater operand, or the canonical NaN if one is NaN. -0 is less than +0.
    fn max_or_nan(self, other: Self) -> Self;

    /// Returns `other` if it is less, otherwise `self`, bit for bit.
    fn pseudo_min(self, other: Self) -> Self;

    /// Returns `other` if it is greater, otherwise `self`, bit for bit.
    fn pseudo_max(self, other: Self) -> Self;

    /// Returns `self * factor + term`, rounded once.
    fn fused(self, factor: Self, term: Self) -> Self;
}

macro_rules! floats {
    ($($float:ident, $infinity:literal, $canonical_nan:literal;)*) => {
        $(impl Float for $float {
            // Compare the bits as integers. The compiler treats all NaNs as equal, so it would drop
            // the canonicalisation where an operation such as a square root might yield a different
            // NaN.
            #[inline(always)]
            fn canonical(self) -> Self {
                let bits = self.to_bits();
                Self::from_bits(if bits << 1 > $infinity << 1 {
                    $canonical_nan
                } else {
                    bits
                })
            }

            // If either operand is a NaN, combining the bits of both operands gives a NaN.
            #[inline(always)]
            fn min_or_nan(self, other: Self) -> Self {
                let least = if self < other {
                    self
                } else if other < self {
                    other
                } else {
                    Self::from_bits(self.to_bits() | other.to_bits())
                };
                least.canonical()
            }

            #[inline(always)]
            fn max_or_nan(self, other: Self) -> Self {
                let greatest = if self > other {
                    self
                } else if other > self {
                    other
                } else if self == other {
                    Self::from_bits(self.to_bits() & other.to_bits())
                } else {
                    Self::from_bits(self.to_bits() | other.to_bits())
                };
                greatest.canonical()
            }

            #[inline(always)]
            fn pseudo_min(self, other: Self) -> Self {
                if other < self { other } else { self }
            }

            #[inline(always)]
            fn pseudo_max(self, other: Self) -> Self {
                if self < other { other } else { self }
            }

            #[inline(always)]
            fn fused(self, factor: Self, term: Self) -> Self {
                self.mul_add(factor, term).canonical()
            }
        })*
    };
}

floats! {
    f32, 0x7f80_0000_u32, 0x7fc0_0000;
    f64, 0x7ff0_0000_0000_0000_u64, 0x7ff8_0000_0000_0000;
}
