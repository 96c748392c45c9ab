//! Reads slices of Zig and D, which are structures of a length and a pointer. Many programs define
//! structures of this form. They count as slices only if a compiler of one of these languages
//! produced the unit.
//!
//! This was tested with debug information of that form, not with the compilers themselves.

use crate::Variables;
use crate::object::Object;
use crate::place::Machine;
use crate::sequence::Sequence;
use crate::types::{Encoding, Record, TypeKind, TypeRef};

/// A language with known slices.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Zig,
    D,
}

impl Variables<'_> {
    /// Returns the elements of a slice of Zig (`ptr`, `len`) or D (`length`, `ptr`). Returns `None`
    /// if the object is not a slice, or its elements are outside memory.
    pub(crate) fn foreign_slice(
        &self,
        object: &Object,
        plain: TypeRef,
        record: &Record,
        machine: &dyn Machine,
    ) -> Option<Sequence> {
        let [first, second] = &record.members[..] else {
            return None;
        };
        let (address, length, language) = match (first.name.as_deref()?, second.name.as_deref()?) {
            ("ptr", "len") => (first, second, Language::Zig),
            ("length", "ptr") => (second, first, Language::D),
            _ => return None,
        };
        if self.language(plain)? != language {
            return None;
        }
        let name = self.describe(plain).ok()?.name.clone()?;
        let is_slice = match language {
            Language::Zig => name.starts_with('['),
            Language::D => {
                name.ends_with("[]") || ["string", "wstring", "dstring"].contains(&&*name)
            }
        };
        let to = self.describe(self.plain(address.type_ref).ok()?).ok()?;
        let TypeKind::Pointer { to: element, .. } = to.kind else {
            return None;
        };
        if !is_slice {
            return None;
        }
        let number = |member| {
            let part = self.member(object, member, machine).ok()?;
            let bytes = self.sized(part.type_ref).ok()?;
            u64::try_from(self.bits(&part, bytes, machine).ok()?).ok()
        };
        let (address, count) = (number(address)?, number(length)?);
        let bytes = self.sized(element).ok()?;
        let end = count.checked_mul(bytes)?.checked_add(address)?;
        if end > address && !machine.memory(end - 1, &mut [0]) {
            return None;
        }
        let described = self.describe(self.plain(element).ok()?).ok()?;
        let is_text = match language {
            // Zig has no character type.
            Language::Zig => described.name.as_deref() == Some("u8"),
            Language::D => {
                matches!(
                    described.kind,
                    TypeKind::Base(
                        Encoding::SignedChar | Encoding::UnsignedChar | Encoding::Unicode
                    )
                ) && described
                    .name
                    .as_deref()
                    .is_some_and(|name| name.ends_with("char"))
            }
        };
        let is_text = is_text && (bytes == 1 || self.wide(element).is_some());
        Some(Sequence::plain(address, count, is_text, element))
    }

    /// Returns the language of a type's unit, according to the unit's producer.
    fn language(&self, of: TypeRef) -> Option<Language> {
        let unit = self.debug.first(of.entry?.unit)?;
        let producer = unit.value(gimli::DW_AT_producer);
        let producer = producer.and_then(|text| self.debug.text(unit.id.unit, text))?;
        let producer = producer.trim_start().to_lowercase();
        let begins = |all: &[&str]| all.iter().any(|begin| producer.starts_with(begin));
        if begins(&["zig "]) {
            Some(Language::Zig)
        } else if begins(&["ldc", "dmd", "digital mars d", "gnu d"]) {
            Some(Language::D)
        } else {
            None
        }
    }
}
