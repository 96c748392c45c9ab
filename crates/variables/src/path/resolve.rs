//! From a path expression to an object.

use std::collections::VecDeque;
use std::sync::Arc;

use afterimage_ids::OrigOffset;

use super::{Path, Step};
use crate::location::distance;
use crate::nearest::nearest;
use crate::object::Object;
use crate::place::{Machine, Piece, Place};
use crate::scopes::FunctionScopes;
use crate::types::{Member, Record, TypeKind};
use crate::variable::Variable;
use crate::{DebugError, PathError, Unavailable, Variables};

/// So many anonymous members and base classes are searched for a member.
const SEARCHED: usize = 1 << 12;

impl Variables<'_> {
    /// The variable that a name means at an offset of a function: the innermost one in scope, or else a global one. Without a
    /// function, a global one.
    ///
    /// # Errors
    /// If there is none; [`PathError::NotInScope`] if the function has one elsewhere.
    pub fn find(
        &self,
        name: &str,
        place: Option<(&FunctionScopes, OrigOffset)>,
    ) -> Result<Variable, PathError> {
        let Some((function, at)) = place.filter(|_| !name.contains("::")) else {
            return self.find_global(name);
        };
        let in_scope = self.in_scope_of(function, at)?;
        let names: Vec<String> = in_scope
            .iter()
            .map(|variable| variable.name.clone())
            .collect();
        if let Some(found) = in_scope.into_iter().find(|variable| variable.name == name) {
            return Ok(found);
        }
        match self.find_global(name) {
            Err(PathError::NoVariable {
                name,
                nearest: mut globals,
            }) => {
                if let Some(nearest) = self.elsewhere(function, &name, at)? {
                    return Err(PathError::NotInScope { name, nearest });
                }
                let mut nearest = nearest(&name, names.iter().map(String::as_str));
                globals.retain(|global| !nearest.contains(global));
                nearest.append(&mut globals);
                Err(PathError::NoVariable { name, nearest })
            }
            found => found,
        }
    }

    /// The nearest code of a function where it has a variable of this name. O(variables of the function).
    fn elsewhere(
        &self,
        function: &FunctionScopes,
        name: &str,
        at: OrigOffset,
    ) -> Result<Option<std::ops::Range<OrigOffset>>, PathError> {
        let mut best = None;
        for scope in &function.scopes {
            let mut here = false;
            for &variable in &scope.variables {
                here = here || self.debug.name(variable)?.as_deref() == Some(name);
            }
            if here {
                for range in function.code(scope).iter() {
                    let apart = distance(range, at);
                    if best.as_ref().is_none_or(|(least, _)| apart < *least) {
                        best = Some((apart, range.clone()));
                    }
                }
            }
        }
        Ok(best.map(|(_, range)| range))
    }

    /// The object that a path expression means at an offset of a function, or, without one, among the global variables.
    ///
    /// # Errors
    /// If a part of it names nothing, or nothing that has a value.
    pub fn resolve(
        &self,
        path: &Path,
        place: Option<(&FunctionScopes, OrigOffset)>,
        machine: &dyn Machine,
    ) -> Result<Object, PathError> {
        let variable = self.find(&path.variable, place)?;
        let object = self.locate(&variable, place.map(|(_, at)| at), machine)?;
        self.follow(path, object, machine)
    }

    /// Takes the steps of a path from an object on.
    ///
    /// # Errors
    /// If one of them leads nowhere.
    pub fn follow(
        &self,
        path: &Path,
        object: Object,
        machine: &dyn Machine,
    ) -> Result<Object, PathError> {
        let mut object = object;
        for step in &path.steps {
            object = match step {
                Step::Follow => {
                    let referred = self.referred(object, machine)?;
                    self.pointee_or_first(&referred, machine)?
                }
                Step::Address => self.address_of(self.referred(object, machine)?)?,
                Step::Index(index) => {
                    self.index_into(self.referred(object, machine)?, *index, machine)?
                }
                Step::Member { name, arrow } => {
                    let referred = self.referred(object, machine)?;
                    self.named_member(referred, name, *arrow, machine)?
                }
            };
        }
        Ok(object)
    }

    /// What a C++ reference refers to; any other object itself.
    fn referred(&self, object: Object, machine: &dyn Machine) -> Result<Object, PathError> {
        let described = self.describe(self.plain(object.type_ref)?)?;
        match described.kind {
            TypeKind::Pointer {
                reference: true, ..
            } => self.pointee(&object, 0, machine),
            _ => Ok(object),
        }
    }

    fn pointee_or_first(
        &self,
        object: &Object,
        machine: &dyn Machine,
    ) -> Result<Object, PathError> {
        let plain = self.plain(object.type_ref)?;
        match self.elements(plain, &*self.describe(plain)?) {
            Some(_) => self.index_into(object.clone(), 0, machine),
            None => self.pointee(object, 0, machine),
        }
    }

    fn address_of(&self, object: Object) -> Result<Object, PathError> {
        let address = object.address().ok_or(PathError::NoAddress)?;
        let type_ref = object.type_ref.pointer();
        let bytes = self.sized(type_ref)?;
        let held = address.to_le_bytes();
        let held = held.get(..bytes as usize).unwrap_or(&held);
        let piece = Piece {
            place: Place::Value(Arc::from(held)),
            offset: 0,
            bytes,
        };
        Ok(Object {
            type_ref,
            pieces: vec![piece],
            bits: None,
        })
    }

    fn index_into(
        &self,
        object: Object,
        index: i64,
        machine: &dyn Machine,
    ) -> Result<Object, PathError> {
        let plain = self.plain(object.type_ref)?;
        let described = self.describe(plain)?;
        if let TypeKind::Pointer { .. } = described.kind {
            return self.pointee(&object, index, machine);
        }
        let Some((of, count)) = self.elements(plain, &described) else {
            let type_name = self.type_name(object.type_ref)?;
            return Err(PathError::NotIndexable { type_name });
        };
        let outside = PathError::OutsideArray {
            index,
            count: count.unwrap_or(0),
        };
        let Ok(position) = u64::try_from(index) else {
            return Err(outside);
        };
        if count.is_some_and(|count| position >= count) {
            return Err(outside);
        }
        self.element(&object, of, position)
    }

    fn named_member(
        &self,
        object: Object,
        name: &str,
        arrow: bool,
        machine: &dyn Machine,
    ) -> Result<Object, PathError> {
        let described = self.describe(self.plain(object.type_ref)?)?;
        let object = match described.kind {
            // Rust's references are pointers in DWARF, so `.` follows them too.
            TypeKind::Pointer { .. } => self.pointee(&object, 0, machine)?,
            _ if arrow => {
                let type_name = self.type_name(object.type_ref)?;
                return Err(PathError::NotPointer { type_name });
            }
            _ => object,
        };
        let mut known = Vec::new();
        let mut searched = 0;
        // Anonymous members and base classes are searched as they lie nearer, level by level.
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

    /// The variant of this name, if it is the active one; or the member of this name of the active one.
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
                    let active = active.unwrap_or_else(|| "none that is known".into());
                    Err(PathError::OtherVariant {
                        name: name.into(),
                        active,
                    })
                }
            };
        }
        Ok(None)
    }

    /// Reads the bytes of an object.
    ///
    /// # Errors
    /// If a part of it is unavailable, or it is longer than `most`.
    pub fn bytes(
        &self,
        object: &Object,
        most: usize,
        machine: &dyn Machine,
    ) -> Result<Vec<u8>, Unavailable> {
        let total = object
            .pieces
            .iter()
            .fold(0u64, |all, piece| all.saturating_add(piece.bytes));
        let total = usize::try_from(total).ok().filter(|total| *total <= most);
        let mut into = vec![0; total.ok_or(Unavailable::Unsupported("more bytes than wanted"))?];
        crate::place::read(&object.pieces, &mut into, machine)?;
        Ok(into)
    }
}

fn is_called(member: &Member, name: &str) -> bool {
    member.name.as_deref() == Some(name)
}
