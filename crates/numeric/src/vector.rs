//! The operators from vectors, and scalars, to one vector or scalar: SIMD and relaxed SIMD, in the latter's
//! deterministic meaning.

mod lanes;
mod memory;
mod operand;

pub use memory::{VectorLoad, VectorStore};
pub use table::Vector;

/// What an operand or a result is kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// At most 64 bits.
    Scalar,
    /// 128 bits; lane 0 is the lowest.
    Vector,
}

/// What an operator has beside its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Immediate {
    /// Nothing.
    None,
    /// The number of a lane, counted from the lowest.
    Lane,
    /// For each byte of the result, the byte of the two operands that it is: the first one's are 0 to 15. The lowest
    /// byte comes first.
    Shuffle,
}

/// Makes [`Vector`] of the table. A row holds the operator as wasmparser names it, its immediate, its name in the text
/// format, its operands and result as Rust types, and its value.
macro_rules! vectors {
    ($($variant:ident $({ $immediate:ident })? $name:literal
        ($a:ident: $ta:ty $(, $b:ident: $tb:ty $(, $c:ident: $tc:ty)?)?) -> $result:ty = $value:expr;)*) => {
        /// A vector operator: one to three operands in, one result out, no memory.
        #[repr(u16)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Vector {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Vector {
            /// Every operator, in the order of their opcodes.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The operator that `operator` is, if it is one of these, and its immediate, 0 if it has none.
            pub fn of(operator: &Operator<'_>) -> Option<(Self, u128)> {
                match operator {
                    $(Operator::$variant { $($immediate,)? .. } => {
                        Some((Self::$variant, 0 $(| immediate!(encode $immediate $immediate))?))
                    })*
                    _ => None,
                }
            }

            /// Its name in the text format.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The types of its operands and of its result.
            pub fn types(self) -> (&'static [ValType], ValType) {
                match self {
                    $(Self::$variant => (
                        &[<$ta>::TYPE $(, <$tb>::TYPE $(, <$tc>::TYPE)?)?],
                        <$result>::TYPE,
                    ),)*
                }
            }

            /// What its operands and its result are kept in.
            pub fn signature(self) -> (&'static [Kind], Kind) {
                match self {
                    $(Self::$variant => (
                        &[<$ta>::KIND $(, <$tb>::KIND $(, <$tc>::KIND)?)?],
                        <$result>::KIND,
                    ),)*
                }
            }

            /// What its immediate says.
            pub fn immediate(self) -> Immediate {
                match self {
                    $($(Self::$variant => immediate!(meaning $immediate),)?)*
                    _ => Immediate::None,
                }
            }

            /// The result's bits, from the operands' bits; operands that it does not have are ignored.
            ///
            /// Scalars take the lowest bits. What is above them is ignored in operands, and zero in results.
            /// A lane's number counts modulo the number of lanes, a byte's modulo 32.
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

/// An immediate's way from wasmparser's form to 128 bits, from there to the table's form, and what it says.
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
