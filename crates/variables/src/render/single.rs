//! Reads values that are a single number, so that they can be counted and compared.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Limits;
use super::number::{self, signed_value};
use crate::containers::Contents;
use crate::object::Object;
use crate::place::Machine;
use crate::types::{Encoding, Type, TypeKind, TypeRef};
use crate::{PathError, Variables};

/// A value that is a single number: an integer, a character, a boolean, a floating-point number, a
/// pointer, or an enumeration constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// The type's name.
    pub type_name: String,
    /// The bits, which are zero above the value's width. Values of one type are equal if their bits
    /// are equal.
    pub bits: u128,
    /// The order of the value among values of its type.
    pub rank: Rank,
    /// The value as C would write it: a constant's name, or an address without its contents.
    pub text: String,
}

/// The key by which numbers of one type are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rank {
    /// A value of a signed type.
    Signed(i128),
    /// A value of any other type, such as an unsigned integer, a truth value or a pointer.
    Unsigned(u128),
    /// A value of a floating-point type, or the nearest `f64` if the type has more digits.
    Float(f64),
}

impl Rank {
    /// Compares in numerical order or, for floating-point numbers, in IEEE 754's total order.
    /// Values of different kinds are ordered by kind alone.
    pub fn order(&self, other: &Self) -> Ordering {
        let kind = |rank: &Self| match rank {
            Self::Signed(_) => 0,
            Self::Unsigned(_) => 1,
            Self::Float(_) => 2,
        };
        match (self, other) {
            (Self::Signed(a), Self::Signed(b)) => a.cmp(b),
            (Self::Unsigned(a), Self::Unsigned(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b),
            _ => kind(self).cmp(&kind(other)),
        }
    }
}

/// A type whose objects are single numbers, with the data needed to read them.
#[derive(Clone, Debug)]
pub struct NumberType {
    described: Arc<Type>,
    bytes: u64,
}

impl NumberType {
    fn rank(&self, bits: u128, width: u32) -> Rank {
        match (&self.described.kind, width) {
            (TypeKind::Base(Encoding::Signed | Encoding::SignedChar), _)
            | (TypeKind::Enumeration { signed: true, .. }, _) => {
                Rank::Signed(signed_value(bits, width))
            }
            (TypeKind::Base(Encoding::Float), 32) => {
                Rank::Float(f32::from_bits(bits as u32).into())
            }
            (TypeKind::Base(Encoding::Float), 64) => Rank::Float(f64::from_bits(bits as u64)),
            (TypeKind::Base(Encoding::Float), _)
                if let Some(format) =
                    number::float_format(self.described.name.as_deref(), width) =>
            {
                Rank::Float(format.nearest(bits))
            }
            _ => Rank::Unsigned(bits),
        }
    }
}

/// The largest number of parts of an aggregate that an error names.
const PARTS: usize = 8;

/// The maximum nesting of containers with one value.
const NESTED: usize = 8;

impl Variables<'_> {
    /// Reads an object as a single number. For a C++ reference, reads its target.
    ///
    /// # Errors
    /// [`PathError::Aggregate`] if the object has several parts, regardless of their values.
    /// Another error if it has no value.
    pub fn number(&self, object: &Object, machine: &dyn Machine) -> Result<Number, PathError> {
        let described = self.describe(self.plain(object.type_ref)?)?;
        match described.kind {
            TypeKind::Pointer {
                reference: true, ..
            } => self.own_number(&self.pointee(object, 0, machine)?, machine),
            _ => self.own_number(object, machine),
        }
    }

