//! Finds the constants of enumerations, and the variants, that conditions can name.

use std::collections::BTreeSet;

use crate::debug::{EntryId, Next};
use crate::types::{TypeKind, TypeRef};
use crate::{DebugError, Variables};

/// A constant of an enumeration, or a variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// The constant's name, without the name of its type.
    pub name: String,
    /// The constant's value, or `None` for a variant, or if several enumerations give the name
    /// different values.
    pub value: Option<i128>,
}

/// The C++ names for an optional without a value.
const EMPTY: [&str; 2] = ["nullopt", "std::nullopt"];

impl Variables<'_> {
    /// Returns the constant or variant that a name such as `TRANSFER`, `Kind::Transfer`, `None` or
    /// `nullopt` denotes. Returns `None` if the name denotes neither. Reads the entries of all
    /// units.
    ///
    /// # Errors
    /// Returns an error if an entry cannot be read.
    pub fn named_constant(&self, name: &str) -> Result<Option<Constant>, DebugError> {
        let path = Vec::from_iter(name.split("::"));
        let (last, of) = match path.as_slice() {
            [.., of, last] => (*last, Some(*of)),
            _ => (name, None),
        };
        let mut found = EMPTY.contains(&name);
        let mut values = BTreeSet::new();
        for unit in 0..self.debug.units() {
            let mut enumerations: Vec<EntryId> = Vec::new();
            // These are the open types and variants, with their depths. Variants have no name.
            let mut open: Vec<(isize, EntryId, Option<String>)> = Vec::new();
            self.debug.walk(unit, None, is_part, |depth, entry| {
                while open.pop_if(|(own, ..)| *own >= depth).is_some() {}
                let named = entry.value(gimli::DW_AT_name);
                let named = named.and_then(|name| self.debug.text(unit, name));
                let is_of = |own: Option<&String>| match of {
                    // Generic arguments are not part of the name.
                    Some(of) => own.is_some_and(|own| own.split('<').next() == Some(of)),
                    None => true,
                };
                match entry.tag {
                    gimli::DW_TAG_enumerator if named.as_deref() == Some(last) => {
                        if let Some((_, around, own)) = open.last()
                            && is_of(own.as_ref())
                        {
                            enumerations.push(*around);
                        }
                    }
                    gimli::DW_TAG_member if named.as_deref() == Some(last) => {
                        let mut around = open.iter().rev();
                        let is_variant = around.next().is_some_and(|open| open.2.is_none());
                        let own = around.find_map(|(_, _, own)| own.as_ref());
                        found |= is_variant && is_of(own);
                    }
                    gimli::DW_TAG_enumerator | gimli::DW_TAG_member => {}
                    gimli::DW_TAG_variant => open.push((depth, entry.id, None)),
                    _ => open.push((depth, entry.id, named.or(Some(String::new())))),
                }
                Ok(Next::Into)
            })?;
            for enumeration in enumerations {
                found = true;
                values.extend(self.value_of(enumeration, last)?);
            }
        }
        let mut values = values.into_iter();
        let value = values.next().filter(|_| values.next().is_none());
        Ok(found.then(|| Constant {
            name: last.to_owned(),
            value,
        }))
    }

    /// Returns the value of a constant of an enumeration.
    fn value_of(&self, enumeration: EntryId, name: &str) -> Result<Option<i128>, DebugError> {
        let described = self.describe(TypeRef::new(Some(enumeration)))?;
        let TypeKind::Enumeration {
            enumerators,
            signed,
        } = &described.kind
        else {
            return Ok(None);
        };
        let found = enumerators.iter().find(|(own, _)| own == name);
        Ok(found.and_then(|(_, value)| {
            let bits = described.bytes.map_or(128, |bytes| 8 * bytes.clamp(1, 16));
            let shift = 128 - bits as u32;
            if *signed {
                // The highest bit of the value is the sign.
                Some(((*value as i128) << shift) >> shift)
            } else {
                i128::try_from(*value).ok()
            }
        }))
    }
}

fn is_part(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_enumeration_type
            | gimli::DW_TAG_enumerator
            | gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_variant
            | gimli::DW_TAG_member
    )
}
