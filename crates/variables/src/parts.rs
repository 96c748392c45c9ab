//! Lists the parts of an object, one level at a time, for debuggers in which users open a value
//! step by step.

use std::ops::Range;

use crate::containers::Contents;
use crate::object::Object;
use crate::place::Machine;
use crate::types::{CHAIN, Member, TypeKind};
use crate::{Limits, PathError, Variables};

/// A part of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The member's name, `<Base>` for a base class, `[3]` for an element, `*` for the target of a
    /// pointer, or `[key]` for an element of a map. Empty for an anonymous member.
    pub name: String,
    /// The part. If it has no place, the reason or the text to show instead.
    pub object: Result<Object, String>,
}

/// Some of the parts of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parts {
    /// The number of all parts of the object.
    pub count: u64,
    /// Whether the parts are elements, numbered from 0.
    pub indexed: bool,
    /// The requested parts. For a damaged container, a last part without a name holds the reason.
    pub parts: Vec<Part>,
}

impl Parts {
    fn named(parts: Vec<Part>, wanted: Range<u64>) -> Self {
        let count = parts.len() as u64;
        let within = |position: &u64| wanted.contains(position);
        let parts = (0..)
            .zip(parts)
            .filter(|(position, _)| within(position))
            .map(|(_, part)| part)
            .collect();
        Self {
            count,
            indexed: false,
            parts,
        }
    }

    fn indexed(
        count: u64,
        wanted: Range<u64>,
        element: impl Fn(u64) -> Result<Object, PathError>,
    ) -> Self {
        let parts = wanted.start.min(count)..wanted.end.min(count);
        let parts = parts.map(|index| Part {
            name: format!("[{index}]"),
            object: element(index).map_err(|why| why.to_string()),
        });
        Self {
            count,
            indexed: true,
            parts: parts.collect(),
        }
    }
}

impl Variables<'_> {
    /// Returns the parts of an object with the numbers in `wanted`, counted from 0. A number, a
    /// string or a null pointer has no parts.
    ///
    /// # Errors
    /// Returns an error if the parts cannot be determined, because the object has no value, or its
    /// type is broken or incomplete. A single part without a place is no error.
    pub fn parts(
        &self,
        object: &Object,
        wanted: Range<u64>,
        machine: &dyn Machine,
    ) -> Result<Parts, PathError> {
        let mut object = object.clone();
        // A wrapper has the parts of its contents.
        for _ in 0..CHAIN {
            let limits = Limits {
                elements: wanted.end,
                ..Limits::DEFAULT
            };
            let plain = self.plain(object.type_ref)?;
            let described = self.describe(plain)?;
            let one = |name: String, object| {
                let object = Ok(object);
                Parts::named(vec![Part { name, object }], wanted.clone())
            };
            match &described.kind {
                TypeKind::Record(_) => {}
                TypeKind::Array { .. } => {
                    let Some((of, Some(count))) = self.elements(plain, &described) else {
                        return Ok(Parts::default());
                    };
                    let element = |index| self.element(&object, of, index);
                    return Ok(Parts::indexed(count, wanted, element));
                }
                TypeKind::Pointer { to, .. } => {
                    let to = *to;
                    return Ok(match (self.size(to)?, self.pointee(&object, 0, machine)) {
                        (_, Err(PathError::Null)) | (None, _) => Parts::default(),
                        (Some(_), pointee) => one("*".to_owned(), pointee?),
                    });
                }
                _ => return Ok(Parts::default()),
            }
            match self.contents(&object, &limits, machine) {
                None => return self.members(&object, wanted, machine),
                Some(Contents::Text(_) | Contents::Quantity(..) | Contents::Held(None)) => {
                    return Ok(Parts::default());
                }
                Some(Contents::Sequence(sequence)) if sequence.text => {
                    return Ok(Parts::default());
                }
                Some(Contents::Sequence(sequence)) => {
                    let element = |index| self.nth(&sequence, index);
                    return Ok(Parts::indexed(sequence.count, wanted, element));
                }
                Some(Contents::Held(Some(held))) => object = held,
                Some(Contents::Noted(value, state)) => {
                    let value = Part {
                        name: "value".to_owned(),
                        object: Ok(value),
                    };
                    let state = Part {
                        name: "state".to_owned(),
                        object: Err(state),
                    };
                    return Ok(Parts::named(vec![value, state], wanted));
                }
                Some(Contents::Alternative(index, held)) => {
                    return Ok(one(format!("[{index}]"), held));
                }
                Some(Contents::Pointer { address: 0, .. }) => return Ok(Parts::default()),
                Some(Contents::Pointer { to, .. }) => return Ok(one("*".to_owned(), to)),
                Some(Contents::Items(items)) => {
                    let is_map = items.found.iter().any(|(key, _)| key.is_some());
                    let all = (0..).zip(items.found);
                    let own = all.filter(|(position, _)| wanted.contains(position));
                    let parts = own.map(|(position, (key, value))| Part {
                        name: match key {
                            Some(key) => {
                                format!("[{}]", self.render(&key, &Limits::default(), machine))
                            }
                            None => format!("[{position}]"),
                        },
                        object: Ok(value),
                    });
                    let mut parts = Vec::from_iter(parts);
                    if let Some(why) = items.damaged {
                        parts.push(Part {
                            name: String::new(),
                            object: Err(PathError::Damaged(why).to_string()),
                        });
                    }
                    return Ok(Parts {
                        count: items.count.max(parts.len() as u64),
                        indexed: !is_map,
                        parts,
                    });
                }
            }
        }
        Ok(Parts::default())
    }

    /// Returns the members of a structure and of its active alternative.
    fn members(
        &self,
        object: &Object,
        wanted: Range<u64>,
        machine: &dyn Machine,
    ) -> Result<Parts, PathError> {
        let Some(record) = self.record(object.type_ref)? else {
            return Ok(Parts::default());
        };
        if record.declaration {
            let type_name = self.type_name(object.type_ref)?;
            return Err(PathError::Incomplete { type_name });
        }
        let mut members: Vec<&Member> = record.members.iter().collect();
        for part in &record.variants {
            let active = self.active(object, part, machine)?;
            members.extend(active.ok_or(PathError::NoVariant)?);
        }
        let mut parts = Vec::new();
        for member in members {
            let name = match &member.name {
                Some(name) => match name.strip_prefix("__") {
                    // rustc names the members of a tuple in this way.
                    Some(number) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                        number.to_owned()
                    }
                    _ => name.clone(),
                },
                None if member.base => format!("<{}>", self.type_name(member.type_ref)?),
                None => String::new(),
            };
            let part = self.member(object, member, machine);
            parts.push(Part {
                name,
                object: part.map_err(|why| why.to_string()),
            });
        }
        Ok(Parts::named(parts, wanted))
    }
}
