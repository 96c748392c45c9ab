//! The types that were read so far.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::read::{Reader, Spent};
use super::{Type, TypeKind, TypeRef};
use crate::DebugError;
use crate::debug::{Debug, EntryId};

/// The types that were read so far. Each takes memory in proportion to its entry and those below it.
#[derive(Default)]
pub(crate) struct Types {
    read: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    types: HashMap<EntryId, Arc<Type>>,
    spent: Spent,
}

impl Types {
    /// What a type is.
    pub(crate) fn describe(
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
        let known = || self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().types.get(&id) {
            return Ok(found.clone());
        }
        let reader = Reader {
            debug,
            spent: Cell::new(known().spent),
        };
        let read = Arc::new(reader.read(id)?);
        let mut known = known();
        known.spent = reader.spent.get();
        known.types.insert(id, read.clone());
        Ok(read)
    }
}
