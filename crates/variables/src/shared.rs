//! Finds variables that share their place in memory with another variable.
//!
//! Optimised code keeps two variables in one place if one of them is no longer needed when the
//! other changes. For example, rustc merges an argument of an inlined call with the variable from
//! which it is copied. The debug information gives this place for both variables in their whole
//! scopes. Unoptimised code gives each variable its own place.

use std::cell::RefCell;
use std::collections::HashSet;

use afterimage_ids::OrigOffset;
use gimli::{AttributeValue, Expression};

use crate::debug::{EntryId, Slice};
use crate::expression::Context;
use crate::place::{Machine, VariableLocation, Word};
use crate::scopes::{FunctionScopes, Scope};
use crate::types::TypeRef;
use crate::variable::Variable;
use crate::{DebugError, Variables};

/// A moment that records the locals and globals on which an address is based. Each of them has the
/// same value, which is half the size of the address space. It is not 0, because a frame at 0
/// counts as not set.
#[derive(Default)]
struct Base {
    /// The locals and globals that were read. Each entry has a flag, which is set for a local, and
    /// the index.
    read: RefCell<Vec<(bool, u32)>>,
    /// Whether anything else was read, which makes the address meaningless.
    unknown: RefCell<bool>,
}

impl Base {
    fn base(&self, is_local: bool, index: u32) -> Option<Word> {
        self.read.borrow_mut().push((is_local, index));
        Some(Word::w32(1 << 31))
    }

    fn unknown<T>(&self) -> Option<T> {
        self.unknown.replace(true);
        None
    }
}

impl Machine for Base {
    fn local(&self, index: u32) -> Option<Word> {
        self.base(true, index)
    }

    fn global(&self, index: u32) -> Option<Word> {
        self.base(false, index)
    }

    fn stack(&self, _: u32) -> Option<Word> {
        self.unknown()
    }

    fn memory(&self, _: u64, _: &mut [u8]) -> bool {
        self.unknown::<()>().is_some()
    }

    fn at_entry(&self, _: u32) -> Option<Word> {
        self.unknown()
    }
}

/// A variable's place in a part of its scope, as the base of its address and the bounds of its
/// bytes.
struct Stay {
    base: Vec<(bool, u32)>,
    start: u64,
    end: u64,
    /// The position of the variable's scope.
    scope: usize,
    entry: EntryId,
}

impl<'a> Variables<'a> {
    /// Whether another variable occupies the same bytes of memory, in a scope that encloses, or is
    /// nested in, the variable's own scope. O(1) after the first query about a function, which
    /// reads the locations of all its variables.
    ///
    /// # Errors
    /// Returns an error if an entry is broken.
    pub fn is_shared(
        &self,
        function: &FunctionScopes,
        variable: &Variable,
    ) -> Result<bool, DebugError> {
        let shared = match function.shared.get() {
            Some(shared) => shared,
            None => {
                let found = self.shared(function)?;
                function.shared.get_or_init(|| found)
            }
        };
        Ok(shared.contains(&variable.entry))
    }

    fn shared(&self, function: &FunctionScopes) -> Result<HashSet<EntryId>, DebugError> {
        let mut stays = Vec::new();
        for (position, scope) in function.scopes.iter().enumerate() {
            for &entry in &scope.variables {
                self.stays(function, (position, scope), entry, &mut stays)?;
            }
        }
        stays.sort_by(|a, b| (&a.base, a.start).cmp(&(&b.base, b.start)));
        let mut last = Vec::from_iter(1..=function.scopes.len());
        for (position, scope) in function.scopes.iter().enumerate().skip(1).rev() {
            let parent = scope.parent as usize;
            last[parent] = last[parent].max(last[position]);
        }
        let mut found = HashSet::new();
        let mut rest = stays.as_mut_slice();
        while let Some(first) = rest.first() {
            // Visit each group of overlapping variables.
            let (mut count, mut end) = (1, first.end);
            while let Some(next) = rest.get(count)
                && next.base == rest[0].base
                && next.start < end
            {
                end = end.max(next.end);
                count += 1;
            }
            let (together, others) = rest.split_at_mut(count);
            rest = others;
            together.sort_by_key(|stay| stay.scope);
            let mut around: Vec<&Stay> = Vec::new();
            for stay in &*together {
                while around
                    .pop_if(|outer| last[outer.scope] <= stay.scope)
                    .is_some()
                {}
                match around.last() {
                    Some(outer) if outer.entry == stay.entry => continue,
                    Some(outer) => found.extend([outer.entry, stay.entry]),
                    None => {}
                }
                around.push(stay);
            }
        }
        Ok(found)
    }

    /// Returns the places of a variable in memory that are at a fixed distance from a local of the
    /// function, or from a global.
    fn stays(
        &self,
        function: &FunctionScopes,
        (position, scope): (usize, &Scope),
        entry: EntryId,
        stays: &mut Vec<Stay>,
    ) -> Result<(), DebugError> {
        let Some((unit, value)) = self.debug.attribute(entry, gimli::DW_AT_location)? else {
            return Ok(());
        };
        let type_ref = TypeRef::new(self.debug.type_of(entry)?);
        let bytes = self.size(type_ref)?.unwrap_or(0);
        // The frame exists at the end of a scope.
        let at = scope.code.last().map(|range| range.end.0.saturating_sub(1));
        let frame = at.map(|at| (function.entry, OrigOffset(at)));
        let mut add = |expression: Expression<Slice<'a>>| {
            let base = Base::default();
            let context = Context {
                debug: &self.debug,
                machine: &base,
                frame,
            };
            let pieces = context.pieces(unit, expression, None, bytes);
            if base.unknown.take() {
                return;
            }
            let read = base.read.take();
            for piece in pieces.unwrap_or_default() {
                if let VariableLocation::Memory(start) = piece.place {
                    stays.push(Stay {
                        base: read.clone(),
                        start,
                        end: start.saturating_add(piece.bytes),
                        scope: position,
                        entry,
                    });
                }
            }
        };
        if let AttributeValue::Exprloc(expression) = value {
            add(expression);
            return Ok(());
        }
        let broken = self.debug.broken(entry);
        let list = self.debug.unit(unit).attr_locations(value);
        let Some(mut list) = list.map_err(&broken)? else {
            return Ok(());
        };
        while let Some(part) = list.next().map_err(&broken)? {
            add(part.data);
        }
        Ok(())
    }
}
