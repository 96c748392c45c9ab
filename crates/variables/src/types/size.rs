//! Computes the sizes of types in bytes.

use super::{TypeKind, TypeRef, Types};
use crate::DebugError;
use crate::debug::Debug;

/// The maximum length of a chain of types. A longer chain counts as a cycle, because no program has
/// chains of that length.
pub(crate) const CHAIN: usize = 256;

/// Returns the size of a value in bytes, or `None` for `void`, functions, incomplete types and
/// arrays of unknown length.
pub(crate) fn size(
    types: &Types,
    debug: &Debug<'_>,
    type_ref: TypeRef,
) -> Result<Option<u64>, DebugError> {
    let mut times = 1u64;
    let mut at = type_ref;
    for _ in 0..CHAIN {
        let described = types.describe(debug, at)?;
        match &described.kind {
            TypeKind::Alias { of, .. } => at = *of,
            TypeKind::Array { .. } if described.bytes.is_some() => {
                return Ok(described.bytes.and_then(|bytes| times.checked_mul(bytes)));
            }
            TypeKind::Array {
                element,
                dimensions,
                ..
            } => {
                let elements = dimensions
                    .iter()
                    .try_fold(times, |all, count| all.checked_mul((*count)?));
                let Some(elements) = elements else {
                    return Ok(None);
                };
                times = elements;
                at = *element;
            }
            TypeKind::MemberPointer { to, .. } if described.bytes.is_none() => {
                // A pointer to a data member is an offset, and a pointer to a function member is
                // two words (Itanium C++ ABI, section 2.3).
                let word = at.entry.map_or(4, |entry| {
                    u64::from(debug.unit(entry.unit).header.address_size())
                });
                let function =
                    matches!(types.describe(debug, *to)?.kind, TypeKind::Function { .. });
                return Ok(times.checked_mul(if function { 2 * word } else { word }));
            }
            _ => return Ok(described.bytes.and_then(|bytes| times.checked_mul(bytes))),
        }
    }
    Err(DebugError::Endless {
        at: type_ref.entry.map_or(0, |entry| debug.at(entry)),
    })
}

/// Returns a type stripped of aliases and qualifiers.
pub(crate) fn plain(
    types: &Types,
    debug: &Debug<'_>,
    type_ref: TypeRef,
) -> Result<TypeRef, DebugError> {
    let mut at = type_ref;
    for _ in 0..CHAIN {
        match types.describe(debug, at)?.kind {
            TypeKind::Alias { of, .. } => at = of,
            _ => return Ok(at),
        }
    }
    Err(DebugError::Endless {
        at: type_ref.entry.map_or(0, |entry| debug.at(entry)),
    })
}