    /// Reads an object as an operand of a condition: a single number, even if it is in a cell, a
    /// lock or an optional, or has a unit. A complex number does not qualify, because it has no
    /// order.
    ///
    /// # Errors
    /// Returns the same errors as [`number`](Self::number).
    pub fn operand(&self, object: &Object, machine: &dyn Machine) -> Result<Number, PathError> {
        let plain = self.plain(object.type_ref)?;
        let is_complex = matches!(
            self.describe(plain)?.kind,
            TypeKind::Base(Encoding::Complex | Encoding::ComplexInteger)
        );
        if is_complex {
            return Err(PathError::Aggregate {
                type_name: self.type_name(object.type_ref)?,
                parts: Vec::new(),
            });
        }
        let refused = match self.number(object, machine) {
            Err(refused @ PathError::Aggregate { .. }) => refused,
            found => return found,
        };
        let mut held = object.clone();
        for _ in 0..NESTED {
            held = match self.contents(
                &held,
                &Limits {
                    elements: 0,
                    ..Limits::DEFAULT
                },
                machine,
            ) {
                Some(
                    Contents::Held(Some(inner))
                    | Contents::Noted(inner, _)
                    | Contents::Quantity(inner, _),
                ) => inner,
                _ => break,
            };
            match self.number(&held, machine) {
                Err(PathError::Aggregate { .. }) => {}
                found => return found,
            }
        }
        Err(refused)
    }

    /// Returns the type of objects that [`operand`](Self::operand) reads directly, or `None` for
    /// references, aggregates and complex numbers.
    ///
    /// # Errors
    /// Returns an error if the type is incomplete, or its entry is broken.
    pub fn number_type(&self, type_ref: TypeRef) -> Result<Option<NumberType>, PathError> {
        let plain = self.plain(type_ref)?;
        let described = self.describe(plain)?;
        Ok(match &described.kind {
            TypeKind::Record(_)
            | TypeKind::Array { .. }
            | TypeKind::Pointer {
                reference: true, ..
            }
            | TypeKind::Base(Encoding::Complex | Encoding::ComplexInteger) => None,
            _ => Some(self.sized_number(plain, described)?),
        })
    }

    fn sized_number(&self, plain: TypeRef, described: Arc<Type>) -> Result<NumberType, PathError> {
        let bytes = match &described.kind {
            TypeKind::Pointer { .. } => described.bytes.unwrap_or(4),
            _ => self.sized(plain)?,
        };
        Ok(NumberType { described, bytes })
    }

    /// Reads an object of a number type.
    ///
    /// # Errors
    /// Returns an error if the object has no value.
    pub fn read_number(
        &self,
        object: &Object,
        number_type: &NumberType,
        machine: &dyn Machine,
    ) -> Result<Rank, PathError> {
        let (bits, width) = self.number_bits(object, number_type, machine)?;
        Ok(number_type.rank(bits, width))
    }

    /// Returns the bits of an object, and the number of bits.
    fn number_bits(
        &self,
        object: &Object,
        number_type: &NumberType,
        machine: &dyn Machine,
    ) -> Result<(u128, u32), PathError> {
        let bytes = number_type.bytes;
        let bits = self.bits(object, bytes, machine)?;
        let width = match object.bits {
            Some(field) => field.count,
            None => 8 * bytes.min(16) as u32,
        };
        Ok((bits, width))
    }

    fn own_number(&self, object: &Object, machine: &dyn Machine) -> Result<Number, PathError> {
        let plain = self.plain(object.type_ref)?;
        let described = self.describe(plain)?;
        if let TypeKind::Record(_) | TypeKind::Array { .. } = described.kind {
            return Err(self.aggregate(plain, object)?);
        }
        let number_type = self.sized_number(plain, described)?;
        let (bits, width) = self.number_bits(object, &number_type, machine)?;
        let NumberType { described, bytes } = &number_type;
        let (kind, name) = (&described.kind, described.name.as_deref());
        Ok(Number {
            type_name: self.type_name(object.type_ref)?,
            bits,
            rank: number_type.rank(bits, width),
            text: number::text(kind, name, bits, *bytes, object.bits),
        })
    }

    /// Returns the error for an object with several parts, with the expressions for these parts.
    fn aggregate(&self, plain: TypeRef, object: &Object) -> Result<PathError, PathError> {
        let described = self.describe(plain)?;
        let mut parts = match &described.kind {
            TypeKind::Record(record) => {
                let names = record.members.iter();
                let names = names.filter_map(|member| Some(format!(".{}", member.name.as_ref()?)));
                names.take(PARTS + 1).collect()
            }
            _ => vec!["[0]".to_owned()],
        };
        if let Some(one_too_many) = parts.get_mut(PARTS) {
            "…".clone_into(one_too_many);
        }
        Ok(PathError::Aggregate {
            type_name: self.type_name(object.type_ref)?,
            parts,
        })
    }
}
