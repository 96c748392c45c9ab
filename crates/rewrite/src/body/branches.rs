//! Rewrites branches, calls and their landings, with the labels that added blocks require.

use std::ops::Range;

use afterimage_ids::OrigOffset;
use afterimage_program::Program;
use wasm_encoder::{Catch, Instruction};
use wasmparser::{RefType, ValType};

use super::{Frame, Landings, Writer};
use crate::RewriteError;
use crate::actions::Action;
use crate::map::OriginalPlace;
use crate::types::TypePool;

impl Writer<'_, '_> {
    /// Returns the number that a label of the original has at the current place.
    pub(super) fn label(&self, depth: u32) -> u32 {
        let outer = self.frames.len().checked_sub(depth as usize + 1);
        let outside = outer.map_or(0, |i| self.frames[i].extras);
        let mut label = depth + self.extras() - outside;
        if depth as usize + 1 == self.frames.len() {
            label += self.frames[0].inside;
        }
        label
    }

    pub(super) fn moved(&self) -> bool {
        self.frames[0].inside > 0 || self.extras() > 0
    }

    fn extras(&self) -> u32 {
        self.frames.last().map_or(0, |frame| frame.extras)
    }

    pub(super) fn open(&mut self, frame: Frame) {
        let extras = self.extras() + frame.extra;
        self.frames.push(Frame { extras, ..frame });
    }

    /// Returns the values that a branch to a label of the original carries through locals.
    pub(super) fn carried_through(&self, depth: u32) -> Vec<ValType> {
        let at = self.frames.len().checked_sub(depth as usize + 1);
        let frame = at.map(|at| &self.frames[at]);
        frame.map_or_else(Vec::new, |frame| {
            if frame.is_loop {
                frame.through.0.clone()
            } else {
                frame.through.1.clone()
            }
        })
    }

    /// Returns the types that a branch to a label of the original carries.
    fn carried(&self, depth: u32) -> Vec<ValType> {
        let Some(frame) = self
            .frames
            .len()
            .checked_sub(depth as usize + 1)
            .map(|i| &self.frames[i])
        else {
            return Vec::new();
        };
        match frame.ty {
            None => self.results.clone(),
            Some(ty) => {
                let (params, results) = self.context.types.signature(ty);
                if frame.is_loop { params } else { results }
            }
        }
    }

    pub(super) fn br_if(
        &mut self,
        depth: u32,
        range: &Range<usize>,
        action: &Action,
    ) -> Result<(), RewriteError> {
        let through = self.carried_through(depth);
        self.keep_below(&through, true);
        if action.taken.is_empty() {
            if self.moved() {
                self.put(&Instruction::BrIf(self.label(depth)));
            } else {
                self.copy(range);
            }
            return Ok(());
        }
        let carried = if through.is_empty() {
            self.carried(depth)
        } else {
            Vec::new()
        };
        let ty = self.context.types.block(&carried, &carried)?;
        // The engine may merge this branch with the load of its condition, and then reports the
        // load's trap at the branch.
        let place = OriginalPlace::Operator(OrigOffset(range.start as u32));
        self.map.stops.push((self.out.len() as u32, place));
        self.put(&Instruction::If(ty));
        self.steps(&action.taken);
        self.put(&Instruction::Br(self.label(depth) + 1));
        self.put(&Instruction::End);
        Ok(())
    }

    pub(super) fn br_table(
        &mut self,
        targets: &wasmparser::BrTable<'_>,
        range: &Range<usize>,
        action: &Action,
    ) -> Result<(), RewriteError> {
        if action.table.is_empty() && !self.moved() {
            self.copy(range);
            return Ok(());
        }
        let landings = action.table.len() as u32;
        let landed = Vec::from_iter(action.table.keys().copied());
        let carried = if landings > 0 {
            self.carried(targets.default())
        } else {
            Vec::new()
        };
        let mut params = carried.clone();
        params.push(ValType::I32);
        for _ in 0..landings {
            // Every block takes the index and passes on the values that the branch carries.
            let ty = self.context.types.block(&params, &carried)?;
            self.put(&Instruction::Block(ty));
        }
        let to = |writer: &Self, depth: u32| {
            match landed.binary_search(&depth) {
                // The first landing is the innermost block.
                Ok(i) => i as u32,
                Err(_) => writer.label(depth) + landings,
            }
        };
        let mut labels = Vec::with_capacity(targets.len() as usize);
        for target in targets.targets() {
            labels.push(to(self, target?));
        }
        let default = to(self, targets.default());
        self.put(&Instruction::BrTable(labels.into(), default));
        for (i, (depth, steps)) in action.table.iter().enumerate() {
            self.put(&Instruction::End);
            self.steps(steps);
            self.put(&Instruction::Br(
                self.label(*depth) + landings - 1 - i as u32,
            ));
        }
        Ok(())
    }

