//! Executes the operations of nodes.

use afterimage_numeric::{Scalar, Trap as NumericTrap};

use super::WINDOW;
use super::op::{Action, Op, operations};
use crate::Trap;
use crate::code::NodeCode;
use crate::image::State;
use crate::inst::Load;
use crate::observe::{Observer, Range};

/// The registers that operations can name.
pub(crate) type Window = [u64; WINDOW];

/// The position at which execution stopped, packed into one register. The lower part is the number
/// of remaining operations, including the current operation. The upper part is the reason if the
/// current instruction trapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit(u64);

impl Exit {
    /// All operations are done.
    pub(crate) const DONE: Self = Self(0);

    const TRAPS: [Trap; 4] = [
        Trap::Memory,
        Trap::Numeric(NumericTrap::DivisionByZero),
        Trap::Numeric(NumericTrap::IntegerOverflow),
        Trap::Numeric(NumericTrap::InvalidConversion),
    ];

    /// Returns the number of remaining operations.
    pub(crate) fn left(self) -> usize {
        self.0 as u32 as usize
    }

    /// Returns the reason why the next operation traps. If there is none, the next operation is a
    /// rare operation, or a branch that leaves the path.
    pub(crate) fn trap(self) -> Option<Trap> {
        let number = (self.0 >> 32) as usize;
        Self::TRAPS.get(number.checked_sub(1)?).copied()
    }

    fn trapped(left: usize, trap: Trap) -> Self {
        let number = Self::TRAPS.iter().position(|&other| other == trap);
        Self(left as u64 | (number.unwrap_or(0) as u64 + 1) << 32)
    }
}

/// The sum 2³² + 2³² + 8 does not overflow an address.
const _: () = assert!(usize::BITS >= 64);

#[inline(always)]
fn range(address: usize, length: usize) -> Range {
    Range {
        memory: 0,
        address: address as u64,
        length: length as u64,
    }
}

