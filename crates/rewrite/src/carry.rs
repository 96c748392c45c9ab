//! Replaces block parameters and results in functions that have many of them.
//!
//! For each value that a label carries, the engine (wasmtime 48) has a variable. For each variable,
//! it has a table of the blocks up to the last block that sets the variable. That takes 4 bytes
//! times values times blocks: 23 GB for 50,000 small blocks with a result. If the product is large,
//! the values instead go through locals, which all labels share. The locals are set right before a
//! branch, and read right after its label.
//!
//! ```wat
//! (block (result i32) … (br_if 0 (VALUE) (CONDITION)) …)
//! (block … (VALUE) (CONDITION) (local.set $condition) (local.tee $value) (local.get $condition) (br_if 0) … (local.set $value)) (local.get $value)
//! ```

use afterimage_program::Function;
use wasm_encoder::Instruction;
use wasmparser::{BlockType, FunctionBody, Operator, ValType};

use crate::RewriteError;
use crate::body::Writer;
use crate::shared::SharedLocals;
use crate::types::TypePool;

/// The locals that replace the values carried by labels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carriers {
    /// The local for a condition on top of the values that a label carries.
    pub condition: u32,
    /// The locals for the values that a label carries.
    pub locals: SharedLocals,
}

impl Carriers {
    /// Returns the carriers of a function, if it needs any. A function with handlers keeps its
    /// blocks, because an exception arrives with its values. A function in which a `br_table`
    /// carries values also keeps them, because the `br_table` may lead out of the function.
    pub(crate) fn of(
        pool: &TypePool,
        body: &FunctionBody<'_>,
        function: &Function,
        most: u64,
    ) -> Result<Option<Self>, RewriteError> {
        let blocks = function.cfg.blocks.len() as u64;
        if blocks * blocks < most {
            return Ok(None);
        }
        let mut found = Self::default();
        let mut values = 0;
        // For each open label, whether a branch to it carries values.
        let mut labels = vec![!pool.get(function.ty.as_u32()).1.is_empty()];
        for operator in body.get_operators_reader()? {
            let (ty, is_loop) = match operator? {
                Operator::Block { blockty } | Operator::If { blockty } => (blockty, false),
                Operator::Loop { blockty } => (blockty, true),
                Operator::End => {
                    labels.pop();
                    continue;
                }
                Operator::BrTable { targets } => {
                    let label = labels.len().checked_sub(targets.default() as usize + 1);
                    if label.is_some_and(|label| labels[label]) {
                        return Ok(None);
                    }
                    continue;
                }
                Operator::TryTable { .. } => return Ok(None),
                _ => continue,
            };
            let (params, results) = pool.signature(ty);
            labels.push(!if is_loop { &params } else { &results }.is_empty());
            values += (params.len() + results.len()) as u64;
            found.locals.add(&params);
            found.locals.add(&results);
        }
        Ok((values > 0 && values * blocks >= most).then_some(found))
    }
}

impl Writer<'_, '_> {
    fn carriers_of(&self, carried: &[ValType]) -> Vec<u32> {
        let carriers = self.carriers.as_ref();
        carriers.map_or_else(Vec::new, |carriers| carriers.locals.of(carried))
    }

    /// Moves the values that a label carries from the stack to locals.
    pub(crate) fn keep(&mut self, carried: &[ValType]) {
        for local in self.carriers_of(carried).into_iter().rev() {
            self.put(&Instruction::LocalSet(local));
        }
    }

    /// Pushes the values that a label carried.
    pub(crate) fn bring(&mut self, carried: &[ValType]) {
        for local in self.carriers_of(carried) {
            self.put(&Instruction::LocalGet(local));
        }
    }

    /// Does the same as `keep` and `bring`, but for values below a condition, which stays on top.
    /// If `stays` is set, the values also stay on the stack.
    pub(crate) fn keep_below(&mut self, carried: &[ValType], stays: bool) {
        let Some(condition) = self.carriers.as_ref().map(|carriers| carriers.condition) else {
            return;
        };
        if carried.is_empty() {
            return;
        }
        self.put(&Instruction::LocalSet(condition));
        self.keep(carried);
        if stays {
            self.bring(carried);
        }
        self.put(&Instruction::LocalGet(condition));
    }

    /// Returns the types of the values that go through locals into a block of this type, and out of
    /// it.
    pub(crate) fn through_locals(&self, ty: BlockType) -> (Vec<ValType>, Vec<ValType>) {
        match self.carriers {
            Some(_) => self.context.types.signature(ty),
            None => Default::default(),
        }
    }
}