    /// Writes a call. Puts a landing pad around the call if exceptions that leave it are counted.
    pub(super) fn call(
        &mut self,
        range: &Range<usize>,
        action: &Action,
        signature: impl FnOnce(&TypePool, &Program) -> (Vec<ValType>, Vec<ValType>),
    ) -> Result<(), RewriteError> {
        if action.throw.is_empty() {
            self.copy(range);
            return Ok(());
        }
        let (params, results) = signature(self.context.types, self.context.program);
        let exception = [ValType::Ref(RefType::EXNREF)];
        let done = self.context.types.block(&params, &results)?;
        let land = self.context.types.block(&params, &exception)?;
        self.put(&Instruction::Block(done));
        self.put(&Instruction::Block(land));
        self.put(&Instruction::TryTable(
            done,
            vec![Catch::AllRef { label: 0 }].into(),
        ));
        self.copy(range);
        self.put(&Instruction::End);
        self.put(&Instruction::Br(1));
        self.put(&Instruction::End);
        self.steps(&action.throw);
        self.put(&Instruction::ThrowRef);
        self.put(&Instruction::End);
        Ok(())
    }

    pub(super) fn try_table(
        &mut self,
        table: &wasmparser::TryTable,
        range: &Range<usize>,
        action: &Action,
    ) -> Result<(), RewriteError> {
        let plain = action.catch.is_empty() && action.unwind.is_empty();
        if plain && !self.moved() {
            self.open(Frame::new(Some(table.ty)));
            self.copy(range);
            return Ok(());
        }
        let (params, results) = self.context.types.signature(table.ty);
        let mut landings = Landings::default();
        let mut values = Vec::new();
        for (clause, steps) in &action.catch {
            let Some(catch) = table.catches.get(*clause as usize) else {
                continue;
            };
            landings
                .blocks
                .push((steps.clone(), Some(self.label(catch_label(catch)))));
            values.push(self.caught(catch));
        }
        if !action.unwind.is_empty() {
            landings.blocks.push((action.unwind.clone(), None));
            values.push(vec![ValType::Ref(RefType::EXNREF)]);
        }
        let count = landings.blocks.len() as u32;
        let extra = if plain { 0 } else { count + 1 };
        let mut catches = Vec::with_capacity(table.catches.len() + 1);
        for (i, catch) in table.catches.iter().enumerate() {
            let label = match action.catch.iter().position(|(c, _)| *c as usize == i) {
                Some(landing) => landing as u32,
                None => self.label(catch_label(catch)) + extra,
            };
            catches.push(match *catch {
                wasmparser::Catch::One { tag, .. } => Catch::One { tag, label },
                wasmparser::Catch::OneRef { tag, .. } => Catch::OneRef { tag, label },
                wasmparser::Catch::All { .. } => Catch::All { label },
                wasmparser::Catch::AllRef { .. } => Catch::AllRef { label },
            });
        }
        if !action.unwind.is_empty() {
            catches.push(Catch::AllRef { label: count - 1 });
        }
        let own = self.context.types.block(&params, &results)?;
        if !plain {
            self.put(&Instruction::Block(own));
            for carried in values.iter().rev() {
                let ty = self.context.types.block(&params, carried)?;
                self.put(&Instruction::Block(ty));
            }
        }
        self.put(&Instruction::TryTable(own, catches.into()));
        let landings = (!plain).then_some(landings);
        self.open(Frame {
            extra,
            landings,
            ..Frame::new(Some(table.ty))
        });
        Ok(())
    }

    /// Returns the values that a clause of a `try_table` puts on the stack.
    fn caught(&self, catch: &wasmparser::Catch) -> Vec<ValType> {
        let tag_values = |tag: u32| {
            let ty = self.context.tags.get(tag as usize).copied();
            ty.map(|ty| self.context.types.get(ty).0.to_vec())
                .unwrap_or_default()
        };
        let exception = ValType::Ref(RefType::EXNREF);
        match *catch {
            wasmparser::Catch::One { tag, .. } => tag_values(tag),
            wasmparser::Catch::OneRef { tag, .. } => {
                let mut values = tag_values(tag);
                values.push(exception);
                values
            }
            wasmparser::Catch::All { .. } => Vec::new(),
            wasmparser::Catch::AllRef { .. } => vec![exception],
        }
    }
}

fn catch_label(catch: &wasmparser::Catch) -> u32 {
    match *catch {
        wasmparser::Catch::One { label, .. }
        | wasmparser::Catch::OneRef { label, .. }
        | wasmparser::Catch::All { label }
        | wasmparser::Catch::AllRef { label } => label,
    }
}
