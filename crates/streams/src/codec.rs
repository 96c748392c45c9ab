//! The names of the codecs.

/// The codec of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Codec {
    /// Stores each value or difference in the bytes that it needs.
    Plain = 0,
    /// Stores arithmetic runs, including runs of a constant.
    Runs = 1,
    /// Stores numbers of equal width with exceptions. The numbers are values, differences, or
    /// differences of differences, at some lag.
    Packed = 2,
    /// Stores the distinct values once, and a rank for each place.
    Dictionary = 3,
    /// Stores the index of the right predictor, coded by an adaptive arithmetic coder.
    Predicted = 4,
    /// Stores floats that are multiples of a power of ten as whole numbers.
    Decimal = 5,
    /// Stores a stream of several blocks.
    Blocks = 7,
}
