//! Integer operators that have no result for some operands.

use crate::Trap;

/// Division, and truncation of a float, for one integer type.
pub(crate) trait Integer: Sized {
    /// Returns the quotient, rounded towards zero.
    fn divide(self, divisor: Self) -> Result<Self, Trap>;

    /// Returns the remainder, with the dividend's sign, or 0 if only the quotient overflows.
    fn remainder(self, divisor: Self) -> Result<Self, Trap>;

    /// Returns the float, rounded towards zero.
    fn truncate(float: f64) -> Result<Self, Trap>;
}

macro_rules! integers {
    ($($integer:ident, $float:ident fits if $fits:expr;)*) => {
        $(impl Integer for $integer {
            #[inline(always)]
            fn divide(self, divisor: Self) -> Result<Self, Trap> {
                if divisor == 0 {
                    return Err(Trap::DivisionByZero);
                }
                self.checked_div(divisor).ok_or(Trap::IntegerOverflow)
            }

            #[inline(always)]
            fn remainder(self, divisor: Self) -> Result<Self, Trap> {
                if divisor == 0 {
                    return Err(Trap::DivisionByZero);
                }
                Ok(self.wrapping_rem(divisor))
            }

            #[inline(always)]
            fn truncate($float: f64) -> Result<Self, Trap> {
                if $float.is_nan() {
                    return Err(Trap::InvalidConversion);
                }
                if !($fits) {
                    return Err(Trap::IntegerOverflow);
                }
                Ok($float as Self)
            }
        })*
    };
}

integers! {
    i32, float fits if float > -2_147_483_649.0 && float < 2_147_483_648.0;
    u32, float fits if float > -1.0 && float < 4_294_967_296.0;
    // No float lies between -2^63 and -2^63 - 1.
    i64, float fits if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float);
    u64, float fits if float > -1.0 && float < 18_446_744_073_709_551_616.0;
}
