//! Defines objects, which have a type and the places of their bytes, and finds parts of objects.

use crate::expression::Context;
use crate::place::{Machine, Piece, VariableLocation, part, read};
use crate::types::{BitField, Member, MemberOffset, Record, Type, TypeKind, TypeRef, VariantPart};
use crate::{DebugError, PathError, Unavailable, Variables};
use std::ops::Range;
use std::sync::Arc;

/// A value in a program: a variable or a part of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The type of the value.
    pub type_ref: TypeRef,
    /// The places of the value's bytes, in order. A query for an object's writers asks about these
    /// places.
    pub pieces: Vec<Piece>,
    /// For a bit-field, the bits that the field covers.
    pub bits: Option<BitField>,
}

impl Object {
    /// Returns the ranges of memory 0 that hold parts of the object.
    pub fn memory(&self) -> impl Iterator<Item = Range<u64>> {
        self.pieces.iter().filter_map(|piece| match piece.place {
            VariableLocation::Memory(address) => Some(address..address.saturating_add(piece.bytes)),
            _ => None,
        })
    }

    /// Returns the object's address, if the object is one piece of memory and not a bit-field.
    pub fn address(&self) -> Option<u64> {
        match (&self.pieces[..], self.bits) {
            (
                [
                    Piece {
                        place: VariableLocation::Memory(address),
                        ..
                    },
                ],
                None,
            ) => Some(*address),
            _ => None,
        }
    }
}

/// The maximum size in bytes of a number.
pub(crate) const NUMBER: u64 = 16;

