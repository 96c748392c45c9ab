//! Operations, which are the executable form of instructions.

use afterimage_numeric::Scalar;

use crate::inst::Load;

/// Passes the operators that have their own operations to another macro. These are scalar
/// operators, and loads and stores of memory number 0.
///
/// - `binary`: two operands, and a form with a constant as the second operand;
/// - `unary`: one operand; `plain`: two operands, neither of which is a constant;
/// - `check`: comparisons that decide a branch, also with a constant, with the inverse comparison,
///   and with swapped operands;
/// - `load` and `store`: at an address with an offset, or at the sum of an address and another
///   address, a constant, or a multiple of another address. Stores also exist at an address and an
///   offset with a constant value.
macro_rules! operations {
    ($use:ident) => {
        $use! {
            binary {
                I32Eq I32EqConst, I32Ne I32NeConst, I32LtS I32LtSConst, I32LtU I32LtUConst, I32GtS I32GtSConst,
                I32GtU I32GtUConst, I32LeS I32LeSConst, I32LeU I32LeUConst, I32GeS I32GeSConst, I32GeU I32GeUConst,
                I64Eq I64EqConst, I64Ne I64NeConst, I64LtS I64LtSConst, I64LtU I64LtUConst, I64GtS I64GtSConst,
                I64GtU I64GtUConst, I64LeS I64LeSConst, I64LeU I64LeUConst, I64GeS I64GeSConst, I64GeU I64GeUConst,
                I32Add I32AddConst, I32Sub I32SubConst, I32Mul I32MulConst, I32And I32AndConst, I32Or I32OrConst,
                I32Xor I32XorConst, I32Shl I32ShlConst, I32ShrS I32ShrSConst, I32ShrU I32ShrUConst,
                I32Rotl I32RotlConst, I32Rotr I32RotrConst,
                I64Add I64AddConst, I64Sub I64SubConst, I64Mul I64MulConst, I64And I64AndConst, I64Or I64OrConst,
                I64Xor I64XorConst, I64Shl I64ShlConst, I64ShrS I64ShrSConst, I64ShrU I64ShrUConst,
                I64Rotl I64RotlConst, I64Rotr I64RotrConst,
            }
            unary {
                I32Eqz, I32Clz, I32Ctz, I32Popcnt, I32Extend8S, I32Extend16S, I32WrapI64,
                I64Eqz, I64Clz, I64Ctz, I64Popcnt, I64Extend8S, I64Extend16S, I64Extend32S, I64ExtendI32S, I64ExtendI32U,
                I32ReinterpretF32, I64ReinterpretF64, F32ReinterpretI32, F64ReinterpretI64,
                F64Abs, F64Neg, F64Sqrt, F64ConvertI32S, F64ConvertI32U, F64PromoteF32, F32DemoteF64,
            }
            plain {
                F64Add, F64Sub, F64Mul, F64Div, F64Eq, F64Ne, F64Lt, F64Gt, F64Le, F64Ge,
                F32Add, F32Sub, F32Mul, F32Div, F32Lt, F32Gt, F32Le, F32Ge,
            }
            check {
                I32Eq IfI32Eq IfI32EqConst I32Ne I32Eq, I32Ne IfI32Ne IfI32NeConst I32Eq I32Ne,
                I32LtS IfI32LtS IfI32LtSConst I32GeS I32GtS, I32LtU IfI32LtU IfI32LtUConst I32GeU I32GtU,
                I32GtS IfI32GtS IfI32GtSConst I32LeS I32LtS, I32GtU IfI32GtU IfI32GtUConst I32LeU I32LtU,
                I32LeS IfI32LeS IfI32LeSConst I32GtS I32GeS, I32LeU IfI32LeU IfI32LeUConst I32GtU I32GeU,
                I32GeS IfI32GeS IfI32GeSConst I32LtS I32LeS, I32GeU IfI32GeU IfI32GeUConst I32LtU I32LeU,
                I64Eq IfI64Eq IfI64EqConst I64Ne I64Eq, I64Ne IfI64Ne IfI64NeConst I64Eq I64Ne,
                I64LtS IfI64LtS IfI64LtSConst I64GeS I64GtS, I64LtU IfI64LtU IfI64LtUConst I64GeU I64GtU,
                I64GtS IfI64GtS IfI64GtSConst I64LeS I64LtS, I64GtU IfI64GtU IfI64GtUConst I64LeU I64LtU,
                I64LeS IfI64LeS IfI64LeSConst I64GtS I64GeS, I64LeU IfI64LeU IfI64LeUConst I64GtU I64GeU,
                I64GeS IfI64GeS IfI64GeSConst I64LtS I64LeS, I64GeU IfI64GeU IfI64GeUConst I64LtU I64LeU,
            }
            load {
                Load8U Load8USum Load8UPlus Load8UScaled u8 0,
                Load16U Load16USum Load16UPlus Load16UScaled u16 0,
                Load32U Load32USum Load32UPlus Load32UScaled u32 0,
                Load64 Load64Sum Load64Plus Load64Scaled u64 0,
                Load8S32 Load8S32Sum Load8S32Plus Load8S32Scaled u8 32,
                Load16S32 Load16S32Sum Load16S32Plus Load16S32Scaled u16 32,
                Load8S64 Load8S64Sum Load8S64Plus Load8S64Scaled u8 64,
                Load16S64 Load16S64Sum Load16S64Plus Load16S64Scaled u16 64,
                Load32S64 Load32S64Sum Load32S64Plus Load32S64Scaled u32 64,
            }
            store {
                Store8 Store8Sum Store8Plus Store8Const u8, Store16 Store16Sum Store16Plus Store16Const u16,
                Store32 Store32Sum Store32Plus Store32Const u32, Store64 Store64Sum Store64Plus Store64Const u64,
            }
        }
    };
}
pub(super) use operations;

