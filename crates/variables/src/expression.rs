//! Evaluates DWARF expressions (DWARF 5, sections 2.5 and 2.6) with the operation for WebAssembly,
//! `DW_OP_WASM_location`.
//!
//! In LLVM's output, this operation pushes the contents of a local, a global or a slot of the
//! operand stack. If `DW_OP_stack_value` follows, the variable *is* that local, global or slot.
//! Otherwise, the contents are the variable's address in memory. The first case does not need the
//! contents, so they are read only when a computation uses them.
//!
//! DWARF 2 and 3 have no `DW_OP_stack_value`, so the result of an expression may be the value or
//! its address. The width and the origin of the result decide between the two. If they cannot, the
//! expression is refused.

use std::sync::Arc;

use afterimage_ids::OrigOffset;
use gimli::{Expression, Operation};

use crate::debug::{Debug, EntryId, Slice, local_of};
use crate::place::{Machine, Piece, VariableLocation, Word};
use crate::prologue::Held;
use crate::scalar::{Binary, Kind, Scalar, binary};
use crate::{Unavailable, location};

mod operands;
mod operations;
mod step;

/// The maximum number of steps. Expressions may loop, although compilers do not generate loops.
const STEPS: usize = 10_000;

/// The context in which an expression is evaluated.
#[derive(Clone, Copy)]
pub(crate) struct Context<'m, 'a> {
    pub(crate) debug: &'m Debug<'a>,
    pub(crate) machine: &'m dyn Machine,
    /// The function whose frame base applies, and the offset in it.
    pub(crate) frame: Option<(EntryId, OrigOffset)>,
}

/// An entry of the stack.
#[derive(Clone)]
enum Item {
    /// The contents of a place, not read yet.
    Unread(VariableLocation),
    Known(Scalar),
}

/// A simple location description, which is not composite.
enum Simple {
    Memory(Item),
    Value(Item),
    Bytes(Arc<[u8]>),
}

