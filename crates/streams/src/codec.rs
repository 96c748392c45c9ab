//! The names of the codecs.

/// The codec of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Codec {
    /// Each value or difference, in the bytes that it needs.
    Plain = 0,
    /// Arithmetic runs, including runs of a constant.
    Runs = 1,
    /// Numbers of equal width with exceptions: values, differences, or differences of differences,
    /// at some lag.
    Packed = 2,
    /// The distinct values once, and a rank for each place.
    Dictionary = 3,
    /// The index of the right predictor, coded by an adaptive arithmetic coder.
    Predicted = 4,
    /// Floats that are multiples of a power of ten, as whole numbers.
    Decimal = 5,
    /// A stream of several blocks.
    Blocks = 7,
}