macro_rules! actions {
    (
        binary { $($two:ident $with:ident,)* }
        unary { $($one:ident,)* }
        plain { $($plain:ident,)* }
        check { $($check:ident $if:ident $if_const:ident $not:ident $turned:ident,)* }
        load { $($load:ident $load_sum:ident $load_plus:ident $load_scaled:ident $raw:ident $sign:literal,)* }
        store { $($store:ident $store_sum:ident $store_plus:ident $store_const:ident $stored:ident,)* }
    ) => {
        /// The action of an operation. `a`, `b` and `c` are registers unless stated otherwise. The
        /// result goes to register `to`.
        #[repr(u16)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Action {
            $($two, $with,)*
            $($one,)*
            $($plain,)*
            $($if, $if_const,)*
            $($load, $load_sum, $load_plus, $load_scaled,)*
            $($store, $store_sum, $store_plus, $store_const,)*
            /// Any scalar operator, given by its number.
            Scalar,
            /// `a` + `b` × `number`, in 32 bits.
            ScaleAdd,
            /// `number` - `a`, in 32 bits.
            SubFrom,
            /// `a` if `c` is not 0, otherwise `b`.
            Select,
            /// The 64 bits of `number`, `c` and `inst`.
            Const,
            /// Moves `a`.
            Move,
            /// Reads global `number`.
            GlobalGet,
            /// Writes `a` to global `number`.
            GlobalSet,
            /// Checks that `a` is in list `number` of indices.
            OneOf,
            /// Checks that `a` - `number`, in 32 bits, is at most `b`, which is not a register.
            Within,
            /// Executes the instruction itself, because it has no operation of its own.
            Rare,
        }

        /// Returns the action for a scalar operator.
        pub(super) fn scalar(scalar: Scalar) -> (Action, Option<Action>) {
            match scalar {
                $(Scalar::$two => (Action::$two, Some(Action::$with)),)*
                $(Scalar::$one => (Action::$one, None),)*
                $(Scalar::$plain => (Action::$plain, None),)*
                _ => (Action::Scalar, None),
            }
        }

        /// Returns the checks for a branch on a comparison.
        pub(super) fn check(scalar: Scalar) -> Option<Check> {
            Some(match scalar {
                $(Scalar::$check => Check {
                    action: Action::$if,
                    with_constant: Action::$if_const,
                    not: Scalar::$not,
                    turned: Scalar::$turned,
                },)*
                _ => return None,
            })
        }

        /// Returns the actions for a load.
        pub(super) fn load(load: Load) -> Option<Access> {
            $(if load == (Load { bytes: (<$raw>::BITS / 8) as u8, sign: $sign }) {
                return Some(Access {
                    plain: Action::$load,
                    sum: Action::$load_sum,
                    plus: Action::$load_plus,
                    scaled: Some(Action::$load_scaled),
                    constant: None,
                });
            })*
            None
        }

        /// Returns the actions for a store of this number of bytes.
        pub(super) fn store(bytes: u8) -> Option<Access> {
            $(if u32::from(bytes) == <$stored>::BITS / 8 {
                return Some(Access {
                    plain: Action::$store,
                    sum: Action::$store_sum,
                    plus: Action::$store_plus,
                    scaled: None,
                    constant: Some(Action::$store_const),
                });
            })*
            None
        }

        impl Action {
            /// Returns, for each of `a`, `b` and `c`, whether it is a register that the action
            /// reads.
            pub(super) fn reads(self) -> [bool; 3] {
                match self {
                    $(Self::$two => [true, true, false],)*
                    $(Self::$with => [true, false, false],)*
                    $(Self::$one => [true, false, false],)*
                    $(Self::$plain => [true, true, false],)*
                    $(Self::$if => [true, true, false], Self::$if_const => [true, false, false],)*
                    $(Self::$load | Self::$load_plus => [true, false, false],)*
                    $(Self::$load_sum | Self::$load_scaled => [true, true, false],)*
                    $(Self::$store | Self::$store_plus => [true, false, true],)*
                    $(Self::$store_sum => [true, true, true],)*
                    $(Self::$store_const => [true, false, false],)*
                    Self::Scalar | Self::ScaleAdd => [true, true, false],
                    Self::Select => [true, true, true],
                    Self::Move | Self::GlobalSet | Self::OneOf | Self::Within | Self::SubFrom => {
                        [true, false, false]
                    }
                    Self::Const | Self::GlobalGet | Self::Rare => [false, false, false],
                }
            }
        }
    };
}
operations!(actions);

