//! Stores the types that have been read.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::lengths::Lengths;
use super::read::{Reader, Spent};
use super::{Encoding, Type, TypeKind, TypeRef};
use crate::DebugError;
use crate::debug::{Debug, EntryId};

/// The lengths to which [`TypeRef`]s refer, numbered from 1. They are global to the process,
/// because an object found with one reader of a module may be shown with another.
static LENGTHS: Mutex<Vec<Arc<Lengths>>> = Mutex::new(Vec::new());

/// The number of recent lengths that are compared with new lengths, so that equal lengths share one
/// number. Recent lengths are those of the open activations.
const RECENT: usize = 16;

fn all_lengths() -> MutexGuard<'static, Vec<Arc<Lengths>>> {
    LENGTHS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The types read so far. Each type takes memory in proportion to its entry and the entries below
/// it.
#[derive(Default)]
pub(crate) struct Types {
    read: Mutex<ReadTypes>,
}

#[derive(Default)]
struct ReadTypes {
    types: HashMap<EntryId, Arc<Type>>,
    spent: Spent,
}

impl Types {
    fn known(&self) -> MutexGuard<'_, ReadTypes> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a type with the lengths of its arrays at a moment.
    pub(crate) fn of_moment(&self, type_ref: TypeRef, lengths: Lengths) -> TypeRef {
        let mut all = all_lengths();
        let mut recent = all.iter().rev().take(RECENT);
        let number = match recent.position(|known| **known == lengths) {
            Some(before) => all.len() - before,
            None => {
                all.push(Arc::new(lengths));
                all.len()
            }
        };
        TypeRef {
            lengths: u32::try_from(number).unwrap_or(0),
            ..type_ref
        }
    }

    /// Returns the lengths to which a type refers.
    pub(crate) fn lengths(&self, type_ref: TypeRef) -> Option<Arc<Lengths>> {
        let number = (type_ref.lengths as usize).checked_sub(1)?;
        all_lengths().get(number).cloned()
    }

    pub(crate) fn describe(
        &self,
        debug: &Debug<'_>,
        type_ref: TypeRef,
    ) -> Result<Arc<Type>, DebugError> {
        let found = self.without_lengths(debug, type_ref)?;
        let Some(lengths) = self.lengths(type_ref) else {
            return Ok(found);
        };
        let inside = |of: TypeRef| TypeRef {
            lengths: type_ref.lengths,
            ..of
        };
        let mut found = Type::clone(&found);
        match &mut found.kind {
            TypeKind::Alias { of, .. } => *of = inside(*of),
            TypeKind::Pointer { to, .. } => *to = inside(*to),
            TypeKind::Array {
                element,
                dimensions,
                ..
            } => {
                *element = inside(*element);
                let computed = type_ref.entry.and_then(|array| lengths.of(array));
                let computed = computed.and_then(|all| all.get(type_ref.dimensions as usize..));
                if let Some(computed) =
                    computed.filter(|all| type_ref.pointers == 0 && !all.is_empty())
                {
                    *dimensions = computed.to_vec();
                }
            }
            _ => {}
        }
        Ok(Arc::new(found))
    }

    fn without_lengths(
        &self,
        debug: &Debug<'_>,
        type_ref: TypeRef,
    ) -> Result<Arc<Type>, DebugError> {
        if type_ref.pointers > 0 {
            let to = TypeRef {
                pointers: type_ref.pointers - 1,
                ..type_ref
            };
            let kind = TypeKind::Pointer {
                to,
                reference: false,
                rvalue: false,
            };
            return Ok(Arc::new(Type {
                name: None,
                bytes: Some(match type_ref.entry {
                    Some(entry) => u64::from(debug.unit(entry.unit).header.address_size()),
                    None => 4,
                }),
                kind,
            }));
        }
        if type_ref == TypeRef::COUNT {
            return Ok(Arc::new(Type {
                name: Some("size_t".into()),
                bytes: Some(8),
                kind: TypeKind::Base(Encoding::Unsigned),
            }));
        }
        let Some(id) = type_ref.entry else {
            return Ok(Arc::new(Type {
                name: Some("void".into()),
                bytes: None,
                kind: TypeKind::Unspecified,
            }));
        };
        let whole = self.entry(debug, id)?;
        match &whole.kind {
            TypeKind::Array {
                element,
                dimensions,
                vector,
            } if type_ref.dimensions > 0 => {
                let rest = dimensions
                    .get(type_ref.dimensions as usize..)
                    .unwrap_or_default();
                if rest.is_empty() {
                    return self.describe(debug, *element);
                }
                let kind = TypeKind::Array {
                    element: *element,
                    dimensions: rest.to_vec(),
                    vector: *vector,
                };
                Ok(Arc::new(Type {
                    name: None,
                    bytes: None,
                    kind,
                }))
            }
            _ => Ok(whole),
        }
    }

    fn entry(&self, debug: &Debug<'_>, id: EntryId) -> Result<Arc<Type>, DebugError> {
        if let Some(found) = self.known().types.get(&id) {
            return Ok(found.clone());
        }
        let reader = Reader {
            debug,
            spent: Cell::new(self.known().spent),
        };
        let read = Arc::new(reader.read(id)?);
        let mut known = self.known();
        known.spent = reader.spent.get();
        known.types.insert(id, read.clone());
        Ok(read)
    }
}
