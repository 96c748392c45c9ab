/// The reason why a numeric operator has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Trap {
    /// An integer was divided by zero.
    #[error("integer division by zero")]
    DivisionByZero,
    /// A quotient, or a float rounded towards zero, does not fit the result's type.
    #[error("integer overflow")]
    IntegerOverflow,
    /// A NaN was converted to an integer.
    #[error("invalid conversion to integer")]
    InvalidConversion,
}
