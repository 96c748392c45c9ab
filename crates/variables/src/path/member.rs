//! Finds members by their names.

use std::collections::VecDeque;

use crate::nearest::nearest;
use crate::object::Object;
use crate::place::Machine;
use crate::types::{Member, Record, TypeKind, TypeRef};
use crate::{DebugError, PathError, Variables};

/// The maximum nesting of smart pointers and cells that are searched for a member.
const OWNERS: usize = 8;

/// The maximum number of anonymous members and base classes that are searched for a member.
const SEARCHED: usize = 1 << 12;

impl Variables<'_> {
    /// Whether objects of a type have a member with this name, possibly inherited or in an
    /// anonymous part.
    pub(super) fn has_member(&self, of: TypeRef, name: &str) -> Result<bool, PathError> {
        let mut waiting = vec![of];
        for _ in 0..SEARCHED {
            let Some(inside) = waiting.pop() else {
                return Ok(false);
            };
            let Some(record) = self.record(inside)? else {
                continue;
            };
            if record.members.iter().any(|member| is_called(member, name)) {
                return Ok(true);
            }
            let parts = record.members.iter();
            let parts = parts.filter(|member| member.base || member.name.is_none());
            waiting.extend(parts.map(|member| member.type_ref));
        }
        Err(DebugError::TooMuch {
            what: "base classes",
        }
        .into())
    }

    /// Returns a member of an object. If there is none, returns a member of the object that this
    /// object owns, or the number of this object's elements.
    pub(super) fn named_member(
        &self,
        object: Object,
        name: &str,
        arrow: bool,
        machine: &dyn Machine,
    ) -> Result<Object, PathError> {
        let mut at = self.owner(object, arrow, machine)?;
        let mut first = None;
        for _ in 0..OWNERS {
            let error = match self.own_member(&at, name, machine) {
                Err(error @ PathError::NoMember { .. }) => error,
                found => return found,
            };
            let first = first.get_or_insert(error);
            if let Some(count) = self.count_of(&at, name, machine)? {
                return Ok(count);
            }
            at = match self.inside(&at, machine)? {
                Some(inside) => self.owner(inside, false, machine)?,
                // Rust's `.` follows any number of references.
                None if self.type_name(at.type_ref)?.starts_with('&') => {
                    self.owner(at, false, machine)?
                }
                None => return Err(first.clone()),
            };
        }
        Err(first.unwrap_or(PathError::Null))
    }

    /// Returns the object to search for a member. This is a pointer's target or, if `arrow` is set,
    /// the contents of a smart pointer. Otherwise it is the object itself.
    fn owner(
        &self,
        object: Object,
        arrow: bool,
        machine: &dyn Machine,
    ) -> Result<Object, PathError> {
        let described = self.describe(self.plain(object.type_ref)?)?;
        Ok(match described.kind {
            // Rust's references are pointers in DWARF, so `.` also follows them.
            TypeKind::Pointer { .. } => self.pointee(&object, 0, machine)?,
            _ if arrow => match self.inside(&object, machine)? {
                Some(held) => held,
                None => {
                    let type_name = self.type_name(object.type_ref)?;
                    return Err(PathError::NotPointer { type_name });
                }
            },
            _ => object,
        })
    }

    fn own_member(
        &self,
        object: &Object,
        name: &str,
        machine: &dyn Machine,
    ) -> Result<Object, PathError> {
        let mut known = Vec::new();
        let mut searched = 0;
        // Anonymous members and base classes are searched level by level, the nearest first.
        let mut waiting = VecDeque::from([object.clone()]);
        while let Some(inside) = waiting.pop_front() {
            searched += 1;
            if searched > SEARCHED {
                return Err(DebugError::TooMuch {
                    what: "base classes",
                }
                .into());
            }
            let Some(record) = self.record(inside.type_ref)? else {
                continue;
            };
            if let Some(member) = record.members.iter().find(|member| is_called(member, name)) {
                return Ok(self.member(&inside, member, machine)?);
            }
            if let Some(found) = self.variant(&inside, &record, name, machine)? {
                return Ok(found);
            }
            for member in &record.members {
                known.extend(member.name.clone());
                if member.base || member.name.is_none() {
                    waiting.push_back(self.member(&inside, member, machine)?);
                }
            }
            let variants = record.variants.iter().flat_map(|part| &part.variants);
            known.extend(
                variants
                    .flat_map(|variant| &variant.members)
                    .filter_map(|member| member.name.clone()),
            );
        }
        let mut members = nearest(name, known.iter().map(String::as_str));
        if members.is_empty() && known.len() <= 8 {
            members = known;
        }
        let type_name = self.type_name(object.type_ref)?;
        Err(PathError::NoMember {
            type_name,
            name: name.into(),
            members,
        })
    }

    /// Returns the variant with this name, if it is active, or the active variant's member with
    /// this name.
    fn variant(
        &self,
        object: &Object,
        record: &Record,
        name: &str,
        machine: &dyn Machine,
    ) -> Result<Option<Object>, PathError> {
        for part in &record.variants {
            let mut all = part.variants.iter().flat_map(|variant| &variant.members);
            if !all.any(|member| is_called(member, name)) {
                continue;
            }
            let active = self.active(object, part, machine)?.unwrap_or_default();
            return match active.iter().find(|member| is_called(member, name)) {
                Some(member) => Ok(Some(self.member(object, member, machine)?)),
                None => {
                    let active = active.first().and_then(|member| member.name.clone());
                    let active = active.unwrap_or_else(|| "unknown".into());
                    Err(PathError::OtherVariant {
                        name: name.into(),
                        active,
                    })
                }
            };
        }
        Ok(None)
    }
}

fn is_called(member: &Member, name: &str) -> bool {
    member.name.as_deref() == Some(name)
}
