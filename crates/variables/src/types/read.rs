//! Reads types from entries.

use std::cell::Cell;

use gimli::AttributeValue;

use super::constant::{constant, cut, encoding};
use super::{Encoding, RecordKind, Type, TypeKind, TypeRef};
use crate::DebugError;
use crate::debug::{Debug, Entry, EntryId, Next};

/// The cost of reading types so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Spent {
    /// The total size of the types' names in bytes. It is counted because entries may share one
    /// long name.
    names: usize,
    /// The number of bytes of entries read. It is counted because types may be nested, each with
    /// all its contents.
    entries: usize,
}

/// Reads types, within limits set by the size of the debug information.
pub(super) struct Reader<'d, 'a> {
    pub(super) debug: &'d Debug<'a>,
    pub(super) spent: Cell<Spent>,
}

impl<'a> Reader<'_, 'a> {
    pub(super) fn read(&self, id: EntryId) -> Result<Type, DebugError> {
        let mut entry = self.debug.entry(id)?;
        // This type has its own unit.
        if let Some(signature) = entry.value(gimli::DW_AT_signature)
            && let Some(own) = self.debug.reference(id.unit, signature)
        {
            entry = self.debug.entry(own)?;
        }
        let id = entry.id;
        let address = u64::from(self.debug.unit(id.unit).header.address_size());
        let mut bytes = entry.number(gimli::DW_AT_byte_size);
        let of = self.target(&entry);
        let alias = |qualifier| TypeKind::Alias { qualifier, of };
        let kind = match entry.tag {
            gimli::DW_TAG_base_type => TypeKind::Base(encoding(&entry)),
            gimli::DW_TAG_pointer_type => {
                bytes = bytes.or(Some(address));
                TypeKind::Pointer {
                    to: of,
                    reference: false,
                    rvalue: false,
                }
            }
            gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type => {
                bytes = bytes.or(Some(address));
                TypeKind::Pointer {
                    to: of,
                    reference: true,
                    rvalue: entry.tag == gimli::DW_TAG_rvalue_reference_type,
                }
            }
            gimli::DW_TAG_ptr_to_member_type => {
                let class = entry.value(gimli::DW_AT_containing_type);
                let class = class.and_then(|class| self.debug.reference(id.unit, class));
                TypeKind::MemberPointer {
                    to: of,
                    of: TypeRef::new(class),
                }
            }
            gimli::DW_TAG_array_type => TypeKind::Array {
                element: of,
                dimensions: self.dimensions(id)?,
                vector: entry.flag(gimli::DW_AT_GNU_vector),
            },
            gimli::DW_TAG_structure_type => self.record(&entry, RecordKind::Structure)?,
            gimli::DW_TAG_class_type => self.record(&entry, RecordKind::Class)?,
            gimli::DW_TAG_union_type => self.record(&entry, RecordKind::Union)?,
            gimli::DW_TAG_enumeration_type => self.enumeration(&entry, bytes)?,
            gimli::DW_TAG_subroutine_type => self.function(id, of)?,
            gimli::DW_TAG_typedef | gimli::DW_TAG_template_alias => alias(None),
            gimli::DW_TAG_const_type => alias(Some("const")),
            gimli::DW_TAG_volatile_type => alias(Some("volatile")),
            gimli::DW_TAG_restrict_type => alias(Some("restrict")),
            gimli::DW_TAG_atomic_type => alias(Some("_Atomic")),
            _ => TypeKind::Unspecified,
        };
        let name = self.name(&entry)?;
        Ok(Type { name, bytes, kind })
    }

    pub(super) fn name(&self, entry: &Entry<'a>) -> Result<Option<String>, DebugError> {
        let name = entry.value(gimli::DW_AT_name);
        let name = name.and_then(|name| self.debug.text(entry.id.unit, name));
        let mut spent = self.spent.get();
        spent.names += name.as_ref().map_or(0, String::len);
        self.spent.set(spent);
        if spent.names > 4 * self.debug.size() + (1 << 20) {
            return Err(DebugError::TooMuch { what: "long names" });
        }
        Ok(name)
    }

    /// Visits an entry and its descendants.
    pub(super) fn walk(
        &self,
        id: EntryId,
        visit: impl FnMut(isize, Entry<'a>) -> Result<Next, DebugError>,
    ) -> Result<(), DebugError> {
        let read = self.debug.walk(id.unit, Some(id.offset), |_| true, visit)?;
        let mut spent = self.spent.get();
        spent.entries = spent.entries.saturating_add(read);
        self.spent.set(spent);
        if spent.entries > 64 * self.debug.size() + (1 << 20) {
            return Err(DebugError::TooMuch {
                what: "types in types",
            });
        }
        Ok(())
    }

    pub(super) fn target(&self, entry: &Entry<'a>) -> TypeRef {
        let of = entry.value(gimli::DW_AT_type);
        TypeRef::new(of.and_then(|of| self.debug.reference(entry.id.unit, of)))
    }

    fn dimensions(&self, id: EntryId) -> Result<Vec<Option<u64>>, DebugError> {
        let mut found = Vec::new();
        self.walk(id, |depth, entry| {
            if depth == 1 && entry.tag == gimli::DW_TAG_subrange_type {
                let lower = entry.number(gimli::DW_AT_lower_bound).unwrap_or(0);
                let upper = entry
                    .value(gimli::DW_AT_upper_bound)
                    .and_then(|upper| upper.sdata_value());
                let length =
                    upper.and_then(|upper| upper.checked_add(1)?.checked_sub_unsigned(lower));
                let count = entry
                    .number(gimli::DW_AT_count)
                    .or_else(|| u64::try_from(length?).ok());
                // Some compilers write −1 for "unknown".
                found.push(count.filter(|count| *count < u64::from(u32::MAX)));
            }
            Ok(if depth == 0 { Next::Into } else { Next::Over })
        })?;
        // An array without dimensions has one dimension of unknown length.
        if found.is_empty() {
            found.push(None);
        }
        Ok(found)
    }

    fn function(&self, id: EntryId, result: TypeRef) -> Result<TypeKind, DebugError> {
        let mut parameters = Vec::new();
        self.walk(id, |depth, entry| {
            if depth == 1 && entry.tag == gimli::DW_TAG_formal_parameter {
                parameters.push(self.target(&entry));
            }
            Ok(if depth == 0 { Next::Into } else { Next::Over })
        })?;
        Ok(TypeKind::Function { result, parameters })
    }

    fn enumeration(&self, entry: &Entry<'a>, bytes: Option<u64>) -> Result<TypeKind, DebugError> {
        let id = entry.id;
        let mut enumerators = Vec::new();
        let mut negative = false;
        self.walk(id, |depth, entry| {
            if depth == 1 && entry.tag == gimli::DW_TAG_enumerator {
                let name = self.name(&entry)?;
                let value = entry.value(gimli::DW_AT_const_value);
                if let (Some(name), Some(value)) = (name, value.and_then(constant)) {
                    negative |= matches!(entry.value(gimli::DW_AT_const_value), Some(AttributeValue::Sdata(v)) if v < 0);
                    enumerators.push((name, cut(value, bytes)));
                }
            }
            Ok(if depth == 0 { Next::Into } else { Next::Over })
        })?;
        let underlying = self
            .target(entry)
            .entry
            .map(|id| self.debug.entry(id))
            .transpose()?;
        let signed = match underlying.as_ref().map(encoding) {
            Some(Encoding::Signed | Encoding::SignedChar) => true,
            Some(Encoding::Unsigned | Encoding::UnsignedChar | Encoding::Boolean) => false,
            _ => negative,
        };
        Ok(TypeKind::Enumeration {
            enumerators,
            signed,
        })
    }
}