/// The checks for a branch on a comparison.
pub(super) struct Check {
    pub action: Action,
    /// The check with a constant as the second operand.
    pub with_constant: Action,
    /// The operator for the inverse comparison.
    pub not: Scalar,
    /// The comparison with swapped operands.
    pub turned: Scalar,
}

/// The actions for a memory access, by the form of its address.
pub(super) struct Access {
    /// The address `a` + `number`.
    pub plain: Action,
    /// The address (`a` + `b`) + `number`, with a 32-bit sum in parentheses.
    pub sum: Action,
    /// The address (`a` + `number`) + `b`, where `b` is not a register.
    pub plus: Action,
    /// The address (`a` + `b` × `number`) + `c`, where `c` is not a register.
    pub scaled: Option<Action>,
    /// Like `plain`, but for storing the signed constant `b`.
    pub constant: Option<Action>,
}

/// An operation. The numbers of registers have 16 bits, so each register lies within a window of
/// 2¹⁶ registers and needs no check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    pub action: Action,
    pub to: u16,
    pub a: u16,
    pub b: u16,
    pub c: u16,
    /// The position of the instruction.
    pub inst: u16,
    pub number: u32,
}

const _: () = assert!(size_of::<Op>() == 16);

impl Op {
    /// Returns an operation that loads a constant.
    pub(super) fn constant(to: u16, bits: u64) -> Self {
        Self {
            action: Action::Const,
            to,
            a: 0,
            b: 0,
            c: (bits >> 32) as u16,
            inst: (bits >> 48) as u16,
            number: bits as u32,
        }
    }

    /// Returns the constant that the operation loads.
    #[inline(always)]
    pub(super) fn bits(&self) -> u64 {
        u64::from(self.number) | u64::from(self.c) << 32 | u64::from(self.inst) << 48
    }

    pub(super) fn copy(to: u16, from: u16) -> Self {
        Self {
            action: Action::Move,
            to,
            a: from,
            b: 0,
            c: 0,
            inst: 0,
            number: 0,
        }
    }
}
