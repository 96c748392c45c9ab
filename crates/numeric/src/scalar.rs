//! Operators that take one or two scalars and yield one scalar.

use wasmparser::{Operator, ValType};

use crate::Trap;
use crate::float::Float;
use crate::integer::Integer;
use crate::value::Value;

/// Generates [`Scalar`] from the table below. A row holds the operator's wasmparser name, its name
/// in the text format, its operands and result as Rust types, and its value. The types are signed
/// or unsigned as the operator reads them. A row with `or trap` may return early.
macro_rules! scalars {
    ($($variant:ident $name:literal
        ($a:ident: $ta:ident $(, $b:ident: $tb:ident)?) -> $result:ident $(or $trap:ident)? = $value:expr;)*) => {
        /// A numeric operator that takes one or two scalars and yields one scalar, without an
        /// immediate or a memory access.
        #[repr(u16)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Scalar {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Scalar {
            /// All operators, in the order of their opcodes.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the opcode for a wasmparser operator, if it is one of these operators.
            pub fn of(operator: &Operator<'_>) -> Option<Self> {
                match operator {
                    $(Operator::$variant => Some(Self::$variant),)*
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
                        &[<$ta as Value>::TYPE $(, <$tb as Value>::TYPE)?],
                        <$result as Value>::TYPE,
                    ),)*
                }
            }

            /// Whether the operator traps for some operands.
            pub fn can_trap(self) -> bool {
                match self {
                    $($(Self::$variant => stringify!($trap) == "trap",)?)*
                    _ => false,
                }
            }

            /// Computes the result's bits from the operands' bits. Operators with one operand
            /// ignore `b`.
            ///
            /// 32-bit values occupy the low half. Higher bits are ignored in operands and zero in
            /// results.
            ///
            /// # Errors
            ///
            /// Returns the trap if the operator has no result for these operands.
            #[inline(always)]
            pub fn eval(self, a: u64, b: u64) -> Result<u64, Trap> {
                let [first, second] = [a, b];
                match self {
                    $(Self::$variant => {
                        let $a = <$ta as Value>::from_u64(first);
                        $(let $b = <$tb as Value>::from_u64(second);)?
                        let value: $result = $value;
                        Ok(value.into_u64())
                    })*
                }
            }
        }
    };
}

impl Scalar {
    /// Returns the number of operands: 1 or 2.
    pub fn arity(self) -> usize {
        self.types().0.len()
    }
}