impl<'a> Context<'_, 'a> {
    /// Returns the pieces of an object of `bytes` bytes that an expression locates. If the
    /// expression computes the place of a member, the stack begins with `object`, the address of
    /// the member's owner.
    pub(crate) fn pieces(
        self,
        unit: u32,
        expression: Expression<Slice<'a>>,
        object: Option<u64>,
        bytes: u64,
    ) -> Result<Vec<Piece>, Unavailable> {
        let expression = self.without_threads(unit, expression);
        let mut run = Run::new(self, unit);
        let kind = Kind::Word(run.address_bits);
        run.stack
            .extend(object.map(|at| Item::Known(Scalar::new(at, kind))));
        run.of_address = object.is_some();
        run.all(expression)?;
        if run.pieces.is_empty() {
            let simple = run.location(bytes)?;
            return Ok(vec![run.piece(simple, 0, bytes)?]);
        }
        if run.simple.is_some() {
            return Err(Unavailable::Broken("a part without a size"));
        }
        Ok(run.pieces)
    }

    /// Returns the number to which an expression evaluates.
    pub(crate) fn value(
        self,
        unit: u32,
        expression: Expression<Slice<'a>>,
    ) -> Result<u64, Unavailable> {
        let mut run = Run::new(self, unit);
        run.all(expression)?;
        let item = match run.simple.take() {
            Some(Simple::Value(item)) => Some(item),
            Some(_) => None,
            None => run.stack.pop(),
        };
        let value = run.read(item.ok_or(Unavailable::Broken("an expression without a value"))?)?;
        Ok(value.bits)
    }

    /// Adapts the expression of a thread-local variable to a program without threads. There, the
    /// linker provides the variable's address, but no global as its base.
    fn without_threads(
        self,
        unit: u32,
        expression: Expression<Slice<'a>>,
    ) -> Expression<Slice<'a>> {
        let encoding = self.debug.unit(unit).encoding();
        let whole = expression.0;
        let mut rest = whole;
        let next = |rest: &mut Slice<'a>| Operation::parse(rest, encoding).ok();
        let Some(Operation::WasmGlobal { index: u32::MAX }) = next(&mut rest) else {
            return expression;
        };
        let begin = whole.len() - rest.len();
        // In DWARF 5 the address is in a table.
        let Some(Operation::Address { .. } | Operation::AddressIndex { .. }) = next(&mut rest)
        else {
            return expression;
        };
        let end = whole.len() - rest.len();
        match next(&mut rest) {
            Some(Operation::Plus) if rest.is_empty() => Expression(whole.range(begin..end)),
            _ => expression,
        }
    }

    /// Returns the arguments that hold a parameter of `bytes` bytes, if the parameter belongs in
    /// the function's frame but is not stored there yet.
    pub(crate) fn argument(
        self,
        unit: u32,
        expression: Expression<Slice<'a>>,
        bytes: u64,
    ) -> Option<Vec<Held>> {
        let (mut rest, encoding) = (expression.0, self.debug.unit(unit).encoding());
        let Ok(Operation::FrameOffset { offset }) = Operation::parse(&mut rest, encoding) else {
            return None;
        };
        let (_, at) = self.frame.filter(|_| rest.is_empty())?;
        self.check_frame(at).ok()?;
        let frame = self.frame_local()?;
        let prologue = self.debug.prologue(at)?;
        prologue.held(at, frame, offset, bytes)
    }

    /// Returns the local that points to the function's frame.
    fn frame_local(self) -> Option<u32> {
        let (function, at) = self.frame?;
        let base = location::select(self.debug, function, gimli::DW_AT_frame_base, Some(at));
        let Ok(location::EntryLocation::Expression(unit, base)) = base else {
            return None;
        };
        local_of(base, self.debug.unit(unit).encoding())
    }

    /// Whether the debug information names locals that the code uses for other values.
    fn has_foreign_locals(self) -> bool {
        self.debug.foreign_locals.get().copied().unwrap_or_default()
    }

    /// Checks that the local given as the frame base really points to the frame.
    fn check_frame(self, at: OrigOffset) -> Result<(), Unavailable> {
        if !self.has_foreign_locals() {
            return Ok(());
        }
        let Some(local) = self.frame_local() else {
            return Ok(());
        };
        if self.debug.is_frame(at, local) == Some(true) {
            Ok(())
        } else {
            Err(Unavailable::ForeignLocals)
        }
    }

    /// Returns the address of a function's frame base.
    fn frame_base(self) -> Result<Scalar, Unavailable> {
        let (function, at) = self
            .frame
            .ok_or(Unavailable::Broken("a frame without a function"))?;
        self.check_frame(at)?;
        let found = location::select(self.debug, function, gimli::DW_AT_frame_base, Some(at))?;
        let location::EntryLocation::Expression(unit, expression) = found else {
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
        // The stack grows down to 0, so no frame is at 0. The local has not been set yet.
        if base.bits == 0 {
            let local = self.frame_local();
            let behind = local.and_then(|local| self.debug.prologue(at)?.set(local));
            Err(Unavailable::NoFrame {
                behind: behind.filter(|behind| *behind > at),
            })
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
    /// The frame base, computed when first needed.
    base: Option<Scalar>,
    /// Whether the result is computed from an address.
    of_address: bool,
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
            of_address: false,
        }
    }

    /// Returns the location that the expression yields.
    fn location(&mut self, bytes: u64) -> Result<Option<Simple>, Unavailable> {
        let of_address = std::mem::take(&mut self.of_address);
        if let Some(simple) = self.simple.take() {
            return Ok(Some(simple));
        }
        let Some(item) = self.stack.pop() else {
            return Ok(None);
        };
        if of_address || self.context.debug.unit(self.unit).encoding().version >= 4 {
            return Ok(Some(Simple::Memory(item)));
        }
        let width = match &item {
            Item::Unread(place) => place.word(self.context.machine)?.width,
            Item::Known(_) => self.address_bits,
        };
        match item {
            // The contents are wider than any address.
            Item::Unread(_) if width > self.address_bits => Ok(Some(Simple::Value(item))),
            // The contents are too small to hold the variable.
            Item::Unread(_) if bytes > u64::from(width / 8) => Ok(Some(Simple::Memory(item))),
            _ => Err(Unavailable::ValueOrAddress),
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
                return Err(Unavailable::Broken("an operation after a location"));
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

    fn piece(&self, simple: Option<Simple>, skip: u64, bytes: u64) -> Result<Piece, Unavailable> {
        let offset =
            u32::try_from(skip).map_err(|_| Unavailable::Broken("a part beyond its place"))?;
        let (place, offset) = match simple {
            None => (VariableLocation::OptimisedOut, 0),
            Some(Simple::Value(Item::Unread(place))) => (place, offset),
            Some(Simple::Value(Item::Known(scalar))) => {
                let held = scalar.to_bytes(bytes.saturating_add(skip))?;
                (VariableLocation::Value(held.into()), offset)
            }
            Some(Simple::Bytes(bytes)) => (VariableLocation::Value(bytes), offset),
            Some(Simple::Memory(item)) => {
                let address = self.read(item)?.address(self.address_bits)?;
                (VariableLocation::Memory(address.wrapping_add(skip)), 0)
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
