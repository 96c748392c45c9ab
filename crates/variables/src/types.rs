//! Types of the source language, as DWARF describes them (DWARF 5, chapter 5).
//!
//! Types refer to each other in cycles, so a type is described one step at a time: [`Type`] names the types it is made of
//! by [`TypeRef`], which [`Variables::describe`](crate::Variables::describe) follows.

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

/// A type: an entry of the debug information, or what path expressions make of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeRef {
    /// `None` is `void`.
    pub(crate) entry: Option<EntryId>,
    /// How many leading dimensions of the array type are taken away: `m[1]` of `int m[2][3]`.
    pub(crate) dimensions: u32,
    /// How many pointers to that: `&v`.
    pub(crate) pointers: u32,
    /// Which lengths its arrays have, for those that are computed: 0 for none, otherwise those that [`Types`] knows by this number.
    pub(crate) lengths: u32,
}

impl TypeRef {
    /// The type of what has none.
    pub const VOID: Self = Self::new(None);

    pub(crate) const fn new(entry: Option<EntryId>) -> Self {
        Self {
            entry,
            dimensions: 0,
            pointers: 0,
            lengths: 0,
        }
    }

    /// The type of a count, such as how many elements a container has.
    pub(crate) const COUNT: Self = Self {
        dimensions: u32::MAX,
        ..Self::VOID
    };

    /// The type of a pointer to this one.
    pub fn pointer(self) -> Self {
        Self {
            pointers: self.pointers.saturating_add(1),
            ..self
        }
    }
}

/// What a type is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// Its own name, without qualifiers and namespaces.
    pub name: Option<String>,
    /// How many bytes a value takes, as far as the entry itself says so.
    pub bytes: Option<u64>,
    /// What it is made of.
    pub kind: TypeKind,
}

/// What a type is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// A number, a truth value or a character.
    Base(Encoding),
    /// A pointer or a reference.
    Pointer {
        /// What it points to.
        to: TypeRef,
        /// Whether it is a C++ reference, which stands for what it refers to.
        reference: bool,
        /// Whether it is one to what is about to go, `T &&`.
        rvalue: bool,
    },
    /// An array. What it is made of is the type with its first dimension taken away.
    Array {
        /// The type of the innermost elements.
        element: TypeRef,
        /// How many elements each dimension has; `None` if that is not fixed.
        dimensions: Vec<Option<u64>>,
        /// Whether it is a vector of numbers, which one instruction computes with.
        vector: bool,
    },
    /// A structure, class, union, tuple, or a Rust enumeration with data.
    Record(Arc<Record>),
    /// An enumeration of constants.
    Enumeration {
        /// The names and values, the latter cut to the size of the type.
        enumerators: Vec<(String, u128)>,
        /// Whether values are signed.
        signed: bool,
    },
    /// Another name or a qualified form of a type.
    Alias {
        /// The qualifier or, for a typedef, nothing.
        qualifier: Option<&'static str>,
        /// The type.
        of: TypeRef,
    },
    /// A function; values are pointers to it.
    Function {
        /// The type of its result.
        result: TypeRef,
        /// The types of its parameters.
        parameters: Vec<TypeRef>,
    },
    /// A C++ pointer to a member.
    MemberPointer {
        /// The type of the member.
        to: TypeRef,
        /// The class.
        of: TypeRef,
    },
    /// A type without values that could be shown: `void`, `decltype(nullptr)`, a kind that is not known.
    Unspecified,
}

/// How the bits of a base type are understood.
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
    /// Two of them: the real and the imaginary part.
    Complex,
    /// Two integers: the real and the imaginary part, as GNU C has it.
    ComplexInteger,
    /// Something else; shown as bytes.
    Other,
}

/// Whether a record was written as a structure or a union.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// `struct`, and Rust's tuples and enumerations with data.
    Structure,
    /// `class`.
    Class,
    /// `union`.
    Union,
}

/// The parts of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// How it was written.
    pub kind: RecordKind,
    /// It is declared, but this unit does not define it.
    pub declaration: bool,
    /// Base classes and members, in the order of the entries, static ones left out.
    pub members: Vec<Member>,
    /// The alternatives of a Rust enumeration.
    pub variants: Vec<VariantPart>,
    /// The types that it was made with, by the names of the parameters that they stand for.
    pub arguments: Vec<(String, TypeRef)>,
}

/// A member of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name. `None` for anonymous structures and unions and for base classes.
    pub name: Option<String>,
    /// Its type.
    pub type_ref: TypeRef,
    /// Where it begins.
    pub offset: MemberOffset,
    /// The bits of a bit-field, counted from where it begins.
    pub bits: Option<BitField>,
    /// Whether it is a base class.
    pub base: bool,
}

/// Where a member begins in its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberOffset {
    /// So many bytes after the record.
    Bytes(u64),
    /// To be computed from the record's address: a virtual base class.
    Computed(ComputedOffset),
}

/// The entry whose expression says where a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComputedOffset(pub(crate) EntryId);

/// Some of the bits of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitField {
    /// The first bit, from 0 at the least significant one.
    pub first: u32,
    /// How many there are: 1 to 128.
    pub count: u32,
}

/// Alternatives, of which a discriminant chooses one (DWARF 5, section 5.7.10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantPart {
    /// The discriminant; without one there is only one alternative. It may share its bytes with a field ("niche").
    pub discriminant: Option<Member>,
    /// The alternatives.
    pub variants: Vec<Variant>,
}

/// An alternative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The discriminants that choose it, as inclusive ranges; none if it is chosen when no other is.
    pub when: Vec<(u128, u128)>,
    /// Its members: rustc makes one with the variant's name and a structure as type.
    pub members: Vec<Member>,
}
