//! Vector loads and stores, without the access to memory itself. They convert the bytes read into a
//! vector, and a vector into the bytes to write.

use wasmparser::{MemArg, Operator};

use super::lanes::replace;
use super::operand::{Operand, U8x16, U16x8, U32x4, U64x2};

/// Generates an enumeration of operators on memory. A row holds the operator's wasmparser name
/// (with its lane if it has one), its name in the text format, the number of accessed bytes, and
/// its value.
macro_rules! accesses {
    ($(#[$attribute:meta])* $access:ident
        $($variant:ident $({ $lane:ident })? $name:literal $bytes:literal;)*) => {
        $(#[$attribute])*
        #[repr(u8)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $access {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl $access {
            /// All operators, in the order of their opcodes.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the opcode for a wasmparser operator, if it is one of these operators, its
            /// memory argument, and its lane (0 if it has none).
            pub fn of(operator: &Operator<'_>) -> Option<(Self, MemArg, u8)> {
                match operator {
                    $(Operator::$variant { memarg, $($lane,)? } => {
                        Some((Self::$variant, *memarg, 0 $(| *$lane)?))
                    })*
                    _ => None,
                }
            }

            /// Returns the operator's name in the text format.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns the number of bytes of memory that the operator accesses.
            pub fn bytes(self) -> usize {
                match self {
                    $(Self::$variant => $bytes,)*
                }
            }
        }
    };
}

accesses! {
    /// An operator that makes a vector from bytes of memory.
    VectorLoad
    V128Load "v128.load" 16;
    V128Load8x8S "v128.load8x8_s" 8;
    V128Load8x8U "v128.load8x8_u" 8;
    V128Load16x4S "v128.load16x4_s" 8;
    V128Load16x4U "v128.load16x4_u" 8;
    V128Load32x2S "v128.load32x2_s" 8;
    V128Load32x2U "v128.load32x2_u" 8;
    V128Load8Splat "v128.load8_splat" 1;
    V128Load16Splat "v128.load16_splat" 2;
    V128Load32Splat "v128.load32_splat" 4;
    V128Load64Splat "v128.load64_splat" 8;
    V128Load32Zero "v128.load32_zero" 4;
    V128Load64Zero "v128.load64_zero" 8;
    V128Load8Lane { lane } "v128.load8_lane" 1;
    V128Load16Lane { lane } "v128.load16_lane" 2;
    V128Load32Lane { lane } "v128.load32_lane" 4;
    V128Load64Lane { lane } "v128.load64_lane" 8;
}

accesses! {
    /// An operator that makes bytes of memory from a vector.
    VectorStore
    V128Store "v128.store" 16;
    V128Store8Lane { lane } "v128.store8_lane" 1;
    V128Store16Lane { lane } "v128.store16_lane" 2;
    V128Store32Lane { lane } "v128.store32_lane" 4;
    V128Store64Lane { lane } "v128.store64_lane" 8;
}

impl VectorLoad {
    /// Whether the operator also takes a vector operand and keeps that vector's other lanes.
    pub fn keeps(self) -> bool {
        matches!(
            self,
            Self::V128Load8Lane
                | Self::V128Load16Lane
                | Self::V128Load32Lane
                | Self::V128Load64Lane
        )
    }

    /// Returns the result for the bytes read, which are in little-endian order. Bytes above
    /// [`bytes`](Self::bytes) are ignored. If the operator [`keeps`](Self::keeps) lanes, the other
    /// lanes come from `into`. A lane number is taken modulo the number of lanes.
    pub fn make(self, loaded: u128, into: u128, lane: u8) -> u128 {
        use crate::Vector::{self, *};

        let lane = usize::from(lane);
        let extend = |operator: Vector| operator.eval(0, [loaded, 0, 0]);
        match self {
            Self::V128Load => loaded,
            Self::V128Load8x8S => extend(I16x8ExtendLowI8x16S),
            Self::V128Load8x8U => extend(I16x8ExtendLowI8x16U),
            Self::V128Load16x4S => extend(I32x4ExtendLowI16x8S),
            Self::V128Load16x4U => extend(I32x4ExtendLowI16x8U),
            Self::V128Load32x2S => extend(I64x2ExtendLowI32x4S),
            Self::V128Load32x2U => extend(I64x2ExtendLowI32x4U),
            Self::V128Load8Splat => [loaded as u8; 16].into_u128(),
            Self::V128Load16Splat => [loaded as u16; 8].into_u128(),
            Self::V128Load32Splat => [loaded as u32; 4].into_u128(),
            Self::V128Load64Splat => [loaded as u64; 2].into_u128(),
            Self::V128Load32Zero => u128::from(loaded as u32),
            Self::V128Load64Zero => u128::from(loaded as u64),
            Self::V128Load8Lane => replace(U8x16::from_u128(into), lane, loaded as u8).into_u128(),
            Self::V128Load16Lane => {
                replace(U16x8::from_u128(into), lane, loaded as u16).into_u128()
            }
            Self::V128Load32Lane => {
                replace(U32x4::from_u128(into), lane, loaded as u32).into_u128()
            }
            Self::V128Load64Lane => {
                replace(U64x2::from_u128(into), lane, loaded as u64).into_u128()
            }
        }
    }
}

impl VectorStore {
    /// Returns the bytes to write, in little-endian order. Bytes above [`bytes`](Self::bytes) are
    /// zero. A lane number is taken modulo the number of lanes.
    pub fn value(self, vector: u128, lane: u8) -> u128 {
        let lane = usize::from(lane);
        match self {
            Self::V128Store => vector,
            Self::V128Store8Lane => U8x16::from_u128(vector)[lane % 16].into(),
            Self::V128Store16Lane => U16x8::from_u128(vector)[lane % 8].into(),
            Self::V128Store32Lane => U32x4::from_u128(vector)[lane % 4].into(),
            Self::V128Store64Lane => U64x2::from_u128(vector)[lane % 2].into(),
        }
    }
}
