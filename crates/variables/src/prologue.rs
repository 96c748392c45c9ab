//! Analyses a function's code before its first branch, loop or call, to find where it sets up its
//! stack frame and stores its arguments.
//!
//! Unoptimised code keeps its parameters in the frame, and DWARF gives this place from the
//! function's first instruction on. Until the code stores an argument there, the parameter is in
//! the argument's local. The debug information does not give the moment of the store. The line
//! table's `prologue_end` may be the function's first instruction (in LLVM, if a UBSan check comes
//! before any line). So the analysis executes the code on known values, which are constants,
//! arguments, and the globals' values at the entry. An unknown operator ends the search, so all
//! findings are certain.

use std::collections::HashMap;
use std::ops::Range;

use afterimage_ids::OrigOffset;
use wasmparser::{BinaryReader, FunctionBody, MemArg, Operator};

/// The writes and stores at the beginning of a function's code.
#[derive(Debug, Default)]
pub(crate) struct Prologue {
    /// The writes to locals, in order, each with the offset after it.
    sets: Vec<(u32, Value, OrigOffset)>,
    stores: Vec<Store>,
}

/// A store of an argument.
#[derive(Clone, Copy, Debug)]
struct Store {
    at: OrigOffset,
    address: Sum,
    bytes: u64,
    argument: Argument,
}

/// An argument, or some of its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Argument {
    pub(crate) local: u32,
    /// The bits that may be other than 0.
    pub(crate) mask: u64,
}

/// A value at a known distance from an unknown value, modulo the size of the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sum {
    /// The number of the unknown value.
    of: u32,
    plus: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Constant(u64),
    Argument(Argument),
    Sum(Sum),
    Unknown,
}

/// A part of a parameter that is still in an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) argument: Argument,
    pub(crate) bytes: u64,
}

/// The maximum number of stores. No real function reaches it. Each store is examined for each
/// parameter.
const STORES: usize = 1 << 10;

impl Prologue {
    /// Reads the beginning of a body that starts at an offset of the module. O(operators before the
    /// first branch or call).
    pub(crate) fn read(code: &[u8], start: OrigOffset) -> Self {
        let mut reading = Reading::default();
        // Broken code ends the search like any unknown operator.
        let _ = reading.all(code, start);
        reading.found
    }

    /// Returns the offset after the first write of a value other than 0 to a local.
    pub(crate) fn set(&self, local: u32) -> Option<OrigOffset> {
        let mut sets = self.sets.iter();
        let zero = Value::Constant(0);
        let (_, _, behind) = sets.find(|(set, value, _)| *set == local && *value != zero)?;
        Some(*behind)
    }

    /// Returns whether a local points to the frame after the first write to it. A frame pointer
    /// lies at a distance from its base, which is a global's value or an aligned address. If no
    /// local lies at a distance from the base, the base itself is the frame pointer. Returns `None`
    /// if unknown.
    pub(crate) fn is_frame(&self, local: u32) -> Option<bool> {
        let mut sets = self.sets.iter();
        let Some((_, value, _)) = sets.find(|(set, ..)| *set == local) else {
            // The code sets up the frame first. So if another local points below a global, that
            // local points to the frame.
            let is_below = |value: &Value| matches!(value, Value::Sum(sum) if sum.plus != 0);
            let mut others = self.sets.iter();
            return others.any(|(_, value, _)| is_below(value)).then_some(false);
        };
        match *value {
            Value::Sum(here) => {
                // If another local is at a distance from this value, this value is the frame's
                // base.
                let is_below = |(_, value, _): &(u32, Value, OrigOffset)| match value {
                    Value::Sum(other) => other.of == here.of && other.plus != 0,
                    _ => false,
                };
                Some(here.plus != 0 || !self.sets.iter().any(is_below))
            }
            Value::Constant(_) | Value::Argument(_) => Some(false),
            Value::Unknown => None,
        }
    }

    /// Returns the arguments that contain some bytes of the frame, if the code has not stored all
    /// these bytes before this offset. The bytes begin at `distance` from the address in the local
    /// `frame`. Returns `None` if the code has stored all of them, or if that is unknown.
    pub(crate) fn held(
        &self,
        at: OrigOffset,
        frame: u32,
        distance: i64,
        bytes: u64,
    ) -> Option<Vec<Held>> {
        let mut sets = self.sets.iter();
        let base = sets.find_map(|(local, value, _)| match value {
            Value::Sum(base) if *local == frame => Some(*base),
            _ => None,
        })?;
        let first = base.plus.wrapping_add_signed(distance);
        let (mut held, mut done, mut last) = (Vec::new(), 0, OrigOffset(0));
        while done < bytes {
            let place = Sum {
                plus: first.wrapping_add(done),
                ..base
            };
            // 32-bit addresses wrap around.
            let is_there = |store: &&Store| {
                store.address.of == place.of && store.address.plus as u32 == place.plus as u32
            };
            let store = self.stores.iter().find(is_there)?;
            let Argument { local, .. } = store.argument;
            let mut sets = self.sets.iter();
            if sets.any(|(set, _, behind)| *set == local && *behind <= at) {
                return None;
            }
            held.push(Held {
                argument: store.argument,
                bytes: store.bytes,
            });
            last = last.max(store.at);
            done += store.bytes;
        }
        (done == bytes && at <= last).then_some(held)
    }
}

#[derive(Default)]
struct Reading {
    found: Prologue,
    stack: Vec<Value>,
    locals: HashMap<u32, Value>,
    globals: HashMap<u32, Value>,
    unknown: u32,
}

