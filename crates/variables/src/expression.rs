//! Evaluation of DWARF expressions (DWARF 5, sections 2.5 and 2.6) with the operation for WebAssembly,
//! `DW_OP_WASM_location`.
//!
//! As LLVM emits it, that operation pushes what a local, a global or a slot of the operand stack holds: with
//! `DW_OP_stack_value` behind it the variable *is* there, without it the variable is in memory at that address. So that
//! the first case needs no value, entries of the stack are read only when something is computed from them.

use std::sync::Arc;

use afterimage_ids::OrigOffset;
use gimli::{Expression, Operation, UnitOffset};

use crate::debug::{Debug, EntryId, Slice};
use crate::place::{Machine, Piece, Place, Word};
use crate::scalar::{Binary, Kind, Scalar, binary};
use crate::{Unavailable, location};

mod operations;

use operations::{name, two_operands};

/// Expressions may loop; those of compilers do not.
const STEPS: usize = 10_000;

/// What surrounds an expression.
#[derive(Clone, Copy)]
pub(crate) struct Context<'m, 'a> {
    pub(crate) debug: &'m Debug<'a>,
    pub(crate) machine: &'m dyn Machine,
    /// The function whose frame base is meant, and where in it.
    pub(crate) frame: Option<(EntryId, OrigOffset)>,
}

/// An entry of the stack.
#[derive(Clone)]
enum Item {
    /// What a place holds; not read yet.
    Unread(Place),
    Known(Scalar),
}

/// A location description that is not composite.
enum Simple {
    Memory(Item),
    Value(Item),
    Bytes(Arc<[u8]>),
}

impl<'a> Context<'_, 'a> {
    /// The pieces of an object of so many bytes that an expression locates. `object` is the address that the
    /// expression finds on its stack, if it computes a member's place from its owner's.
    pub(crate) fn pieces(
        self,
        unit: u32,
        expression: Expression<Slice<'a>>,
        object: Option<u64>,
        bytes: u64,
    ) -> Result<Vec<Piece>, Unavailable> {
        let mut run = Run::new(self, unit);
        let kind = Kind::Word(run.address_bits);
        run.stack
            .extend(object.map(|at| Item::Known(Scalar::new(at, kind))));
        run.all(expression)?;
        if run.pieces.is_empty() {
            let simple = run.simple.take();
            let simple = simple.or_else(|| run.stack.pop().map(Simple::Memory));
            return Ok(vec![run.piece(simple, 0, bytes)?]);
        }
        if run.simple.is_some() {
            return Err(Unavailable::Broken("a part without a size"));
        }
        Ok(run.pieces)
    }

    /// The address that a function's frame base is.
    fn frame_base(self) -> Result<Scalar, Unavailable> {
        let (function, at) = self
            .frame
            .ok_or(Unavailable::Broken("a frame without a function"))?;
        let found = location::select(self.debug, function, gimli::DW_AT_frame_base, Some(at))?;
        let location::Found::Expression(unit, expression) = found else {
            return Err(Unavailable::Broken("a function without a frame base"));
        };
        let mut run = Run::new(
            Self {
                frame: None,
                ..self
            },
            unit,
        );
        run.all(expression)?;
        let item = match run.simple.take() {
            Some(Simple::Value(item) | Simple::Memory(item)) => Some(item),
            Some(Simple::Bytes(_)) => None,
            None => run.stack.pop(),
        };
        let base = run.read(item.ok_or(Unavailable::Broken("an empty frame base"))?)?;
        // The stack grows down to 0, so nothing lies there: the local was not set yet.
        if base.bits == 0 {
            Err(Unavailable::NoFrame)
        } else {
            Ok(base)
        }
    }
}

struct Run<'m, 'a> {
    context: Context<'m, 'a>,
    unit: u32,
    address_bits: u32,
    stack: Vec<Item>,
    simple: Option<Simple>,
    pieces: Vec<Piece>,
    /// The frame base, once it was needed.
    base: Option<Scalar>,
}

impl<'m, 'a> Run<'m, 'a> {
    fn new(context: Context<'m, 'a>, unit: u32) -> Self {
        let size = context.debug.unit(unit).header.address_size();
        Self {
            context,
            unit,
            address_bits: 8 * u32::from(size.clamp(1, 8)),
            stack: Vec::new(),
            simple: None,
            pieces: Vec::new(),
            base: None,
        }
    }

