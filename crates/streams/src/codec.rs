//! The codecs by name.

/// How a block is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Codec {
    /// Value by value, or difference by difference, in as many bytes as each takes.
    Plain = 0,
    /// Arithmetic runs, constant ones among them.
    Runs = 1,
    /// Numbers of equal width with exceptions: values, differences, differences of differences, at some lag.
    Packed = 2,
    /// Distinct values once, ranks for the rest.
    Dictionary = 3,
    /// The predictor that was right, by an adaptive arithmetic coder.
    Predicted = 4,
    /// Floats that are multiples of a power of ten: the numbers.
    Decimal = 5,
    /// A stream of several blocks.
    Blocks = 7,
}
