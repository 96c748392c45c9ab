//! Reads the operators of a function, with their ordinals and offsets.

use std::ops::Range;
use std::sync::OnceLock;

use afterimage_ids::{BlockId, EntityRef, FuncId, OpId, OrigOffset};
use wasmparser::{BinaryReader, FunctionBody, Operator, OperatorsReader};

use crate::{BlockKind, Effect, Function, Program};

/// Iterates over the operators of one function in order, each with its ordinal and its offset in
/// the module.
///
/// Ends early if the bytes are not a valid body.
#[derive(Clone)]
pub struct Operators<'a> {
    reader: Option<OperatorsReader<'a>>,
    next: u32,
    position: OrigOffset,
}

impl<'a> Operators<'a> {
    /// Reads the operators of a body in a module.
    pub(crate) fn new(bytes: &'a [u8], body: &Range<OrigOffset>) -> Self {
        let range = body.start.0 as usize..body.end.0 as usize;
        let reader = bytes.get(range).and_then(|code| {
            let reader = BinaryReader::new(code, body.start.0 as usize);
            FunctionBody::new(reader).get_operators_reader().ok()
        });
        let position = reader.as_ref().map_or(body.end, position);
        Self {
            reader,
            next: 0,
            position,
        }
    }

    /// Returns the offset right after the last operator that was returned.
    pub fn position(&self) -> OrigOffset {
        self.position
    }
}

/// Returns the reader's position. The body lies within a module of less than 4 GiB, so the
/// conversion is exact.
fn position(reader: &OperatorsReader<'_>) -> OrigOffset {
    OrigOffset(reader.original_position() as u32)
}

impl<'a> Iterator for Operators<'a> {
    type Item = (OpId, OrigOffset, Operator<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let reader = self.reader.as_mut().filter(|reader| !reader.eof())?;
        let at = self.position;
        let operator = reader.read().ok()?;
        self.position = position(reader);
        let op = OpId::from_u32(self.next);
        self.next += 1;
        Some((op, at, operator))
    }
}

impl Program {
    /// Returns the operators of a function. `bytes` is the module from which the program was
    /// parsed.
    pub fn operators<'a>(&self, bytes: &'a [u8], function: &Function) -> Operators<'a> {
        Operators::new(bytes, &function.body)
    }

    /// Returns the function whose body contains an offset. O(log functions).
    pub fn function_at(&self, offset: OrigOffset) -> Option<&Function> {
        let after = self.functions.partition_point(|f| f.body.start <= offset);
        let function = &self.functions[after.checked_sub(1)?];
        (offset < function.body.end).then_some(function)
    }
}

impl Function {
    /// Returns the block to which an operator belongs. Returns `None` if the operator is in
    /// unreachable code, or is a marker (`block`, `loop`, `else`, `end`, `try_table`) between two
    /// blocks. O(log blocks).
    pub fn block_of(&self, op: OpId) -> Option<BlockId> {
        let blocks = self.cfg.blocks.as_values_slice();
        let code = blocks.partition_point(|block| block.kind == BlockKind::Code);
        let after = blocks[..code].partition_point(|block| block.ops.start <= op);
        let last = after.checked_sub(1)?;
        blocks[last].ops.contains(&op).then(|| BlockId::new(last))
    }
}

/// Finds operators by their offset in the module, by binary search. The offsets of a function's
/// operators are read at the first query about that function, and kept.
pub struct OperatorIndex<'a> {
    program: &'a Program,
    bytes: &'a [u8],
    offsets: Vec<OnceLock<Vec<OrigOffset>>>,
}

impl<'a> OperatorIndex<'a> {
    /// Creates an index of a program. `bytes` is the module from which the program was parsed.
    pub fn new(program: &'a Program, bytes: &'a [u8]) -> Self {
        let offsets = program.functions.iter().map(|_| OnceLock::new()).collect();
        Self {
            program,
            bytes,
            offsets,
        }
    }

    /// Returns the operator that begins at this offset.
    pub fn find(&self, offset: OrigOffset) -> Option<(FuncId, OpId)> {
        let function = self.program.function_at(offset)?;
        let op = self.offsets(function).binary_search(&offset).ok()?;
        Some((function.id, OpId::new(op)))
    }

    /// Returns the operator whose bytes include this offset.
    pub fn enclosing(&self, offset: OrigOffset) -> Option<(FuncId, OpId)> {
        let function = self.program.function_at(offset)?;
        let after = self
            .offsets(function)
            .partition_point(|&start| start <= offset);
        Some((function.id, OpId::new(after.checked_sub(1)?)))
    }

    /// Returns the effect of the operator that begins at this offset, or `None` if no operator
    /// begins there. O(operators of the function).
    pub fn effect(&self, offset: OrigOffset) -> Option<Effect> {
        let function = self.program.function_at(offset)?;
        let mut operators = self.program.operators(self.bytes, function);
        let found = operators.find(|(_, at, _)| *at == offset);
        found.map(|(_, _, operator)| Effect::of(&operator))
    }

    /// Returns the offsets of a function's operators, indexed by [`OpId`]. The function must belong
    /// to the program.
    pub fn offsets(&self, function: &Function) -> &[OrigOffset] {
        self.offsets[function.id.index() - self.program.imports.len()].get_or_init(|| {
            self.program
                .operators(self.bytes, function)
                .map(|(_, offset, _)| offset)
                .collect()
        })
    }
}
