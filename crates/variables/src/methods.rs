//! Finds the type to which a method table belongs. rustc describes each table of a `dyn Trait` as a
//! global variable. The variable is named after the implementing type, and its type refers to that
//! type.

use std::collections::HashMap;

use crate::Variables;
use crate::debug::EntryId;
use crate::place::{Piece, VariableLocation};
use crate::types::TypeRef;

/// The types of method tables, by the tables' addresses.
pub(crate) type Methods = HashMap<u64, (String, EntryId)>;

impl Variables<'_> {
    /// Returns the type whose method table is at an address, with its name. The first call takes
    /// O(global variables).
    pub(crate) fn concrete(&self, methods: u64) -> Option<(String, TypeRef)> {
        let known = self.methods.get_or_init(|| self.tables());
        let (name, entry) = known.get(&methods)?;
        Some((name.clone(), TypeRef::new(Some(*entry))))
    }

    fn tables(&self) -> Methods {
        let mut known = Methods::new();
        for global in self.globals().unwrap_or_default() {
            let Some(name) = implementor(&global.name) else {
                continue;
            };
            let entry = global.entry.entry;
            let table = self.debug.type_of(entry).ok().flatten();
            let table = table.and_then(|table| self.debug.entry(table).ok());
            let of = table.and_then(|table| {
                let of = table.value(gimli::DW_AT_containing_type)?;
                self.debug.reference(table.id.unit, of)
            });
            let place = self.locate_statically(&entry);
            let place = place.as_deref().and_then(<[Piece]>::first);
            if let (
                Some(of),
                Some(Piece {
                    place: VariableLocation::Memory(address),
                    ..
                }),
            ) = (of, place)
            {
                known.entry(*address).or_insert((name.to_owned(), of));
            }
        }
        known
    }
}

/// Returns `T` from the name `<T as Trait>::{vtable}`.
fn implementor(name: &str) -> Option<&str> {
    let inside = name.strip_suffix("::{vtable}")?.strip_prefix('<')?;
    let mut open = 0u32;
    let mut before = ' ';
    for (at, sign) in inside.char_indices() {
        match sign {
            '<' | '(' | '[' | '{' => open += 1,
            '>' if before == '-' => {}
            '>' | ')' | ']' | '}' => open = open.checked_sub(1)?,
            ' ' if open == 0 && inside[at..].starts_with(" as ") => return Some(&inside[..at]),
            _ => {}
        }
        before = sign;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::implementor;

    #[test]
    fn the_type_is_before_its_trait() {
        for (name, of) in [
            ("<app::Dog as app::Animal>::{vtable}", Some("app::Dog")),
            (
                "<Box<<A as B>::C> as core::fmt::Debug>::{vtable}",
                Some("Box<<A as B>::C>"),
            ),
            ("<fn(u8) -> u8 as F>::{vtable}", Some("fn(u8) -> u8")),
            ("<app::Dog as app::Animal>::{vtable_type}", None),
            ("vtable", None),
        ] {
            assert_eq!(implementor(name), of, "{name}");
        }
    }
}
