/// Why a numeric operator has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Trap {
    /// An integer was divided by zero.
    #[error("integer division by zero")]
    DivisionByZero,
    /// A quotient, or a float without its fraction, is outside the result's type.
    #[error("integer overflow")]
    IntegerOverflow,
    /// A NaN was to become an integer.
    #[error("invalid conversion to integer")]
    InvalidConversion,
}
