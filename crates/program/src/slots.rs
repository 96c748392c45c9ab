//! Numbers the locals and the slots of the operand stack as the variables of a function.

use std::collections::HashMap;

use afterimage_ids::{BlockId, EdgeId, OpId, PrimaryMap};
use wasmparser::{Operator, OperatorsReader, ValType};

use crate::body::{mismatch, validator};
use crate::stack::{Carried, StackWalk};
use crate::{BlockKind, Function, ParseError, Program};

/// A placeholder for the height before an operator that is unreachable or only a marker.
pub const NO_HEIGHT: u32 = u32::MAX;

/// The variables of one function. Its locals come first, starting with the parameters, and then the
/// slots of its operand stack, starting with the lowest.
///
/// The height of the operand stack is static, so the slots that an operator pops and pushes are
/// known without running it.
#[derive(Clone, Debug)]
pub struct Slots {
    /// The types of the locals.
    pub locals: Box<[ValType]>,
    /// For each operator, the number of slots in use before it, or [`NO_HEIGHT`] if it is never
    /// executed.
    pub heights: PrimaryMap<OpId, u32>,
    /// The maximum number of slots in use.
    pub deepest: u32,
    /// For each block of code, the types of the slots in use at its start, the lowest first.
    pub at_start: PrimaryMap<BlockId, Box<[ValType]>>,
    /// The values that edges carry, for edges that move values to other slots.
    pub carried: HashMap<EdgeId, Carried>,
}

impl Slots {
    /// Returns the variables of a function in a program. `bytes` is the module from which the
    /// program was parsed. O(operators · depth of the operand stack at the starts of blocks).
    ///
    /// # Errors
    /// Returns an error if `bytes` is not that module.
    pub fn build(program: &Program, bytes: &[u8], function: &Function) -> Result<Self, ParseError> {
        Self::read(program, bytes, function, None).map(|(slots, _)| slots)
    }

    /// Returns the types of the slots in use before an operator, the lowest first. The list is
    /// empty if the operator is unreachable or only a marker. Takes as long as
    /// [`build`](Self::build).
    ///
    /// # Errors
    /// Returns an error if `bytes` is not the module from which the program was parsed.
    pub fn before(
        program: &Program,
        bytes: &[u8],
        function: &Function,
        op: OpId,
    ) -> Result<Box<[ValType]>, ParseError> {
        Self::read(program, bytes, function, Some(op)).map(|(_, before)| before)
    }

    fn read(
        program: &Program,
        bytes: &[u8],
        function: &Function,
        wanted: Option<OpId>,
    ) -> Result<(Self, Box<[ValType]>), ParseError> {
        let mut found = Box::default();
        let mismatch = || mismatch(function);
        let (mut validator, reader) = validator(program, bytes, function)?;
        let locals: Option<_> = (0..validator.len_locals())
            .map(|local| validator.get_local_type(local))
            .collect();
        let mut reader = OperatorsReader::new(reader);

        let cfg = &function.cfg;
        let mut stack = StackWalk::new(program, function);
        let mut heights = PrimaryMap::with_capacity(function.operators as usize);
        let mut at_start: PrimaryMap<BlockId, Box<[ValType]>> = PrimaryMap::new();
        let mut deepest = 0;
        let mut block = cfg.graph.root();
        while !reader.eof() {
            let (operator, at) = reader.read_with_offset()?;
            let op: OpId = heights.next_key();
            while let Some(next) = cfg.blocks.get(at_start.next_key())
                && next.kind == BlockKind::Code
                && (next.ops.start == op || next.ops.is_empty())
            {
                block = at_start.next_key();
                let types = (0..stack.height)
                    .rev()
                    .map(|depth| validator.get_operand_type(depth as usize)?);
                at_start.push(types.collect::<Option<_>>().ok_or_else(mismatch)?);
            }
            let reachable = cfg.blocks[block].ops.contains(&op);
            let before = stack.height;
            let marker = stack.marker(op, &operator).ok_or_else(mismatch)?;
            let executed = reachable && !marker;
            if executed && wanted == Some(op) {
                let types = (0..before)
                    .rev()
                    .map(|depth| validator.get_operand_type(depth as usize)?);
                found = types.collect::<Option<_>>().ok_or_else(mismatch)?;
            }
            heights.push(if executed { before } else { NO_HEIGHT });
            if executed {
                let taken = taken(&operator, &validator).ok_or_else(mismatch)?;
                stack.height = before.checked_sub(taken).ok_or_else(mismatch)?;
            }
            validator.op(at, &operator)?;
            if executed {
                if !transfers(&operator) {
                    stack.height = validator.operand_stack_height();
                }
                stack.carry(block, op, &operator).ok_or_else(mismatch)?;
            }
            stack.enter_if(&operator).ok_or_else(mismatch)?;
            deepest = deepest.max(stack.height);
        }
        if heights.len() != function.operators as usize {
            return Err(mismatch());
        }
        let slots = Self {
            locals: locals.ok_or_else(mismatch)?,
            heights,
            deepest,
            at_start,
            carried: stack.carried,
        };
        Ok((slots, found))
    }

