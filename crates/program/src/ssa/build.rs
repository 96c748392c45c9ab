//! Converts a function's code to its statements, in three steps.
//!
//! First, a [walk](super::walk) over the operators finds the statements, and the values within
//! blocks. A variable that a block reads before writing becomes an *entry value* of that block.
//! Second, [resolution](super::resolve) finds the origins of entry values. Third,
//! [minimisation](super::minimize) removes unneeded φs.

use std::collections::HashMap;

use afterimage_ids::{BlockId, EdgeId, OpId, PrimaryMap, StmtId, ValueId};
use wasmparser::{OperatorsReader, ValType};

use super::walk::Walk;
use super::{Ssa, Statement, Value, ValueDef};
use crate::body::{mismatch, validator};
use crate::stack::Carried;
use crate::{Cfg, Function, ParseError, Program};

/// A local, or a slot of the operand stack. Locals are numbered first.
pub(super) type Variable = u32;

/// The result of the walk.
pub(super) struct Walked<'a> {
    pub(super) cfg: &'a Cfg,
    pub(super) locals: u32,
    pub(super) values: PrimaryMap<ValueId, Value>,
    pub(super) statements: PrimaryMap<StmtId, Statement>,
    pub(super) operands: Vec<ValueId>,
    /// The entry values created so far.
    pub(super) entries: HashMap<(BlockId, Variable), ValueId>,
    /// For each block, the variables that it wrote, with their last values, ascending by variable.
    pub(super) writes: PrimaryMap<BlockId, Vec<(Variable, ValueId)>>,
    /// The values on edges that move slots of the operand stack.
    pub(super) carried: HashMap<EdgeId, Carried>,
    /// The types of the function's results.
    pub(super) results: Box<[ValType]>,
}

impl Ssa {
    /// Builds the statements of a function in a program. `bytes` is the module from which the
    /// program was parsed.
    ///
    /// O((operators + φs + size of the dominance frontiers) · log), which is near-linear unless
    /// loops nest deeply.
    ///
    /// # Errors
    /// Returns an error if `bytes` is not that module.
    pub fn build(program: &Program, bytes: &[u8], function: &Function) -> Result<Self, ParseError> {
        let mismatch = || mismatch(function);
        let (validator, reader) = validator(program, bytes, function)?;
        let mut reader = OperatorsReader::new(reader);

        let mut walk = Walk::new(program, function, validator);
        let mut op = 0;
        while !reader.eof() {
            let (operator, at) = reader.read_with_offset()?;
            walk.operator(OpId::from_u32(op), at, &operator)
                .ok_or_else(mismatch)??;
            op += 1;
        }
        if op != function.operators {
            return Err(mismatch());
        }
        super::resolve::resolve(walk.finish()).ok_or_else(mismatch)
    }
}

impl Walked<'_> {
    /// Returns the value of a variable at the start of a block.
    pub(super) fn entry(&mut self, block: BlockId, variable: Variable, ty: ValType) -> ValueId {
        let initial = block == self.cfg.graph.root();
        let def = if initial {
            ValueDef::Initial(variable)
        } else {
            ValueDef::Phi(block)
        };
        let values = &mut self.values;
        *self
            .entries
            .entry((block, variable))
            .or_insert_with(|| values.push(Value { ty, def }))
    }
}
