//! Identifies the callee of a call through a table. Each function that a table may contain writes
//! its number on entry.

use std::collections::HashMap;

use afterimage_ids::{EntityRef, FuncId, TypeId};
use afterimage_program::Program;

use crate::width_of;

/// The numbers that functions write at their entry, because they may be called through a table.
///
/// An indirect call compares types by structure, so a number only has to distinguish a function
/// from other functions of the same type.
#[derive(Clone, Debug, Default)]
pub struct EntryIds {
    /// The number of each function, imports included, and the number's width in bits.
    ids: Vec<Option<(u32, u8)>>,
    /// For each type, the class of equal types.
    classes: Vec<usize>,
    /// The functions of each class, in the order of their numbers.
    members: Vec<Vec<FuncId>>,
}

impl EntryIds {
    /// Numbers the functions whose address is taken. Time: O(functions + types).
    pub fn new(program: &Program) -> Self {
        let mut first = HashMap::new();
        let classes: Vec<usize> = program
            .types
            .iter()
            .map(|(id, ty)| *first.entry(ty).or_insert(id.index()))
            .collect();
        let imported = program.imports.iter().map(|import| import.ty);
        let defined = program.functions.iter().map(|function| function.ty);
        let types: Vec<TypeId> = imported.chain(defined).collect();
        let mut members = vec![Vec::new(); program.types.len()];
        let mut numbers = vec![None; types.len()];
        for (i, ty) in types.iter().enumerate() {
            let function = FuncId::new(i);
            if program.address_taken.contains(function) {
                let class: &mut Vec<FuncId> = &mut members[classes[ty.index()]];
                numbers[i] = Some(class.len() as u32);
                class.push(function);
            }
        }
        let ids = numbers
            .iter()
            .zip(&types)
            .map(|(number, ty)| {
                let width = width_of(members[classes[ty.index()]].len() as u64);
                number.map(|number| (number, width))
            })
            .collect();
        Self {
            ids,
            classes,
            members,
        }
    }

    /// Returns a function's number and the number's width in bits, or `None` if the function has no
    /// number. The width is 0 if no other numbered function has the same type.
    pub fn of(&self, function: FuncId) -> Option<(u32, u8)> {
        self.ids.get(function.index()).copied().flatten()
    }

    /// Returns the width, in bits, of the numbers of a type's functions.
    pub fn width(&self, ty: TypeId) -> u8 {
        width_of(self.class(ty).len() as u64)
    }

    /// Returns the function of a type with the given number.
    pub fn function(&self, ty: TypeId, number: u32) -> Option<FuncId> {
        self.class(ty).get(number as usize).copied()
    }

    fn class(&self, ty: TypeId) -> &[FuncId] {
        &self.members[self.classes[ty.index()]]
    }
}