    fn all(&mut self, expression: Expression<Slice<'a>>) -> Result<(), Unavailable> {
        let encoding = self.context.debug.unit(self.unit).encoding();
        let whole = expression.0;
        let mut rest = whole;
        for _ in 0..STEPS {
            if rest.is_empty() {
                return Ok(());
            }
            let operation = Operation::parse(&mut rest, encoding)
                .map_err(|_| Unavailable::Broken("an unknown operation"))?;
            if self.simple.is_some()
                && !matches!(operation, Operation::Piece { .. } | Operation::Nop)
            {
                return Err(Unavailable::Broken("an operation behind a location"));
            }
            if let Some(jump) = self.step(operation)? {
                let at = (whole.len() - rest.len()) as i64 + i64::from(jump);
                let target = usize::try_from(at).ok().filter(|at| *at <= whole.len());
                let target = target.ok_or(Unavailable::Broken("a jump to nowhere"))?;
                rest = whole.range_from(target..);
            }
        }
        Err(Unavailable::Broken("an expression that does not end"))
    }

    fn pop(&mut self) -> Result<Item, Unavailable> {
        self.stack
            .pop()
            .ok_or(Unavailable::Broken("too few operands"))
    }

    fn scalar(&mut self) -> Result<Scalar, Unavailable> {
        let item = self.pop()?;
        self.read(item)
    }

    fn read(&self, item: Item) -> Result<Scalar, Unavailable> {
        match item {
            Item::Known(scalar) => Ok(scalar),
            Item::Unread(place) => word(place.word(self.context.machine)?),
        }
    }

    fn push(&mut self, scalar: Scalar) {
        self.stack.push(Item::Known(scalar));
    }

    fn binary(&mut self, operation: Binary) -> Result<(), Unavailable> {
        let (right, left) = (self.scalar()?, self.scalar()?);
        self.push(binary(operation, left, right, self.address_bits)?);
        Ok(())
    }

    /// Carries out an operation. The result is how far to jump.
    fn step(&mut self, operation: Operation<Slice<'a>>) -> Result<Option<i16>, Unavailable> {
        if let Some(operation) = two_operands(&operation) {
            return self.binary(operation).map(|()| None);
        }
        match operation {
            Operation::WasmLocal { index } => self.stack.push(Item::Unread(Place::Local(index))),
            Operation::WasmGlobal { index } => self.stack.push(Item::Unread(Place::Global(index))),
            Operation::WasmStack { index } => {
                self.stack.push(Item::Unread(Place::OperandStack(index)));
            }
            Operation::UnsignedConstant { value } => self.push(Scalar::constant(value)),
            Operation::SignedConstant { value } => self.push(Scalar::signed(value)),
            Operation::Address { address } => self.data(address)?,
            Operation::AddressIndex { index } => {
                let address = self.context.debug.unit(self.unit).address(index);
                self.data(address.map_err(|_| Unavailable::Broken("an address without entry"))?)?;
            }
            Operation::ConstantIndex { index } => {
                let value = self.context.debug.unit(self.unit).address(index);
                let value = value.map_err(|_| Unavailable::Broken("a constant without entry"))?;
                self.push(Scalar::constant(value));
            }
            Operation::FrameOffset { offset } => {
                let base = match self.base {
                    Some(base) => base,
                    None => *self.base.insert(self.context.frame_base()?),
                };
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
                    return Err(Unavailable::Broken("a reinterpretation in another width"));
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
                let simple = self.simple.take();
                let simple = simple.or_else(|| self.stack.pop().map(Simple::Memory));
                let piece = self.piece(simple, bit_offset / 8, size_in_bits / 8)?;
                self.pieces.push(piece);
                self.stack.clear();
            }
            other => return Err(Unavailable::Unsupported(name(&other))),
        }
        Ok(None)
    }

    /// The address of a static variable.
    fn data(&mut self, address: u64) -> Result<(), Unavailable> {
        let top = u64::MAX >> (64 - self.address_bits);
        // What linkers leave of an address of removed data (lld: −1, −2 in some sections; older ones 0, where
        // nothing lies either).
        if address == 0 || address >= top - 1 {
            return Err(Unavailable::Removed);
        }
        self.push(Scalar::new(address, Kind::Word(self.address_bits)));
        Ok(())
    }