impl Variables<'_> {
    /// Reads the bits of a number, a pointer or a bit-field. Higher bits are zero.
    pub(crate) fn bits(
        &self,
        object: &Object,
        bytes: u64,
        machine: &dyn Machine,
    ) -> Result<u128, Unavailable> {
        // A bit-field of 128 bits may begin within a byte.
        let mut held = [0; NUMBER as usize + 1];
        let wanted = match object.bits {
            Some(bits) => u64::from(bits.first + bits.count).div_ceil(8),
            None => bytes,
        };
        let most = NUMBER + u64::from(object.bits.is_some());
        let into = usize::try_from(wanted)
            .ok()
            .filter(|_| wanted <= most)
            .and_then(|wanted| held.get_mut(..wanted));
        let into = into.ok_or(Unavailable::Unsupported("a number of more than 16 bytes"))?;
        read(&object.pieces, into, machine)?;
        let [low @ .., high] = held;
        let low = u128::from_le_bytes(low);
        Ok(match object.bits {
            Some(bits) => {
                let above = u128::from(high).checked_shl(128 - bits.first).unwrap_or(0);
                (low >> bits.first | above) & (u128::MAX >> (128 - bits.count))
            }
            None => low,
        })
    }

    /// Returns a member of an object.
    pub(crate) fn member(
        &self,
        object: &Object,
        member: &Member,
        machine: &dyn Machine,
    ) -> Result<Object, Unavailable> {
        let bytes = match member.bits {
            Some(bits) => u64::from(bits.first + bits.count).div_ceil(8),
            None => self.size(member.type_ref)?.unwrap_or(0),
        };
        let pieces = match &member.offset {
            MemberOffset::Bytes(offset) => {
                let whole = self.size(object.type_ref)?;
                // An unsized last member also begins at the end of the structure, so check the type
                // too.
                if whole.is_some_and(|whole| whole <= *offset)
                    && self.is_function_pointer(member.type_ref)?
                {
                    return Err(Unavailable::NoBytes);
                }
                part(&object.pieces, *offset, bytes)
            }
            MemberOffset::Computed(entry) => {
                let address = object.address().ok_or(Unavailable::Unsupported(
                    "a virtual base class outside memory",
                ))?;
                let value = self
                    .debug
                    .entry(entry.0)?
                    .value(gimli::DW_AT_data_member_location);
                let Some(gimli::AttributeValue::Exprloc(expression)) = value else {
                    return Err(Unavailable::Broken("a member without a place"));
                };
                let context = Context {
                    debug: &self.debug,
                    machine,
                    frame: None,
                };
                context.pieces(entry.0.unit, expression, Some(address), bytes)?
            }
        };
        Ok(Object {
            type_ref: member.type_ref,
            pieces,
            bits: member.bits,
        })
    }

    fn is_function_pointer(&self, type_ref: TypeRef) -> Result<bool, DebugError> {
        let described = self.describe(self.plain(type_ref)?)?;
        let TypeKind::Pointer { to, .. } = described.kind else {
            return Ok(false);
        };
        let pointee = self.describe(self.plain(to)?)?;
        Ok(matches!(pointee.kind, TypeKind::Function { .. }))
    }

    /// Returns the members of the active variant of a Rust enumeration, or `None` if its
    /// discriminant selects no variant.
    pub(crate) fn active<'p>(
        &self,
        object: &Object,
        part: &'p VariantPart,
        machine: &dyn Machine,
    ) -> Result<Option<&'p [Member]>, Unavailable> {
        let Some(discriminant) = &part.discriminant else {
            return Ok(part.variants.first().map(|variant| &variant.members[..]));
        };
        let at = self.member(object, discriminant, machine)?;
        let bytes = self.size(discriminant.type_ref)?.unwrap_or(0);
        let value = self.bits(&at, bytes, machine)?;
        let cut = |constant| crate::types::cut(constant, Some(bytes));
        let chosen = part.variants.iter().find(|variant| {
            variant
                .when
                .iter()
                .any(|&(low, high)| (cut(low)..=cut(high)).contains(&value))
        });
        let chosen =
            chosen.or_else(|| part.variants.iter().find(|variant| variant.when.is_empty()));
        Ok(chosen.map(|variant| &variant.members[..]))
    }

    /// Returns the element type of an array, and the number of elements if it is known. The
    /// elements of an array with several dimensions are arrays. Returns `None` for other types.
    pub(crate) fn elements(
        &self,
        type_ref: TypeRef,
        described: &Type,
    ) -> Option<(TypeRef, Option<u64>)> {
        let TypeKind::Array {
            element,
            dimensions,
            ..
        } = &described.kind
        else {
            return None;
        };
        let count = dimensions.first().copied().flatten();
        let of = match dimensions.len() {
            0 | 1 => *element,
            _ => TypeRef {
                dimensions: type_ref.dimensions + 1,
                ..type_ref
            },
        };
        Some((of, count))
    }

    /// Returns an element of an array. Does not check the index against the array's length.
    pub(crate) fn element(
        &self,
        object: &Object,
        of: TypeRef,
        index: u64,
    ) -> Result<Object, PathError> {
        let bytes = self.sized(of)?;
        let offset = index
            .checked_mul(bytes)
            .ok_or(Unavailable::OutsideMemory { address: u64::MAX })?;
        Ok(Object {
            type_ref: of,
            pieces: part(&object.pieces, offset, bytes),
            bits: None,
        })
    }

    pub(crate) fn sized(&self, of: TypeRef) -> Result<u64, PathError> {
        match self.size(of)? {
            Some(bytes) => Ok(bytes),
            None => Err(self.incomplete(of)?),
        }
    }

    /// Returns the definition of a record type, or `None` for other types.
    pub(crate) fn record(&self, type_ref: TypeRef) -> Result<Option<Arc<Record>>, Unavailable> {
        let described = self.describe(self.plain(type_ref)?)?;
        Ok(match &described.kind {
            TypeKind::Record(record) => Some(record.clone()),
            _ => None,
        })
    }

    /// Returns the target of a pointer, moved by `count` elements.
    pub(crate) fn pointee(
        &self,
        object: &Object,
        count: i64,
        machine: &dyn Machine,
    ) -> Result<Object, PathError> {
        let plain = self.plain(object.type_ref)?;
        let described = self.describe(plain)?;
        let TypeKind::Pointer { to, .. } = described.kind else {
            let type_name = self.type_name(object.type_ref)?;
            return Err(PathError::NotPointer { type_name });
        };
        let width = described.bytes.unwrap_or(4);
        let address = self.bits(object, width, machine)?;
        if address == 0 {
            return Err(PathError::Null);
        }
        let bytes = match (self.size(to)?, count) {
            (Some(bytes), _) => bytes,
            // An array of unknown length also has a beginning.
            (None, 0) if matches!(self.describe(self.plain(to)?)?.kind, TypeKind::Array { .. }) => {
                0
            }
            (None, _) => return Err(self.incomplete(to)?),
        };
        // Addresses wrap around, as they do in the program's own computations.
        let distance = i128::from(count).wrapping_mul(i128::from(bytes)) as u64;
        let address = (address as u64).wrapping_add(distance);
        let address = match width {
            1..8 => address & (u64::MAX >> (64 - 8 * width)),
            _ => address,
        };
        let piece = Piece {
            place: VariableLocation::Memory(address),
            offset: 0,
            bytes,
        };
        Ok(Object {
            type_ref: to,
            pieces: vec![piece],
            bits: None,
        })
    }

    /// Reads the bytes of an object.
    ///
    /// # Errors
    /// Returns an error if a part of the object is unavailable, or the object is longer than
    /// `most`.
    pub fn bytes(
        &self,
        object: &Object,
        most: usize,
        machine: &dyn Machine,
    ) -> Result<Vec<u8>, Unavailable> {
        let total = object
            .pieces
            .iter()
            .fold(0u64, |all, piece| all.saturating_add(piece.bytes));
        let total = usize::try_from(total).ok().filter(|total| *total <= most);
        let mut into = vec![0; total.ok_or(Unavailable::Unsupported("more bytes than wanted"))?];
        read(&object.pieces, &mut into, machine)?;
        Ok(into)
    }
}
