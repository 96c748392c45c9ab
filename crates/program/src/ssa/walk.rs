//! Walks over the operators, and tracks blocks, frames and the values that branches carry.

use std::collections::HashMap;

use afterimage_ids::{BlockId, EntityRef, OpId, PrimaryMap, ValueId};
use wasmparser::{FuncValidator, Operator, ValidatorResources};

use super::build::{Variable, Walked};
use super::{Value, ValueDef};
use crate::stack::StackWalk;
use crate::{BlockKind, Function, ParseError, Program};

mod values;

use values::Taken;
pub(super) use values::general;

/// The state of the walk.
pub(super) struct Walk<'a> {
    validator: FuncValidator<ValidatorResources>,
    pub(super) walked: Walked<'a>,
    stack: StackWalk<'a>,
    /// The last entered code block.
    block: BlockId,
    /// The next code block.
    next_block: BlockId,
    /// For each variable, the block that last used it, and its value there.
    current: Vec<(BlockId, ValueId)>,
    /// The variables that the block wrote, possibly repeated.
    written: Vec<Variable>,
}

impl<'a> Walk<'a> {
    /// Creates a walk at the function's first operator.
    pub(super) fn new(
        program: &'a Program,
        function: &'a Function,
        validator: FuncValidator<ValidatorResources>,
    ) -> Self {
        let cfg = &function.cfg;
        let ty = &program.types[function.ty];
        let mut walked = Walked {
            cfg,
            locals: validator.len_locals(),
            values: PrimaryMap::new(),
            statements: PrimaryMap::new(),
            operands: Vec::new(),
            entries: HashMap::new(),
            writes: cfg.blocks.values().map(|_| Vec::new()).collect(),
            carried: HashMap::new(),
            results: ty.results.clone(),
        };
        for (i, ty) in ty.params.iter().enumerate() {
            let value = Value {
                ty: general(*ty),
                def: ValueDef::Param(i as u32),
            };
            let value = walked.values.push(value);
            walked.entries.insert((cfg.graph.root(), i as u32), value);
        }
        Self {
            stack: StackWalk::new(program, function),
            block: cfg.graph.root(),
            next_block: BlockId::new(0),
            current: Vec::new(),
            written: Vec::new(),
            validator,
            walked,
        }
    }

    /// Processes the next operator. Returns `None` if the operator cannot belong to the program.
    pub(super) fn operator(
        &mut self,
        op: OpId,
        at: usize,
        operator: &Operator<'_>,
    ) -> Option<Result<(), ParseError>> {
        let cfg = self.walked.cfg;
        while let Some(block) = cfg.blocks.get(self.next_block)
            && block.kind == BlockKind::Code
            && (block.ops.start == op || block.ops.is_empty())
        {
            self.block = self.next_block;
            self.next_block = BlockId::new(self.next_block.index() + 1);
        }
        let reachable = cfg.blocks[self.block].ops.contains(&op);
        let marker = self.stack.marker(op, operator)?;
        let before = if reachable && !marker {
            self.take(operator)?
        } else {
            Taken::Nothing
        };
        if let Err(error) = self.validator.op(at, operator) {
            return Some(Err(error.into()));
        }
        if reachable && !marker {
            self.give(op, operator, before)?;
            self.stack.carry(self.block, op, operator)?;
            if cfg.blocks[self.block].ops.end.index() == op.index() + 1 {
                self.leave_block();
            }
        }
        self.stack.enter_if(operator)?;
        Some(Ok(()))
    }

    /// Returns the result of the walk, after the last operator.
    pub(super) fn finish(self) -> Walked<'a> {
        Walked {
            carried: self.stack.carried,
            ..self.walked
        }
    }
}
