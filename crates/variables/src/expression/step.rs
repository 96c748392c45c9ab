//! Executes the operations of expressions.

use gimli::Operation;

use super::operations::{name, two_operands};
use super::{Item, Run, Simple};
use crate::Unavailable;
use crate::debug::Slice;
use crate::place::VariableLocation;
use crate::scalar::{Binary, Scalar, binary};

impl<'a> Run<'_, 'a> {
    /// Executes an operation. Returns the distance to jump.
    pub(super) fn step(
        &mut self,
        operation: Operation<Slice<'a>>,
    ) -> Result<Option<i16>, Unavailable> {
        if let Some(operation) = two_operands(&operation) {
            return self.binary(operation).map(|()| None);
        }
        match operation {
            // The frame base itself is evaluated without a frame.
            Operation::WasmLocal { .. } | Operation::WasmStack { .. }
                if self.context.frame.is_some() && self.context.has_foreign_locals() =>
            {
                return Err(Unavailable::ForeignLocals);
            }
            Operation::WasmLocal { index } => self
                .stack
                .push(Item::Unread(VariableLocation::Local(index))),
            Operation::WasmGlobal { index } => self
                .stack
                .push(Item::Unread(VariableLocation::Global(index))),
            Operation::WasmStack { index } => {
                self.stack
                    .push(Item::Unread(VariableLocation::OperandStack(index)));
            }
            Operation::UnsignedConstant { value } => self.push(Scalar::constant(value)),
            Operation::SignedConstant { value } => self.push(Scalar::signed(value)),
            Operation::Address { address } => {
                self.of_address = true;
                self.data(address)?;
            }
            Operation::AddressIndex { index } => {
                self.of_address = true;
                let address = self.context.debug.unit(self.unit).address(index);
                self.data(
                    address.map_err(|_| Unavailable::Broken("an address without an entry"))?,
                )?;
            }
            Operation::ConstantIndex { index } => {
                let value = self.context.debug.unit(self.unit).address(index);
                let value =
                    value.map_err(|_| Unavailable::Broken("a constant without an entry"))?;
                self.push(Scalar::constant(value));
            }
            Operation::FrameOffset { offset } => {
                let base = match self.base {
                    Some(base) => base,
                    None => *self.base.insert(self.context.frame_base()?),
                };
                self.of_address = true;
                let offset = Scalar::signed(offset);
                self.push(binary(Binary::Plus, base, offset, self.address_bits)?);
            }
            Operation::PlusConstant { value } => {
                let left = self.scalar()?;
                let right = Scalar::constant(value);
                self.push(binary(Binary::Plus, left, right, self.address_bits)?);
            }
            Operation::Deref {
                base_type,
                size,
                space: false,
            } => self.dereference(base_type, size)?,
            Operation::Drop => drop(self.pop()?),
            Operation::Pick { index } => {
                let at = self.stack.len().checked_sub(1 + usize::from(index));
                let at = at.ok_or(Unavailable::Broken("too few operands"))?;
                self.stack.push(self.stack[at].clone());
            }
            Operation::Swap => {
                let (top, next) = (self.pop()?, self.pop()?);
                self.stack.extend([top, next]);
            }
            Operation::Rot => {
                let (top, next, third) = (self.pop()?, self.pop()?, self.pop()?);
                self.stack.extend([top, third, next]);
            }
            Operation::Abs | Operation::Neg => {
                let value = self.scalar()?;
                let keep = matches!(operation, Operation::Abs) && value.as_i64() >= 0;
                let zero = Scalar::new(0, value.kind);
                let result = binary(Binary::Minus, zero, value, self.address_bits)?;
                self.push(if keep { value } else { result });
            }
            Operation::Not => {
                let value = self.scalar()?;
                let ones = Scalar::new(u64::MAX, value.kind);
                self.push(binary(Binary::Xor, value, ones, self.address_bits)?);
            }
            Operation::Bra { target } => {
                return Ok((self.scalar()?.bits != 0).then_some(target));
            }
            Operation::Skip { target } => return Ok(Some(target)),
            Operation::Nop => {}
            Operation::TypedLiteral { base_type, value } => {
                let kind = self.kind(base_type)?;
                let mut bytes = [0; 8];
                let taken = bytes.get_mut(..value.len());
                taken
                    .ok_or(Unavailable::Unsupported("a wide constant"))?
                    .copy_from_slice(value.slice());
                self.push(Scalar::new(u64::from_le_bytes(bytes), kind));
            }
            Operation::Convert { base_type } => {
                let value = self.scalar()?;
                let kind = self.kind(base_type)?;
                self.push(value.convert(kind)?);
            }
            Operation::Reinterpret { base_type } => {
                let value = self.scalar()?;
                let kind = self.kind(base_type)?;
                if kind.width() != value.kind.width() {
                    return Err(Unavailable::Broken(
                        "a reinterpretation with a different width",
                    ));
                }
                self.push(Scalar::new(value.bits, kind));
            }
            Operation::EntryValue { expression } => self.entry_value(expression)?,
            Operation::StackValue => self.simple = Some(Simple::Value(self.pop()?)),
            Operation::ImplicitValue { data } => {
                self.simple = Some(Simple::Bytes(data.slice().into()));
            }
            Operation::Piece {
                size_in_bits,
                bit_offset,
            } => {
                let bit_offset = bit_offset.unwrap_or(0);
                if size_in_bits % 8 != 0 || bit_offset % 8 != 0 {
                    return Err(Unavailable::Unsupported("a part that is not whole bytes"));
                }
                let simple = self.location(size_in_bits / 8)?;
                let piece = self.piece(simple, bit_offset / 8, size_in_bits / 8)?;
                self.pieces.push(piece);
                self.stack.clear();
            }
            other => return Err(Unavailable::Unsupported(name(&other))),
        }
        Ok(None)
    }
}
