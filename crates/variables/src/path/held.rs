//! Resolves the contents of containers in path expressions, such as `*opt`, `p->x` for a smart
//! pointer, `map["key"]` and `v.size`.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::containers::{Contents, Items};
use crate::object::Object;
use crate::place::{Machine, Piece, VariableLocation};
use crate::types::TypeRef;
use crate::{Limits, PathError, Rank, Variables, quoted};

/// The text between brackets, as an index or a key.
pub(super) enum Key<'k> {
    Number(i64),
    Text(&'k str),
}

/// The maximum number of elements examined in a container without random access.
const LOOKED: u64 = 1 << 16;

/// The maximum nesting of containers that hold one value.
const NESTED: usize = 8;

/// The names with which programs query the number of elements.
pub(super) const COUNTS: [&str; 3] = ["size", "len", "length"];

/// Limits that request no elements, only their number.
const NONE: Limits = Limits {
    elements: 0,
    ..Limits::DEFAULT
};

impl Variables<'_> {
    /// Returns the contents of a smart pointer, an optional, a cell or a lock. Returns `None` for
    /// anything that does not hold exactly one value. Fails if the value is absent, or a container
    /// is damaged.
    pub(super) fn inside(
        &self,
        object: &Object,
        machine: &dyn Machine,
    ) -> Result<Option<Object>, PathError> {
        Ok(Some(match self.contents(object, &NONE, machine) {
            Some(
                Contents::Held(Some(held))
                | Contents::Noted(held, _)
                | Contents::Alternative(_, held),
            ) => held,
            Some(Contents::Held(None)) => return Err(PathError::Empty),
            Some(Contents::Pointer { address: 0, .. }) => return Err(PathError::Null),
            Some(Contents::Pointer { to, .. }) => to,
            Some(Contents::Items(Items {
                damaged: Some(why), ..
            })) => return Err(PathError::Damaged(why)),
            _ => return Ok(None),
        }))
    }

    /// Returns the number of elements in a container, if the name requests it.
    pub(super) fn count_of(
        &self,
        object: &Object,
        name: &str,
        machine: &dyn Machine,
    ) -> Result<Option<Object>, PathError> {
        if !COUNTS.contains(&name) {
            return Ok(None);
        }
        let count = match self.contents(object, &NONE, machine) {
            Some(Contents::Sequence(sequence)) => sequence.count,
            Some(Contents::Items(Items {
                damaged: Some(why), ..
            })) => return Err(PathError::Damaged(why)),
            Some(Contents::Items(items)) => items.count,
            Some(Contents::Held(Some(held))) => {
                let plain = self.plain(held.type_ref)?;
                match self.elements(plain, &*self.describe(plain)?) {
                    Some((_, Some(count))) => count,
                    _ => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        let piece = Piece {
            place: VariableLocation::Value(Arc::from(count.to_le_bytes())),
            offset: 0,
            bytes: 8,
        };
        Ok(Some(Object {
            type_ref: TypeRef::COUNT,
            pieces: vec![piece],
            bits: None,
        }))
    }

    /// Returns an element of a container by its position or, in a map, by its key.
    pub(super) fn keyed(
        &self,
        object: Object,
        key: &Key<'_>,
        machine: &dyn Machine,
    ) -> Result<Object, PathError> {
        let type_name = self.type_name(object.type_ref)?;
        let mut object = object;
        for _ in 0..NESTED {
            let elements = match key {
                Key::Number(index) => u64::try_from(*index).unwrap_or(0).saturating_add(1),
                Key::Text(_) => LOOKED,
            };
            // Only the elements show whether the container is a map.
            let few = Limits {
                elements: elements.min(LOOKED),
                ..Limits::DEFAULT
            };
            let held = match (self.contents(&object, &few, machine), key) {
                (Some(Contents::Sequence(sequence)), Key::Number(index)) => {
                    return match u64::try_from(*index) {
                        Ok(position) if position < sequence.count => self.nth(&sequence, position),
                        _ => Err(PathError::OutsideContainer {
                            index: *index,
                            count: sequence.count,
                        }),
                    };
                }
                (Some(Contents::Items(items)), _) => {
                    let is_map = items.found.iter().any(|(key, _)| key.is_some());
                    return match key {
                        Key::Number(index) if !is_map => positioned(&items, *index),
                        _ => self.of_key(&object, key, machine),
                    };
                }
                (Some(Contents::Alternative(number, held)), Key::Number(index)) => {
                    return if u64::try_from(*index) == Ok(number) {
                        Ok(held)
                    } else {
                        Err(PathError::OtherVariant {
                            name: format!("[{index}]"),
                            active: format!("[{number}]"),
                        })
                    };
                }
                (Some(Contents::Held(None)), _) => return Err(PathError::Empty),
                (Some(Contents::Pointer { address: 0, .. }), _) => return Err(PathError::Null),
                // A smart pointer to an array gives the first element, and the others follow it in
                // memory.
                (Some(Contents::Pointer { address, to, .. }), Key::Number(index))
                    if self.record(to.type_ref)?.is_none() =>
                {
                    let bytes = self.sized(to.type_ref)?;
                    let far = i128::from(*index).wrapping_mul(i128::from(bytes));
                    let at = i128::from(address).wrapping_add(far);
                    let at = u64::try_from(at).unwrap_or(u64::MAX);
                    let piece = Piece {
                        place: VariableLocation::Memory(at),
                        offset: 0,
                        bytes,
                    };
                    return Ok(Object {
                        pieces: vec![piece],
                        ..to
                    });
                }
                (
                    Some(
                        Contents::Held(Some(held))
                        | Contents::Noted(held, _)
                        | Contents::Pointer { to: held, .. },
                    ),
                    _,
                ) => held,
                _ => return Err(PathError::NotIndexable { type_name }),
            };
            let plain = self.plain(held.type_ref)?;
            let is_record = self.record(held.type_ref)?.is_some();
            match key {
                Key::Number(index) if !is_record => {
                    let is_array = self.elements(plain, &*self.describe(plain)?).is_some();
                    return if is_array {
                        self.index_into(held, *index, machine)
                    } else {
                        Err(PathError::NotIndexable { type_name })
                    };
                }
                _ => object = held,
            }
        }
        Err(PathError::NotIndexable { type_name })
    }

    /// Returns the value of a key of a map.
    fn of_key(
        &self,
        map: &Object,
        key: &Key<'_>,
        machine: &dyn Machine,
    ) -> Result<Object, PathError> {
        let all = Limits {
            elements: LOOKED,
            ..Limits::DEFAULT
        };
        let Some(Contents::Items(items)) = self.contents(map, &all, machine) else {
            return Err(PathError::Empty);
        };
        if items.found.iter().any(|(key, _)| key.is_none()) {
            let type_name = self.type_name(map.type_ref)?;
            return Err(PathError::NotIndexable { type_name });
        }
        for (own, value) in &items.found {
            if let Some(own) = own
                && self.is_key(own, key, machine)
            {
                return Ok(value.clone());
            }
        }
        if let Some(why) = items.damaged {
            return Err(PathError::Damaged(why));
        }
        if items.count > items.found.len() as u64 {
            return Err(PathError::Damaged(
                "it has too many elements to look through",
            ));
        }
        Err(PathError::NoKey {
            key: match key {
                Key::Number(number) => number.to_string(),
                Key::Text(text) => quoted(text.as_bytes()),
            },
        })
    }

    fn is_key(&self, own: &Object, key: &Key<'_>, machine: &dyn Machine) -> bool {
        match key {
            Key::Number(wanted) => match self.number(own, machine).map(|number| number.rank) {
                Ok(Rank::Signed(own)) => own == i128::from(*wanted),
                Ok(Rank::Unsigned(own)) => u128::try_from(*wanted) == Ok(own),
                Ok(Rank::Float(own)) => own.partial_cmp(&(*wanted as f64)) == Some(Ordering::Equal),
                Err(_) => false,
            },
            Key::Text(wanted) => {
                let limits = Limits {
                    string: wanted.len() + 1,
                    ..Limits::DEFAULT
                };
                let own = self.render(own, &limits, machine).text;
                // The text of a pointer to characters starts with the address.
                let text = match own.strip_prefix("0x").and_then(|own| own.split_once(' ')) {
                    Some((_, text)) => text,
                    None => &own,
                };
                text == quoted(wanted.as_bytes()) || text == *wanted
            }
        }
    }
}

/// Returns the element at a position.
fn positioned(items: &Items, index: i64) -> Result<Object, PathError> {
    let found = usize::try_from(index)
        .ok()
        .and_then(|position| items.found.get(position));
    match (found, items.damaged) {
        (Some((_, value)), _) => Ok(value.clone()),
        (None, Some(why)) => Err(PathError::Damaged(why)),
        (None, None) => Err(PathError::OutsideContainer {
            index,
            count: items.count,
        }),
    }
}
