//! Types of the source language (DWARF 5, chapter 5).
//!
//! Types refer to each other in cycles, so a type is described one step at a time. [`Type`] names
//! its component types by [`TypeRef`], and [`Variables::describe`](crate::Variables::describe)
//! returns their definitions.

use std::sync::Arc;

use crate::debug::EntryId;

mod constant;
mod known;
mod lengths;
mod name;
mod read;
mod record;
mod size;

pub(crate) use constant::cut;
pub(crate) use known::Types;
pub(crate) use size::{CHAIN, plain, size};

/// A reference to a type, which is an entry of the debug information or a type that path
/// expressions derive from an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeRef {
    /// The entry of the type, or `None` for `void`.
    pub(crate) entry: Option<EntryId>,
    /// The number of leading dimensions removed from the array type, such as one for `m[1]` of `int
    /// m[2][3]`.
    pub(crate) dimensions: u32,
    /// The number of pointer levels added to the type, as by `&v`.
    pub(crate) pointers: u32,
    /// The number under which [`Types`] stores the computed lengths of the type's arrays, or 0 for
    /// none.
    pub(crate) lengths: u32,
}

impl TypeRef {
    /// The type `void`.
    pub const VOID: Self = Self::new(None);

    pub(crate) const fn new(entry: Option<EntryId>) -> Self {
        Self {
            entry,
            dimensions: 0,
            pointers: 0,
            lengths: 0,
        }
    }

    /// The type of a count, such as a container's number of elements.
    pub(crate) const COUNT: Self = Self {
        dimensions: u32::MAX,
        ..Self::VOID
    };

    /// Returns the type of a pointer to this type.
    pub fn pointer(self) -> Self {
        Self {
            pointers: self.pointers.saturating_add(1),
            ..self
        }
    }
}

/// The definition of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// The type's own name, without qualifiers and namespaces.
    pub name: Option<String>,
    /// The size of a value in bytes, if the entry itself states it. For a pointer whose entry does
    /// not state it, the size of an address.
    pub bytes: Option<u64>,
    /// The structure of the type.
    pub kind: TypeKind,
}

/// The structure of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// A number, a truth value or a character.
    Base(Encoding),
    /// A pointer or a reference.
    Pointer {
        /// The type of the target.
        to: TypeRef,
        /// Whether the pointer is a C++ reference. Values and paths use its target instead.
        reference: bool,
        /// Whether the pointer is an rvalue reference, `T &&`.
        rvalue: bool,
    },
    /// An array. Its component type is the same type with its first dimension removed.
    Array {
        /// The type of the innermost elements.
        element: TypeRef,
        /// The number of elements of each dimension, or `None` if this number is not fixed.
        dimensions: Vec<Option<u64>>,
        /// Whether the array is a SIMD vector of numbers.
        vector: bool,
    },
    /// A structure, class, union, tuple, or a Rust enumeration with data.
    Record(Arc<Record>),
    /// An enumeration of constants.
    Enumeration {
        /// The names and values. Values are truncated to the size of the type.
        enumerators: Vec<(String, u128)>,
        /// Whether values are signed.
        signed: bool,
    },
    /// Another name or a qualified form of a type.
    Alias {
        /// The qualifier or, for a typedef, nothing.
        qualifier: Option<&'static str>,
        /// The type that is named or qualified.
        of: TypeRef,
    },
    /// A function. Values are pointers to it.
    Function {
        /// The type of the function's result.
        result: TypeRef,
        /// The types of the function's parameters.
        parameters: Vec<TypeRef>,
    },
    /// A C++ pointer to a member.
    MemberPointer {
        /// The type of the member.
        to: TypeRef,
        /// The class that contains the member.
        of: TypeRef,
    },
    /// A type without displayable values: `void`, `decltype(nullptr)`, or an unknown kind.
    Unspecified,
}

/// The interpretation of a base type's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// A signed integer.
    Signed,
    /// An unsigned integer.
    Unsigned,
    /// A signed integer that is a character.
    SignedChar,
    /// An unsigned integer that is a character.
    UnsignedChar,
    /// A Unicode character or code unit.
    Unicode,
    /// A truth value.
    Boolean,
    /// An IEEE 754 number.
    Float,
    /// A complex number, with the real and the imaginary part.
    Complex,
    /// A complex number of GNU C, with integers as the real and the imaginary part.
    ComplexInteger,
    /// Any other encoding. Values are shown as hexadecimal numbers.
    Other,
}

/// The keyword with which a record was declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// `struct`, and Rust's tuples and enumerations with data.
    Structure,
    /// Declared with `class`.
    Class,
    /// Declared with `union`.
    Union,
}

/// The parts of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The keyword of the record.
    pub kind: RecordKind,
    /// Whether the record is declared, but not defined in this unit.
    pub declaration: bool,
    /// Base classes and members, in the order of the entries, without static members.
    pub members: Vec<Member>,
    /// The alternatives of a Rust enumeration.
    pub variants: Vec<VariantPart>,
    /// The record's type arguments, by the names of the parameters.
    pub arguments: Vec<(String, TypeRef)>,
}

/// A member of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The member's name, or `None` for anonymous structures and unions and for base classes.
    pub name: Option<String>,
    /// The type of the member's value.
    pub type_ref: TypeRef,
    /// The offset of the member's beginning.
    pub offset: MemberOffset,
    /// The bits of a bit-field, counted from the member's beginning.
    pub bits: Option<BitField>,
    /// Whether the member is a base class.
    pub base: bool,
}

/// The offset of a member in its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberOffset {
    /// At this distance in bytes from the beginning of the record.
    Bytes(u64),
    /// Computed from the record's address, for a virtual base class.
    Computed(ComputedOffset),
}

/// The entry whose expression gives a member's location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComputedOffset(pub(crate) EntryId);

/// Some of the bits of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitField {
    /// The first bit, counted from 0 at the least significant bit.
    pub first: u32,
    /// The number of bits, from 1 to 128.
    pub count: u32,
}

/// Alternatives from which a discriminant selects one (DWARF 5, section 5.7.10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantPart {
    /// The discriminant. Without it, there is only one alternative. It may share its bytes with a
    /// field ("niche").
    pub discriminant: Option<Member>,
    /// The alternatives, in the order of the entries.
    pub variants: Vec<Variant>,
}

/// One of the alternatives of a variant part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The discriminants that select the alternative, as inclusive ranges. An alternative without
    /// ranges is selected if no other alternative is.
    pub when: Vec<(u128, u128)>,
    /// The members of the alternative. rustc creates a single member with the variant's name and a
    /// structure as its type.
    pub members: Vec<Member>,
}