macro_rules! execution {
    (
        binary { $($two:ident $with:ident,)* }
        unary { $($one:ident,)* }
        plain { $($plain:ident,)* }
        check { $($check:ident $if:ident $if_const:ident $not:ident $turned:ident,)* }
        load { $($load:ident $load_sum:ident $load_plus:ident $load_scaled:ident $raw:ident $sign:literal,)* }
        store { $($store:ident $store_sum:ident $store_plus:ident $store_const:ident $stored:ident,)* }
    ) => {
        /// Executes operations of a node.
        pub(crate) fn run<O: Observer>(
            ops: &[Op],
            registers: &mut Window,
            code: &NodeCode,
            state: &mut State,
            observer: &mut O,
        ) -> Exit {
            let State { memories, globals, .. } = state;
            let memory = match memories.first_mut() {
                Some(memory) => &mut memory.bytes[..],
                None => &mut [],
            };
            let mut rest = ops.iter();
            while let Some(op) = rest.next() {
                macro_rules! read {
                    ($register:expr) => { registers[usize::from($register)] };
                }
                macro_rules! give {
                    ($value:expr) => {{
                        let value = $value;
                        registers[usize::from(op.to)] = value;
                    }};
                }
                macro_rules! stop {
                    ($trap:expr) => {{
                        return Exit::trapped(rest.len() + 1, $trap);
                    }};
                }
                macro_rules! compute {
                    ($operator:expr, $first:expr, $second:expr) => {
                        match $operator.eval($first, $second) {
                            Ok(value) => value,
                            Err(reason) => stop!(reason.into()),
                        }
                    };
                }
                macro_rules! check {
                    ($holds:expr) => {
                        if !$holds {
                            return Exit(rest.len() as u64 + 1);
                        }
                    };
                }
                macro_rules! load {
                    ($type:ident, $extended:literal, $at:expr) => {{
                        const BYTES: usize = size_of::<$type>();
                        const LOAD: Load = Load { bytes: BYTES as u8, sign: $extended };
                        let address: usize = $at;
                        let bytes = memory.get(address..address.wrapping_add(BYTES));
                        let Some(bytes) = bytes.and_then(|bytes| bytes.first_chunk::<BYTES>()) else {
                            stop!(Trap::Memory);
                        };
                        let value = LOAD.extend(<$type>::from_le_bytes(*bytes) as u64);
                        registers[usize::from(op.to)] = value;
                        let inst = usize::from(op.inst);
                        observer.read(inst, range(address, BYTES));
                        observer.loaded(inst, (value, 0));
                    }};
                }
                macro_rules! store {
                    ($type:ident, $at:expr, $value:expr) => {{
                        const BYTES: usize = size_of::<$type>();
                        let address: usize = $at;
                        let bytes = memory.get_mut(address..address.wrapping_add(BYTES));
                        let Some(bytes) = bytes.and_then(|bytes| bytes.first_chunk_mut::<BYTES>()) else {
                            stop!(Trap::Memory);
                        };
                        let value = $value as $type;
                        *bytes = value.to_le_bytes();
                        let inst = usize::from(op.inst);
                        observer.write(inst, range(address, BYTES));
                        observer.stored(inst, (value as u64, 0));
                    }};
                }
                // Addresses have 32 bits, but sums with the offset have more bits.
                macro_rules! address {
                    ($base:expr, $offset:expr) => { $base as u32 as usize + $offset as usize };
                }
                let constant = i64::from(op.number as i32) as u64;
                match op.action {
                    $(Action::$two => give!(compute!(Scalar::$two, read!(op.a), read!(op.b))),)*
                    $(Action::$with => give!(compute!(Scalar::$two, read!(op.a), constant)),)*
                    $(Action::$one => give!(compute!(Scalar::$one, read!(op.a), 0)),)*
                    $(Action::$plain => give!(compute!(Scalar::$plain, read!(op.a), read!(op.b))),)*
                    $(Action::$if => check!(compute!(Scalar::$check, read!(op.a), read!(op.b)) != 0),)*
                    $(Action::$if_const => check!(compute!(Scalar::$check, read!(op.a), constant) != 0),)*
                    $(Action::$load => load!($raw, $sign, address!(read!(op.a), op.number)),)*
                    $(Action::$load_sum => {
                        let base = read!(op.a).wrapping_add(read!(op.b));
                        load!($raw, $sign, address!(base, op.number));
                    })*
                    $(Action::$load_plus => {
                        let base = (read!(op.a) as u32).wrapping_add(op.number);
                        load!($raw, $sign, address!(base, op.b));
                    })*
                    $(Action::$load_scaled => {
                        let multiple = (read!(op.b) as u32).wrapping_mul(op.number);
                        let base = (read!(op.a) as u32).wrapping_add(multiple);
                        load!($raw, $sign, address!(base, op.c));
                    })*
                    $(Action::$store => store!($stored, address!(read!(op.a), op.number), read!(op.c)),)*
                    $(Action::$store_const => {
                        store!($stored, address!(read!(op.a), op.number), i64::from(op.b as i16));
                    })*
                    $(Action::$store_sum => {
                        let base = read!(op.a).wrapping_add(read!(op.b));
                        store!($stored, address!(base, op.number), read!(op.c));
                    })*
                    $(Action::$store_plus => {
                        let base = (read!(op.a) as u32).wrapping_add(op.number);
                        store!($stored, address!(base, op.b), read!(op.c));
                    })*
                    Action::ScaleAdd => {
                        let multiple = (read!(op.b) as u32).wrapping_mul(op.number);
                        give!(u64::from((read!(op.a) as u32).wrapping_add(multiple)));
                    }
                    Action::SubFrom => {
                        give!(u64::from(op.number.wrapping_sub(read!(op.a) as u32)));
                    }
                    Action::Select => {
                        let from = if read!(op.c) as u32 == 0 { op.b } else { op.a };
                        give!(read!(from));
                    }
                    Action::Const => give!(op.bits()),
                    Action::Move => give!(read!(op.a)),
                    Action::GlobalGet => {
                        let (bits, _) = globals[op.number as usize];
                        give!(bits);
                        let inst = usize::from(op.inst);
                        observer.read_global(inst, op.number);
                        observer.gave(inst, (bits, 0));
                    }
                    Action::GlobalSet => {
                        globals[op.number as usize] = (read!(op.a), 0);
                        observer.write_global(usize::from(op.inst), op.number);
                    }
                    Action::Scalar => match any(op.number, read!(op.a), read!(op.b)) {
                        Ok(value) => give!(value),
                        Err(reason) => stop!(reason),
                    },
                    Action::OneOf => check!(code.lists[op.number as usize].has(read!(op.a) as u32)),
                    Action::Within => {
                        let distance = (read!(op.a) as u32).wrapping_sub(op.number);
                        check!(distance <= u32::from(op.b));
                    }
                    Action::Rare => return Exit(rest.len() as u64 + 1),
                }
            }
            Exit::DONE
        }
    };
}
operations!(execution);

/// Returns the result of the scalar operator with this number.
#[inline(never)]
fn any(number: u32, a: u64, b: u64) -> Result<u64, Trap> {
    match Scalar::ALL.get(number as usize) {
        Some(scalar) => Ok(scalar.eval(a, b)?),
        None => Ok(0),
    }
}