    /// Returns the number of variables.
    pub fn count(&self) -> usize {
        self.locals.len() + self.deepest as usize
    }

    /// Returns the variable for a slot of the operand stack.
    pub fn of_slot(&self, slot: u32) -> u32 {
        self.locals.len() as u32 + slot
    }

    /// Returns the types of the variables at the start of a block of code, which are all locals and
    /// the slots in use.
    pub fn types_at(&self, block: BlockId) -> impl Iterator<Item = ValType> + '_ {
        let slots = self.at_start.get(block).map_or(&[][..], |types| types);
        self.locals.iter().chain(slots).copied()
    }
}

/// Returns the number of slots that a reachable operator pops, before it is validated. A branch
/// pops its condition or index, not the values that it carries.
fn taken(
    operator: &Operator<'_>,
    validator: &wasmparser::FuncValidator<wasmparser::ValidatorResources>,
) -> Option<u32> {
    Some(match operator {
        Operator::Br { .. } => 0,
        Operator::If { .. } | Operator::BrIf { .. } | Operator::BrTable { .. } => 1,
        _ => operator.operator_arity(validator)?.0,
    })
}

/// Whether the operator always branches. The values that such an operator carries are then above
/// the top of the validator's stack.
fn transfers(operator: &Operator<'_>) -> bool {
    matches!(operator, Operator::Br { .. } | Operator::BrTable { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_before_an_operator_have_the_types_of_what_is_on_the_stack() {
        let text = r#"(module (func (param i32) (result i64)
            i64.const 1
            f32.const 2
            local.get 0
            if (result f64) f64.const 1 else f64.const 2 end
            drop
            drop
            return
            i32.const 7
            drop))"#;
        let bytes = wat::parse_str(text).unwrap();
        let program = Program::parse(&bytes).unwrap();
        let function = &program.functions[0];
        let slots = Slots::build(&program, &bytes, function).unwrap();
        let before = |op| {
            let op = OpId::from_u32(op);
            Slots::before(&program, &bytes, function, op).unwrap()
        };
        use ValType::{F32, F64, I32, I64};
        assert_eq!(*before(0), []);
        assert_eq!(*before(3), [I64, F32, I32]);
        // Operator 4 is in one arm. Operators 8 and 10 are after both arms.
        assert_eq!(*before(4), [I64, F32]);
        assert_eq!(*before(8), [I64, F32, F64]);
        assert_eq!(*before(10), [I64]);
        // Code that is never executed has no slots.
        assert_eq!(*before(12), []);
        for op in 0..function.operators {
            let height = slots.heights[OpId::from_u32(op)];
            let known = if height == NO_HEIGHT { 0 } else { height };
            assert_eq!(before(op).len() as u32, known, "{op}");
        }
        for (block, types) in slots.at_start.iter() {
            let first = function.cfg.blocks[block].ops.start;
            if slots.heights[first] != NO_HEIGHT {
                assert_eq!(before(first.as_u32()), *types);
            }
        }
    }
}
