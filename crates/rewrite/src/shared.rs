//! Manages added locals that several places of a function share. Each place needs them only
//! briefly.

use wasmparser::ValType;

use crate::RewriteError;
use crate::types::val_type;

/// Shared locals by type. Each type has enough locals for any one place.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedLocals {
    /// The number of the first local.
    first: u32,
    groups: Vec<(u32, ValType)>,
}

impl SharedLocals {
    /// Makes room for values of these types at one place.
    pub(crate) fn add(&mut self, types: &[ValType]) {
        let mut counts: Vec<(u32, ValType)> = Vec::new();
        for &ty in types {
            match counts.iter_mut().find(|group| group.1 == ty) {
                Some(group) => group.0 += 1,
                None => counts.push((1, ty)),
            }
        }
        for (count, ty) in counts {
            match self.groups.iter_mut().find(|group| group.1 == ty) {
                Some(group) => group.0 = group.0.max(count),
                None => self.groups.push((count, ty)),
            }
        }
    }

    /// Numbers the locals after those that a function has so far. `next` is the number of the first
    /// free local. The call advances it past the new locals.
    pub(crate) fn place(
        &mut self,
        next: &mut u32,
        groups: &mut Vec<(u32, wasm_encoder::ValType)>,
    ) -> Result<(), RewriteError> {
        self.first = *next;
        for &(count, ty) in &self.groups {
            *next += count;
            groups.push((count, val_type(ty)?));
        }
        Ok(())
    }

    /// Returns the locals for values of these types.
    pub(crate) fn of(&self, types: &[ValType]) -> Vec<u32> {
        let mut next = Vec::new();
        let mut first = self.first;
        for &(count, ty) in &self.groups {
            next.push((ty, first));
            first += count;
        }
        let of = |ty: &ValType| {
            let (_, local) = next.iter_mut().find(|group| group.0 == *ty)?;
            *local += 1;
            Some(*local - 1)
        };
        types.iter().filter_map(of).collect()
    }
}
