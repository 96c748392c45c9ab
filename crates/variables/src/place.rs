//! Defines the places of variables' bytes, and the moment of a run that provides their contents.

use std::fmt;
use std::sync::Arc;

use crate::Unavailable;

/// A place of a WebAssembly program that holds a variable or a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum VariableLocation {
    /// A local of the function.
    Local(u32),
    /// A global of the module.
    Global(u32),
    /// A slot of the function's operand stack, from 0 at the bottom.
    OperandStack(u32),
    /// An address of memory 0.
    Memory(u64),
    /// No place, because the value consists of these constant bytes.
    Value(Arc<[u8]>),
    /// No place, because the value was optimised out.
    OptimisedOut,
}

impl fmt::Display for VariableLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(index) => write!(f, "local {index}"),
            Self::Global(index) => write!(f, "global {index}"),
            Self::OperandStack(index) => write!(f, "operand stack slot {index}"),
            Self::Memory(address) => write!(f, "memory at 0x{address:x}"),
            Self::Value(_) => write!(f, "a constant"),
            Self::OptimisedOut => write!(f, "nowhere"),
        }
    }
}

/// Consecutive bytes of a variable that are in one place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// The place that holds the bytes.
    pub place: VariableLocation,
    /// The position of the piece's first byte in the place, counted from 0 at the least significant
    /// byte. Always 0 for memory, because the address includes the position.
    pub offset: u32,
    /// The number of bytes.
    pub bytes: u64,
}

/// The contents of a local, a global or a slot of the operand stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The bits, which are zero beyond the type's width.
    pub bits: u128,
    /// The width of the WebAssembly type, which is 32, 64 or 128 bits.
    pub width: u32,
}

impl Word {
    /// Returns the value of an `i32` or the bits of an `f32`.
    pub fn w32(bits: u32) -> Self {
        Self {
            bits: bits.into(),
            width: 32,
        }
    }

    /// Returns the value of an `i64` or the bits of an `f64`.
    pub fn w64(bits: u64) -> Self {
        Self {
            bits: bits.into(),
            width: 64,
        }
    }

    /// Returns the bits of a `v128`.
    pub fn w128(bits: u128) -> Self {
        Self { bits, width: 128 }
    }
}

/// A moment of a run, in one activation of one function. An implementation must not guess. For an
/// unknown value, it returns `None` or `false`, and the value is [`Unavailable`]. By default, all
/// values are unknown.
pub trait Machine {
    /// Returns the value of a local.
    fn local(&self, index: u32) -> Option<Word> {
        let _ = index;
        None
    }
    /// Returns the value of a global.
    fn global(&self, index: u32) -> Option<Word> {
        let _ = index;
        None
    }
    /// Returns the value of a slot of the operand stack. Slot 0 is the bottom slot of the
    /// activation.
    fn stack(&self, index: u32) -> Option<Word> {
        let _ = index;
        None
    }
    /// Reads memory 0. Returns `false` if any of the bytes do not exist or are unknown.
    fn memory(&self, address: u64, into: &mut [u8]) -> bool {
        let _ = (address, into);
        false
    }
    /// Returns the value of a local when the function was entered. This is only meaningful for
    /// arguments.
    fn at_entry(&self, local: u32) -> Option<Word> {
        let _ = local;
        None
    }
    /// Returns the name of the function at an index of table 0. A function pointer is such an
    /// index.
    fn function(&self, index: u64) -> Option<String> {
        let _ = index;
        None
    }
}

/// A moment without any values. It is enough for finding objects with a constant address or value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Machine for Nothing {}

impl VariableLocation {
    /// Returns the value of a local, global or slot.
    pub(crate) fn word(&self, machine: &dyn Machine) -> Result<Word, Unavailable> {
        let word = match self {
            Self::Local(index) => machine.local(*index),
            Self::Global(index) => machine.global(*index),
            Self::OperandStack(index) => machine.stack(*index),
            _ => None,
        };
        word.ok_or_else(|| Unavailable::Unknown(self.clone()))
    }
}

impl Piece {
    /// Reads some of the bytes. `into` must not extend beyond the piece.
    fn read(&self, from: u64, into: &mut [u8], machine: &dyn Machine) -> Result<(), Unavailable> {
        let start = usize::try_from(u64::from(self.offset) + from).unwrap_or(usize::MAX);
        let end = start.saturating_add(into.len());
        match &self.place {
            VariableLocation::Memory(address) => {
                let address = address.wrapping_add(from);
                if !machine.memory(address, into) {
                    return Err(Unavailable::OutsideMemory { address });
                }
            }
            VariableLocation::Value(bytes) => {
                let bits = 8 * bytes.len() as u32;
                let found = bytes.get(start..end).ok_or(Unavailable::Narrow { bits })?;
                into.copy_from_slice(found);
            }
            VariableLocation::OptimisedOut => return Err(Unavailable::OptimisedOut),
            place => {
                let word = place.word(machine)?;
                let bytes = word.bits.to_le_bytes();
                let bits = word.width;
                let held = &bytes[..(bits as usize / 8).min(bytes.len())];
                let found = held.get(start..end).ok_or(Unavailable::Narrow { bits })?;
                into.copy_from_slice(found);
            }
        }
        Ok(())
    }
}

/// Returns the pieces of a part of an object, which has `bytes` bytes from `offset` on. Bytes
/// beyond the object have no place, unless the object is one piece of memory. In that case, they
/// are the memory after the object, because arrays of unknown length extend there.
pub(crate) fn part(pieces: &[Piece], offset: u64, bytes: u64) -> Vec<Piece> {
    if let [
        Piece {
            place: VariableLocation::Memory(address),
            ..
        },
    ] = pieces
    {
        let place = VariableLocation::Memory(address.wrapping_add(offset));
        return vec![Piece {
            place,
            offset: 0,
            bytes,
        }];
    }
    let mut found = Vec::new();
    let (mut at, mut wanted, mut left) = (0u64, offset, bytes);
    for piece in pieces {
        let end = at.saturating_add(piece.bytes);
        if left > 0 && wanted >= at && wanted < end {
            let (skip, take) = (wanted - at, (end - wanted).min(left));
            let mut own = Piece {
                bytes: take,
                ..piece.clone()
            };
            match &mut own.place {
                VariableLocation::Memory(address) => *address = address.wrapping_add(skip),
                // Only 2³² bytes of a local or a constant can be addressed, so a clamped offset is
                // still outside the place.
                _ => {
                    own.offset = own
                        .offset
                        .saturating_add(u32::try_from(skip).unwrap_or(u32::MAX))
                }
            }
            found.push(own);
            (wanted, left) = (wanted + take, left - take);
        }
        at = end;
    }
    if left > 0 {
        found.push(Piece {
            place: VariableLocation::OptimisedOut,
            offset: 0,
            bytes: left,
        });
    }
    found
}

/// Reads the first bytes of an object's pieces.
pub(crate) fn read(
    pieces: &[Piece],
    into: &mut [u8],
    machine: &dyn Machine,
) -> Result<(), Unavailable> {
    let mut rest = into;
    for piece in pieces {
        let take = usize::try_from(piece.bytes)
            .unwrap_or(usize::MAX)
            .min(rest.len());
        let (now, later) = rest.split_at_mut(take);
        if take > 0 {
            piece.read(0, now, machine)?;
        }
        rest = later;
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(Unavailable::OptimisedOut)
    }
}
