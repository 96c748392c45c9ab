//! Reads arrays with computed lengths (DWARF 5, section 5.5). For such an array, the debug
//! information names the variable that holds the length, or gives an expression for it. The type
//! belongs to a moment, so its [`TypeRef`] refers to the lengths found at that moment.

use std::sync::Arc;

use afterimage_ids::OrigOffset;
use gimli::DwAt;

use super::size::CHAIN;
use super::{TypeKind, TypeRef};
use crate::debug::{EntryId, Next};
use crate::expression::Context;
use crate::location::{EntryLocation, select};
use crate::place::Machine;
use crate::variable::{Variable, VariableKind};
use crate::{DebugError, PathError, Unavailable, Variables};

/// The dimensions of arrays at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lengths {
    arrays: Vec<(EntryId, Vec<Option<u64>>)>,
    /// The reason why a length is unknown.
    why: Option<Unavailable>,
}

impl Lengths {
    pub(crate) fn of(&self, array: EntryId) -> Option<&[Option<u64>]> {
        let mut arrays = self.arrays.iter();
        let (_, dimensions) = arrays.find(|(own, _)| *own == array)?;
        Some(dimensions)
    }
}

impl Variables<'_> {
    /// Returns the type of a variable with the lengths of its arrays at a moment. O(nesting depth
    /// of its types).
    pub(crate) fn with_lengths(
        &self,
        variable: &Variable,
        at: Option<OrigOffset>,
        machine: &dyn Machine,
    ) -> TypeRef {
        let type_ref = variable.type_ref;
        let mut lengths = Lengths::default();
        let mut next = type_ref;
        for _ in 0..CHAIN {
            let Ok(described) = self.describe(next) else {
                break;
            };
            next = match &described.kind {
                TypeKind::Alias { of, .. } => *of,
                TypeKind::Pointer { to, .. } => *to,
                TypeKind::Array {
                    element,
                    dimensions,
                    ..
                } => {
                    if let Some(array) = next.entry
                        && dimensions.contains(&None)
                    {
                        let found = self.dimensions(array, dimensions, variable, at, machine);
                        match found {
                            Ok(Some(found)) => lengths.arrays.push((array, found)),
                            Ok(None) => {}
                            Err(why) => lengths.why = Some(why),
                        }
                    }
                    *element
                }
                _ => break,
            };
        }
        if lengths == Lengths::default() {
            type_ref
        } else {
            self.types.of_moment(type_ref, lengths)
        }
    }

    /// Returns the dimensions of an array, including computed dimensions. Returns `None` if the
    /// array has no computed dimensions.
    fn dimensions(
        &self,
        array: EntryId,
        fixed: &[Option<u64>],
        variable: &Variable,
        at: Option<OrigOffset>,
        machine: &dyn Machine,
    ) -> Result<Option<Vec<Option<u64>>>, Unavailable> {
        let mut subranges = Vec::new();
        self.debug.walk(
            array.unit,
            Some(array.offset),
            |_| true,
            |depth, entry| {
                if depth == 1 && entry.tag == gimli::DW_TAG_subrange_type {
                    subranges.push(entry);
                }
                Ok(if depth == 0 { Next::Into } else { Next::Over })
            },
        )?;
        let mut found = fixed.to_vec();
        let mut is_computed = false;
        for (length, subrange) in found.iter_mut().zip(&subranges) {
            if length.is_some() {
                continue;
            }
            let one = |attribute: DwAt| match subrange.value(attribute) {
                None => Ok(None),
                Some(value) if value.udata_value().is_some() || value.sdata_value().is_some() => {
                    Ok(None)
                }
                Some(_) => self.computed(subrange.id, attribute, variable, at, machine),
            };
            *length = match one(gimli::DW_AT_count)? {
                Some(count) => Some(count),
                None => {
                    let lower = subrange.number(gimli::DW_AT_lower_bound).unwrap_or(0);
                    let upper = one(gimli::DW_AT_upper_bound)?;
                    upper.map(|upper| upper.wrapping_add(1).saturating_sub(lower))
                }
            };
            is_computed |= length.is_some();
        }
        Ok(is_computed.then_some(found))
    }

    /// Returns the value of the variable to which an attribute refers, or of its expression.
    fn computed(
        &self,
        id: EntryId,
        attribute: DwAt,
        of: &Variable,
        at: Option<OrigOffset>,
        machine: &dyn Machine,
    ) -> Result<Option<u64>, Unavailable> {
        let entry = self.debug.entry(id)?;
        let refers = entry.value(attribute);
        let refers = refers.and_then(|value| self.debug.reference(id.unit, value));
        let Some(held) = refers else {
            let context = Context {
                debug: &self.debug,
                machine,
                frame: of.frame.zip(at),
            };
            return match select(&self.debug, id, attribute, at)? {
                EntryLocation::Expression(unit, expression) => {
                    context.value(unit, expression).map(Some)
                }
                _ => Ok(None),
            };
        };
        let entry = self.instance(held, of, at)?.unwrap_or(held);
        let type_ref = TypeRef::new(self.debug.type_of(entry)?);
        let length = Variable {
            name: String::new(),
            type_ref,
            kind: VariableKind::Local,
            entry,
            ..of.clone()
        };
        let object = self.locate(&length, at, machine)?;
        let bytes = self.size(type_ref)?.unwrap_or(0);
        let held = self.bits(&object, bytes, machine)?;
        let outside = Unavailable::Unsupported("a length of more than 64 bits");
        u64::try_from(held).map(Some).map_err(|_| outside)
    }

    /// Returns the instance of a variable in the code inlined at an offset.
    fn instance(
        &self,
        origin: EntryId,
        of: &Variable,
        at: Option<OrigOffset>,
    ) -> Result<Option<EntryId>, DebugError> {
        let (Some(function), Some(at), true) = (of.frame, at, of.inlined > 0) else {
            return Ok(None);
        };
        let Some((func, body)) = self.debug.sections.function_at(at) else {
            return Ok(None);
        };
        let scopes = crate::FunctionScopes::read(&self.debug, func, body, function)?;
        for scope in scopes.around(at) {
            for &variable in &scope.variables {
                if self.debug.origin(&self.debug.entry(variable)?) == Some(origin) {
                    return Ok(Some(variable));
                }
            }
        }
        Ok(None)
    }

    /// Returns the error for a type of unknown size, with the reason.
    pub(crate) fn incomplete(&self, of: TypeRef) -> Result<PathError, DebugError> {
        let type_name = self.type_name(of)?;
        let lengths: Option<Arc<Lengths>> = self.types.lengths(of);
        Ok(match lengths.and_then(|lengths| lengths.why.clone()) {
            Some(why) => PathError::Length { type_name, why },
            None => PathError::Incomplete { type_name },
        })
    }
}