scalars! {
    I32Eqz "i32.eqz" (a: u32) -> bool = a == 0;
    I32Eq "i32.eq" (a: u32, b: u32) -> bool = a == b;
    I32Ne "i32.ne" (a: u32, b: u32) -> bool = a != b;
    I32LtS "i32.lt_s" (a: i32, b: i32) -> bool = a < b;
    I32LtU "i32.lt_u" (a: u32, b: u32) -> bool = a < b;
    I32GtS "i32.gt_s" (a: i32, b: i32) -> bool = a > b;
    I32GtU "i32.gt_u" (a: u32, b: u32) -> bool = a > b;
    I32LeS "i32.le_s" (a: i32, b: i32) -> bool = a <= b;
    I32LeU "i32.le_u" (a: u32, b: u32) -> bool = a <= b;
    I32GeS "i32.ge_s" (a: i32, b: i32) -> bool = a >= b;
    I32GeU "i32.ge_u" (a: u32, b: u32) -> bool = a >= b;

    I64Eqz "i64.eqz" (a: u64) -> bool = a == 0;
    I64Eq "i64.eq" (a: u64, b: u64) -> bool = a == b;
    I64Ne "i64.ne" (a: u64, b: u64) -> bool = a != b;
    I64LtS "i64.lt_s" (a: i64, b: i64) -> bool = a < b;
    I64LtU "i64.lt_u" (a: u64, b: u64) -> bool = a < b;
    I64GtS "i64.gt_s" (a: i64, b: i64) -> bool = a > b;
    I64GtU "i64.gt_u" (a: u64, b: u64) -> bool = a > b;
    I64LeS "i64.le_s" (a: i64, b: i64) -> bool = a <= b;
    I64LeU "i64.le_u" (a: u64, b: u64) -> bool = a <= b;
    I64GeS "i64.ge_s" (a: i64, b: i64) -> bool = a >= b;
    I64GeU "i64.ge_u" (a: u64, b: u64) -> bool = a >= b;

    F32Eq "f32.eq" (a: f32, b: f32) -> bool = a == b;
    F32Ne "f32.ne" (a: f32, b: f32) -> bool = a != b;
    F32Lt "f32.lt" (a: f32, b: f32) -> bool = a < b;
    F32Gt "f32.gt" (a: f32, b: f32) -> bool = a > b;
    F32Le "f32.le" (a: f32, b: f32) -> bool = a <= b;
    F32Ge "f32.ge" (a: f32, b: f32) -> bool = a >= b;

    F64Eq "f64.eq" (a: f64, b: f64) -> bool = a == b;
    F64Ne "f64.ne" (a: f64, b: f64) -> bool = a != b;
    F64Lt "f64.lt" (a: f64, b: f64) -> bool = a < b;
    F64Gt "f64.gt" (a: f64, b: f64) -> bool = a > b;
    F64Le "f64.le" (a: f64, b: f64) -> bool = a <= b;
    F64Ge "f64.ge" (a: f64, b: f64) -> bool = a >= b;

    I32Clz "i32.clz" (a: u32) -> u32 = a.leading_zeros();
    I32Ctz "i32.ctz" (a: u32) -> u32 = a.trailing_zeros();
    I32Popcnt "i32.popcnt" (a: u32) -> u32 = a.count_ones();
    I32Add "i32.add" (a: u32, b: u32) -> u32 = a.wrapping_add(b);
    I32Sub "i32.sub" (a: u32, b: u32) -> u32 = a.wrapping_sub(b);
    I32Mul "i32.mul" (a: u32, b: u32) -> u32 = a.wrapping_mul(b);
    I32DivS "i32.div_s" (a: i32, b: i32) -> i32 or trap = a.divide(b)?;
    I32DivU "i32.div_u" (a: u32, b: u32) -> u32 or trap = a.divide(b)?;
    I32RemS "i32.rem_s" (a: i32, b: i32) -> i32 or trap = a.remainder(b)?;
    I32RemU "i32.rem_u" (a: u32, b: u32) -> u32 or trap = a.remainder(b)?;
    I32And "i32.and" (a: u32, b: u32) -> u32 = a & b;
    I32Or "i32.or" (a: u32, b: u32) -> u32 = a | b;
    I32Xor "i32.xor" (a: u32, b: u32) -> u32 = a ^ b;
    I32Shl "i32.shl" (a: u32, b: u32) -> u32 = a.wrapping_shl(b);
    I32ShrS "i32.shr_s" (a: i32, b: u32) -> i32 = a.wrapping_shr(b);
    I32ShrU "i32.shr_u" (a: u32, b: u32) -> u32 = a.wrapping_shr(b);
    I32Rotl "i32.rotl" (a: u32, b: u32) -> u32 = a.rotate_left(b % 32);
    I32Rotr "i32.rotr" (a: u32, b: u32) -> u32 = a.rotate_right(b % 32);

    I64Clz "i64.clz" (a: u64) -> u64 = u64::from(a.leading_zeros());
    I64Ctz "i64.ctz" (a: u64) -> u64 = u64::from(a.trailing_zeros());
    I64Popcnt "i64.popcnt" (a: u64) -> u64 = u64::from(a.count_ones());
    I64Add "i64.add" (a: u64, b: u64) -> u64 = a.wrapping_add(b);
    I64Sub "i64.sub" (a: u64, b: u64) -> u64 = a.wrapping_sub(b);
    I64Mul "i64.mul" (a: u64, b: u64) -> u64 = a.wrapping_mul(b);
    I64DivS "i64.div_s" (a: i64, b: i64) -> i64 or trap = a.divide(b)?;
    I64DivU "i64.div_u" (a: u64, b: u64) -> u64 or trap = a.divide(b)?;
    I64RemS "i64.rem_s" (a: i64, b: i64) -> i64 or trap = a.remainder(b)?;
    I64RemU "i64.rem_u" (a: u64, b: u64) -> u64 or trap = a.remainder(b)?;
    I64And "i64.and" (a: u64, b: u64) -> u64 = a & b;
    I64Or "i64.or" (a: u64, b: u64) -> u64 = a | b;
    I64Xor "i64.xor" (a: u64, b: u64) -> u64 = a ^ b;
    I64Shl "i64.shl" (a: u64, b: u64) -> u64 = a.wrapping_shl(b as u32);
    I64ShrS "i64.shr_s" (a: i64, b: u64) -> i64 = a.wrapping_shr(b as u32);
    I64ShrU "i64.shr_u" (a: u64, b: u64) -> u64 = a.wrapping_shr(b as u32);
    I64Rotl "i64.rotl" (a: u64, b: u64) -> u64 = a.rotate_left((b % 64) as u32);
    I64Rotr "i64.rotr" (a: u64, b: u64) -> u64 = a.rotate_right((b % 64) as u32);

    F32Abs "f32.abs" (a: f32) -> f32 = a.abs();
    F32Neg "f32.neg" (a: f32) -> f32 = -a;
    F32Ceil "f32.ceil" (a: f32) -> f32 = a.ceil().canonical();
    F32Floor "f32.floor" (a: f32) -> f32 = a.floor().canonical();
    F32Trunc "f32.trunc" (a: f32) -> f32 = a.trunc().canonical();
    F32Nearest "f32.nearest" (a: f32) -> f32 = a.round_ties_even().canonical();
    F32Sqrt "f32.sqrt" (a: f32) -> f32 = a.sqrt().canonical();
    F32Add "f32.add" (a: f32, b: f32) -> f32 = (a + b).canonical();
    F32Sub "f32.sub" (a: f32, b: f32) -> f32 = (a - b).canonical();
    F32Mul "f32.mul" (a: f32, b: f32) -> f32 = (a * b).canonical();
    F32Div "f32.div" (a: f32, b: f32) -> f32 = (a / b).canonical();
    F32Min "f32.min" (a: f32, b: f32) -> f32 = a.min_or_nan(b);
    F32Max "f32.max" (a: f32, b: f32) -> f32 = a.max_or_nan(b);
    F32Copysign "f32.copysign" (a: f32, b: f32) -> f32 = a.copysign(b);

    F64Abs "f64.abs" (a: f64) -> f64 = a.abs();
    F64Neg "f64.neg" (a: f64) -> f64 = -a;
    F64Ceil "f64.ceil" (a: f64) -> f64 = a.ceil().canonical();
    F64Floor "f64.floor" (a: f64) -> f64 = a.floor().canonical();
    F64Trunc "f64.trunc" (a: f64) -> f64 = a.trunc().canonical();
    F64Nearest "f64.nearest" (a: f64) -> f64 = a.round_ties_even().canonical();
    F64Sqrt "f64.sqrt" (a: f64) -> f64 = a.sqrt().canonical();
    F64Add "f64.add" (a: f64, b: f64) -> f64 = (a + b).canonical();
    F64Sub "f64.sub" (a: f64, b: f64) -> f64 = (a - b).canonical();
    F64Mul "f64.mul" (a: f64, b: f64) -> f64 = (a * b).canonical();
    F64Div "f64.div" (a: f64, b: f64) -> f64 = (a / b).canonical();
    F64Min "f64.min" (a: f64, b: f64) -> f64 = a.min_or_nan(b);
    F64Max "f64.max" (a: f64, b: f64) -> f64 = a.max_or_nan(b);
    F64Copysign "f64.copysign" (a: f64, b: f64) -> f64 = a.copysign(b);

    I32WrapI64 "i32.wrap_i64" (a: u64) -> u32 = a as u32;
    I32TruncF32S "i32.trunc_f32_s" (a: f32) -> i32 or trap = i32::truncate(a.into())?;
    I32TruncF32U "i32.trunc_f32_u" (a: f32) -> u32 or trap = u32::truncate(a.into())?;
    I32TruncF64S "i32.trunc_f64_s" (a: f64) -> i32 or trap = i32::truncate(a)?;
    I32TruncF64U "i32.trunc_f64_u" (a: f64) -> u32 or trap = u32::truncate(a)?;
    I64ExtendI32S "i64.extend_i32_s" (a: i32) -> i64 = a.into();
    I64ExtendI32U "i64.extend_i32_u" (a: u32) -> u64 = a.into();
    I64TruncF32S "i64.trunc_f32_s" (a: f32) -> i64 or trap = i64::truncate(a.into())?;
    I64TruncF32U "i64.trunc_f32_u" (a: f32) -> u64 or trap = u64::truncate(a.into())?;
    I64TruncF64S "i64.trunc_f64_s" (a: f64) -> i64 or trap = i64::truncate(a)?;
    I64TruncF64U "i64.trunc_f64_u" (a: f64) -> u64 or trap = u64::truncate(a)?;
    F32ConvertI32S "f32.convert_i32_s" (a: i32) -> f32 = a as f32;
    F32ConvertI32U "f32.convert_i32_u" (a: u32) -> f32 = a as f32;
    F32ConvertI64S "f32.convert_i64_s" (a: i64) -> f32 = a as f32;
    F32ConvertI64U "f32.convert_i64_u" (a: u64) -> f32 = a as f32;
    F32DemoteF64 "f32.demote_f64" (a: f64) -> f32 = (a as f32).canonical();
    F64ConvertI32S "f64.convert_i32_s" (a: i32) -> f64 = a.into();
    F64ConvertI32U "f64.convert_i32_u" (a: u32) -> f64 = a.into();
    F64ConvertI64S "f64.convert_i64_s" (a: i64) -> f64 = a as f64;
    F64ConvertI64U "f64.convert_i64_u" (a: u64) -> f64 = a as f64;
    F64PromoteF32 "f64.promote_f32" (a: f32) -> f64 = f64::from(a).canonical();
    I32ReinterpretF32 "i32.reinterpret_f32" (a: f32) -> u32 = a.to_bits();
    I64ReinterpretF64 "i64.reinterpret_f64" (a: f64) -> u64 = a.to_bits();
    F32ReinterpretI32 "f32.reinterpret_i32" (a: u32) -> f32 = f32::from_bits(a);
    F64ReinterpretI64 "f64.reinterpret_i64" (a: u64) -> f64 = f64::from_bits(a);

    I32Extend8S "i32.extend8_s" (a: i32) -> i32 = (a as i8).into();
    I32Extend16S "i32.extend16_s" (a: i32) -> i32 = (a as i16).into();
    I64Extend8S "i64.extend8_s" (a: i64) -> i64 = (a as i8).into();
    I64Extend16S "i64.extend16_s" (a: i64) -> i64 = (a as i16).into();
    I64Extend32S "i64.extend32_s" (a: i64) -> i64 = (a as i32).into();

    I32TruncSatF32S "i32.trunc_sat_f32_s" (a: f32) -> i32 = a as i32;
    I32TruncSatF32U "i32.trunc_sat_f32_u" (a: f32) -> u32 = a as u32;
    I32TruncSatF64S "i32.trunc_sat_f64_s" (a: f64) -> i32 = a as i32;
    I32TruncSatF64U "i32.trunc_sat_f64_u" (a: f64) -> u32 = a as u32;
    I64TruncSatF32S "i64.trunc_sat_f32_s" (a: f32) -> i64 = a as i64;
    I64TruncSatF32U "i64.trunc_sat_f32_u" (a: f32) -> u64 = a as u64;
    I64TruncSatF64S "i64.trunc_sat_f64_s" (a: f64) -> i64 = a as i64;
    I64TruncSatF64U "i64.trunc_sat_f64_u" (a: f64) -> u64 = a as u64;
}
