//! Evaluates path expressions.

use std::sync::Arc;

use afterimage_ids::OrigOffset;

use super::held::Key;
use super::{Path, Step};
use crate::object::Object;
use crate::place::{Machine, Piece, VariableLocation};
use crate::scopes::FunctionScopes;
use crate::types::TypeKind;
use crate::{PathError, Variables};

impl Variables<'_> {
    /// Returns the object of a path expression at an offset of a function. Without a function,
    /// searches the global variables.
    ///
    /// # Errors
    /// Returns an error if a part of the expression names no object, or an object without a value.
    pub fn resolve(
        &self,
        path: &Path,
        place: Option<(&FunctionScopes, OrigOffset)>,
        machine: &dyn Machine,
    ) -> Result<Object, PathError> {
        let (variable, path) = self.begin(path, place)?;
        let object = self.locate(&variable, place.map(|(_, at)| at), machine)?;
        self.follow(&path, object, machine)
    }

    /// Applies the steps of a path to an object.
    ///
    /// # Errors
    /// Returns an error if a step cannot be applied.
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
                Step::Key(key) => {
                    self.keyed(self.referred(object, machine)?, &Key::Text(key), machine)?
                }
                Step::Member { name, arrow } => {
                    let referred = self.referred(object, machine)?;
                    self.named_member(referred, name, *arrow, machine)?
                }
            };
        }
        Ok(object)
    }

    /// Returns the object to which a C++ reference refers. Returns any other object unchanged.
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
            None => match self.inside(object, machine)? {
                Some(held) => Ok(held),
                None => self.pointee(object, 0, machine),
            },
        }
    }

    fn address_of(&self, object: Object) -> Result<Object, PathError> {
        let address = object.address().ok_or(PathError::NoAddress)?;
        let type_ref = object.type_ref.pointer();
        let bytes = self.sized(type_ref)?;
        let held = address.to_le_bytes();
        let held = held.get(..bytes as usize).unwrap_or(&held);
        let piece = Piece {
            place: VariableLocation::Value(Arc::from(held)),
            offset: 0,
            bytes,
        };
        Ok(Object {
            type_ref,
            pieces: vec![piece],
            bits: None,
        })
    }

    pub(super) fn index_into(
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
        if let TypeKind::Record(_) = described.kind {
            return self.keyed(object, &Key::Number(index), machine);
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
}
