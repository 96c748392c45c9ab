//! Operations on lanes. Lane 0 is an array's first element.

use std::array::from_fn;
use std::ops::Mul;

use crate::float::Float;

/// Combines two vectors lane by lane.
#[inline(always)]
pub(super) fn zip<A: Copy, B: Copy, C, const N: usize>(
    a: [A; N],
    b: [B; N],
    of: impl Fn(A, B) -> C,
) -> [C; N] {
    from_fn(|i| of(a[i], b[i]))
}

/// An unsigned lane that can be a mask.
pub(super) trait Mask: Copy {
    const ZEROS: Self;
    const ONES: Self;
}

macro_rules! masks {
    ($($lane:ident)*) => {
        $(impl Mask for $lane {
            const ZEROS: Self = 0;
            const ONES: Self = Self::MAX;
        })*
    };
}

masks! { u8 u16 u32 u64 }

/// Sets all bits of each lane where `holds` returns `true`, and clears the other lanes.
#[inline(always)]
pub(super) fn compare<T: Copy, M: Mask, const N: usize>(
    a: [T; N],
    b: [T; N],
    holds: impl Fn(T, T) -> bool,
) -> [M; N] {
    zip(a, b, |a, b| if holds(a, b) { M::ONES } else { M::ZEROS })
}

/// Returns the lower lanes.
#[inline(always)]
pub(super) fn low<T: Copy, const N: usize, const HALF: usize>(a: [T; N]) -> [T; HALF] {
    from_fn(|i| a[i])
}

/// Returns the upper lanes.
#[inline(always)]
pub(super) fn high<T: Copy, const N: usize, const HALF: usize>(a: [T; N]) -> [T; HALF] {
    from_fn(|i| a[i + HALF])
}

/// Returns one result for each pair of neighbouring lanes.
#[inline(always)]
pub(super) fn pairs<T: Copy, U, const N: usize, const HALF: usize>(
    a: [T; N],
    of: impl Fn(T, T) -> U,
) -> [U; HALF] {
    from_fn(|i| of(a[2 * i], a[2 * i + 1]))
}

/// Returns the lanes of `a`, then the lanes of `b`.
#[inline(always)]
pub(super) fn concatenate<T: Copy, const N: usize, const TWICE: usize>(
    a: [T; N],
    b: [T; N],
) -> [T; TWICE] {
    from_fn(|i| if i < N { a[i] } else { b[i - N] })
}

/// Returns `a` with another value in one lane.
#[inline(always)]
pub(super) fn replace<T, const N: usize>(mut a: [T; N], lane: usize, value: T) -> [T; N] {
    a[lane % N] = value;
    a
}

/// Returns one bit per lane, with the bit of lane 0 lowest.
#[inline(always)]
pub(super) fn bits<T: Copy, const N: usize>(a: [T; N], is_set: impl Fn(T) -> bool) -> u32 {
    (0..N).fold(0, |bits, i| bits | u32::from(is_set(a[i])) << i)
}

/// Returns, for each number, the byte of `a` with that number, or 0 if there is none.
#[inline(always)]
pub(super) fn swizzle(a: [u8; 16], numbers: [u8; 16]) -> [u8; 16] {
    numbers.map(|i| a.get(usize::from(i)).copied().unwrap_or(0))
}

/// Returns, for each number, the byte with that number in `a` followed by `b`. Numbers are taken
/// modulo 32.
#[inline(always)]
pub(super) fn shuffle(a: [u8; 16], b: [u8; 16], numbers: [u8; 16]) -> [u8; 16] {
    let both: [u8; 32] = concatenate(a, b);
    numbers.map(|i| both[usize::from(i % 32)])
}

/// Computes half of the sum, rounded up.
macro_rules! average {
    ($lane:ident, $wide:ident) => {
        |a: $lane, b: $lane| (($wide::from(a) + $wide::from(b)).div_ceil(2)) as $lane
    };
}
pub(super) use average;

/// Computes the nearest value that fits a narrower lane.
macro_rules! saturate {
    ($wide:ident, $lane:ident) => {
        |a: $wide| a.clamp($lane::MIN.into(), $lane::MAX.into()) as $lane
    };
}
pub(super) use saturate;

/// Returns the rounded product of two fractions of 2^15, saturating.
#[inline(always)]
pub(super) fn q15_product(a: i16, b: i16) -> i16 {
    let product = (i32::from(a) * i32::from(b) + (1 << 14)) >> 15;
    // Only the square of -1 does not fit.
    product.min(i32::from(i16::MAX)) as i16
}

/// Returns the products, in lanes wide enough to hold them.
#[inline(always)]
pub(super) fn products<T: Copy, W: Mul<Output = W>, const N: usize>(
    a: [T; N],
    b: [T; N],
    widen: impl Fn(T) -> W,
) -> [W; N] {
    zip(a, b, |a, b| widen(a) * widen(b))
}

/// Returns the sum of every four neighbouring products.
#[inline(always)]
pub(super) fn dot_of_four(a: [i8; 16], b: [i8; 16]) -> [i32; 4] {
    let products = products(a, b, i32::from);
    from_fn(|i| products[4 * i..][..4].iter().sum())
}

/// Returns the bits of `a` where `mask` has ones, and the bits of `b` where it has zeros.
#[inline(always)]
pub(super) fn select(a: u128, b: u128, mask: u128) -> u128 {
    (a & mask) | (b & !mask)
}

/// Returns the canonical form of each lane.
#[inline(always)]
pub(super) fn canonical<T: Float, const N: usize>(a: [T; N]) -> [T; N] {
    a.map(Float::canonical)
}

/// Returns `a * b + c` in each lane, rounded once.
#[inline(always)]
pub(super) fn fused<T: Float, const N: usize>(a: [T; N], b: [T; N], c: [T; N]) -> [T; N] {
    from_fn(|i| a[i].fused(b[i], c[i]))
}