impl Reading {
    fn all(&mut self, code: &[u8], start: OrigOffset) -> wasmparser::Result<()> {
        let body = FunctionBody::new(BinaryReader::new(code, start.0 as usize));
        let mut operators = body.get_operators_reader()?;
        while !operators.eof() {
            let (operator, at) = operators.read_with_offset()?;
            let behind = operators.original_position();
            let [at, behind] = [at, behind].map(|at| OrigOffset(at as u32));
            if self.step(&operator, at..behind).is_none() || self.found.stores.len() > STORES {
                break;
            }
        }
        Ok(())
    }

    /// Executes an operator. Returns `None` to end the search.
    fn step(&mut self, operator: &Operator<'_>, here: Range<OrigOffset>) -> Option<()> {
        use Operator as O;
        match operator {
            O::Nop => {}
            O::LocalGet { local_index } => {
                let value = self.locals.get(local_index).copied();
                // An unwritten local counts as an argument. If it is not an argument, it is 0 and
                // never queried.
                self.stack.push(value.unwrap_or(Value::Argument(Argument {
                    local: *local_index,
                    mask: u64::MAX,
                })));
            }
            O::LocalSet { local_index } | O::LocalTee { local_index } => {
                let value = self.stack.pop()?;
                self.locals.insert(*local_index, value);
                self.found.sets.push((*local_index, value, here.end));
                if let O::LocalTee { .. } = operator {
                    self.stack.push(value);
                }
            }
            O::GlobalGet { global_index } => {
                let value = match self.globals.get(global_index) {
                    Some(value) => *value,
                    None => {
                        let value = self.fresh();
                        self.globals.insert(*global_index, value);
                        value
                    }
                };
                self.stack.push(value);
            }
            O::GlobalSet { global_index } => {
                let value = self.stack.pop()?;
                self.globals.insert(*global_index, value);
            }
            O::I32Const { value } => self.stack.push(Value::Constant(*value as u32 as u64)),
            O::I64Const { value } => self.stack.push(Value::Constant(*value as u64)),
            O::F32Const { .. } | O::F64Const { .. } | O::V128Const { .. } => {
                self.stack.push(Value::Unknown);
            }
            O::I32Add | O::I64Add => self.sum(u64::wrapping_add)?,
            O::I32Sub | O::I64Sub => self.sum(u64::wrapping_sub)?,
            O::I32And | O::I64And => {
                let (right, left) = (self.stack.pop()?, self.stack.pop()?);
                let value = match (left, right) {
                    (Value::Argument(of), Value::Constant(mask))
                    | (Value::Constant(mask), Value::Argument(of)) => Value::Argument(Argument {
                        mask: of.mask & mask,
                        ..of
                    }),
                    // This aligns a frame.
                    (Value::Sum(_), Value::Constant(_)) => self.fresh(),
                    _ => Value::Unknown,
                };
                self.stack.push(value);
            }
            O::I32Load { .. }
            | O::I32Load8S { .. }
            | O::I32Load8U { .. }
            | O::I32Load16S { .. }
            | O::I32Load16U { .. }
            | O::I64Load { .. }
            | O::F32Load { .. }
            | O::F64Load { .. }
            | O::V128Load { .. }
            | O::I32Eqz
            | O::I64Eqz
            | O::I32WrapI64
            | O::I64ExtendI32U
            | O::I64ExtendI32S => {
                self.stack.pop()?;
                self.stack.push(Value::Unknown);
            }
            O::I32Or
            | O::I32Xor
            | O::I32Shl
            | O::I32ShrS
            | O::I32ShrU
            | O::I32Mul
            | O::I32Eq
            | O::I32Ne
            | O::I64Or
            | O::I64Shl
            | O::I64ShrS
            | O::I64ShrU => {
                self.stack.pop()?;
                self.stack.pop()?;
                self.stack.push(Value::Unknown);
            }
            O::I32Store { memarg } | O::F32Store { memarg } | O::I64Store32 { memarg } => {
                self.store(memarg, 4, here.start)?;
            }
            O::I64Store { memarg } | O::F64Store { memarg } => self.store(memarg, 8, here.start)?,
            O::I32Store8 { memarg } | O::I64Store8 { memarg } => {
                self.store(memarg, 1, here.start)?;
            }
            O::I32Store16 { memarg } | O::I64Store16 { memarg } => {
                self.store(memarg, 2, here.start)?;
            }
            O::V128Store { memarg } => self.store(memarg, 16, here.start)?,
            _ => return None,
        }
        Some(())
    }

    /// Returns a new unknown value, from which distances can be counted.
    fn fresh(&mut self) -> Value {
        self.unknown += 1;
        Value::Sum(Sum {
            of: self.unknown,
            plus: 0,
        })
    }

    fn sum(&mut self, operation: impl Fn(u64, u64) -> u64) -> Option<()> {
        let (right, left) = (self.stack.pop()?, self.stack.pop()?);
        let value = match (left, right) {
            (Value::Sum(of), Value::Constant(by)) => Value::Sum(Sum {
                plus: operation(of.plus, by),
                ..of
            }),
            (Value::Constant(left), Value::Constant(right)) => {
                Value::Constant(operation(left, right))
            }
            _ => Value::Unknown,
        };
        self.stack.push(value);
        Some(())
    }

    fn store(&mut self, memarg: &MemArg, bytes: u64, at: OrigOffset) -> Option<()> {
        let (value, address) = (self.stack.pop()?, self.stack.pop()?);
        if let (Value::Argument(argument), Value::Sum(base), 0) = (value, address, memarg.memory) {
            let address = Sum {
                plus: base.plus.wrapping_add(memarg.offset),
                ..base
            };
            self.found.stores.push(Store {
                at,
                address,
                bytes,
                argument,
            });
        }
        Some(())
    }
}
