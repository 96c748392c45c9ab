//! Vector operators (SIMD and relaxed SIMD) that yield one vector or scalar. Relaxed operators have
//! their deterministic meaning.

mod lanes;
mod memory;
mod operand;

pub use memory::{VectorLoad, VectorStore};
pub use table::Vector;

/// The way in which an operand or a result is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The value has at most 64 bits.
    Scalar,
    /// The value has 128 bits, with lane 0 in the lowest bits.
    Vector,
}

/// The kind of immediate that an operator has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Immediate {
    /// The operator has no immediate.
    None,
    /// The number of a lane, counted from the lowest.
    Lane,
    /// For each byte of the result, lowest first, the number of the operand byte to copy. Numbers 0
    /// to 15 are bytes of the first operand.
    Shuffle,
}

/// Generates [`Vector`] from the table. A row holds the operator as wasmparser names it, its
/// immediate, its name in the text format, its operands and result as Rust types, and its value.
macro_rules! vectors {
    ($($variant:ident $({ $immediate:ident })? $name:literal
        ($a:ident: $ta:ty $(, $b:ident: $tb:ty $(, $c:ident: $tc:ty)?)?) -> $result:ty = $value:expr;)*) => {
        /// A vector operator that takes one to three operands and yields one result, without a
        /// memory access.
        #[repr(u16)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Vector {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Vector {
            /// All operators, in the order of their opcodes.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the opcode for a wasmparser operator, if it is one of these operators, and
            /// its immediate (0 if it has none).
            pub fn of(operator: &Operator<'_>) -> Option<(Self, u128)> {
                match operator {
                    $(Operator::$variant { $($immediate,)? .. } => {
                        Some((Self::$variant, 0 $(| immediate!(encode $immediate $immediate))?))
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

            /// Returns the types of the operator's operands and of its result.
            pub fn types(self) -> (&'static [ValType], ValType) {
                match self {
                    $(Self::$variant => (
                        &[<$ta>::TYPE $(, <$tb>::TYPE $(, <$tc>::TYPE)?)?],
                        <$result>::TYPE,
                    ),)*
                }
            }

            /// Returns the way in which the operator's operands and its result are stored.
            pub fn signature(self) -> (&'static [Kind], Kind) {
                match self {
                    $(Self::$variant => (
                        &[<$ta>::KIND $(, <$tb>::KIND $(, <$tc>::KIND)?)?],
                        <$result>::KIND,
                    ),)*
                }
            }

            /// Returns the kind of the operator's immediate.
            pub fn immediate(self) -> Immediate {
                match self {
                    $($(Self::$variant => immediate!(meaning $immediate),)?)*
                    _ => Immediate::None,
                }
            }

            /// Computes the result's bits from the operands' bits. Operands that the operator does
            /// not have are ignored.
            ///
            /// Scalars occupy the lowest bits. Higher bits are ignored in operands and zero in
            /// results. A lane number counts modulo the number of lanes, and a byte number modulo
            /// 32.
            pub fn eval(self, immediate: u128, operands: [u128; 3]) -> u128 {
                let [first, second, third] = operands;
                match self {
                    $(Self::$variant => {
                        $(let $immediate = immediate!(decode $immediate immediate);)?
                        let $a = <$ta>::from_u128(first);
                        $(let $b = <$tb>::from_u128(second);
                        $(let $c = <$tc>::from_u128(third);)?)?
                        let value: $result = $value;
                        value.into_u128()
                    })*
                }
            }
        }
    };
}

/// Converts an immediate from wasmparser's form to 128 bits, and from 128 bits to the table's form.
/// Also names the immediate's kind.
macro_rules! immediate {
    (encode lane $lane:ident) => {
        u128::from(*$lane)
    };
    (encode lanes $lanes:ident) => {
        u128::from_le_bytes(*$lanes)
    };
    (decode lane $bits:ident) => {
        usize::from($bits as u8)
    };
    (decode lanes $bits:ident) => {
        $bits.to_le_bytes()
    };
    (meaning lane) => {
        Immediate::Lane
    };
    (meaning lanes) => {
        Immediate::Shuffle
    };
}

mod table;