    fn dereference(&mut self, base_type: UnitOffset, size: u8) -> Result<(), Unavailable> {
        let address = self.scalar()?.address(self.address_bits)?;
        let mut bytes = [0; 8];
        let into = bytes.get_mut(..usize::from(size));
        let into = into.ok_or(Unavailable::Unsupported("a wide value"))?;
        if !self.context.machine.memory(address, into) {
            return Err(Unavailable::OutsideMemory { address });
        }
        let kind = match base_type.0 {
            // Shorter values are extended with zeros (section 2.5.1.3).
            0 => Kind::Word(self.address_bits.max(8 * u32::from(size))),
            _ => self.kind(base_type)?,
        };
        self.push(Scalar::new(u64::from_le_bytes(bytes), kind));
        Ok(())
    }

    /// What an argument was when the function was entered.
    fn entry_value(&mut self, expression: Slice<'a>) -> Result<(), Unavailable> {
        let encoding = self.context.debug.unit(self.unit).encoding();
        let mut rest = expression;
        match Operation::parse(&mut rest, encoding) {
            Ok(Operation::WasmLocal { index }) if rest.is_empty() => {
                let held = self.context.machine.at_entry(index);
                self.push(word(held.ok_or(Unavailable::OptimisedOut)?)?);
                Ok(())
            }
            _ => Err(Unavailable::OptimisedOut),
        }
    }

    /// The kind of value that a base type describes.
    fn kind(&self, offset: UnitOffset) -> Result<Kind, Unavailable> {
        if offset.0 == 0 {
            return Ok(Kind::Word(self.address_bits));
        }
        let unit = self.unit;
        let entry = self.context.debug.entry(EntryId { unit, offset })?;
        let wrong = Unavailable::Broken("a type that is not a number");
        if entry.tag != gimli::DW_TAG_base_type {
            return Err(wrong);
        }
        let name = entry
            .value(gimli::DW_AT_name)
            .and_then(|name| self.context.debug.text(unit, name));
        // LLVM names the types that its expressions need after their bits, which may be fewer than their bytes hold.
        let named = name.and_then(|name| {
            name.strip_prefix("DW_ATE_")?
                .rsplit_once('_')?
                .1
                .parse()
                .ok()
        });
        let bytes = entry.number(gimli::DW_AT_byte_size).unwrap_or(0);
        let bits = entry.number(gimli::DW_AT_bit_size).or(named);
        let bits = bits.unwrap_or(bytes.saturating_mul(8));
        let width = u32::try_from(bits)
            .ok()
            .filter(|bits| (1..=64).contains(bits));
        let width = width.ok_or(Unavailable::Unsupported("a number of more than 64 bits"))?;
        let encoding = match entry.value(gimli::DW_AT_encoding) {
            Some(gimli::AttributeValue::Encoding(encoding)) => encoding,
            _ => return Err(wrong),
        };
        match encoding {
            gimli::DW_ATE_signed | gimli::DW_ATE_signed_char => Ok(Kind::Signed(width)),
            gimli::DW_ATE_float if matches!(width, 32 | 64) => Ok(Kind::Float(width)),
            gimli::DW_ATE_unsigned
            | gimli::DW_ATE_unsigned_char
            | gimli::DW_ATE_boolean
            | gimli::DW_ATE_UTF
            | gimli::DW_ATE_address => Ok(Kind::Unsigned(width)),
            _ => Err(wrong),
        }
    }

    fn piece(&self, simple: Option<Simple>, skip: u64, bytes: u64) -> Result<Piece, Unavailable> {
        let offset =
            u32::try_from(skip).map_err(|_| Unavailable::Broken("a part beyond its place"))?;
        let (place, offset) = match simple {
            None => (Place::OptimisedOut, 0),
            Some(Simple::Value(Item::Unread(place))) => (place, offset),
            Some(Simple::Value(Item::Known(scalar))) => {
                let held = scalar.to_bytes(bytes.saturating_add(skip))?;
                (Place::Value(held.into()), offset)
            }
            Some(Simple::Bytes(bytes)) => (Place::Value(bytes), offset),
            Some(Simple::Memory(item)) => {
                let address = self.read(item)?.address(self.address_bits)?;
                (Place::Memory(address.wrapping_add(skip)), 0)
            }
        };
        Ok(Piece {
            place,
            offset,
            bytes,
        })
    }
}

fn word(word: Word) -> Result<Scalar, Unavailable> {
    let bits = u64::try_from(word.bits).ok().filter(|_| word.width <= 64);
    let bits = bits.ok_or(Unavailable::Unsupported("arithmetic with a v128"))?;
    Ok(Scalar::new(bits, Kind::Word(word.width)))
}
