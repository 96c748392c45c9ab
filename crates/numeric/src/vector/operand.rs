use wasmparser::ValType;

use super::Kind;
use crate::value::Value;

pub(super) type I8x16 = [i8; 16];
pub(super) type U8x16 = [u8; 16];
pub(super) type I16x8 = [i16; 8];
pub(super) type U16x8 = [u16; 8];
pub(super) type I32x4 = [i32; 4];
pub(super) type U32x4 = [u32; 4];
pub(super) type I64x2 = [i64; 2];
pub(super) type U64x2 = [u64; 2];
pub(super) type F32x4 = [f32; 4];
pub(super) type F64x2 = [f64; 2];

/// A Rust type for an operand or a result, and its form in 128 bits.
pub(super) trait Operand {
    const KIND: Kind;
    const TYPE: ValType;

    fn from_u128(bits: u128) -> Self;
    fn into_u128(self) -> u128;
}

macro_rules! scalars {
    ($($scalar:ident)*) => {
        $(impl Operand for $scalar {
            const KIND: Kind = Kind::Scalar;
            const TYPE: ValType = <Self as Value>::TYPE;

            #[inline(always)]
            fn from_u128(bits: u128) -> Self {
                Self::from_u64(bits as u64)
            }

            #[inline(always)]
            fn into_u128(self) -> u128 {
                self.into_u64().into()
            }
        })*
    };
}

scalars! { bool u32 i32 u64 f32 f64 }

impl Operand for u128 {
    const KIND: Kind = Kind::Vector;
    const TYPE: ValType = ValType::V128;

    #[inline(always)]
    fn from_u128(bits: u128) -> Self {
        bits
    }

    #[inline(always)]
    fn into_u128(self) -> u128 {
        self
    }
}

macro_rules! vectors {
    ($($lane:ident $lanes:literal)*) => {
        $(impl Operand for [$lane; $lanes] {
            const KIND: Kind = Kind::Vector;
            const TYPE: ValType = ValType::V128;

            #[inline(always)]
            fn from_u128(bits: u128) -> Self {
                let bytes = bits.to_le_bytes();
                let (lanes, _) = bytes.as_chunks::<{ 16 / $lanes }>();
                std::array::from_fn(|i| <$lane>::from_le_bytes(lanes[i]))
            }

            #[inline(always)]
            fn into_u128(self) -> u128 {
                let mut bytes = [0; 16];
                let (lanes, _) = bytes.as_chunks_mut::<{ 16 / $lanes }>();
                for (to, lane) in lanes.iter_mut().zip(self) {
                    *to = lane.to_le_bytes();
                }
                u128::from_le_bytes(bytes)
            }
        })*
    };
}

vectors! { i8 16 u8 16 i16 8 u16 8 i32 4 u32 4 i64 2 u64 2 f32 4 f64 2 }
